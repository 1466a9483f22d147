"""``flex_attention``: what its score_mod and block_mask do to the scores, computed as PyTorch does without a kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch._higher_order_ops.flex_attention import _math_attention_inner

from mha_viz.sources.capture.beneath import plain
from mha_viz.sources.capture.scores import Weights

if TYPE_CHECKING:
    from mha_viz.sources.capture.axes import Axes, Axis
    from mha_viz.sources.capture.beneath import Args
    from mha_viz.sources.capture.scores import Scores

NEAR = 1e-4  # how far a score may be from product plus bias, of its own size or of 1


def followed(scores: Scores, keys: Axis, axes: Axes, args: Args) -> tuple[Scores, Weights | None]:
    """(Scores, Weights or None) of a call of the operator with these ``args``: [N, H, L, S] by ``axes``, over ``keys``.

    A score_mod that adds the same whatever the score is a bias. Any other one changes the scores, and the weights tell how.
    """
    q, k, v, score_mod, block_mask, scale, options, *buffers = args
    q, k, v = (plain(t)[0] for t in (q, k, v))
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).expand(len(q), -1, -1, -1)  # [N, H, S, D]

    def modified(k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return _math_attention_inner(q, k, v, score_mod, block_mask, scale, options, *buffers)

    product, logits = modified(k)  # [N, H, L, S]
    bias = modified(torch.zeros_like(k))[1]  # of scores that are 0
    hidden = logits.isneginf()
    scores = scores.filled(hidden, float("-inf")) or replace(scores, changed="block_mask")
    bias = bias.masked_fill(hidden, 0)
    off = (logits - product - bias).masked_fill(hidden, 0).abs()
    if bool((off <= NEAR * logits.masked_fill(hidden, 0).abs().clamp(min=1)).all()):
        return scores.added(bias) or replace(scores, changed="score_mod"), None
    weights = torch._safe_softmax(logits, -1).to(q.dtype)
    scores = replace(scores, changed="score_mod")
    return scores, Weights(scores, keys, (weights, axes), axes)
