"""One attention call after its projections: all that has to be kept to see the whole of it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from mha_viz.core.arrays import as_array, own
from mha_viz.core.mask import Mask
from mha_viz.core.rules import FILLED_IN, Shape, Wrong, of_kind, one_of
from mha_viz.core.tokens import Tokens

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.core.arrays import Dtype, Numbers

WithoutKey: TypeAlias = Literal["nan", "zero"]
WITHOUT_KEY: tuple[WithoutKey, ...] = ("nan", "zero")


@dataclass(frozen=True, eq=False)
class Call:
    """softmax(scale · q kᵀ + mask) v, with what is known around it. Its size grows with L and S, not with L · S.

    q [N, H, L, D]; k [N, G, S, D] and v [N, G, S, Dv], where G divides H: grouped key and value heads are kept once, and query
    head h reads group h // (H / G). All of them after projection, and rotated where the model rotates. ``mask`` is the rule of who
    may see whom, S counting its extra columns; ``scale`` multiplies q · k, 1 / √D where None. ``out_weight`` [E, H·Dv] and
    ``out_bias`` [E] are the output projection, None where it is not known; so is ``v``. ``tokens`` say what rows and columns stand
    for; ``name`` says which module this was. ``without_key`` is what the head outputs of a query without a key are: "nan", as
    softmax leaves them, or "zero", as ``scaled_dot_product_attention`` does. ``step`` is the forward pass of a recording of several
    in which it ran.

    Raises Wrong where the shapes do not fit each other.

    >>> import numpy as np
    >>> call = Call(np.zeros((1, 4, 3, 8)), np.zeros((1, 2, 5, 8)), mask=Mask(3, 5, causal=True))  # pairs of heads share keys
    >>> call.num_heads, call.mask.num_keys, call.v is None
    (4, 5, True)
    """

    q: Float[np.ndarray, "N H L D"]
    k: Float[np.ndarray, "N G S D"]
    v: Float[np.ndarray, "N G S Dv"] | None = None
    mask: Mask = FILLED_IN
    scale: float = FILLED_IN
    out_weight: Float[np.ndarray, "E H*Dv"] | None = None
    out_bias: Float[np.ndarray, " E"] | None = None
    tokens: Tokens = FILLED_IN
    name: str = "attention"
    without_key: WithoutKey = "nan"
    step: int | None = None

    if TYPE_CHECKING:  # arrays of any kind in, NumPy kept; and what is None is filled in

        def __init__(
            self,
            q: Numbers,
            k: Numbers,
            v: Numbers | None = None,
            mask: Mask | None = None,
            scale: float | None = None,
            out_weight: Numbers | None = None,
            out_bias: Numbers | None = None,
            tokens: Tokens | None = None,
            name: str = "attention",
            without_key: WithoutKey = "nan",
            step: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("q", "k", "v", "out_weight", "out_bias"):
            value = getattr(self, name)
            if value is not None or name in ("q", "k"):
                object.__setattr__(self, name, own(as_array(name, value)))
        one_of("without_key", self.without_key, WITHOUT_KEY)
        for name, kind in (("mask", Mask), ("tokens", Tokens)):
            if getattr(self, name) is not None:
                of_kind(name, getattr(self, name), kind)
        self._check()
        N, _, L, D = self.q.shape
        S = self.k.shape[2]
        defaults: dict[str, Callable[[], object]] = {
            "mask": lambda: Mask(L, S),
            "scale": lambda: D**-0.5,
            "tokens": lambda: Tokens.of(N, L, S, one_sequence=L == S),
        }
        for name, make in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, make())
        if (self.mask.num_queries, self.mask.num_keys + self.mask.extra) != (L, S):
            rule = f"is for {self.mask.num_queries} queries and {self.mask.num_keys + self.mask.extra} keys; q and k have {L} and {S}."
            raise Wrong("mask", Shape((self.mask.num_queries, self.mask.num_keys)), rule)

    @property
    def num_heads(self) -> int:
        """How many heads ask; they may share those of keys and values."""
        return int(self.q.shape[1])

    @property
    def dtype(self) -> Dtype:
        """The type that its Trace is computed in, by name: float64 where q is, else float32, whatever it was recorded in."""
        return "float64" if self.q.dtype == np.float64 else "float32"

    def _check(self) -> None:
        for name, letters in (("q", "[N, H, L, D]"), ("k", "[N, G, S, D]"), ("v", "[N, G, S, Dv]")):
            array = getattr(self, name)
            if array is not None and (array.ndim != 4 or 0 in array.shape):
                raise Wrong(name, Shape(array.shape), f"must be {letters}, and no axis empty.")
        N, H, _, D = self.q.shape
        G, S = self.k.shape[1:3]
        if self.k.shape != (N, G, S, D) or H % G:
            rule = f"must fit q of shape {self.q.shape}: the same N and D, and as many heads or a number that divides them."
            raise Wrong("k", Shape(self.k.shape), rule, [{"k": Shape((N, H, S, D))}])
        if self.out_bias is not None and (self.out_weight is None or self.out_bias.shape != self.out_weight.shape[:1]):
            rule = "must be [E], and beside out_weight [E, H·D]."
            raise Wrong("out_bias", Shape(self.out_bias.shape), rule)
        if self.v is None:
            return
        if self.v.shape[:3] != (N, G, S):
            raise Wrong("v", Shape(self.v.shape), f"must have k's first axes, {(N, G, S)}.", [{"v": Shape((N, G, S, D))}])
        width = H * self.v.shape[3]
        if self.out_weight is not None and (self.out_weight.ndim != 2 or self.out_weight.shape[1] != width):
            rule = f"must be [E, H·D] = [E, {width}]: y = x @ W.T + b."
            raise Wrong("out_weight", Shape(self.out_weight.shape), rule)
