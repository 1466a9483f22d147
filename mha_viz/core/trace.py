"""All that one attention layer did, as one immutable value: the only thing that a view reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar, overload

import numpy as np

from mha_viz.core.arrays import Dtype, dtype_of, read_only
from mha_viz.core.memory import in_memory

if TYPE_CHECKING:
    from typing import Never, Self

    from jaxtyping import Bool, Float

    from mha_viz.core.batch import Batch
    from mha_viz.core.call import Call
    from mha_viz.core.intervention import Off
    from mha_viz.core.layer import Layer
    from mha_viz.core.mask import Mask
    from mha_viz.core.tokens import Tokens

T = TypeVar("T")
Tensor: TypeAlias = np.ndarray | None  # None where a call has none of it: no bias, no dropout
Maker: TypeAlias = Callable[[str], Tensor]  # makes the field of a name
Fields: TypeAlias = Mapping[str, Tensor | Maker]  # by name, each field or what makes it


class Missing(AttributeError):
    """A field that this Trace's source could not know: an uploaded map has no q, k, v."""


class Field(Generic[T]):
    """A tensor of a Trace: there from the start, or made when first read."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type[Trace], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, trace: None, owner: type[Trace]) -> Self: ...
    @overload
    def __get__(self, trace: Trace, owner: type[Trace] | None = None) -> T: ...
    def __get__(self, trace: Trace | None, owner: type[Trace] | None = None) -> Self | T:
        if trace is None:
            return self
        try:
            value: T = trace._fields[self.name]
        except KeyError:
            raise Missing(f"{trace.name} has no {self.name}: its source does not know it.") from None
        if callable(value):  # two threads may both compute it; they get equal values, and either may stay
            value = trace._fields[self.name] = trace._make(value, self.name)
        return value

    def __set__(self, trace: Trace, value: Never) -> NoReturn:
        raise AttributeError(f"a Trace cannot be changed: {self.name} is what was computed.")


class Made(dict[str, Tensor | Maker]):
    """Fields by name that are made when they are read; ``forget()`` lets go of what their making keeps, and they can be made again."""

    def __init__(self, fields: Fields, forget: Callable[[], object] | None) -> None:
        super().__init__(fields)
        self.forget = forget


class Trace:
    """One call of one attention layer, every tensor on the way, NumPy and read-only.

    Each field is an array or a function that makes it when it is first read. What the source does not know is absent: ``has``
    tells, reading it raises Missing. Shapes do not depend on ``batch_first``; S counts the extra columns of ``add_bias_kv`` and
    ``add_zero_attn`` as well.

    >>> import mha_viz as mv
    >>> trace = mv.synthetic(mv.Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=3, padding=()))
    >>> trace.shape, trace.q.shape, trace.output.shape
    ((1, 2, 3, 3), (1, 2, 3, 4), (1, 3, 8))
    >>> trace.has("q", "weights"), trace.key_tokens, trace.undefined.any()
    (True, (('0', '1', '2'),), np.False_)
    """

    q: Field[Float[np.ndarray, "N H L D"]] = Field("Queries after projection.")
    k: Field[Float[np.ndarray, "N H S D"]] = Field("Keys after projection, the extra columns included.")
    v: Field[Float[np.ndarray, "N H S D"]] = Field("Values after projection, the extra columns included.")
    scores: Field[Float[np.ndarray, "N H L S"]] = Field("q · k / √D, before any mask.")
    mask: Field[Bool[np.ndarray, "N H L S"]] = Field("True where a query may not attend (a broadcast view).")
    mask_bias: Field[Float[np.ndarray, "N H L S"] | None] = Field(
        "What an additive mask adds to the scores (a broadcast view), or None."
    )
    probabilities: Field[Float[np.ndarray, "N H L S"]] = Field(
        "After mask and softmax, before dropout: what statistics use. NaN in undefined rows."
    )
    keep_scale: Field[Float[np.ndarray, "N H L S"] | None] = Field(
        "What dropout multiplies the probabilities by, 0 or 1 / (1 − p); None where there is no dropout."
    )
    dropped: Field[Bool[np.ndarray, "N H L S"] | None] = Field(
        "True where dropout zeroes a weight; None where there is no dropout."
    )
    weights: Field[Float[np.ndarray, "N H L S"]] = Field(
        "After dropout, what nn.MultiheadAttention returns; the probabilities in eval mode."
    )
    mean_weights: Field[Float[np.ndarray, "N L S"]] = Field("The weights' average over heads.")
    undefined: Field[Bool[np.ndarray, "N H L"]] = Field("True where a query has no key left and so no distribution.")
    head_outputs: Field[Float[np.ndarray, "N H L D"]] = Field("weights @ v.")
    concat: Field[Float[np.ndarray, "N L H*D"]] = Field("The head outputs side by side.")
    output: Field[Float[np.ndarray, "N L E"]] = Field("concat @ Wᴼ.T + b.")

    def __init__(
        self,
        fields: Fields,
        *,
        tokens: Tokens | None = None,
        rules: Mask | None = None,
        layer: Layer | None = None,
        batch: Batch | None = None,
        call: Call | None = None,
        training: bool = False,
        name: str = "attention",
        quantity: str = "weight",
        plain: Trace | None = None,
        off: Off = (),
        dtype: Dtype | None = None,
        step: int | None = None,
    ) -> None:
        """``fields`` maps a field's name to an array, or to a function that makes one when it is called with that name.

        ``tokens`` are the Tokens of rows and columns; ``rules`` the Mask, None where only what it hid is known; ``layer`` and
        ``batch`` what was attended with, ``call`` what was recorded, each None where the source does not know. ``quantity`` is what
        a cell of its maps is called; where that is no attention weight, or not every one is there, ``plain`` is the Trace of them all.
        ``off`` pairs the heads that an Intervention put out with the way it did. ``dtype`` is the type that the numbers were computed
        in, by name; the weights' own where None. ``step`` is the forward pass of a recording of several in which it ran.
        """
        self._fields: dict[str, Any] = dict(fields)  # each as its Field says, or what makes it
        self._forget = fields.forget if isinstance(fields, Made) else None
        self._made = {name: make for name, make in fields.items() if callable(make)}
        self._tokens, self.rules = tokens, rules
        self.layer, self.batch, self.call, self.training, self.name = layer, batch, call, training, name
        self.quantity, self._plain, self.off, self._dtype = quantity, plain, off, dtype
        self.step = step
        self._nonfinite: Bool[np.ndarray, "N H L"] | None = None

    @classmethod
    @cache
    def fields(cls) -> tuple[str, ...]:
        """The names of all tensors that a Trace can hold, in the order in which they are made."""
        return tuple(name for name, field in vars(cls).items() if isinstance(field, Field))

    def _make(self, make: Maker, name: str) -> Any:
        """The tensor that ``make`` gives for ``name``. Raises Wrong, with sizes that would fit, where memory runs out."""
        size = self._size
        if size is None:
            return make(name)
        with in_memory(*size):
            return make(name)

    @property
    def _size(self) -> tuple[int, int, int, int, int] | None:
        """(N, H, L, S, E), told by what was attended with; None where the maps alone are known."""
        if self.call is not None:
            N, H, L, D = self.call.q.shape
            return N, H, L, self.call.k.shape[2], H * D
        if self.layer is None or self.batch is None:
            return None
        return self.batch.N, self.layer.num_heads, self.batch.L, self.batch.S, self.layer.embed_dim

    def forget(self) -> None:
        """Let go of every tensor that can be made again; it is, when it is read."""
        self._fields |= self._made
        if self._forget is not None:
            self._forget()

    def has(self, *names: str) -> bool:
        """True where every one of these fields is known."""
        return all(name in self._fields for name in names)

    @property
    def plain(self) -> Trace:
        """The Trace of all attention weights themselves.

        It is this one, unless its maps show another ``quantity`` made of them, or what is in sight of longer ones.
        """
        return self if self._plain is None else self._plain

    def showing(self, quantity: str, maps: Fields) -> Trace:
        """A Trace of the same call whose maps are these: probabilities, weights, mean_weights and undefined, by name.

        What came before the maps and after them is known of its ``plain`` alone, so that nobody derives it from another quantity.
        """
        names = ("rules", "layer", "batch", "call", "training", "name", "off", "dtype", "step")
        about = {"tokens": self._tokens} | {name: getattr(self, name) for name in names}
        masks = {name: self._fields[name] for name in ("mask", "mask_bias", "keep_scale", "dropped") if name in self._fields}
        return Trace(
            masks | dict(maps), **about, quantity=quantity, plain=Trace(self._fields, **about)
        )  # not self: see shown_trace

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, H, L, S), the shape of its maps, which are not read for it where they have not been made."""
        if self.call is None:
            return self.weights.shape
        return (*self.call.q.shape[:3], self.call.k.shape[2])

    @property
    def dtype(self) -> Dtype:
        """The type that its numbers were computed in, by name: they are as near to the right ones as it can hold.

        Numbers of bfloat16, which NumPy does not know, leave as float32.
        """
        return self._dtype or dtype_of(self.weights)

    @property
    def nonfinite(self) -> Bool[np.ndarray, "N H L"]:
        """Read-only; True for a row that has a key left and still holds NaN or an infinite number. No mask made it."""
        if self._nonfinite is None:
            bad = np.zeros(self.undefined.shape, bool)  # [N, H, L]
            if self.has("probabilities"):
                p = self.probabilities[..., :1] if self.has("q") else self.probabilities  # softmax makes a row NaN as a whole
                bad |= ~np.isfinite(p).all(axis=-1)
            if self.has("weights") and not (
                self.has("probabilities") and np.may_share_memory(self.weights, self.probabilities)
            ):
                bad |= ~np.isfinite(self.weights).all(axis=-1)
            self._nonfinite = read_only(bad & ~self.undefined)
        return self._nonfinite

    @property
    def tokens(self) -> Tokens:
        """What rows and columns stand for. Raises Missing where the Trace was made without."""
        if self._tokens is None:
            raise Missing(f"{self.name} has no tokens: its source does not know them.")
        return self._tokens

    @property
    def query_tokens(self) -> tuple[tuple[str, ...], ...]:
        """Per batch item, the L texts that name the rows."""
        return self.tokens.queries

    @property
    def key_tokens(self) -> tuple[tuple[str, ...], ...]:
        """Per batch item, the S texts that name the columns, the extra ones included."""
        return self.tokens.keys

    @property
    def query_padding(self) -> Bool[np.ndarray, "N L"]:
        """True for queries that are padding: they get rows like any other, which mean nothing."""
        return self.tokens.query_padding

    @property
    def num_positions(self) -> int:
        """How many columns are keys; those after them are the extra ones of ``add_bias_kv`` and ``add_zero_attn``."""
        return len(self.key_tokens[0]) - self.tokens.extra

    @property
    def scale(self) -> float | None:
        """What multiplies q · k; None where that is not known."""
        if self.call is not None:
            return self.call.scale
        return None if self.layer is None else self.layer.head_dim**-0.5

    @property
    def out_proj(self) -> tuple[Float[np.ndarray, "E H*D"], Float[np.ndarray, " E"] | None] | None:
        """The output projection, Wᴼ and its bias; None where it is not known."""
        if self.layer is not None:
            return self.layer.weights["out_proj.weight"], self.layer.weights.get("out_proj.bias")
        return None if self.call is None or self.call.out_weight is None else (self.call.out_weight, self.call.out_bias)


def bytes_held(traces: Iterable[Trace]) -> int:
    """Bytes that these Traces hold and could not make again; what several share is counted once."""
    found: dict[int, int] = {}  # address → bytes
    for trace in traces:
        whole = trace.plain
        parts = [value for value in whole._fields.values() if isinstance(value, np.ndarray)]
        for of in (whole.call, whole.batch, whole.rules, whole.call and whole.call.mask):
            parts += [value for value in vars(of).values() if isinstance(value, np.ndarray)] if of is not None else []
        parts += whole.layer.weights.values() if whole.layer is not None else []
        for array in parts:
            size = array.itemsize * prod(n for n, step in zip(array.shape, array.strides, strict=True) if step)
            address = array.__array_interface__["data"][0]
            found[address] = max(size, found.get(address, 0))
    return sum(found.values())


def broadcast(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """``array`` seen at ``shape`` without a copy."""
    return read_only(np.broadcast_to(array, shape))
