"""The live picture: a figure of maps that is updated in place, and whose cells can be pointed at, clicked and walked by keys.

``st.plotly_chart`` builds its chart anew whenever the data change: the zoom is lost, and clicks on cells are never reported.
Here Plotly's own ``react`` changes the chart that is there. Everything that follows the pointer happens in the browser.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, runtime_checkable

import streamlit as st

from mha_viz.figures.serial import to_json

if TYPE_CHECKING:
    from mha_viz.figures.piece import Spec


DEFAULT_WIDTH = 1104  # px, until the browser has told: a window of 1440 with an open sidebar

_HERE = Path(__file__).parent
_mount = st.components.v2.component(
    "mha_live",
    html=(_HERE / "live.html").read_text("utf-8"),
    css=(_HERE / "live.css").read_text("utf-8"),
    js=(_HERE / "live.js").read_text("utf-8"),
    isolate_styles=False,  # Plotly's own styles are the page's
)


@runtime_checkable
class Plotted(Protocol):
    """A ``go.Figure``, of which nothing is needed but what it holds."""

    def to_plotly_json(self) -> Spec: ...


class Chosen(TypedDict):
    """A cell that a person chose: its ``head``, None in the average's map and of a token, and ``query`` and ``key``, of a token one of
    them None; ``pressed`` is False where keys only moved there, True for a click, a tap, Enter and Space."""

    head: int | None
    query: int | None
    key: int | None
    pressed: bool


class Save(TypedDict, total=False):
    """A picture for the browser to save: when the ``serial`` is another than before, as a file of this ``name``.

    It is the picture as it is on screen, zoom and marks included, or this ``figure``, which is seen nowhere. ``size`` is its width and
    the unit, (160, "mm"); ``scale`` how many px a PNG has for each px of it: see js/src/picture.
    """

    serial: int
    format: Literal["png", "svg"]
    name: str
    figure: Spec
    size: tuple[float, str] | None
    scale: float


def live(
    figure: Spec | Plotted,
    *,
    key: str,
    alt: str,
    on_choose: Callable[[list[Chosen]], object] | None = None,
    on_reset: Callable[[], object] | None = None,
    on_look: Callable[[], None] | None = None,
    on_zoom: Callable[[tuple[int, int], tuple[int, int]], object] | None = None,
    save: Save | None = None,
) -> None:
    """Shows ``figure``, of ``figures.heads``, ``lines`` or ``decoding``, in place of the one that was there under this ``key``.

    Both the plain dict of ``spec`` and a ``go.Figure`` will do; the dict is ready sooner. Make it
    ``measured_width(key)`` px wide: when the room for it changes, the script runs again. ``alt`` is its accessible name.

    When a person chooses cells, by pointer or keys, ``on_choose(choices)`` is called before the script (or the fragment around this
    call) runs again, with what was Chosen in its order: several cells where somebody is quicker than the server. In a figure of
    lines, a line is such a cell; of a token ``query`` or ``key`` is given; in a figure of decoding it is the ``key``. Esc resets a zoom;
    where there is none it lets go of the chosen cell: ``on_reset()`` is called.

    When the page turns dark or light, the script runs again as well, and ``st.context.theme`` says so. ``on_look()`` is called before
    it does for a change of room or theme: where a page has two pictures in two fragments, both hear of it at once, and only one of
    the fragments would run.

    ``on_zoom(rows, columns)`` is called when a person has zoomed in: the cells of the last map that are in sight, (start, stop) of each
    side. A figure of other cells, whose ``layout.uirevision`` is another, is shown without that zoom.

    ``save`` is what the browser is to save. What cannot be saved is said below the picture.
    """
    spec = figure.to_plotly_json() if isinstance(figure, Plotted) else figure

    answered = f"{key}-answered"  # the serial of the last choice that was passed on

    def chosen() -> None:
        last, meta = st.session_state.get(answered, 0), spec["layout"]["meta"]
        new = [choice for choice in _choices(_sent(key, "cell")) if choice["serial"] > last]
        st.session_state[answered] = max((choice["serial"] for choice in new), default=last)
        choices = [cell for choice in new if (cell := _checked(choice, meta)) is not None]
        if on_choose is not None and choices:
            on_choose(choices)

    def reset() -> None:
        if on_reset is not None:
            on_reset()

    def zoomed() -> None:
        spans = _in_sight(_sent(key, "zoom"), spec["layout"]["meta"])
        if on_zoom is not None and spans is not None:
            on_zoom(*spans)

    said = {"alt": alt, "save": save, "answered": st.session_state.get(answered, 0), "zooms": on_zoom is not None}
    looked = on_look or _again
    _mount(
        key=key,
        data=to_json(said | {"figure": spec}).encode(),
        on_cell_change=chosen,
        on_zoom_change=zoomed,
        on_reset_change=reset,
        on_width_change=looked,
        on_ground_change=looked,
    )
    with st.container(key=f"plotly-for-{key}"):  # unseen: the page has Plotly once a chart of Streamlit's own has been on it
        st.plotly_chart(_NOTHING, key=f"{key}-plotly", theme=None, config={"staticPlot": True})


def measured_width(key: str) -> int:
    """px that the browser has for the picture ``key``, a multiple of 8; DEFAULT_WIDTH before it was first drawn."""
    width = _sent(key, "width")
    return min(max(width, 320), 3840) // 8 * 8 if isinstance(width, int) else DEFAULT_WIDTH


def _sent(key: str, name: str) -> Any:
    """What the browser last said of the picture ``key``; None where it said nothing, or where the session has forgotten the picture
    by the time the browser's word of it arrives."""
    return st.session_state.get(key, {}).get(name)


def _again() -> None:
    """Nothing but the rerun that comes with it."""


def _in_sight(sent: Any, meta: dict[str, Any]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """(rows, columns), (start, stop) each, that the browser says are in sight; None where this figure has no such cells."""
    if not (isinstance(sent, list) and len(sent) == 4 and all(type(end) is int for end in sent) and meta.get("kind") == "maps"):
        return None
    side = meta["sides"][-1]
    fits = 0 <= sent[0] < sent[1] <= len(side["queries"]) and 0 <= sent[2] < sent[3] <= len(side["keys"])
    return ((sent[0], sent[1]), (sent[2], sent[3])) if fits else None


def _choices(sent: Any) -> list[dict[str, Any]]:
    """Those that the browser sent with a serial."""
    return [c for c in sent if isinstance(c, dict) and type(c.get("serial")) is int] if isinstance(sent, list) else []


def _checked(choice: dict[str, Any], meta: dict[str, Any]) -> Chosen | None:
    """A choice of the browser's as ``on_choose`` takes it, or None where this figure has no such cell."""
    head, query, key = (choice.get(name) for name in ("head", "query", "key"))
    lines = meta.get("kind") in ("lines", "decoding")
    heads = (
        {None, *(panel["head"] for panel in meta["panels"])}
        if lines
        else {tile["head"] for tile in meta["tiles"]} | {*meta["order"]}
    )
    sides = [meta] if lines else meta["sides"]
    for index, tokens in ((query, "queries"), (key, "keys")):
        token = lines and index is None
        if not token and not (type(index) is int and 0 <= index < max(len(side[tokens]) for side in sides)):
            return None
    return {"head": head, "query": query, "key": key, "pressed": choice.get("pressed") is True} if head in [*heads] else None


_NOTHING = {
    "data": [{"type": "scatter"}],
    "layout": {"width": 10, "height": 10, "margin": dict.fromkeys("lrtb", 0), "template": {}},  # not Plotly's 7 kB of looks
}
