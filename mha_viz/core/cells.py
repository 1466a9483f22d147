"""What a cell of a map holds where it holds no weight: the one place that tells the kinds apart, for pictures, tables and texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from mha_viz.core.trace import Trace

KINDS = ("undefined", "nan", "inf", "-inf", "masked", "padded")  # where two meet, the first wins
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "nan": np.isnan,
    "inf": np.isposinf,
    "-inf": np.isneginf,
}  # the kinds that are told by the number itself
WORDS = {"nan": "NaN", "inf": "∞", "-inf": "−∞"}


def kinds(
    values: Float[np.ndarray, "... L S"],
    mask: Bool[np.ndarray, "... L S"],
    padding: Bool[np.ndarray, " L"],
    undefined: Bool[np.ndarray, "... L"],
) -> dict[str, Bool[np.ndarray, "... L S"]]:
    """Which cells are of which of KINDS, by kind; a cell of none of them holds a weight.

    "undefined" is every cell of a query that no
    mask leaves a key. "nan", "inf" and "-inf" are numbers that no mask made: they came in with the input or the weights, or a score
    overflowed. "masked" is a key that a query may not attend to, "padded" what remains of a padded query.
    """
    found = {"undefined": np.broadcast_to(undefined[..., None], mask.shape)}
    taken = found["undefined"]
    if not np.isfinite(values).all():
        for kind, holds in NUMBERS.items():
            found[kind] = holds(values) & ~taken  # [..., L, S]
        taken = taken | ~np.isfinite(values)
    else:
        found |= dict.fromkeys(NUMBERS, np.zeros(mask.shape, bool))
    found["masked"] = mask & ~taken
    found["padded"] = padding[:, None] & ~(taken | found["masked"])
    return found


def word(value: float | np.floating, undefined: bool | np.bool_ = False) -> str | None:
    """What a number that is none is called: "undefined" in a row without a key, else "NaN", "∞" or "−∞"; None for a finite one.

    >>> word(float("inf")), word(float("nan"), undefined=True), word(0.5)
    ('∞', 'undefined', None)
    """
    if np.isfinite(value):
        return None
    if undefined and np.isnan(value):
        return "undefined"
    return next(WORDS[kind] for kind, holds in NUMBERS.items() if holds(value))


def content(trace: Trace, item: int, head: int | None, query: int, key: int) -> str:
    """What a cell of a head's map, of the average's where None, holds, in words: its weight to six digits, or what stands for one."""
    keyless = trace.undefined[item, :, query]  # [H]
    if head is None:
        weight, undefined = trace.mean_weights[item, query, key], keyless.any()
    else:
        weight, undefined = trace.weights[item, head, query, key], keyless[head]
    return word(weight, undefined) or f"{weight:.6f}"
