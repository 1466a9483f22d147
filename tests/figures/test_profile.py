"""The picture of a Profile: what is drawn of which Row, and what is said of it."""

import pytest

from mha_viz.figures.profile import describe_profile, length_of, profile_figure
from mha_viz.settings.profile import Profile
from mha_viz.studies.profile_results import Results
from mha_viz.studies.profiling import PEAK, SECONDS, SKIPPED, Event


@pytest.fixture
def results():
    """A head takes L² µs with weights and L µs without; the longest with two heads is skipped."""
    found = Results(Profile(embed_dim=8, num_heads=(1, 2), seq_len=(4, 8, 16)))
    for row in found.rows:
        length, weights = row.point.seq_len, row.point.need_weights
        if (row.point.num_heads, length) == (2, 16):
            found.add(Event(SKIPPED, row.point, "too large"))
            continue
        for factor in (0.9, 1.0, 1.2):
            found.add(Event(SECONDS, row.point, factor * 1e-6 * (length**2 if weights else length)))
        found.add(Event(PEAK, row.point, 2**20 * length))
    return found


def drawn(figure, axis, dotted=False):
    return {trace.name: trace for trace in figure.data if trace.yaxis == axis and ((trace.line.dash == "dot") == dotted)}


def test_a_panel_for_each_measure_and_way(results):
    figure = profile_figure(results)
    titles = [note.text for note in figure.layout.annotations if note.text.startswith("<b>")]
    assert titles == 3 * ["<b>need_weights=True</b>", "<b>need_weights=False</b>", "<b>at length 16</b>"]
    assert figure.layout.yaxis.range == figure.layout.yaxis2.range == figure.layout.yaxis3.range, "a row has one scale"


def test_lines_carry_medians_quartiles_and_exponents(results):
    lines = drawn(profile_figure(results), "y")
    assert list(lines) == ["1 head ∝ L<sup>2.0</sup>", "2 heads ∝ L<sup>2.0</sup>"]
    one, two = lines.values()
    assert list(one.x) == [4, 8, 16] and one.y == pytest.approx((0.016, 0.064, 0.256))
    assert one.error_y.array == pytest.approx((0.0016, 0.0064, 0.0256)) and list(two.x) == [4, 8]


def test_the_formula_is_dotted_beside_the_peak(results):
    figure = profile_figure(results)
    assert list(drawn(figure, "y4")) == list(drawn(figure, "y4", dotted=True)) == ["1 head", "2 heads"]
    assert list(drawn(figure, "y4")["1 head"].y) == [4, 8, 16]


def test_head_counts_stand_beside_each_other_at_one_length(results):
    lines = drawn(profile_figure(results, length=8), "y3")
    assert {name: list(line.x) for name, line in lines.items()} == {"weights": [1, 2], "no weights": [1, 2]}
    assert length_of(results, 5) == 16 and length_of(results, 4) == 4


def test_panels_stand_one_under_the_other_on_a_phone(results):
    narrow, wide = profile_figure(results, width=366), profile_figure(results)
    assert narrow.layout.height == 3 * wide.layout.height
    assert len({narrow.layout[f"xaxis{i or ''}"].domain for i in ("", 2, 3)}) == 1


def test_nothing_measured_is_said():
    nothing = Results(Profile())
    assert describe_profile(nothing) == "Nothing is timed yet."
    nothing.add(Event(PEAK, nothing.rows[0].point, 2**20))
    titles = {note.text for note in profile_figure(nothing).layout.annotations if note.text.startswith("<b>")}
    assert len(titles) == 3 and profile_figure(nothing).layout.yaxis.title.text == "peak, MiB", "only what is known has a row"


def test_the_alternative_says_times_and_peaks(results):
    assert "at embed_dim 8 and length 8" in describe_profile(results, 8)
    assert "1 head 0.064 ms and 8 MiB" in describe_profile(results, 8)
