"""Decoding with a KV cache: tokens go through a layer one at a time, and each reads what was kept of those before it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.arrays import DTYPES, as_array, own, read_only
from mha_viz.core.attend import draw_dropout
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer, check_generator
from mha_viz.core.rules import Shape, Wrong, divisors, of_kind, one_of, whole, yes_or_no

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float

    from mha_viz.core.arrays import Dtype, Numbers
    from mha_viz.core.mask import Mask

SIZES: dict[str, int] = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}  # bytes of one number


@dataclass(frozen=True, eq=False)
class Step:
    """One call in decoding, of the tokens ``start`` to ``stop`` − 1, which are new; NumPy, read-only.

    ``q`` is of the n new tokens; ``k`` and ``v`` are what the cache gains. ``probabilities`` and ``weights`` are the new rows of every
    head's map, before and after dropout: their columns are the tokens so far, then ``add_bias_kv`` and ``add_zero_attn``. ``held`` are
    the bytes of keys and values in the cache after it.
    """

    start: int
    stop: int
    q: Float[np.ndarray, "N H n D"]
    k: Float[np.ndarray, "N G n D"]
    v: Float[np.ndarray, "N G n D"]
    probabilities: Float[np.ndarray, "N H n stop+extra"]
    weights: Float[np.ndarray, "N H n stop+extra"]
    output: Float[np.ndarray, "N n E"]
    held: int


@dataclass(frozen=True, eq=False)
class Decoding:
    """All ``steps`` of one ``batch`` through one ``layer``, and what the cache holds in the end: ``k`` and ``v``."""

    layer: Layer
    batch: Batch
    num_kv_heads: int
    dtype: Dtype
    training: bool
    steps: tuple[Step, ...]
    k: Float[np.ndarray, "N G L D"]
    v: Float[np.ndarray, "N G L D"]

    @property
    def output(self) -> Float[np.ndarray, "N L E"]:
        """The outputs of all steps in order."""
        return np.concatenate([step.output for step in self.steps], axis=1)


def decode(
    layer: Layer,
    batch: Batch,
    *,
    prompt: int = 1,
    num_kv_heads: int | None = None,
    dtype: Dtype = "float32",
    training: bool = False,
    generator: torch.Generator | None = None,
    draws: Numbers | None = None,
) -> Decoding:
    """The Decoding of a causal ``batch``: its first ``prompt`` tokens in one call, as a prompt is read, then one token a call.

    The batch's own masks hold, so that padded keys stay hidden in the cache. With ``num_kv_heads`` G the query heads read G heads of
    keys and values, and the cache holds no more than these: the layer must be one that ``share_kv`` gives. In training each call
    draws its own dropout from ``generator``; ``draws`` [N, H, L, S], factors as ``draw_dropout`` gives them, are used in place of that.

    Raises Wrong for cross-attention, for a batch that is not causal, and for what does not fit.

    >>> import numpy as np, mha_viz as mv
    >>> layer, batch = mv.Layer.random(embed_dim=8, num_heads=2), mv.Batch(np.ones((1, 4, 8)), causal=True)
    >>> decoding = mv.decode(layer, batch, prompt=2)
    >>> [(step.start, step.stop, step.weights.shape, step.held) for step in decoding.steps]
    [(0, 2, (1, 2, 2, 2), 128), (2, 3, (1, 2, 1, 3), 192), (3, 4, (1, 2, 1, 4), 256)]
    >>> bool(np.allclose(decoding.output, mv.attend(layer, batch).output))
    True
    """
    of_kind("layer", layer, Layer)
    of_kind("batch", batch, Batch)
    training = yes_or_no("training", training)
    check_generator(generator)
    if batch.key is not None:
        rule = "must be none: a decoder's keys are its own tokens. Those of a source do not grow, and are projected once for all steps."
        raise Wrong("key", Shape(batch.key.shape), rule, [{"key": None}])
    if not batch.causal:
        rule = "must be true: a token that reads later ones has no output before these are there, and no cache could give it."
        raise Wrong("causal", batch.causal, rule, [{"causal": True}])
    prompt = whole("prompt", prompt, 1, batch.L)
    decoder = Decoder(
        layer, batch.mask(layer.num_heads, len(layer.extra_keys), dtype), batch.N, num_kv_heads=num_kv_heads, dtype=dtype
    )
    p = layer.dropout if training else 0.0
    drawn, right = None, (batch.N, layer.num_heads, batch.L, batch.L + decoder.mask.extra)
    if draws is not None:
        drawn = as_array("draws", draws)
        if drawn.shape != right:
            raise Wrong("draws", Shape(drawn.shape), f"must be [N, H, L, S] = {right}.", [{"draws": Shape(right)}])
    steps = []
    for start, stop in [(0, prompt), *((t, t + 1) for t in range(prompt, batch.L))]:
        keep = None
        if drawn is not None:
            keep = decoder.columns(drawn[:, :, start:stop], stop)  # [N, H, n, stop + extra]
        elif p:
            keep = draw_dropout((batch.N, layer.num_heads, stop - start, stop + decoder.mask.extra), p, generator, dtype)
        steps.append(decoder.step(batch.query[:, start:stop], keep))
    k, v = (_leave(tensor) for tensor in decoder.cache.filled())
    return Decoding(layer, batch, decoder.num_kv_heads, dtype, training, tuple(steps), k, v)


class Cache:
    """Keys and values [N, G, length, D] of the tokens so far, in memory for ``capacity`` of them, so that growing copies nothing."""

    def __init__(self, N: int, num_kv_heads: int, capacity: int, head_dim: int, dtype: Dtype = "float32") -> None:
        import torch

        self.k, self.v = (torch.empty(N, num_kv_heads, capacity, head_dim, dtype=getattr(torch, dtype)) for _ in range(2))
        self.length = 0

    def append(self, k: Float[torch.Tensor, "N G n D"], v: Float[torch.Tensor, "N G n D"]) -> None:
        """Keep k and v of n more tokens; raises Wrong where there is no room for them."""
        start, stop, capacity = self.length, self.length + k.shape[2], self.k.shape[2]
        if stop > capacity:
            raise Wrong("capacity", capacity, f"has no room for token {stop - 1}.", [{"capacity": stop}])
        self.k[:, :, start:stop], self.v[:, :, start:stop] = k, v
        self.length = stop

    def filled(self) -> tuple[Float[torch.Tensor, "N G length D"], Float[torch.Tensor, "N G length D"]]:
        """(k, v), as views."""
        return self.k[:, :, : self.length], self.v[:, :, : self.length]

    @property
    def nbytes(self) -> int:
        """Bytes of what is filled, keys and values, counted from the tensors themselves."""
        return sum(tensor.nelement() * tensor.element_size() for tensor in self.filled())


class Decoder:
    """A layer with its Cache, of as many tokens as ``mask``, the Mask of the whole sequence, has queries and keys."""

    def __init__(self, layer: Layer, mask: Mask, N: int, *, num_kv_heads: int | None = None, dtype: Dtype = "float32") -> None:
        import torch

        if not layer.kdim == layer.vdim == layer.embed_dim:
            rule = f"must be embed_dim, {layer.embed_dim}: a decoder's keys and values are its own tokens."
            name = "kdim" if layer.kdim != layer.embed_dim else "vdim"
            raise Wrong(name, getattr(layer, name), rule, [{name: layer.embed_dim}])
        self.layer, self.mask = layer, mask
        self.dtype: torch.dtype = getattr(torch, one_of("dtype", dtype, DTYPES))
        G = self.num_kv_heads = kv_heads(layer.num_heads, num_kv_heads)
        H, D = layer.num_heads, layer.head_dim
        self.cache = Cache(N, G, mask.num_keys, D, dtype)
        weights = [layer.projections[0], *(_once(array, H, G) for array in layer.projections[1:])]
        self.in_weight = self._tensor(np.concatenate(weights))  # [(H + 2G)·D, E]
        self.in_bias = None
        if "in_proj_bias" in layer.weights:
            bq, bk, bv = np.split(layer.weights["in_proj_bias"], 3)
            self.in_bias = self._tensor(np.concatenate([bq, _once(bk, H, G), _once(bv, H, G)]))  # [(H + 2G)·D]
        out = layer.weights["out_proj.weight"], layer.weights.get("out_proj.bias")
        self.out = self._tensor(out[0]), None if out[1] is None else self._tensor(out[1])
        self.extra = [self._extra(name).expand(N, G, -1, D) for name in ("bias_k", "bias_v")]  # [N, G, extra, D] each

    def step(self, x: Float[np.ndarray, "N n E"], keep: Float[np.ndarray, "N H n stop+extra"] | None = None) -> Step:
        """The Step of new tokens x; ``keep`` multiplies the weights, None where nothing is dropped."""
        start = self.cache.length
        made = self.run(self._tensor(x), self.added(start, start + x.shape[1]), None if keep is None else self._tensor(keep))
        q, k, v, probabilities, weights, output = map(_leave, made)
        return Step(start, self.cache.length, q, k, v, probabilities, weights, output, self.cache.nbytes)

    def run(
        self,
        x: Float[torch.Tensor, "N n E"],
        added: Float[torch.Tensor, "#N #H n stop+extra"],
        keep: Float[torch.Tensor, "N H n stop+extra"] | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """q, k, v, probabilities, weights and output of new tokens x, as tensors shaped as a Step's arrays.

        ``added`` is what ``self.added`` gives for these tokens.
        """
        import torch
        from torch.nn import functional as F

        H, G, D = self.layer.num_heads, self.num_kv_heads, self.layer.head_dim
        N, n, _ = x.shape
        joint = F.linear(x, self.in_weight, self.in_bias).view(N, n, H + 2 * G, D).transpose(1, 2)  # [N, H + 2G, n, D]
        q, k, v = torch.split(joint, [H, G, G], dim=1)  # [N, H|G, n, D] each
        self.cache.append(k, v)
        keys, values = self.cache.filled()  # [N, G, stop, D] each
        if self.mask.extra:
            keys, values = (
                torch.cat(pair, dim=2) for pair in zip((keys, values), self.extra, strict=True)
            )  # [N, G, stop + extra, D]
        grouped = (q * math.sqrt(1.0 / D)).reshape(N, G, -1, D)  # [N, G, H / G · n, D]: heads of a group read the same keys
        scores = (grouped @ keys.transpose(-2, -1)).view(N, H, n, -1)  # [N, H, n, stop + extra]
        probabilities = torch.softmax(scores + added, dim=-1)  # [N, H, n, stop + extra]
        weights = probabilities if keep is None else probabilities * keep  # [N, H, n, stop + extra]
        heads = (weights.view(N, G, -1, weights.shape[-1]) @ values).view(N, H, n, D)  # [N, H, n, D]
        concat = heads.transpose(1, 2).reshape(N, n, H * D)  # [N, n, H·D]
        return q, k, v, probabilities, weights, F.linear(concat, *self.out)  # the last [N, n, E]

    def forget(self) -> None:
        """Empty the cache."""
        self.cache.length = 0

    def columns(self, array: Float[np.ndarray, "... S+extra"], stop: int) -> Float[np.ndarray, "... stop+extra"]:
        """The columns that are there once ``stop`` tokens are."""
        return np.concatenate([array[..., :stop], array[..., self.mask.num_keys :]], axis=-1)

    def added(self, start: int, stop: int) -> Float[torch.Tensor, "#N #H n stop+extra"]:
        """What the masks add to the scores of the tokens ``start`` to ``stop`` − 1, as the engine adds it."""
        hidden, bias = self.mask.hidden(start, stop), self.mask.added(start, stop)
        added = np.where(hidden, np.float32(-np.inf), np.float32(0))
        added = added if bias is None else added + bias
        return self._tensor(self.columns(added, stop))

    def _extra(self, name: str) -> Float[torch.Tensor, "G extra D"]:
        """The keys, or values, that come after every token's."""
        import torch

        H, G, D = self.layer.num_heads, self.num_kv_heads, self.layer.head_dim
        rows = [torch.zeros(G, 0, D, dtype=self.dtype)]
        if name in self.layer.weights:
            rows.append(self._tensor(_once(self.layer.weights[name].reshape(H * D), H, G)).view(G, 1, D))
        if self.layer.add_zero_attn:
            rows.append(torch.zeros(G, 1, D, dtype=self.dtype))
        return torch.cat(rows, dim=1)

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        import torch

        return torch.tensor(array).to(self.dtype)


def kv_heads(num_heads: int, num_kv_heads: int | None = None) -> int:
    """``num_kv_heads``, ``num_heads`` where None; raises Wrong where it does not divide the query heads into equal groups.

    >>> kv_heads(8), kv_heads(8, 2)
    (8, 2)
    """
    if num_kv_heads is None:
        return num_heads
    G = whole("num_kv_heads", num_kv_heads, 1)
    if num_heads % G:
        fitting = sorted(divisors(num_heads), key=lambda d: abs(d - G))[:2]
        rule = f"must divide num_heads, {num_heads}, into equal groups that share a key head and a value head."
        raise Wrong("num_kv_heads", G, rule, [{"num_kv_heads": d} for d in sorted(fitting)])
    return G


def share_kv(layer: Layer, num_kv_heads: int) -> Layer:
    """The layer whose query heads read ``num_kv_heads`` G heads of keys and values: grouped-query attention.

    Query head h reads group h // (H / G). A group's key and value projections are the mean of its heads' (Ainslie et al. 2023, GQA,
    section 2.1), written once for each of its query heads, so that the layer keeps its shapes. Raises Wrong where G does not divide H.

    >>> import mha_viz as mv
    >>> Wk = mv.share_kv(mv.Layer.random(embed_dim=8, num_heads=4), 2).projections[1].reshape(4, 2, 8)  # [H, D, E]
    >>> bool((Wk[0] == Wk[1]).all()), bool((Wk[1] == Wk[2]).all())
    (True, False)
    """
    of_kind("layer", layer, Layer)
    G, H = kv_heads(layer.num_heads, num_kv_heads), layer.num_heads
    if G == H:
        return layer
    weights, E = dict(layer.weights), layer.embed_dim
    if layer.packed:
        for name in ("in_proj_weight", "in_proj_bias"):
            if name in weights:
                weights[name] = np.concatenate(
                    [weights[name][:E], *(_mean(weights[name][i * E : (i + 1) * E], H, G) for i in (1, 2))]
                )
    else:
        weights |= {name: _mean(weights[name], H, G) for name in ("k_proj_weight", "v_proj_weight")}
        if "in_proj_bias" in weights:
            bq, bk, bv = np.split(weights["in_proj_bias"], 3)
            weights["in_proj_bias"] = np.concatenate([bq, _mean(bk, H, G), _mean(bv, H, G)])
    for name in ("bias_k", "bias_v"):
        if name in weights:
            weights[name] = _mean(weights[name].reshape(-1), H, G).reshape(1, 1, -1)
    frozen = MappingProxyType({name: own(array) for name, array in weights.items()})
    return Layer(frozen, H, layer.head_dim, layer.dropout, layer.add_zero_attn, layer.seed)


def cache_bytes(
    length: int, num_kv_heads: int, head_dim: int, *, dtype: str = "float32", batch_size: int = 1, layers: int = 1
) -> int:
    """Bytes that the keys and values of ``length`` tokens take: 2 · layers · N · G · S · D · bytes of a number.

    >>> cache_bytes(4096, num_kv_heads=8, head_dim=128, dtype="float16", layers=32)
    536870912
    """
    return 2 * layers * batch_size * num_kv_heads * length * head_dim * SIZES[one_of("dtype", dtype, tuple(SIZES))]


def work(
    new: int, keys: int, *, embed_dim: int, num_heads: int, head_dim: int, num_kv_heads: int | None = None, batch_size: int = 1
) -> int:
    """Multiply-adds of one call with ``new`` tokens that read ``keys`` columns each, masked ones included, as they are computed too.

    N · (n · E · (H + 2G) · D for q, k and v, 2 · n · S · H · D for scores and weighted sums, n · H · D · E for the output).

    >>> work(1, 100, embed_dim=8, num_heads=2, head_dim=4)
    1856
    """
    H, G, D = num_heads, kv_heads(num_heads, num_kv_heads), head_dim
    return batch_size * new * (embed_dim * (H + 2 * G) * D + 2 * keys * H * D + H * D * embed_dim)


def _mean(rows: Float[np.ndarray, "H*D ..."], H: int, G: int) -> Float[np.ndarray, "H*D ..."]:
    """Rows with the mean of its group's heads in place of each head's."""
    heads = rows.reshape(G, H // G, len(rows) // H, *rows.shape[1:])  # [G, H / G, D, …]
    mean = heads.mean(axis=1, keepdims=True, dtype=np.float64).astype(rows.dtype)  # [G, 1, D, …]
    return np.broadcast_to(mean, heads.shape).reshape(rows.shape)


def _once(rows: Float[np.ndarray, "H*D ..."], H: int, G: int) -> Float[np.ndarray, "G*D ..."]:
    """Rows of one head in each group; raises Wrong where the heads of a group differ."""
    heads = rows.reshape(G, H // G, len(rows) // H, *rows.shape[1:])  # [G, H / G, D, …]
    if not (heads == heads[:, :1]).all():
        rule = f"must be {H} for this layer, whose heads have keys and values of their own; share_kv(layer, {G}) makes one of each group."
        raise Wrong("num_kv_heads", G, rule, [{"num_kv_heads": H}])
    return heads[:, 0].reshape(-1, *rows.shape[1:])


def _leave(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as read-only NumPy, bfloat16 as float32."""
    return read_only((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())
