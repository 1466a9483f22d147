"""Do heads of a trained model specialise? Three kinds of relationship, each looked for in all heads of MiniLM and measured on sentences
that had no part in the choice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mha_viz.core.rules import one_of

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.recording import Recording


MODEL, COUNT = "all-MiniLM-L6-v2", 50  # sentences that choose the head, and as many others that score it
PEOPLE = ("dog", "cat", "king", "farmer", "doctor", "child", "bird", "horse", "teacher", "soldier", "baker", "queen")
LOOKS = ("old", "small", "happy", "tired", "young", "clever", "quiet", "angry")
DEEDS = ("saw", "chased", "followed", "helped", "watched", "found", "liked", "heard")
KINDS = (
    ("apple", "pear", "banana", "cherry"),
    ("hammer", "saw", "drill", "knife"),
    ("dog", "cat", "horse", "cow"),
    ("red", "green", "blue", "yellow"),
    ("piano", "violin", "flute", "guitar"),
    ("chair", "table", "bed", "sofa"),
)


Sentence: TypeAlias = tuple[list[str], list[int], list[int]]  # words, places of queries, places of their keys


@dataclass(frozen=True)
class Relationship:
    """The head that reads a relationship best: the mean weight from the asking word to the word it belongs to, ``score``, and to another
    word of the same sentence drawn at random, ``shuffled``; both over ``count`` sentences other than those that chose the head."""

    layer: int
    head: int
    score: float
    shuffled: float
    count: int


def deed(rng: np.random.Generator) -> Sentence:
    """(words, places of queries, places of their keys): the object asks for its verb."""
    who, whom = rng.choice(PEOPLE, 2, replace=False)
    one, other = rng.choice(LOOKS, 2, replace=False)
    return f"the {one} {who} {rng.choice(DEEDS)} the {other} {whom} .".split(), [6], [3]


def neighbour(rng: np.random.Generator) -> Sentence:
    """Each word but the first asks for the one before it."""
    words, _, _ = deed(rng)
    return words, list(range(1, len(words))), list(range(len(words) - 1))


def kind(rng: np.random.Generator) -> Sentence:
    """The last noun asks for the one before that is of its kind; another is not."""
    own, other = rng.choice(len(KINDS), 2, replace=False)
    one, same = rng.choice(KINDS[own], 2, replace=False)
    nouns = [one, rng.choice(KINDS[other])]
    place = int(rng.integers(2))
    first, second = nouns if place == 0 else nouns[::-1]
    return f"the {first} , the {second} and the {same} .".split(), [7], [(1, 4)[place]]


RELATIONSHIPS = {"positional": neighbour, "syntactic": deed, "semantic": kind}


def sentences(name: str, seed: int) -> list[Sentence]:
    """COUNT of what RELATIONSHIPS draws."""
    rng = np.random.default_rng(seed)
    return [RELATIONSHIPS[one_of("relationship", name, tuple(RELATIONSHIPS))](rng) for _ in range(COUNT)]


def read(lines: Iterable[str]) -> Recording:
    """The Recording of these sentences, a word a token."""
    from mha_viz.sources.pretrained import Pretrained, pretrained

    return pretrained(Pretrained(MODEL, "\n".join(lines), join=True))


@cache
def relationship(name: str) -> Relationship:
    """The Relationship ``name``. Raises Wrong where the model is not installed."""
    chosen, _ = _weights(name, 1)
    layer, head = (int(i) for i in np.unravel_index(chosen.argmax(), chosen.shape))
    score, shuffled = (weights[layer, head] for weights in _weights(name, 2))
    return Relationship(layer, head, float(score), float(shuffled), COUNT)


def _weights(name: str, seed: int) -> tuple[Float[np.ndarray, "layers H"], Float[np.ndarray, "layers H"]]:
    """([layers, H] mean weight on the right words, the same on words drawn at random among the others)."""
    drawn, rng = sentences(name, seed), np.random.default_rng((seed, 99))
    traces = read([" ".join(words) for words, _, _ in drawn]).traces
    maps = np.stack([trace.probabilities for trace in traces], axis=1)  # [N, layers, H, L, S], [CLS] first
    right, other = [], []
    for n, (words, queries, keys) in enumerate(drawn):
        for query, key in zip(queries, keys, strict=True):
            others = [place for place in range(len(words)) if place not in (query, key)]
            right.append(maps[n, :, :, query + 1, key + 1])
            other.append(maps[n, :, :, query + 1, rng.choice(others) + 1])
    return np.mean(right, axis=0), np.mean(other, axis=0)
