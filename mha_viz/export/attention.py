"""Whatever holds attention as a Source: a Trace, a recording, a run, or the arrays that others keep.

Arrays are taken for what their axes usually are; what they were taken for is told, and so is what to pass in place of what holds none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from mha_viz.core.arrays import as_array
from mha_viz.core.maps import CLOSE, trace_of_maps
from mha_viz.core.rules import Shape, Wrong, listed
from mha_viz.core.tokens import Tokens
from mha_viz.core.trace import Trace
from mha_viz.sources.axes import arranged, in_words, letters_of, looks_like_a_grid
from mha_viz.sources.base import Source

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.core.arrays import Numbers

HOW = 'model(**inputs, output_attentions=True).attentions, the model loaded with attn_implementation="eager"'


class HoldsTraces(Protocol):
    """A Recording, or what else holds the Traces of several layers."""

    @property
    def traces(self) -> Sequence[Trace]: ...


class HoldsRecording(Protocol):
    """The Run of a trained model."""

    @property
    def recording(self) -> HoldsTraces: ...


Attention: TypeAlias = "Trace | HoldsTraces | HoldsRecording | Numbers | Sequence[Numbers]"
Texts: TypeAlias = Sequence[str] | Sequence[Sequence[str]]  # of one batch item, or of each


def given(attention: Any, tokens: object = None, key_tokens: object = None, axes: object = None) -> tuple[Source, str | None]:
    """The Source of whatever holds attention, and what its axes were taken for, None where they were known.

    ``attention`` is anything that a person may pass for Attention. Raises Wrong, with what to pass in its place, for what holds none.
    """
    attention = getattr(attention, "recording", attention)
    traces = (attention,) if isinstance(attention, Trace) else getattr(attention, "traces", None)
    if traces is None:
        found, read = _layers(attention, axes, tokens)
        return Source("attention maps", tuple(_of_maps(one, i, tokens, key_tokens) for i, one in enumerate(found))), read
    for name, value in (("tokens", tokens), ("key_tokens", key_tokens), ("axes", axes)):
        if value is not None:
            raise Wrong(name, value, "is for plain arrays: a Trace knows its own.", [{name: None}])
    return Source("recording", tuple(traces)), None


def _layers(attention: Any, axes: object, tokens: object) -> tuple[list[Float[np.ndarray, "N H L S"]], str]:
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


def _is_numbers(value: object) -> bool:
    """True for nested lists of numbers, however deep."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, int | float)


def _array(value: Numbers | None) -> Float[np.ndarray, ...]:
    if value is None:
        raise Wrong("attention", None, f"holds None in place of a layer: the model kept no weights. {HOW} gives them.")
    return as_array("attention", value)


def _axes(array: Float[np.ndarray, ...], axes: object, tokens: object) -> tuple[list[Float[np.ndarray, "N H L S"]], str]:
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


def _usual(shape: tuple[int, ...], tokens: object) -> str:
    """The usual letters of an array of this ``shape``; raises Wrong where it may be two things that look alike."""
    if len(shape) == 5 and (shape[-3] == shape[-2] or shape[-2] != shape[-1]):
        rule = (
            "could be layers, or queries in a grid, and nothing in the shape tells. Say which axis is which with axes: N items, H heads, "
            "L queries, S keys."
        )
        raise Wrong("attention", Shape(shape), rule, [{"axes": "N H L L S"}, {"axes": "layer N H L S"}])
    if len(shape) == 3 and isinstance(tokens, Collection) and (isinstance(tokens, list | tuple) or hasattr(tokens, "ndim")):
        of_items = len(tokens) == shape[0] > 1 and not any(isinstance(one, str) for one in tokens)
        return "N L S" if of_items else "H L S"
    return ("L S", "H L S", "N H L S", "layer N H L S")[len(shape) - 2]


def _of_maps(weights: Float[np.ndarray, "N H L S"], layer: int, tokens: object, key_tokens: object) -> Trace:
    N, _, L, S = weights.shape
    queries, keys = (_texts(name, value, N) for name, value in (("tokens", tokens), ("key_tokens", key_tokens)))
    alike = key_tokens is None and L == S
    try:
        named = Tokens.of(N, L, S, queries, queries if alike else keys, one_sequence=alike)
    except Wrong as wrong:
        raise Wrong(wrong.argument.replace("query_", ""), wrong.value, wrong.rule, ()) from None
    return trace_of_maps(weights, named, f"layer {layer}", max(CLOSE.values()))


def _texts(argument: str, value: object, N: int) -> list[Sequence[str]] | None:
    """A list of texts per batch item, from that or from one list."""
    if value is None:
        return None
    if hasattr(value, "dtype") and getattr(value.dtype, "kind", "i") not in "UO":
        raise Wrong(
            argument, type(value).__name__, "must be texts: tokenizer.convert_ids_to_tokens(ids) makes them of numbers."
        )
    given = listed(argument, value, "must be a list of texts, or one sequence of texts per batch item.")
    items = [given] if all(isinstance(one, str) for one in given) else list(given)
    return items * N if len(items) == 1 else items
