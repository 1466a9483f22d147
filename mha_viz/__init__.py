"""MHA Explorer: every head, every tensor, every rule of multi-head attention, as a person can open it.

``import mha_viz`` is cheap: what needs torch or plotly is imported when it is first used. ``__init__.pyi`` tells editors what there is.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "Batch": "mha_viz.core.batch",
    "Intervention": "mha_viz.core.intervention",
    "Layer": "mha_viz.core.layer",
    "Pretrained": "mha_viz.sources.pretrained",
    "Recording": "mha_viz.recording",
    "Settings": "mha_viz.settings",
    "Trace": "mha_viz.core.trace",
    "Trained": "mha_viz.sources.trained",
    "View": "mha_viz.settings",
    "Wrong": "mha_viz.core.rules",
    "attend": "mha_viz.core.attend",
    "changed": "mha_viz.core.intervention",
    "decode": "mha_viz.core.decode",
    "pooled": "mha_viz.core.long",
    "load": "mha_viz.recording",
    "pretrained": "mha_viz.sources.pretrained",
    "record": "mha_viz.sources.recorded",
    "share_kv": "mha_viz.core.decode",
    "synthetic": "mha_viz.sources.synthetic",
    "trained": "mha_viz.sources.trained",
}
_PICTURES = "mha_viz.export.notebook"  # a function for each public view


def __getattr__(name: str) -> object:
    if name == "__all__":
        return [*_HOMES, *_pictures()]
    home = _HOMES.get(name) or (_PICTURES if not name.startswith("_") and name in _pictures() else None)
    if home is None:
        raise AttributeError(f"module 'mha_viz' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def _pictures() -> list[str]:
    """The names of the views that are functions as well."""
    return [view.name for view in import_module("mha_viz.views").VIEWS.values() if view.public]


def __dir__() -> list[str]:
    return sorted([*_HOMES, *_pictures()])
