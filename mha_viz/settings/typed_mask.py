"""An ``attn_mask`` as a person types it: one line per query, one entry per key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.core.rules import Wrong
from mha_viz.settings.rules import Rule

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Shaped

EXAMPLE = "011/001/000"


def read_mask(text: str, argument: str = "attn_mask") -> Bool[np.ndarray, "L S"] | Float[np.ndarray, "L S"]:
    """A mask from lines (or parts between slashes) of entries.

    0 and 1 alone, with or without spaces between, make a bool mask: 1 = may not attend. Any other number (0.5, -2, -inf, 1.0)
    makes a float mask, which is added to the scaled scores. Raises Wrong with the line that cannot be read.

    >>> read_mask("01/00").tolist(), read_mask("0.5,-inf").tolist()
    ([[False, True], [False, False]], [[0.5, -inf]])
    """
    if not isinstance(text, str):
        raise Wrong(argument, text, "must be text: a line per query, an entry per key.", [{argument: None}])
    lines = [line for line in (line.strip() for line in re.split(r"[\n/;]", text)) if line]
    if not lines:
        raise Wrong(argument, text, f"must hold a line per query, an entry per key, as in “{EXAMPLE}”.", [{argument: None}])
    flags = all(re.fullmatch(r"[01\s,]+", line) for line in lines)
    rows = [re.findall(r"[01]", line) if flags else re.split(r"[\s,]+", line.strip(" ,")) for line in lines]
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            rule = f"must have as many entries in every line: line 0 has {len(rows[0])}, line {number} has {len(row)}."
            raise Wrong(argument, lines[number], rule, [{argument: None}])
    if flags:
        hidden: np.ndarray = np.array(rows) == "1"
        return hidden
    try:
        mask = np.array([[float(entry.replace("−", "-")) for entry in row] for row in rows], np.float32)
    except ValueError as error:
        rule = f"must hold 0 and 1 (may attend, may not), or numbers to add such as 0.5 or -inf: {error}."
        raise Wrong(argument, text, rule, [{argument: None}]) from None
    if np.isnan(mask).any() or np.isposinf(mask).any():
        raise Wrong(argument, text, "may hold finite numbers and -inf; NaN and +inf make whole rows NaN.", [{argument: None}])
    return mask


def write_mask(mask: Bool[np.ndarray, "L S"] | Float[np.ndarray, "L S"]) -> str:
    """``mask`` as ``read_mask`` reads it, in one line: rows of 0 and 1, or of numbers, between slashes.

    >>> write_mask(np.array([[False, True], [False, False]]))
    '01/00'
    """
    if mask.dtype == bool:
        return "/".join("".join("1" if hidden else "0" for hidden in row) for row in mask)
    return "/".join(",".join(_written(number) for number in row) for row in mask)


def fit_mask(mask: Shaped[np.ndarray, "L S"], rows: int, columns: int) -> Shaped[np.ndarray, "rows columns"]:
    """``mask`` cut, or extended by what hides nothing, to so many rows and columns."""
    fitted = np.zeros((rows, columns), mask.dtype)
    kept = mask[:rows, :columns]
    fitted[: kept.shape[0], : kept.shape[1]] = kept
    return fitted


def hides_all(mask: Shaped[np.ndarray, "L S"]) -> Bool[np.ndarray, " L"]:
    """The queries from which ``mask`` hides every key."""
    hidden: np.ndarray = mask if mask.dtype == bool else np.isneginf(mask)
    found: np.ndarray = np.all(hidden, axis=1)
    return found


# the rule of a typed mask: brought into the form of ``write_mask``, so that equal masks are equal texts
typed_mask = Rule(lambda argument, value: write_mask(read_mask(value, argument)), lines=True)


def _written(number: float) -> str:
    short = f"{number:g}"
    text = short if np.float32(short) == number else repr(float(number))
    return text if re.search(r"[.e\-n]", text) else f"{text}.0"  # 1.0 is added, 1 hides
