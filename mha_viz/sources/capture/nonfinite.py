"""What first became NaN or infinite in a step, forward or backward, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import torch

from mha_viz.analysis.causes import findings
from mha_viz.core.decimals import prose
from mha_viz.recording import Cause
from mha_viz.sources.capture.beneath import has_numbers, plain

if TYPE_CHECKING:
    from torch import Tensor
    from torch.utils.hooks import RemovableHandle

    from mha_viz.core.trace import Trace
    from mha_viz.sources.capture.beneath import Args, Kwargs
    from mha_viz.sources.capture.kept import Kept
    from mha_viz.sources.capture.run import Run

NO_KEY = ("all_padded", "left_padding", "no_key")


@dataclass
class Trouble:
    """The first of a call's tensors, by its name, that is not finite, and the first place in it: item, head, query or key."""

    tensor: str
    item: int
    head: int | None = None
    position: int | None = None


Where: TypeAlias = Literal["input", "parameter", "call", "output", "gradient"]


@dataclass
class Found:
    """The first thing that was not finite. ``kind`` is "input", "parameter", "call", "output" or "gradient"; ``what`` names it, and of a
    ``call`` there is its Trouble as well.

    ``arrived`` tells, by a call's order, whether the gradient that had come back to its result by then was finite.
    """

    kind: Where
    what: str
    arrived: dict[int, bool]
    call: tuple[Kept, Trouble] | None = None


class Watch:
    """Looks through one step at a time; ``found`` stays the first thing that it saw."""

    def __init__(self, run: Run) -> None:
        self.run, self.steps = run, 0
        self.found: Found | None = None
        self.on_parameters: list[RemovableHandle] = []
        self.on_results: list[RemovableHandle] = []
        self.arrived: dict[int, bool] = {}

    def start(self) -> None:
        for name, parameter in self.run.model.named_parameters():
            if parameter.requires_grad and parameter.is_leaf:
                self.on_parameters.append(parameter.register_post_accumulate_grad_hook(self._gradient(name)))

    def stop(self) -> None:
        for handle in (*self.on_parameters, *self.on_results):
            handle.remove()

    def begin(self, args: Args, kwargs: Kwargs) -> None:
        """A step begins with these arguments of the model."""
        self.steps += 1
        self.arrived = {}
        for handle in self.on_results:
            handle.remove()
        self.on_results.clear()
        for name, value in [*((f"argument {i}", value) for i, value in enumerate(args)), *kwargs.items()]:
            if "mask" not in name and isinstance(value, torch.Tensor) and not finite(value) and not _a_mask(value):
                self._see("input", name)
                return
        for name, parameter in self.run.model.named_parameters():
            if not finite(parameter):
                self._see("parameter", name)
                return

    def call(self, kept: Kept, weights: Tensor | None, result: Tensor | None) -> None:
        """A call was kept; ``weights`` [N, H, L, S] and ``result`` [N, L, …] are the model's own, or None."""
        first = trouble(kept.arrays, weights, result)
        if first is not None:
            self._see("call", kept.name, (kept, first))

    def result(self, order: int, tensor: Tensor) -> None:
        """``tensor`` is what the call of this order gave to the model: a gradient may come back to it."""

        def look(gradient: Tensor) -> None:
            with self.run.aside(self.run.model):
                self.arrived.setdefault(order, finite(gradient))

        if tensor.requires_grad:
            self.on_results.append(tensor.register_hook(look))

    def output(self, output: object) -> None:
        """The model gave this out."""
        for tensor in _tensors(output):
            if not finite(tensor):
                self._see("output", "the model's output")

    def _gradient(self, name: str) -> Callable[[Tensor], None]:
        def look(parameter: Tensor) -> None:
            with self.run.aside(self.run.model):
                if parameter.grad is None:  # let go of by a hook that ran before this one, as where an optimizer steps in one
                    self.run.note("its gradient was let go of before it could be looked at.", name)
                elif not self.run.over and not finite(parameter.grad):
                    self._see("gradient", name)

        return look

    def _see(self, kind: Where, what: str, call: tuple[Kept, Trouble] | None = None) -> None:
        self.found = self.found or Found(kind, what, dict(self.arrived), call)


def finite(tensor: Tensor) -> bool:
    """True where no number of ``tensor`` is NaN or infinite."""
    if not tensor.is_floating_point() or not has_numbers(tensor):
        return True
    numbers = plain(tensor)[0]
    return bool((numbers._values() if numbers.is_sparse else numbers).isfinite().all())


def trouble(arrays: Mapping[str, np.ndarray], weights: Tensor | None = None, result: Tensor | None = None) -> Trouble | None:
    """The Trouble of a call whose q, k, v (or maps) are ``arrays``; None where all is finite."""
    for name in ("q", "k", "v"):
        if name in arrays:
            bad = np.argwhere(~np.isfinite(arrays[name]).all(axis=-1))  # [·, (item, head, position)]
            if len(bad):
                return Trouble(name, *map(int, bad[0]))
    if weights is not None:
        rows = (~weights.isfinite().all(dim=-1)).nonzero()  # [·, (item, head, query)]
        if len(rows):
            return Trouble("weights", *rows[0].tolist())
    if result is not None:
        queries = (~result.flatten(2).isfinite().all(dim=-1)).nonzero()  # [·, (item, query)]
        if len(queries):
            item, query = queries[0].tolist()
            return Trouble("result", item, None, query)
    return None


def cause_of(found: Found, kept: Sequence[Kept], traces: Sequence[Trace]) -> Cause:
    """The Cause of ``found``; ``kept`` and ``traces`` are the step's calls, in order."""
    if found.kind == "input":
        return Cause(None, f"The model's input is not finite: {found.what} holds NaN or an infinite number.")
    if found.kind == "parameter":
        return Cause(None, f"The parameter {found.what} held NaN or an infinite number before this step began.")
    if found.call is not None:
        call, where = found.call
        index = kept.index(call)
        return _cause_of_call(index, call, where, traces[index])
    if found.kind == "output":
        last = f", after {kept[-1].name}" if kept else ""
        return Cause(None, f"All attention is finite, and the model's output is not: it became so elsewhere{last}.")
    return _cause_of_gradient(found.what, found.arrived, kept, traces)


def _cause_of_call(index: int, call: Kept, where: Trouble, trace: Trace) -> Cause:
    item = where.item
    if where.tensor in ("q", "k", "v"):
        what = {"q": "queries", "k": "keys", "v": "values"}[where.tensor]
        place = f"item {item}, head {where.head}, {'query' if where.tensor == 'q' else 'key'} {where.position}"
        sentence = f"{call.name}, {place}: the {what} were not finite when they came in; the cause lies before this attention."
        return Cause(index, sentence, item, where.head, where.position if where.tensor == "q" else None)
    for finding in findings(trace):
        if finding.kind in NO_KEY and (not finding.items or item in finding.items):
            head = where.head if where.head is not None else (finding.heads[0] if finding.heads else None)
            return Cause(index, f"{call.name}: {finding.sentence}", item, head, where.position)
    place = (
        f"{call.name}, item {item}, " + (f"head {where.head}, " if where.head is not None else "") + f"query {where.position}"
    )
    largest = _largest_score(trace, item)
    most = torch.finfo(call.dtype).max
    if largest is not None and largest > most:
        sentence = f"{place}: scores overflow, the largest is {prose(largest, '.3g')} and {_name(call.dtype)} ends at {prose(most, '.3g')}."
    elif where.tensor == "weights":
        sentence = f"{place}: the weights are not finite, though q, k and v are and the query has keys left."
    else:
        sentence = f"{place}: q, k and v are finite and so are the weights; the output is not: values or projection overflow."
    return Cause(index, sentence, item, where.head, where.position)


def _largest_score(trace: Trace, item: int) -> float | None:
    """The largest number, by size, that q · k comes to before or after the scale."""
    scale = trace.scale
    if scale is None or not trace.has("scores"):
        return None
    return float(np.abs(np.float64(trace.scores[item])).max()) * max(1.0, 1 / scale)


def _cause_of_gradient(name: str, arrived: Mapping[int, bool], kept: Sequence[Kept], traces: Sequence[Trace]) -> Cause:
    for index in reversed(range(len(kept))):
        call, trace = kept[index], traces[index]
        if name.startswith(f"{call.name}.") and arrived.get(call.order):
            sentence = f"Backward: the gradient arrives finite at {call.name} and is not when it leaves ({name})."
            for finding in findings(trace):
                if finding.kind in NO_KEY:
                    item = finding.items[0] if finding.items else None
                    query = finding.queries[0] if finding.queries else None
                    return Cause(index, f"{sentence} {finding.sentence}", item, None, query)
            return Cause(index, sentence)
    return Cause(None, f"Backward: all of the forward pass is finite; the gradient of {name} is the first that is not.")


def _a_mask(tensor: Tensor) -> bool:
    """True for what only a mask holds: −∞ beside finite numbers."""
    numbers = plain(tensor)[0]
    return not bool(numbers.isnan().any() | numbers.isposinf().any())


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
