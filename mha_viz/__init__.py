"""MHA Explorer: every head, every tensor, every rule of multi-head attention, as a person can open it.

``import mha_viz`` is cheap: what needs torch or plotly is imported when it is first used.
"""

from importlib import import_module

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
    "average": "mha_viz.export.notebook",
    "difference": "mha_viz.export.notebook",
    "head": "mha_viz.export.notebook",
    "heads": "mha_viz.export.notebook",
    "layers": "mha_viz.export.notebook",
    "lines": "mha_viz.export.notebook",
    "page": "mha_viz.export.notebook",
    "pair": "mha_viz.export.notebook",
    "pooled": "mha_viz.core.long",
    "load": "mha_viz.recording",
    "pretrained": "mha_viz.sources.pretrained",
    "record": "mha_viz.sources.recorded",
    "share_kv": "mha_viz.core.decode",
    "synthetic": "mha_viz.sources.synthetic",
    "trained": "mha_viz.sources.trained",
}
__all__ = list(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'mha_viz' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__():
    return sorted(__all__)
