"""How long the vectors are that attention adds up: a large weight on a short vector brings little.

Products are PyTorch's and not NumPy's, whose threads spin against each other where cores are shared: 0.3 s a layer in place of 3 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from mha_viz.core.arrays import read_only
from mha_viz.core.memory import PART
from mha_viz.core.rules import Wrong

if TYPE_CHECKING:
    from jaxtyping import Float

    from mha_viz.core.trace import Trace
    from mha_viz.settings.view import View


QUANTITY = "value-norm weight"
SOFTMAX = "softmax weight"

# By weighting, the same Trace shown by it, which does not refer to it: a cycle would outlive its Trace.
_shown: WeakKeyDictionary[Trace, dict[str, Trace]] = WeakKeyDictionary()


def shown_trace(trace: Trace, view: View) -> Trace:
    """The Trace whose maps ``view.weighting`` shows: ``trace`` itself, for "softmax" one whose weights are its ``probabilities``, or
    for "norms" one of its ``norm_weighted`` cells.

    By norms each row is divided by its sum, so that it is a distribution: ``probabilities`` by that of its own cells, and
    ``weights`` by the same, so that what dropout took is still missing; ``mean_weights`` is their average. A row whose values
    are all zero has no distribution and is undefined, as one without a key is; one whose values are not finite is NaN. Every
    figure and statistic reads it as any other Trace, and its ``quantity`` says what it is; whoever opens a single number
    opens that of ``plain``. Where a weighting cannot be shown, as ``why_not_weighted`` tells, ``trace`` itself.
    """
    if view.weighting == "weights" or why_not_weighted(trace, view.weighting):
        return trace
    kept = _shown.setdefault(trace, {})
    if view.weighting not in kept:
        quantity, maps = {"softmax": (SOFTMAX, _softmax), "norms": (QUANTITY, _rows_by_norms)}[view.weighting]
        kept[view.weighting] = trace.showing(quantity, maps(trace))
    return kept[view.weighting]


def why_not_weighted(trace: Trace, weighting: str) -> str | None:
    """Why the cells of a Trace cannot be shown by this ``weighting``, None where they can."""
    return {"weights": lambda trace: None, "softmax": why_no_softmax, "norms": why_no_norms}[weighting](trace)


def why_no_softmax(trace: Trace) -> str | None:
    """Why the softmax cannot be shown beside the weights, None where it can: it differs from them."""
    if trace.off:
        return "a head is off, and its softmax is not what it says"
    same = trace.tokens.sight is not None or np.may_share_memory(trace.weights, trace.probabilities)
    if same or np.array_equal(trace.weights, trace.probabilities, equal_nan=True):
        return "nothing changes the weights after the softmax"
    return None


def _softmax(trace: Trace) -> dict[str, np.ndarray | None]:
    """The maps of ``shown_trace`` as the softmax gave them, by name."""
    rows = trace.probabilities
    maps = {"probabilities": rows, "weights": rows, "mean_weights": read_only(rows.mean(axis=1)), "undefined": trace.undefined}
    return maps | {"keep_scale": None, "dropped": None}


def by_norms(trace: Trace) -> bool:
    """True where the maps of a Trace are those by norms, whole or in blocks."""
    return trace.quantity.endswith(QUANTITY)


def norm_weighted(trace: Trace) -> Float[np.ndarray, "N H L S"]:
    """The length of what each cell adds to the output, ‖weight · v Wᴼ_h‖; NaN in undefined rows.

    Kobayashi, Kuribayashi, Yokoi & Inui, Attention Is Not Only a Weight: Analyzing Transformers with Vector Norms, 2020, equation 5.
    The weights are those that ``trace.weights`` shows: after dropout, and of a head that was put off, what was put there. Raises
    Wrong where v or Wᴼ is not known.
    """
    return _times_lengths(trace, trace.weights)


def _times_lengths(trace: Trace, maps: Float[np.ndarray, "N H L S"]) -> Float[np.ndarray, "N H L S"]:
    reason = why_no_norms(trace)
    if reason:
        raise Wrong("weighting", "norms", f"cannot be shown of {trace.name}: {reason}.", [{"weighting": "weights"}])
    kind = np.float64 if maps.dtype == np.float64 else np.float32
    each = np.stack([value_lengths(trace, item) for item in range(len(maps))]).astype(kind)  # [N, H, S]
    with np.errstate(invalid="ignore"):  # a weight of 0 on a value that is infinite
        weighted: Float[np.ndarray, "N H L S"] = maps * each[:, :, None]
    return weighted


def _rows_by_norms(trace: Trace) -> dict[str, np.ndarray | None]:
    """The maps of ``shown_trace``, by name."""
    probabilities = _times_lengths(trace, trace.probabilities)  # [N, H, L, S]
    total = probabilities.sum(axis=-1, keepdims=True)  # [N, H, L, 1]
    nothing = total[..., 0] == 0  # [N, H, L]
    total[~((total > 0) & (total < np.inf))] = np.nan
    probabilities /= total
    weights = probabilities
    if not np.may_share_memory(trace.weights, trace.probabilities):  # dropout, or a head that was put off
        weights = _times_lengths(trace, trace.weights) / total  # [N, H, L, S]
    return {
        "probabilities": read_only(probabilities),
        "weights": read_only(weights),
        "mean_weights": read_only(weights.mean(axis=1)),  # [N, L, S]
        "undefined": read_only(trace.undefined | nothing),  # [N, H, L]
    }


def lengths(vectors: Float[np.ndarray, "H R D"], out_weight: Float[np.ndarray, "E H*D"]) -> Float[np.ndarray, "H R"]:
    """The lengths ‖x · Wᴼ_h‖ of ``vectors`` x of each head once they went through ``out_weight`` Wᴼ, in float64.

    As √(x G xᵀ) with G = Wᴼ_hᵀ Wᴼ_h [D, D], which takes no memory for the vectors of length E themselves.
    """
    import torch

    H = len(vectors)
    if H > 1 and out_weight.size > PART:  # a head at a time: in float64 the whole projection would take as much as the layer
        heads = zip(vectors, np.split(out_weight, H, axis=1), strict=True)
        return np.concatenate([lengths(own[None], columns) for own, columns in heads])
    x, W = (torch.tensor(array, dtype=torch.float64) for array in (vectors, out_weight))
    W = W.reshape(len(W), len(x), -1).transpose(0, 1)  # [H, E, D]
    found: Float[np.ndarray, "H R"] = ((x @ (W.mT @ W)) * x).sum(dim=-1).clamp(min=0).sqrt().numpy()
    return found


def value_lengths(trace: Trace, item: int) -> Float[np.ndarray, "H S"]:
    """How long what each key would add to the output is at a weight of 1, ‖v_j · Wᴼ_h‖, in float64. Needs v and Wᴼ.

    f(x) of Kobayashi et al., Attention Is Not Only a Weight: Analyzing Transformers with Vector Norms, 2020, equation 4: the bias of
    the value projection is in it, that of the output projection belongs to no head and is not.
    """
    return lengths(trace.v[item], out_weight(trace))


def head_outputs(trace: Trace, item: int) -> Float[np.ndarray, "H L D"]:
    """What each head puts together, with dropout left out: where there is some, the probabilities times v."""
    import torch

    outputs: Float[np.ndarray, "H L D"]
    if trace.has("head_outputs", "dropped") and trace.dropped is None:
        outputs = trace.head_outputs[item]  # of a head that was put off, what is left of it
    else:
        outputs = (torch.tensor(trace.probabilities[item]) @ torch.tensor(trace.v[item])).numpy()
    return outputs


def out_weight(trace: Trace) -> Float[np.ndarray, "E H*D"]:
    """Wᴼ of a Trace in which it is known, as ``why_no_norms`` tells."""
    assert trace.out_proj is not None
    return trace.out_proj[0]


def why_no_norms(trace: Trace) -> str | None:
    """Why lengths of vectors are not known of this Trace, in a sentence without its full stop; None where they are."""
    if not trace.has("v"):
        return "the values v are not known, only weights"
    return "the output projection Wᴼ is not known" if trace.out_proj is None else None
