"""What the Traces of a run are called beside each other: layers, and the steps that a layer ran in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from mha_viz.core.trace import Trace


@runtime_checkable
class Run(Protocol):
    """What holds the ``traces`` of a run in order, as a Recording does."""

    @property
    def traces(self) -> Sequence[Trace]: ...


Traces: TypeAlias = "Run | Sequence[Trace]"


def traces_of(run: Traces) -> Sequence[Trace]:
    """The Traces of a ``run``, which may be a sequence of them itself."""
    return run.traces if isinstance(run, Run) else run


def layer_names(traces: Iterable[Trace | None]) -> tuple[str, ...]:
    """For each of ``traces``, "layer 3"; of a run of several steps "layer 3, step 2". One that is None has its number alone."""
    return tuple(f"layer {layer}" + ("" if step is None else f", step {step}") for layer, step in layer_places(traces))


def layer_places(traces: Iterable[Trace | None]) -> tuple[tuple[int, int | None], ...]:
    """For each of ``traces`` (layer, step), the latter None where the run has one alone.

    A module that ran once in each step is one layer; what ran twice in a step is two.
    """
    numbers: dict[tuple[str, int], int] = {}  # (module, which of its calls in a step) → layer
    calls: dict[tuple[str, int], int] = {}  # (module, step) → how many there were so far
    places: list[tuple[int, int | None]] = []
    for i, trace in enumerate(traces):
        if trace is None or trace.step is None:
            places.append((i, None))
            continue
        ran = trace.name, trace.step
        calls[ran] = calls.get(ran, 0) + 1
        places.append((numbers.setdefault((trace.name, calls[ran]), len(numbers)), trace.step))
    return tuple(places)


def counted_layers(names: Iterable[str]) -> str:
    """How many layers these names, as ``layer_names`` gives them, are: "3 layers", "3 layers in 4 steps"."""
    parts = [name.partition(", ") for name in names]
    layers, steps = ({part[place] for part in parts if part[place]} for place in (0, 2))
    said = _many(len(layers), "layer")
    return f"{said} in {_many(len(steps), 'step')}" if steps else said


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
