"""A layer that no seed draws, for programs: what they say of it, and the file that its numbers are kept in."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mha_viz.analysis.causes import origin_of_nonfinite
from mha_viz.analysis.known import why_not_run
from mha_viz.core.trace import Missing, Trace

if TYPE_CHECKING:
    from mha_viz.core.batch import Batch
    from mha_viz.core.layer import Layer
    from mha_viz.core.mask import Mask


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
    texts: None = None
    source_texts: None = None


def why_not_kept(trace: Trace) -> str | None:
    """Why no program can be given for the layer of this Trace, as a sentence; None where one can."""
    reason: str | None = why_not_run(trace)
    if reason is None and trace.rules is not None and (trace.rules.dense is not None or trace.rules.bias is not None):
        return "Its mask is a table of its own, and programs tell masks as rules."
    return reason


def kept(trace: Trace, file: str) -> Kept:
    """The Kept of a Trace whose numbers ``numbers`` puts into ``file``."""
    layer, batch, rules = _attended(trace)
    return Kept(
        file=file,
        weights=tuple(layer.weights),
        embed_dim=layer.embed_dim,
        num_heads=layer.num_heads,
        kdim=layer.kdim,
        vdim=layer.vdim,
        cross=batch.key is not None,
        own_value=batch.value is not None,
        padded=rules.padded is not None,
        causal=rules.causal,
        window=rules.window,
        bias="in_proj_bias" in layer.weights,
        add_bias_kv="bias_k" in layer.weights,
        add_zero_attn=layer.add_zero_attn,
        finite=origin_of_nonfinite(trace) is None,
    )


def _attended(trace: Trace) -> tuple[Layer, Batch, Mask]:
    """What a Trace was computed of. Raises Missing where its source does not know."""
    if trace.layer is None or trace.batch is None or trace.rules is None:
        raise Missing("A program needs the layer, its input and its mask, and the source does not know them.")
    return trace.layer, trace.batch, trace.rules


def numbers(trace: Trace) -> bytes:
    """The bytes of the .npz file that the program of this Trace reads: the layer's weights and its input in float32, its padding."""
    file = io.BytesIO()
    layer, batch, rules = _attended(trace)
    inputs = {"query": batch.query, "key": batch.key, "value": batch.value}
    arrays = dict(layer.weights) | {name: array for name, array in inputs.items() if array is not None}
    held: dict[str, Any] = {name: array.astype(np.float32) for name, array in arrays.items()}
    if rules.padded is not None:
        held["padding_mask"] = rules.padded
    np.savez(file, **held)
    return file.getvalue()
