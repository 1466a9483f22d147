"""A profile of attention."""

from __future__ import annotations

from collections.abc import Iterator

from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.piece import Spec, plain
from mha_viz.figures.theme import ThemeName
from mha_viz.studies.profile_results import Results
from mha_viz.views.base import OfResults
from mha_viz.views.shown import Measured


class Profile(OfResults[Results]):
    """Time, memory and rate of attention by head count and length, as they were measured."""

    name = "profile"

    def holds(self, found: object) -> bool:
        return isinstance(found, Results)

    def draw(self, measured: Measured[Results], theme: ThemeName = "light", width: int = 1104, parts: Parts = ALL) -> Spec:
        from mha_viz.figures.profile import profile_figure

        return plain(profile_figure(measured.found, measured.at_length, theme, width))

    def describe(self, measured: Measured[Results]) -> str:
        from mha_viz.figures.profile import describe_profile

        return describe_profile(measured.found, measured.at_length)

    def caption(self, measured: Measured[Results]) -> str:
        profile = measured.found.profile
        return (
            f"Time, peak memory and rate of nn.MultiheadAttention at embed_dim {profile.embed_dim}, batch size {profile.batch_size}, "
            f"{profile.dtype}: medians with quartiles of {profile.repeats} calls; dotted is the memory by formula."
        )

    def trust(self, measured: Measured[Results]) -> str:
        found, about = measured.found, measured.found.machine
        where = f"{about['cores']} cores, {about.get('processor')}, torch {about.get('torch')}"
        busy = " The machine was busy." if found.busy else ""
        return f"Measured on {where}, {found.made}, by: {found.command}.{busy}"

    def rows(self, measured: Measured[Results]) -> Iterator[list[object]]:
        found = measured.found
        yield [
            "need_weights",
            "num_heads",
            "seq_len",
            "seconds",
            "lower_quartile",
            "upper_quartile",
            "peak_bytes",
            "bytes_by_formula",
            "flops_a_second",
            "left_out",
        ]
        for row in found.rows:
            point, times = row.point, (row.median, *(row.spread or (None, None)))
            last = found.predicted(row), found.rate(row), row.skipped or ""
            yield [point.need_weights, point.num_heads, point.seq_len, *times, row.peak, *last]


PROFILE = Profile()
