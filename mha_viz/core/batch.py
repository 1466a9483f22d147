"""What goes into a layer: queries, keys, values, and everything that says who may see whom."""

from dataclasses import dataclass, fields

import numpy as np

from mha_viz.core.arrays import as_array, read_only
from mha_viz.core.mask import Mask, split_additive
from mha_viz.core.rules import Wrong, whole


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
    """

    query: np.ndarray
    key: np.ndarray | None = None
    value: np.ndarray | None = None
    key_padding_mask: np.ndarray | None = None
    attn_mask: np.ndarray | None = None
    query_padding_mask: np.ndarray | None = None
    causal: bool = False
    window: int | None = None
    query_tokens: tuple | None = None
    key_tokens: tuple | None = None

    def __post_init__(self):
        given = {f.name: getattr(self, f.name) for f in fields(self)[:6] if getattr(self, f.name) is not None}
        arrays = {name: as_array(name, value) for name, value in given.items()}
        query = arrays["query"]
        if query.ndim not in (2, 3):
            raise Wrong("query", query.shape, "must be [N, L, E], or [L, E] for one item: 3 or 2 axes.")
        if query.ndim == 2:
            arrays = {name: array[None] if name != "attn_mask" else array for name, array in arrays.items()}
        self._check_sequences(arrays)
        self._check_masks(arrays)
        if self.window is not None:
            whole("window", self.window, 1)
        if "query_padding_mask" not in arrays and "key" not in arrays:
            padding = arrays.get("key_padding_mask")
            if padding is not None and padding.dtype == bool:
                arrays["query_padding_mask"] = padding
        for name, array in arrays.items():
            object.__setattr__(self, name, read_only(array.copy()))  # the caller may go on changing theirs
        object.__setattr__(self, "query_tokens", self._tokens("query_tokens", self.L))
        if self.key is None and self.key_tokens is None:
            object.__setattr__(self, "key_tokens", self.query_tokens)
        else:
            object.__setattr__(self, "key_tokens", self._tokens("key_tokens", self.S))

    @property
    def N(self):
        return self.query.shape[0]

    @property
    def L(self):
        return self.query.shape[1]

    @property
    def S(self):
        return self.query.shape[1] if self.key is None else self.key.shape[1]

    def mask(self, num_heads, extra=0):
        """The masks of this batch as one ``Mask`` for a layer with ``num_heads`` heads and ``extra`` columns after the keys."""
        hidden, added = None, None
        if self.attn_mask is not None:
            shaped = self.attn_mask[None, None]  # [1, 1, L, S]
            if self.attn_mask.ndim == 3:
                if len(self.attn_mask) != self.N * num_heads:
                    raise self._wrong_head_axis(num_heads)
                shaped = self.attn_mask.reshape(self.N, num_heads, self.L, self.S)
            hidden, added = (shaped, None) if shaped.dtype == bool else split_additive(shaped)
        padded = self.key_padding_mask
        if padded is not None and padded.dtype != bool:
            padded, padding_bias = split_additive(padded)
            if padding_bias is not None:
                padding_bias = padding_bias[:, None, None, :]  # [N, 1, 1, S]
                added = padding_bias if added is None else added + padding_bias
        return Mask(self.L, self.S, extra, self.causal, self.window, padded, hidden, added)

    def _check_sequences(self, arrays):
        N, S = arrays["query"].shape[0], arrays.get("key", arrays["query"]).shape[1:2]
        if 0 in arrays["query"].shape:
            raise Wrong("query", arrays["query"].shape, "must hold at least one item, one token and one number a token.")
        if "value" in arrays and "key" not in arrays:
            raise Wrong("value", arrays["value"].shape, "needs a key beside it: pass key as well, even where it is the query.")
        for name in ("key", "value"):
            if name not in arrays:
                continue
            shape = arrays[name].shape
            if len(shape) != 3:
                raise Wrong(name, shape, f"must have as many axes as the query, whose shape is {self._given_shape(arrays)}.")
            if shape[0] != N:
                rule = f"must have the query's batch size, {N}, as its first axis (batch first)."
                raise Wrong(name, shape, rule, [{name: (N, *shape[1:])}])
            if shape[1:2] != S:
                raise Wrong(name, shape, f"must have the key's length, {S[0]}.", [{name: (N, *S, shape[2])}])

    def _given_shape(self, arrays):
        return tuple(np.shape(self.query)) if np.ndim(self.query) == 2 else arrays["query"].shape

    def _check_masks(self, arrays):
        N, L = arrays["query"].shape[:2]
        S = arrays.get("key", arrays["query"]).shape[1]
        for name, right in (("key_padding_mask", (N, S)), ("query_padding_mask", (N, L))):
            if name in arrays and arrays[name].shape != right:
                shape = arrays[name].shape
                letters = "[N, S]" if name == "key_padding_mask" else "[N, L]"
                hint = " It looks transposed." if shape == right[::-1] else ""
                rule = f"must be {letters} = {right}, batch first whatever the layout of the input.{hint}"
                raise Wrong(name, shape, rule, [{name: right}])
        if "query_padding_mask" in arrays and arrays["query_padding_mask"].dtype != bool:
            raise Wrong("query_padding_mask", "floats", "must be bool: a query is padding or it is not.")
        if "attn_mask" in arrays:
            shape = arrays["attn_mask"].shape
            if len(shape) not in (2, 3):
                hint = f" Reshape it: attn_mask.reshape({shape[0] * shape[1]}, {L}, {S})." if len(shape) == 4 else ""
                raise Wrong("attn_mask", shape, f"must be [L, S] = {(L, S)} or [N·H, L, S].{hint}", [{"attn_mask": (L, S)}])
            if shape[-2:] != (L, S):
                hint = " It looks transposed: rows are queries, columns are keys." if shape[-2:] == (S, L) else ""
                raise Wrong("attn_mask", shape, f"must end in [L, S] = {(L, S)}.{hint}", [{"attn_mask": (*shape[:-2], L, S)}])
        for name in ("attn_mask", "key_padding_mask"):
            mask = arrays.get(name)
            if mask is not None and mask.dtype != bool and (np.isnan(mask).any() or np.isposinf(mask).any()):
                bad = "NaN" if np.isnan(mask).any() else "+inf"
                raise Wrong(
                    name,
                    bad,
                    "may hold finite numbers and −inf only: anything else makes the whole row NaN. (0 · −inf is NaN.)",
                )

    def _wrong_head_axis(self, num_heads):
        got, right = self.attn_mask.shape, (self.N * num_heads, self.L, self.S)
        if got[0] == self.N:
            hint = f"One mask per item: repeat it for the heads, attn_mask.repeat_interleave({num_heads}, 0), never .repeat."
        elif got[0] == num_heads:
            hint = f"One mask per head: tile it over the items, attn_mask.repeat({self.N}, 1, 1)."
        else:
            hint = "Item n, head h stands at row n·H + h."
        return Wrong("attn_mask", got, f"must be [N·H, L, S] = {right} for {num_heads} heads. {hint}", [{"attn_mask": right}])

    def _tokens(self, argument, length):
        tokens = getattr(self, argument)
        if tokens is None:
            return (tuple(map(str, range(length))),) * self.N
        if isinstance(tokens, str) or any(isinstance(item, str) for item in tokens):
            raise Wrong(argument, tokens, 'must be one sequence of texts per batch item: (("the", "cat"), …).')
        tokens = tuple(tuple(map(str, item)) for item in tokens)
        if len(tokens) != self.N or {len(item) for item in tokens} != {length}:
            counts = tuple(len(item) for item in tokens)
            raise Wrong(
                argument,
                counts,
                f"must name {length} tokens for each of {self.N} batch items.",
                [{argument: (length,) * self.N}],
            )
        return tokens
