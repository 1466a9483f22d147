"""What stands under a figure, and in its place: a caption, an alternative text, and both as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

from mha_viz import __version__
from mha_viz.core.versions import release
from mha_viz.export.markdown import plain_in_a_file
from mha_viz.figures.around import seen
from mha_viz.settings import to_address
from mha_viz.sources.base import Source
from mha_viz.views.base import OfAttention, ViewKind, view_of_results
from mha_viz.views.shown import Measured, Shown


def caption(what: Shown | Measured[Any], view: ViewKind[Any]) -> str:
    """A caption of what this ``view`` shows of a Shown or a Measured: what is seen, of what, and what computed or measured it."""
    drawn = view.drawn_as(what)
    said = drawn.caption(what)
    if isinstance(what, Measured):
        return " ".join([said, view_of_results(what.found).trust(what), made_by()])
    return " ".join([*of_attention(what, drawn, said), made_by()])


def of_attention(shown: Shown, view: ViewKind[Any], said: str) -> Iterator[str]:
    """The sentences of a caption that begins with what is ``said``: whose attention it is, the shape of its weights, its address."""
    trace = shown.trace
    N, H, L, S = trace.plain.shape
    step_of = "" if trace.step is None else f", step {trace.step}"
    layer = f", {trace.name}{step_of}" if len(shown.source.traces) > 1 else ""
    yield f"{said}, {trace.tokens.item_name(shown.item)} of {shown.source.name}{layer}."
    if isinstance(view, OfAttention) and view.two and (told := told_a(shown)):
        yield told
    if shown.sight is not None:
        yield seen(trace)[0].removeprefix(" · ").capitalize() + "."
    yield f"Weights [N, H, L, S] = [{N}, {H}, {L}, {S}]{masks(shown.source)}."
    if address := address_of(shown):
        yield f"Settings: {address}."


def told_a(shown: Shown) -> str:
    """What A of a comparison is, as a sentence; "" where nobody said."""
    if shown.a_is or shown.view.pinned is None:
        return shown.a_is
    if not shown.view.pinned:
        return "A: as the app starts."
    return f"A: ?{shown.view.pinned}{' of the same file' * (shown.source.address is None)}."


def made_by() -> str:
    libraries = ", ".join(f"{name} {release(name)}" for name in ("torch", "numpy"))
    return f"Made by MHA Explorer {__version__} with {libraries}."


def masks(of: Source) -> str:
    """What a Source hides from its queries, as the end of a sentence; "" where that is nothing."""
    said = of.kind.masks(of.settings)
    return f"; {', '.join(said)}" if said else ""


def address_of(shown: Shown) -> str:
    """The address that shows the same, from the "?" on; "" for a file, and where all is as it is at first."""
    if shown.source.address is None:
        return ""
    told = shown.source.address | _display_of(shown)
    return f"?{urlencode(told)}" if told else ""


def view_address_of(shown: Shown) -> str:
    """The part of an address that says how a file is shown."""
    return f"?{urlencode(_display_of(shown))}"


def _display_of(shown: Shown) -> dict[str, str]:
    told: dict[str, str] = to_address(**vars(shown.view), **vars(shown.walk), **vars(shown.caching))
    return told


def markdown(image: str, alt: str, caption: str) -> str:
    """A Markdown ``image`` with its alternative text, and the caption below it; nothing in the texts is taken for Markdown."""
    return f"![{plain_in_a_file(alt)}]({quote(image)})\n\n{plain_in_a_file(caption)}\n"
