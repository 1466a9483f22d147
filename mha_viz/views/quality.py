"""What head counts do to quality."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec, plain
from mha_viz.figures.theme import ThemeName
from mha_viz.views.base import OfResults
from mha_viz.views.shown import Measured

if TYPE_CHECKING:
    from mha_viz.studies.quality import Quality


class HeadCounts(OfResults["Quality"]):
    """What head counts do to a task: held-out accuracy and loss, time and memory."""

    name = "quality"

    def holds(self, found: object) -> bool:
        from mha_viz.studies.quality import Quality

        return isinstance(found, Quality)

    def draw(self, measured: Measured[Quality], theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures.quality import quality_figure

        return plain(quality_figure(measured.found, theme, width))

    def describe(self, measured: Measured[Quality]) -> str:
        from mha_viz.figures.quality import describe_quality

        return describe_quality(measured.found)

    def caption(self, measured: Measured[Quality]) -> str:
        trial = measured.found.trial
        return (
            f"What head counts do to {trial.task} at embed_dim {trial.model.embed_dim}: held-out accuracy and loss after {trial.steps} "
            f"steps, medians of {len(trial.seeds)} seeds with the worst and the best; time and peak memory of a layer, dotted the "
            "formula."
        )

    def trust(self, measured: Measured[Quality]) -> str:
        from mha_viz.studies.quality import command_of

        return f"Measured by: {command_of(measured.found.trial)}."

    def rows(self, measured: Measured[Quality]) -> Iterator[list[object]]:
        yield ["num_heads", "seed", "accuracy", "loss", "uniform_accuracy"]
        for one in measured.found.outcomes:
            yield [one.num_heads, one.seed, one.accuracy, one.loss, one.uniform]


QUALITY = HeadCounts()
