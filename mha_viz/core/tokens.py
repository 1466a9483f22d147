"""Who asks and who is read: what the rows and the columns of a map stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.arrays import own
from mha_viz.core.rules import Shape, Wrong, listed
from mha_viz.core.sight import Sight

if TYPE_CHECKING:
    from jaxtyping import Bool, Int
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Parts:
    """Batch items that are parts of longer ones: ``kind`` is what each is, "shifted window", and ``whole`` what it is a part of, "image".

    ``places`` are N tuples of whole numbers: which whole it is a part of, and where it stands there, as (0, row, column).
    """

    kind: str
    whole: str
    places: tuple[tuple[int, ...], ...]

    def name(self, item: int) -> str:
        """What a part is called, by its place.

        >>> Parts("window", "image", ((0, 0, 0), (1, 0, 3))).name(1), Parts("block", "item", ((0, 3),)).name(0)
        ('window (0, 3) of image 1', 'block 3 of item 0')
        """
        whole, *at = self.places[item]
        place = ", ".join(map(str, at))
        return f"{self.kind} {place if len(at) == 1 else f'({place})'} of {self.whole} {whole}"

    def some(self, items: Iterable[int]) -> Parts:
        """The Parts that are these ``items``."""
        return Parts(self.kind, self.whole, tuple(self.places[item] for item in items))


@dataclass(frozen=True, eq=False)
class Tokens:
    """The rows and columns of one call's maps.

    ``queries`` and ``keys`` are N tuples of L and S texts, the last ``extra`` keys standing for columns that are no position
    (``add_bias_kv``, ``add_zero_attn``). ``query_padding`` is True for queries that are padding: they get rows like any
    other, which mean nothing. ``positions`` is the key at which each query stands, None where queries and keys are different
    sequences. ``sight`` says which cells or blocks of a longer map these rows and columns are, None where they are all. ``parts``
    say which part each batch item is, where a model parted its batch, as into windows; else None.
    """

    queries: tuple[tuple[str, ...], ...]
    keys: tuple[tuple[str, ...], ...]
    query_padding: Bool[np.ndarray, "N L"]
    extra: int = 0
    positions: Int[np.ndarray, " L"] | None = None
    sight: Sight | None = None
    parts: Parts | None = None

    @classmethod
    def of(
        cls,
        N: int,
        L: int,
        S: int,
        queries: Sequence[Sequence[str]] | None = None,
        keys: Sequence[Sequence[str]] | None = None,
        query_padding: ArrayLike | None = None,
        *,
        one_sequence: bool = True,
    ) -> Tokens:
        """The Tokens of N items of L queries and S keys, numbers where no texts are given.

        In ``one_sequence`` the last query stands at the last key, so that with fewer queries than keys, as in decoding with a
        cache, each stands at its own; the queries take the texts of the keys at which they stand. Raises Wrong for texts or
        padding that do not fit.

        >>> tokens = Tokens.of(1, 2, 3, keys=[["the", "cat", "sat"]])
        >>> tokens.queries, tokens.positions.tolist()
        ((('cat', 'sat'),), [1, 2])
        """
        keys = texts("key_tokens", keys if keys is not None or not one_sequence or L != S else queries, N, S)
        if queries is None and one_sequence and L <= S:
            queries = [item[S - L :] for item in keys]
        queries = texts("query_tokens", queries, N, L)
        padding = np.zeros((N, L), bool) if query_padding is None else np.asarray(query_padding)
        if padding.shape != (N, L) or padding.dtype != bool:
            rule = f"must be bool [N, L] = {(N, L)}."
            raise Wrong("query_padding", Shape(padding.shape), rule, [{"query_padding": Shape((N, L))}])
        return cls(queries, keys, own(padding), 0, np.arange(L) + S - L if one_sequence else None)

    def item_name(self, item: int) -> str:
        """What batch item ``item`` is called: "batch item 3", or "window (0, 3) of image 0"."""
        return f"batch item {item}" if self.parts is None else self.parts.name(item)

    def place(self, side: int, i: int) -> int:
        """Which query (side 0) or key (1) of the whole sequence row or column ``i`` is; of a block the one in its middle."""
        return i if self.sight is None else self.sight.middle(side, i)

    def seen(self, sight: Sight) -> Tokens:
        """The Tokens of what is in ``sight`` of these: of blocks, which are padding where all of their queries are, no positions."""
        queries, keys = (tuple(sight.names(side, item) for item in of) for side, of in enumerate((self.queries, self.keys)))
        padding = self.query_padding[:, slice(*sight.rows)]  # [N, rows in sight]
        padding = np.logical_and.reduceat(padding, sight.pool.starts(0)[:-1], axis=1)  # [N, rows]
        extra = max(0, sight.columns[1] - (len(self.keys[0]) - self.extra)) if sight.exact else 0
        positions = (
            self.positions[slice(*sight.rows)] - sight.columns[0] if sight.exact and self.positions is not None else None
        )
        return Tokens(queries, keys, own(padding), extra, positions, sight, self.parts)


def texts(argument: str, given: Sequence[Sequence[str]] | None, N: int, length: int) -> tuple[tuple[str, ...], ...]:
    """``given`` as N tuples of ``length`` texts; their numbers where None. Raises Wrong where they do not fit.

    >>> texts("key_tokens", None, N=1, length=3), texts("key_tokens", [["a", "b"]], N=1, length=2)
    ((('0', '1', '2'),), (('a', 'b'),))
    """
    if given is None:
        return (tuple(map(str, range(length))),) * N
    rule = 'must be one sequence of texts per batch item: (("the", "cat"), …).'
    items = listed(argument, given, rule)
    if any(isinstance(item, str) for item in items):
        raise Wrong(argument, given, rule)
    given = tuple(tuple(map(str, listed(argument, item, rule))) for item in items)
    counts = tuple(len(item) for item in given)
    if counts != (length,) * N:
        off = next(
            (f"item {n} has {count} names" for n, count in enumerate(counts) if count != length),
            f"{len(counts)} items are named",
        )
        rule = (
            f"must name {length} tokens for each of {N} batch item{'' if N == 1 else 's'}, and {off}. Crop the maps to the tokens that "
            "have names, or leave the names out: tokens are numbered then."
        )
        raise Wrong(argument, counts if len(counts) <= 4 else f"{len(counts)} items", rule)
    return given
