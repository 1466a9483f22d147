"""Masks that mean something else than was meant: the sense of True, numbers for bools, heads in the wrong order, hints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import torch

from mha_viz.analysis.pitfalls import checks
from mha_viz.analysis.pitfalls.pitfall import Experiment, Knob, Map, Number, Version, pitfall, verdict
from mha_viz.core.decimals import prose

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Bool, Float
    from torch import Tensor

    from mha_viz.analysis.pitfalls.pitfall import Attention, Bench


Padded: TypeAlias = "Callable[[Attention, Tensor, Tensor], tuple[Tensor, Tensor]]"


def causal_mask(L: int) -> Bool[Tensor, "L L"]:
    return torch.ones(L, L, dtype=torch.bool).triu(1)  # True above the diagonal: may not attend


def maps_of(
    bench: Bench,
    titles: Sequence[str],
    weights: Sequence[Float[Tensor, "N H L S"]],
    hidden: Sequence[Bool[np.ndarray, "L S"] | None] | None = None,
) -> tuple[Map, ...]:
    """Map per version: head 0 of item 0, of weights [N, H, L, S] each."""
    hidden = (None,) * len(weights) if hidden is None else hidden
    shown = [w.detach()[0, 0].float().numpy() for w in weights]
    return tuple(
        Map(title, w, bench.names[0][-w.shape[0] :], bench.names[0], mask)
        for title, w, mask in zip(titles, shown, hidden, strict=True)
    )


def future(weights: Float[Tensor, "... L S"]) -> tuple[float, int]:
    """The largest weight on a later key in weights [..., L, S], and how many rows hold no numbers."""
    later = weights.detach()[..., causal_mask(weights.shape[-1])].nan_to_num(0)
    return later.max().item(), int(weights.isnan().any(dim=-1).sum())


# True means the opposite


def attend_where_true(attention: Attention, x: Tensor) -> tuple[Tensor, Tensor]:
    L = x.shape[1]
    mask = torch.ones(L, L, dtype=torch.bool).tril()  # True = may attend
    return attention(x, x, x, attn_mask=mask, average_attn_weights=False)


def attend_before_itself(attention: Attention, x: Tensor) -> tuple[Tensor, Tensor]:
    L = x.shape[1]
    mask = torch.ones(L, L, dtype=torch.bool).triu(0)  # the diagonal as well
    return attention(x, x, x, attn_mask=mask, average_attn_weights=False)


def attend_causally(attention: Attention, x: Tensor) -> tuple[Tensor, Tensor]:
    L = x.shape[1]
    mask = torch.ones(L, L, dtype=torch.bool).triu(1)  # True = may not attend
    return attention(x, x, x, attn_mask=mask, average_attn_weights=False)


TRIL, TRIU = "tril(): what may be seen", "triu(0): the diagonal too"


@pitfall(
    "True means the opposite",
    ("sees the future", "NaN", "wrong numbers, no error"),
    "In nn.MultiheadAttention True in a mask means “may not attend”. In F.scaled_dot_product_attention, Keras and Flax True means “may "
    "attend”, and in the attention_mask of Hugging Face 1 means “keep”. All these masks have the same shape and type, so a mask for one "
    "is taken by the other: each query then sees exactly what it should not.",
    "Write the meaning into the name (hidden, keep), invert with ~ at the border, and test by changing a token that may not be seen.",
    (Knob("mask", TRIL, "The mask that is given to nn.MultiheadAttention for a causal one.", choices=(TRIL, TRIU)),),
)
def true_means_the_opposite(bench: Bench, mask: str) -> Experiment:
    bench.needs(tokens=2)
    attention, x = bench.module(), bench.x
    wrong = attend_where_true if mask == TRIL else attend_before_itself
    L = x.shape[1]
    given = torch.ones(L, L, dtype=torch.bool).tril() if mask == TRIL else torch.ones(L, L, dtype=torch.bool).triu()
    found = [attend_as(attention, x)[1] for attend_as in (wrong, attend_causally)]
    (leak, lost), (right_leak, right_lost) = map(future, found)
    rows = found[0].shape[0] * found[0].shape[1] * L
    what = f"puts up to {leak:.4f} on later keys" if leak else "hides each query's own key as well"
    return Experiment(
        maps_of(bench, (mask.split(":")[0], "triu(1)"), found, (given.numpy(), causal_mask(L).numpy())),
        (
            Number("largest weight on a later key", f"{leak:.4f}", f"{right_leak:.4f}"),
            Number("rows without a key (NaN)", f"{lost} of {rows}", f"{right_lost} of {rows}"),
        ),
        f"The mask {what}, and leaves {lost} of {rows} rows no key at all. PyTorch says nothing.",
        Version(wrong, (lambda x: wrong(attention, x)[0], x)),
        Version(attend_causally, (lambda x: attend_causally(attention, x)[0], x)),
        checks.check_future_moves_nothing,
    )


# Zeros and ones as floats


def attend_with_numbers(attention: Attention, x: Tensor, one: float = 1.0) -> tuple[Tensor, Tensor]:
    L = x.shape[1]
    mask = torch.ones(L, L).tril() * one  # float: added to the scores
    return attention(x, x, x, attn_mask=mask, average_attn_weights=False)


def attend_with_infinity(attention: Attention, x: Tensor) -> tuple[Tensor, Tensor]:
    L = x.shape[1]
    mask = torch.full((L, L), float("-inf")).triu(1)  # 0 where seen, −∞ where hidden
    return attention(x, x, x, attn_mask=mask, average_attn_weights=False)


@pitfall(
    "A float mask of zeros and ones",
    ("sees the future", "padding is read", "wrong numbers, no error"),
    "A mask of floats is added to the scores. 1 for “seen” and 0 for “hidden” hide nothing: they multiply a seen key's weight by "
    "e = 2.718 before the row is made to sum to 1. Larger numbers only leak less.",
    "Give bools. Where a float mask is needed, hold 0 for seen and −∞ for hidden; never multiply a mask by −∞, since 0 · −∞ is NaN.",
    (Knob("one", 1, "The number that stands for “seen”.", 1, 30),),
)
def float_mask_of_zeros_and_ones(bench: Bench, one: int) -> Experiment:
    bench.needs(tokens=2)
    attention, x = bench.module(), bench.x
    found = [attend_with_numbers(attention, x, one)[1], attend_with_infinity(attention, x)[1]]
    (leak, _), (right_leak, _) = map(future, found)
    first = [w.detach()[0, 0, 0, 1:].sum().item() for w in found]
    return Experiment(
        maps_of(bench, (f"0 and {one}, floats", "0 and −∞"), found, (None, causal_mask(x.shape[1]).numpy())),
        (
            Number("largest weight on a later key", f"{leak:.6f}", f"{right_leak:.6f}"),
            Number("query 0 of head 0 reads from the future", f"{first[0]:.1%}", f"{first[1]:.1%}"),
            Number(
                "a seen key is favoured by a factor of", f"e^{one} = {prose(torch.tensor(float(one)).exp().item(), '.4g')}", "∞"
            ),
        ),
        f"Query 0 may see itself alone, and takes {first[0]:.1%} from later keys. For equal tokens that would be "
        f"{(x.shape[1] - 1) / (torch.tensor(float(one)).exp().item() + x.shape[1] - 1):.1%}, whatever the weights.",
        Version(attend_with_numbers, (lambda x: attend_with_numbers(attention, x, one)[0], x)),
        Version(attend_with_infinity, (lambda x: attend_with_infinity(attention, x)[0], x)),
        checks.check_future_moves_nothing,
    )


# One for keep


def pad_with_bool(attention: Attention, x: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x, x, x, key_padding_mask=attention_mask.bool(), average_attn_weights=False)


def pad_with_float(attention: Attention, x: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x, x, x, key_padding_mask=attention_mask.float(), average_attn_weights=False)


def pad_where_zero(attention: Attention, x: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x, x, x, key_padding_mask=attention_mask == 0, average_attn_weights=False)


@pitfall(
    "An attention_mask with 1 for keep given as key_padding_mask",
    ("padding is read", "NaN", "wrong numbers, no error"),
    "Tokenizers write attention_mask with 1 for a token and 0 for padding; key_padding_mask wants True for padding. As .bool() it hides "
    "every token and shows the padding; as .float() it is added and hides nothing. Rows sum to 1 in both.",
    "Convert once, where the tokenizer's output enters: key_padding_mask = attention_mask == 0.",
    (
        Knob(
            "conversion",
            ".bool()",
            "How the tokenizer's mask is turned into a key_padding_mask.",
            choices=(".bool()", ".float()"),
        ),
        Knob("padded", 2, "Padded tokens at the end of item 0.", 1, 7),
    ),
)
def ones_for_keep(bench: Bench, conversion: str, padded: int) -> Experiment:
    bench.needs(tokens=2)
    attention, x = bench.module(), bench.x[:1]
    L = x.shape[1]
    padded = min(padded, L - 1)
    mask = torch.tensor([[1] * (L - padded) + [0] * padded])
    wrong = pad_with_bool if conversion == ".bool()" else pad_with_float
    found = [attend_as(attention, x, mask)[1] for attend_as in (wrong, pad_where_zero)]
    on_padding = [w.detach()[..., L - padded :].sum(dim=-1).mean().item() for w in found]
    hidden = (mask == 0).expand(L, L).numpy()
    given = ~hidden if conversion == ".bool()" else None

    def tried(attend_as: Padded) -> tuple[Callable[[Tensor, Tensor], Tensor], Tensor, Tensor]:
        return lambda x, keep: attend_as(attention, x, keep.long())[0], x, mask.bool()

    return Experiment(
        maps_of(bench, (f"attention_mask{conversion}", "attention_mask == 0"), found, (given, hidden)),
        (
            Number("of a row's weight, padding gets on average", f"{on_padding[0]:.1%}", f"{on_padding[1]:.1%}"),
            Number("keys that are hidden", "the tokens" if conversion == ".bool()" else "none", "the padding"),
        ),
        f"{padded} of {L} keys are padding, and get {on_padding[0]:.1%} of all weight. No error, and every row sums to 1.",
        Version(wrong, tried(wrong)),
        Version(pad_where_zero, tried(pad_where_zero)),
        checks.check_padding_is_not_read,
    )


# Masks per head in the wrong order


def repeat_masks(attention: Attention, x: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
    mask = hidden.repeat(attention.num_heads, 1, 1)  # item 0, item 1, …, item 0, item 1, …
    return attention(x, x, x, attn_mask=mask, average_attn_weights=False)


def interleave_masks(attention: Attention, x: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
    mask = hidden.repeat_interleave(attention.num_heads, dim=0)  # item 0 for each head, then item 1 for each head, …
    return attention(x, x, x, attn_mask=mask, average_attn_weights=False)


@pitfall(
    "Masks per item repeated for the heads in the wrong order",
    ("answer changes with batch", "padding is read", "wrong numbers, no error"),
    "A 3-D attn_mask is [N·H, L, S], and item n, head h is its row n·H + h. hidden.repeat(H, 1, 1) puts the items in turn: some heads of "
    "an item get the mask of another one. With one item both orders are the same, so a test of one item cannot see it.",
    "Use hidden.repeat_interleave(num_heads, dim=0), and test with two items whose masks differ.",
)
def head_masks_in_wrong_order(bench: Bench) -> Experiment:
    bench.needs(items=2, tokens=2, heads=2)
    attention, x = bench.module(), bench.x
    N, L, H = x.shape[0], x.shape[1], attention.num_heads
    lengths = [max(L - n, 1) for n in range(N)]  # item n hides its last n keys
    hidden = torch.stack([(torch.arange(L) >= length).expand(L, L) for length in lengths])  # [N, L, S]
    found = [attend_as(attention, x, hidden)[1].detach() for attend_as in (repeat_masks, interleave_masks)]  # [N, H, L, S]
    leaks = [torch.stack([w[n][:, :, lengths[n] :].sum(dim=-1).amax(dim=-1) for n in range(N)]) for w in found]  # [N, H]
    taken = [torch.stack([(w[n][:, :, : lengths[n]] == 0).any(dim=-1).any(dim=-1) for n in range(N)]) for w in found]
    each_item, each_head = tuple(map(str, range(N))), tuple(map(str, range(H)))
    titles = "repeat: most of a row on hidden keys", "repeat_interleave"
    maps = tuple(
        Map(title, leak.numpy(), each_item, each_head, rows="item", columns="head", quantity="on hidden keys")
        for title, leak in zip(titles, leaks, strict=True)
    )
    counts = [(int((leak > 0).sum()), int(lost.sum())) for leak, lost in zip(leaks, taken, strict=True)]
    return Experiment(
        maps,
        (
            Number("heads that read hidden keys", f"{counts[0][0]} of {N * H}", f"{counts[1][0]} of {N * H}"),
            Number("heads that lose keys they may read", f"{counts[0][1]} of {N * H}", f"{counts[1][1]} of {N * H}"),
        ),
        f"Item n hides its last n keys. Repeated in the wrong order, {counts[0][0]} of {N * H} heads read keys that are hidden from "
        f"them, and {counts[0][1]} lose keys that they may read.",
        Version(repeat_masks, (lambda x, hidden: repeat_masks(attention, x, hidden)[1], x, hidden)),
        Version(interleave_masks, (lambda x, hidden: interleave_masks(attention, x, hidden)[1], x, hidden)),
        checks.check_masks_reach_their_items,
    )


# The causal hint


def hint_without_mask(attention: Attention, x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():  # in eval mode this takes the fused path
        return attention(x, x, x, is_causal=True, average_attn_weights=False)


def hint_while_training(attention: Attention, x: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x, x, x, is_causal=True, average_attn_weights=False)


FUSED, TRAINING = "eval, without gradients", "with gradients, as in training"


@pitfall(
    "is_causal=True without a mask",
    ("sees the future", "works in eval only", "an error"),
    "is_causal of nn.MultiheadAttention is a hint that the attn_mask is causal, and no mask. With gradients PyTorch asks for the mask. "
    "In eval mode without gradients it takes its fused path (even number of heads) and attends to everything, without a word: what is "
    "refused in training gives answers in evaluation, and they are not causal.",
    "Always build the mask and pass it; leave the hint away. F.scaled_dot_product_attention is different: there is_causal=True masks.",
    (Knob("path", FUSED, "How the layer is called.", choices=(FUSED, TRAINING)),),
)
def causal_hint_without_mask(bench: Bench, path: str) -> Experiment:
    bench.needs(tokens=2)
    attention, x = bench.module(), bench.x
    L = x.shape[1]
    wrong = hint_without_mask if path == FUSED else hint_while_training
    said = verdict(wrong, attention, x)
    right = attend_causally(attention, x)
    (right_leak, _), hidden = future(right[1]), causal_mask(L).numpy()
    if said is None:
        found = wrong(attention, x)
        leak, _ = future(found[1])
        full = attention(x, x, x)[0].detach()
        same = "equals" if torch.allclose(found[0], full, atol=1e-5) else "differs from"
        maps = maps_of(bench, ("is_causal=True alone", "with the mask"), (found[1], right[1]), (None, hidden))
        leaks = f"{leak:.4f}"
        sentence = f"No error, and the output {same} the one without any mask: up to {leak:.4f} goes to later keys."
    else:
        maps = maps_of(bench, ("with the mask",), (right[1],), (hidden,))
        leaks, sentence = "no answer", f"PyTorch refuses: {said}"
    return Experiment(
        maps,
        (
            Number("largest weight on a later key", leaks, f"{right_leak:.4f}"),
            Number("PyTorch says", said or "nothing", "nothing"),
        ),
        sentence,
        Version(wrong, (lambda x: wrong(attention, x)[0], x)),
        Version(attend_causally, (lambda x: attend_causally(attention, x)[0], x)),
        checks.check_future_moves_nothing,
    )
