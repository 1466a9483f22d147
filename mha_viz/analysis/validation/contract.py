"""Every tensor's shape and every mask's meaning, written down: the first line of the tutorial's checklist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mha_viz.analysis.validation.check import Measured, question
from mha_viz.core.decimals import prose

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

    from mha_viz.analysis.validation.subject import Subject
    from mha_viz.core.trace import Trace


@dataclass(frozen=True)
class Term:
    """One tensor of a contract: its ``name``, its ``axes`` as letters, its ``shape``, its ``dtype`` and what it ``means``."""

    name: str
    axes: str
    shape: tuple[int, ...]
    dtype: str
    means: str


MEANS = {
    "q": "queries after projection",
    "k": "keys after projection, extra columns last",
    "v": "values after projection",
    "scores": "q · k · scale, before any mask",
    "mask": "True = this query may not attend to this key",
    "mask_bias": "what a float mask adds to the scores",
    "probabilities": "softmax over S, the last axis; each row sums to 1",
    "keep_scale": "what dropout multiplies a weight by: 0, or 1 / (1 − p)",
    "dropped": "True = dropout put a 0 here",
    "weights": "after dropout; batch major whatever batch_first says",
    "mean_weights": "the average over H: a picture, not what is computed",
    "undefined": "True = no key left, so no distribution (NaN)",
    "head_outputs": "weights @ v, a head each",
    "concat": "the heads side by side",
    "output": "concat @ out_proj.weight.T + out_proj.bias",
}
AXES = {
    "q": "NHLD",
    "k": "NHSD",
    "v": "NHSD",
    "scores": "NHLS",
    "mask": "NHLS",
    "mask_bias": "NHLS",
    "probabilities": "NHLS",
    "keep_scale": "NHLS",
    "dropped": "NHLS",
    "weights": "NHLS",
    "mean_weights": "NLS",
    "undefined": "NHL",
    "head_outputs": "NHLD",
    "concat": "NLC",
    "output": "NLE",
}
CONVENTIONS = (
    "In a bool mask of nn.MultiheadAttention True means “may not attend”; in scaled_dot_product_attention True means “may attend”.",
    "A float mask is added to the scaled scores: −∞ hides a key, 0 leaves it, 1 multiplies its weight by e.",
    "key_padding_mask hides keys, never queries: padded queries get rows that mean nothing; leave them out of a mean and of a loss.",
    "A 3-D attn_mask is [N·H, L, S], item n and head h at row n·H + h: repeat_interleave(H, 0), not repeat(H, 1, 1).",
    "A row whose every key is hidden has no distribution: NaN here, and 0/0 of any softmax.",
    "y = x @ W.T + b. Head h owns rows h·D to (h + 1)·D of Wq, Wk and Wv, and the same columns of out_proj.weight.",
)


def contract(trace: Trace, batch_first: bool = True) -> tuple[Term, ...]:
    """The Terms of a Trace: every tensor that is known, in the order in which they are made.

    With ``batch_first`` False query, key, value and output are written sequence first, as the module takes and gives them.
    """
    terms = []
    if trace.batch is not None:
        batch = trace.batch
        for name, letter, width in (("query", "L", "E"), ("key", "S", "K"), ("value", "S", "V")):
            array = getattr(batch, name)
            if array is not None:
                terms.append(_of_tokens(name, letter, width, array, batch_first, "what goes in"))
        for name, axes in (("key_padding_mask", "N, S"), ("attn_mask", "L, S")):
            array = getattr(batch, name)
            if array is not None:
                axes = axes if array.ndim == 2 else "N·H, L, S"
                means = "True = may not attend" if array.dtype == bool else "added to the scaled scores"
                terms.append(Term(name, axes, array.shape, str(array.dtype), means))
        for name, on, means in (
            ("causal", batch.causal, "a query sees itself and what stands before it"),
            ("window", batch.window is not None, f"a query sees {batch.window} keys, itself included"),
        ):
            if on:
                terms.append(Term(name, "L, S", (batch.L, batch.S), "rule", means))
    for name in trace.fields():
        if not trace.has(name) or getattr(trace, name) is None:
            continue
        array, letters = getattr(trace, name), AXES[name]
        if name == "output":
            terms.append(_of_tokens(name, "L", "E", array, batch_first, MEANS[name]))
        else:
            axes = ", ".join(letters).replace("C", "H·D")
            terms.append(Term(name, axes, array.shape, str(array.dtype), MEANS[name]))
    return tuple(terms)


def _of_tokens(
    name: str, length: str, width: str, array: Float[np.ndarray, "N tokens width"], batch_first: bool, means: str
) -> Term:
    width = {"K": "kdim", "V": "vdim"}.get(width, width)
    shape = array.shape if batch_first else (array.shape[1], array.shape[0], array.shape[2])
    axes = f"N, {length}, {width}" if batch_first else f"{length}, N, {width}"
    return Term(name, axes, shape, str(array.dtype), means)


def contract_text(trace: Trace, batch_first: bool = True) -> str:
    """The contract as lines to copy into a docstring or a README."""
    rows = [
        (t.name, f"[{t.axes}]", f"[{', '.join(map(str, t.shape))}]", t.dtype, t.means) for t in contract(trace, batch_first)
    ]
    wide = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row, wide, strict=False)), row[4]]) for row in rows]
    scale = "" if trace.scale is None else f"scale = {prose(trace.scale, '.6g')}, which multiplies q · k\n"
    return "\n".join(lines) + f"\n{scale}\n" + "\n".join(f"- {line}" for line in CONVENTIONS) + "\n"


@question("shapes", "Every tensor has the shape of the contract")
def shapes(s: Subject) -> Measured:
    trace = s.trace
    N, L = trace.query_padding.shape
    sizes = {"N": N, "L": L, "S": len(trace.key_tokens[0]), "H": trace.weights.shape[1]}
    if trace.layer is not None:
        sizes |= {"H": trace.layer.num_heads, "D": trace.layer.head_dim, "E": trace.layer.embed_dim}
        sizes["C"] = sizes["H"] * sizes["D"]
    elif trace.call is not None:
        sizes["H"] = trace.call.num_heads
    bad, known = [], 0
    for name, letters in AXES.items():
        if not trace.has(name) or getattr(trace, name) is None:
            continue
        known += 1
        shape = getattr(trace, name).shape
        right = tuple(sizes.get(letter, found) for letter, found in zip(letters, shape, strict=False))
        if shape != right or len(shape) != len(letters):
            bad.append(
                f"{name} is {list(shape)}, and [{', '.join(letters)}] is {[sizes.get(letter, '?') for letter in letters]}"
            )
    said = ", ".join(f"{letter} {size}" for letter, size in sizes.items() if letter != "C")
    return Measured(
        f"the shapes of {known} tensors, against {said}", len(bad), "All of them agree.", f"{'; '.join(bad)}.", tolerance=0
    )
