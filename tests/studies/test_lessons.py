"""Every lesson's numbers, computed anew: what a teacher reads out is true."""

import re

import numpy as np
import pytest
import torch
from torch import nn

from mha_viz.analysis import choose
from mha_viz.analysis.statistics import statistic
from mha_viz.studies.lesson_numbers import opposite_heads, sliced, usual
from mha_viz.studies.lessons import LESSONS


def numbers(name):
    return LESSONS[name].numbers()


@pytest.mark.parametrize("name", [name for name in LESSONS if name != "kinds"])  # which needs a pretrained model: tests/models
def test_each_lesson_has_a_picture_an_answer_and_nothing_left_open(name):
    lesson = LESSONS[name]
    assert lesson.question.endswith("?") and "{" not in lesson.answered()
    for trace in lesson.traces():
        choose(trace, lesson.view())


@pytest.mark.parametrize("name", [name for name in LESSONS if name != "kinds"])
def test_the_words_of_a_lesson_are_those_of_its_picture(name):
    """Words that it quotes, and heads that it names, are there; the chosen head is the one that it names."""
    lesson = LESSONS[name]
    trace = lesson.traces()[-1]
    choice = choose(trace, lesson.view())
    tokens = {*trace.query_tokens[choice.item], *trace.key_tokens[choice.item]}
    quoted = re.findall(r"“(\w+)”", f"{lesson.look} {lesson.question}")
    assert set(quoted) <= tokens, quoted
    named = re.findall(r"[Hh]ead (\d+)\b(?!·)", lesson.answered())
    assert not named or str(choice.head) in named


def chosen(name):
    """(the Trace of B, the weight in its chosen cell and, where A is there, in A's, the Choice)."""
    lesson = LESSONS[name]
    *a, b = lesson.traces()
    c = choose(b, lesson.view())
    weights = [float(trace.weights[c.item, min(c.head, trace.weights.shape[1] - 1), c.query, c.key]) for trace in (*a, b)]
    return b, weights, c


def test_each_lesson_marks_the_cell_that_it_is_about():
    b, (undefined,), c = chosen("dead")
    assert np.isnan(undefined) and b.undefined[0, c.head, c.query]
    _, (before, after), c = chosen("slice")
    assert c.query == 5 and abs(after - before) > 1e-3, "the changed token asks"
    b, (without, having), c = chosen("positions")
    assert b.query_tokens[0][c.query] == "cat" and abs(having - without) > 0.05
    b, (leaking, masked), c = chosen("leak")
    assert b.query_padding[0, c.key] and not b.query_padding[0, c.query] and leaking > 0.1 and masked == 0
    b, (weight,), c = chosen("dropout")
    assert b.dropped[0, c.head, c.query, c.key] and weight == 0 < b.probabilities[0, c.head, c.query, c.key]
    b, (before, after), c = chosen("forming")
    tokens = b.query_tokens[0]
    assert tokens[c.key - 1] == tokens[c.query] and after > 0.9 > before, "what followed the same token before"
    assert statistic(b, 0, "induction").argmax() == c.head
    _, (weight,), c = chosen("first")
    assert c.key == 0 and weight > 0.5
    b, (weight,), _ = chosen("decimal")
    assert weight == b.weights.max()
    _, (free, causal), c = chosen("causal")
    assert (c.query, causal) == (0, 1) and free < 1
    _, (weight,), c = chosen("hides")
    assert weight == pytest.approx(0.293571, abs=5e-7)
    assert LESSONS["positions"].traces()[0].query_tokens[0].count("cat") == 3 and "three times" in LESSONS["positions"].title


def test_the_average_that_does_nothing():
    found = numbers("nothing")
    assert found["high"] == pytest.approx(0.245503, abs=5e-7) and found["low"] == pytest.approx(0.004497, abs=5e-7)
    assert found["average"] == pytest.approx(0.125) and found["spread"] < 1e-7
    assert found["output"] == pytest.approx(0.9640, abs=5e-5) and found["from_average"] < 1e-6
    signs = np.sign(opposite_heads().output[0, :, 0])
    assert np.array_equal(signs, [1, -1, 1, 1, -1, -1, 1, -1])


def test_one_head_cannot_look_both_ways():
    found = numbers("both-ways")
    assert (found["before2"], found["after2"]) == (1, 1)
    assert found["before1"] == 1 and found["after1"] < 0.15, "chance is 0.1"
    assert 0.9 < found["before32"] < 0.97 and found["gap"] < 0.005


def test_a_loss_that_looks_right_and_a_model_that_is_dead():
    found = numbers("dead")
    assert found["right"] == pytest.approx(0.0363, abs=5e-5) and found["left"] == pytest.approx(0.0357, abs=5e-5)
    assert (found["none"], found["fine"]) == (0, 0)
    assert (found["rows"], found["in_nan"], found["out_nan"]) == (24, 49_152, 16_384)


def test_a_head_reads_the_whole_token():
    found = numbers("slice")
    assert (found["moved"], found["count"], found["only"]) == (8, 1, 6)


def test_the_wrong_layer_of_that_lesson_is_one_head_per_slice():
    """Head h of the sliced layer is a layer of one head, of that slice alone."""
    trace = usual(padding=())
    D, h = trace.layer.head_dim, 3
    own = slice(h * D, (h + 1) * D)
    layer = nn.MultiheadAttention(D, 1, bias=False, batch_first=True)
    parts = [W[own, own] for W in trace.layer.projections]
    layer.load_state_dict({"in_proj_weight": torch.tensor(np.concatenate(parts)), "out_proj.weight": torch.eye(D)})
    x = torch.tensor(trace.batch.query[..., own])
    right = layer(x, x, x)[1].detach().numpy()
    np.testing.assert_allclose(sliced(trace.batch.query, trace.layer)[:, h], right, atol=1e-6)


def test_equal_words_are_equal_until_they_have_places():
    found = numbers("positions")
    assert found["count"] == 3 and found["without"] < 1e-6 and found["having"] > 0.1
    within = "bit for bit" if found["without"] == 0 else "to within"
    assert within in LESSONS["positions"].answered() and "within 0" not in LESSONS["positions"].answered()


def test_padding_leaks_its_share_where_nobody_masks_it():
    found = numbers("leak")
    assert found["leak"] == pytest.approx(3 / 20, abs=0.01) and found["masked"] == 0 and found["moved"] > 0.1


def test_dropout_moves_every_row_off_one():
    found = numbers("dropout")
    assert found["off"] == found["rows"] == 480 and found["least"] < 0.9 and found["most"] > 1.05
    assert found["dropped"] == pytest.approx(0.1, abs=0.02) and found["eval"] < 1e-6


def test_induction_comes_nearly_at_once_and_needs_the_layer_below():
    found = numbers("forming")
    assert found["was"] < 0.5 < found["accuracy"] and found["last"] > 0.7 > found["first"]
    assert found["whole"] > 0.99 and found["off"] < 0.5


def test_the_first_token_is_an_order_and_no_sink():
    found = numbers("first")
    assert found["weight"] > 4 * found["even"] and found["whole"] > 0.99 and found["masked"] < 0.6


def test_decimals_mean_what_their_type_holds():
    found = numbers("decimal")
    assert found["float32"] < 1e-6 < found["float16"] < 1e-3 < found["bfloat16"] < 1e-2


def test_many_untrained_heads_are_hardly_more_different():
    found = numbers("many")
    assert found["h8"] < found["h64"] < 1.2 * found["h8"]


def test_causal_leaves_the_last_row_alone():
    found = numbers("causal")
    assert found["causal"] == 0 and found["first"] == 1 and found["last"] < 1e-6 and 0.4 < found["later"] < 0.5


def test_what_the_average_hides_is_said_in_the_words_of_the_page():
    found = numbers("hides")
    assert (found["head"], found["query"], found["key"]) == (4, 6, 0) and found["weight"] == pytest.approx(0.293571, abs=5e-7)
