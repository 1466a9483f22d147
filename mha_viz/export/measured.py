"""What was measured, as a figure of a document: a profile, and what head counts do to quality."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from mha_viz.core.rules import Wrong
from mha_viz.export.table import quoted
from mha_viz.export.words import made_by
from mha_viz.figures.profile import describe_profile, length_of, profile_figure
from mha_viz.figures.quality import describe_quality, quality_figure
from mha_viz.settings import spell
from mha_viz.studies.quality import Quality, command_of, read_measured, shipped, shipped_tasks

VIEWS = ("profile", "quality")


@dataclass(frozen=True)
class Measured:
    """``found``, Results of a Profile or a Quality, as ``name`` holds it: a file, or a task whose quality ships. Of a profile head counts
    stand beside each other at the length ``at_length``, the longest where None."""

    found: object
    name: str
    at_length: int | None = None

    @property
    def view(self):
        return "quality" if isinstance(self.found, Quality) else "profile"

    @property
    def title(self):
        return f"{self.view} of attention by head count"

    def picture(self, theme, width):
        """(the spec of the picture, what it shows in words)."""
        if self.view == "quality":
            return quality_figure(self.found, theme, width).to_plotly_json(), describe_quality(self.found)
        figure = profile_figure(self.found, self.at_length, theme, width)
        return figure.to_plotly_json(), describe_profile(self.found, self.at_length)

    @property
    def caption(self):
        """What is seen, of what, and what measured it."""
        if self.view == "quality":
            trial = self.found.trial
            told = (
                f"What head counts do to {trial.task} at embed_dim {trial.model.embed_dim}: held-out accuracy and loss after {trial.steps} "
                f"steps, medians of {len(trial.seeds)} seeds with the worst and the best; time and peak memory of a layer, dotted the "
                "formula."
            )
            return f"{told} Measured by: {command_of(trial)}. {made_by()}"
        profile, about = self.found.profile, self.found.machine
        told = (
            f"Time, peak memory and rate of nn.MultiheadAttention at embed_dim {profile.embed_dim}, batch size {profile.batch_size}, "
            f"{profile.dtype}: medians with quartiles of {profile.repeats} calls; dotted is the memory by formula."
        )
        where = f"{about['cores']} cores, {about.get('processor')}, torch {about.get('torch')}"
        busy = " The machine was busy." if self.found.busy else ""
        return f"{told} Measured on {where}, {self.found.made}, by: {self.found.command}.{busy} {made_by()}"

    @property
    def table(self):
        """Its numbers as CSV: of a profile a line per point, of quality one per training."""
        text = io.StringIO()
        lines = csv.writer(text)
        if self.view == "quality":
            lines.writerow(["num_heads", "seed", "accuracy", "loss", "uniform_accuracy"])
            lines.writerows([one.num_heads, one.seed, one.accuracy, one.loss, one.uniform] for one in self.found.outcomes)
            return text.getvalue()
        lines.writerow([
            "need_weights", "num_heads", "seq_len", "seconds", "lower_quartile", "upper_quartile", "peak_bytes", "bytes_by_formula",
            "flops_a_second", "left_out",
        ])  # fmt: skip
        for row in self.found.rows:
            point, times = row.point, (row.median, *(row.spread or (None, None)))
            last = self.found.predicted(row), self.found.rate(row), quoted(row.skipped or "")
            lines.writerow([point.need_weights, point.num_heads, point.seq_len, *times, row.peak, *last])
        return text.getvalue()


def measured(name, view, at_length=None):
    """The Measured that ``name`` holds, for a ``view``, which is that of its kind, or "page". Raises Wrong where it cannot be read, was not
    measured at that length, or is of the other kind."""
    if name in shipped_tasks():
        found = Measured(shipped(name), name, at_length)
    else:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", error)
            rule = f"cannot be read: {why}. It must be a file, or a task whose quality ships."
            raise Wrong("results", name, rule, [{"results": task} for task in shipped_tasks()]) from None
        found = Measured(read_measured(text), name, at_length)
    if view not in ("page", found.view):
        raise Wrong("view", view, f"is no picture of {name}, which holds a {found.view}.", [{"view": found.view}])
    if at_length is not None and (found.view == "quality" or length_of(found.found, at_length) != at_length):
        rule = "is for a profile." if found.view == "quality" else f"was not measured: {spell(found.found.profile.seq_len)} were."
        raise Wrong("at_length", at_length, rule, [{"at_length": None}])
    return found
