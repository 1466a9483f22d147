"""One attention layer of a file of weights, run: on a person's input, on tokens or on random ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.arrays import as_array
from mha_viz.core.attend import attend, trace_of_call
from mha_viz.core.batch import Batch
from mha_viz.core.call import Call
from mha_viz.core.layer import Layer
from mha_viz.core.mask import Mask
from mha_viz.core.rules import Shape, Wrong
from mha_viz.sources.files.recipes import ORDERS, convert
from mha_viz.sources.files.sites import MULTIHEAD
from mha_viz.sources.files.texts import vectors_of

if TYPE_CHECKING:
    from jaxtyping import Float, Float32

    from mha_viz.core.arrays import Numbers
    from mha_viz.core.trace import Trace
    from mha_viz.sources.files.found import Answers, TokenLists
    from mha_viz.sources.files.recipes import Pair, Projections, Shapes
    from mha_viz.sources.files.sites import Site


def bias_lengths(shapes: Shapes) -> dict[str, int]:
    """The lengths of nn.MultiheadAttention's two biases, where one of them is among the ``shapes``: the other is 0 then."""
    if "in_proj_bias" not in shapes and "out_proj.bias" not in shapes:
        return {}
    E = shapes["out_proj.weight"][0]
    return {"in_proj_bias": 3 * E, "out_proj.bias": E}


def _complete(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """nn.MultiheadAttention's weights with zeros for the one of its two biases that is missing."""
    shapes = {name: array.shape for name, array in tensors.items()}
    return {**{name: np.zeros(length, np.float32) for name, length in bias_lengths(shapes).items()}, **tensors}


def trace_of_layer(
    site: Site,
    arrays: Mapping[str, np.ndarray],
    layout: str,
    answers: Answers,
    stem: str,
    tokens: TokenLists | None,
    key_tokens: TokenLists | None,
    query: Numbers | None,
) -> Trace:
    """The Trace of one layer."""
    name, H = site.name or stem, answers["num_heads"]
    if site.recipe == MULTIHEAD:
        own = Layer.from_state_dict(_complete(arrays), H)
        batch = _input((own.embed_dim, own.kdim, own.vdim), answers, tokens, key_tokens, query)
        return attend(own, batch, name=name)
    given = convert(site, arrays, layout, answers.get("packed", ORDERS[0]), H)
    value = given.k if given.v is None else given.v
    widths = given.q[0].shape[1], given.k[0].shape[1], value[0].shape[1]
    batch = _input(widths, answers, tokens, key_tokens, query)
    layer = _as_layer(given, H)
    return trace_of_call(_as_call(given, H, batch, name)) if layer is None else attend(layer, batch, name=name)


def _as_layer(given: Projections, num_heads: int) -> Layer | None:
    """The Layer with these projections; None where heads are grouped, are no E / H wide, or something is missing."""
    if given.v is None or given.o is None:
        return None
    E = given.q[0].shape[1]
    square = given.q[0].shape == given.o[0].shape == (E, E) and len(given.k[0]) == len(given.v[0]) == E
    if not square:
        return None
    weights, inputs = {"out_proj.weight": given.o[0]}, (given.q, given.k, given.v)
    if all(W.shape[1] == E for W, _ in inputs):
        weights["in_proj_weight"] = np.concatenate([W for W, _ in inputs])  # [3E, E]
    else:
        weights |= {f"{x}_proj_weight": W for x, (W, _) in zip("qkv", inputs, strict=True)}
    if any(b is not None for _, b in (*inputs, given.o)):
        weights["in_proj_bias"] = np.concatenate([np.zeros(E, np.float32) if b is None else b for _, b in inputs])  # [3E]
        weights["out_proj.bias"] = np.zeros(E, np.float32) if given.o[1] is None else given.o[1]
    return Layer.from_state_dict(weights, num_heads)


def _as_call(given: Projections, num_heads: int, batch: Batch, name: str) -> Call:
    """The Call of these projections on this batch: grouped heads stay grouped."""
    D = len(given.q[0]) // num_heads
    groups = len(given.k[0]) // D
    key = batch.query if batch.key is None else batch.key
    value = key if batch.value is None else batch.value
    q, k = _project(given.q, batch.query, num_heads), _project(given.k, key, groups)
    v = None if given.v is None else _project(given.v, value, groups)
    weight, bias = given.o if given.o is not None and v is not None else (None, None)
    weight, bias = (None if array is None else array.astype(np.float32) for array in (weight, bias))
    mask = Mask(batch.L, batch.S, causal=batch.causal)
    return Call(q, k, v, mask, None, weight, bias, batch.tokens(), name)


def _project(pair: Pair, x: Float[np.ndarray, "N L E"], heads: int) -> Float32[np.ndarray, "N heads L D"]:
    W, b = pair
    y = x.astype(np.float32) @ W.T.astype(np.float32) + (0 if b is None else b.astype(np.float32))  # [N, L, heads·D]
    return y.reshape(*y.shape[:2], heads, -1).swapaxes(1, 2)  # [N, heads, L, D]


def _input(
    widths: tuple[int, int, int],
    answers: Answers,
    tokens: TokenLists | None,
    key_tokens: TokenLists | None,
    query: Numbers | None,
) -> Batch:
    """The Batch of a person's input or tokens, or of random ones; keys are a sequence of their own where their width differs."""
    import torch

    generator = torch.Generator().manual_seed(answers["seed"])

    def random(N: int, length: int, width: int) -> Float32[np.ndarray, "N L E"]:
        return torch.randn(N, length, width, generator=generator).numpy()  # [N, L, E]

    E, kdim, vdim = widths
    query_padding = key_padding = None
    if query is not None:
        x = as_array("query", query)
        x = x[None] if x.ndim == 2 else x  # [N, L, E]
        if x.ndim != 3 or x.shape[-1] != E:
            raise Wrong("query", Shape(x.shape), f"must be [N, L, E] or [L, E], where E is the layer's, {E}.")
    elif tokens is not None:
        x, tokens, query_padding = vectors_of(tokens, E)
    else:
        x = random(1, answers["seq_len"], E)
    key = value = None
    if not kdim == vdim == E:
        if key_tokens is not None:
            key, key_tokens, key_padding = vectors_of(key_tokens, kdim)
        else:
            key = random(len(x), x.shape[1], kdim)
        value = random(len(key), key.shape[1], vdim) if vdim != kdim else None
    else:
        key_padding, key_tokens = query_padding, None
    return Batch(
        x,
        key,
        value,
        key_padding,
        None,
        query_padding,
        causal=answers["causal"] and key is None,
        query_tokens=tokens,
        key_tokens=key_tokens,
    )
