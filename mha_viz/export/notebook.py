"""Pictures from a notebook or a script: whatever holds attention in, a Plotly figure out.

    mv.heads(trace)                                     # a Trace, a Recording, or what holds one
    mv.pair(outputs.attentions, tokens, layer=3, head=5)    # what transformers returns: a tensor [N, H, L, S] per layer
    mv.lines(pattern, tokens)                           # an array or tensor [H, L, S], or [L, S]
    mv.difference(before, after)
    mv.heads(maps, axes="N H L L S")                    # whichever axis is which: here queries of a grid

A picture of plain arrays says below what was taken for what.
"""

from dataclasses import replace

import plotly.graph_objects as go

from mha_viz.core.arrays import as_array
from mha_viz.core.maps import CLOSE, trace_of_maps
from mha_viz.core.memory import too_long
from mha_viz.core.rules import Shape, Wrong, listed, of_kind
from mha_viz.core.tokens import Tokens
from mha_viz.core.trace import Trace
from mha_viz.export.figure import Figure, figure_of
from mha_viz.export.make import drawn, in_view
from mha_viz.figures.theme import THEMES
from mha_viz.figures.widths import width_of
from mha_viz.settings import View
from mha_viz.settings.display import DISPLAYED, OWNERS
from mha_viz.settings.spelling import unknown
from mha_viz.sources.axes import arranged, in_words, letters_of, looks_like_a_grid
from mha_viz.sources.base import Source, layer_of
from mha_viz.views import VIEWS
from mha_viz.views.base import what_it_shows
from mha_viz.views.shown import Shown

LOOKS = (
    "heads",
    "theme",
    "transparent",
    "title",
    "labels",
    "bar",
    "legend",
    "values",
    "font",
)  # fields of Figure that a picture takes
OF_LONG = ("pooling", "rows", "columns")  # fields of View that say something of long maps alone
BELOW, EDGE = 13, 8  # px: the size of what stands below a picture, and how far it is from the side
HOW = 'model(**inputs, output_attentions=True).attentions, the model loaded with attn_implementation="eager"'


def __getattr__(name):
    """The function that draws the view of this ``name``, where it is public."""
    if name not in VIEWS or not VIEWS[name].public:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = (of_two if VIEWS[name].two else of_one)(VIEWS[name])
    return value


def of_one(kind):
    """The function that draws a view of one attention."""

    def draw(attention, tokens=None, key_tokens=None, *, axes=None, layer=0, view=None, width=None, **how):
        return _drawn(kind, None, attention, tokens, key_tokens, axes, layer, view, width, how)

    draw.__name__ = draw.__qualname__ = kind.name
    draw.__doc__ = f"""{what_it_shows(kind)}

    ``attention`` is a Trace, a Recording, the Run of a trained model, or attention weights after softmax: an array or tensor [N, H, L, S],
    [H, L, S] or [L, S], or a list of them, one per layer, of which ``layer`` is drawn. ``axes`` says which axis is which where they are
    others: a letter for each, such as "N L S" of averaged maps, "N H L L S" of queries in a grid, "layer N H L S". What they were taken
    for stands below the picture. ``tokens`` name queries and keys: texts, or a list of texts per batch item; ``key_tokens`` the keys
    where these are another sequence.

    ``width`` is in px, {kind.width:g} where None. What else there is to say: the fields of ``View`` (item, head, cell,
    order, scale, limits, colors, …), and {", ".join(LOOKS)} as in ``Figure``. ``heads`` are numbers, "mean" among them for the
    average. A ``view`` is where the fields that are not given come from. Raises Wrong for what cannot be drawn, with what to pass in
    its place.
    """
    return draw


def of_two(kind):
    """The function that draws a view that compares two attentions."""

    def draw(a, b, tokens=None, key_tokens=None, *, axes=None, layer=0, view=None, width=None, **how):
        return _drawn(kind, a, b, tokens, key_tokens, axes, layer, view, width, how)

    draw.__name__ = draw.__qualname__ = kind.name
    draw.__doc__ = f"""{what_it_shows(kind)}

    ``a`` and ``b`` hold attention each, and all else is as in ``heads``; ``axes`` are those of plain arrays.
    """
    return draw


def _drawn(kind, a, attention, tokens, key_tokens, axes, layer, view, width, how):
    looks = {key: how.pop(key) for key in LOOKS if key in how}
    for key, value in how.items():
        _check_field(kind, key, value)
    figure = figure_of(looks | {"view": kind.name, "width": None if width is None else (width, "px")})
    view = View() if view is None else of_kind("view", view, View)
    view = replace(view, **{key: tuple(value) if isinstance(value, list) else value for key, value in how.items()}, layer=layer)
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


def _check_field(kind, name, value):
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


def given(attention, tokens=None, key_tokens=None, axes=None):
    """(The Source of whatever holds attention, what its axes were taken for, or None); raises Wrong, with what to pass in its place, for
    what holds none."""
    attention = getattr(attention, "recording", attention)
    traces = (attention,) if isinstance(attention, Trace) else getattr(attention, "traces", None)
    if traces is None:
        found, read = _layers(attention, axes, tokens)
        return Source("attention maps", tuple(_of_maps(one, i, tokens, key_tokens) for i, one in enumerate(found))), read
    for name, value in (("tokens", tokens), ("key_tokens", key_tokens), ("axes", axes)):
        if value is not None:
            raise Wrong(name, value, "is for plain arrays: a Trace knows its own.", [{name: None}])
    return Source("recording", tuple(traces)), None


def _said_below(figure, text, how):
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


def _layers(attention, axes, tokens):
    """([N, H, L, S] maps of every layer, what their axes were taken for)."""
    if attention is None:
        raise Wrong("attention", None, f"must be weights. From transformers: {HOW}.")
    for name in ("attentions", "encoder_attentions"):
        if hasattr(attention, name):
            rule = f"holds more than attention: pass outputs.{name}" + (
                "." if getattr(attention, name) is not None else f", from {HOW}."
            )
            raise Wrong("attention", type(attention).__name__, rule)
    if isinstance(attention, dict) or callable(attention):
        rule = "holds no weights by itself: pass an array or tensor [H, L, S], or a list of them, one per layer; of a cache, one pattern."
        raise Wrong("attention", type(attention).__name__, rule)
    if isinstance(attention, list | tuple) and attention and not _is_numbers(attention):
        if any(isinstance(one, list | tuple) and not _is_numbers(one) for one in attention):
            rule = "is a list of lists, as generate() returns: pass the layers of one step, attentions[step]."
            raise Wrong("attention", f"{len(attention)} lists", rule)
        found = [_array(one) for one in attention]
        if not all(one.ndim == 2 for one in found):  # else one map per head
            read = [_axes(one, axes, tokens) for one in found]
            whole = [array for arrays, _ in read for array in arrays]
            texts = list(dict.fromkeys(text for _, text in read))
            count = f"{len(whole)} layers × " if len(whole) > 1 else ""
            return whole, count + (texts[0] if len(texts) == 1 else "maps of several shapes")
    return _axes(_array(attention), axes, tokens)


def _is_numbers(value):
    """True for nested lists of numbers, however deep."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, int | float)


def _array(value):
    if value is None:
        raise Wrong("attention", None, f"holds None in place of a layer: the model kept no weights. {HOW} gives them.")
    return as_array("attention", value)


def _axes(array, axes, tokens):
    """(A list of [N, H, L, S], what the axes were taken for), as ``axes`` say; without them as is usual, where nothing speaks against."""
    if not 2 <= array.ndim <= 5 and axes is None:
        rule = "must be weights [N, H, L, S], [H, L, S] or [L, S], or a list of them, one per layer."
        raise Wrong("attention", Shape(array.shape), rule)
    letters = letters_of(axes if axes is not None else _usual(array.shape, tokens), array.shape)
    doubt = ""
    if axes is None and letters == ("H", "L", "S") and array.shape[0] > 1:
        doubt = '; items averaged over heads are axes="N L S"'
    elif axes is None and letters == ("N", "H", "L", "S") and looks_like_a_grid(array.shape):
        doubt = '; queries in a grid are axes="H L L S"'
    return list(arranged(array, letters)), in_words(array.shape, letters) + doubt


def _usual(shape, tokens):
    """The usual letters of an array of this ``shape``; raises Wrong where it may be two things that look alike."""
    if len(shape) == 5 and (shape[-3] == shape[-2] or shape[-2] != shape[-1]):
        rule = (
            "could be layers, or queries in a grid, and nothing in the shape tells. Say which axis is which with axes: N items, H heads, "
            "L queries, S keys."
        )
        raise Wrong("attention", Shape(shape), rule, [{"axes": "N H L L S"}, {"axes": "layer N H L S"}])
    named = len(tokens) if isinstance(tokens, list | tuple) or getattr(tokens, "ndim", 0) else 0
    of_items = named == shape[0] > 1
    if len(shape) == 3 and of_items and not any(isinstance(one, str) for one in tokens):
        return "N L S"
    return ("L S", "H L S", "N H L S", "layer N H L S")[len(shape) - 2]


def _of_maps(weights, layer, tokens, key_tokens):
    N, _, L, S = weights.shape
    queries, keys = (_texts(name, value, N) for name, value in (("tokens", tokens), ("key_tokens", key_tokens)))
    alike = key_tokens is None and L == S
    try:
        named = Tokens.of(N, L, S, queries, queries if alike else keys, one_sequence=alike)
    except Wrong as wrong:
        raise Wrong(wrong.argument.replace("query_", ""), wrong.value, wrong.rule, ()) from None
    return trace_of_maps(weights, named, f"layer {layer}", max(CLOSE.values()))


def _texts(argument, value, N):
    """A list of texts per batch item, from that or from one list."""
    if value is None:
        return None
    if hasattr(value, "dtype") and getattr(value.dtype, "kind", "i") not in "UO":
        raise Wrong(
            argument, type(value).__name__, "must be texts: tokenizer.convert_ids_to_tokens(ids) makes them of numbers."
        )
    value = listed(argument, value, "must be a list of texts, or one sequence of texts per batch item.")
    value = [value] if all(isinstance(one, str) for one in value) else value
    return list(value) * N if len(value) == 1 else value
