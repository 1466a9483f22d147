"""Settings (what is computed) and View (how it is shown), and their spelling in an address and in JSON.

Both are frozen and checked on the way in; everything after trusts them. A value that breaks a rule raises Wrong, which names it.
"""

import difflib
import json
from dataclasses import asdict, dataclass, fields

from mha_viz.core.rules import Wrong, fraction, head_dim, one_of, whole

SIDES = ("right", "left")
ORDERS = ("difference", "index")
LONGEST = 100_000  # tokens that a page, an address or a pasted text may name; what fits into memory is checked apart


@dataclass(frozen=True)
class Settings:
    """What is computed. The defaults are the tutorial's program, in eval mode.

    ``words`` are the person's own texts, one per batch item, split at white space; None means random tokens. With words,
    ``batch_size`` and ``seq_len`` follow from them: the longest text and its padding set the length, and shorter ones are padded.

    ``source_len`` (random tokens) or ``source_words`` give the keys and values a sequence of their own: cross-attention. So do
    ``kdim`` and ``vdim``, since a key of another width cannot be the query. ``padding`` counts padded tokens per batch item, from
    the first; items that it does not name have none. It pads the queries, which in self-attention are the keys as well;
    ``source_padding`` pads a source.

    ``batch_first`` changes the shapes that are shown and never the numbers.
    """

    embed_dim: int = 128
    num_heads: int = 8
    batch_size: int = 3
    seq_len: int = 20
    source_len: int | None = None
    padding: tuple[int, ...] = (3,)
    source_padding: tuple[int, ...] = ()
    padding_side: str = "right"
    causal: bool = False
    window: int | None = None
    batch_first: bool = True
    training: bool = False
    dropout: float = 0.1
    bias: bool = True
    add_bias_kv: bool = False
    add_zero_attn: bool = False
    kdim: int | None = None
    vdim: int | None = None
    seed: int = 7
    words: str | None = None
    source_words: str | None = None
    positions: bool = False

    def __post_init__(self):
        try:
            values = checked(type(self), {f.name: getattr(self, f.name) for f in fields(self)})
        except Wrong as wrong:
            if wrong.argument == "embed_dim" and isinstance(self.num_heads, int) and 0 < self.num_heads <= LONGEST:
                near = wrong.nearest[0]["embed_dim"]  # a dim that is in range helps only if the heads divide it
                wrong = Wrong(
                    "embed_dim", wrong.value, wrong.rule, [{"embed_dim": max(near // self.num_heads, 1) * self.num_heads}]
                )
            raise wrong from None
        for name, value in values.items():
            object.__setattr__(self, name, value)
        head_dim(self.embed_dim, self.num_heads)
        self._check_padding("padding", self.texts, "seq_len", self.seq_len)
        if self.cross:
            self._check_padding("source_padding", self.source_texts, "source_len", self.S)
        elif self.source_padding:
            rule = "pads a source, and there is none: in self-attention the keys are the queries; use padding."
            raise Wrong("source_padding", self.source_padding, rule, [{"source_padding": ()}])
        if self.source_words is not None and len(self.source_texts) != self.N:
            rule = f"must hold one line per batch item: {self.N}, but {len(self.source_texts)} were given."
            raise Wrong("source_words", self.source_words, rule)

    @property
    def head_dim(self):
        return self.embed_dim // self.num_heads

    @property
    def texts(self):
        """The tokens of each batch item as tuples of words, or None where they are random."""
        return split_words(self.words)

    @property
    def source_texts(self):
        return split_words(self.source_words)

    @property
    def cross(self):
        """True where keys and values are a sequence of their own."""
        other_width = {self.kdim or self.embed_dim, self.vdim or self.embed_dim} != {self.embed_dim}
        return self.source_len is not None or self.source_words is not None or other_width

    @property
    def N(self):
        return self.batch_size if self.texts is None else len(self.texts)

    @property
    def L(self):
        return _length(self.texts, self.padding) or self.seq_len

    @property
    def S(self):
        """Keys, without the extra columns of ``add_bias_kv`` and ``add_zero_attn``."""
        return _length(self.source_texts, self.source_padding) or self.source_len or self.L

    def _check_padding(self, argument, texts, length_argument, length):
        counts = getattr(self, argument)
        if len(counts) > self.N:
            rule = f"names {len(counts)} batch items, and there are {self.N}."
            more = [] if texts else [{"batch_size": len(counts)}]
            raise Wrong(argument, counts, rule, [{argument: counts[: self.N]}, *more])
        if texts is None and counts and max(counts) > length:
            item = counts.index(max(counts))
            right = tuple(min(count, length) for count in counts)
            rule = f"pads {max(counts)} tokens of item {item}, which has {length}."
            raise Wrong(argument, counts, rule, [{argument: right}, {length_argument: max(counts)}])


@dataclass(frozen=True)
class View:
    """How a Trace is shown. None means: choose for me, as ``mha_viz.analysis.choose`` does.

    ``item`` the batch item; ``heads`` the heads shown, None all; ``order`` of them; ``head`` the chosen one; ``cell`` the chosen
    (query, key).
    """

    item: int = 0
    heads: tuple[int, ...] | None = None
    order: str = "difference"
    head: int | None = None
    cell: tuple[int, int] | None = None

    def __post_init__(self):
        for name, value in checked(type(self), {f.name: getattr(self, f.name) for f in fields(self)}).items():
            object.__setattr__(self, name, value)


def split_words(text):
    """One tuple of words per line that holds any, split at white space; None for None."""
    return None if text is None else tuple(tuple(line.split()) for line in text.splitlines() if line.split())


def _length(texts, padding):
    if texts is None:
        return None
    counts = padding + (0,) * (len(texts) - len(padding))
    return max(len(text) + count for text, count in zip(texts, counts, strict=False))


# The rule of each field by itself, and its spelling in an address. Rules between fields are in __post_init__.


def _flag(argument, value):
    return value if isinstance(value, bool) else one_of(argument, value, (True, False))


def _optional(rule):
    return lambda argument, value: None if value is None else rule(argument, value)


def _counts(argument, value):
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        rule = 'must be whole numbers, one per batch item, as in "3, 0, 0".'
        raise Wrong(argument, value, rule, [{argument: getattr(Settings, argument)}])
    try:
        counts = [whole(argument, count, 0, LONGEST) for count in value]
    except Wrong as wrong:
        right = tuple(wrong.nearest[0][argument] if count == wrong.value else count for count in value)
        rule = f"must be whole numbers, 0 or more, one per batch item, and {wrong.value!r} is not."
        raise Wrong(argument, tuple(value), rule, [{argument: right}]) from None
    while counts and counts[-1] == 0:
        counts.pop()  # (3, 0, 0) and (3,) are one setting
    return tuple(counts)


def _text(argument, value):
    if not isinstance(value, str) or not split_words(value):
        raise Wrong(argument, value, "must hold at least one word; each line is one batch item.")
    most = max(len(line) for line in split_words(value))
    if most > LONGEST:
        raise Wrong(argument, f"{most} words in a line", f"may hold {LONGEST} words a line.")
    return value


def _heads(argument, value):
    heads = tuple(dict.fromkeys(whole(argument, head, 0) for head in value))
    if not heads:
        raise Wrong(argument, heads, "must name at least one head.")
    return heads


def _pair(argument, value):
    pair = tuple(whole(argument, index, 0) for index in value)
    if len(pair) != 2:
        raise Wrong(argument, value, 'must be a query and a key, as in "6,9".')
    return pair


def _number(least, most=None):
    return lambda argument, value: whole(argument, value, least, most)


def _choice(*choices):
    return lambda argument, value: one_of(argument, value, choices)


RULES = {
    "embed_dim": _number(1, LONGEST),
    "num_heads": _number(1, LONGEST),
    "batch_size": _number(1, LONGEST),
    "seq_len": _number(1, LONGEST),
    "source_len": _optional(_number(1, LONGEST)),
    "padding": _counts,
    "source_padding": _counts,
    "padding_side": _choice(*SIDES),
    "window": _optional(_number(1, LONGEST)),
    "dropout": fraction,
    "kdim": _optional(_number(1, LONGEST)),
    "vdim": _optional(_number(1, LONGEST)),
    "seed": _number(0, 2**53 - 1),  # the largest whole number that a browser holds exactly
    "words": _optional(_text),
    "source_words": _optional(_text),
    "item": _number(0),
    "heads": _optional(_heads),
    "order": _choice(*ORDERS),
    "head": _optional(_number(0)),
    "cell": _optional(_pair),
} | dict.fromkeys(("causal", "batch_first", "training", "bias", "add_bias_kv", "add_zero_attn", "positions"), _flag)


def checked(kind, values):
    """``values`` of fields of ``kind`` (Settings or View), each brought through its own rule; raises Wrong at the first that fails."""
    return {name: _rule(kind, name, value)(name, value) for name, value in values.items()}


def _rule(kind, name, value):
    known = [f.name for f in fields(kind)]
    if name not in known:
        close = difflib.get_close_matches(name, RULES, 1)
        raise Wrong(name, value, f"is no setting; is {close[0]} meant?" if close else "is no setting.")
    return RULES[name]


def spell(value):
    """A field's value as an address writes it: true as 1, (3, 0) as "3,0"."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(int(value)) if isinstance(value, bool) else str(value)


def read(kind, name, text):
    """The value that ``text`` spells for the field ``name`` of ``kind``; raises Wrong with the field's rule where it spells none."""
    rule, value = _rule(kind, name, text), text
    annotation = str(kind.__dataclass_fields__[name].type)
    if "tuple" in annotation:
        value = tuple(_as_number(part.strip(), int) for part in text.split(",")) if text.strip() else ()
    elif "bool" in annotation:
        value = {"1": True, "true": True, "0": False, "false": False}.get(text.lower(), text)
    elif "int" in annotation:
        value = _as_number(text, int)
    elif "float" in annotation:
        value = _as_number(text, float)
    return rule(name, value)


def _as_number(text, kind):
    try:
        return kind(text)
    except ValueError:
        return text


def to_address(**values):
    """What differs from the defaults among these fields of Settings and View, as a dict of texts: the query part of an address."""
    defaults = {f.name: f.default for kind in (Settings, View) for f in fields(kind)}
    return {name: spell(value) for name, value in values.items() if value != defaults[name]}


def from_address(query):
    """What ``query`` (name → text) spells: the fields of Settings, the fields of View, and a Wrong for each value that is bad.

    A bad value, or a name that neither has, falls back alone: the others stand. Rules between fields are not checked here.
    """
    settings, view, notes = {}, {}, []
    for name, text in query.items():
        kind, values = (View, view) if name in View.__dataclass_fields__ else (Settings, settings)
        try:
            values[name] = read(kind, name, text)
        except Wrong as wrong:
            notes.append(wrong)
    return settings, view, notes


def to_json(settings):
    """Every field, so that a file still means the same when a default changes."""
    return json.dumps(asdict(settings), indent=2, ensure_ascii=False)


def from_json(text, kind=Settings):
    """The Settings (or View) that ``to_json`` wrote; raises Wrong for a field that is unknown or breaks its rule."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise Wrong("settings", text, f"must be JSON: {error}.") from None
    if not isinstance(values, dict):
        raise Wrong("settings", text, "must be a JSON object of settings by name.")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return kind(**checked(kind, values))
