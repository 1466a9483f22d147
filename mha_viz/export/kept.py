"""A layer that no seed draws, for programs: what they say of it, and the file that its numbers are kept in."""

import io
from dataclasses import dataclass

import numpy as np

from mha_viz.analysis.causes import origin_of_nonfinite
from mha_viz.analysis.known import why_not_run


@dataclass(frozen=True)
class Kept:
    """What a program has to know of a layer and an input that it reads from ``file``: the fields of Settings, under their names.

    ``weights`` are the names of the layer's arrays in the file; beside them are query, and key, value and padding_mask where
    there are such. ``finite`` is False where one of all these numbers is NaN or infinite.
    """

    file: str
    weights: tuple[str, ...]
    embed_dim: int
    num_heads: int
    kdim: int
    vdim: int
    cross: bool
    own_value: bool
    padded: bool
    causal: bool
    window: int | None
    bias: bool
    add_bias_kv: bool
    add_zero_attn: bool
    finite: bool
    case: str = "kept"
    attn_mask: str | None = None
    dropout: float = 0.0
    training: bool = False
    batch_first: bool = True
    texts: tuple | None = None
    source_texts: tuple | None = None


def why_not_kept(trace):
    """Why no program can be given for the layer of this Trace, as a sentence; None where one can."""
    reason = why_not_run(trace)
    if reason is None and (trace.rules.dense is not None or trace.rules.bias is not None):
        return "Its mask is a table of its own, and programs tell masks as rules."
    return reason


def kept(trace, file):
    """The Kept of a Trace whose numbers ``numbers`` puts into ``file``."""
    layer, batch, rules = trace.layer, trace.batch, trace.rules
    return Kept(
        file,
        tuple(layer.weights),
        layer.embed_dim,
        layer.num_heads,
        layer.kdim,
        layer.vdim,
        batch.key is not None,
        batch.value is not None,
        rules.padded is not None,
        rules.causal,
        rules.window,
        "in_proj_bias" in layer.weights,
        "bias_k" in layer.weights,
        layer.add_zero_attn,
        origin_of_nonfinite(trace) is None,
    )


def numbers(trace):
    """The bytes of the .npz file that the program of this Trace reads: the layer's weights and its input in float32, its padding."""
    batch, file = trace.batch, io.BytesIO()
    inputs = {"query": batch.query, "key": batch.key, "value": batch.value}
    arrays = dict(trace.layer.weights) | {name: array for name, array in inputs.items() if array is not None}
    masks = {} if trace.rules.padded is None else {"padding_mask": trace.rules.padded}
    np.savez(file, **{name: np.float32(array) for name, array in arrays.items()}, **masks)
    return file.getvalue()
