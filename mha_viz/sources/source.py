"""A source by its spelling: settings, the address of a page, or a file. What a command line opens, and what is said of it."""

from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from mha_viz.core.intervention import changed
from mha_viz.core.json_text import parse_json
from mha_viz.core.rules import Wrong
from mha_viz.recording import Recording
from mha_viz.settings import Settings, View, from_address, from_values
from mha_viz.settings.interventions import read_interventions
from mha_viz.settings.view import PLACE
from mha_viz.sources.synthetic import synthetic
from mha_viz.sources.trained import Trained, trained


@dataclass(frozen=True, eq=False)
class Source:
    """What is looked at: its ``name``, its layers as ``traces``, the ``settings`` that it was made from, which are Settings, Trained,
    Pretrained, or None for a file, and ``notes``, sentences without which it should not be read."""

    name: str
    traces: tuple
    settings: object = None
    notes: tuple[str, ...] = ()


def source(settings):
    """The Source of these Settings, Trained or Pretrained, or of a Recording. Raises Wrong where it cannot be had."""
    if isinstance(settings, Recording):
        return Source("recording", settings.traces, notes=tuple(settings.notes))
    if isinstance(settings, Settings):
        return Source(source_name(settings), (synthetic(settings),), settings)
    if isinstance(settings, Trained):
        recording = trained(settings).recording
        return Source(settings.model, recording.traces, settings, tuple(recording.notes))
    from mha_viz.sources.pretrained import pretrained

    recording = pretrained(settings)
    return Source(settings.name, recording.traces, settings, tuple(recording.notes))


def source_name(settings):
    """What the layer of these Settings is called."""
    return "tiny layer, worked by hand" if settings.case == "tiny" else f"untrained layer, seed {settings.seed}"


def source_of_file(path, **answers):
    """The Source of a file: Settings as JSON (a "source" among them, "trained" or "pretrained", makes it those), a recording, weights or
    maps.

    ``answers`` answer what weights and maps do not say, by its field. Raises Wrong where it is none of these, or where something has to
    be asked that nobody has answered.
    """
    path = Path(path)
    if path.suffix == ".json" and path.is_file():
        held = parse_json("file", _text_of(path), path.name)
        if isinstance(held, dict):
            for name, value in answers.items():
                raise Wrong(name, value, "is for a file of weights; settings say it themselves.", [{name: None}])
            kind = kind_of(held.pop("source", None))
            return source(from_values(held, kind))
    from mha_viz.sources.files import look, open_found

    found = look(path.name, path)
    if found.kind == "tokens":
        raise Wrong("file", path.name, "holds tokens alone: there is no attention in it.")
    return replace(source(open_found(found, **answers)), name=path.name)


def _text_of(path):
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise Wrong("file", path.name, f"cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise Wrong("file", path.name, f"must be UTF-8 text, and byte {error.start} is {error.object[error.start]:#04x}.") from None


def source_of_address(text):
    """The Source of an address as the pages write it, the whole of it or from its "?" on, with what its View changes in a layer; and that
    View.

    Raises Wrong for a value that is bad, or where it names a file, which an address does not hold.
    """
    path, query = _taken_apart(text)
    on_models = urlsplit(path).path.rstrip("/").endswith("models")
    kind = kind_of(query.pop("source", "trained" if on_models else None))
    fields, view, notes = from_address(query, kind)
    if notes:
        raise notes[0]
    view = View(**view)
    return changed_by(source(kind(**fields)), view), view


def view_of_address(text):
    """The View of an address, whatever it is a view of. Raises Wrong for a value of it that is bad."""
    _, query = _taken_apart(text)
    _, view, notes = from_address({name: value for name, value in query.items() if name in View.__dataclass_fields__})
    if notes:
        raise notes[0]
    return View(**view)


def _taken_apart(text):
    """What stands before the "?" of an address, and what after it by name."""
    path, _, query = text.rpartition("?")
    try:
        return path, dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise Wrong("address", text, 'must spell settings, as in "?seed=8&causal=1".') from None


def changed_by(of, view):
    """The same Source with what this View changes in one layer of it."""
    asked = read_interventions(view.what_if)
    if view.layer >= len(asked) or view.layer >= len(of.traces):
        return of
    traces = list(of.traces)
    traces[view.layer] = changed(traces[view.layer], asked[view.layer])
    return replace(of, traces=tuple(traces))


def pinned_trace(of, view):
    """The Trace of A, which this View of a Source compares with, None where it compares with nothing. Raises Wrong where it is none."""
    if view.pinned is None:
        return None
    other, place = pinned(of, view)
    return layer_of(other, place.layer)


def pinned(of, view):
    """(Source, View) of what this View of a Source has pinned as A. Raises Wrong where it is none."""
    _, query = _taken_apart(f"?{view.pinned}")
    kind = Settings if of.settings is None else type(of.settings)
    fields, place, notes = from_address({name: value for name, value in query.items() if of.settings or name in PLACE}, kind)
    if notes:
        raise notes[0]
    place = View(**place)
    return changed_by(of if of.settings is None else source(kind(**fields)), place), place


def layer_of(of, layer):
    """The Trace of one ``layer``; raises Wrong where the Source has none of that number."""
    count = len(of.traces)
    if not count:
        raise Wrong("attention", of.name, "holds no attention: nothing was recorded, or the block that records has not ended yet.")
    if layer >= count:
        there = "is 1, layer 0" if count == 1 else f"are {count}, from 0 to {count - 1}"
        raise Wrong("layer", layer, f"points to no layer of {of.name}: there {there}.", [{"layer": count - 1}])
    return of.traces[layer]


def kind_of(name):
    """The dataclass of settings of the source of this name, Settings for None."""
    from mha_viz.sources.pretrained import Pretrained

    kinds = {None: Settings, "trained": Trained, "pretrained": Pretrained}
    if name == "file":
        raise Wrong("source", name, "is a file, which no address holds: name the file itself.")
    if not isinstance(name, str | None) or name not in kinds:
        raise Wrong("source", name, "must be trained or pretrained.", [{"source": "trained"}, {"source": "pretrained"}])
    return kinds[name]
