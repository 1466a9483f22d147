"""Between scores and weights: the axis of the softmax, once and not twice, its shift, the scale, and what is filled in for hidden."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from mha_viz.analysis.pitfalls import checks
from mha_viz.analysis.pitfalls.masks import maps_of
from mha_viz.analysis.pitfalls.pitfall import Experiment, Knob, Map, Number, Version, pitfall, verdict
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.cells import WORDS, word
from mha_viz.core.decimals import prose

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from mha_viz.analysis.pitfalls.pitfall import Bench


def scores_of(bench: Bench) -> Float[Tensor, "N H L S"]:
    """Scaled scores [N, H, L, S] of the bench's layer and tokens, as a tensor."""
    return torch.tensor(attend(bench.layer, Batch(bench.tokens)).scores)


def entropy(weights: Float[Tensor, "... L S"]) -> float:
    """Mean entropy of the rows of weights [..., L, S], in nats; NaN rows left out."""
    mean: float = torch.special.entr(weights).sum(dim=-1).nanmean().item()
    return mean


def span(sums: Float[Tensor, ...]) -> str:
    return f"{sums.min():.4f} to {sums.max():.4f}"


# Over the wrong axis


def softmax_over_queries(scores: Tensor) -> Tensor:
    return scores.softmax(dim=-2)


def softmax_over_keys(scores: Tensor) -> Tensor:
    return scores.softmax(dim=-1)


@pitfall(
    "Softmax over the wrong axis",
    ("rows do not sum to 1", "sees the future", "wrong numbers, no error"),
    "Each query shares one unit of weight among keys, so the softmax runs over the last axis of [L, S]. Over the other one each key shares "
    "itself among queries: columns sum to 1. In self-attention L = S, and no shape tells.",
    "softmax(dim=-1) on scores [..., L, S], a row per query; and sum the rows in a test.",
)
def softmax_over_the_wrong_axis(bench: Bench) -> Experiment:
    bench.needs(tokens=2)
    scores = scores_of(bench)
    found = [softmax_of(scores) for softmax_of in (softmax_over_queries, softmax_over_keys)]
    rows, columns = ([w.double().sum(dim=axis) for w in found] for axis in (-1, -2))
    return Experiment(
        maps_of(bench, ("softmax(dim=-2)", "softmax(dim=-1)"), found),
        (Number("sums of rows", span(rows[0]), span(rows[1])), Number("sums of columns", span(columns[0]), span(columns[1]))),
        f"Rows sum to {span(rows[0])} in place of 1, and columns to 1.",
        Version(softmax_over_queries, (softmax_over_queries, scores)),
        Version(softmax_over_keys, (softmax_over_keys, scores)),
        checks.check_rows_sum_to_one,
    )


# Twice


def softmax_of_weights(scores: Tensor) -> Tensor:
    weights = scores.softmax(dim=-1)
    return weights.softmax(dim=-1)  # once more, as where a library returns weights and they are taken for scores


@pitfall(
    "Softmax twice",
    ("everything uniform", "wrong numbers, no error"),
    "Weights lie between 0 and 1, so a second softmax can make one key at most e = 2.718 times as heavy as another: every head looks "
    "almost uniform, however sharp it was. Rows still sum to 1.",
    "Know what is returned: nn.MultiheadAttention and Hugging Face return weights after softmax. Test with a score that must win.",
    (Knob("sharpness", 10, "What the scores are multiplied with, so that the head has something to lose.", 1, 100),),
)
def softmax_twice(bench: Bench, sharpness: int) -> Experiment:
    bench.needs(tokens=2)
    scores = scores_of(bench) * sharpness
    found = [softmax_of(scores) for softmax_of in (softmax_of_weights, softmax_over_keys)]
    most, entropies = [w.max().item() for w in found], [entropy(w) for w in found]
    S = scores.shape[-1]
    return Experiment(
        maps_of(bench, ("softmax twice", "softmax once"), found),
        (
            Number("largest weight", f"{most[0]:.4f}", f"{most[1]:.4f}"),
            Number("mean entropy of a row", f"{entropies[0]:.4f} nats", f"{entropies[1]:.4f} nats"),
            Number("uniform would be", f"{math.log(S):.4f} nats", f"{math.log(S):.4f} nats"),
        ),
        f"The largest weight falls from {most[1]:.4f} to {most[0]:.4f}. Over {S} keys a second softmax gives at most "
        f"e / (e + {S - 1}) = {math.e / (math.e + S - 1):.4f}.",
        Version(softmax_of_weights, (softmax_of_weights,)),
        Version(softmax_over_keys, (softmax_over_keys,)),
        checks.check_sharp_scores_make_sharp_weights,
    )


# Without its shift


def softmax_by_formula(scores: Tensor) -> Tensor:
    exponentials = scores.exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


def softmax_shifted(scores: Tensor) -> Tensor:
    exponentials = (scores - scores.amax(dim=-1, keepdim=True)).exp()  # the largest is exp(0) = 1
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@pitfall(
    "Softmax without its shift",
    ("NaN",),
    "exp overflows: in float32 above 88.7, in float16 above 11.1. ∞ / ∞ is NaN, and a row of very low scores gives 0 / 0. Subtracting the "
    "row's largest score changes no weight, since it cancels, and keeps every exp at 1 or below.",
    "Subtract the largest score of each row, as torch.softmax does by itself.",
    (Knob("raised", 100, "What is added to the score of key 0, in each row.", 0, 1000),),
)
def softmax_without_its_shift(bench: Bench, raised: int) -> Experiment:
    scores = scores_of(bench).clone()
    scores[..., 0] += raised
    found = [softmax_of(scores) for softmax_of in (softmax_by_formula, softmax_shifted)]
    lost = [int(w.isnan().any(dim=-1).sum()) for w in found]
    rows, most = scores[..., 0].numel(), scores.max().item()
    outcome = f"{lost[0]} of {rows} rows hold NaN" if lost[0] else "no row holds NaN yet; from about 88.7 on they do"
    with np.errstate(over="ignore"):
        exp = np.exp(np.float32(most))
    return Experiment(
        maps_of(bench, ("exp / sum", "shifted by the largest"), found),
        (
            Number("largest score", f"{prose(most, '.4g')}", f"{prose(most, '.4g')}"),
            Number("its exp in float32", "∞" if np.isinf(exp) else f"{prose(exp, '.4g')}", "1"),
            Number("rows with NaN", f"{lost[0]} of {rows}", f"{lost[1]} of {rows}"),
        ),
        f"The largest score is {prose(most, '.4g')}: {outcome}.",
        Version(softmax_by_formula, (softmax_by_formula,)),
        Version(softmax_shifted, (softmax_shifted,)),
        checks.check_large_scores_stay_finite,
    )


# Wrong scale


def scaled_by_embed_dim(q: Tensor, k: Tensor, num_heads: int) -> Tensor:
    return (q @ k.mT / math.sqrt(q.shape[-1] * num_heads)).softmax(dim=-1)


def not_scaled(q: Tensor, k: Tensor, num_heads: int) -> Tensor:
    return (q @ k.mT).softmax(dim=-1)


def scaled_by_d(q: Tensor, k: Tensor, num_heads: int) -> Tensor:
    return (q @ k.mT / q.shape[-1]).softmax(dim=-1)


def scaled_by_head_dim(q: Tensor, k: Tensor, num_heads: int) -> Tensor:
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)


SCALES = {"1/√embed_dim": scaled_by_embed_dim, "none": not_scaled, "1/head_dim": scaled_by_d}


@pitfall(
    "The wrong scale",
    ("everything uniform", "wrong numbers, no error"),
    "q · k of head_dim random numbers has a standard deviation of √head_dim, which 1/√head_dim takes back to 1. Scaled by embed_dim heads "
    "become more uniform, without a scale sharper, and the more heads there are the further off it is. Rows sum to 1 either way.",
    "Scale by the size of what is multiplied, q.shape[-1] after the split into heads, and compare with PyTorch once.",
    (Knob("scale", "1/√embed_dim", "What q · k is multiplied with.", choices=tuple(SCALES)),),
)
def wrong_scale(bench: Bench, scale: str) -> Experiment:
    bench.needs(tokens=2)
    trace = attend(bench.layer, Batch(bench.tokens))
    q, k, H = torch.tensor(trace.q), torch.tensor(trace.k), bench.layer.num_heads
    wrong = SCALES[scale]
    found = [weights_of(q, k, H) for weights_of in (wrong, scaled_by_head_dim)]
    off = (found[0] - found[1]).abs().max().item()
    E, D, entropies = bench.layer.embed_dim, q.shape[-1], [entropy(w) for w in found]
    used = {"1/√embed_dim": E**-0.5, "none": 1.0, "1/head_dim": 1 / D}[scale]
    harm = f"A weight is off by up to {off:.4f}." if off > 1e-6 else "That is the same here: no harm."
    return Experiment(
        maps_of(bench, (f"scale {scale}", "scale 1/√head_dim"), found),
        (
            Number("q · k is multiplied with", f"{used:.4f}", f"{D**-0.5:.4f}"),
            Number("mean entropy of a row", f"{entropies[0]:.4f} nats", f"{entropies[1]:.4f} nats"),
            Number("largest error of a weight", f"{off:.4f}", "0"),
        ),
        f"{H} heads of {D}: the scale is {used:.4f} and should be {D**-0.5:.4f}. {harm}",
        Version(wrong, (partial(wrong, num_heads=H), q, k)),
        Version(scaled_by_head_dim, (partial(scaled_by_head_dim, num_heads=H), q, k)),
        checks.check_scale,
    )


# What is filled in for hidden


def fill_with_ten_thousand(scores: Tensor, hidden: Tensor) -> Tensor:
    return scores.masked_fill(hidden, -1e4).softmax(dim=-1)


def fill_with_a_billion(scores: Tensor, hidden: Tensor) -> Tensor:
    return scores.masked_fill(hidden, -1e9).softmax(dim=-1)


def fill_with_lowest(scores: Tensor, hidden: Tensor) -> Tensor:
    return scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(dim=-1)


def fill_with_infinity(scores: Tensor, hidden: Tensor) -> Tensor:
    return scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)


FILLS = {"-1e4": fill_with_ten_thousand, "-1e9": fill_with_a_billion, "finfo.min": fill_with_lowest}


@pitfall(
    "A large number filled in for −∞, in half precision",
    ("NaN", "padding is read", "an error", "everything uniform"),
    "float16 ends at 65504. −1e9 does not fit: PyTorch refuses it, and code that casts gets −∞. −1e4 fits, and lets a hidden key win "
    "where real scores are lower still. finfo.min hides, but in a row whose every key is hidden it is all there is: the row comes out "
    "uniform over hidden keys instead of undefined, and two such masks added overflow to −∞.",
    "Combine masks as bools and fill once with −∞, in the scores' own type; treat rows without a key by themselves.",
    (
        Knob("fill", "-1e4", "What stands in for −∞.", choices=tuple(FILLS)),
        Knob("lowest", 20000, "Real scores go down to minus this.", 0, 60000),
    ),
)
def half_precision_fill(bench: Bench, fill: str, lowest: int) -> Experiment:
    scores = torch.tensor([[-lowest, -0.75 * lowest, 0], [0, 0, 0], [0, 0, 0]], dtype=torch.float16)
    hidden = torch.tensor([[False, False, True], [False, False, True], [True, True, True]])
    wrong = FILLS[fill]
    said = verdict(wrong, scores, hidden)
    maps: tuple[Map, ...]
    right = fill_with_infinity(scores, hidden)
    half = torch.finfo(torch.half).min if fill == "finfo.min" else torch.tensor(float(fill)).half().item()
    names = ("0", "1", "2")

    def shown(title: str, weights: Float[Tensor, "L S"]) -> Map:
        return Map(title, weights.float().numpy(), names, names, hidden.numpy(), rows="row")

    given = []
    for weights in ([] if said else [wrong(scores, hidden)]) + [right]:
        given.append(weights.float().nan_to_num(0)[hidden])
    leaks = [f"{prose(g[0].item(), '.3g')} in row 0, {g[2:].sum():.3g} in row 2" for g in given]
    if said:
        maps, sentence = (shown("−∞", right),), f"PyTorch refuses to fill float16 with {fill}: {said}"
    else:
        maps = shown(fill.replace("-", "−"), wrong(scores, hidden)), shown("−∞", right)
        sentence = (
            f"Row 0 has real scores down to −{lowest}, row 2 no key at all. Filled with {fill.replace('-', '−')}, hidden keys get "
            f"{leaks[0]}; with −∞ nothing, and row 2 is undefined, as it is."
        )
    return Experiment(
        maps,
        (
            Number(
                "weight on hidden keys",
                "no answer" if said else leaks[0],
                f"{prose(given[-1][0].item(), '.3g')} in row 0, row 2 undefined",
            ),
            Number("in float16 the fill is", word(half) or prose(half, ".1f"), WORDS["-inf"]),
            Number("PyTorch says", said or "nothing", "nothing"),
        ),
        sentence,
        Version(wrong, (wrong,)),
        Version(fill_with_infinity, (fill_with_infinity,)),
        checks.check_hidden_keys_get_nothing,
    )
