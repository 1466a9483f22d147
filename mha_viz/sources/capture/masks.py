"""Masks of tensors, seen again as the rules that made them: causal, a window, padded keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from torch.utils.weak import WeakTensorKeyDictionary

from mha_viz.core.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from mha_viz.core.rules import Change

FILLED = -1e30  # for a number that scores are set to: nothing is left of them beside it, in any dtype, and twice it is finite
BLOCK = 1024  # queries whose rows of a dense mask are looked at together


T = TypeVar("T")


class Memory:
    """What was made of tensors, as long as they live and are not changed: models give one mask to many layers."""

    def __init__(self) -> None:
        self.made = WeakTensorKeyDictionary()

    def of(self, tensor: Tensor, key: Hashable, make: Callable[[], T]) -> T:
        """``make()``, or what it gave for this ``tensor`` and ``key`` before."""
        known: dict[Hashable, T] = self.made.setdefault(tensor, {})
        key = version(tensor), key
        if key not in known:
            known[key] = make()
        return known[key]


def version(tensor: Tensor) -> int | None:
    """How often ``tensor`` was changed in place; None where PyTorch does not count."""
    return None if tensor.is_inference() else tensor._version


def split(mask: Float[Tensor, ...]) -> tuple[Bool[Tensor, ...], Float[Tensor, ...] | None]:
    """(hidden, bias) of a mask of floats that is added to the scores: bool, and finite numbers or None.

    −∞ hides, and so does the dtype's minimum, which many models add in its place (half of it, since a bias may come on top).
    """
    hidden = mask <= torch.finfo(mask.dtype).min / 2  # the axes of mask
    bias = mask.masked_fill(hidden, 0)
    return hidden, bias if bias.any() else None


def of_floats(mask: Float[Tensor, "#N #H #L #S"], L: int, S: int, extra: int = 0, absorbs: bool = False) -> tuple[Mask, ...]:
    """The Masks, by −∞ and by a number, of a ``mask`` [1|N, 1|H, 1|L, 1|S] of floats that is added to the scores.

    ``absorbs`` says that nothing is left of a score beside such a number, as where both are added in float16.
    """
    hidden, bias = split(mask)
    if bias is not None and bias.shape[3] < S:
        bias = None  # what is the same for all keys changes no weight
    never = mask == -torch.inf
    by_number = hidden & ~never
    if not by_number.any():
        return (symbolic(L, S, hidden, bias, extra),)
    number = FILLED if absorbs else float(mask[by_number].max())
    found = replace(symbolic(L, S, hidden if not never.any() else by_number, bias, extra), number=number)
    return (found, symbolic(L, S, never, None, extra)) if never.any() else (found,)


def symbolic(
    L: int,
    S: int,
    hidden: Bool[Tensor, "#N #H #L #S"] | None = None,
    bias: Float[Tensor, "#N #H #L #S"] | None = None,
    extra: int = 0,
) -> Mask:
    """The Mask of ``hidden`` (bool) and ``bias`` (floats), tensors [1|N, 1|H, 1|L, 1|S] or None, as rules where they are such.

    One that is causal, a window, padding of keys or several of these together is kept as that, and takes no matrix. What is the
    same for all items, heads or queries is kept once. ``hidden`` and ``bias`` do not cover the ``extra`` columns.
    """
    mask = Mask(L, S, extra)
    if bias is not None:
        bias = _once(bias.expand(*bias.shape[:3], S))  # [1|N, 1|H, 1|L, S]
        mask = replace(mask, bias=_numpy(bias))
    if hidden is None or not hidden.any():
        return mask
    cells = _once(hidden.expand(*hidden.shape[:3], S)).cpu().numpy()  # [1|N, 1|H, 1|L, S]
    if cells.shape[1] == 1:
        if cells.shape[2] == 1:
            return replace(mask, padded=cells[:, 0, 0])  # [1|N, S]
        for rules in _candidates(cells[:, 0]):
            found = replace(mask, **rules)
            if np.array_equal(np.broadcast_to(replace(found, extra=0).hidden(), cells.shape), cells):
                return found
    return replace(mask, dense=cells)


def together(masks: Sequence[Mask], dtype: torch.dtype) -> Mask:
    """One Mask that hides what any of these hides, and adds what they all add; they are of one call, whose q has this ``dtype``.

    Where only one of them hides, or all of them by −∞, its rules stay rules. So they do where no query loses all its keys; else
    the numbers that hide in that query's row are added up, as the model adds them.
    """
    hiding = [mask for mask in masks if not replace(mask, bias=None).empty]
    found = joined(masks)
    if not np.isfinite([mask.number for mask in hiding]).any() or not row_without_key(found):
        return found
    if len(hiding) == 1:
        return replace(found, number=hiding[0].number)
    kept = np.float64 if dtype == torch.float64 else np.float32
    with np.errstate(over="ignore"):
        added = reduce(np.add, (np.where(joined([mask]).hidden(), kept(mask.number), kept(0)) for mask in hiding))
    spared = found.hidden().all(axis=-1, keepdims=True)  # [1|N, 1|H, L, 1]
    hidden = np.where(spared, np.isneginf(added), found.hidden())  # [1|N, 1|H, L, S]
    bias = np.where(spared & ~hidden, added, 0) + (0 if found.bias is None else found.bias)
    return Mask(found.num_queries, found.num_keys, found.extra, dense=hidden, bias=bias.astype(kept))


def joined(masks: Sequence[Mask], number: float = -np.inf) -> Mask:
    """One Mask that hides by ``number`` what any of these hides, and adds what they all add."""
    first, *others = (replace(mask, number=number) for mask in masks)
    for mask in others:
        windows = [m.window for m in (first, mask) if m.window is not None]
        first = replace(
            first,
            causal=first.causal or mask.causal,
            window=min(windows, default=None),  # the narrower one hides all that the other does
            padded=_either(first.padded, mask.padded),
            dense=_either(first.dense, mask.dense),
            bias=mask.bias if first.bias is None else first.bias if mask.bias is None else first.bias + mask.bias,
        )
    return first


def restricted(mask: Mask, items: Sequence[int], rows: int) -> Mask:
    """The Mask of the ``items`` (indices) and of the first ``rows`` queries; where it is causal, of the keys that these may see."""
    S = keys_seen(mask, rows)

    def part(array: np.ndarray | None) -> np.ndarray | None:
        if array is None:
            return None
        array = array[items] if len(array) > 1 else array
        array = array[:, :, :rows] if array.ndim == 4 and array.shape[2] > 1 else array
        return np.concatenate([array[..., :S], array[..., mask.num_keys :]], axis=-1)  # what covers extra columns still does

    return replace(mask, num_queries=rows, num_keys=S, padded=part(mask.padded), dense=part(mask.dense), bias=part(mask.bias))


def keys_seen(mask: Mask, rows: int) -> int:
    """How many keys the first ``rows`` queries may see, as far as the causal rule says; all of them without it."""
    later = mask.num_queries - rows
    return max(mask.num_keys - later, 1) if mask.causal else mask.num_keys


def with_sink(mask: Mask, sink: Float[Tensor, "#N #H #L 1"]) -> Mask:
    """The Mask with one extra column, whose score is 0, to which ``sink`` [1|N, 1|H, 1|L, 1] is added."""
    column, bias = _numpy(_once(sink)), np.zeros((1, 1, 1, 1), np.float32) if mask.bias is None else mask.bias
    N, H, L = (max(sizes) for sizes in zip(column.shape[:3], bias.shape[:3], strict=True))
    bias = np.broadcast_to(bias, (N, H, L, mask.num_keys))
    return replace(mask, extra=1, bias=np.concatenate([bias, np.broadcast_to(column, (N, H, L, 1))], axis=-1))


def for_items(mask: Mask, N: int) -> Mask:
    """The Mask with its padding told for each of N items, as a Mask holds it."""
    return mask if mask.padded is None else replace(mask, padded=np.broadcast_to(mask.padded, (N, mask.num_keys)))


def row_without_key(mask: Mask) -> bool:
    """True where some query of some item sees no key: told from the rules, without a matrix where there is none."""
    if mask.extra or mask.empty:
        return False
    L, S = mask.num_queries, mask.num_keys
    if mask.dense is not None:
        mask = replace(mask, number=-np.inf)
        return any(mask.hidden(start, min(start + BLOCK, L)).all(axis=-1).any() for start in range(0, L, BLOCK))
    position = np.arange(L) + S - L  # [L]
    window = S + L if mask.window is None else mask.window
    first = np.clip(position - window + 1, 0, S)
    stop = np.clip(position + 1 if mask.causal else position + window, 0, S)
    padded = np.zeros((1, S), bool) if mask.padded is None else mask.padded
    real = np.pad(np.cumsum(~padded, axis=1), [(0, 0), (1, 0)])  # [N, S + 1], real keys before each place
    return bool((real[:, stop] <= real[:, first]).any())


def _candidates(hidden: Bool[np.ndarray, "#N L S"]) -> Iterator[Change]:
    """Rules, fewest first, that might hide exactly ``hidden`` [1|N, L, S]: those that its corners suggest."""
    _, L, S = hidden.shape
    ahead = np.arange(S) - (np.arange(L) + S - L)[:, None]  # [L, S]
    seen = ~hidden.all(axis=0)  # [L, S], by the query of some item
    if not seen.any():
        return
    causal = not (seen & (ahead > 0)).any()
    unseen = hidden.all(axis=1)  # [1|N, S]
    padded = unseen if unseen.any() else None
    reach = int(np.abs(ahead[seen]).max()) + 1
    for window in (None, reach):
        if causal or window is not None:
            yield {"causal": causal, "window": window, "padded": padded}


def _once(tensor: Tensor) -> Tensor:
    """``tensor`` with its first three axes of size 1 where all along them is the same."""
    for axis in range(3):
        first = tensor.narrow(axis, 0, 1)
        if tensor.shape[axis] > 1 and (tensor.stride(axis) == 0 or bool((tensor == first).all())):
            tensor = first
    return tensor


def _numpy(tensor: Tensor) -> np.ndarray:
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).cpu().numpy()


def _either(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    return other if one is None else one if other is None else one | other
