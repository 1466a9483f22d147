"""Decoding beside the full causal pass: how far they differ, what the causal hint does to one token, and how much work each is."""

from dataclasses import dataclass

import numpy as np

from mha_viz.core.decode import work

# How far apart two orders of the same sums may come out, as a share of the largest output; of half precision, four units in the last place.
TOLERANCE = {"float64": 1e-12, "float32": 1e-6, "float16": 4e-3, "bfloat16": 3e-2}


@dataclass(frozen=True, eq=False)
class Difference:
    """How far outputs are from those of the full pass.

    ``steps`` [T] is the largest difference of each step as a share of ``largest``, the largest output of the full pass; NaN where
    the step is undefined in both, infinite where it is in one alone. ``tolerance`` is the dtype's, or where scores are large as much
    as rounding the largest of them moves a weight: by its last place.
    """

    steps: np.ndarray
    largest: float
    tolerance: float

    @property
    def worst(self):
        """The largest of ``steps`` that is defined; 0 where none is."""
        return float(np.nanmax(self.steps, initial=0.0))

    @property
    def agrees(self):
        return self.worst <= self.tolerance


def difference(decoding, trace, item=None):
    """The Difference between a Decoding and the Trace of the same batch at once; of one batch ``item``, or of all where None."""
    import torch

    items = slice(None) if item is None else slice(item, item + 1)
    full = trace.output[items].astype(np.float64)  # [N, L, E]
    largest = float(np.abs(full[np.isfinite(full)]).max(initial=0.0))
    parts = [_apart(step.output[items], full[:, step.start : step.stop], largest) for step in decoding.steps]
    rounding = torch.finfo(getattr(torch, decoding.dtype)).eps * float(np.abs(trace.scores[items]).max())
    return Difference(np.array(parts), largest, max(TOLERANCE[decoding.dtype], rounding))


def hint_difference(decoding, item=0):
    """[T] how far each step of one token would be off with ``is_causal=True`` in place of a mask, as ``difference`` measures it.

    ``F.scaled_dot_product_attention`` aligns its causal mask at the top left: with one query, that query sees the first key alone
    (https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html). It is called here with the
    step's own q and the cache as they are. NaN for a first step of several tokens, for which the hint is right.
    """
    import torch
    from torch.nn import functional as F

    layer, dtype = decoding.layer, getattr(torch, decoding.dtype)
    groups = layer.num_heads // decoding.num_kv_heads
    out = layer.weights["out_proj.weight"], layer.weights.get("out_proj.bias")
    out = [None if array is None else torch.tensor(array).to(dtype) for array in out]
    k, v = (torch.tensor(array[item]).to(dtype).repeat_interleave(groups, dim=0) for array in (decoding.k, decoding.v))  # [H, L, D]
    right = decoding.output[item].astype(np.float64)  # [L, E]
    largest = float(np.abs(right[np.isfinite(right)]).max(initial=0.0))
    off = []
    for step in decoding.steps:
        if step.stop - step.start > 1:
            off.append(np.nan)
            continue
        q = torch.tensor(step.q[item]).to(dtype)  # [H, 1, D]
        heads = F.scaled_dot_product_attention(q, k[:, : step.stop], v[:, : step.stop], is_causal=True)  # [H, 1, D]
        hinted = F.linear(heads.transpose(0, 1).reshape(1, -1), *out)  # [1, E]
        off.append(_apart(hinted.double().numpy(), right[step.start : step.stop], largest))
    return np.array(off)


def works(decoding):
    """(with the cache, without it), [T] each: the multiply-adds of each step, in which a step without it runs all tokens so far."""
    layer, extra = decoding.layer, len(decoding.layer.extra_keys)
    sizes = {
        "embed_dim": layer.embed_dim, "num_heads": layer.num_heads, "head_dim": layer.head_dim,
        "num_kv_heads": decoding.num_kv_heads, "batch_size": decoding.batch.N,
    }  # fmt: skip
    cached = [work(step.stop - step.start, step.stop + extra, **sizes) for step in decoding.steps]
    again = [work(step.stop, step.stop + extra, **sizes) for step in decoding.steps]
    return np.array(cached), np.array(again)


def _apart(ours, right, largest):
    """The largest difference as a share of ``largest``; NaN where both are undefined throughout, infinite where one alone is."""
    blank = np.isnan(right)
    if (np.isnan(ours) != blank).any():
        return np.inf
    if blank.all():
        return np.nan
    return float(np.abs(ours - right)[~blank].max()) / (largest or 1.0)
