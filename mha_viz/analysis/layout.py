"""The wrong layout, demonstrated: a batch-first tensor in a layer that believes sequence first. PyTorch itself is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from mha_viz.core.mask import Mask
from mha_viz.core.rules import Shape

if TYPE_CHECKING:
    from jaxtyping import Float, Shaped
    from torch import Tensor, nn

    from mha_viz.core.arrays import Dtype
    from mha_viz.core.batch import Batch
    from mha_viz.core.layer import Layer


FEW = 8  # items, and tokens of each, in which leaks are measured: one small forward pass per item


@dataclass(frozen=True, eq=False)
class WrongLayout:
    """What ``nn.MultiheadAttention(batch_first=False)`` makes of a query [N, L, E], against the right layout.

    ``given`` is the query's shape; the layer takes its first axis for the sequence. ``error`` is what PyTorch says to the call with
    the batch's masks, verbatim with its type; None where it says nothing. ``masked`` tells whether everything below is of the call
    with the masks: where they raise the error it is of the call without any, in the right layout as well.

    ``output`` and ``weights`` are the shapes that come back, ``right_output`` and ``right_weights`` those of the right layout,
    weights averaged over heads as by default. ``silent`` is True where the shapes are the same and give nothing away.
    ``largest_error`` is the largest |wrong − right| of the output over queries that are not padding, ``largest_output`` the largest
    |right| there, to compare it with; NaN counts in neither.

    ``leaks`` [n, n] holds at [j, i] how far the output of item i moves (largest absolute change) when 1 is added to every number of
    item j; ``right_leaks`` the same in the right layout, where only item j may move. Both are measured on the first FEW items and
    tokens. Everything from ``output`` on is None where the call without masks fails too, as with L ≠ S.
    """

    given: Shape
    error: str | None
    masked: bool
    right_output: Shape
    right_weights: Shape
    output: Shape | None = None
    weights: Shape | None = None
    silent: bool = False
    largest_error: float | None = None
    largest_output: float | None = None
    leaks: Float[np.ndarray, "n n"] | None = None
    right_leaks: Float[np.ndarray, "n n"] | None = None


def wrong_layout(layer: Layer, batch: Batch) -> WrongLayout:
    """The WrongLayout of a Layer and a Batch (float32, without dropout). Costs a forward pass in each layout, and small ones."""
    call = Call.of(layer, batch)
    error, wrong = _attempt(call)
    masked = error is None
    if not masked:
        call = replace(call, key_padding_mask=None, attn_mask=None)
        _, wrong = _attempt(call)
    output, weights = call.run()  # [N, L, E], [N, L, S]
    start = WrongLayout(Shape(batch.query.shape), error, masked, Shape(output.shape), Shape(weights.shape))
    if wrong is None:
        return start
    real = np.ones(output.shape[:2], bool) if batch.query_padding_mask is None else ~batch.query_padding_mask  # [N, L]
    shapes = [Shape(array.shape) for array in wrong]
    return replace(
        start,
        output=shapes[0],
        weights=shapes[1],
        silent=shapes == [start.right_output, start.right_weights],
        largest_error=_largest(wrong[0][real] - output[real]),
        largest_output=_largest(output[real]),
        leaks=_leaks(call, sequence_first=True),
        right_leaks=_leaks(call, sequence_first=False),
    )


def pytorch_error(embed_dim: int, num_heads: float) -> str | None:
    """What PyTorch says to ``nn.MultiheadAttention(embed_dim, num_heads)`` or to its first forward pass, verbatim with its type;
    None where it says nothing. Nothing is allocated: the layer is on the device "meta"."""
    import torch
    from torch import nn

    try:
        layer = nn.MultiheadAttention(embed_dim, num_heads, device="meta")
        if not isinstance(num_heads, int):  # the constructor lets 2.0 pass; of whole numbers it refuses all that fail
            token = torch.empty(1, 1, embed_dim, device="meta")
            layer(token, token, token)
    except (AssertionError, ValueError, RuntimeError, TypeError) as error:
        return _said(error)
    return None


@dataclass(frozen=True, eq=False)
class Call:
    """A call of ``nn.MultiheadAttention``, tensors batch first: ``tokens`` are the different ones of query, key and value."""

    module: nn.MultiheadAttention
    tokens: tuple[Float[Tensor, "N L E"], ...]
    key_padding_mask: Shaped[Tensor, "N S"] | None = None
    attn_mask: Shaped[Tensor, "... L S"] | None = None

    @classmethod
    def of(cls, layer: Layer, batch: Batch) -> Self:
        import torch

        tokens = [torch.tensor(x).float() for x in (batch.query, batch.key, batch.value) if x is not None]
        return cls(module_of(layer), tuple(tokens), *mask_tensors(batch))

    def run(self, sequence_first: bool = False) -> tuple[Float[np.ndarray, "N L E"], Float[np.ndarray, "N L S"]]:
        """(output, weights) as NumPy: of the right call, or of the one in which batch-first tensors are taken for sequence first."""
        import torch

        tokens = self.tokens if sequence_first else [x.transpose(0, 1) for x in self.tokens]  # the module is sequence first
        query, key, value = (*tokens, *tokens[-1:] * 2)[:3]
        with torch.no_grad():
            output, weights = self.module(query, key, value, self.key_padding_mask, attn_mask=self.attn_mask)
        return (output if sequence_first else output.transpose(0, 1)).numpy(), weights.numpy()

    def first(self, count: int) -> Self:
        """The same call with the first ``count`` items and tokens only. Masks stay where items and tokens are equally many."""
        attn_mask, N = self.attn_mask, len(self.tokens[0])
        if attn_mask is not None and attn_mask.ndim == 3:
            attn_mask = attn_mask.reshape(N, -1, *attn_mask.shape[1:])[:count].flatten(0, 1)  # [N·H, L, S] → [count·H, L, S]
        return replace(
            self,
            tokens=tuple(x[:count, :count] for x in self.tokens),  # [count, count, E] each
            key_padding_mask=None if self.key_padding_mask is None else self.key_padding_mask[:count, :count],
            attn_mask=None if attn_mask is None else attn_mask[..., :count, :count],  # [..., count, count]
        )


def _attempt(call: Call) -> tuple[str | None, tuple[np.ndarray, np.ndarray] | None]:
    """(None, what comes back in the wrong layout) or (PyTorch's error, None)."""
    try:
        return None, call.run(sequence_first=True)
    except (AssertionError, ValueError, RuntimeError, TypeError) as error:
        return _said(error), None


def _leaks(call: Call, sequence_first: bool) -> Float[np.ndarray, "n n"]:
    """[n, n]: at [j, i] the largest change of item i's output when 1 is added to item j."""
    call = call.first(FEW)
    before, _ = call.run(sequence_first)  # [n, l, E]
    moved = []
    for j in range(len(before)):
        tokens = tuple(x.clone() for x in call.tokens)
        for x in tokens:
            x[j] += 1
        after, _ = replace(call, tokens=tokens).run(sequence_first)  # [n, l, E]
        moved.append(np.nan_to_num(np.abs(after - before)).max(axis=(1, 2)))  # [n]
    return np.array(moved)


def module_of(layer: Layer, dtype: Dtype = "float32", batch_first: bool = False) -> nn.MultiheadAttention:
    """The layer as an ``nn.MultiheadAttention`` with these numbers and without dropout; made without drawing a number."""
    import torch
    from torch import nn

    weights, bias_kv = dict(layer.weights), "bias_k" in layer.weights
    if layer.kdim == layer.vdim == layer.embed_dim and not layer.packed:  # PyTorch packs these
        weights["in_proj_weight"] = np.concatenate([weights.pop(f"{name}_proj_weight") for name in "qkv"])  # [3E, E]
    module = nn.MultiheadAttention(
        layer.embed_dim,
        layer.num_heads,
        bias="in_proj_bias" in weights,
        add_bias_kv=bias_kv,
        add_zero_attn=layer.add_zero_attn,
        kdim=layer.kdim,
        vdim=layer.vdim,
        batch_first=batch_first,
        device="meta",
    )
    dtype = getattr(torch, dtype)
    module.load_state_dict({name: torch.tensor(array).to(dtype) for name, array in weights.items()}, assign=True)
    return module


def mask_tensors(
    batch: Batch, dtype: Dtype = "float32"
) -> tuple[Shaped[Tensor, "N S"] | None, Shaped[Tensor, "... L S"] | None]:
    """(key_padding_mask, attn_mask) as ``nn.MultiheadAttention`` takes them, each None where there is none: the rules ``causal`` and
    ``window`` are part of attn_mask, and both are of one type, since PyTorch warns of masks of two."""
    padding, attn_mask = batch.key_padding_mask, batch.attn_mask
    if batch.causal or batch.window is not None:
        rules = Mask(batch.L, batch.S, causal=batch.causal, window=batch.window).hidden()[0, 0]  # [L, S]
        if attn_mask is None or attn_mask.dtype == bool:
            attn_mask = rules if attn_mask is None else rules | attn_mask  # [L, S] or [N·H, L, S]
        else:
            attn_mask = np.where(rules, -np.inf, attn_mask)  # [L, S] or [N·H, L, S]
    if padding is not None and attn_mask is not None and (padding.dtype == bool) != (attn_mask.dtype == bool):
        padding, attn_mask = _as_added(padding), _as_added(attn_mask)
    return _mask_tensor(padding, dtype), _mask_tensor(attn_mask, dtype)


def _as_added(mask: Shaped[np.ndarray, ...]) -> Float[np.ndarray, ...]:
    return np.where(mask, -np.inf, 0.0) if mask.dtype == bool else mask


def _mask_tensor(mask: Shaped[np.ndarray, ...] | None, dtype: Dtype) -> Shaped[Tensor, ...] | None:
    import torch

    if mask is None:
        return None
    return torch.tensor(mask) if mask.dtype == bool else torch.tensor(mask).to(getattr(torch, dtype))


def _largest(array: Float[np.ndarray, ...]) -> float:
    return float(np.fmax.reduce(np.abs(array), axis=None, initial=0))


def _said(error: Exception) -> str:
    """PyTorch's words, without the trace of its C++ calls that some carry."""
    return f"{type(error).__name__}: {error}".partition("\nException raised from")[0]
