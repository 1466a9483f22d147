"""Which keys a query may not see, kept as rules: a dense matrix is made only for the rows that somebody asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@dataclass(frozen=True, eq=False)
class Mask:
    """Every mask of one call, symbolic. True means "may not attend", as in ``nn.MultiheadAttention``.

    ``num_queries`` L and ``num_keys`` S count what the input holds; ``extra`` (0 to 2) columns of ``add_bias_kv``,
    ``add_zero_attn`` or an attention sink follow the S real keys and are always visible.

    With L ≠ S, ``causal`` is aligned bottom-right: the last query stands at the last key, so that a query sees the past of its
    own position. A ``window`` of w lets a query see w keys backwards, itself included; when not causal, as far forwards too.

    ``padded`` [N, S] bool hides keys, ``dense`` [1|N, 1|H, 1|L, S] bool hides pairs. ``bias`` [1|N, 1|H, 1|L, S], finite, is
    added to the scaled scores: a −inf in a person's mask is True in ``dense`` and 0 in ``bias``, which may cover the extra columns too.

    ``number`` is what the model adds where a key is hidden. A finite one, such as the smallest of a dtype, hides a key only while
    the query has others: of a query that would lose all its keys none is hidden, and each gets the number.

    >>> Mask(2, 3, causal=True).hidden()[0, 0].astype(int).tolist()  # the last query stands at the last key
    [[0, 0, 1], [0, 0, 0]]
    >>> Mask(3, 3, window=2).hidden()[0, 0].astype(int).tolist()
    [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    """

    num_queries: int
    num_keys: int
    extra: int = 0
    causal: bool = False
    window: int | None = None
    padded: Bool[np.ndarray, "N S"] | None = None
    dense: Bool[np.ndarray, "#N #H #L S"] | None = None
    bias: Float[np.ndarray, "#N #H #L S"] | None = None
    number: float = -np.inf

    @property
    def empty(self) -> bool:
        """True where every query sees every key unchanged."""
        return not self.causal and self.window is None and self.padded is None and self.dense is None and self.bias is None

    def alone(self, item: int, head: int | None = None) -> Mask:
        """The Mask of one batch item, N = 1, and of one head of it, H = 1, or of all where None."""

        def one(array: np.ndarray) -> np.ndarray:  # an axis of 1 stands for all
            n, h = min(item, len(array) - 1), min(head or 0, array.shape[1] - 1)
            return array[n : n + 1, h : h + 1 if head is not None else None]

        padded = None if self.padded is None else self.padded[item : item + 1]
        dense, bias = (None if array is None else one(array) for array in (self.dense, self.bias))
        return replace(self, padded=padded, dense=dense, bias=bias)

    def reach(self, start: int | np.ndarray, stop: int | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(first, last): of the real keys, causal and window let queries ``start`` to ``stop`` see ``first`` to ``last`` alone.

        Whole numbers or arrays of them; each of these keys is seen by one of the queries, as far as these two rules go.
        """
        shift, everywhere = self.num_keys - self.num_queries, self.num_keys + self.num_queries
        behind = everywhere if self.window is None else self.window - 1
        ahead = 0 if self.causal else behind
        first = np.minimum(np.maximum(start + shift - behind, 0), self.num_keys)
        return first, np.maximum(np.minimum(stop + shift + ahead, self.num_keys), first)

    @np.errstate(invalid="ignore")  # ∞ − ∞ flows through, as it does in PyTorch
    def apply(self, scores: Float[np.ndarray, "rows columns"], start: int, first: int) -> None:
        """Add −inf to ``scores`` where a query may not attend, and the bias: in place, and of one head alone.

        Their rows are queries from ``start`` on, their columns real keys from ``first`` on.
        """
        stop, last = start + scores.shape[0], first + scores.shape[1]
        spared = self.spared(start, stop)[0, 0, :, 0] if self.may_spare else np.zeros(stop - start, bool)  # [rows]
        unhidden = scores[spared]  # [spared rows, columns]
        position = np.arange(start, stop)[:, None] + self.num_keys - self.num_queries  # [rows, 1]
        nearest, farthest = int(position[0, 0]), int(position[-1, 0])

        def hide(
            rule: np.ufunc, limit: np.ndarray, low: int, high: int
        ) -> None:  # among the keys from low to high, the only ones that the rule parts
            low, high = (min(max(key, first), last) for key in (low, high))
            some = scores[:, low - first : high - first]
            np.add(some, -np.inf, out=some, where=rule(np.arange(low, high), limit))

        if self.causal:
            hide(np.greater, position, nearest + 1, last)
        if self.window is not None:
            hide(np.less_equal, position - self.window, first, farthest - self.window + 1)
            if not self.causal:
                hide(np.greater_equal, position + self.window, nearest + self.window, last)
        if self.padded is not None:
            scores += np.where(self.padded[0, first:last], np.float32(-np.inf), np.float32(0))  # [columns]
        if self.dense is not None:
            np.add(scores, -np.inf, out=scores, where=_rows(self.dense, start, stop)[0, 0, :, first:last])
        scores[spared] = unhidden + scores.dtype.type(self.number if spared.any() else 0)
        if self.bias is not None:
            scores += _rows(self.bias, start, stop)[0, 0, :, first:last]

    @property
    def may_spare(self) -> bool:
        """True where a query that would lose all its keys keeps them."""
        return not self.extra and np.isfinite(self.number)

    def spared(self, start: int = 0, stop: int | None = None) -> Bool[np.ndarray, "#N #H rows 1"]:
        """The queries from ``start`` to ``stop`` that would lose all keys, and keep them."""
        keyless: np.ndarray = np.all(self._ruled_out(start, stop), axis=-1, keepdims=True)  # [1|N, 1|H, rows, 1]
        return keyless & self.may_spare

    def settled(self) -> Mask:
        """The same Mask as one that hides by −∞: what it spares is told row by row, where it spares any."""
        if not (self.may_spare and self.spared().any()):
            return replace(self, number=-np.inf)
        return Mask(self.num_queries, self.num_keys, dense=self.hidden(), bias=self.added())

    def hidden(self, start: int = 0, stop: int | None = None) -> Bool[np.ndarray, "#N #H rows S+extra"]:
        """True where queries ``start`` to ``stop`` may not attend."""
        hidden = self._ruled_out(start, stop)
        if self.may_spare:
            hidden = hidden & ~hidden.all(axis=-1, keepdims=True)
        return self._with_extra(hidden, False)

    def _ruled_out(self, start: int, stop: int | None) -> Bool[np.ndarray, "#N #H rows S"]:
        """What the rules hide, whatever hides it."""
        stop = self.num_queries if stop is None else stop
        hidden = np.zeros((1, 1, stop - start, self.num_keys), bool)
        if self.causal or self.window is not None:
            position = np.arange(start, stop)[:, None] + self.num_keys - self.num_queries  # [rows, 1]
            key = np.arange(self.num_keys)  # [S]; compared, and not subtracted, which would take eight bytes a cell
            if self.causal:
                hidden |= key > position
            if self.window is not None:
                hidden |= key <= position - self.window
                hidden |= key >= position + self.window
        if self.padded is not None:
            hidden = hidden | self.padded[:, None, None, :]  # [N, 1, rows, S]
        if self.dense is not None:
            hidden = hidden | _rows(self.dense, start, stop)  # [N, 1|H, rows, S]
        return hidden

    def added(self, start: int = 0, stop: int | None = None) -> Float[np.ndarray, "#N #H #rows S+extra"] | None:
        """What is added to the scaled scores of these queries; None where nothing is."""
        added = None if self.bias is None else _rows(self.bias, start, stop)  # [1|N, 1|H, 1|rows, S]
        spared = self.spared(start, stop) if self.may_spare else np.False_  # [1|N, 1|H, rows, 1]
        if spared.any():
            number = np.where(spared, np.float64(self.number), 0)  # [1|N, 1|H, rows, 1]
            added = np.broadcast_to(number, (*number.shape[:3], self.num_keys)) if added is None else added + number
        return None if added is None else self._with_extra(added, 0)

    def _with_extra(self, array: np.ndarray, value: float) -> np.ndarray:
        if array.shape[3] == self.num_keys + self.extra:
            return array
        return np.pad(array, [(0, 0)] * 3 + [(0, self.extra)], constant_values=value)  # [..., S] → [..., S + extra]


def _rows(array: np.ndarray, start: int, stop: int | None) -> np.ndarray:
    return array if array.shape[2] == 1 else array[:, :, start:stop]  # [1|N, 1|H, 1|rows, S]
