"""What a tensor of the model is known to be, on the way from scores to the output projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from mha_viz.sources.capture.attended import Attended
from mha_viz.sources.capture.axes import Axes
from mha_viz.sources.capture.scores import Scores, Weights


@dataclass(eq=False)
class Result:
    """What an Attended gave, with its axes as they are now; ``changed`` where its numbers are others by now, as behind a gate."""

    attended: Attended
    axes: Axes
    changed: bool = False


@dataclass(eq=False)
class Projected:
    """What a product made of a Result: a bias may still be added."""

    attended: Attended
    axes: None = None


Tag: TypeAlias = Scores | Weights | Result | Projected
