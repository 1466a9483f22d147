"""What the shipped models were trained to do: sequences drawn from a seed, the right answers, and where a head would have to look.

Answers and roles follow from the sequence alone, so that a typed one has them too.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import TypeAlias

    from jaxtyping import Bool, Int

    Tokens: TypeAlias = Int[np.ndarray, "N L"]
    Draw: TypeAlias = Callable[[np.random.Generator, int], Tokens]

PAD, BOS, REVERSE, SHIFT = "<pad>", "<bos>", "reverse", "shift"
LETTERS = tuple(string.ascii_lowercase)
UNASKED = -1  # the answer where none is asked for
TRAINING, HELD_OUT, SHOWN = range(3)  # each draws from a stream of its own, whatever the seed


@dataclass(frozen=True)
class Task:
    """Sequences of numbers into ``vocabulary``, at most ``length`` long. The first token is one of ``openings`` where there are
    any, and stands nowhere else. ``answers`` [A] names what is asked at each position.

    ``draw(rng, N)`` gives tokens [N, length], ints. ``targets(tokens)`` gives the right answers [N, L, A], ints, UNASKED where none
    is asked for. ``roles(tokens)`` maps the name of a part that a head can play to [N, L, S] bool, True for the keys that a head
    which plays it reads; rows without any do not count.
    """

    vocabulary: tuple[str, ...]
    openings: tuple[str, ...]
    length: int
    causal: bool
    answers: tuple[str, ...]
    draw: Draw
    targets: Callable[[Tokens], Int[np.ndarray, "N L A"]]
    roles: Callable[[Tokens], dict[str, Bool[np.ndarray, "N L S"]]]

    @property
    def body(self) -> tuple[str, ...]:
        """The texts that may follow the opening, padding left out."""
        return tuple(text for text in self.vocabulary if text not in (*self.openings, PAD))

    def examples(self, stream: int, seed: int, N: int) -> Int[np.ndarray, "N length"]:
        """tokens [N, length] from one of the streams TRAINING, HELD_OUT and SHOWN: the same for the same seed."""
        return self.draw(np.random.default_rng((stream, seed)), N)

    def padding(self, tokens: Tokens) -> Bool[np.ndarray, "N L"] | None:
        """[N, L] bool, True for padding; None where there is none."""
        padded = tokens == self.vocabulary.index(PAD) if PAD in self.vocabulary else np.zeros(tokens.shape, bool)
        return padded if padded.any() else None


def repeated(length: int, least: int, most: int) -> Draw:
    """The draw of sequences that repeat a block of ``least`` to ``most`` distinct letters to the end, token 0 before it."""

    def draw(rng: np.random.Generator, N: int) -> Int[np.ndarray, "N length"]:
        period = rng.integers(least, most + 1, (N, 1))  # [N, 1]
        block = rng.permuted(np.tile(np.arange(1, len(LETTERS) + 1), (N, 1)), axis=1)  # [N, 26]
        letters = np.take_along_axis(block, np.arange(length - 1) % period, axis=1)  # [N, length − 1]
        return np.pad(letters, [(0, 0), (1, 0)])  # [N, length]

    return draw


def earlier_equal(tokens: Tokens) -> Bool[np.ndarray, "N L L"]:
    """[N, L, L] bool: True where the key is an earlier position that holds the query's own token."""
    return np.tril(tokens[:, :, None] == tokens[:, None, :], -1)


def continued(tokens: Tokens) -> Int[np.ndarray, "N L 1"]:
    """[N, L, 1]: what followed the query's token when it stood there last; UNASKED where it is new."""
    equal = earlier_equal(tokens)  # [N, L, L]
    latest = equal.shape[-1] - 1 - equal[..., ::-1].argmax(axis=-1)  # [N, L]
    seen = equal.any(axis=-1)  # [N, L]
    follower = np.take_along_axis(tokens, np.where(seen, latest + 1, 0), axis=1)  # [N, L]
    return np.where(seen, follower, UNASKED)[..., None]


def induction_roles(tokens: Tokens) -> dict[str, Bool[np.ndarray, "N L L"]]:
    """ "previous token" counts in the first copy alone: later, a head may find the same letter earlier too."""
    equal = earlier_equal(tokens)  # [N, L, L]
    new = ~equal.any(axis=-1, keepdims=True)  # [N, L, 1]
    before = np.eye(tokens.shape[1], k=-1, dtype=bool)  # [L, L]
    after_equal = np.pad(equal, [(0, 0), (0, 0), (1, 0)])[..., :-1]  # [N, L, L]
    return {"previous token": new & before, "induction": after_equal}


def reversed_or_shifted(length: int, least: int) -> Draw:
    """The draw of ``least`` letters or more, padded at the right, whose first token says what to do with the others."""

    def draw(rng: np.random.Generator, N: int) -> Int[np.ndarray, "N length"]:
        count = rng.integers(least, length, (N, 1))  # [N, 1]
        letters = rng.integers(3, 3 + len(LETTERS), (N, length - 1))
        letters = np.where(np.arange(length - 1) < count, letters, 0)  # [N, length − 1]
        return np.concatenate([rng.integers(1, 3, (N, 1)), letters], axis=1)  # [N, length]

    return draw


def order_sources(tokens: Tokens) -> Int[np.ndarray, "N L"]:
    """[N, L]: the position whose token is the answer, the mirrored one or the next, the first after the last; else UNASKED."""
    count, place = (tokens[:, 1:] != 0).sum(axis=1, keepdims=True), np.arange(tokens.shape[1])  # [N, 1], [L]
    source = np.where(tokens[:, :1] == 1, count + 1 - place, place % np.maximum(count, 1) + 1)  # [N, L]
    return np.where((place > 0) & (place <= count), source, UNASKED)


def reordered(tokens: Tokens) -> Int[np.ndarray, "N L 1"]:
    source = order_sources(tokens)  # [N, L]
    return np.where(source == UNASKED, UNASKED, np.take_along_axis(tokens, np.maximum(source, 0), axis=1))[
        ..., None
    ]  # [N, L, 1]


def order_roles(tokens: Tokens) -> dict[str, Bool[np.ndarray, "N L L"]]:
    reads = order_sources(tokens)[..., None] == np.arange(tokens.shape[1])  # [N, L, L]
    return {name: reads & (tokens[:, :1, None] == first) for name, first in ((REVERSE, 1), (SHIFT, 2))}


def neighbours(tokens: Tokens) -> Int[np.ndarray, "N L 2"]:
    """[N, L, 2]: the tokens before and after; UNASKED at both ends."""
    answers = np.full((*tokens.shape, 2), UNASKED)
    answers[:, 1:-1, 0], answers[:, 1:-1, 1] = tokens[:, :-2], tokens[:, 2:]
    return answers


def neighbour_roles(tokens: Tokens) -> dict[str, Bool[np.ndarray, "N L L"]]:
    N, L = tokens.shape
    inner = np.pad(np.ones((L - 2, 1), bool), [(1, 1), (0, 0)])  # [L, 1]
    sides = {"token before": -1, "token after": 1}
    return {name: np.broadcast_to(inner & np.eye(L, k=side, dtype=bool), (N, L, L)) for name, side in sides.items()}


TASKS = {
    "induction": Task((BOS, *LETTERS), (BOS,), 32, True, ("next",), repeated(32, 8, 15), continued, induction_roles),
    "reverse-or-shift": Task(
        (PAD, REVERSE, SHIFT, *LETTERS),
        (REVERSE, SHIFT),
        16,
        False,
        ("answer",),
        reversed_or_shifted(16, 6),
        reordered,
        order_roles,
    ),
    "look-both-ways": Task(
        LETTERS[:10],
        (),
        12,
        False,
        ("before", "after"),
        lambda rng, N: rng.integers(0, 10, (N, 12)),
        neighbours,
        neighbour_roles,
    ),
}
