"""One number opened in pictures: every bar and cell is the Derivation's or the Trace's, and every name stands clear of the others."""

import re
from html import unescape
from itertools import combinations

import numpy as np
import plotly.graph_objects as go
import pytest

from mha_viz import Batch, Layer, Settings, View, attend, synthetic
from mha_viz.analysis import open_number
from mha_viz.core.intervention import Intervention, changed
from mha_viz.figures.number import cell_in_heads, describe_cell_in_heads, describe_softmax, describe_terms, softmax, terms
from mha_viz.figures.parts import ALL, Parts
from mha_viz.figures.scale import largest_weight
from mha_viz.figures.theme import THEMES
from mha_viz.figures.token_in_heads import describe_token_in_heads, token_in_heads
from mha_viz.figures.widths import width_of

PICTURES = {
    "terms": terms,
    "softmax": softmax,
    "cell": cell_in_heads,
    "row": token_in_heads,
    "column": lambda *given, **more: token_in_heads(*given, side="key", **more),
}
SMALL = Settings(embed_dim=12, num_heads=3, batch_size=2, seq_len=6, padding=(2,), seed=3)


def opened(settings=SMALL, head=1, query=2, key=3):
    trace = synthetic(settings)
    return trace, open_number(trace, 0, head, query, key)


def bars(figure):
    return [np.array(trace.y) for trace in figure.data if trace.type == "bar"]


def said(figure):
    return [re.sub(r"<[^>]*>", "", note.text) for note in figure.layout.annotations]


def boxes(figure):
    """(left, top, right, bottom) of every text, in px."""
    width, height = figure.layout.width, figure.layout.height
    for note, text in zip(figure.layout.annotations, said(figure), strict=True):
        size = width_of(unescape(text), note.font.size), note.font.size
        across, down = size[::-1] if note.textangle == -90 else size
        left = note.x * width - {"left": 0, "center": across / 2, "right": across}[note.xanchor]
        top = (1 - note.y) * height - down / 2
        yield left, top, left + across, top + down


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [360, 1104])
@pytest.mark.parametrize("picture", PICTURES)
def test_it_is_a_figure_of_exactly_this_width(picture, width, theme):
    figure = PICTURES[picture](*opened(), theme=theme, width=width)
    assert isinstance(figure, go.Figure)
    assert (figure.layout.width, figure.layout.paper_bgcolor) == (width, THEMES[theme].paper)


SCORE, TITLE = ["q · k = 2.3611", "× 1/√4 = 0.500000", "score 1.1805"], "query 2 → key 3 in all 3 heads"


@pytest.mark.parametrize("width", [360, 1104])
@pytest.mark.parametrize(
    ("picture", "kept", "gone"),
    [
        (terms, SCORE, {"title": "q of query 2", "labels": "dimension", "values": "1.01"}),
        (softmax, [], {"title": "score largest 1.1805; hatched: hidden", "labels": "key", "values": "0.5218"}),
        (cell_in_heads, [], {"title": TITLE, "labels": "head", "values": "0.187", "legend": "╌╌ average 0.3250"}),
    ],
)
def test_what_stands_around_the_bars_can_be_left_out(picture, kept, gone, width):
    whole, bare = picture(*opened(), width=width), picture(*opened(), width=width, parts=Parts(*[False] * 5))
    for part in gone:
        one = said(picture(*opened(), width=width, parts=Parts(**{part: False})))
        assert {name for name, text in gone.items() if text not in one} == {part} and gone[part] in said(whole)
    assert said(bare) == kept and bare.layout.height < whole.layout.height
    for drawn, same in zip(bars(whole), bars(bare), strict=True):
        np.testing.assert_array_equal(drawn, same)
    assert picture(*opened(), width=width, parts=ALL) == whole


def test_terms_are_the_products_and_end_at_the_score():
    trace, d = opened()
    figure = terms(trace, d)
    for drawn, values in zip(bars(figure), (d.q, d.k, d.products, np.cumsum(d.products)), strict=True):
        np.testing.assert_allclose(drawn, values, rtol=1e-6)
    assert f"q · k = {d.dot:.4f}".replace("-", "−") in said(figure)
    assert f"score {d.score:.4f}".replace("-", "−") in said(figure)
    hover = next(trace for trace in figure.data if trace.type == "bar").hovertext[1]
    assert f"q {d.q[1]:.6g}<br>k {d.k[1]:.6g}<br>q × k {d.products[1]:.6g}" in hover
    assert f"{d.score:.4f}".replace("-", "−") in describe_terms(trace, d)


def test_terms_name_what_a_mask_does_to_the_score():
    added = np.zeros((3, 3))
    added[0, 1], added[0, 2] = -1.5, -np.inf
    trace = attend(Layer.random(4, 2), Batch(np.ones((1, 3, 4)), attn_mask=added))
    biased, hidden = (open_number(trace, 0, 0, 0, key) for key in (1, 2))
    assert said(terms(trace, biased))[-2:] == ["+ mask −1.5000", f"= {biased.score - 1.5:.4f}".replace("-", "−")]
    assert said(terms(trace, hidden))[-1] == "hidden by attn_mask: −∞"


def test_softmax_shows_each_step_of_the_row_and_hatches_what_is_hidden():
    trace, d = opened()
    figure = softmax(trace, d)
    probabilities = trace.probabilities[0, 1, 2]
    steps = (np.where(np.isfinite(d.masked_scores), d.masked_scores, 0), d.exponentials, probabilities)
    for drawn, values in zip(bars(figure), steps, strict=True):
        np.testing.assert_allclose(drawn, values, rtol=1e-5)
    hatched = [(np.nanmin(trace.x), np.nanmax(trace.x)) for trace in figure.data if trace.type == "scatter"]
    assert hatched == [(3.5, 5.5)] * 3, "keys 4 and 5 are padding"
    colors = [trace.marker.color.index(THEMES["light"].choice) for trace in figure.data if trace.type == "bar"]
    assert colors == [3, 3, 3]
    assert f"{probabilities[3]:.4f}" in said(figure)
    assert "2 of 6 keys are hidden." in describe_softmax(trace, d)


def test_softmax_shows_dropout_as_a_step_of_its_own():
    trace, d = opened(Settings(embed_dim=12, num_heads=3, seq_len=6, padding=(), training=True, dropout=0.5))
    figure = softmax(trace, d)
    np.testing.assert_array_equal(bars(figure)[3], trace.weights[0, 1, 2])
    dropped = trace.dropped[0, 1, 2]
    assert dropped.any() and said(figure).count("×") == dropped.sum() - dropped[d.key]


def test_a_row_without_keys_is_undefined_and_not_zero():
    trace, d = opened(Settings(embed_dim=4, num_heads=2, batch_size=1, seq_len=3, padding=(3,)), key=0)
    assert said(softmax(trace, d)).count("undefined") == 2
    assert said(cell_in_heads(trace, d)).count("n/a") == 2
    names = [trace.name for trace in token_in_heads(trace, d).data if trace.showlegend]
    assert names == ["undefined: no key left"]
    assert "undefined in all" in describe_cell_in_heads(trace, d)
    assert "Undefined in head 1." in describe_token_in_heads(trace, d)


def test_without_scores_the_softmax_is_its_result():
    trace, _ = opened()
    known = {name: getattr(trace, name) for name in ("probabilities", "weights", "mean_weights", "undefined")}
    bare = type(trace)(known, tokens=trace.tokens)
    figure = softmax(bare, open_number(bare, 0, 1, 2, 3))
    [drawn] = bars(figure)
    np.testing.assert_array_equal(drawn, trace.probabilities[0, 1, 2])


def test_the_cell_in_all_heads_beside_its_average():
    trace, d = opened()
    figure = cell_in_heads(trace, d)
    [drawn] = bars(figure)
    np.testing.assert_allclose(drawn, trace.weights[0, :, 2, 3])
    [average] = [trace.y for trace in figure.data if trace.type == "scatter"]
    np.testing.assert_allclose(average, [trace.mean_weights[0, 2, 3]] * 2)
    low = int(trace.weights[0, :, 2, 3].argmin())
    assert f"from {trace.weights[0, low, 2, 3]:.4g} in head {low}" in describe_cell_in_heads(trace, d)


@pytest.mark.parametrize(("side", "at"), [("query", np.s_[0, ..., 2, :]), ("key", np.s_[0, ..., 3])])
def test_a_token_in_all_heads_and_on_average_in_the_colours_of_the_maps(side, at):
    trace, d = opened()
    figure = token_in_heads(trace, d, side)
    heads, average = [trace.z for trace in figure.data if trace.type == "heatmap"]
    np.testing.assert_array_equal(heads, trace.weights[at])
    np.testing.assert_array_equal(average, trace.mean_weights[at][None])
    largest = largest_weight(trace.weights[0], trace.query_padding[0])
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, largest)
    assert token_in_heads(trace, d, side, View(limits=(0, 0.5))).layout.coloraxis.cmax == 0.5
    hatch = {"query": "masked: may not be read", "key": "padded query"}[side]
    assert [trace.name for trace in figure.data if trace.showlegend] == [hatch]
    row = trace.weights[at][1]
    assert f"{row.max():.4g}" in describe_token_in_heads(trace, d, side)


@pytest.mark.parametrize("scale", ["log", "percentile", "row"])
def test_a_token_in_all_heads_follows_the_scale_and_tells_the_weight(scale):
    trace, d = opened()
    figure = token_in_heads(trace, d, "key", View(scale=scale))
    heads = next(trace for trace in figure.data if trace.type == "heatmap")
    np.testing.assert_array_equal(heads.customdata, trace.weights[0, :, :, 3])
    shares = trace.weights[0] / trace.weights[0].max(axis=-1, keepdims=True)
    np.testing.assert_allclose(heads.z, shares[:, :, 3] if scale == "row" else trace.weights[0, :, :, 3], rtol=1e-6)
    found = figure.to_plotly_json()["layout"]
    bars = [name for name in found if name.startswith("coloraxis") and "colorbar" in found[name]]
    assert len(bars) == 1, "one bar, also where the maps' own cannot have it"


def test_a_mask_of_one_head_is_hatched_in_that_head_alone():
    mask = np.zeros((2, 2, 2), bool)
    mask[1, 0, 1] = True
    trace = attend(Layer.random(4, 2), Batch(np.ones((1, 2, 4)), attn_mask=mask))
    figure = token_in_heads(trace, open_number(trace, 0, 0, 0, 1))
    [hatch] = [trace for trace in figure.data if trace.legendgroup == "masked"]
    assert (np.nanmin(hatch.y), np.nanmax(hatch.y), np.nanmin(hatch.x), np.nanmax(hatch.x)) == (0.5, 1.5, 0.5, 1.5)


@pytest.mark.parametrize("picture", PICTURES)
def test_tokens_are_escaped(picture):
    trace = attend(
        Layer.random(4, 2), Batch(np.ones((1, 2, 4)), query_tokens=[["<i>q</i>", "$"]], key_tokens=[["<i>", "&amp;"]])
    )
    figure = PICTURES[picture](trace, open_number(trace, 0, 0, 0, 0))
    texts = " ".join(note.text for note in figure.layout.annotations)
    texts += " ".join(trace.hovertemplate or "" for trace in figure.data)
    assert "&lt;" in texts and "<i>" not in texts


@pytest.mark.parametrize("width", [360, 1104])
@pytest.mark.parametrize(("heads", "head_dim", "length"), [(1, 128, 3), (3, 2, 6), (8, 16, 20), (64, 1, 128)])
@pytest.mark.parametrize("picture", PICTURES)
def test_no_texts_overlap_or_leave_the_picture(picture, width, heads, head_dim, length):
    rng = np.random.default_rng(0)
    tokens = [[f"a longer word {i}" if head_dim == 16 else str(i) for i in range(length)]]
    batch = Batch(rng.normal(size=(1, length, heads * head_dim)), query_tokens=tokens, key_tokens=tokens)
    trace = attend(Layer.random(heads * head_dim, heads), batch)
    figure = PICTURES[picture](trace, open_number(trace, 0, heads // 2, 1, length - 2), width=width)
    found = list(boxes(figure))
    for left, top, right, bottom in found:
        assert left >= 0 and top >= 0 and right <= width and bottom <= figure.layout.height
    for one, other in combinations(found, 2):
        apart = one[2] <= other[0] + 2 or other[2] <= one[0] + 2 or one[3] <= other[1] + 1 or other[3] <= one[1] + 1
        assert apart, (said(figure)[found.index(one)], said(figure)[found.index(other)])


def test_a_head_that_is_off_shows_what_was_put_there():
    trace = changed(synthetic(SMALL), Intervention({1: "uniform"}, temperature=2.0))
    d = open_number(trace, 0, 1, 2, 3)
    figure = softmax(trace, d)
    np.testing.assert_array_equal(bars(figure)[-1], trace.weights[0, 1, 2])
    assert "the head is off (uniform)" in " ".join(said(figure)) and "the head is off (uniform)" in describe_softmax(trace, d)
    assert "which is not 1/√4" in describe_terms(trace, d)
