"""Weights and outputs read wrongly: dropout in what is shown, padding in a mean, attention taken for an explanation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from mha_viz.analysis.pitfalls import checks
from mha_viz.analysis.pitfalls.masks import maps_of
from mha_viz.analysis.pitfalls.pitfall import Experiment, Knob, Map, Number, Version, pitfall
from mha_viz.analysis.pitfalls.softmax import span
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.decimals import prose

if TYPE_CHECKING:
    from torch import Tensor

    from mha_viz.analysis.pitfalls.pitfall import Attention, Bench


# Dropout in the weights


def weights_in_training(attention: Attention, x: Tensor) -> Tensor:
    attention.train()
    return attention(x, x, x, average_attn_weights=False)[1]


def weights_in_eval(attention: Attention, x: Tensor) -> Tensor:
    attention.eval()
    return attention(x, x, x, average_attn_weights=False)[1]


DROPPED = {"0.1": 0.1, "0.2": 0.2, "0.5": 0.5, "0": 0.0}


@pitfall(
    "Dropout in the weights that are returned",
    ("rows do not sum to 1", "works in eval only"),
    "In train mode dropout falls on the weights after the softmax, and nn.MultiheadAttention returns them as they are used: some are 0, "
    "the others 1 / (1 − p) times as large, and different at every call. A row sums to 1 only on average.",
    "Call .eval() before looking at weights. F.scaled_dot_product_attention knows no mode: pass dropout_p=0.0 in evaluation yourself.",
    (
        Knob("dropout", "0.2", "The share of weights that is dropped.", choices=tuple(DROPPED)),
        Knob("draw", 7, "The seed of what is dropped.", 0, 1000),
    ),
)
def dropout_in_the_weights(bench: Bench, dropout: str, draw: int) -> Experiment:
    p = DROPPED[dropout]
    layer, batch = replace(bench.layer, dropout=p), Batch(bench.tokens)
    trace = attend(layer, batch, training=True, generator=torch.Generator().manual_seed(draw))
    found = [torch.tensor(w) for w in (trace.weights, trace.probabilities)]
    sums = [w.double().sum(dim=-1) for w in found]
    zeros = int((found[0] == 0).sum())
    names = bench.names[0]
    return Experiment(
        (Map("train mode", found[0][0, 0].numpy(), names, names), Map("eval mode", found[1][0, 0].numpy(), names, names)),
        (
            Number("sums of rows", span(sums[0]), span(sums[1])),
            Number(
                "weights that are 0", f"{zeros} of {found[0].numel()}", f"{int((found[1] == 0).sum())} of {found[1].numel()}"
            ),
            Number("the others are multiplied with", f"1 / (1 − {prose(p, 'g')}) = {prose(1 / (1 - p), '.4g')}", "1"),
        ),
        f"With dropout {prose(p, 'g')}, {zeros} of {found[0].numel()} weights are 0 and rows sum to {span(sums[0])}.",
        Version(weights_in_training, (lambda x: found[0], bench.x)),
        Version(weights_in_eval, (lambda x: found[1], bench.x)),
        checks.check_rows_sum_to_one,
    )


# Padded queries in a mean


def mean_of_all(output: Tensor, keep: Tensor) -> Tensor:
    return output.mean(dim=1)  # padded queries have outputs too


def mean_of_real(output: Tensor, keep: Tensor) -> Tensor:
    kept = keep.unsqueeze(-1)  # [N, L, 1]
    return output.masked_fill(~kept, 0.0).sum(dim=1) / kept.sum(dim=1)  # [N, E]


@pitfall(
    "Padded queries in a mean over tokens",
    ("answer changes with batch", "padding is read"),
    "key_padding_mask hides padding as keys. As queries padded tokens are computed like any other: their rows sum to 1 and their outputs "
    "are not zero. A mean over all L positions counts them, so a sentence's vector depends on how long the longest other one is.",
    "Leave padded queries out of the sum, and divide by the number of real ones.",
    (Knob("padded", 2, "Padded tokens at the end of item 0.", 0, 7),),
)
def padded_queries_in_a_mean(bench: Bench, padded: int) -> Experiment:
    bench.needs(tokens=2)
    attention, x = bench.module(), bench.x[:1]
    L = x.shape[1]
    padded = min(padded, L - 1)
    keep = (torch.arange(L) < L - padded).expand(1, -1)  # [N, L]
    output, weights = attention(x, x, x, key_padding_mask=~keep, average_attn_weights=False)
    output = output.detach()
    short = x[:, : L - padded]
    alone = attention(short, short, short)[0].detach().mean(dim=1)  # [1, E]
    means = [pool(output, keep) for pool in (mean_of_all, mean_of_real)]
    off = [(mean - alone).abs().max().item() for mean in means]
    pads = output[0, L - padded :].norm(dim=-1).mean().item() if padded else 0.0
    real = output[0, : L - padded].norm(dim=-1).mean().item()
    return Experiment(
        maps_of(bench, ("padded queries have rows, too",), (weights,), ((~keep[0]).expand(L, L).numpy(),)),
        (
            Number("off from the mean without padding by", f"{off[0]:.4f}", f"{prose(off[1], '.1g')}"),
            Number("mean length of an output", f"{pads:.4f} of padding", f"{real:.4f} of real tokens"),
        ),
        f"{padded} of {L} queries are padding. Their outputs are as long as the others ({pads:.4f} against {real:.4f}), and move the "
        f"mean by up to {off[0]:.4f}.",
        Version(mean_of_all, (mean_of_all, output, keep)),
        Version(mean_of_real, (mean_of_real, output, keep)),
        checks.check_padding_moves_no_mean,
    )


# Attention is not explanation


def key_of_largest_weight(weights: Tensor, v: Tensor) -> Tensor:
    return weights.argmax()


def key_of_largest_effect(weights: Tensor, v: Tensor) -> Tensor:
    effect = []
    for key in range(len(weights)):
        left = weights.clone()
        left[key] = 0  # without this key, the others share its weight
        effect.append((left / left.sum() @ v - weights @ v).norm())
    return torch.stack(effect).argmax()


@pitfall(
    "The largest weight is taken for the reason",
    ("wrong numbers, no error",),
    "A weight says how much of a value is taken, not what that changes. Keys with the same value can trade weight freely: very different "
    "maps, the same output (Jain and Wallace, Attention is not Explanation, 2019; Wiegreffe and Pinter answer in Attention is not not "
    "Explanation, 2019). And a small weight on a large, unusual value can matter most.",
    "Leave the key out and see how far the output moves; weigh by the values' norms; compare with other evidence before telling a story.",
    (Knob("moved", 30, "Hundredths of weight moved from key 0 to key 1, which hold the same value.", 0, 70),),
)
def attention_is_not_explanation(bench: Bench, moved: int) -> Experiment:
    v = torch.tensor([[1.0, 2.0], [1.0, 2.0], [5.0, 0.0]])
    before, weights = torch.tensor([0.7, 0.1, 0.2]), torch.tensor([0.7 - moved / 100, 0.1 + moved / 100, 0.2])
    outputs = before @ v, weights @ v
    distance = (before - weights).abs().sum().item() / 2
    named, matters = int(key_of_largest_weight(weights, v)), int(key_of_largest_effect(weights, v))
    told = [f"({', '.join(prose(number, 'g') for number in output.numpy().round(4))})" for output in outputs]
    agree = "which is also the one" if named == matters else f"though it is key {matters}"
    return Experiment(
        (
            Map(
                "weights of one query",
                np.stack([before.numpy(), weights.numpy()]),
                row_names=("before", "after"),
                column_names=("0: (1, 2)", "1: (1, 2)", "2: (5, 0)"),
                rows="",
                columns="key: value",
            ),
        ),
        (
            Number("output", f"{told[0]} before", f"{told[1]} after"),
            Number("the key that counts", f"key {named}, by its weight", f"key {matters}, by its effect"),
        ),
        f"{distance:.0%} of the weight moved (total variation), and the output is the same. The largest weight points to key {named}, "
        f"{agree} without which the output moves most.",
        Version(key_of_largest_weight, (key_of_largest_weight, weights, v)),
        Version(key_of_largest_effect, (key_of_largest_effect, weights, v)),
        checks.check_named_key_matters_most,
    )
