"""One number opened: everything that makes a single attention weight, and what that weight brings to the output."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypedDict

import numpy as np

from mha_viz.analysis.hiding import hidden_by
from mha_viz.analysis.norms import lengths

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.core.trace import Trace


@dataclass(frozen=True, eq=False)
class Derivation:
    """How one weight comes about, from left to right. Arithmetic is done in float64, each step on the numbers that the Trace
    holds, so that no rounding is handed on. A field that the Trace's source does not know is None.

    The score: ``q`` [D] and ``k`` [D], their ``products`` [D] and the sum of these, ``dot``; times ``scale``, as a rule 1 / √D,
    the ``score`` of the Trace. ``bias`` is what an additive mask adds to it, None where there is none; ``hidden_by`` names the
    rules that hide the key ("causal", "window", "key padding", "attn_mask"), () where it is seen.

    The softmax: ``masked_scores`` [S], the whole row with the bias added and −∞ where hidden; ``largest`` of them;
    ``exponentials`` [S], exp(score − largest); their sum ``total``; ``probability`` = exponentials[key] / total. In a row without
    a key, which is ``undefined``, ``largest`` is −∞ and everything after it NaN.

    The weight: ``dropped``, whether dropout took it, and ``keep_scale``, 0 or 1 / (1 − p), None where there is no dropout;
    ``weight`` = probability · keep_scale. Where an Intervention put the head out, ``off`` is the way, "zero", "mean" or "uniform",
    and the weight what it put there, whatever the probability; else None. ``in_all_heads`` [H] is the weight of the same cell in
    each head.

    The output: ``v`` [D]; ``weighted_value`` [D] = weight · v; ``contribution`` [E] = weight · v · Wᴼ's columns of this head, what
    the cell adds to the query's output: the contributions of all keys and heads and the bias of out_proj sum to it. ``norm`` is its
    length and ``share`` its part, 0 to 1, of the sum of norms over the keys of this row and head, NaN where that is zero
    (Kobayashi et al., Attention Is Not Only a Weight: Analyzing Transformers with Vector Norms, 2020, equation 5). All of it is None
    for a head that is off by its "mean": what it brings is no sum over cells.
    """

    item: int
    head: int
    query: int
    key: int
    q: Float[np.ndarray, " D"] | None
    k: Float[np.ndarray, " D"] | None
    products: Float[np.ndarray, " D"] | None
    dot: float | None
    scale: float | None
    score: float | None
    bias: float | None
    hidden_by: tuple[str, ...]
    masked_scores: Float[np.ndarray, " S"] | None
    largest: float | None
    exponentials: Float[np.ndarray, " S"] | None
    total: float | None
    probability: float
    dropped: bool | None
    keep_scale: float | None
    weight: float
    off: str | None
    in_all_heads: Float[np.ndarray, " H"]
    undefined: bool | None
    v: Float[np.ndarray, " D"] | None
    weighted_value: Float[np.ndarray, " D"] | None
    contribution: Float[np.ndarray, " E"] | None
    norm: float | None
    share: float | None

    @property
    def scale_told(self) -> str:
        """The scale in words: 1/√D where it is that, else what it is and what 1/√D would be."""
        assert self.q is not None and self.scale is not None  # they are known together
        D = len(self.q)
        if math.isclose(self.scale, D**-0.5, rel_tol=1e-6):
            return f"1/√{D} = {self.scale:.6f}"
        return f"{self.scale:.6f}, which is not 1/√{D} = {D**-0.5:.6f}"


Row: TypeAlias = tuple[int, int, int]  # item, head, query


class _Score(TypedDict):
    q: Float[np.ndarray, " D"] | None
    k: Float[np.ndarray, " D"] | None
    products: Float[np.ndarray, " D"] | None
    dot: float | None
    scale: float | None
    score: float | None
    bias: float | None


class _Softmax(TypedDict):
    masked_scores: Float[np.ndarray, " S"] | None
    largest: float | None
    exponentials: Float[np.ndarray, " S"] | None
    total: float | None
    probability: float


class _Dropout(TypedDict):
    dropped: bool | None
    keep_scale: float | None


class _Output(TypedDict):
    v: Float[np.ndarray, " D"] | None
    weighted_value: Float[np.ndarray, " D"] | None
    contribution: Float[np.ndarray, " E"] | None
    norm: float | None
    share: float | None


def open_number(trace: Trace, item: int, head: int, query: int, key: int) -> Derivation:
    """The Derivation of the weight that ``query`` gives to ``key`` in one head of one batch item. IndexError beyond the Trace."""
    row = (item, head, query)
    return Derivation(
        item,
        head,
        query,
        key,
        **_score(trace, row, key),
        hidden_by=hidden_by(trace, item, head, query, key) if trace.has("mask") else (),
        **_softmax(trace, row, key),
        **_dropout(trace, row, key),
        weight=float(trace.weights[row][key]),
        off=dict(trace.off).get(head),
        in_all_heads=trace.weights[item, :, query, key].astype(np.float64),  # [H]
        undefined=bool(trace.undefined[row]) if trace.has("undefined") else None,
        **_output(trace, row, key),
    )


def _score(trace: Trace, row: Row, key: int) -> _Score:
    step: _Score = {"q": None, "k": None, "products": None, "dot": None, "scale": None, "score": None, "bias": None}
    if trace.has("q", "k"):
        q, k = trace.q[row].astype(np.float64), trace.k[row[:2]][key].astype(np.float64)  # [D] each
        step |= {"q": q, "k": k, "products": q * k, "dot": float(q @ k), "scale": trace.scale}
    if trace.has("scores"):
        step["score"] = float(trace.scores[row][key])
    if trace.has("mask_bias") and trace.mask_bias is not None:
        step["bias"] = float(trace.mask_bias[row][key])
    return step


def _softmax(trace: Trace, row: Row, key: int) -> _Softmax:
    if not trace.has("scores", "mask", "mask_bias"):
        probability = float(trace.probabilities[row][key])
        return {"masked_scores": None, "largest": None, "exponentials": None, "total": None, "probability": probability}
    scores = trace.scores[row].astype(np.float64)  # [S]
    if trace.mask_bias is not None:
        scores = scores + trace.mask_bias[row]  # [S]
    with np.errstate(invalid="ignore"):  # −∞ − (−∞), in a row without keys; NaN − ∞ is NaN: a mask does not hide it
        scores = scores + np.where(trace.mask[row], -np.inf, 0)  # [S]
        exponentials = np.exp(scores - scores.max())  # [S]
        total = exponentials.sum()
        probability = exponentials[key] / total
    return {
        "masked_scores": scores,
        "largest": float(scores.max()),
        "exponentials": exponentials,
        "total": float(total),
        "probability": float(probability),
    }


def _dropout(trace: Trace, row: Row, key: int) -> _Dropout:
    if not trace.has("dropped") or trace.dropped is None or trace.keep_scale is None:
        return {"dropped": None, "keep_scale": None}
    return {"dropped": bool(trace.dropped[row][key]), "keep_scale": float(trace.keep_scale[row][key])}


def _output(trace: Trace, row: Row, key: int) -> _Output:
    step: _Output = {"v": None, "weighted_value": None, "contribution": None, "norm": None, "share": None}
    if not trace.has("v") or dict(trace.off).get(row[1]) == "mean":
        return step
    values = trace.v[row[:2]].astype(np.float64)  # [S, D]
    weights = trace.weights[row].astype(np.float64)  # [S]
    weighted = weights[:, None] * values  # [S, D]
    step |= {"v": values[key], "weighted_value": weighted[key]}
    if trace.out_proj is None:
        return step
    head, D = row[1], values.shape[1]
    own = trace.out_proj[0][:, head * D : (head + 1) * D].astype(np.float64)  # [E, D]
    norms = lengths(weighted[None], own)[0]  # [S], without the vectors [S, E] themselves
    share = norms[key] / norms.sum() if norms.any() else np.nan
    contribution = weighted[key] @ own.T  # [E]
    step |= {"contribution": contribution, "norm": float(np.linalg.norm(contribution)), "share": float(share)}
    return step
