"""Multi-head attention in PyTorch, operator by operator as ``nn.MultiheadAttention``'s slow path does it, each result kept.

The operators, their order and the memory layout of their operands follow ``torch.nn.functional.multi_head_attention_forward``
(PyTorch 2.13), so that the numbers agree with it to the last bit. The fused fast path is never taken and ``is_causal`` never
passed: both change answers.
"""

import math
from functools import cached_property, lru_cache, partial

import torch
from torch.nn import functional as F

from mha_viz.core.arrays import read_only
from mha_viz.core.trace import Trace, broadcast


def attend(layer, batch, mask, dtype, keep_scale=None):
    """A Trace that holds q, k, v and computes everything after them when it is first asked for."""
    steps = Steps(layer, batch, mask, getattr(torch, dtype), keep_scale)
    fields = {name: partial(steps.leave, name) for name in Trace.fields()}
    return Trace(fields, layer=layer, batch=batch, training=keep_scale is not None)


class Steps:
    """The tensors of one call; each is computed once, from those before it."""

    @torch.no_grad()
    def __init__(self, layer, batch, mask, dtype, keep_scale):
        self.N, self.H, self.L = batch.N, layer.num_heads, batch.L
        self.W = parameters(layer, dtype)
        self.mask_rules, self.dtype = mask, dtype
        self.keep_scale = None if keep_scale is None else torch.tensor(keep_scale, dtype=dtype).flatten(0, 1)  # [N·H, L, S]
        query = _sequence_first(batch.query, dtype)  # [L, N, E]
        key = query if batch.key is None else _sequence_first(batch.key, dtype)  # [S, N, kdim]
        value = key if batch.value is None else _sequence_first(batch.value, dtype)  # [S, N, vdim]
        q, k, v = project(self.W, query, key, value)  # [L|S, N, H·D] each
        if "bias_k" in self.W:
            k = torch.cat([k, self.W["bias_k"].repeat(1, self.N, 1)])  # [S + 1, N, H·D]
            v = torch.cat([v, self.W["bias_v"].repeat(1, self.N, 1)])
        split = [t.view(len(t), self.N * self.H, layer.head_dim).transpose(0, 1) for t in (q, k, v)]  # [N·H, L|S, D]
        if layer.add_zero_attn:
            zero = split[1].new_zeros(self.N * self.H, 1, layer.head_dim)
            split[1:] = (torch.cat([t, zero], dim=1) for t in split[1:])  # [N·H, S + 1, D]
        self.q, self.k, self.v = split
        self.S = self.k.shape[1]

    @cached_property
    def hidden(self):
        return self.mask_rules.hidden()  # [1|N, 1|H, L, S]

    @cached_property
    def bias(self):
        return self.mask_rules.added()  # [1|N, 1|H, 1|L, S]

    @cached_property
    def scores(self):
        scaled = self.q * math.sqrt(1.0 / self.q.shape[-1])
        return torch.bmm(scaled, self.k.transpose(-2, -1))  # [N·H, L, S]

    @cached_property
    def probabilities(self):
        if self.mask_rules.empty:
            return torch.softmax(self.scores, dim=-1)  # [N·H, L, S]
        added = torch.zeros((), dtype=self.dtype) if self.bias is None else torch.tensor(self.bias, dtype=self.dtype)
        added = torch.where(torch.from_numpy(self.hidden), -torch.inf, added)  # [1|N, 1|H, L, S]
        masked = self.heads(self.scores) + added  # [N, H, L, S]
        return torch.softmax(masked.flatten(0, 1), dim=-1)  # [N·H, L, S]

    @cached_property
    def weights(self):
        return self.probabilities if self.keep_scale is None else self.probabilities * self.keep_scale  # [N·H, L, S]

    @cached_property
    def mean_weights(self):
        return self.heads(self.weights).mean(dim=1)  # [N, L, S]

    @cached_property
    def head_outputs(self):
        return torch.bmm(self.weights, self.v)  # [N·H, L, D]

    @cached_property
    def concat(self):
        return self.head_outputs.transpose(0, 1).reshape(self.L * self.N, -1)  # [L·N, H·D]

    @cached_property
    def output(self):
        return F.linear(self.concat, self.W["out_proj.weight"], self.W.get("out_proj.bias"))  # [L·N, E]

    def heads(self, tensor):
        return tensor.view(self.N, self.H, *tensor.shape[1:])  # [N·H, …] → [N, H, …]

    @torch.no_grad()
    def leave(self, name):
        """The field ``name`` of a Trace, as read-only NumPy (bfloat16 as float32)."""
        shape = (self.N, self.H, self.L, self.S)
        if name == "mask":
            return broadcast(self.hidden, shape)
        if name == "mask_bias":
            return None if self.bias is None else broadcast(self.bias, shape)
        if name == "undefined":
            return broadcast(self.hidden.all(axis=-1), shape[:3])
        if name == "dropped":
            return None if self.keep_scale is None else read_only(self.heads(self.keep_scale == 0).numpy())
        tensor = getattr(self, name)
        if name in ("concat", "output"):
            tensor = tensor.view(self.L, self.N, -1).transpose(0, 1)  # [L·N, E] → [N, L, E]
        elif name != "mean_weights":
            tensor = self.heads(tensor)  # [N, H, …]
        return read_only((tensor.float() if self.dtype == torch.bfloat16 else tensor).numpy())


def project(W, query, key, value):
    """q, k, v after the input projections, [L|S, N, H·D] each, by as many matrix products as PyTorch would use."""
    b = W.get("in_proj_bias")
    if "in_proj_weight" not in W:
        biases = (None,) * 3 if b is None else b.chunk(3)
        return tuple(
            F.linear(x, W[f"{n}_proj_weight"], bias) for x, n, bias in zip((query, key, value), "qkv", biases, strict=True)
        )
    w, E = W["in_proj_weight"], query.shape[-1]
    parts = [3] if key is query and value is key else [1, 2] if value is key else [1, 1, 1]
    weights, inputs = w.split([E * n for n in parts]), (query, key, value)
    biases = (None,) * len(parts) if b is None else b.split([E * n for n in parts])
    projected = []
    for x, weight, bias, n in zip(inputs, weights, biases, parts, strict=False):
        joint = F.linear(x, weight, bias)  # [L|S, N, n·E]
        if n == 1:
            projected.append(joint)
        else:
            projected.extend(
                joint.unflatten(-1, (n, E)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            )  # n × [L|S, N, E]
    return tuple(projected)


@lru_cache(maxsize=16)
def parameters(layer, dtype):
    """The layer's weights as tensors: a copy, kept while the layer is in use.

    They require gradients, as a module's parameters do: ``F.linear`` takes another kernel, with other last digits, for weights
    that do not.
    """
    return {name: torch.tensor(array).to(dtype).requires_grad_() for name, array in layer.weights.items()}


def _sequence_first(array, dtype):
    return torch.tensor(array).to(dtype).transpose(1, 0)  # [N, L, E] → [L, N, E]
