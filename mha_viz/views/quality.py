"""What head counts do to quality."""

from mha_viz.figures.parts import ALL
from mha_viz.views.base import OfResults


class HeadCounts(OfResults):
    """What head counts do to a task: held-out accuracy and loss, time and memory."""

    name = "quality"

    def holds(self, found):
        from mha_viz.studies.quality import Quality

        return isinstance(found, Quality)

    def draw(self, measured, theme="light", width=1104, parts=ALL):
        from mha_viz.figures.quality import quality_figure

        return quality_figure(measured.found, theme, width).to_plotly_json()

    def describe(self, measured):
        from mha_viz.figures.quality import describe_quality

        return describe_quality(measured.found)

    def caption(self, measured):
        trial = measured.found.trial
        return (
            f"What head counts do to {trial.task} at embed_dim {trial.model.embed_dim}: held-out accuracy and loss after {trial.steps} "
            f"steps, medians of {len(trial.seeds)} seeds with the worst and the best; time and peak memory of a layer, dotted the "
            "formula."
        )

    def trust(self, measured):
        from mha_viz.studies.quality import command_of

        return f"Measured by: {command_of(measured.found.trial)}."

    def rows(self, measured):
        yield ["num_heads", "seed", "accuracy", "loss", "uniform_accuracy"]
        yield from ([one.num_heads, one.seed, one.accuracy, one.loss, one.uniform] for one in measured.found.outcomes)


QUALITY = HeadCounts()
