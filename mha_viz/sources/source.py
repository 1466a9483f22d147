"""A source by its spelling: settings, the address of a page, or a file. What a command line opens, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from mha_viz.core.json_text import parse_json
from mha_viz.core.rules import Wrong
from mha_viz.recording import Recording
from mha_viz.settings import from_values, to_address
from mha_viz.settings.display import OWNERS
from mha_viz.settings.spelling import display_from_address
from mha_viz.settings.view import PLACE
from mha_viz.sources.base import Source, changed_by, kind_named, kind_of, layer_of

if TYPE_CHECKING:
    from mha_viz.core.trace import Trace
    from mha_viz.settings import Display, View
    from mha_viz.settings.rules import Ruled
    from mha_viz.sources.base import AnyKind


def source(settings: Ruled | Recording) -> Source:
    """The Source of these settings of any kind, or of a Recording. Raises Wrong where it cannot be had."""
    if isinstance(settings, Recording):
        cause = [] if settings.cause is None else [f"First not finite: {settings.cause.sentence}"]
        return Source("recording", settings.traces, notes=(*cause, *settings.notes), cause=settings.cause)
    return kind_of(settings).open(settings)


def source_of_file(path: str | Path, **answers: Any) -> Source:
    """The Source of a file: settings as JSON (of a kind that "source" among them names), a recording, weights or maps.

    ``answers`` answer what weights and maps do not say, by its field. Raises Wrong where it is none of these, or where something has to
    be asked that nobody has answered.
    """
    path = Path(path)
    if path.suffix == ".json" and path.is_file():
        held = parse_json("file", _text_of(path), path.name)
        if isinstance(held, dict):
            for name, value in answers.items():
                raise Wrong(name, value, "is for a file of weights; settings say it themselves.", [{name: None}])
            kind = _spelled(held.pop("source", None))
            return source(from_values({**kind.fixed, **kind.first, **held}, kind.settings))
    from mha_viz.sources.files import look, open_found

    found = look(path.name, path)
    if found.kind == "tokens":
        raise Wrong("file", path.name, "holds tokens alone: there is no attention in it.")
    return replace(source(open_found(found, **answers)), name=path.name)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise Wrong("file", path.name, f"cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise Wrong(
            "file", path.name, f"must be UTF-8 text, and byte {error.start} is {error.object[error.start]:#04x}."
        ) from None


def source_of_address(text: str) -> tuple[Source, Display]:
    """The Source of an address as the pages write it, the whole of it or from its "?" on, with what its View changes in a layer; and the
    Display.

    Raises Wrong for a value that is bad, or where it names a file, which an address does not hold.
    """
    settings, display = settings_of_address(text)
    return changed_by(source(settings), display.view), display


def settings_of_address(text: str) -> tuple[Ruled, Display]:
    """The settings of a source of such an address, and its Display; nothing is opened yet. Raises Wrong as that does."""
    path, query = _taken_apart(text)
    return _read(query, path)


def display_of_address(text: str) -> Display:
    """The Display of an address that says how a file is shown. Raises Wrong for a value of it that is bad, and for what
    says what is shown, which the file does."""
    _, query = _taken_apart(text)
    of_file = "file", *["source"] * (query.get("source") == "file")  # as the page has it
    strange = [name for name in query if name not in (*of_file, *OWNERS)]
    if strange:
        left = urlencode({name: value for name, value in query.items() if name not in strange})
        rule = f"says {strange[0]}, and stands beside a file, which holds what is shown: an address can say how."
        raise Wrong("address", text, rule, [{"address": f"?{left}"}])
    display, notes = display_from_address({name: value for name, value in query.items() if name in OWNERS})
    if notes:
        raise notes[0]
    return display


def _taken_apart(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the "?" of an address, and what after it by name."""
    path, _, query = text.rpartition("?")
    try:
        return path, dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise Wrong("address", text, 'must spell settings, as in "?seed=8&causal=1".') from None


def _read(query: dict[str, str], path: str = "") -> tuple[Ruled, Display]:
    """(settings, Display) that the query part of an address spells, by name; at the ``path`` of Models it is of a shipped model unless it
    names a source. Raises Wrong for the first value that is bad."""
    on_models = urlsplit(path).path.rstrip("/").endswith("models")
    kind = _spelled(query.pop("source", "trained" if on_models else None))
    fields, display, notes = display_from_address(query, kind.settings)
    if notes:
        raise notes[0]
    return kind.made(**fields), display


def _spelled(name: object) -> AnyKind:
    """The Kind of this name. Raises Wrong for one that an address or settings cannot hold."""
    kind = kind_named(name)
    if not kind.in_address:
        raise Wrong("source", name, "is a file, which no address holds: name the file itself.")
    return kind


def pinned_trace(of: Source, view: View) -> Trace | None:
    """The Trace of A, which this View of a Source compares with, None where it compares with nothing. Raises Wrong where it is none."""
    if view.pinned is None:
        return None
    other, place = pinned(of, view)
    return layer_of(other, place.layer)


def pinned(of: Source, view: View) -> tuple[Source, View]:
    """(Source, View) of what this View of a Source has pinned as A. Raises Wrong where it is none."""
    if not of.kind.in_address:
        _, query = _taken_apart(f"?{view.pinned}")
        place = display_of_address("?" + urlencode({name: value for name, value in query.items() if name in PLACE})).view
        return changed_by(of, place), place
    settings, place = pinned_settings(of.kind, view)
    return changed_by(source(settings), place), place


def pinned_settings(kind: AnyKind, view: View) -> tuple[Ruled, View]:
    """(settings, View) of what this View has pinned as A, of the same ``kind`` of source unless A names another. Raises Wrong where it
    is none."""
    try:
        _, query = _taken_apart(f"?{view.pinned}")
    except Wrong:
        rule = "must be settings as an address spells them, as in seed=8&causal=1."
        raise Wrong("pinned", view.pinned, rule, [{"pinned": None}]) from None
    kind = kind_named(query.pop("source", kind.name))
    fields, display, notes = display_from_address(query, kind.settings)
    if notes:
        raise notes[0]
    return kind.made(**fields), display.view


def as_pinned(settings: Ruled, layer: int, what_if: str) -> str:
    """What the ``layer`` of a source of these settings is pinned as, with what is changed in it: the text of a View's ``pinned``."""
    return urlencode(to_address(type(settings), **vars(settings)) | to_address(layer=layer, what_if=what_if))


def pin_of_address(text: str, of: Source) -> str | None:
    """What of this address pins its layer as A beside a Source of the same settings, as a View keeps it; None where it has others."""
    settings, display = settings_of_address(text)
    if type(settings) is not type(of.settings):
        return None
    return as_pinned(settings, display.view.layer, display.view.what_if)
