"""Decoding beside the full causal pass: how far they differ, what the causal hint does to one token, and how much work each is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis.known import why_not_alone
from mha_viz.core.attend import attend
from mha_viz.core.decode import Decoding, cache_bytes, decode, share_kv, work
from mha_viz.core.rules import Wrong
from mha_viz.core.trace import Trace

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from mha_viz.core.arrays import Dtype
    from mha_viz.core.batch import Batch
    from mha_viz.core.layer import Layer
    from mha_viz.settings import Settings


LONGEST = 512  # tokens that are decoded one by one while somebody waits

# How far apart two orders of the same sums may come out, as a share of the largest output; of half precision, four units in the last place.
TOLERANCE = {"float64": 1e-12, "float32": 1e-6, "float16": 4e-3, "bfloat16": 3e-2}


@dataclass(frozen=True, eq=False)
class Difference:
    """How far outputs are from those of the full pass.

    ``steps`` [T] is the largest difference of each step as a share of ``largest``, the largest output of the full pass; NaN where
    the step is undefined in both, infinite where it is in one alone. ``tolerance`` is the dtype's, or where scores are large as much
    as rounding the largest of them moves a weight: by its last place.
    """

    steps: Float[np.ndarray, " T"]
    largest: float
    tolerance: float

    @property
    def worst(self) -> float:
        """The largest of ``steps`` that is defined; 0 where none is."""
        return float(np.nanmax(self.steps, initial=0.0))

    @property
    def agrees(self) -> bool:
        return self.worst <= self.tolerance


@dataclass(frozen=True, eq=False)
class Beside:
    """The same tokens one at a time and all at once: ``decoding``, the ``full`` causal pass, and the Difference between them.

    In training each draws its own dropout; ``alike`` is then the Difference where decoding is given the full pass's draws.
    """

    decoding: Decoding
    full: Trace
    difference: Difference
    alike: Difference | None = None

    def step_of(self, token: int) -> int:
        """The number of the step that read this token."""
        return max(token - self.decoding.steps[0].stop + 1, 0)


def decodable(settings: Settings) -> Settings:
    """These Settings with the causal mask that decoding needs; raises Wrong where they cannot be decoded here."""
    s = settings
    reason = "must be none: a decoder's keys are its own tokens, and those of a source do not grow."
    for name in ("source_words", "source_len", "kdim", "vdim"):
        value = getattr(s, name)
        if value is not None and not (name in ("kdim", "vdim") and value == s.embed_dim):
            raise Wrong(name, value, reason, [{name: None}])
    if s.L > LONGEST:
        longest = [] if s.texts else [{"seq_len": LONGEST}]
        raise Wrong("seq_len", s.L, f"may be up to {LONGEST} here: every token is a step of its own.", longest)
    return replace(s, causal=True)


def why_not_decoded(trace: Trace) -> str | None:
    """Why the tokens of this Trace cannot be decoded one by one, as a sentence; None where they can."""
    reason = why_not_alone(trace)
    batch = trace.batch
    if reason is not None or batch is None:
        return reason
    if not batch.causal:
        return "Its attention is not causal: a token reads later ones, and has no output before these are there. No cache could give it."
    if batch.L > LONGEST:
        return f"It reads {batch.L} tokens, and up to {LONGEST} are decoded here: every token is a step of its own."
    return None


def beside(
    layer: Layer,
    batch: Batch,
    *,
    prompt: int = 1,
    num_kv_heads: int | None = None,
    dtype: Dtype = "float32",
    training: bool = False,
    seed: int = 0,
) -> Beside:
    """The Beside of a causal batch; in training dropout is drawn from ``seed`` for each of both. See ``decode``."""
    import torch

    shared = layer if num_kv_heads is None else share_kv(layer, num_kv_heads)
    full = attend(shared, batch, dtype=dtype, training=training, generator=torch.Generator().manual_seed(seed))
    run = partial(decode, shared, batch, prompt=prompt, num_kv_heads=num_kv_heads, dtype=dtype, training=training)
    found = run(generator=torch.Generator().manual_seed(seed))
    if full.dropped is None:
        return Beside(found, full, difference(found, full))
    return Beside(found, full, difference(found, full), difference(run(draws=full.keep_scale), full))


def lengths(
    decoding: Decoding, item: int = 0
) -> tuple[Float[np.ndarray, "H L"], Float[np.ndarray, "G L"], Float[np.ndarray, "G L"]]:
    """The lengths ‖q‖ [H, L], ‖k‖ and ‖v‖ [G, L] of every token's vectors in each head."""
    q = np.concatenate([step.q[item] for step in decoding.steps], axis=1)  # [H, L, D]
    return tuple(np.linalg.norm(vectors.astype(np.float64), axis=-1) for vectors in (q, decoding.k[item], decoding.v[item]))


def growth(
    head_dim: int,
    kv_heads: Iterable[int],
    longest: int,
    *,
    dtype: Dtype = "float32",
    batch_size: int = 1,
    layers: int = 1,
    points: int = 33,
) -> tuple[Int[np.ndarray, " P"], dict[int, Int[np.ndarray, " P"]]]:
    """How the cache grows: (lengths from 0 to ``longest``, the bytes at each, by these numbers of key heads)."""
    tokens = np.unique(np.linspace(0, longest, points).round().astype(int))
    kept = partial(cache_bytes, head_dim=head_dim, dtype=dtype, batch_size=batch_size, layers=layers)
    return tokens, {heads: np.array([kept(int(t), heads) for t in tokens]) for heads in kv_heads}


def difference(decoding: Decoding, trace: Trace, item: int | None = None) -> Difference:
    """The Difference between a Decoding and the Trace of the same batch at once; of one batch ``item``, or of all where None."""
    import torch

    items = slice(None) if item is None else slice(item, item + 1)
    full = trace.output[items].astype(np.float64)  # [N, L, E]
    largest = float(np.abs(full[np.isfinite(full)]).max(initial=0.0))
    parts = [_apart(step.output[items], full[:, step.start : step.stop], largest) for step in decoding.steps]
    rounding = torch.finfo(getattr(torch, decoding.dtype)).eps * float(np.abs(trace.scores[items]).max())
    return Difference(np.array(parts), largest, max(TOLERANCE[decoding.dtype], rounding))


def hint_difference(decoding: Decoding, item: int = 0) -> Float[np.ndarray, " T"]:
    """How far each step of one token would be off with ``is_causal=True`` in place of a mask, as ``difference`` measures it.

    ``F.scaled_dot_product_attention`` aligns its causal mask at the top left: with one query, that query sees the first key alone
    (https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html). It is called here with the
    step's own q and the cache as they are. NaN for a first step of several tokens, for which the hint is right.
    """
    import torch
    from torch.nn import functional as F

    layer, dtype = decoding.layer, getattr(torch, decoding.dtype)
    groups = layer.num_heads // decoding.num_kv_heads
    weight, bias = torch.tensor(layer.weights["out_proj.weight"]).to(dtype), layer.weights.get("out_proj.bias")
    k, v = (
        torch.tensor(array[item]).to(dtype).repeat_interleave(groups, dim=0) for array in (decoding.k, decoding.v)
    )  # [H, L, D]
    right = decoding.output[item].astype(np.float64)  # [L, E]
    largest = float(np.abs(right[np.isfinite(right)]).max(initial=0.0))
    off = []
    for step in decoding.steps:
        if step.stop - step.start > 1:
            off.append(np.nan)
            continue
        q = torch.tensor(step.q[item]).to(dtype)  # [H, 1, D]
        heads = F.scaled_dot_product_attention(q, k[:, : step.stop], v[:, : step.stop], is_causal=True)  # [H, 1, D]
        hinted = F.linear(
            heads.transpose(0, 1).reshape(1, -1), weight, None if bias is None else torch.tensor(bias).to(dtype)
        )  # [1, E]
        off.append(_apart(hinted.double().numpy(), right[step.start : step.stop], largest))
    return np.array(off)


def works(decoding: Decoding) -> tuple[Int[np.ndarray, " T"], Int[np.ndarray, " T"]]:
    """The multiply-adds of each step, (with the cache, without it): a step without it runs all tokens so far."""
    layer, extra = decoding.layer, len(decoding.layer.extra_keys)
    sizes = {
        "embed_dim": layer.embed_dim,
        "num_heads": layer.num_heads,
        "head_dim": layer.head_dim,
        "num_kv_heads": decoding.num_kv_heads,
        "batch_size": decoding.batch.N,
    }
    cached = [work(step.stop - step.start, step.stop + extra, **sizes) for step in decoding.steps]
    again = [work(step.stop, step.stop + extra, **sizes) for step in decoding.steps]
    return np.array(cached), np.array(again)


def _apart(ours: Float[np.ndarray, ...], right: Float[np.ndarray, ...], largest: float) -> float:
    """The largest difference as a share of ``largest``; NaN where both are undefined throughout, infinite where one alone is."""
    blank = np.isnan(right)
    if (np.isnan(ours) != blank).any():
        return np.inf
    if blank.all():
        return np.nan
    return float(np.abs(ours - right)[~blank].max()) / (largest or 1.0)
