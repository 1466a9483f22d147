"""Pictures from a notebook or a script: whatever holds attention in, a Plotly figure out.

    mv.heads(trace)                                     # a Trace, a Recording, or what holds one
    mv.pair(outputs.attentions, tokens, layer=3, head=5)    # what transformers returns: a tensor [N, H, L, S] per layer
    mv.lines(pattern, tokens)                           # an array or tensor [H, L, S], or [L, S]
    mv.difference(before, after)
    mv.heads(maps, axes="N H L L S")                    # whichever axis is which: here queries of a grid

A picture of plain arrays says below what was taken for what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import plotly.graph_objects as go

from mha_viz.core.memory import too_long
from mha_viz.core.rules import Wrong, of_kind
from mha_viz.export.attention import Attention, Texts, given
from mha_viz.export.figure import Figure, figure_of
from mha_viz.export.keywords import LOOKS, OfAverage, OfLayers, OfLines, OfMaps, OfPage, keywords
from mha_viz.export.make import drawn, in_view
from mha_viz.figures.theme import THEMES
from mha_viz.figures.widths import width_of
from mha_viz.settings import View
from mha_viz.settings.display import DISPLAYED, OWNERS
from mha_viz.settings.spelling import unknown
from mha_viz.sources.base import layer_of
from mha_viz.views import VIEWS
from mha_viz.views.base import OfAttention, view_of_attention, what_it_shows
from mha_viz.views.shown import Shown

OF_LONG = ("pooling", "rows", "columns")  # fields of View that say something of long maps alone
BELOW, EDGE = 13, 8  # px: the size of what stands below a picture, and how far it is from the side


@keywords(OfPage)
def page(
    attention: Attention,
    tokens: Texts | None = None,
    key_tokens: Texts | None = None,
    *,
    axes: str | None = None,
    layer: int = 0,
    view: View | None = None,
    width: float | None = None,
    **how: Unpack[OfPage],
) -> go.Figure:
    """Draw attention as the app's page does: a strip of all heads above one head beside the average, or as ``how`` says.

    ``arrangement`` is "pair", "all" or "one", and ``picture`` "maps" or "lines"; all else is as in ``heads``.

    >>> import mha_viz as mv
    >>> trace = mv.synthetic(mv.Settings(embed_dim=8, num_heads=4, seq_len=5, batch_size=1, padding=()))
    >>> figure = mv.page(trace, arrangement="one", head=2)
    >>> [tile["head"] for tile in figure.layout.meta["tiles"]]
    [2]
    """
    return _drawn("page", None, attention, tokens, key_tokens, axes, layer, view, width, how)


@keywords(OfMaps)
def heads(
    attention: Attention,
    tokens: Texts | None = None,
    key_tokens: Texts | None = None,
    *,
    axes: str | None = None,
    layer: int = 0,
    view: View | None = None,
    width: float | None = None,
    **how: Unpack[OfMaps],
) -> go.Figure:
    """Draw every head as a map, all on one colour scale, and their average last.

    ``attention`` is a Trace, a Recording, the Run of a trained model, or attention weights after softmax: an array or tensor [N, H, L, S],
    [H, L, S] or [L, S], or a list of them, one per layer, of which ``layer`` is drawn. ``axes`` says which axis is which where they are
    others: a letter for each, such as "N L S" of averaged maps, "N H L L S" of queries in a grid, "layer N H L S". What they were taken
    for stands below the picture. ``tokens`` name queries and keys: texts, or a list of texts per batch item; ``key_tokens`` the keys
    where these are another sequence.

    ``width`` is in px; where None it suits the picture, 1104 for several maps and 640 for one. ``how`` holds fields of ``View`` (item,
    head, cell, order, scale, limits, colors, …) and, as in ``Figure``, theme, font, transparent, and what may be left out: title, labels,
    bar, legend, values. ``heads`` are those that are drawn, by number and in this order, "mean" among them for the average. A ``view``
    is where the fields that are not given come from.

    Returns a ``go.Figure``; its ``layout.meta`` says what stands where. Raises Wrong for what cannot be drawn, with what to pass in its
    place, and for a keyword that the picture would ignore.

    >>> import mha_viz as mv
    >>> pattern = [[[0.5, 0.5], [1.0, 0.0]], [[0.1, 0.9], [0.2, 0.8]]]  # [H, L, S]
    >>> figure = mv.heads(pattern, ["the", "cat"], heads=[1, "mean"], colors="viridis")
    >>> [tile["head"] for tile in figure.layout.meta["tiles"]], figure.layout.meta["read"]
    ([1, None], 'Read as 2 heads × 2 queries × 2 keys; items averaged over heads are axes="N L S"')
    """
    return _drawn("heads", None, attention, tokens, key_tokens, axes, layer, view, width, how)


@keywords(OfMaps)
def head(
    attention: Attention,
    tokens: Texts | None = None,
    key_tokens: Texts | None = None,
    *,
    axes: str | None = None,
    layer: int = 0,
    view: View | None = None,
    width: float | None = None,
    **how: Unpack[OfMaps],
) -> go.Figure:
    """Draw one head as a map, the one that differs most from the average where ``head`` names none.

    All else is as in ``heads``.

    >>> import mha_viz as mv
    >>> figure = mv.head([[0.5, 0.5], [1.0, 0.0]], ["the", "cat"], labels=False, width=320)
    >>> figure.layout.width, figure.data[0].z.tolist()
    (320, [[0.5, 0.5], [1.0, 0.0]])
    """
    return _drawn("head", None, attention, tokens, key_tokens, axes, layer, view, width, how)


@keywords(OfAverage)
def average(
    attention: Attention,
    tokens: Texts | None = None,
    key_tokens: Texts | None = None,
    *,
    axes: str | None = None,
    layer: int = 0,
    view: View | None = None,
    width: float | None = None,
    **how: Unpack[OfAverage],
) -> go.Figure:
    """Draw the average of all heads as a map.

    All else is as in ``heads``.

    >>> import mha_viz as mv
    >>> figure = mv.average([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.5, 0.5]]])
    >>> figure.data[0].z.tolist()
    [[0.25, 0.75], [0.75, 0.25]]
    """
    return _drawn("average", None, attention, tokens, key_tokens, axes, layer, view, width, how)


@keywords(OfMaps)
def pair(
    attention: Attention,
    tokens: Texts | None = None,
    key_tokens: Texts | None = None,
    *,
    axes: str | None = None,
    layer: int = 0,
    view: View | None = None,
    width: float | None = None,
    **how: Unpack[OfMaps],
) -> go.Figure:
    """Draw one head as a map beside the average of all, the one that differs most from it where ``head`` names none.

    All else is as in ``heads``.

    >>> import mha_viz as mv
    >>> run = mv.trained(mv.Trained("look-both-ways-2", batch_size=1))
    >>> figure = mv.pair(run, head=1, theme="dark")
    >>> [tile["head"] for tile in figure.layout.meta["tiles"]]
    [1, None]
    """
    return _drawn("pair", None, attention, tokens, key_tokens, axes, layer, view, width, how)


@keywords(OfLines)
def lines(
    attention: Attention,
    tokens: Texts | None = None,
    key_tokens: Texts | None = None,
    *,
    axes: str | None = None,
    layer: int = 0,
    view: View | None = None,
    width: float | None = None,
    **how: Unpack[OfLines],
) -> go.Figure:
    """Draw heads as lines from queries to keys, wider and darker for more weight: one head beside the average, or those that are named.

    ``arrangement`` "all" draws every head, "one" the chosen one alone; all else is as in ``heads``.

    >>> import mha_viz as mv
    >>> figure = mv.lines([[[0.5, 0.5], [1.0, 0.0]], [[0.1, 0.9], [0.2, 0.8]]], ["the", "cat"], head=1)
    >>> [panel["head"] for panel in figure.layout.meta["panels"]]
    [1, None]
    """
    return _drawn("lines", None, attention, tokens, key_tokens, axes, layer, view, width, how)


@keywords(OfMaps)
def difference(
    a: Attention,
    b: Attention,
    tokens: Texts | None = None,
    key_tokens: Texts | None = None,
    *,
    axes: str | None = None,
    layer: int = 0,
    view: View | None = None,
    width: float | None = None,
    **how: Unpack[OfMaps],
) -> go.Figure:
    """Draw one head of ``a`` and of ``b``, and what changed from A to B; above them the change of every head.

    ``a`` and ``b`` hold attention each; ``axes`` and ``tokens`` are those of plain arrays. All else is as in ``heads``.

    >>> import mha_viz as mv
    >>> trace = mv.synthetic(mv.Settings(embed_dim=8, num_heads=2, seq_len=4, batch_size=1, padding=()))
    >>> figure = mv.difference(trace, mv.changed(trace, mv.Intervention(off={1: "uniform"})), head=1)
    >>> [tile["source"] for tile in figure.layout.meta["tiles"]]
    ['difference', 'difference', 'a', 'b', 'difference']
    """
    return _drawn("difference", a, b, tokens, key_tokens, axes, layer, view, width, how)


@keywords(OfLayers)
def layers(
    attention: Attention,
    tokens: Texts | None = None,
    key_tokens: Texts | None = None,
    *,
    axes: str | None = None,
    layer: int = 0,
    view: View | None = None,
    width: float | None = None,
    **how: Unpack[OfLayers],
) -> go.Figure:
    """Draw every head of every layer as a small map, a row per layer.

    All else is as in ``heads``; ``layer`` is the one that is marked.

    >>> import mha_viz as mv
    >>> run = mv.trained(mv.Trained("induction", words="<bos> m a r c h i n g m a r c h"))
    >>> figure = mv.layers(run)
    >>> len(figure.layout.meta["tiles"])
    8
    """
    return _drawn("layers", None, attention, tokens, key_tokens, axes, layer, view, width, how)


if not TYPE_CHECKING:  # which would believe that there is a function of any name

    def __getattr__(name: str) -> Callable[..., go.Figure]:
        """A function as ``heads`` or ``difference`` is, for a public view that has none written out here."""
        kind = VIEWS.get(name)
        if kind is None or not kind.public:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

        def of_one(attention, tokens=None, key_tokens=None, *, axes=None, layer=0, view=None, width=None, **how):
            return _drawn(name, None, attention, tokens, key_tokens, axes, layer, view, width, how)

        def of_two(a, b, tokens=None, key_tokens=None, *, axes=None, layer=0, view=None, width=None, **how):
            return _drawn(name, a, b, tokens, key_tokens, axes, layer, view, width, how)

        draw = globals()[name] = of_two if kind.two else of_one
        draw.__name__ = draw.__qualname__ = name
        draw.__doc__ = f"{what_it_shows(kind)}\n\n    All else is as in ``heads``."
        return draw


def _drawn(
    name: str,
    a: Attention | None,
    attention: Attention,
    tokens: Texts | None,
    key_tokens: Texts | None,
    axes: str | None,
    layer: int,
    view: View | None,
    width: float | None,
    how: Mapping[str, object],
) -> go.Figure:
    """The picture of the view of this ``name``; where that compares two, ``a`` is the first."""
    kind = view_of_attention(name)
    looks = {key: value for key, value in how.items() if key in LOOKS}
    how = {key: value for key, value in how.items() if key not in LOOKS}
    for key, value in how.items():
        _check_field(kind, key, value)
    figure = figure_of(looks | {"view": kind.name, "width": None if width is None else (width, "px")})
    told: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in how.items()}
    view = replace(View() if view is None else of_kind("view", view, View), **told, layer=layer)
    of, read = given(attention, tokens, key_tokens, axes)
    trace = layer_of(of, layer)
    whole = [key for key in OF_LONG if key in how and not too_long(trace)]
    if whole:
        rule = f"is for maps that are too long to be drawn whole, and these {trace.shape[2]} × {trace.shape[3]} are not."
        raise Wrong(whole[0], how[whole[0]], rule, [{whole[0]: None}])
    for wrong in view.misfits(*trace.shape):
        raise wrong
    before, said = None, read and f"as {read}"
    if kind.two:
        of_a, read_a = given(a, tokens, key_tokens, axes)
        before = in_view(layer_of(of_a, layer), view, figure)
        if read != read_a:
            said = "; ".join(f"{side} as {one}" for side, one in (("A", read_a), ("B", read)) if one)
    spec = go.Figure(drawn(figure, Shown(of, in_view(trace, view, figure), view, figure.heads, before))[0])
    return _said_below(spec, f"Read {said}", figure) if said else spec


def _check_field(kind: OfAttention, name: str, value: object) -> None:
    """Raises Wrong for a keyword that no picture has, or not this one, which would ignore it."""
    if name not in OWNERS:
        raise unknown(name, value, *DISPLAYED, Figure)
    if name == "what_if":
        raise Wrong(name, value, "is for the app: pass mv.changed(trace, mv.Intervention(…)) in place of the trace.")
    if name not in kind.reads:
        pictures = [one.name for one in VIEWS.values() if one.public and name in one.reads]
        where = f"; {' and '.join(pictures)} {'does' if len(pictures) == 1 else 'do'}" if pictures else ""
        rule = f"does nothing to the picture {kind.name}, which heeds {', '.join(kind.reads)}{where}."
        raise Wrong(name, value, rule, [{name: None}])


def _said_below(figure: go.Figure, text: str, how: Figure) -> go.Figure:
    """``figure`` with a line of ``text`` below it, in as many as it takes, and none where it has no title."""
    figure.layout.meta = {**(figure.layout.meta or {}), "read": text}
    if not how.title:
        return figure
    width, theme = figure.layout.width, THEMES[how.theme]
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        lines = [*lines[:-1], longer] if width_of(longer, BELOW) <= width - 2 * EDGE else [*lines, word]
    more, bottom = len(lines) * (BELOW + 5) + 4, figure.layout.margin.b or 0
    figure.update_layout(height=figure.layout.height + more, margin_b=bottom + more)
    figure.add_annotation(
        text="<br>".join(lines),
        showarrow=False,
        align="left",
        font={"size": BELOW, "color": theme.soft},
        xref="paper",
        x=0,
        xanchor="left",
        xshift=EDGE - (figure.layout.margin.l or 0),
        yref="paper",
        y=0,
        yanchor="bottom",
        yshift=-(bottom + more) + 4,
    )
    return figure
