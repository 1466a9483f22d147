"""Pictures from a notebook or a script: whatever holds attention in, a Plotly figure out.

    mv.heads(trace)                                     # a Trace, a Recording, or what holds one
    mv.pair(outputs.attentions, tokens, layer=3, head=5)    # what transformers returns: a tensor [N, H, L, S] per layer
    mv.lines(pattern, tokens)                           # an array or tensor [H, L, S], or [L, S]
    mv.difference(before, after)
"""

from dataclasses import replace

import plotly.graph_objects as go

from mha_viz.core.arrays import as_array
from mha_viz.core.maps import CLOSE, trace_of_maps
from mha_viz.core.rules import Shape, Wrong
from mha_viz.core.tokens import Tokens
from mha_viz.core.trace import Trace
from mha_viz.export.figure import Figure, figure_of
from mha_viz.export.make import drawn, in_view
from mha_viz.export.views import VIEWS, Shown
from mha_viz.settings import View
from mha_viz.settings.spelling import unknown
from mha_viz.sources.source import Source, layer_of

LOOKS = ("heads", "theme", "transparent", "title", "labels", "bar", "legend", "values", "font")  # fields of Figure that a picture takes
HOW = 'model(**inputs, output_attentions=True).attentions, the model loaded with attn_implementation="eager"'


def picture(name):
    """The function that draws the view of this ``name``."""

    def draw(attention, tokens=None, key_tokens=None, *, layer=0, view=None, width=None, **how):
        return _drawn(name, None, attention, tokens, key_tokens, layer, view, width, how)

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = f"""{VIEWS[name].__doc__}

    ``attention`` is a Trace, a Recording, the Run of a trained model, or attention weights after softmax: an array or tensor [N, H, L, S],
    [H, L, S] or [L, S], or a list of them, one per layer, of which ``layer`` is drawn. ``tokens`` name queries and keys: texts, or a list
    of texts per batch item; ``key_tokens`` the keys where these are another sequence.

    ``width`` is in px, 1104 where None and 640 of one map alone. What else there is to say: the fields of ``View`` (item, head, cell,
    order, scale, limits, colors, …), and {", ".join(LOOKS)} as in ``Figure``. ``heads`` are numbers, "mean" among them for the
    average. A ``view`` is where the fields that are not given come from. Raises Wrong for what cannot be drawn, with what to pass in
    its place.
    """
    return draw


def difference(a, b, tokens=None, key_tokens=None, *, layer=0, view=None, width=None, **how):
    """A, B and B − A, whatever holds attention each: see ``heads``."""
    return _drawn("difference", a, b, tokens, key_tokens, layer, view, width, how)


def _drawn(name, a, attention, tokens, key_tokens, layer, view, width, how):
    looks = {key: how.pop(key) for key in LOOKS if key in how}
    for key, value in how.items():
        if key not in View.__dataclass_fields__:
            raise unknown(key, value, View, Figure)
    figure = figure_of(looks | {"view": name, "width": None if width is None else (width, "px")})
    view = replace(view or View(), **{key: tuple(value) if isinstance(value, list) else value for key, value in how.items()}, layer=layer)
    of = given(attention, tokens, key_tokens)
    trace = layer_of(of, layer)
    for wrong in view.misfits(*trace.shape):
        raise wrong
    before = None if name != "difference" else in_view(layer_of(given(a, tokens, key_tokens), layer), view, figure)
    return go.Figure(drawn(figure, Shown(of, in_view(trace, view, figure), view, figure.heads, before))[0])


def given(attention, tokens=None, key_tokens=None):
    """The Source of whatever holds attention; raises Wrong, with what to pass in its place, for what does not."""
    attention = getattr(attention, "recording", attention)
    traces = (attention,) if isinstance(attention, Trace) else getattr(attention, "traces", None)
    if traces is None:
        return Source("attention maps", tuple(_of_maps(one, i, tokens, key_tokens) for i, one in enumerate(_layers(attention))))
    if tokens is not None or key_tokens is not None:
        raise Wrong("tokens", tokens, "is for plain arrays: a Trace knows its own.", [{"tokens": None}])
    return Source("recording", tuple(traces))


def _layers(attention):
    """[N, H, L, S] maps of every layer."""
    if attention is None:
        raise Wrong("attention", None, f"must be weights. From transformers: {HOW}.")
    for name in ("attentions", "encoder_attentions"):
        if hasattr(attention, name):
            rule = f"holds more than attention: pass outputs.{name}" + ("." if getattr(attention, name) is not None else f", from {HOW}.")
            raise Wrong("attention", type(attention).__name__, rule)
    if isinstance(attention, dict) or callable(attention):
        rule = "holds no weights by itself: pass an array or tensor [H, L, S], or a list of them, one per layer; of a cache, one pattern."
        raise Wrong("attention", type(attention).__name__, rule)
    if isinstance(attention, list | tuple) and attention and not _is_numbers(attention):
        if any(isinstance(one, list | tuple) and not _is_numbers(one) for one in attention):
            rule = "is a list of lists, as generate() returns: pass the layers of one step, attentions[step]."
            raise Wrong("attention", f"{len(attention)} lists", rule)
        found = [_array(one) for one in attention]
        if all(one.ndim == 2 for one in found):  # one map per head
            return _axes(_array(attention))
        return [array for one in found for array in _axes(one)]
    return _axes(_array(attention))


def _is_numbers(value):
    """True for nested lists of numbers, however deep."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, int | float)


def _array(value):
    if value is None:
        raise Wrong("attention", None, f"holds None in place of a layer: the model kept no weights. {HOW} gives them.")
    return as_array("attention", value)


def _axes(array):
    """A list of [N, H, L, S] from [L, S], [H, L, S], [N, H, L, S] or [layers, N, H, L, S]."""
    if array.ndim == 5:
        return list(array)
    if not 2 <= array.ndim <= 4:
        rule = "must be weights [N, H, L, S], [H, L, S] or [L, S], or a list of them, one per layer."
        raise Wrong("attention", Shape(array.shape), rule)
    return [array.reshape(*[1] * (4 - array.ndim), *array.shape)]  # [N, H, L, S]


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
        raise Wrong(argument, type(value).__name__, "must be texts: tokenizer.convert_ids_to_tokens(ids) makes them of numbers.")
    value = [value] if all(isinstance(one, str) for one in value) and not isinstance(value, str) else value
    return list(value) * N if len(value) == 1 else value


heads, head, average, pair, lines, layers, page = map(picture, ("heads", "head", "average", "pair", "lines", "layers", "page"))
