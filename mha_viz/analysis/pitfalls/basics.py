"""The three that every tutorial names: head counts that do not divide, layouts, and the average of the heads; and heads split wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from mha_viz.analysis.layout import pytorch_error, wrong_layout
from mha_viz.analysis.pitfalls import checks
from mha_viz.analysis.pitfalls.pitfall import Bench, Experiment, Knob, Map, Number, Version, pitfall
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.decimals import fill, prose
from mha_viz.core.layer import Layer
from mha_viz.core.rules import Wrong, head_dim

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from mha_viz.analysis.pitfalls.pitfall import Attention


# Heads that do not divide


def floor_heads(q: Tensor, num_heads: int) -> list[Tensor]:
    size = q.shape[-1] // num_heads
    return [q[..., head * size : (head + 1) * size] for head in range(num_heads)]


def whole_heads(q: Tensor, num_heads: int) -> Sequence[Tensor]:
    size, rest = divmod(q.shape[-1], num_heads)
    if rest:
        raise ValueError(f"embed_dim must be divisible by num_heads, but {q.shape[-1]} = {num_heads} × {size} + {rest}")
    return torch.split(q, size, dim=-1)


@pitfall(
    "num_heads does not divide embed_dim",
    ("an error", "wrong shape", "wrong numbers, no error"),
    "Each head owns embed_dim / num_heads columns of the projections. PyTorch refuses a remainder. Code of one's own that rounds down "
    "refuses nothing: the last columns belong to no head, and whatever they hold is lost.",
    "Compute head_dim with divmod and refuse a remainder, or choose head_dim and derive embed_dim = num_heads × head_dim from it.",
    (Knob("embed_dim", 128, "Numbers per token.", 1, 4096), Knob("num_heads", 12, "Attention heads.", 1, 4096)),
)
def heads_that_do_not_divide(bench: Bench, embed_dim: int, num_heads: int) -> Experiment:
    size, rest = divmod(embed_dim, num_heads)
    q = torch.arange(float(embed_dim)).expand(1, 2, -1)
    try:
        head_dim(embed_dim, num_heads)
        advice = f"{embed_dim} = {num_heads} × {size}: every column belongs to a head, and nothing is wrong here."
    except Wrong as wrong:
        offers = [" and ".join(f"{name} {value}" for name, value in change.items()) for change in wrong.nearest]
        advice = (
            f"{embed_dim} = {num_heads} × {size} + {rest}: rounded down, {rest} of {embed_dim} columns belong to no head. "
            f"Nearest right: {' or '.join(offers)}."
        )
    return Experiment(
        (),
        (
            Number(
                "head_dim",
                f"{embed_dim} // {num_heads} = {size}",
                f"{embed_dim} / {num_heads} = {prose(embed_dim / num_heads, 'g')}",
            ),
            Number(
                "columns that a head owns", f"{num_heads * size} of {embed_dim}", f"{embed_dim} of {embed_dim}, or an error"
            ),
            Number("nn.MultiheadAttention says", "not asked", pytorch_error(embed_dim, num_heads) or "nothing: it is made"),
        ),
        advice,
        Version(floor_heads, (floor_heads, q, num_heads)),
        Version(whole_heads, (whole_heads, q, num_heads)),
        checks.check_heads_hold_every_column,
    )


# Batch first or sequence first


def attend_as_it_is(attention: Attention, x: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x, x, x)  # attention was made without batch_first=True: it reads [L, N, E]


def attend_transposed(attention: Attention, x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.transpose(0, 1)  # [N, L, E] → [L, N, E], or make the layer with batch_first=True
    output, weights = attention(x, x, x)
    return output.transpose(0, 1), weights


@pitfall(
    "Batch first given to a layer that is sequence first",
    ("answer changes with batch", "wrong shape", "wrong numbers, no error"),
    "nn.MultiheadAttention expects [L, N, E] unless it was made with batch_first=True. A tensor [N, L, E] has the right number of axes, "
    "so nothing is said: tokens of different items at the same place attend to each other. The output has the expected shape; only "
    "the weights' shape tells, and where N = L not even that.",
    "Pass batch_first=True, write the axes beside every tensor, and test with N ≠ L: then masks and weights have telling shapes.",
)
def batch_first_or_sequence_first(bench: Bench) -> Experiment:
    bench.needs(items=2)
    attention = bench.module(batch_first=False)
    tried = wrong_layout(bench.layer, Batch(bench.tokens))
    assert tried.output is not None and tried.weights is not None  # without masks PyTorch says nothing
    assert tried.leaks is not None and tried.right_leaks is not None
    items = tuple(str(item) for item in range(len(tried.leaks)))
    rows, columns = "changed item", "item that moves"
    shown = partial(Map, row_names=items, column_names=items, rows=rows, columns=columns, quantity="moves by")
    return Experiment(
        (shown("taken for sequence first", tried.leaks), shown("right layout", tried.right_leaks)),
        (
            Number("shape of the output", str(list(tried.output)), str(list(tried.right_output))),
            Number("shape of the averaged weights", str(list(tried.weights)), str(list(tried.right_weights))),
            Number("largest error of the output", f"{tried.largest_error:.4f}", "0"),
        ),
        f"A tensor {list(tried.given)} went in. "
        + (
            "N = L: every shape is as expected, and the answer is wrong all the same"
            if tried.silent
            else "Only the weights' shape tells"
        )
        + fill(
            ": the output is off by up to {:.3g}, where the right one reaches {:.3g}", tried.largest_error, tried.largest_output
        )
        + ", and each item moves the others.",
        Version(attend_as_it_is, (lambda x: attend_as_it_is(attention, x)[0], bench.x)),
        Version(attend_transposed, (lambda x: attend_transposed(attention, x)[0], bench.x)),
        checks.check_items_are_independent,
    )


# The average of the heads


def attend_averaged(attention: Attention, x: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x, x, x)  # weights [N, L, S]: average_attn_weights=True is the default


def attend_each_head(attention: Attention, x: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x, x, x, average_attn_weights=False)  # weights [N, H, L, S]


OF_LAYER, OPPOSITE = "this layer", "two heads that cancel out"


@pitfall(
    "The average of the heads is taken for what the layer does",
    ("everything uniform", "wrong shape", "wrong numbers, no error"),
    "By default nn.MultiheadAttention returns the mean over heads. It is a picture and no step of the computation: two heads that look "
    "at opposite places average to a map that looks nowhere, and the average times the values is not the output.",
    "Pass average_attn_weights=False and look at [N, H, L, S]. Where one map is needed, show beside it how far the heads are from it.",
    (Knob("heads", OF_LAYER, "Which heads are averaged.", choices=(OF_LAYER, OPPOSITE)),),
)
def averaged_heads(bench: Bench, heads: str) -> Experiment:
    bench = _opposite_heads() if heads == OPPOSITE else bench
    bench.needs(tokens=2, heads=2)
    attention, x = bench.module(), bench.x
    output, weights = (t.detach() for t in attend_each_head(attention, x))  # [N, L, E], [N, H, L, S]
    average = weights.mean(dim=1)  # [N, L, S]
    head = int((weights[0] - average[0]).abs().amax(dim=(1, 2)).argmax())
    query, key = divmod(int((weights[0, head] - average[0]).abs().argmax()), weights.shape[-1])
    trace = attend(bench.layer, Batch(bench.tokens))
    assert trace.out_proj is not None  # as the layer is known
    weight, bias = trace.out_proj
    shared = np.einsum("nls,nhsd->nlhd", average.numpy(), trace.v).reshape(output.shape) @ weight.T  # [N, L, E]
    shared = shared if bias is None else shared + bias
    off = float(np.abs(shared - output.numpy()).max())
    names = bench.names[0]
    in_head, in_average = weights[0, head, query, key].item(), average[0, query, key].item()
    return Experiment(
        (
            Map(f"average of {weights.shape[1]} heads", average[0].numpy(), names, names),
            Map(f"head {head}", weights[0, head].numpy(), names, names),
        ),
        (
            Number("shape of the weights", str(list(average.shape)), str(list(weights.shape))),
            Number(f"query {query} reads key {key}", f"{in_average:.6f}", f"{in_head:.6f} in head {head}"),
            Number("largest output made with these weights", f"{np.abs(shared).max():.4f}", f"{output.abs().max():.4f}"),
            Number("off from the layer's output by", f"{off:.4f}", "0"),
        ),
        f"Query {query} gives key {key} {in_head:.6f} in head {head} and {in_average:.6f} on average; the average in every head's "
        f"place gives an output that is off by up to {off:.4f}.",
        Version(attend_averaged, (partial(attend_averaged, attention), attention, x)),
        Version(attend_each_head, (partial(attend_each_head, attention), attention, x)),
        checks.check_weights_make_the_output,
    )


def _opposite_heads() -> Bench:
    """E 2, H 2: one head looks at tokens of the same sign, the other at those of the other; their average is 1/8 everywhere."""
    signs = np.array([1, -1, 1, 1, -1, -1, 1, -1], np.float32)
    wq, wkv = np.array([[2, 0], [-2, 0]], np.float32), np.array([[1, 0], [1, 0]], np.float32)
    weights = {
        "in_proj_weight": np.concatenate([wq, wkv, wkv]),
        "in_proj_bias": np.zeros(6, np.float32),
        "out_proj.weight": np.eye(2, dtype=np.float32),
        "out_proj.bias": np.zeros(2, np.float32),
    }
    tokens = np.stack([signs, np.zeros(8, np.float32)], axis=-1)[None]  # [1, 8, 2]
    return Bench(Layer.from_state_dict(weights, 2), tokens, (tuple("+" if sign > 0 else "−" for sign in signs),))


# Heads split by reshape


def split_by_reshape(x: Tensor, num_heads: int) -> Tensor:
    N, L, E = x.shape
    return x.reshape(N, num_heads, L, E // num_heads)  # the right shape, and the wrong numbers


def split_and_transpose(x: Tensor, num_heads: int) -> Tensor:
    N, L, E = x.shape
    return x.reshape(N, L, num_heads, E // num_heads).transpose(1, 2)  # [N, L, H, D] → [N, H, L, D]


@pitfall(
    "Heads split by reshape without transpose",
    ("wrong numbers, no error",),
    "reshape(N, H, L, D) reads the numbers of [N, L, E] in the order of memory: a head gets whole tokens cut into pieces instead of its "
    "columns of every token. All shapes fit, and rows sum to 1.",
    "Split the last axis first, [N, L, H, D], then swap L and H. Going back, swap first and then join H and D.",
)
def heads_split_by_reshape(bench: Bench) -> Experiment:
    bench.needs(tokens=2, heads=2)
    H = bench.layer.num_heads
    trace = attend(bench.layer, Batch(bench.tokens))
    assert trace.scale is not None  # as the layer is known
    q, k = (torch.tensor(t).transpose(1, 2).flatten(2) for t in (trace.q, trace.k))  # [N, L, E]
    found = []
    for split in (split_by_reshape, split_and_transpose):
        heads = split(q, H), split(k, H)  # [N, H, L, D] each
        found.append((heads[0] @ heads[1].mT * trace.scale).softmax(dim=-1)[0, 0].numpy())  # [L, S]
    names = bench.names[0]
    off = float(np.abs(found[0] - found[1]).max())
    shape = f"{list(trace.q.shape)}"
    return Experiment(
        (Map("split by reshape: head 0", found[0], names, names), Map("split and transposed: head 0", found[1], names, names)),
        (
            Number("shape of q", shape, shape),
            Number("sums of rows", _sums(found[0]), _sums(found[1])),
            Number("largest error of a weight", f"{off:.4f}", "0"),
        ),
        f"Shapes and sums are the same; weights are off by up to {off:.4f}.",
        Version(split_by_reshape, (partial(split_by_reshape, num_heads=H), q)),
        Version(split_and_transpose, (partial(split_and_transpose, num_heads=H), q)),
        checks.check_shuffled_tokens_stay_whole,
    )


def _sums(weights: Float[np.ndarray, "... S"]) -> str:
    sums = weights.sum(axis=-1, dtype=np.float64)
    return f"{sums.min():.4f} to {sums.max():.4f}"
