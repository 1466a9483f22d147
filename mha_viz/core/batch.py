"""What goes into a layer: queries, keys, values, and everything that says who may see whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.arrays import as_array, as_mask, own
from mha_viz.core.mask import Mask
from mha_viz.core.rules import FILLED_IN, Shape, Wrong, whole
from mha_viz.core.tokens import Tokens, texts

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from mha_viz.core.arrays import Dtype, Numbers


@dataclass(frozen=True, eq=False)
class Batch:
    """The input of one attention call, batch first; arrays, nested lists or tensors in, read-only NumPy kept.

    query [N, L, E]; key [N, S, kdim], the query where None; value [N, S, vdim], the key where None. 2-D input is one unbatched
    item and is held as N = 1; its masks may lack the batch axis as well.

    key_padding_mask [N, S] and attn_mask [L, S] or [N·H, L, S] (item n, head h at row n·H + h) as ``nn.MultiheadAttention``
    takes them: bool, True = may not attend, or floats that are added to the scaled scores. ``causal`` and ``window`` are rules
    (see ``Mask``). ``query_padding_mask`` [N, L] bool changes no number: it marks the queries that are padding, so that pictures
    and statistics leave them out; in self-attention it follows a bool key_padding_mask unless given.

    ``query_tokens`` and ``key_tokens`` name the rows and columns: one sequence of L (S) texts per batch item.

    Raises Wrong for shapes that do not fit each other, and for masks of another type.

    >>> import numpy as np, mha_viz as mv
    >>> batch = mv.Batch(np.zeros((2, 3, 8)), key_padding_mask=[[False, False, True], [False] * 3])
    >>> batch.N, batch.L, batch.S, batch.query_padding_mask.tolist()[0]
    (2, 3, 3, [False, False, True])
    >>> mv.Batch(np.zeros((2, 3, 8)), attn_mask=np.zeros((3, 2)))
    Traceback (most recent call last):
    mha_viz.core.rules.Wrong: attn_mask of shape (3, 2): must end in [L, S] = (3, 3). Nearest right: attn_mask of shape (3, 3).
    """

    query: Float[np.ndarray, "N L E"]
    key: Float[np.ndarray, "N S kdim"] | None = None
    value: Float[np.ndarray, "N S vdim"] | None = None
    key_padding_mask: Bool[np.ndarray, "N S"] | Float[np.ndarray, "N S"] | None = None
    attn_mask: Bool[np.ndarray, "... L S"] | Float[np.ndarray, "... L S"] | None = None
    query_padding_mask: Bool[np.ndarray, "N L"] | None = None
    causal: bool = False
    window: int | None = None
    query_tokens: tuple[tuple[str, ...], ...] = FILLED_IN
    key_tokens: tuple[tuple[str, ...], ...] = FILLED_IN

    if TYPE_CHECKING:  # arrays of any kind in, NumPy kept; and tokens that are None are numbered

        def __init__(
            self,
            query: Numbers,
            key: Numbers | None = None,
            value: Numbers | None = None,
            key_padding_mask: Numbers | None = None,
            attn_mask: Numbers | None = None,
            query_padding_mask: Numbers | None = None,
            causal: bool = False,
            window: int | None = None,
            query_tokens: Sequence[Sequence[str]] | None = None,
            key_tokens: Sequence[Sequence[str]] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        arrays: dict[str, np.ndarray] = {}
        for name in ("query", "key", "value", "key_padding_mask", "attn_mask", "query_padding_mask"):
            given = getattr(self, name)
            if given is not None or name == "query":
                arrays[name] = (as_mask if name.endswith("mask") else as_array)(name, given)
        arrays = _batched(arrays)
        self._check_sequences(arrays)
        self._check_masks(arrays)
        if self.window is not None:
            whole("window", self.window, 1)
        if "query_padding_mask" not in arrays and "key" not in arrays:
            padding = arrays.get("key_padding_mask")
            if padding is not None and padding.dtype == bool:
                arrays["query_padding_mask"] = padding
        for name, array in arrays.items():
            object.__setattr__(self, name, own(array))
        queries = texts("query_tokens", self.query_tokens, self.N, self.L)
        named: Sequence[Sequence[str]] | None = self.key_tokens
        keys = queries if self.key is None and named is None else texts("key_tokens", named, self.N, self.S)
        object.__setattr__(self, "query_tokens", queries)
        object.__setattr__(self, "key_tokens", keys)

    @property
    def N(self) -> int:
        """How many batch items there are."""
        return len(self.query)

    @property
    def L(self) -> int:
        """How many queries each item has."""
        return int(self.query.shape[1])

    @property
    def S(self) -> int:
        """How many keys each item has, without the columns that a layer adds."""
        return self.L if self.key is None else int(self.key.shape[1])

    def mask(self, num_heads: int, extra: int = 0, dtype: Dtype = "float32") -> Mask:
        """The masks of this batch as one ``Mask`` for a layer with ``num_heads`` heads and ``extra`` columns after the keys.

        What is added to the scores is rounded to ``dtype`` first, as the scores are: in float16 −1e9 is −∞ and hides its key.
        """
        dense, padded, added = None, None, list[np.ndarray]()
        if self.attn_mask is not None:
            shaped = self.attn_mask[None, None]  # [1, 1, L, S]
            if self.attn_mask.ndim == 3:
                if len(self.attn_mask) != self.N * num_heads:
                    raise self._wrong_head_axis(self.attn_mask.shape, num_heads)
                shaped = self.attn_mask.reshape(self.N, num_heads, self.L, self.S)
            if shaped.dtype == bool:
                dense = shaped
            else:
                added.append(_rounded("attn_mask", shaped, dtype))
        if self.key_padding_mask is not None:
            if self.key_padding_mask.dtype == bool:
                padded = self.key_padding_mask
            else:
                added.append(_rounded("key_padding_mask", self.key_padding_mask[:, None, None], dtype))  # [N, 1, 1, S]
        if not added:
            return Mask(self.L, self.S, extra, self.causal, self.window, padded, dense)
        with np.errstate(over="ignore"):
            bias = sum(added[1:], added[0] + 0)  # [1|N, 1|H, 1|L, S]
        hidden = np.isneginf(bias)
        if hidden.any():
            dense = hidden if dense is None else dense | hidden  # [1|N, 1|H, 1|L, S]
            bias = np.where(hidden, bias.dtype.type(0), bias)
        return Mask(self.L, self.S, extra, self.causal, self.window, padded, dense, bias if bias.any() else None)

    def tokens(self, extra: Sequence[str] = ()) -> Tokens:
        """The Tokens of rows and columns, with the texts ``extra`` for columns after the keys.

        Queries and keys are one sequence in self-attention, also with the key passed again, and where rules say so.
        """
        one = self.key is None or self.causal or self.window is not None or np.array_equal(self.query, self.key)
        padding = self.query_padding_mask
        padding = np.zeros((self.N, self.L), bool) if padding is None else padding
        keys = tuple(item + tuple(extra) for item in self.key_tokens)
        return Tokens(self.query_tokens, keys, padding, len(extra), np.arange(self.L) + self.S - self.L if one else None)

    def _check_sequences(self, arrays: dict[str, np.ndarray]) -> None:
        query, key = arrays["query"], arrays.get("key", arrays["query"])
        N, S = len(query), key.shape[1]
        if 0 in query.shape:
            raise Wrong("query", Shape(query.shape), "must hold at least one item, one token and one number a token.")
        if "value" in arrays and "key" not in arrays:
            rule = "needs a key beside it: pass key as well, even where it is the query."
            raise Wrong("value", Shape(arrays["value"].shape), rule)
        for name in ("key", "value"):
            if name not in arrays:
                continue
            shape = arrays[name].shape
            if shape[0] != N:
                rule = f"must have the query's batch size, {N}, as its first axis (batch first)."
                raise Wrong(name, Shape(shape), rule, [{name: Shape((N, *shape[1:]))}])
            if 0 in shape:
                raise Wrong(name, Shape(shape), "must hold at least one token and one number a token.")
            if shape[1] != S:
                raise Wrong(name, Shape(shape), f"must have the key's length, {S}.", [{name: Shape((N, S, shape[2]))}])

    def _check_masks(self, arrays: dict[str, np.ndarray]) -> None:
        N, L = arrays["query"].shape[:2]
        S = arrays.get("key", arrays["query"]).shape[1]
        for name, letters, right in (("key_padding_mask", "[N, S]", (N, S)), ("query_padding_mask", "[N, L]", (N, L))):
            if name in arrays and arrays[name].shape != right:
                shape = arrays[name].shape
                hint = " It looks transposed." if shape == right[::-1] else ""
                rule = f"must be {letters} = {right}, batch first whatever the layout of the input.{hint}"
                raise Wrong(name, Shape(shape), rule, [{name: Shape(right)}])
        if "query_padding_mask" in arrays and arrays["query_padding_mask"].dtype != bool:
            padding = arrays["query_padding_mask"].dtype
            rule = "must be bool: a query is padding or it is not."
            raise Wrong("query_padding_mask", padding, rule, [{"query_padding_mask": np.dtype(bool)}])
        if "attn_mask" in arrays:
            shape = arrays["attn_mask"].shape
            if len(shape) not in (2, 3):
                hint = f" Reshape it: attn_mask.reshape({shape[0] * shape[1]}, {L}, {S})." if len(shape) == 4 else ""
                rule = f"must be [L, S] = {(L, S)} or [N·H, L, S].{hint}"
                raise Wrong("attn_mask", Shape(shape), rule, [{"attn_mask": Shape((L, S))}])
            if shape[-2:] != (L, S):
                hint = " It looks transposed: rows are queries, columns are keys." if shape[-2:] == (S, L) else ""
                rule = f"must end in [L, S] = {(L, S)}.{hint}"
                raise Wrong("attn_mask", Shape(shape), rule, [{"attn_mask": Shape((*shape[:-2], L, S))}])
        for name in ("attn_mask", "key_padding_mask"):
            if name in arrays and arrays[name].dtype != bool:
                _check_added(name, arrays[name])

    def _wrong_head_axis(self, got: tuple[int, ...], num_heads: int) -> Wrong:
        right = (self.N * num_heads, self.L, self.S)
        if got[0] == self.N:
            hint = f"One mask per item: repeat it for the heads, attn_mask.repeat_interleave({num_heads}, 0), never .repeat."
        elif got[0] == num_heads:
            hint = f"One mask per head: tile it over the items, attn_mask.repeat({self.N}, 1, 1)."
        else:
            hint = "Item n, head h stands at row n·H + h."
        rule = f"must be [N·H, L, S] = {right} for {num_heads} heads. {hint}"
        return Wrong("attn_mask", Shape(got), rule, [{"attn_mask": Shape(right)}])


def _batched(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays with a batch axis, N = 1 where the query has none; raises Wrong where query, key and value differ in their axes."""
    query = arrays["query"]
    if query.ndim not in (2, 3):
        raise Wrong("query", Shape(query.shape), "must be [N, L, E], or [L, E] for one item: 3 or 2 axes.")
    for name in ("key", "value"):
        if name in arrays and arrays[name].ndim != query.ndim:
            rule = f"must have {query.ndim} axes, as the query of shape {query.shape} has."
            raise Wrong(name, Shape(arrays[name].shape), rule)
    if query.ndim == 3:
        return arrays
    lacking = {"query": 2, "key": 2, "value": 2, "key_padding_mask": 1, "query_padding_mask": 1}
    return {name: array[None] if array.ndim == lacking.get(name) else array for name, array in arrays.items()}


def _rounded(name: str, mask: Float[np.ndarray, ...], dtype: Dtype) -> Float[np.ndarray, ...]:
    """A float mask with the numbers that it has in ``dtype``; NumPy has no bfloat16, so that one is float32."""
    if dtype == "bfloat16":
        import torch

        rounded = torch.tensor(mask).bfloat16().float().numpy()
    else:
        with np.errstate(over="ignore"):
            rounded = mask.astype(dtype)
    _check_added(name, rounded)
    return rounded


def _check_added(name: str, mask: Float[np.ndarray, ...]) -> None:
    if np.isnan(mask).any() or np.isposinf(mask).any():
        bad = math.nan if np.isnan(mask).any() else math.inf
        rule = f"may hold −inf and finite numbers of {mask.dtype} only: anything else makes its whole row NaN (0 · −inf is NaN too)."
        raise Wrong(name, bad, rule)
