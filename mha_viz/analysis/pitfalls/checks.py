"""Checks to paste into one's own tests. Each takes what it is told to check, uses PyTorch alone, and names no other function."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def check_heads_hold_every_column(
    split_heads: Callable[[Tensor, int], list[Tensor] | tuple[Tensor, ...]], q: Tensor, num_heads: int
) -> None:
    """split_heads(q, num_heads) → the heads' columns of q [..., E], one tensor per head."""
    try:
        heads = split_heads(q, num_heads)
    except (ValueError, AssertionError):
        return  # refused, as nn.MultiheadAttention refuses it
    held = torch.cat(list(heads), dim=-1)
    assert held.shape == q.shape, f"{q.shape[-1]} columns went in, {held.shape[-1]} belong to a head"


def check_items_are_independent(attend: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """attend(x) → output [N, L, E] of x [N, L, E], N ≥ 2: what happens in the last item moves no other."""
    changed = x.clone()
    changed[-1] += 1
    moved = (attend(changed) - attend(x))[:-1].abs().max().item()
    assert moved < 1e-5, f"a change of the last item moves another one by {moved:.2g}"


def check_weights_make_the_output(
    attend: Callable[[Tensor], tuple[Tensor, Tensor]], attention: torch.nn.MultiheadAttention, x: Tensor
) -> None:
    """attend(x) → (output [N, L, E], weights) of an nn.MultiheadAttention, batch first: the output is made from these weights."""
    output, weights = attend(x)
    E, H = attention.embed_dim, attention.num_heads
    weights = weights if weights.dim() == 4 else weights.unsqueeze(1)  # an average stands in for every head
    bias = attention.in_proj_bias
    v = F.linear(x, attention.in_proj_weight[2 * E :], None if bias is None else bias[2 * E :])
    v = v.unflatten(-1, (H, E // H)).transpose(1, 2)  # [N, H, S, D]
    rebuilt = attention.out_proj((weights @ v).transpose(1, 2).flatten(2))  # [N, L, E]
    off = (rebuilt - output).abs().max().item()
    assert off < 1e-5, f"these weights give another output, off by {off:.2g}: they are not the heads' own"


def check_future_moves_nothing(attend: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """attend(x) → output [N, L, E], causal: the last token of x [N, L, E] moves no output before it."""
    changed = x.clone()
    changed[:, -1] += 1
    moved = (attend(changed) - attend(x))[:, :-1].abs().max().item()
    assert moved < 1e-5, f"the last token moves an output before it by {moved:.2g}"


def check_padding_is_not_read(attend: Callable[[Tensor, Tensor], Tensor], x: Tensor, keep: Tensor) -> None:
    """attend(x, keep) → output [N, L, E]; keep [N, L] bool is False for padding. What padding holds moves no real output."""
    changed = torch.where(keep.unsqueeze(-1), x, x + 1)
    moved = (attend(changed, keep) - attend(x, keep))[keep].abs().max().item()
    assert moved < 1e-6, f"padding moves a real output by {moved:.2g}"


def check_masks_reach_their_items(attend: Callable[[Tensor, Tensor], Tensor], x: Tensor, hidden: Tensor) -> None:
    """attend(x, hidden) → weights [N, H, L, S]; hidden [N, L, S] bool, one mask per item, the same for each of its heads."""
    weights = attend(x, hidden)
    for item in range(len(x)):
        leak = weights[item][:, hidden[item]].max().item() if hidden[item].any() else 0.0
        assert leak == 0, f"item {item} puts {leak:.2g} on a key that its mask hides"
        alone = attend(x[item : item + 1], hidden[item : item + 1])[0]
        off = (weights[item] - alone).abs().max().item()
        assert off < 1e-5, f"item {item} alone has other weights than in the batch, by {off:.2g}"


def check_output_is_finite(attend: Callable[[Tensor, Tensor], Tensor], x: Tensor, padding: Tensor) -> None:
    """attend(x, padding) → output [N, L, E]; padding [N, L] bool, with an item that is nothing but padding."""
    broken = (~attend(x, padding).isfinite()).sum().item()
    assert broken == 0, f"{broken} numbers of the output are not finite"


def check_every_query_sees_a_key(attn_mask: Tensor, key_padding_mask: Tensor) -> None:
    """attn_mask [L, S] and key_padding_mask [N, S], bool, True = may not attend."""
    hidden = attn_mask | key_padding_mask[:, None]  # [N, L, S]
    lost = hidden.all(dim=-1).nonzero().tolist()
    assert not lost, f"no key is left for (item, query) {', '.join(str(tuple(place)) for place in lost)}"


def check_gradients_are_finite(loss_of: Callable[[], Tensor], attention: torch.nn.Module) -> None:
    """loss_of() → a loss to train ``attention`` by: every gradient that it gives is finite."""
    attention.zero_grad()
    loss_of().backward()
    broken = [name for name, p in attention.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
    assert not broken, f"not finite: the gradients of {', '.join(broken)}"


def check_rows_sum_to_one(weights_of: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """weights_of(x) → weights [..., L, S]: every row is a distribution over keys."""
    off = (weights_of(x).double().sum(dim=-1) - 1).abs().max().item()
    assert off < 1e-5, f"a row is off by {off:.2g} from a sum of 1"


def check_last_query_alone(attend: Callable[[Tensor, Tensor, Tensor], Tensor], q: Tensor, k: Tensor, v: Tensor) -> None:
    """attend(q, k, v) → output [..., L, D], causal: the newest query sees the same alone, as in decoding, as among the others."""
    together, alone = attend(q, k, v)[..., -1, :], attend(q[..., -1:, :], k, v)[..., -1, :]
    off = (together - alone).abs().max().item()
    assert off < 1e-5, f"alone the newest query has another output, off by {off:.2g}"
    whole = F.scaled_dot_product_attention(q[..., -1:, :], k, v)[..., -1, :]  # it is the last: every key is its past
    off = (together - whole).abs().max().item()
    assert off < 1e-5, f"the newest query does not see every key: off by {off:.2g}"


def check_window_sees(hidden: Tensor, window: int) -> None:
    """hidden [L, S] bool of a causal sliding window, True = may not attend: a query sees ``window`` keys, itself among them."""
    seen = (~hidden).sum(dim=-1)  # [L]
    expected = torch.arange(1, len(hidden) + 1).clamp(max=window)
    assert seen.equal(expected), f"keys seen by each query: {seen.tolist()}, expected {expected.tolist()}"


def check_sharp_scores_make_sharp_weights(weights_of: Callable[[Tensor], Tensor]) -> None:
    """weights_of(scores) → weights [..., L, S]: a key that is 20 above all others takes the whole row."""
    weights = weights_of(torch.tensor([[0.0, 0.0, 0.0, 20.0]]))
    most = weights.max().item()
    assert most > 0.99, f"the only key that matters gets {most:.2g}"


def check_large_scores_stay_finite(weights_of: Callable[[Tensor], Tensor]) -> None:
    """weights_of(scores) → weights [..., L, S]: adding a number to all scores of a row changes nothing, however large it is."""
    scores = torch.tensor([[0.0, 1.0, 2.0]])
    torch.testing.assert_close(
        weights_of(scores + 1000), weights_of(scores), msg="scores that are 1000 higher give other weights"
    )


def check_scale(weights_of: Callable[[Tensor, Tensor], Tensor], q: Tensor, k: Tensor) -> None:
    """weights_of(q, k) → weights [..., L, S] of q [..., L, D] and k [..., S, D]: PyTorch's, which scales by 1/√D."""
    seen = torch.eye(k.shape[-2]).expand(*k.shape[:-1], -1)  # values that let the weights be seen
    off = (weights_of(q, k) - F.scaled_dot_product_attention(q, k, seen)).abs().max().item()
    assert off < 1e-5, f"weights are off by {off:.2g} from those at scale 1/√{k.shape[-1]} = {1 / math.sqrt(k.shape[-1]):.4g}"


def check_shuffled_tokens_stay_whole(split_heads: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """split_heads(x) → [N, H, L, D] of x [N, L, E]: with the tokens in reverse, each head holds the same rows in reverse."""
    off = (split_heads(x.flip(1)) - split_heads(x).flip(2)).abs().max().item()
    assert off == 0, f"a head mixes numbers of different tokens: off by {off:.2g}"


def check_hidden_keys_get_nothing(weights_of: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype = torch.float16) -> None:
    """weights_of(scores, hidden) → weights [..., L, S]; hidden is bool, True = may not attend. A row with no key left may be NaN."""
    scores = torch.tensor([[-20000.0, 0.0], [0.0, 0.0]], dtype=dtype)
    hidden = torch.tensor([[False, True], [True, True]])
    given = weights_of(scores, hidden).nan_to_num(0)[hidden].max().item()
    assert given == 0, f"a hidden key gets {given:.2g}"


def check_padding_moves_no_mean(pool: Callable[[Tensor, Tensor], Tensor], output: Tensor, keep: Tensor) -> None:
    """pool(output, keep) → [N, E] of output [N, L, E]; keep [N, L] bool is False for padding, which may hold anything."""
    changed = torch.where(keep.unsqueeze(-1), output, output + 1)
    moved = (pool(changed, keep) - pool(output, keep)).abs().max().item()
    assert moved < 1e-6, f"padded queries move the mean by {moved:.2g}"


def check_named_key_matters_most(most_important: Callable[[Tensor, Tensor], Tensor], weights: Tensor, v: Tensor) -> None:
    """most_important(weights, v) → a key; weights [S], v [S, D]. Leaving it out moves the output at least as far as any other."""
    effect = []
    for key in range(len(weights)):
        left = weights.clone()
        left[key] = 0
        effect.append((left / left.sum() @ v - weights @ v).norm().item())
    named = int(most_important(weights, v))
    told = f"without key {named} the output moves by {effect[named]:.3g}, without another by {max(effect):.3g}"
    assert effect[named] > max(effect) - 1e-6, told
