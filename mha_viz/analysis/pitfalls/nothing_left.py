"""Queries with no key left: what PyTorch answers, where they come from, and what they do to gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from mha_viz.analysis.pitfalls import checks
from mha_viz.analysis.pitfalls.masks import causal_mask, maps_of
from mha_viz.analysis.pitfalls.pitfall import Experiment, Knob, Number, Version, pitfall
from mha_viz.core.decimals import prose

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor, nn

    from mha_viz.analysis.pitfalls.pitfall import Attention, Bench


# Every key masked


def attend_all_padding(attention: Attention, x: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x, x, x, key_padding_mask=padding, average_attn_weights=False)


def attend_around_empty(attention: Attention, x: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
    empty = padding.all(dim=1)  # [N] items without a single token: they read anything, and give zeros
    output, weights = attention(x, x, x, key_padding_mask=padding & ~empty[:, None], average_attn_weights=False)
    return output.masked_fill(empty[:, None, None], 0.0), weights.masked_fill(empty[:, None, None, None], 0.0)


@pitfall(
    "Every key of an item is masked",
    ("NaN", "works in eval only", "answer changes with batch"),
    "Softmax over no key has no answer: exp(−∞) sums to 0, and 0 / 0 is NaN. PyTorch answers the same call in more ways than one. With "
    "need_weights=True the rows are NaN; with need_weights=False they are zero, so that the output is the bias of out_proj; on the fused "
    "path (eval, no gradients) they can be NaN again.",
    "Leave empty items out of the batch, or let them read something and discard what comes out. add_zero_attn=True gives every query a "
    "key that is always there.",
    (Knob("padded", 8, "Padded tokens of item 0, up to all of them.", 0, 8),),
)
def every_key_masked(bench: Bench, padded: int) -> Experiment:
    attention, x = bench.module(), bench.x
    N, L = x.shape[:2]
    padded = min(padded, L)
    padding = (torch.arange(L) >= L - padded) & (torch.arange(N) == 0)[:, None]  # [N, L]
    found = [attend_as(attention, x, padding) for attend_as in (attend_all_padding, attend_around_empty)]
    answers, right = _three_ways(attention, x, padding), _three_ways(attention, x, padding & ~padding.all(dim=1)[:, None])
    if padded == L:
        right = ["zeros, by decision"] * 3 if len(set(right)) == 1 else right
    hidden = padding[0].expand(L, L).numpy()
    if padded == L:
        sentence = (
            f"The same call, made in three ways, for item 0: with weights {answers[0]}; without weights {answers[1]}; without weights and "
            f"gradients {answers[2]}."
        )
    else:
        sentence = f"{L - padded} of {L} keys are left to item 0: all ways of calling agree. Pad all {L}."
    tried = padding | (torch.arange(N) == 0)[:, None]
    return Experiment(
        maps_of(bench, ("key padding as it is", "around what is empty"), [weights for _, weights in found], (hidden, hidden)),
        (
            Number("need_weights=True", answers[0], right[0]),
            Number("need_weights=False", answers[1], right[1]),
            Number("need_weights=False, eval, no gradients", answers[2], right[2]),
        ),
        sentence,
        Version(attend_all_padding, (lambda x, padding: attend_all_padding(attention, x, padding)[0], x, tried)),
        Version(attend_around_empty, (lambda x, padding: attend_around_empty(attention, x, padding)[0], x, tried)),
        checks.check_output_is_finite,
    )


def _three_ways(
    attention: nn.MultiheadAttention,
    x: Float[Tensor, "N L E"],
    padding: Bool[Tensor, "N L"],
    attn_mask: Bool[Tensor, "L L"] | None = None,
    rows: slice = slice(None),
) -> list[str]:
    """What these rows of item 0 come out as with weights, without them, and without them on the fused path, in words."""
    masks = {"key_padding_mask": padding, "attn_mask": attn_mask}
    with_weights = attention(x, x, x, **masks)[0]
    without = attention(x, x, x, **masks, need_weights=False)[0]
    with torch.no_grad():
        fused = attention(x, x, x, **masks, need_weights=False)[0]
    return [_told(output[0, rows].detach(), attention.out_proj.bias) for output in (with_weights, without, fused)]


def _told(output: Float[Tensor, "L E"], bias: Float[Tensor, " E"] | None) -> str:
    """What an item's output [L, E] is, in words."""
    if output.isnan().all():
        return "NaN"
    bias = torch.zeros(output.shape[-1]) if bias is None else bias.detach()
    if torch.equal(output, bias.expand_as(output)):
        return f"the bias of out_proj{'' if bias.any() else ', here zeros'}"
    return f"numbers up to {output.abs().max():.4f}"


# Causal with left padding


def pad_left(count: int, L: int, padded: int) -> Tensor:
    return (torch.arange(L) < padded) & (torch.arange(count) == 0)[:, None]  # [N, L], item 0 begins with padding


def pad_right(count: int, L: int, padded: int) -> Tensor:
    return (torch.arange(L) >= L - padded) & (torch.arange(count) == 0)[:, None]  # [N, L], item 0 ends with padding


@pitfall(
    "Causal with left padding",
    ("NaN", "answer changes with batch"),
    "The causal mask leaves query i the keys 0 to i, and left padding hides the first ones: a padded query has nothing left but padding. "
    "Its row is NaN. It means nothing itself, but a next layer reads it as a key, where 0 · NaN is NaN in every row.",
    "Pad on the right for training. Where left padding is needed, as in generating, let padded queries see themselves, and never use "
    "their rows.",
    (Knob("padded", 3, "Padded tokens of item 0.", 1, 7),),
)
def causal_with_left_padding(bench: Bench, padded: int) -> Experiment:
    bench.needs(tokens=2)
    attention, x = bench.module(), bench.x
    N, L, H = *x.shape[:2], attention.num_heads
    padded = min(padded, L - 1)
    causal, paddings = causal_mask(L), [pad(N, L, padded) for pad in (pad_left, pad_right)]
    found = [
        attention(x, x, x, attn_mask=causal, key_padding_mask=padding, average_attn_weights=False)[1] for padding in paddings
    ]
    lost = [int(w[0].isnan().any(dim=-1).sum()) for w in found]
    off = []
    for w, real in zip(found, (slice(padded, L), slice(L - padded)), strict=True):
        alone = x[:1, real]
        cut = attention(alone, alone, alone, attn_mask=causal_mask(L - padded), average_attn_weights=False)[1]
        off.append((w[0, :, real, real] - cut[0]).abs().max().item())
    rows = "rows are" if lost[0] != 1 else "row is"
    answers = _three_ways(attention, x, paddings[0], causal, slice(padded))
    return Experiment(
        maps_of(bench, ("padded on the left", "padded on the right"), found, [(causal | p[0]).numpy() for p in paddings]),
        (
            Number("undefined rows of item 0", f"{lost[0]} of {L * H}", f"{lost[1]} of {L * H}"),
            Number("real rows differ from those without padding by", f"{prose(off[0], '.1g')}", f"{prose(off[1], '.1g')}"),
            Number("an undefined row comes out, need_weights=True", answers[0], "there is none"),
            Number("need_weights=False", answers[1], "there is none"),
            Number("need_weights=False, eval, no gradients", answers[2], "there is none"),
        ),
        f"{padded} padded queries × {H} heads: {lost[0]} {rows} undefined. The real rows are unharmed in this layer "
        f"(off by {prose(off[0], '.1g')} from the run without padding).",
        Version(pad_left, (causal, paddings[0])),
        Version(pad_right, (causal, paddings[1])),
        checks.check_every_query_sees_a_key,
    )


# One bad row and all gradients


def loss_of_real_rows(attention: Attention, x: Tensor, padding: Tensor) -> Tensor:
    L = x.shape[1]
    mask = torch.ones(L, L, dtype=torch.bool).triu(1)
    output, _ = attention(x, x, x, attn_mask=mask, key_padding_mask=padding)
    return output[~padding].square().mean()  # the undefined rows are not in the loss


def loss_with_own_key(attention: Attention, x: Tensor, padding: Tensor) -> Tensor:
    L = padding.shape[1]
    hidden = torch.ones(L, L, dtype=torch.bool).triu(1) | padding[:, None]  # [N, L, S]
    hidden &= ~torch.eye(L, dtype=torch.bool)  # every query sees at least itself
    output, _ = attention(x, x, x, attn_mask=hidden.repeat_interleave(attention.num_heads, dim=0))
    return output[~padding].square().mean()


@pitfall(
    "One undefined row makes every gradient NaN",
    ("NaN",),
    "Leaving NaN rows out of the loss does not help: their gradient is 0 there, and backwards through the softmax 0 · NaN is NaN. It "
    "reaches q, k and v of every token that the row could have read, and in the weights everything. The loss looks healthy; the step "
    "after it, all weights are NaN.",
    "Give every query a key before the softmax, its own for instance; then leave its row out of the loss.",
    (Knob("padded", 3, "Padded tokens at the left of item 0.", 0, 7),),
)
def one_bad_row_and_all_gradients(bench: Bench, padded: int) -> Experiment:
    bench.needs(tokens=2)
    attention, x = bench.module(), bench.x
    N, L = x.shape[:2]
    padded = min(padded, L - 1)
    padding = pad_left(N, L, padded)
    losses, broken, size = [], [], 0
    for loss_of in (loss_of_real_rows, loss_with_own_key):
        attention.zero_grad()
        loss = loss_of(attention, x, padding)
        loss.backward()
        grads = [p.grad for p in attention.parameters() if p.grad is not None]
        losses.append(loss.item())
        broken.append(sum(int((~grad.isfinite()).sum()) for grad in grads))
        size = sum(grad.numel() for grad in grads)
    causal = causal_mask(L)
    own = (causal | padding[0]) & ~torch.eye(L, dtype=torch.bool)
    found = [
        attention(x[:1], x[:1], x[:1], attn_mask=mask, average_attn_weights=False)[1] for mask in (causal | padding[0], own)
    ]
    return Experiment(
        maps_of(
            bench,
            ("causal, padded on the left", "and every query sees itself"),
            found,
            ((causal | padding[0]).numpy(), own.numpy()),
        ),
        (
            Number("loss over real rows", f"{losses[0]:.6f}", f"{losses[1]:.6f}"),
            Number("gradients that are not finite", f"{broken[0]:,} of {size:,}", f"{broken[1]:,} of {size:,}"),
        ),
        f"The loss is {losses[0]:.4f} one way and {losses[1]:.4f} the other; {broken[0]:,} of {size:,} gradients are not finite, "
        f"against {broken[1]:,}.",
        Version(loss_of_real_rows, (lambda: loss_of_real_rows(attention, x, padding), attention)),
        Version(loss_with_own_key, (lambda: loss_with_own_key(attention, x, padding), attention)),
        checks.check_gradients_are_finite,
    )
