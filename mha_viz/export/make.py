"""From what a document asks for to its files: a Figure in, a file out; many of them with one browser."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mha_viz.analysis import shown_trace, why_not_weighted
from mha_viz.analysis.layers import layer_places
from mha_viz.core.memory import too_long
from mha_viz.core.rules import Wrong, one_of
from mha_viz.core.trace import Trace
from mha_viz.core.whole_file import whole_file
from mha_viz.export import words
from mha_viz.export.asked import PICTURES
from mha_viz.export.browser import Browser
from mha_viz.export.figure import Figure
from mha_viz.export.lesson_page import shown_lesson
from mha_viz.export.measured import measured
from mha_viz.export.page import figure_page
from mha_viz.export.paste import PROGRAMS
from mha_viz.export.screen import screen
from mha_viz.export.table import results_table, statistics_table, weights_table
from mha_viz.figures.dress import dressed
from mha_viz.figures.parts import Parts
from mha_viz.figures.piece import Spec
from mha_viz.figures.serial import to_json
from mha_viz.figures.widths import drawn_in
from mha_viz.recording import Recording
from mha_viz.settings import Display, Settings, View
from mha_viz.sources.base import Source, changed_by, layer_of
from mha_viz.sources.source import display_of_address, pin_of_address, pinned_trace, source, source_of_address, source_of_file
from mha_viz.studies.lessons import LESSONS
from mha_viz.views import PAGE, VIEWS
from mha_viz.views.base import NOT_MEASURED, PARTS, view_of_attention, view_of_results
from mha_viz.views.shown import MEAN, Measured, Shown, check_heads


def shown(figure: Figure) -> Shown | Measured[Any]:
    """What a Figure is of, a Shown or a Measured. Raises Wrong where that cannot be had, or where what it asks for is not there."""
    if figure.results:
        return measured(figure.results, figure.view, figure.at_length)
    kind = view_of_attention(figure.view)
    if figure.at_length is not None:
        raise Wrong("at_length", figure.at_length, NOT_MEASURED)
    file, address = figure.recording or figure.settings, figure.address
    a, a_is = None, ""
    if file:
        display = display_of_address(address) if address else Display()
        of = changed_by(source_of_file(file), display.view)
    elif address and urlsplit(address).path.rstrip("/").endswith("lessons"):
        of, view, a, a_is = lesson(address)
        display = Display(view)
    elif address is not None:
        of, display = source_of_address(address)
    else:
        of, display = source(Settings()), Display()
    view = replace(
        display.view, **{name: getattr(figure, name) for name in ("layer", "limits") if getattr(figure, name) is not None}
    )
    trace = layer_of(of, view.layer)
    if too_long(trace):
        view = kind.placed(trace, view)
    if figure.against:
        view = replace(view, pinned=pin_of_address(figure.against, of) if "?" in figure.against else None)
    if figure.against and view.pinned is None:
        a, a_is = against(figure.against, view.layer)
    elif a is None:
        a = pinned_trace(of, view)
    if not too_long(trace) and (missing := why_not_weighted(trace, view.weighting)):
        raise Wrong("weighting", view.weighting, f"cannot be shown: {missing}.", [{"weighting": "weights"}])
    for wrong in replace(display, view=view).misfits(*trace.shape):
        raise wrong
    a = None if a is None else in_view(a, view, figure)
    return Shown(of, in_view(trace, view, figure), view, figure.heads, a, a_is, display.walk, display.caching)


def in_view(trace: Trace, view: View, figure: Figure) -> Trace:
    """The Trace that a View shows of this one; of one that is too long for whole maps what a Figure needs of it, computed now."""
    check_heads(figure.heads, trace)
    if not too_long(trace):
        return shown_trace(trace, view)
    return view_of_attention(figure.view).of_long(trace, view, figure.heads, numbers=figure.format == "csv")


def lesson(address: str) -> tuple[Source, View, Trace | None, str]:
    """(Source, View, A or None, what A is) of a lesson's own address."""
    query = dict(parse_qsl(urlsplit(address).query))
    name = query.get("lesson", next(iter(LESSONS)))
    one = shown_lesson(LESSONS[one_of("lesson", name, tuple(LESSONS))])
    return one.source, one.view, one.a, one.a_is


def against(spelled: str, layer: int) -> tuple[Trace, str]:
    """(the Trace of A, what it is): ``spelled`` is an address, or a file of which the same ``layer`` is taken."""
    if "?" in spelled:
        of, display = source_of_address(spelled)
        return layer_of(of, display.view.layer), f"A: {spelled}."
    of = source_of_file(spelled)
    trace = layer_of(of, layer)
    return trace, f"A: {of.name}{f', {trace.name}' if len(of.traces) > 1 else ''}."


def drawn(figure: Figure, what: Shown | Measured[Any]) -> tuple[Spec, str]:
    """(the spec of its picture, what that shows in words)."""
    view = VIEWS[figure.view].drawn_as(what)
    strange = [name for name in PARTS if name not in view.parts and not getattr(figure, name)]
    if strange:
        rule = f"has no {' or '.join(strange)} that could be left out."
        raise Wrong("view", view.name, rule, [dict.fromkeys(strange, True)])
    if wrong := view.lack(what):
        raise wrong
    parts = Parts(**{name: getattr(figure, name) for name in PARTS})
    with drawn_in(figure.family):
        spec, alt = view.drawn(what, theme=figure.theme, width=figure.drawn_width, parts=parts)
    return dressed(spec, figure.transparent, figure.family), alt


def of_attention(what: Shown | Measured[Any]) -> Shown:
    """``what`` as a Shown: results have none of the formats that need one, which a Figure has checked."""
    if isinstance(what, Measured):
        raise TypeError(f"{what.name} holds no attention.")
    return what


def spec_of(figure: Figure) -> Spec:
    """The spec of a Figure's picture, without its file."""
    return drawn(figure, shown(figure))[0]


def made(figure: Figure, browser: Browser) -> tuple[bytes, Spec]:
    """(the bytes of a Figure's file, the spec of its picture, which stands for all that it was made of)."""
    what = shown(figure)
    spec, alt = drawn(figure, what)
    if VIEWS[figure.view].pictured:
        return screen(figure, browser), spec
    if figure.format in PICTURES:
        return browser.picture(spec, figure.format, figure.scale, figure.size), spec
    return WRITERS[figure.format](figure, what, spec, alt), spec


def table(figure: Figure, what: Shown | Measured[Any], spec: Spec, alt: str) -> bytes:
    """CSV of what a Figure shows.

    Of what was measured its numbers; of layers the statistics of every head; else the weights of the heads that were asked for, of those
    that are shown where none were.
    """
    if isinstance(what, Measured):
        return results_table(view_of_results(what.found).rows(what)).encode()
    view = view_of_attention(figure.view)
    if view.statistics:
        places, layer = layer_places(what.source.traces), what.view.layer
        traces, places = (what.source.traces, places) if what.sight is None else ((what.trace,), places[layer : layer + 1])
        return statistics_table(traces, what.item, places).encode()
    heads = [MEAN if head is None else head for head in (view.heads(what) if what.heads is None else what.named)]
    return weights_table(what.trace, what.item, heads, what.a).encode()


def check_whole(figure: Figure, what: Shown) -> None:
    """Raises Wrong for a file that would hold maps that are too long to be whole."""
    if what.sight is not None:
        L, S = what.trace.plain.shape[2:]
        rule = f"would hold every weight of {L:,} × {S:,}. A recording holds what they are made of."
        raise Wrong("out", figure.out, rule, [{"out": str(Path(figure.out).with_suffix(".safetensors"))}])


def recording(figure: Figure, what: Shown | Measured[Any], spec: Spec, alt: str) -> bytes:
    """The whole Trace, with the address of its settings, as a file that ``mha_viz.load`` opens."""
    shown = of_attention(what)
    if figure.format == "npz":
        check_whole(figure, shown)
    kept = Recording((shown.trace.plain,), (words.caption(shown, PAGE),), address=words.address_of(shown))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"recording.{figure.format}"
        kept.save(path)
        return path.read_bytes()


def page(figure: Figure, what: Shown | Measured[Any], spec: Spec, alt: str) -> bytes:
    """An HTML page of one picture, which answers the pointer offline."""
    title = VIEWS[figure.view].drawn_as(what).title(what)
    return figure_page(spec, title, alt, caption_of(figure, what), figure.enlarged).encode()


def markdown(figure: Figure, what: Shown | Measured[Any], spec: Spec, alt: str) -> bytes:
    """The caption and an image with its alternative text, as Markdown."""
    return words.markdown(f"{Path(figure.out).stem}.svg", alt, caption_of(figure, what)).encode()


def caption_of(figure: Figure, what: Shown | Measured[Any]) -> str:
    """The caption of a Figure."""
    return words.caption(what, VIEWS[figure.view])


WRITERS: dict[str, Callable[[Figure, Shown | Measured[Any], Spec, str], bytes]] = {  # by format, of those that no browser draws
    "html": page,
    "json": lambda figure, what, spec, alt: to_json(spec).encode(),
    "csv": table,
    "npz": recording,
    "safetensors": recording,
    "md": markdown,
    "py": lambda figure, what, spec, alt: PROGRAMS[figure.code](of_attention(what), figure.view).encode(),
}


def write(figures: Sequence[Figure], folder: str | Path = ".") -> Iterator[tuple[Figure, Spec]]:
    """Make these Figures, and yield each with the spec of its picture once its file is there.

    Their file names are those of a ``folder``. Nothing half-written is ever found under a file's name.

    Raises Wrong at the first that cannot be made; those before it stay.
    """
    seen = [figure.named(folder) for figure in figures]
    for figure in seen:
        check_path(figure.out)
    with Browser() as browser:
        for asked, figure in zip(figures, seen, strict=True):
            data, spec = made(figure, browser)
            with whole_file(figure.out) as path:
                path.write_bytes(data)
            yield asked, spec


def check_path(out: str) -> None:
    """Raises Wrong where no file of this name can be written."""
    path = Path(out)
    if not path.parent.is_dir():
        raise Wrong("out", out, f"is in a folder that is not there: make {path.parent} first.")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise Wrong("out", out, "cannot be written: another folder, or another name.")
