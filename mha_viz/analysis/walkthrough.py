"""One query followed through a layer, step by step: every tensor that a step takes or makes, by name and with its axes named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from mha_viz.analysis.walk_checks import Check, checks_of, head_parts
from mha_viz.settings.steps import STEPS

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Shaped

    from mha_viz.core.batch import Batch
    from mha_viz.core.layer import Layer
    from mha_viz.core.trace import Trace


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of a Tensor: its ``letter`` in shapes ("S", "H·D"), and what a place on it ``stands_for`` ("key").

    ``names`` are the tokens along it, None where places are only numbered; ``block`` is the head_dim where heads stand side by side.
    """

    letter: str
    stands_for: str
    names: tuple[str, ...] | None = None
    block: int | None = None


Kind: TypeAlias = Literal["signed", "weight"]


@dataclass(frozen=True, eq=False)
class Tensor:
    """What is drawn of one tensor: ``values`` [rows, columns], with a row of 1 for a vector.

    ``symbol`` is what formulas call it, "W^Q" with its marks as in LaTeX; ``words`` say what it is. ``axes`` name rows and
    columns; of a vector the first is None. ``shape`` are the axes of the whole tensor that this is a part of, by letter, as
    they are in memory. ``kind`` is "signed" for numbers around zero and "weight" for those from zero up. ``hidden`` [rows,
    columns] is True where a mask hides, None where there is none; ``undefined`` [rows] where no key is left and NaN follows
    from that, None where it cannot. ``row`` and ``column`` are the places that are followed, ``columns`` a range of them.
    """

    symbol: str
    words: str
    values: Float[np.ndarray, "rows columns"]
    axes: tuple[Axis | None, Axis]
    shape: dict[str, int]
    kind: Kind = "signed"
    hidden: Bool[np.ndarray, "rows columns"] | None = None
    undefined: Bool[np.ndarray, " rows"] | None = None
    row: int | None = None
    column: int | None = None
    columns: tuple[int, int] | None = None

    def alone(self, row: int) -> bool:
        """True where a row's NaN comes of a query without a key."""
        return self.undefined is not None and bool(self.undefined[row])


@dataclass(frozen=True, eq=False)
class Walk:
    """One query of one batch item on its way: ``tensors`` by step, the last of each step the one that it makes.

    ``head`` is followed, or all heads where it is None. ``key`` is the one that worked numbers are given for, and where all heads
    are followed they are head ``shown``'s. ``missing`` says of each step that is left out what is not known, as a sentence.
    """

    item: int
    head: int | None
    query: int
    key: int
    shown: int
    tensors: dict[str, tuple[Tensor, ...]]
    checks: tuple[Check, ...]
    missing: dict[str, str]

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps that this call has, in order: dropout only where it falls."""
        return tuple(name for name in STEPS if name in self.tensors)


def walk(trace: Trace, item: int, head: int | None, query: int, key: int, shown: int = 0) -> Walk:
    """The Walk of ``query`` to the output, through one ``head`` or, where that is None, all of them.

    Everything that the Trace holds is shown as it holds it; what lies between (q · k before the scale, exponentials, what each key and
    each head brings) is made of it in float64. Vaswani et al., Attention Is All You Need, 2017, equation 1 and section 3.2.2. A
    recording knows no input, a map its weights alone: steps of what the Trace does not know are left out. No head may be off.
    IndexError beyond the Trace.
    """
    missing = _missing(trace)
    follow = _Follow(trace, item, head, query, key, shown if head is None else head)
    names = [name for name in STEPS if name not in missing and (name != "dropout" or trace.dropped is not None)]
    tensors = {name: getattr(follow, name)() for name in names}
    return Walk(item, head, query, key, follow.shown, tensors, checks_of(trace, item, query), missing)


def _missing(trace: Trace) -> dict[str, str]:
    """{step: why it is left out} of the steps that need what this Trace does not know."""
    needs = {
        ("input",): (trace.batch is not None, "What went into the layer is not known here."),
        ("configure",): (trace.layer is not None, "The input projections are not known here."),
        ("query", "keys", "dot", "scale", "mask"): (
            trace.has("q", "k"),
            "The weights alone are known here, and no q and no k.",
        ),
        ("values",): (trace.has("v", "head_outputs"), "The values are not known here."),
        ("concat",): (trace.has("concat"), "Without values there is nothing to concatenate."),
        ("project", "output"): (trace.has("output"), "The output projection is not known here."),
    }
    return {step: why for steps, (known, why) in needs.items() if not known for step in steps}


class _Follow:
    """The tensors of each step, a method each, of one query on its way."""

    def __init__(self, trace: Trace, item: int, head: int | None, query: int, key: int, shown: int) -> None:
        N, H, L, S = trace.weights.shape
        self.trace, self.item, self.head, self.query_at, self.key_at, self.shown = trace, item, head, query, key, shown
        self.heads = slice(None) if head is None else slice(head, head + 1)  # H of them, or one
        self.rows = Axis("H", "head") if head is None else None
        self.row = shown if head is None else None
        self.key_axis, self.query_axis = Axis("S", "key", trace.key_tokens[item]), Axis("L", "query", trace.query_tokens[item])
        self.per_head, self.embed = Axis("D", "dimension"), Axis("E", "dimension")
        self.sizes = {"N": N, "H": H, "L": L, "S": S}

    def shape(self, letters: str, **more: int) -> dict[str, int]:
        """The axes of a tensor by letter, with their sizes."""
        return {letter: (self.sizes | more)[letter] for letter in letters}

    def at(self, array: Shaped[np.ndarray, "N H L ..."]) -> Shaped[np.ndarray, "#H ..."]:
        """The rows of the followed query, [H|1, …], of an array [N, H, L, …]."""
        return array[self.item, self.heads, self.query_at]

    def of_map(
        self,
        symbol: str,
        words: str,
        values: Float[np.ndarray, "#H S"],
        kind: Kind = "signed",
        hidden: Bool[np.ndarray, "#H S"] | None = None,
        undefined: Bool[np.ndarray, " #H"] | None = None,
    ) -> Tensor:
        """The Tensor of rows of the followed query, one of each head that is followed."""
        axes = self.rows, self.key_axis
        return Tensor(symbol, words, values, axes, self.sizes, kind, hidden, undefined, row=self.row, column=self.key_at)

    def of_source(self, array: Float[np.ndarray, "N H S D"], words: str, symbol: str) -> Tensor:
        """[S, D] of one head, or [S, H·D] with all heads side by side, of an array [N, H, S, D]."""
        D = array.shape[3]
        shape = self.shape("NHSD", D=D)
        if self.head is not None:
            return Tensor(symbol, words, array[self.item, self.head], (self.key_axis, self.per_head), shape, row=self.key_at)
        flat = array[self.item].swapaxes(0, 1).reshape(array.shape[2], -1)  # [S, H·D]
        axes = self.key_axis, Axis("H·D", "dimension", block=D)
        return Tensor(symbol, f"{words}, heads side by side", flat, axes, shape, row=self.key_at)

    def one_token(self) -> tuple[Tensor, ...]:
        """The token that is followed, where it is known."""
        if self.trace.batch is None:
            return ()
        x = self.trace.batch.query[self.item]  # [L, E]
        shape = self.shape("NLE", E=x.shape[1])
        return (Tensor("xᵢ", "the token that is followed", x[[self.query_at]], (None, self.embed), shape),)

    @property
    def batch(self) -> Batch:
        """What went in: the steps that show it are left out where it is not known."""
        assert self.trace.batch is not None
        return self.trace.batch

    @property
    def layer(self) -> Layer:
        """The layer: the steps that show it are left out where it is not known."""
        assert self.trace.layer is not None
        return self.trace.layer

    def input(self) -> tuple[Tensor, ...]:
        trace, batch = self.trace, self.batch
        x, source = batch.query[self.item], tuple[Tensor, ...]()  # [L, E]
        shape = self.shape("NLE", E=x.shape[1])
        tokens = Tensor(
            "X", "the tokens of this batch item, one a row", x, (self.query_axis, self.embed), shape, row=self.query_at
        )
        if batch.key is not None:
            read = Axis(
                "S", "key", trace.key_tokens[self.item][: trace.num_positions]
            )  # without the extra columns, which are no tokens
            shape = {"N": self.sizes["N"], "S": trace.num_positions, "kdim": self.layer.kdim}
            axes = read, Axis("kdim", "dimension")
            source = (Tensor("Y", "the source: keys are made of it", batch.key[self.item], axes, shape),)
        return (*self.one_token(), *source, tokens)

    def configure(self) -> tuple[Tensor, ...]:
        layer = self.layer
        E, D = layer.embed_dim, layer.head_dim
        part = slice(None) if self.head is None else slice(self.head * D, (self.head + 1) * D)
        columns = Axis("H·D", "dimension", block=D) if self.head is None else self.per_head
        whose = "of all heads" if self.head is None else f"of head {self.head}"
        Wq, Wk, Wv = layer.projections  # [H·D, E|kdim|vdim] each
        return tuple(
            Tensor(
                f"W^{letter}",
                f"{word} projection {whose}",
                weight[part].T,
                (Axis(name, "dimension"), columns),
                {name: weight.shape[1], columns.letter: weight[part].shape[0]},
            )
            for letter, word, weight, name in (
                ("K", "key", Wk, "E" if layer.kdim == E else "kdim"),
                ("V", "value", Wv, "E" if layer.vdim == E else "vdim"),
                ("Q", "query", Wq, "E"),
            )
        )

    def asked(self) -> Tensor:
        shape = self.shape("NHLD", D=self.trace.q.shape[3])
        return Tensor("q", "what this token asks", self.at(self.trace.q), (self.rows, self.per_head), shape, row=self.row)

    def query(self) -> tuple[Tensor, ...]:
        return (*self.one_token(), self.asked())

    def keys(self) -> tuple[Tensor, ...]:
        return (self.of_source(self.trace.k, "what each token offers", "K"),)

    def answered(self) -> Tensor:
        q, k = self.at(self.trace.q), self.trace.k[self.item, self.heads]  # [H|1, D], [H|1, S, D]
        dots = np.einsum("hd,hsd->hs", q.astype(np.float64), k.astype(np.float64))  # [H|1, S]
        return self.of_map("q · k", "how well each key answers", dots)

    def dot(self) -> tuple[Tensor, ...]:
        return (self.asked(), *self.keys(), self.answered())

    def scored(self) -> Tensor:
        words = "q · k / √D" if by_root(self.trace) else f"q · k · {self.trace.scale:.4g}"
        return self.of_map("score", words, self.at(self.trace.scores))

    def scale(self) -> tuple[Tensor, ...]:
        return (self.answered(), self.scored())

    def masked(self) -> Tensor:
        hidden, added = self.at(self.trace.mask), self.added()  # [H|1, S] each
        summed = self.at(self.trace.scores).astype(np.float64) + (0 if added is None else added)
        with np.errstate(invalid="ignore"):  # ∞ − ∞; NaN stays NaN: a mask hides neither
            masked = summed + np.where(hidden, -np.inf, 0)  # [H|1, S]
        return self.of_map("score + mask", "−∞ where hidden", masked, hidden=hidden)

    def added(self) -> Float[np.ndarray, "#H S"] | None:
        return None if self.trace.mask_bias is None else self.at(self.trace.mask_bias).astype(np.float64)

    def mask(self) -> tuple[Tensor, ...]:
        added, hidden = self.added(), self.at(self.trace.mask)
        biases = () if added is None else (self.of_map("mask", "what is added", added, hidden=hidden),)
        return (self.scored(), *biases, self.masked())

    def weighs(self, symbol: str, words: str, values: Float[np.ndarray, "#H S"]) -> Tensor:
        hidden, undefined = self.at(self.trace.mask), self.at(self.trace.undefined)
        return self.of_map(symbol, words, values, kind="weight", hidden=hidden, undefined=undefined)

    @property
    def lost(self) -> Bool[np.ndarray, " H"]:
        """[H] bool: heads in which the followed query has no key left."""
        return self.trace.undefined[self.item, :, self.query_at]

    def probable(self) -> Tensor:
        return self.weighs("weights", "they sum to 1", self.at(self.trace.probabilities))

    def softmax(self) -> tuple[Tensor, ...]:
        if not self.trace.has("q", "k"):  # the weights, and what their average makes of them
            average = self.trace.mean_weights[self.item, [self.query_at]]  # [1, S]
            shape, axes = self.shape("NLS"), (None, self.key_axis)
            lost = np.array([self.lost.any()])  # [1]
            beside = Tensor("average", "of all heads", average, axes, shape, kind="weight", column=self.key_at, undefined=lost)
            return (beside, self.probable())
        masked = self.masked()
        with np.errstate(invalid="ignore"):  # −∞ − (−∞), in a row without keys
            exponentials = np.exp(masked.values - masked.values.max(axis=1, keepdims=True))  # [H|1, S]
        return (
            masked,
            self.weighs("exp(score − largest)", "before they are divided by their sum", exponentials),
            self.probable(),
        )

    def weighing(self) -> Tensor:
        """The weights that the values meet: after dropout where it falls."""
        if self.trace.dropped is None:
            return self.probable()
        return self.weighs("weights", "after dropout: they need not sum to 1", self.at(self.trace.weights))

    def dropout(self) -> tuple[Tensor, ...]:
        return (self.probable(), self.weighing())

    def values(self) -> tuple[Tensor, ...]:
        trace, n, h = self.trace, self.item, self.head
        shape = self.shape("NHLD", D=trace.head_outputs.shape[3])
        axes, lost = (self.rows, self.per_head), self.at(trace.undefined)  # [H|1]
        brought = Tensor("head", "weights @ V", self.at(trace.head_outputs), axes, shape, row=self.row, undefined=lost)
        V = self.of_source(trace.v, "what each token gives", "V")
        if h is None:
            return (self.weighing(), V, brought)
        each = trace.weights[n, h, self.query_at].astype(np.float64)[:, None] * trace.v[n, h]  # [S, D]
        words, axes = "what each key brings; its columns sum to the head", (self.key_axis, self.per_head)
        shape = self.shape("NHSD", D=trace.v.shape[3])
        bring = Tensor("weight × v", words, each, axes, shape, row=self.key_at, undefined=lost.repeat(len(each)))
        return (self.weighing(), V, bring, brought)

    def concat(self) -> tuple[Tensor, ...]:
        trace, D = self.trace, self.trace.head_outputs.shape[3]
        every = trace.head_outputs[self.item, :, self.query_at]  # [H, D]
        shape, axes = self.shape("NHLD", D=D), (Axis("H", "head"), self.per_head)
        symbol = f"head_0 … head_{len(every) - 1}" if len(every) > 1 else "head_0"
        stacked = Tensor(symbol, "what each head made", every, axes, shape, row=self.shown, undefined=self.lost)
        place = None if self.head is None else (self.head * D, (self.head + 1) * D)
        row, beside = (
            trace.concat[self.item, [self.query_at]],
            {"N": self.sizes["N"], "L": self.sizes["L"], "H·D": self.sizes["H"] * D},
        )
        side_by_side, lost = Axis("H·D", "dimension", block=D), np.array([self.lost.any()])  # [1]
        words = "the same numbers in one row"
        return stacked, Tensor("Concat", words, row, (None, side_by_side), beside, columns=place, undefined=lost)

    def written(self) -> Tensor:
        output = self.trace.output[self.item, [self.query_at]]  # [1, E]
        shape, lost = self.shape("NLE", E=output.shape[1]), np.array([self.lost.any()])  # [1]
        return Tensor("output", "their sum", output, (None, self.embed), shape, undefined=lost)

    def project(self) -> tuple[Tensor, ...]:
        parts, H = head_parts(self.trace, self.item, self.query_at), self.sizes["H"]  # [H + 1, E]
        names = (*(f"head {h}" for h in range(H)), *(["bias"] * (len(parts) - H)))
        axes, shape = (Axis("H", "part", names), self.embed), self.shape("NLE", E=parts.shape[1])
        lost = np.append(self.lost, np.zeros(len(parts) - H, bool))  # [H + 1]
        words = "what each head brings, and the bias"
        return (Tensor("head_h W^O_h", words, parts, axes, shape, row=self.head, undefined=lost), self.written())

    def output(self) -> tuple[Tensor, ...]:
        whole = self.trace.output[self.item]  # [L, E]
        axes, shape = (self.query_axis, self.embed), self.shape("NLE", E=whole.shape[1])
        lost = self.trace.undefined[self.item].any(axis=0)  # [L]
        every = Tensor("MHA(X)", "the output of this batch item", whole, axes, shape, row=self.query_at, undefined=lost)
        return (*self.one_token(), every, self.written())

    def validate(self) -> tuple[Tensor, ...]:
        return ()


def in_layout(tensors: Iterable[Tensor], batch_first: bool) -> list[Tensor]:
    """These Tensors with the axes of tokens in the order of a layout: [N, L, E], or [L, N, E] where the sequence comes first. Heads have
    no layout."""
    return [one if batch_first else replace(one, shape=_sequence_first(one.shape)) for one in tensors]


def _sequence_first(shape: dict[str, int]) -> dict[str, int]:
    N, *rest = shape.items()
    return dict([rest[0], N, *rest[1:]]) if N[0] == "N" and len(shape) == 3 else shape


def by_root(trace: Trace) -> bool:
    """True where scores are q · k / √D, as most are."""
    assert trace.scale is not None  # as it is where q is known
    return bool(np.isclose(trace.scale, trace.q.shape[3] ** -0.5))


def dropout_of(trace: Trace) -> float:
    """The probability with which weights were dropped: the layer's, or as the draw of a recording tells it; 0 where there was none."""
    if trace.layer is not None:
        return trace.layer.dropout
    if trace.keep_scale is None:
        return 0.0
    kept = float(trace.keep_scale.max())  # 1 / (1 − p)
    return 1 - 1 / kept if kept else 1.0
