"""The picture of quality beside cost."""

from mha_viz.figures.quality import describe_quality, quality_figure
from mha_viz.studies.quality import HEADS, Quality, Trial, shipped


def test_quality_and_cost_stand_beside_each_other_over_head_count():
    quality = shipped("look-both-ways")
    figure = quality_figure(quality)
    titles = [note.text for note in figure.layout.annotations if note.text.startswith("<b>")]
    assert titles == ["<b>right answers</b>", "<b>loss</b>", "<b>time of a layer</b>", "<b>memory of a layer</b>"]
    assert all(tuple(trace.x) == HEADS for trace in figure.data)
    trained = next(trace for trace in figure.data if trace.name == "trained" and trace.error_y.array)
    assert trained.y[0] - trained.error_y.arrayminus[0] == min(quality.of("accuracy")[1]), "bars go to the worst seed"
    one = next(trace for trace in figure.data if trace.name == "one head")
    assert set(one.y) == {trained.y[0]} and one.line.dash == "dot"


def test_cost_that_is_not_measured_yet_is_left_out():
    quality = Quality(Trial(), shipped("look-both-ways").outcomes[:2])
    assert {trace.name for trace in quality_figure(quality).data} == {"trained", "uniform", "one head"}


def test_the_alternative_says_medians_and_ranges():
    assert "1 head 0.57" in describe_quality(shipped("look-both-ways"))


def test_plots_stand_in_one_row_two_or_four_as_there_is_room():
    quality, heights = shipped("look-both-ways"), {}
    for width in (366, 794, 1104):
        heights[width] = quality_figure(quality, width=width).layout.height
    assert heights[366] == 4 * heights[1104] and heights[794] == 2 * heights[1104]
