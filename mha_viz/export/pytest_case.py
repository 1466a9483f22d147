"""A test to paste: that a program still computes what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

import numpy as np

from mha_viz.analysis.choice import Choice
from mha_viz.core.trace import Trace
from mha_viz.export.origins import Origin
from mha_viz.views.shown import Shown

PER_LINE = 8  # numbers


def case(shown: Shown, choice: Choice, opening: list[str], lines: Sequence[str], origin: Origin) -> str:
    """The text of a pytest file that holds what is shown.

    The ``lines`` of a torch program, which begins with the ``opening``, are a fixture that gives weights and what is hidden; then come the
    shape, the chosen row and the average's cell with their numbers, sums, masks and undefined rows.
    """
    at = next(i for i, line in enumerate(opening) if line.startswith("import torch"))
    opening = [*opening[:at], "import pytest", *opening[at:]]
    hidden = "hidden" if origin.hides else "None"
    said = "where a query may not attend" if origin.hides else "None, nothing is hidden"
    body = [f'"""Weights [N, H, L, S] as they are shown; and {said}."""', *lines, f"return weights.detach(), {hidden}"]
    tests = [row_test(shown.trace, choice), average_test(shown.trace, choice)]
    tests += [] if origin.drops else [sum_test(shown.trace)]
    tests += [hidden_test(shown.trace)] if origin.hides else []
    fixture = '@pytest.fixture(scope="module")\ndef attended():\n' + indent("\n".join(body), "    ")
    return (
        "\n\n\n".join(["\n".join(opening).rstrip(), fixture, shape_test(shown.trace), *tests, undefined_test(shown.trace)])
        + "\n"
    )


def shape_test(trace: Trace) -> str:
    return written(
        "there_is_a_weight_for_each_head_query_and_key", f"assert weights.shape == {trace.weights.shape}  # [N, H, L, S]"
    )


def row_test(trace: Trace, c: Choice) -> str:
    row = [number(x) for x in trace.weights[c.item, c.head, c.query]]
    lines = [f"    {', '.join(row[i : i + PER_LINE])}," for i in range(0, len(row), PER_LINE)]
    return written(
        f"query_{c.query}_of_head_{c.head}",
        "row = [",
        *lines,
        "]",
        f"assert weights[{c.item}, {c.head}, {c.query}].tolist() == pytest.approx(row, abs=1e-6, nan_ok=True)",
    )


def average_test(trace: Trace, c: Choice) -> str:
    mean = number(trace.mean_weights[c.item, c.query, c.key])
    return written(
        "average_of_the_heads",
        f"average = weights[{c.item}, :, {c.query}, {c.key}].mean()",
        f"assert average.item() == pytest.approx({mean}, abs=1e-6, nan_ok=True)",
    )


def sum_test(trace: Trace) -> str:
    sums = trace.weights[:, computed_heads(trace)].sum(axis=-1, dtype=np.float64)  # [N, heads, L]
    off = np.abs(sums[np.isfinite(sums)] - 1).max(initial=0)
    near = 1e-5 if off < 1e-5 else float(f"{2 * off:.0e}")  # maps are often saved rounded
    return written("rows_sum_to_1", *defined(trace), f"assert (abs(weights.sum(dim=-1) - 1) < {near:g})[defined].all()")


def hidden_test(trace: Trace) -> str:
    return written(
        "nothing_that_is_hidden_is_read",
        *defined(trace),
        "assert not weights[hidden & defined[..., None]].any()",
        hidden="hidden",
    )


def undefined_test(trace: Trace) -> str:
    if np.isfinite(trace.weights).all():
        return written("every_row_is_defined", "assert weights.isfinite().all()")
    N, H, L, _ = trace.weights.shape
    undefined = ~np.isfinite(trace.weights).all(axis=-1)  # [N, H, L]
    lines = []
    for n in range(N):
        alike = (undefined[n] == undefined[n, 0]).all()
        for h in range(1 if alike else H):
            rows = np.flatnonzero(undefined[n, h]).tolist()
            lines += [f"undefined[{n}, {':' if alike else h}, {rows}] = True"] if rows else []
    lines = [f"undefined = torch.zeros({N}, {H}, {L}, dtype=torch.bool)  # [N, H, L]", *lines]
    if trace.nonfinite.any():  # no mask made these
        equal = "assert torch.equal(~weights.isfinite().all(dim=-1), undefined)"
        return written("the_same_rows_and_no_others_are_not_finite", *lines, equal)
    return written(
        "rows_without_a_key_and_no_others_are_undefined",
        *lines,
        "assert torch.equal(weights.isnan(), undefined[..., None].expand_as(weights))",
    )


def defined(trace: Trace) -> list[str]:
    """Lines that say which rows a head computed itself: they are given, and it is not off."""
    lines = [
        f"defined = {'weights.isfinite().all(dim=-1)' if trace.nonfinite.any() else '~weights.isnan().any(dim=-1)'}  # [N, H, L]"
    ]
    off = [head for head, _ in trace.off]
    return [*lines, *[f"defined[:, {off}] = False  # these heads are off"] * bool(off)]


def computed_heads(trace: Trace) -> list[int]:
    off = [head for head, _ in trace.off]
    return [head for head in range(trace.weights.shape[1]) if head not in off]


def written(name: str, *lines: str, hidden: str = "_") -> str:
    """The text of one test function."""
    return f"def test_{name}(attended):\n" + indent("\n".join([f"weights, {hidden} = attended", *lines]), "    ")


def number(value: float) -> str:
    return f"{value:.7g}" if np.isfinite(value) else f"float('{value}')"
