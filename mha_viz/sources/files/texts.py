"""Token lists: texts that name rows and columns, one list per batch item."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.json_text import parse_json
from mha_viz.core.layer import Layer
from mha_viz.core.rules import Wrong
from mha_viz.recording import Recording
from mha_viz.sources.files.found import Question
from mha_viz.sources.synthetic import PAD, word_vector

if TYPE_CHECKING:
    from jaxtyping import Bool, Float32

    from mha_viz.sources.files.found import Answers, TokenLists

LINES, SPACES = "a token a line", "split at white space"
EMBED_DIM, NUM_HEADS, SEED = 128, 8, 7  # the tutorial's
MOST, MOST_ALONE = 2**18, 2**14  # tokens of all batch items, padding counted: as names, and read by an untrained layer
LARGEST_INPUT = 2**26  # bytes of the vectors that tokens become


Lists: TypeAlias = tuple[tuple[str, ...], ...]  # the tokens of each batch item
Split: TypeAlias = tuple[Lists, Lists | None]  # of the queries, and of the keys where they are others


@dataclass(frozen=True, eq=False)
class Texts:
    """The content of a token list. ``readings`` are (queries, keys or None) by the way to split the text; one where all agree."""

    readings: dict[str, Split]
    kind: ClassVar[Literal["tokens"]] = "tokens"

    @property
    def holds(self) -> tuple[str, ...]:
        return tuple(
            f"{how[0].upper()}{how[1:]}: {len(queries)} item{'' if len(queries) == 1 else 's'} "
            f"of {', '.join(str(len(item)) for item in queries[:8])}{'…' if len(queries) > 8 else ''} tokens."
            for how, (queries, _) in self.readings.items()
        )

    def ask(self, answers: Mapping[str, object]) -> tuple[Question[str], ...]:
        if len(self.readings) == 1:
            return ()
        text = "Some lines hold several words. Is each line one token, or each word?"
        return (Question("split", text, tuple(self.readings), next(iter(self.readings))),)

    def lists(self, split: str | None = None) -> Split:
        """(queries, keys or None), each a tuple of texts per batch item: what ``open_found`` of another file takes as tokens."""
        return self.readings[split or next(iter(self.readings))]

    def open(self, name: str, answers: Answers, tokens: TokenLists | None, key_tokens: TokenLists | None) -> Recording:
        """These tokens, read by a layer that nobody has trained: equal texts get equal vectors, shorter items are padded."""
        if tokens is not None or key_tokens is not None:
            raise Wrong(
                "tokens", tokens, "are what this file holds: they name the rows and columns of maps, weights or a recording."
            )
        queries, keys = self.lists(answers.get("split"))
        if keys is not None and len(keys) != len(queries):
            raise Wrong("keys", len(keys), f"must be as many items as the queries, {len(queries)}.")
        for items in (queries, *(() if keys is None else (keys,))):
            _check_count(name, [len(item) for item in items], MOST_ALONE)
        query, query_tokens, query_padding = vectors_of(queries, EMBED_DIM)
        key, key_tokens, key_padding = (None, None, query_padding) if keys is None else vectors_of(keys, EMBED_DIM)
        batch = Batch(query, key, None, key_padding, None, query_padding, query_tokens=query_tokens, key_tokens=key_tokens)
        trace = attend(Layer.random(EMBED_DIM, NUM_HEADS, seed=SEED), batch, later=True)
        note = (
            f"The tokens of {name}, read by an untrained layer: nn.MultiheadAttention({EMBED_DIM}, {NUM_HEADS}), seed {SEED}, "
            "without positions. Its weights are chance."
        )
        return Recording((trace,), (note,))


def look_at_text(name: str, text: str) -> Texts:
    """The Texts in a text or JSON file.

    Text: tokens split at white space or one a line, a blank line between batch items. JSON: a list of texts, a list of such lists,
    or {"queries": …, "keys": …}. Raises Wrong for anything else.
    """
    if text.lstrip()[:1] in ("[", "{"):
        try:
            held = parse_json("file", text, name)
        except Wrong:
            if str(name).lower().endswith(".json"):
                raise
        else:
            return Texts({"JSON": _from_json(name, held)})
    items = _blocks(text)
    if not items:
        raise Wrong("file", name, "holds no token: nothing but white space.")
    _check_count(name, [len(items)])  # before words are told apart
    _check_count(name, [sum(1 for _ in re.finditer(r"\S+", item)) for item in items])
    words = tuple(tuple(item.split()) for item in items)
    lines = tuple(tuple(line for line in item.split("\n") if line.strip()) for item in items)
    if all(len(line.split()) == 1 for item in lines for line in item):
        return Texts({LINES: (words, None)})
    if all(len(item) == 1 for item in lines):
        return Texts({SPACES: (words, None), LINES: (lines, None)})
    return Texts({LINES: (lines, None), SPACES: (words, None)})


def _blocks(text: str) -> list[str]:
    """The parts of a text that blank lines part, those left out that hold nothing."""
    parts: list[str] = []
    lines: list[str] = []
    for line in [*text.replace("\r\n", "\n").split("\n"), ""]:
        if line.strip():
            lines.append(line)
        elif lines:
            parts.append("\n".join(lines))
            lines = []
    return parts


def _check_count(name: str, lengths: Sequence[int], most: int = MOST) -> None:
    """Raises Wrong for batch items of these ``lengths`` that would be too many tokens once the shorter ones are padded."""
    padded = len(lengths) * max(lengths)
    if padded > most:
        rule = f"holds {len(lengths):,} batch items, and the longest has {max(lengths):,} tokens: padded to one length they are {padded:,}"
        how = (
            ""
            if most == MOST
            else " by an untrained layer; with maps, weights or a recording open, they name its rows and columns"
        )
        raise Wrong("file", name, f"{rule}; at most {most:,} are read{how}.")


def _from_json(name: str, held: object) -> Split:
    if isinstance(held, dict):
        unknown = held.keys() - {"tokens", "queries", "keys"}
        queries = held.get("queries", held.get("tokens"))
        if unknown or queries is None:
            raise Wrong(
                "file", name, f'must be token lists: [["the", "cat"]] or {{"queries": …, "keys": …}}; it has {sorted(held)}.'
            )
        return _lists(name, queries), None if held.get("keys") is None else _lists(name, held["keys"])
    return _lists(name, held), None


def _lists(name: str, held: object) -> Lists:
    items = held if isinstance(held, list) else []
    if items and all(isinstance(token, str) for token in items):
        items = [items]
    fits = items and all(isinstance(item, list) and item for item in items)
    if not fits or not all(isinstance(token, str) for item in items for token in item):
        raise Wrong("file", name, 'must be token lists, one a batch item, none empty: [["the", "cat"], ["a", "dog"]].')
    _check_count(name, [len(item) for item in items])
    return tuple(map(tuple, items))


def vectors_of(items: TokenLists, width: int) -> tuple[Float32[np.ndarray, "N L E"], Lists, Bool[np.ndarray, "N L"] | None]:
    """(vectors [N, L, width], labels, padded [N, L] bool or None) of token lists: equal texts get equal vectors, shorter items are
    padded on the right. Raises Wrong where the vectors would take more than LARGEST_INPUT."""
    named = [tuple(map(str, item)) for item in items]
    length = max(map(len, named))
    if 4 * len(named) * length * width > LARGEST_INPUT:
        rule = f"at {width} numbers each may be {LARGEST_INPUT // (4 * width):,}, padding counted: {len(named)} × {length} are too many."
        raise Wrong("tokens", len(named) * length, rule)
    labels = tuple(item + (PAD,) * (length - len(item)) for item in named)
    known = {token: word_vector(token, width) for item in labels for token in item}
    vectors = np.array([[known[token] for token in item] for item in labels])  # [N, L, E]
    hidden = np.array([[place >= len(item) for place in range(length)] for item in named])  # [N, L]
    return vectors, labels, hidden if hidden.any() else None
