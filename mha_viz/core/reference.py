"""Multi-head attention from scratch in NumPy: slow and obvious, one head after another. What the fast engine is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.arrays import read_only
from mha_viz.core.trace import Fields, broadcast

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.core.arrays import Dtype
    from mha_viz.core.batch import Batch
    from mha_viz.core.layer import Layer
    from mha_viz.core.mask import Mask


@np.errstate(invalid="ignore", over="ignore")  # NaN and ∞ in the input flow through, as they do in PyTorch
def compute(
    layer: Layer, batch: Batch, mask: Mask, dtype: Dtype, keep_scale: Float[np.ndarray, "N H L S"] | None = None
) -> Fields:
    """Every field of a Trace. ``keep_scale`` multiplies the weights: 0 or 1 / (1 − p), None where nothing is dropped."""
    number = np.dtype(dtype).type
    W = {name: array.astype(number) for name, array in layer.weights.items()}
    Wq, Wk, Wv = (weight.astype(number) for weight in layer.projections)
    D, H = layer.head_dim, layer.num_heads
    bq, bk, bv = np.split(W.get("in_proj_bias", np.zeros(3 * D * H, number)), 3)
    query = batch.query.astype(number)  # [N, L, E]
    key = query if batch.key is None else batch.key.astype(number)  # [N, S, kdim]
    value = key if batch.value is None else batch.value.astype(number)  # [N, S, vdim]

    shape = (batch.N, H, batch.L, batch.S + mask.extra)
    hidden, bias = broadcast(mask.hidden(), shape), mask.added()
    bias = None if bias is None else broadcast(bias, shape)
    added = np.where(hidden, number(-np.inf), number(0) if bias is None else bias)  # [N, H, L, S]
    a_head = ("q", "k", "v", "scores", "probabilities", "weights", "head_outputs")
    made: dict[str, list[np.ndarray | list[np.ndarray]]] = {name: [] for name in (*a_head, "concat", "output")}

    for n in range(batch.N):
        heads: dict[str, list[np.ndarray]] = {name: [] for name in a_head}
        for h in range(H):
            own = slice(h * D, (h + 1) * D)  # the rows of Wq, Wk, Wv that belong to head h
            Q = query[n] @ Wq[own].T + bq[own]  # [L, D]
            K = key[n] @ Wk[own].T + bk[own]  # [S, D]
            V = value[n] @ Wv[own].T + bv[own]  # [S, D]
            if "bias_k" in W:
                K, V = np.vstack([K, W["bias_k"][0, :, own]]), np.vstack([V, W["bias_v"][0, :, own]])  # [S + 1, D]
            if layer.add_zero_attn:
                K, V = np.vstack([K, np.zeros((1, D), number)]), np.vstack([V, np.zeros((1, D), number)])  # [S + 1, D]
            scores = Q @ K.T / np.sqrt(number(D))  # [L, S]
            probabilities = softmax(scores + added[n, h])  # [L, S]
            weights = probabilities if keep_scale is None else probabilities * keep_scale[n, h]  # [L, S]
            for name, step in zip(heads, (Q, K, V, scores, probabilities, weights, weights @ V), strict=True):
                heads[name].append(step)
        concat = np.concatenate(heads["head_outputs"], axis=-1)  # [L, H·D]
        for name, steps in heads.items():
            made[name].append(steps)
        made["concat"].append(concat)
        made["output"].append(concat @ W["out_proj.weight"].T + W.get("out_proj.bias", 0))  # [L, E]

    known = {name: read_only(np.array(steps)) for name, steps in made.items()}
    if keep_scale is None:
        known["weights"] = known["probabilities"]
    return known | {
        "mask": hidden,
        "mask_bias": bias,
        "keep_scale": None if keep_scale is None else read_only(keep_scale),
        "dropped": None if keep_scale is None else read_only(np.equal(keep_scale, 0)),
        "mean_weights": read_only(known["weights"].mean(axis=1)),  # [N, L, S]
        "undefined": read_only(np.all(hidden, axis=-1)),  # [N, H, L]
    }


@np.errstate(invalid="ignore")  # −inf − (−inf), in a row without keys
def softmax(scores: Float[np.ndarray, "... S"]) -> Float[np.ndarray, "... S"]:
    """exp(s) / Σ exp(s) over the last axis, shifted by its largest value so that no exp overflows.

    A row of −inf has no distribution: it comes out as NaN, and stays NaN.

    >>> softmax(np.array([[0.0, 0.0, -np.inf], [-np.inf] * 3]))
    array([[0.5, 0.5, 0. ],
           [nan, nan, nan]])
    """
    weights: np.ndarray = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights
