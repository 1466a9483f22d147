"""Multi-head attention in PyTorch, operator by operator as ``nn.MultiheadAttention``'s slow path does it, each result kept.

The operators, their order and the memory layout of their operands follow ``torch.nn.functional.multi_head_attention_forward``
(PyTorch 2.13), so that the numbers agree with it to the last bit. The fused fast path is never taken and ``is_causal`` never
passed: both change answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch.nn import functional as F

from mha_viz.core.trace import Made, Tensor, Trace

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from mha_viz.core.arrays import Dtype
    from mha_viz.core.batch import Batch
    from mha_viz.core.call import Call, WithoutKey
    from mha_viz.core.layer import Layer
    from mha_viz.core.mask import Mask

T = TypeVar("T")
Weights: TypeAlias = Mapping[str, torch.Tensor]  # named as in nn.MultiheadAttention
OutProj: TypeAlias = tuple[torch.Tensor, torch.Tensor | None]  # weight and bias of the output projection

HALVES = (torch.float16, torch.bfloat16)
LARGE = 2**20  # weights; fresh memory for so large a map costs more than its softmax, which PyTorch can do in place


def compute(
    layer: Layer, batch: Batch, mask: Mask, dtype: Dtype, keep_scale: Float[np.ndarray, "N H L S"] | None = None
) -> Made:
    """The fields of a Trace: q, k, v are there, everything after them is a function that computes it when it is first asked for.

    ``keep_scale`` multiplies the weights: 0 or 1 / (1 − p), None where nothing is dropped.
    """
    kind: torch.dtype = getattr(torch, dtype)
    W = parameters(layer, kind)
    q, k, v = project_batch(layer, W, batch, kind)  # [N·H, L|S, D] each
    shape = batch.N, layer.num_heads, batch.L, k.shape[1]
    out = W["out_proj.weight"], W.get("out_proj.bias")
    scale = math.sqrt(1.0 / layer.head_dim)  # as PyTorch rounds it
    steps = Steps(shape, q, k, v, mask, kind, scale, out, keep_scale)
    return Made(dict.fromkeys(Trace.fields(), steps.leave), steps.forget)


def compute_call(call: Call, keep_scale: Float[np.ndarray, "N H L S"] | None = None) -> Made:
    """The fields of a Trace of this Call, in its ``dtype``; those that it cannot know left out.

    ``keep_scale`` is as in ``compute``. Nothing is made of the Call before a field is read, so that a recording of many calls takes no
    more than these.
    """
    steps = cache(lambda: _steps_of_call(call, keep_scale))
    known = [name for name in Trace.fields() if call.v is not None or name not in ("v", "head_outputs", "concat", "output")]
    known = [name for name in known if call.out_weight is not None or name != "output"]
    return Made(dict.fromkeys(known, lambda name: steps().leave(name)), steps.cache_clear)


def _steps_of_call(call: Call, keep_scale: Float[np.ndarray, "N H L S"] | None) -> Steps:
    dtype: torch.dtype = getattr(torch, call.dtype)
    H, groups = call.num_heads, call.k.shape[1]

    def flat(array: np.ndarray) -> torch.Tensor:
        tensor = torch.tensor(array).to(dtype)  # [N, H|G, L|S, D|Dv]
        if array.shape[1] == groups != H:
            tensor = tensor.repeat_interleave(H // groups, dim=1)  # [N, H, S, D|Dv]
        return tensor.flatten(0, 1)  # [N·H, L|S, D|Dv]

    q, k, v = flat(call.q), flat(call.k), None if call.v is None else flat(call.v)
    weight, bias = (None if array is None else torch.tensor(array).to(dtype) for array in (call.out_weight, call.out_bias))
    N, _, L, _ = call.q.shape
    shape = N, H, L, call.k.shape[2]
    return Steps(
        shape, q, k, v, call.mask, dtype, call.scale, None if weight is None else (weight, bias), keep_scale, call.without_key
    )


class step(Generic[T]):
    """A tensor of Steps: made when it is first read, then kept.

    ``functools.cached_property`` would do, but before Python 3.12 it holds one lock for all instances: sessions would wait for
    each other.
    """

    def __init__(self, make: Callable[[Steps], T]) -> None:
        self.make, self.name = make, make.__name__

    def __get__(self, steps: Steps, owner: type[Steps]) -> T:
        tensor = vars(steps)[self.name] = self.make(steps)
        return tensor


class Steps:
    """The tensors of one call; each is computed once, from those before it. Heads are kept as PyTorch keeps them, [N·H, …].

    ``shape`` is (N, H, L, S); q [N·H, L, D], k and v [N·H, S, D]; ``rules`` a Mask; ``out`` the output projection, (weight, bias);
    ``without_key`` is as in a Call.
    """

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor | None,
        rules: Mask,
        dtype: torch.dtype,
        scale: float,
        out: OutProj | None,
        keep_scale: Float[np.ndarray, "N H L S"] | None = None,
        without_key: WithoutKey = "nan",
    ) -> None:
        self.shape, self.q, self.k, self.v = shape, q, k, v
        self.rules, self.dtype, self.scale, self.out, self.without_key = rules, dtype, scale, out, without_key
        self.keep_scale = None if keep_scale is None else torch.tensor(keep_scale, dtype=dtype).flatten(0, 1)  # [N·H, L, S]

    @step
    def scores(self) -> Float[torch.Tensor, "N*H L S"]:
        return torch.bmm(self.q * self.scale, self.k.transpose(-2, -1))

    @step
    def hidden(self) -> Bool[np.ndarray, "#N #H L S"]:
        return self.rules.hidden()

    @step
    def mask(self) -> Bool[torch.Tensor, "#N #H L S"]:
        return torch.from_numpy(self.hidden)

    @step
    def mask_bias(self) -> Float[torch.Tensor, "#N #H #L S"] | None:
        added = self.rules.added()
        return None if added is None else torch.tensor(added, dtype=self.dtype)

    @step
    def probabilities(self) -> Float[torch.Tensor, "N*H L S"]:
        if self.rules.empty:
            return torch.softmax(self.scores, dim=-1)
        added = torch.from_numpy(np.where(self.hidden, np.float32(-np.inf), np.float32(0))).to(self.dtype)  # [1|N, 1|H, L, S]
        if self.mask_bias is None and self.dtype not in HALVES:  # 0 and −∞ change no digit, whoever adds them
            masked = (self.heads(self.scores) + added).flatten(0, 1)  # [N·H, L, S]
        else:  # PyTorch adds the mask before it rounds the product: other last digits, and no ∞ − ∞ where float16 overflows
            added = added if self.mask_bias is None else added + self.mask_bias
            masked = added.expand(self.shape).clone(memory_format=torch.contiguous_format).flatten(0, 1)  # [N·H, L, S]
            masked.baddbmm_(self.q * self.scale, self.k.transpose(-2, -1))
        in_place = masked if masked.nelement() > LARGE else None
        return torch.softmax(masked, dim=-1, out=in_place)

    @step
    def dropped(self) -> Bool[torch.Tensor, "N*H L S"] | None:
        return None if self.keep_scale is None else self.keep_scale == 0

    @step
    def weights(self) -> Float[torch.Tensor, "N*H L S"]:
        return self.probabilities if self.keep_scale is None else self.probabilities * self.keep_scale

    @step
    def mean_weights(self) -> Float[torch.Tensor, "N L S"]:
        return self.heads(self.weights).mean(dim=1)

    @step
    def undefined(self) -> Bool[torch.Tensor, "#N #H L"]:
        return torch.from_numpy(np.all(self.hidden, axis=-1))

    @step
    def head_outputs(self) -> Float[torch.Tensor, "N*H L D"]:
        assert self.v is not None  # without values nobody asks for what they make
        mixed = torch.bmm(self.weights, self.v)  # [N·H, L, D]
        if self.without_key == "zero":
            self.heads(mixed).masked_fill_(self.undefined.unsqueeze(-1), 0)  # [N, H, L, D]
        return mixed

    @step
    def concat(self) -> Float[torch.Tensor, "L*N H*D"]:
        N, _, L, _ = self.shape
        return self.head_outputs.transpose(0, 1).reshape(L * N, -1)

    @step
    @torch.no_grad()
    def output(self) -> Float[torch.Tensor, "L*N E"]:
        assert self.out is not None  # nor without an output projection for the output
        return F.linear(self.concat, *self.out)

    def forget(self) -> None:
        """Let go of what was made; q, k and v stay, and it can be made again."""
        for name, made in vars(Steps).items():
            if isinstance(made, step):
                vars(self).pop(name, None)

    def heads(self, tensor: Float[torch.Tensor, "N*H L last"]) -> Float[torch.Tensor, "N H L last"]:
        """The same with an axis of items and one of heads."""
        N, H, _, _ = self.shape
        return tensor.view(N, H, -1, tensor.shape[-1])

    def leave(self, name: str) -> Tensor:
        """The field ``name`` of a Trace, as read-only NumPy (bfloat16 as float32)."""
        tensor: torch.Tensor | None = getattr(self, name)
        if tensor is None:
            return None
        N, H, L, _ = self.shape
        spread = name in ("mask", "mask_bias", "undefined")
        tensor = tensor.expand(self.shape[: tensor.ndim]) if spread else tensor  # [N, H, L, S] or [N, H, L]
        array = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()
        if name in ("concat", "output"):
            array = array.reshape(L, N, -1).swapaxes(0, 1)  # [L·N, E] → [N, L, E]
        elif not spread and name != "mean_weights":
            array = array.reshape(N, H, *array.shape[1:])  # [N·H, …] → [N, H, …]
        array.flags.writeable = False
        return array


@torch.no_grad()
def project_batch(
    layer: Layer, W: Weights, batch: Batch, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """q [N·H, L, D], k and v [N·H, S, D] of a batch, the extra columns of ``add_bias_kv`` and ``add_zero_attn`` included."""
    query = _sequence_first(batch.query, dtype)  # [L, N, E]
    key = query if batch.key is None else _sequence_first(batch.key, dtype)  # [S, N, kdim]
    value = key if batch.value is None else _sequence_first(batch.value, dtype)  # [S, N, vdim]
    return project_heads(W, query, key, value, layer.num_heads, layer.add_zero_attn)


def project_heads(
    W: Weights,
    query: Float[torch.Tensor, "L N E"],
    key: Float[torch.Tensor, "S N kdim"],
    value: Float[torch.Tensor, "S N vdim"],
    num_heads: int,
    add_zero_attn: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """q [N·H, L, D], k and v [N·H, S, D], extra columns included."""
    q, k, v = project(W, query, key, value)  # [L|S, N, H·D] each
    N, D = q.shape[1], q.shape[2] // num_heads
    if "bias_k" in W:
        k = torch.cat([k, W["bias_k"].repeat(1, N, 1)])  # [S + 1, N, H·D]
        v = torch.cat([v, W["bias_v"].repeat(1, N, 1)])  # [S + 1, N, H·D]
    q, k, v = (t.view(t.shape[0], N * num_heads, D).transpose(0, 1) for t in (q, k, v))  # [N·H, L|S, D] each
    if add_zero_attn:
        zero = k.new_zeros(N * num_heads, 1, D)
        k, v = torch.cat([k, zero], dim=1), torch.cat([v, zero], dim=1)  # [N·H, S + 1, D]
    return q, k, v


def project(
    W: Weights,
    query: Float[torch.Tensor, "L N E"],
    key: Float[torch.Tensor, "S N kdim"],
    value: Float[torch.Tensor, "S N vdim"],
) -> tuple[torch.Tensor, ...]:
    """q, k, v after the input projections, [L|S, N, H·D] each, by as many matrix products as PyTorch would use."""
    if "in_proj_weight" not in W:
        weights = [W[f"{name}_proj_weight"] for name in "qkv"]
        biases = W["in_proj_bias"].chunk(3) if "in_proj_bias" in W else (None,) * 3
        return tuple(map(F.linear, (query, key, value), weights, biases))
    weight, bias = W["in_proj_weight"], W.get("in_proj_bias")
    size = weight.shape[0] // 3  # H·D
    parts: Iterable[tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]]
    if value is key is query:
        parts = ((query, weight, bias),)
    else:
        sizes = [size, 2 * size] if value is key else [size, size, size]
        added = (None,) * len(sizes) if bias is None else torch.split(bias, sizes)
        parts = zip(
            (query, key, value), torch.split(weight, sizes), added, strict=False
        )  # a value that is the key comes with it
    projected: list[torch.Tensor] = []
    for x, rows, offset in parts:
        joint = F.linear(x, rows, offset)  # [L|S, N, n·H·D]
        projected.extend(joint.view(*x.shape[:2], -1, size).permute(2, 0, 1, 3).contiguous().unbind())  # n × [L|S, N, H·D]
    return tuple(projected)


# the weights of a Layer as tensors, by type, kept as long as the Layer
_parameters: WeakKeyDictionary[Layer, dict[torch.dtype, Weights]] = WeakKeyDictionary()


def parameters(layer: Layer, dtype: torch.dtype) -> Weights:
    """The layer's weights as tensors, kept as long as the layer.

    They require gradients, as a module's parameters do: ``F.linear`` takes another kernel, with other last digits, for weights
    that do not.
    """
    known = _parameters.setdefault(layer, {})
    if dtype not in known:  # two threads may both make them; they get equal ones, and either may stay
        with torch.inference_mode(False):  # what is made in inference mode never requires gradients
            known[dtype] = {name: _as_tensor(array, dtype).requires_grad_() for name, array in layer.weights.items()}
    return known[dtype]


def _as_tensor(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    """The tensor that ``array`` is the numbers of, where it is one of this type; else a copy."""
    drawn: object = array.base  # which may be a tensor, whatever NumPy's types say
    if isinstance(drawn, torch.Tensor) and (drawn.dtype, tuple(drawn.shape)) == (dtype, array.shape):
        return drawn.detach()
    return torch.tensor(array).to(dtype)


def _sequence_first(array: Float[np.ndarray, "N L E"], dtype: torch.dtype) -> Float[torch.Tensor, "L N E"]:
    return torch.tensor(array).to(dtype).transpose(1, 0)
