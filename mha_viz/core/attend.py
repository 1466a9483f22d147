"""``attend``: one layer, one batch, one Trace."""

import numpy as np
import psutil

from mha_viz.core.rules import Wrong, one_of

ENGINES = ("torch", "numpy")
DTYPES = ("float32", "float64", "float16", "bfloat16")


def attend(layer, batch, engine="torch", dtype="float32", training=False, generator=None):
    """What ``nn.MultiheadAttention`` with these weights computes for this batch, with every tensor on the way, as a Trace.

    ``engine`` "torch" gives the numbers of PyTorch's slow path to the last bit; "numpy" is the from-scratch reference (float32
    and float64). In training the layer's dropout is drawn once, as PyTorch draws it, from ``generator`` (a ``torch.Generator``;
    PyTorch's global one where None). Raises Wrong where layer and batch do not fit each other, or the result not into memory.
    """
    one_of("engine", engine, ENGINES)
    one_of("dtype", dtype, DTYPES if engine == "torch" else DTYPES[:2])
    _check_widths(layer, batch)
    dropout = layer.dropout if training else 0.0
    mask = batch.mask(layer.num_heads, len(layer.extra_keys))
    S = batch.S + mask.extra
    check_memory(batch.N, layer.num_heads, batch.L, S, layer.embed_dim, dtype=dtype, dropout=dropout > 0)
    keep_scale = draw_dropout((batch.N, layer.num_heads, batch.L, S), dropout, generator, dtype) if dropout else None
    if engine == "numpy":
        from mha_viz.core import reference

        return reference.attend(layer, batch, mask, np.dtype(dtype).type, keep_scale)
    from mha_viz.core import engine as torch_engine

    return torch_engine.attend(layer, batch, mask, dtype, keep_scale)


def draw_dropout(shape, p, generator, dtype):
    """[N, H, L, S]: 0 for a weight that is dropped, with probability ``p``, else 1 / (1 − p).

    ``F.dropout`` draws in the shape [N·H, L, S]; the same draws from the same state of the generator.
    """
    import torch

    N, H, L, S = shape
    noise = torch.empty(N * H, L, S, dtype=getattr(torch, dtype)).bernoulli_(1 - p, generator=generator)
    if p < 1:
        noise.div_(1 - p)
    return (noise.float() if dtype == "bfloat16" else noise).numpy().reshape(shape)  # [N, H, L, S]


def memory(N, H, L, S, E, *, dtype="float32", dropout=False):
    """Bytes that a Trace of this size holds once every field has been read.

    Maps [N, H, L, S]: scores, masked scores (while the softmax runs), probabilities, with dropout also the draw and the
    weights, and one byte a cell for the mask; their average; and nine tensors of tokens.
    """
    size = 8 if dtype == "float64" else 4
    maps = N * H * L * S * (size * (5 if dropout else 3) + 1)
    return maps + N * L * S * size + 9 * N * max(L, S) * E * size


def check_memory(N, H, L, S, E, *, dtype="float32", dropout=False, available=None):
    """Raises Wrong where the Trace would take more than half of the memory that is free, with the length that would fit."""
    available = psutil.virtual_memory().available if available is None else available
    needed = memory(N, H, L, S, E, dtype=dtype, dropout=dropout)
    if needed <= available // 2:
        return

    def fits(length):
        return memory(N, H, length, length * S // L or 1, E, dtype=dtype, dropout=dropout) <= available // 2

    low, high = 0, L  # fits(low) or low is 0; not fits(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    rule = (
        f"[N, H, L, S] = [{N}, {H}, {L}, {S}] would take {_size(needed)} with every intermediate; "
        f"{_size(available // 2)} may be used, half of what is free."
    )
    raise Wrong("seq_len", L, rule, [{"seq_len": low}] if low else [])


def check_layer_memory(embed_dim, kdim=None, vdim=None, *, available=None):
    """Raises Wrong where the weights of such a layer, and the one copy of them that the engine makes, would take more than half."""
    available = psutil.virtual_memory().available if available is None else available

    def needed(E):
        return 2 * 4 * E * (2 * E + (kdim or E) + (vdim or E))

    if needed(embed_dim) > available // 2:
        right = max((2**n for n in range(20) if needed(2**n) <= available // 2), default=1)
        rule = f"the weights would take {_size(needed(embed_dim))}; {_size(available // 2)} may be used, half of what is free."
        raise Wrong("embed_dim", embed_dim, rule, [{"embed_dim": right}])


def _size(count):
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:.4g} {unit}"
        count /= 1024


def _check_widths(layer, batch):
    for name, width in (("query", layer.embed_dim), ("key", layer.kdim), ("value", layer.vdim)):
        array, source = getattr(batch, name), name
        if array is None:  # key follows query, value follows key
            source = "key" if name == "value" and batch.key is not None else "query"
            array = getattr(batch, source)
        if array.shape[-1] != width:
            what = {"query": "embed_dim", "key": "kdim", "value": "vdim"}[name]
            also = "" if source == name else f" It serves as {name} too: pass a {name} of its own."
            rule = f"must have the layer's {what}, {width}, as its last axis.{also}"
            raise Wrong(source, array.shape, rule, [{source: (*array.shape[:-1], width)}])
