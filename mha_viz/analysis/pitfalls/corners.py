"""Masks that begin or end at the wrong key: aligned at the wrong corner, a window that is off by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from mha_viz.analysis.pitfalls import checks
from mha_viz.analysis.pitfalls.masks import maps_of
from mha_viz.analysis.pitfalls.pitfall import Experiment, Knob, Number, Version, pitfall
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch

if TYPE_CHECKING:
    from torch import Tensor

    from mha_viz.analysis.pitfalls.pitfall import Bench

# Top left and bottom right


def causal_by_flag(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)  # query i sees keys 0 … i


def causal_from_the_end(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    L, S = q.shape[-2], k.shape[-2]
    keep = torch.ones(S, S, dtype=torch.bool).tril()[-L:]  # the last query stands at the last key
    return F.scaled_dot_product_attention(q, k, v, attn_mask=keep)


@pitfall(
    "A causal mask for fewer queries than keys is aligned top left",
    ("wrong numbers, no error", "works in eval only"),
    "With a cache the queries are the newest tokens and the keys are all of them. is_causal=True of F.scaled_dot_product_attention "
    "counts both from the first: query 0 sees key 0 alone, though it stands near the end. The very first step, one query and one key, "
    "is right, so a test of one token passes.",
    "Cut the last L rows from the S × S causal mask (torch.nn.attention.bias.causal_lower_right), or pass no mask where L = 1.",
    (Knob("queries", 1, "The newest tokens that ask, out of all keys.", 1, 8),),
)
def top_left_and_bottom_right(bench: Bench, queries: int) -> Experiment:
    bench.needs(tokens=2)
    trace = attend(bench.layer, Batch(bench.tokens))
    q, k, v = (torch.tensor(t) for t in (trace.q, trace.k, trace.v))  # [N, H, L, D]
    S = k.shape[2]
    queries = min(queries, S)
    seen = torch.eye(S).expand(*k.shape[:2], -1, -1)  # values that let the weights be seen
    new = q[:, :, -queries:]
    found = [attend_as(new, k, seen) for attend_as in (causal_by_flag, causal_from_the_end)]
    output = [attend_as(new, k, v) for attend_as in (causal_by_flag, causal_from_the_end)]
    off = (output[0] - output[1]).abs().max().item()
    hidden = [(w[0, 0] == 0).numpy() for w in found]
    keys = [int((w[0, 0, -1] > 0).sum()) for w in found]
    return Experiment(
        maps_of(bench, ("top left: is_causal=True", "bottom right"), found, hidden),
        (
            Number("keys that the newest query sees", f"{keys[0]} of {S}", f"{keys[1]} of {S}"),
            Number("largest error of a head's output", f"{off:.4f}", "0"),
        ),
        f"With {queries} of {S} tokens asking, the newest one sees {keys[0]} of {S} keys where it may see all; "
        f"the heads' outputs are off by up to {off:.4f}.",
        Version(causal_by_flag, (causal_by_flag, q, k, v)),
        Version(causal_from_the_end, (causal_from_the_end, q, k, v)),
        checks.check_last_query_alone,
    )


# A window that is off by one


def window_with_one_more(L: int, window: int) -> Tensor:
    query, key = torch.arange(L)[:, None], torch.arange(L)
    return (key > query) | (key < query - window)  # hidden; a query sees window + 1 keys


def window_itself_included(L: int, window: int) -> Tensor:
    query, key = torch.arange(L)[:, None], torch.arange(L)
    return (key > query) | (key <= query - window)  # hidden; a query sees window keys


@pitfall(
    "A sliding window that is off by one",
    ("wrong numbers, no error",),
    "“A window of w” is w keys with the query's own among them to most models, and w keys before it to some code. The two differ by one "
    "key per query: nothing fails, and a model that was trained with one is run with the other.",
    "Say which is meant, itself included or not, and count the keys that a late query sees.",
    (Knob("window", 3, "Keys in the window, itself included.", 1, 8),),
)
def window_off_by_one(bench: Bench, window: int) -> Experiment:
    bench.needs(tokens=2)
    attention, x = bench.module(), bench.x
    L = x.shape[1]
    masks = [window_with_one_more(L, window), window_itself_included(L, window)]
    found = [attention(x, x, x, attn_mask=mask, average_attn_weights=False) for mask in masks]
    seen = [(~mask).sum(dim=-1).tolist() for mask in masks]
    off = (found[0][0] - found[1][0]).abs().max().item()
    harm = (
        f"The outputs differ by up to {off:.4f}." if off else f"With {L} tokens no query has so many before it: no harm here."
    )
    return Experiment(
        maps_of(
            bench,
            ("one too many", f"{window} with itself"),
            [weights for _, weights in found],
            [mask.numpy() for mask in masks],
        ),
        (
            Number("keys seen by each query", str(seen[0]), str(seen[1])),
            Number("largest error of the output", f"{off:.4f}", "0"),
        ),
        f"Asked for a window of {window}, the last query sees {seen[0][-1]} keys, and {seen[1][-1]} are meant. {harm}",
        Version(window_with_one_more, (window_with_one_more(L, window), window)),
        Version(window_itself_included, (window_itself_included(L, window), window)),
        checks.check_window_sees,
    )
