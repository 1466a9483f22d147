"""What was kept of a call, held against what the model itself computed with it, in some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch.nn import functional as F

from mha_viz.sources.capture.masks import BLOCK, row_without_key

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from mha_viz.core.mask import Mask

ROWS, SPANS = 64, 8  # queries that are looked at, in as many runs spread over all
Runs: TypeAlias = Sequence[tuple[int, int]]  # (start, stop) of queries
CLOSE = {torch.float16: 3e-2, torch.bfloat16: 3e-2}  # how far apart numbers may be there; 1e-4 in other dtypes


def some_rows(L: int) -> list[tuple[int, int]]:
    """The (start, stop) of runs of queries: all of them, or ``ROWS`` spread over ``L``."""
    if L <= ROWS:
        return [(0, L)]
    starts = np.linspace(0, L - ROWS // SPANS, SPANS).round().astype(int).tolist()
    return [(start, start + ROWS // SPANS) for start in starts]


def weights_of(
    q: Float[Tensor, "N H L D"], k: Float[Tensor, "N H S D"], mask: Mask, scale: float, runs: Runs
) -> Float[Tensor, "N H rows S"]:
    """[N, H, rows, S] softmax(scale · q kᵀ + mask) of these ``runs`` of queries, in float32, or float64 where q is; q, k [N, H, …]."""
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    scores = (rows_of(q, runs).to(exact) * scale) @ k.to(exact).transpose(-2, -1)  # [N, H, rows, S]
    hidden = _joined([mask.hidden(*run) for run in runs], runs).to(scores.device)  # [1|N, 1|H, rows, S]
    added = [mask.added(*run) for run in runs]
    if any(part is not None for part in added):
        parts = [np.zeros((1, 1, 1, 1)) if part is None else part for part in added]
        scores = scores + _joined(parts, runs).to(scores)
    return scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)


def rows_of(tensor: Tensor, runs: Runs) -> Tensor:
    """The rows of these ``runs`` along the axis before the last."""
    return torch.cat([tensor[..., start:stop, :] for start, stop in runs], dim=-2)


def gives_zero(mask: Mask, result: Float[Tensor, "N L *numbers"]) -> bool:
    """True where the model gave numbers to queries that have no key left; ``result`` [N, L, …] is its own."""
    if not row_without_key(mask):
        return False
    finite = result.flatten(2).isfinite().all(dim=-1).cpu().numpy()  # [N, L]
    for start in range(0, mask.num_queries, BLOCK):
        stop = min(start + BLOCK, mask.num_queries)
        empty = np.any(mask.hidden(start, stop).all(axis=-1), axis=1)  # [1|N, rows]
        if (empty & finite[:, start:stop]).any():
            return True
    return False


def gap(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S Dv"],
    mask: Mask,
    scale: float,
    zero: bool,
    result: Tensor,
    out: tuple[Tensor, Tensor | None] | None = None,
) -> float:
    """How far the model's own ``result`` is from what q, k, v and the mask give, relative to the largest number of it.

    ``result`` is [N, H, L, Dv], or [N, L, E] after the projection ``out``, (weight, bias); ``zero`` says that a query without a key
    is given 0. NaN and infinite numbers agree with each other alone.
    """
    runs = some_rows(q.shape[2])
    weights = weights_of(q, k, mask, scale, runs)
    heads = weights @ v.to(weights.dtype)  # [N, H, rows, Dv]
    if zero:
        empty = _joined([np.all(mask.hidden(*run), axis=-1, keepdims=True) for run in runs], runs)  # [1|N, 1|H, rows, 1]
        heads = heads.masked_fill(empty.to(heads.device), 0)
    size = v.nan_to_num(0, 0, 0).abs().max().to(heads.dtype)
    if out is not None:
        weight = out[0].detach().to(heads.dtype)
        bias = None if out[1] is None else out[1].detach().to(heads.dtype)
        heads = F.linear(heads.transpose(1, 2).flatten(2), weight, bias)  # [N, rows, E]
        size = size * weight.abs().sum(dim=-1).max()
    own = rows_of(result, runs).to(heads.dtype)
    both = own.isfinite() & heads.isfinite()
    if bool((own.isfinite() != heads.isfinite()).any()):
        return float("inf")
    off = (own - heads).abs()[both]
    return float(off.max() / size.clamp_min(torch.finfo(heads.dtype).tiny)) if off.numel() else 0.0


def zeroed(weights: Tensor, used: Tensor) -> bool:
    """True where the values were multiplied with these weights, but with 0 in rows without a distribution."""
    empty = weights.isnan().all(dim=-1, keepdim=True)
    return bool(empty.any()) and alike(weights.masked_fill(empty, 0), used)


def alike(weights: Tensor, used: Tensor) -> bool:
    """True where the values were multiplied with these weights, as near as their dtypes tell."""
    exact = used.dtype == weights.dtype and used.dtype in (torch.float32, torch.float64)
    return torch.allclose(weights.float(), used.float(), rtol=0, atol=1e-6 if exact else 1e-2, equal_nan=True)


def close(dtype: torch.dtype) -> float:
    """How far apart numbers that were computed in ``dtype`` may be, relative to the largest."""
    return CLOSE.get(dtype, 1e-4)


def _joined(parts: Sequence[np.ndarray], runs: Runs) -> Tensor:
    """The parts [1|N, 1|H, 1|rows, 1|S] of a mask, one for each of the ``runs``, as one tensor [1|N, 1|H, rows, 1|S]."""
    N, H, S = (max(part.shape[axis] for part in parts) for axis in (0, 1, 3))
    parts = [np.broadcast_to(part, (N, H, stop - start, S)) for part, (start, stop) in zip(parts, runs, strict=True)]
    return torch.from_numpy(np.concatenate(parts, axis=2))
