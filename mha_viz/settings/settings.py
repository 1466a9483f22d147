"""Settings: what is computed."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from mha_viz.core.rules import Wrong, head_dim
from mha_viz.settings.rules import (
    LARGEST_SEED,
    Ruled,
    Texts,
    choice,
    counts,
    flag,
    number,
    optional,
    probability,
    ruled,
    split_words,
    typed_words,
)
from mha_viz.settings.typed_mask import fit_mask, hides_all, read_mask, typed_mask, write_mask

if TYPE_CHECKING:
    from jaxtyping import Shaped

MOST_TYPED = 10**6  # entries of a mask that is offered in place of another
MOST_LINES = 1000  # of words that are offered in place of others
Side: TypeAlias = Literal["right", "left"]
Case: TypeAlias = Literal["random", "tiny"]

SIDES: tuple[Side, ...] = get_args(Side)
CASES: tuple[Case, ...] = get_args(Case)
# what the case worked by hand has
TINY: dict[str, int | tuple[int, ...]] = {"embed_dim": 4, "num_heads": 2, "batch_size": 1, "seq_len": 3, "padding": ()}


@dataclass(frozen=True)
class Settings(Ruled):
    """What is computed. The defaults are the tutorial's program, in eval mode.

    ``case`` "random" draws weights and tokens from ``seed``; "tiny" is one worked by hand, whose sizes are ``TINY``.

    ``words`` are the person's own texts, one per batch item, split at white space; None means random tokens. With words,
    ``batch_size`` and ``seq_len`` follow from them: the longest text and its padding set the length, and shorter ones are padded.

    ``source_len`` (random tokens) or ``source_words`` give the keys and values a sequence of their own: cross-attention. So do
    ``kdim`` and ``vdim``, since a key of another width cannot be the query. ``padding`` counts padded tokens per batch item, from
    the first; items that it does not name have none. It pads the queries, which in self-attention are the keys as well;
    ``source_padding`` pads a source. ``attn_mask`` is a mask as ``read_mask`` reads it, [L, S].

    ``batch_first`` changes the shapes that are shown and never the numbers.

    Raises Wrong for a value that breaks its rule, and for values that do not go together.

    >>> import mha_viz as mv
    >>> settings = mv.Settings(num_heads=4, words="the cat sat\\nhello", padding=())
    >>> settings.head_dim, settings.N, settings.L, settings.texts[1]
    (32, 2, 3, ('hello',))
    >>> mv.Settings(num_heads=7)
    Traceback (most recent call last):
    mha_viz.core.rules.Wrong: num_heads = 7: embed_dim must be divisible by num_heads, but 128 = 7 × 18 + 2. Nearest right: ...
    """

    case: Case = ruled("random", choice(*CASES))
    embed_dim: int = ruled(128, number(1))
    num_heads: int = ruled(8, number(1))
    batch_size: int = ruled(3, number(1))
    seq_len: int = ruled(20, number(1))
    source_len: int | None = ruled(None, optional(number(1)))
    padding: tuple[int, ...] = ruled((3,), counts)
    source_padding: tuple[int, ...] = ruled((), counts)
    padding_side: Side = ruled("right", choice(*SIDES))
    causal: bool = ruled(False, flag)
    window: int | None = ruled(None, optional(number(1)))
    attn_mask: str | None = ruled(None, optional(typed_mask))
    batch_first: bool = ruled(True, flag)
    training: bool = ruled(False, flag)
    dropout: float = ruled(0.1, probability)
    bias: bool = ruled(True, flag)
    add_bias_kv: bool = ruled(False, flag)
    add_zero_attn: bool = ruled(False, flag)
    kdim: int | None = ruled(None, optional(number(1)))
    vdim: int | None = ruled(None, optional(number(1)))
    seed: int = ruled(7, number(0, LARGEST_SEED))
    words: str | None = ruled(None, optional(typed_words))
    source_words: str | None = ruled(None, optional(typed_words))
    positions: bool = ruled(False, flag)

    def check_together(self) -> None:
        """Raises Wrong where sizes, padding, words and the mask do not go together."""
        self._check_tiny()
        head_dim(self.embed_dim, self.num_heads)
        self._check_padding("padding", self.texts, "seq_len", self.seq_len)
        if self.cross:
            self._check_padding("source_padding", self.source_texts, "source_len", self.S)
        elif self.source_padding:
            rule = "pads a source, and there is none: in self-attention the keys are the queries; use padding."
            raise Wrong("source_padding", self.source_padding, rule, [{"source_padding": ()}])
        source = self.source_texts
        if source is not None and len(source) != self.N:
            rule = f"must hold one line per batch item: {self.N}, but {len(source)} were given."
            lines = source[: self.N] + source[-1:] * (self.N - len(source))
            right = [{"source_words": "\n".join(map(" ".join, lines))}] if len(lines) <= MOST_LINES else []
            more = [] if self.texts else [{"batch_size": len(source)}]
            raise Wrong("source_words", self.source_words, rule, [*more, *right])
        self._check_mask()

    def check_advised(self, given: dict[str, Any]) -> None:
        """Keep a key in every item, unless the item was wholly padded before."""
        self._check_keys_left("padding", self.texts, "seq_len", self.seq_len, given)
        if self.cross:
            self._check_keys_left("source_padding", self.source_texts, "source_len", self.S, given)

    @property
    def head_dim(self) -> int:
        """How many numbers of each token a head has."""
        return self.embed_dim // self.num_heads

    @property
    def texts(self) -> Texts | None:
        """The tokens of each batch item as tuples of words, or None where they are random."""
        return split_words(self.words)

    @property
    def source_texts(self) -> Texts | None:
        """The same of the source."""
        return split_words(self.source_words)

    @property
    def cross(self) -> bool:
        """True where keys and values are a sequence of their own."""
        other_width = {self.kdim or self.embed_dim, self.vdim or self.embed_dim} != {self.embed_dim}
        return self.source_len is not None or self.source_words is not None or other_width

    @property
    def N(self) -> int:
        """How many batch items there are."""
        return self.batch_size if self.texts is None else len(self.texts)

    @property
    def L(self) -> int:
        """How many queries each item has, its padding included."""
        return _length(self.texts, self.padding) or self.seq_len

    @property
    def S(self) -> int:
        """Keys, without the extra columns of ``add_bias_kv`` and ``add_zero_attn``."""
        return _length(self.source_texts, self.source_padding) or self.source_len or self.L

    def _check_tiny(self) -> None:
        if self.case != "tiny":
            return
        free = {
            "case",
            "causal",
            "window",
            "attn_mask",
            "batch_first",
            "training",
            "dropout",
            "seed",
            "padding_side",
            "padding",
        }
        right = {f.name: TINY.get(f.name, f.default) for f in fields(self) if f.name not in free}
        for name, value in right.items():
            if getattr(self, name) != value:
                rule = f"cannot be changed in the tiny case, whose numbers were worked by hand for {name} = {value}."
                raise Wrong(name, getattr(self, name), rule, [{name: value}, {"case": "random"}])

    def _check_mask(self) -> None:
        if self.attn_mask is None:
            return
        mask = read_mask(self.attn_mask)
        if mask.shape != (self.L, self.S):
            rule = f"has {mask.shape[0]} lines of {mask.shape[1]} entries; L × S is {self.L} × {self.S}: a line per query."
            small = self.L * self.S <= MOST_TYPED  # a longer one is nothing to type, and much to write
            fitted = [{"attn_mask": write_mask(fit_mask(mask, self.L, self.S))}] if small and self._fits(mask) else []
            raise Wrong("attn_mask", self.attn_mask, rule, [*fitted, {"attn_mask": None}])

    def _fits(self, mask: "Shaped[np.ndarray, 'L S']") -> bool:
        """Whether ``mask``, cut to these sizes, leaves a key to every query that has one in it."""
        cut = fit_mask(mask, self.L, self.S)
        rows = min(len(mask), len(cut))
        return not np.any(hides_all(cut[:rows]) & ~hides_all(mask[:rows]))

    def _check_padding(self, argument: str, texts: Texts | None, length_argument: str, length: int) -> None:
        padded = getattr(self, argument)
        if len(padded) > self.N:
            rule = f"names {len(padded)} batch items, and there are {self.N}."
            more = [] if texts else [{"batch_size": len(padded)}]
            raise Wrong(argument, padded, rule, [{argument: padded[: self.N]}, *more])
        if texts is None and padded and max(padded) > length:
            item = padded.index(max(padded))
            right = tuple(count if count <= length else length - 1 for count in padded)
            rule = f"pads {max(padded)} tokens of item {item}, which has {length}."
            raise Wrong(argument, padded, rule, [{argument: right}, {length_argument: max(padded) + 1}])

    def _check_keys_left(
        self, argument: str, texts: Texts | None, length_argument: str, length: int, given: dict[str, Any]
    ) -> None:
        if texts is not None:
            return  # a text has at least one word beside its padding
        padded, asked = getattr(self, argument), given[argument]
        named = given[length_argument]
        if not isinstance(asked, tuple) or not isinstance(named, int | None) or named != getattr(self, length_argument):
            asked = ()
        right = tuple(
            min(count, length - 1) if asked[item : item + 1] != (count,) else count for item, count in enumerate(padded)
        )
        if right != padded:
            rule = f"pads all {length} tokens of an item: no key is left."
            raise Wrong(argument, padded, rule, [{argument: right}, {length_argument: length + 1}])


def _length(texts: Texts | None, padding: tuple[int, ...]) -> int | None:
    if texts is None:
        return None
    padded = padding + (0,) * (len(texts) - len(padding))
    return max(len(text) + count for text, count in zip(texts, padded, strict=False))
