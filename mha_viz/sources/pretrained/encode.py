"""Texts as the tokens that a model reads: each with its own readable text, and the word that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mha_viz.core.rules import Wrong

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

    from mha_viz.sources.pretrained.library import NumbersOf, TokenizedText, Tokenizer
    from mha_viz.sources.pretrained.load import Loaded

DIGITS = 10  # of a word that may be the number of a token
T = TypeVar("T")
PAD = "<pad>"  # where the tokenizer has no name for it


@dataclass(frozen=True, eq=False)
class Encoded:
    """N texts as L tokens each, shorter ones padded at their end: a model counts positions from the first token.

    ``ids`` [N, L] and ``types`` [N, L] (which of two texts; None where the tokenizer does not tell) are what the model reads;
    ``padding`` and ``special`` [N, L] bool, special being what the tokenizer adds by itself; ``texts`` N tuples of L. ``words`` are
    per item the (first position, text) of each word, special tokens and padding standing for themselves.
    """

    ids: Int[np.ndarray, "N L"]
    types: Int[np.ndarray, "N L"] | None
    padding: Bool[np.ndarray, "N L"]
    special: Bool[np.ndarray, "N L"]
    texts: tuple[tuple[str, ...], ...]
    words: tuple[tuple[tuple[int, str], ...], ...]


def encode(loaded: Loaded, lines: Sequence[str], pairs: Sequence[str] = ()) -> Encoded:
    """The Encoded of these lines, each with its pair where there are any.

    There is padding enough that every item can be brought to the same number of words, as far as the model has positions. Raises
    Wrong for a text without a token or with more than the model can read, and for pairs where the tokenizer does not tell two texts
    apart.
    """
    tokenizer = loaded.tokenizer
    if tokenizer is None:
        return numbered(loaded, lines, pairs)
    if pairs and tokenizer.num_special_tokens_to_add(pair=True) == tokenizer.num_special_tokens_to_add(pair=False):
        rule = f"is for models that read two texts; {loaded.name} would read them as one, with nothing between."
        raise Wrong("pair", "\n".join(pairs), rule, [{"pair": None}])
    given = list(zip(lines, pairs, strict=True)) if pairs else [(line,) for line in lines]
    read = [tokenizer(*texts, return_offsets_mapping=True, return_special_tokens_mask=True) for texts in given]
    for texts, one in zip(given, read, strict=True):
        if all(one["special_tokens_mask"]):
            raise Wrong("text", texts[0], f"has a line of which {loaded.name}'s tokenizer leaves nothing: {texts[0]!r}.")
    words = [_words(one, texts) for one, texts in zip(read, given, strict=True)]
    most = max(map(len, words))
    counts = [len(one["input_ids"]) for one in read]
    _check_length(loaded, lines, pairs, read)
    L = max(count + most - len(item) for count, item in zip(counts, words, strict=True))
    L = max(*counts, min(L, loaded.positions or L))
    filler = _first(tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
    pad = _first(tokenizer.pad_token, PAD)

    def padded(key: NumbersOf, value: int) -> Int[np.ndarray, "N L"]:
        return np.array([one[key] + [value] * (L - len(one[key])) for one in read])  # [N, L]

    return Encoded(
        padded("input_ids", filler),
        padded("token_type_ids", 0) if "token_type_ids" in read[0] else None,
        padded("attention_mask", 0) == 0,
        padded("special_tokens_mask", 0) == 1,
        tuple(tuple(readable(tokenizer, one.tokens())) + (pad,) * (L - len(one.tokens())) for one in read),
        tuple((*item, *((place, pad) for place in range(count, L))) for item, count in zip(words, counts, strict=True)),
    )


def numbered(loaded: Loaded, lines: Sequence[str], pairs: Sequence[str] = ()) -> Encoded:
    """The Encoded of lines where there is no tokenizer: numbers as the tokens that they are, other words by the order in which they first
    appear. Raises Wrong for a number that is no token, for more words than there are tokens, and for pairs."""
    if pairs:
        rule = f"is for models that read two texts; {loaded.name} holds no tokenizer that could tell them apart."
        raise Wrong("pair", "\n".join(pairs), rule, [{"pair": None}])
    count = getattr(loaded.model.config, "vocab_size", None)
    if not count:
        raise Wrong("name", loaded.name, "holds no tokenizer, and no vocab_size in its configuration: it does not read text.")
    items = [line.split() for line in lines]
    words = dict.fromkeys(word for item in items for word in item)
    if all(word.isascii() and word.isdecimal() and len(word) < DIGITS for word in words):
        beyond = next((word for word in words if int(word) >= count), None)
        if beyond is not None:
            right = "\n".join(" ".join(str(min(int(word), count - 1)) for word in item) for item in items)
            raise Wrong("text", beyond, f"is no token of {loaded.name}, whose tokens are 0 to {count - 1}.", [{"text": right}])
        ids = {word: int(word) for word in words}
    elif len(words) > count:
        raise Wrong("text", f"{len(words)} different words", f"may hold {count}, the tokens of {loaded.name}.", [{"text": "0"}])
    else:
        ids = {word: number for number, word in enumerate(words)}
    L, most = max(map(len, items)), loaded.positions
    if most is not None and most < L:
        right = "\n".join(" ".join(item[:most]) for item in items)
        rule = f"comes to {L} tokens in a line, and {loaded.name} reads {most}."
        raise Wrong("text", "\n".join(lines), rule, [{"text": right}])
    texts = tuple(tuple(str(ids[word]) for word in item) + (PAD,) * (L - len(item)) for item in items)
    padding = np.array([[place >= len(item) for place in range(L)] for item in items])  # [N, L]
    read = np.array([[ids[word] for word in item] + [0] * (L - len(item)) for item in items])  # [N, L]
    return Encoded(read, None, padding, np.zeros_like(padding), texts, tuple(tuple(enumerate(item)) for item in texts))


def readable(tokenizer: Tokenizer, tokens: Sequence[str]) -> list[str]:
    """The tokens as texts: bytes as the letters that they are, and a space at the beginning as a space.

    Byte-level BPE (Radford et al., Language Models are Unsupervised Multitask Learners, 2019, section 2.2) writes each byte as a
    letter; where a token holds a part of a letter only, its bytes are spelled out, as in \\xf0. SentencePiece writes a space as ▁.
    What begins with ## goes on within a word, and stays so.
    """
    decoder = str(tokenizer.backend_tokenizer.decoder)
    whole = tokenizer.added_tokens_encoder
    if "ByteLevel" in decoder:
        table = _bytes_of_letters()

        def text(token: str) -> str:
            if not all(letter in table for letter in token):
                return token
            return bytes(table[letter] for letter in token).decode("utf-8", "backslashreplace")

    elif "▁" in decoder:

        def text(token: str) -> str:
            return token.replace("▁", " ")

    else:
        return list(tokens)
    return [token if token in whole else text(token) for token in tokens]


@cache
def _bytes_of_letters() -> dict[str, int]:
    """{letter: byte} of byte-level BPE: printable Latin-1 stands for itself, the other bytes, in order, for the letters from U+0100."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


def _words(one: TokenizedText, texts: Sequence[str]) -> list[tuple[int, str]]:
    """[(first position, text)] of the words of one item, special tokens standing for themselves."""
    words: list[int] = []
    spans: list[list[int] | str] = []  # [which text, from, to] of each word; a special token's own text
    span: list[int] = []  # of the last word
    tokens, offsets, of_word, of_text = one.tokens(), one["offset_mapping"], one.word_ids(), one.sequence_ids()
    before: tuple[int, int | None] | None = None
    for place, (start, end) in enumerate(offsets):
        side = of_text[place]
        if side is None or one["special_tokens_mask"][place]:
            words.append(place)
            spans.append(tokens[place])
            before = None
            continue
        text, here = texts[side], (side, of_word[place])
        between = text[span[2] : start] + text[start:end][:1] if before == here else " "
        if not any(map(str.isspace, between)):
            span[2] = end
        else:
            words.append(place)
            span = [side, start, end]
            spans.append(span)
        before = here
    told = [part if isinstance(part, str) else _inside(texts[part[0]][part[1] : part[2]]) for part in spans]
    return list(zip(words, told, strict=True))


def _inside(text: str) -> str:
    return text.strip() or text


def _check_length(loaded: Loaded, lines: Sequence[str], pairs: Sequence[str], read: Sequence[TokenizedText]) -> None:
    longest = max(len(one["input_ids"]) for one in read)
    if loaded.positions is None or longest <= loaded.positions:
        return
    argument = "pair" if pairs else "text"
    value, nearest = "\n".join(pairs or lines), []
    if not pairs:
        nearest = [{"text": "\n".join(_cut(line, one, loaded.positions) for line, one in zip(lines, read, strict=True))}]
    rule = (
        f"{'with its text ' if pairs else ''}comes to {longest} tokens in a line, and {loaded.name} reads {loaded.positions}."
    )
    raise Wrong(argument, value, rule, nearest)


def _cut(line: str, one: TokenizedText, most: int) -> str:
    """``line`` with so many tokens less that it comes to ``most``, or to fewer where that would cut a word."""
    surplus = len(one["input_ids"]) - most
    if surplus <= 0:
        return line
    ends = [end for (_, end), special in zip(one["offset_mapping"], one["special_tokens_mask"], strict=True) if not special]
    cut = line[: ends[-surplus - 1]] if surplus < len(ends) else line[: ends[0]]
    return cut.rsplit(maxsplit=1)[0] if not line[len(cut)].isspace() and len(cut.split()) > 1 else cut


def _first(*values: T | None) -> T:
    return next(value for value in values if value is not None)
