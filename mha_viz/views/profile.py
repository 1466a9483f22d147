"""A profile of attention."""

from mha_viz.figures.parts import ALL
from mha_viz.studies.profile_results import Results
from mha_viz.views.base import OfResults


class Profile(OfResults):
    """Time, memory and rate of attention by head count and length, as they were measured."""

    name = "profile"
    at_lengths = True

    def holds(self, found):
        return isinstance(found, Results)

    def draw(self, measured, theme="light", width=1104, parts=ALL):
        from mha_viz.figures.profile import profile_figure

        return profile_figure(measured.found, measured.at_length, theme, width).to_plotly_json()

    def describe(self, measured):
        from mha_viz.figures.profile import describe_profile

        return describe_profile(measured.found, measured.at_length)

    def caption(self, measured):
        profile = measured.found.profile
        return (
            f"Time, peak memory and rate of nn.MultiheadAttention at embed_dim {profile.embed_dim}, batch size {profile.batch_size}, "
            f"{profile.dtype}: medians with quartiles of {profile.repeats} calls; dotted is the memory by formula."
        )

    def trust(self, measured):
        found, about = measured.found, measured.found.machine
        where = f"{about['cores']} cores, {about.get('processor')}, torch {about.get('torch')}"
        busy = " The machine was busy." if found.busy else ""
        return f"Measured on {where}, {found.made}, by: {found.command}.{busy}"

    def rows(self, measured):
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
