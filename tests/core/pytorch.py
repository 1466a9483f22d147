"""What the core is held to: ``nn.MultiheadAttention`` itself, on its slow path."""

import numpy as np
import torch
from torch import nn


def module(layer, *, dtype=torch.float32, batch_first=True):
    """The ``nn.MultiheadAttention`` that has this layer's weights and options, in train mode."""
    made = nn.MultiheadAttention(
        layer.embed_dim,
        layer.num_heads,
        dropout=layer.dropout,
        bias="in_proj_bias" in layer.weights,
        add_bias_kv="bias_k" in layer.weights,
        add_zero_attn=layer.add_zero_attn,
        kdim=layer.kdim,
        vdim=layer.vdim,
        batch_first=batch_first,
        dtype=dtype,
    )
    made.load_state_dict({name: torch.tensor(array) for name, array in layer.weights.items()})
    return made


def call(attention, batch, *, dtype=torch.float32):
    """(output, weights [N, H, L, S]) of the module for this Batch's arrays; key and value are the query where the Batch has none.

    Gradients are on, so that the slow path is taken. ``causal`` and ``window`` are rules of ours: pass them as ``attn_mask``.
    """
    tensor = {name: _tensor(getattr(batch, name), dtype) for name in ("query", "key", "value", "key_padding_mask", "attn_mask")}
    query = tensor["query"] if attention.batch_first else tensor["query"].transpose(0, 1)
    key = query if tensor["key"] is None else tensor["key"] if attention.batch_first else tensor["key"].transpose(0, 1)
    value = key if tensor["value"] is None else tensor["value"] if attention.batch_first else tensor["value"].transpose(0, 1)
    output, weights = attention(
        query,
        key,
        value,
        key_padding_mask=tensor["key_padding_mask"],
        attn_mask=tensor["attn_mask"],
        need_weights=True,
        average_attn_weights=False,
    )
    output = output if attention.batch_first else output.transpose(0, 1)
    return output.detach().numpy(), weights.detach().numpy()


def _tensor(array, dtype):
    return None if array is None else torch.tensor(array) if array.dtype == bool else torch.tensor(array).to(dtype)


def same_bits(ours, theirs):
    """True where two arrays agree in every bit that means something: NaN in the same places, all else equal."""
    return ours.shape == theirs.shape and np.array_equal(ours, theirs, equal_nan=True)
