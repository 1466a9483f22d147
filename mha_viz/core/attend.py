"""``attend``: one layer, one batch, one Trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from mha_viz.core.arrays import DTYPES, Dtype
from mha_viz.core.batch import Batch
from mha_viz.core.call import Call
from mha_viz.core.layer import Layer, check_generator
from mha_viz.core.memory import check_memory, check_projected_memory
from mha_viz.core.rules import Shape, Wrong, of_kind, one_of, yes_or_no
from mha_viz.core.trace import Fields, Made, Maker, Tensor, Trace

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float

Engine: TypeAlias = Literal["torch", "numpy"]
ENGINES: tuple[Engine, ...] = ("torch", "numpy")


def attend(
    layer: Layer,
    batch: Batch,
    engine: Engine = "torch",
    dtype: Dtype = "float32",
    training: bool = False,
    generator: torch.Generator | None = None,
    name: str = "attention",
    *,
    later: bool = False,
) -> Trace:
    """What ``nn.MultiheadAttention`` with these weights computes for this batch, with every tensor on the way, as a Trace.

    ``engine`` "torch" gives the numbers of PyTorch's slow path to the last bit; "numpy" is the from-scratch reference (float32
    and float64). In training the layer's dropout is drawn once, as PyTorch draws it, from ``generator`` (a ``torch.Generator``;
    PyTorch's global one where None). The Trace is called ``name``. Raises Wrong where layer and batch do not fit each other, or the
    result not into memory; where ``later`` is True only q, k and v must fit: of a long sequence nothing else is ever made whole.

    >>> import numpy as np, mha_viz as mv
    >>> layer = mv.Layer.random(embed_dim=8, num_heads=2)
    >>> trace = mv.attend(layer, mv.Batch(np.zeros((1, 3, 8)), causal=True))
    >>> trace.weights.shape  # [N, H, L, S]
    (1, 2, 3, 3)
    >>> print(trace.mean_weights[0].round(2))  # tokens without content: every query attends to all that it may see
    [[1.   0.   0.  ]
     [0.5  0.5  0.  ]
     [0.33 0.33 0.33]]
    """
    of_kind("layer", layer, Layer)
    of_kind("batch", batch, Batch)
    training = yes_or_no("training", training)
    check_generator(generator)
    engine = one_of("engine", engine, ENGINES)
    dtype = one_of("dtype", dtype, DTYPES if engine == "torch" else DTYPES[:2])
    _check_widths(layer, batch)
    dropout = layer.dropout if training else 0.0
    mask = batch.mask(layer.num_heads, len(layer.extra_keys), dtype)
    S = batch.S + mask.extra
    whole = partial(check_memory, batch.N, layer.num_heads, batch.L, S, layer.embed_dim, dtype=dtype, dropout=dropout > 0)
    if later and engine == "torch" and not dropout:
        check_projected_memory(batch.N, batch.L, S, layer.embed_dim, dtype=dtype)
    else:  # the reference makes everything at once, and dropout has a number for every weight
        whole()
    keep_scale = draw_dropout((batch.N, layer.num_heads, batch.L, S), dropout, generator, dtype) if dropout else None
    compute: Callable[..., Fields]
    if engine == "numpy":
        from mha_viz.core.reference import compute
    else:
        from mha_viz.core.engine import compute
    fields = compute(layer, batch, mask, dtype, keep_scale)
    tokens = batch.tokens(layer.extra_keys)
    traced = partial(Trace, tokens=tokens, rules=mask, layer=layer, batch=batch, training=training, name=name, dtype=dtype)
    trace = traced(fields)
    return traced(_checked(fields, whole, not dropout), call=call_of(trace)) if later else trace


def trace_of_call(call: Call, *, keep_scale: Float[np.ndarray, "N H L S"] | None = None, later: bool = False) -> Trace:
    """The Trace of a Call: everything from q, k and v on; what the Call does not know is absent.

    Dropout is what ``keep_scale`` says, see Trace; it is left out where that is None.

    Nothing is computed before it is read. Raises Wrong where the maps would not fit into memory; where ``later`` is True, not before
    one of them is read: what was recorded can then be kept whole.
    """
    from mha_viz.core.engine import compute_call

    N, H, L, S = *call.q.shape[:3], call.k.shape[2]
    check = partial(check_memory, N, H, L, S, H * call.q.shape[3])
    fields = compute_call(call, keep_scale)
    if later:
        fields = _checked(fields, check, keep_scale is None)
    else:
        check()
    return Trace(
        fields,
        tokens=call.tokens,
        rules=call.mask,
        call=call,
        training=keep_scale is not None,
        name=call.name,
        dtype=call.dtype,
        step=call.step,
    )


def _checked(fields: Fields, check: Callable[[], None], no_dropout: bool) -> Made:
    """The same fields, of which those that are as large as maps are read after a ``check()`` alone, where they are still to be made."""
    free = ("q", "k", "v", *(("keep_scale", "dropped") if no_dropout else ()))

    def checked(make: Maker) -> Maker:
        def read(name: str) -> Tensor:
            if name not in free:
                check()
            return make(name)

        return read

    makers = {
        id(make): checked(make) for make in fields.values() if callable(make)
    }  # mostly one for all: a recording has many Traces
    return Made(
        {name: makers.get(id(make), make) for name, make in fields.items()}, fields.forget if isinstance(fields, Made) else None
    )


def call_of(trace: Trace) -> Call:
    """The Call that holds what a Trace with q and k holds, dropout left out."""
    if trace.call is not None:
        return trace.call
    weight, bias = trace.out_proj or (None, None)
    v = trace.v if trace.has("v") else None
    return Call(trace.q, trace.k, v, trace.rules, trace.scale, weight, bias, trace.tokens, trace.name)


def draw_dropout(
    shape: tuple[int, int, int, int], p: float, generator: torch.Generator | None, dtype: Dtype
) -> Float[np.ndarray, "N H L S"]:
    """0 for a weight that is dropped, with probability ``p``, else 1 / (1 − p).

    ``F.dropout`` draws in the shape [N·H, L, S]; the same draws from the same state of the generator.
    """
    import torch

    N, H, L, S = shape
    noise = torch.empty(N * H, L, S, dtype=getattr(torch, dtype)).bernoulli_(1 - p, generator=generator)
    if p < 1:
        noise.div_(1 - p)
    return (noise.float() if dtype == "bfloat16" else noise).numpy().reshape(shape)  # [N, H, L, S]


def _check_widths(layer: Layer, batch: Batch) -> None:
    """Raises Wrong where query, key and value are not as wide as the layer's embed_dim, kdim and vdim."""
    key = batch.query if batch.key is None else batch.key
    value = key if batch.value is None else batch.value
    if (batch.query.shape[-1], key.shape[-1], value.shape[-1]) == (layer.embed_dim, layer.kdim, layer.vdim):
        return
    follows = {"key": batch.key is None and "the query", "value": batch.value is None and "the key"}
    for name, array, what in (("query", batch.query, "embed_dim"), ("key", key, "kdim"), ("value", value, "vdim")):
        width = getattr(layer, what)
        if array.shape[-1] == width:
            continue
        right = {name: Shape((*array.shape[:-1], width))}
        if not follows.get(name):
            raise Wrong(name, Shape(array.shape), f"must have the layer's {what}, {width}, as its last axis.", [right])
        if name == "value" and batch.key is None:  # a value needs a key beside it
            right = {"key": Shape(key.shape)} | right
        rule = f"is needed: {follows[name]}, which would serve, is {array.shape[-1]} wide and the layer's {what} is {width}."
        raise Wrong(name, None, rule, [right])
