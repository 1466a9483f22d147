"""A seeded, untrained layer on random tokens or on a person's own words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.core.memory import (
    beyond_whole,
    check_layer_memory,
    check_memory,
    check_projected_memory,
    layer_memory,
    memory,
    peak,
    projected_memory,
    readable_size,
)
from mha_viz.core.rules import Wrong, of_kind
from mha_viz.settings import Settings, read_mask
from mha_viz.settings.settings import TINY
from mha_viz.sources.base import NOT_GENERATED, NOTHING, Kind, Source
from mha_viz.sources.tiny import TOKENS, tiny_layer

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float

    from mha_viz.core.arrays import Dtype
    from mha_viz.core.attend import Engine
    from mha_viz.core.trace import Trace
    from mha_viz.settings.rules import Texts

PAD = "<pad>"
BARE = (
    "case",
    "embed_dim",
    "num_heads",
    "batch_size",
    "seq_len",
    "bias",
    "seed",
    "words",
    "positions",
)  # what experiments take
STAND_INS = MappingProxyType(
    {
        "words": "the cat sat on the mat because the cat was tired\nthe dog slept",
        "source_words": "die Katze schlief müde auf der Matte\nder Hund schlief",
        "source_len": 12,
        "source_padding": "",
        "window": 4,
        "attn_mask": "0",
    }
)
POOLED = 32_768  # tokens up to which maps that are too long to be whole are pooled


def synthetic(settings: Settings | None = None, *, engine: Engine = "torch", dtype: Dtype = "float32") -> Trace:
    """The Trace of a seeded, untrained layer that reads random tokens or a person's own words.

    One seed draws the layer, then the tokens, then dropout, in the order of the tutorial's program: the default Settings give that
    program's numbers bit for bit, in eval mode and (``training=True``) in train mode.

    ``settings`` say what is computed, the defaults where None; ``engine`` and ``dtype`` with what, as for ``attend``. Maps are
    [N, H, L, S]: S counts the extra columns of ``add_bias_kv`` and ``add_zero_attn`` too.

    Raises Wrong where the result would not fit into memory. With up to POOLED tokens, maps larger than WHOLE may be larger than
    memory: only q, k and v have to fit. Such maps are pooled (``mha_viz.core.long``), and made whole only if they are read. Dropout
    cannot be pooled and raises Wrong there.

    >>> import mha_viz as mv
    >>> settings = mv.Settings(embed_dim=8, num_heads=2, words="the cat sat down\\nit slept", padding=(), causal=True)
    >>> trace = mv.synthetic(settings)
    >>> trace.weights.shape  # [N, H, L, S]
    (2, 2, 4, 4)
    >>> trace.query_tokens
    (('the', 'cat', 'sat', 'down'), ('it', 'slept', '<pad>', '<pad>'))
    >>> print(trace.weights[0, 1].round(2))  # head 1 of "the cat sat down"
    [[1.   0.   0.   0.  ]
     [0.49 0.51 0.   0.  ]
     [0.44 0.4  0.16 0.  ]
     [0.2  0.18 0.36 0.26]]
    """
    import torch

    s = Settings() if settings is None else of_kind("settings", settings, Settings)
    long = check_size(s, engine, dtype)
    generator = torch.Generator().manual_seed(s.seed)
    layer = Layer.random(s.embed_dim, s.num_heads, seed=s.seed, dropout=s.dropout, generator=generator)
    batch = make_batch(
        s, generator
    )  # drawn after the default layer whatever the options, so that they do not change the tokens
    if s.case == "tiny":
        layer = tiny_layer(s.dropout)
    elif not s.bias or s.add_bias_kv or s.add_zero_attn or s.kdim or s.vdim:
        del layer  # before another is made
        layer = Layer.random(
            s.embed_dim,
            s.num_heads,
            seed=s.seed,
            dropout=s.dropout,
            bias=s.bias,
            add_bias_kv=s.add_bias_kv,
            add_zero_attn=s.add_zero_attn,
            kdim=s.kdim,
            vdim=s.vdim,
        )
    return attend(layer, batch, engine=engine, dtype=dtype, training=s.training, generator=generator, later=long)


def check_size(s: Settings, engine: Engine = "torch", dtype: Dtype = "float32", available: int | None = None) -> bool:
    """Whether the Trace of these Settings is long: its maps can be pooled, and are made when they are read. Raises Wrong where it would
    not fit into half of the bytes that are ``available``, those that are free where None; nothing is made for that."""
    check_layer_memory(s.embed_dim, s.kdim, s.vdim, s.num_heads, available=available)
    N, H, L, S, E = size = _size(s)
    dropout = s.training and s.dropout > 0
    if dropout and beyond_whole(*size):
        rule = (
            f"draws dropout for every weight, and [N, H, L, S] = [{N}, {H}, {L}, {S}] of them would take "
            f"{readable_size(memory(*size, dropout=True))}; without it maps of this size are pooled, up to {POOLED:,} tokens."
        )
        raise Wrong("training", True, rule, [{"training": False}, {"dropout": 0.0}])
    long = beyond_whole(*size) and max(s.L, s.S) <= POOLED and engine == "torch"
    if long:
        check_projected_memory(N, s.L, s.S, E, dtype=dtype, available=available)
    else:
        try:
            check_memory(*size, dtype=dtype, dropout=dropout, available=available)
        except Wrong as wrong:
            raise _with_pooled(wrong, s, engine, dtype) from None
    return long


def _with_pooled(wrong: Wrong, s: Settings, engine: Engine, dtype: Dtype) -> Wrong:
    """The ``wrong`` of maps that do not fit whole; where shorter ones are pooled it advises these, whatever memory is free."""
    if max(s.L, s.S) <= POOLED or s.words is not None or s.source_words is not None:
        return wrong
    lengths = {"seq_len": s.seq_len, "source_len": s.source_len}
    shorter: dict[str, Any] = {name: POOLED for name, length in lengths.items() if length is not None and length > POOLED}
    try:
        long = check_size(replace(s, **shorter), engine, dtype)
    except Wrong:
        return wrong
    return Wrong(wrong.argument, wrong.value, f"{wrong.rule} Up to {POOLED:,} tokens are pooled.", [shorter]) if long else wrong


def peak_of(s: Settings) -> int:
    """Bytes that the Trace of these Settings takes at most, its layer and what a page reads and draws of it included."""
    size = _size(s)
    dropout = s.training and s.dropout > 0
    long = beyond_whole(*size) and max(s.L, s.S) <= POOLED
    maps = projected_memory(s.N, s.L, s.S, s.embed_dim) if long else peak(*size, dropout=dropout)
    return layer_memory(s.embed_dim, s.kdim, s.vdim) + maps


def _size(s: Settings) -> tuple[int, int, int, int, int]:
    """(N, H, L, S, E) of the Trace of these Settings, S with its extra columns."""
    return s.N, s.num_heads, s.L, s.S + s.add_bias_kv + s.add_zero_attn, s.embed_dim


def make_batch(s: Settings, generator: torch.Generator) -> Batch:
    """The Batch of these Settings; random tokens are drawn from ``generator``, queries first, then keys, then values."""
    widths = (s.embed_dim, s.kdim or s.embed_dim, s.vdim or s.embed_dim)
    query, query_tokens, query_padding = tokens(s.texts, s.padding, s.L, widths[0], s, generator)
    mask = None if s.attn_mask is None else read_mask(s.attn_mask)  # [L, S]
    batch = partial(
        Batch,
        query,
        query_tokens=query_tokens,
        query_padding_mask=query_padding,
        attn_mask=mask,
        causal=s.causal,
        window=s.window,
    )
    if not s.cross:
        return batch(key_padding_mask=query_padding)
    key, key_tokens, key_padding = tokens(s.source_texts, s.source_padding, s.S, widths[1], s, generator)
    value = None if widths[1] == widths[2] else tokens(s.source_texts, s.source_padding, s.S, widths[2], s, generator)[0]
    return batch(key, value, key_padding_mask=key_padding, key_tokens=key_tokens)


def tokens(
    texts: Texts | None, padding: tuple[int, ...], length: int, width: int, s: Settings, generator: torch.Generator
) -> tuple[Float[np.ndarray, "N L E"], Texts, Bool[np.ndarray, "N L"] | None]:
    """(vectors [N, length, width], labels, padded [N, length] bool or None) of one sequence per batch item."""
    import torch

    counts = padding + (0,) * (s.N - len(padding))
    labels: Texts
    if s.case == "tiny":
        vectors, labels = np.array(TOKENS, np.float32), (tuple(map(str, range(length))),)
    elif texts is None:
        vectors = torch.randn(s.N, length, width, generator=generator).numpy()  # [N, L, E]
        labels = (tuple(map(str, range(length))),) * s.N
    else:
        counts = tuple(length - len(text) for text in texts)
        padded = [
            (PAD,) * n + text if s.padding_side == "left" else text + (PAD,) * n for text, n in zip(texts, counts, strict=True)
        ]
        vectors = np.array([[word_vector(word, width) for word in text] for text in padded])  # [N, L, E]
        labels = tuple(padded)
    if s.positions:
        vectors = vectors + positional_encoding(length, width)  # [N, L, E] + [L, E]
    place = np.arange(length)
    count = np.array(counts)[:, None]  # [N, 1]
    hidden = place < count if s.padding_side == "left" else place >= length - count  # [N, L]
    return vectors, labels, hidden if hidden.any() else None


def word_vector(word: str, width: int) -> Float[np.ndarray, " width"]:
    """``width`` numbers from N(0, 1) that depend on the word alone: equal words get equal embeddings, in every run and process."""
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(width, dtype=np.float32)


def positional_encoding(length: int, width: int) -> Float[np.ndarray, "length width"]:
    """[length, width] sin(p / 10000^(2i / width)) at 2i and the cosine at 2i + 1 (Vaswani et al. 2017, section 3.5)."""
    angle = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)  # [length, ⌈width / 2⌉]
    encoding = np.empty((length, width), np.float32)
    encoding[:, 0::2], encoding[:, 1::2] = np.sin(angle), np.cos(angle[:, : width // 2])
    return encoding


class Synthetic(Kind[Settings]):
    """Layers of Settings: nothing is trained, and a seed or a pencil gives every number."""

    settings = Settings
    seeded = True
    stand_ins = STAND_INS
    spellings = MappingProxyType({"attn_mask": lambda mask: mask.replace("/", "\n")})  # a line per query

    def __init__(self, name: str, title: str, first: Mapping[str, object] = NOTHING) -> None:
        self.name, self.title, self.fixed, self.first = name, title, {"case": name}, first

    def called(self, settings: Settings) -> str:
        """What the layer is called: its seed is all that tells it from another."""
        return "tiny layer, worked by hand" if settings.case == "tiny" else f"untrained layer, seed {settings.seed}"

    def open(self, settings: Settings) -> Source:
        return Source(self.called(settings), (synthetic(settings),), settings)

    def bare(self, settings: Settings) -> Settings:
        from mha_viz.analysis.pitfalls import check_width

        check_width(settings.embed_dim, settings.num_heads)
        return Settings(padding=(), **{name: getattr(settings, name) for name in BARE})

    def peak(self, settings: Settings) -> int:
        return peak_of(settings)

    def masks(self, settings: Settings) -> list[str]:
        s = settings
        padded = ", ".join(map(str, (*s.padding, *[0] * (s.N - len(s.padding)))))  # items that are not named have none
        said = {
            "causal": s.causal,
            f"window of {s.window}": s.window is not None,
            f"{padded} padded tokens per item, {s.padding_side}": any(s.padding),
            "a mask of its own": s.attn_mask,
        }
        return [words for words, there in said.items() if there]

    def to_decode(self, settings: Settings) -> tuple[Settings, dict[str, int]]:
        from mha_viz.analysis.decoding import decodable

        return decodable(settings), {"training": settings.training, "seed": settings.seed}

    def versions(self, settings: Settings) -> dict[str, str]:
        return {
            "model": f"{self.called(settings)} (no trained weights)",
            "tokenizer": "none: words are split at white space",
            "generation": NOT_GENERATED,
        }


RANDOM = Synthetic("random", "untrained layer, random weights")
TINY_CASE = Synthetic("tiny", "tiny case, worked by hand", TINY)
