"""A finished figure in other clothes: without a ground, in another font."""

from __future__ import annotations

from mha_viz.figures.piece import CLEAR, Piece, Spec


def dressed(spec: Spec, transparent: bool = False, font: str | None = None) -> Spec:
    """A figure's dict as a new one, which shares the data of ``spec``.

    ``transparent``: the ground shows through around the maps, between their cells and behind words. Cells keep their colours, zero
    that of the theme's paper; so do hatches and the words on them, which could not be read on any other. ``font`` is the family of
    all its words, as CSS spells it.
    """
    layout = dict(spec["layout"])
    if transparent:
        layout |= {"paper_bgcolor": CLEAR, "plot_bgcolor": CLEAR}
        layout["annotations"] = [_clear(words) for words in layout.get("annotations", ())]
    if font is not None:
        layout["font"] = {**layout["font"], "family": font}
        hover = layout.get("hoverlabel", {})
        layout["hoverlabel"] = {**hover, "font": {**hover.get("font", {}), "family": font}}
    return {**spec, "layout": layout}


def _clear(words: Piece) -> Piece:
    """Words without a ground of their own, unless they stand on cells."""
    return {**words, "bgcolor": CLEAR} if "bgcolor" in words and words.get("xref") == "paper" else words
