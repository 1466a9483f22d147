"""The Models page with the shipped models, run without a browser: what its controls, its address and its pictures say of each other."""

import re
from itertools import pairwise
from urllib.parse import parse_qsl

import numpy as np
import pytest
from streamlit.runtime.caching import clear_session_resource_cache

import mha_viz as mv
from mha_viz import Trained, View, trained
from mha_viz.analysis import choose, shown_trace
from mha_viz.analysis.examples import strongest
from mha_viz.analysis.similarity import heads_like
from mha_viz.analysis.statistics import STATISTICS
from mha_viz.analysis.table import head_table
from mha_viz.app.number_field import typed
from mha_viz.core.decimals import prose
from mha_viz.recording import Cause
from mha_viz.settings import to_address
from mha_viz.sources.models import MODELS, record, steps
from mha_viz.sources.trained import accuracy
from tests.app.screen import (
    decoded,
    errors,
    figure,
    held,
    models,
    opened,
    page_text,
    press,
    read,
    sent,
    set_to,
    to_page,
    unescaped,
    whole,
    widgets,
)

OWN = "<bos> m a r c h i n g m a r c h"

# What a person does to the page of the induction model, widget by widget, and the settings that this means.
CHANGES = [
    ({"model": "look-both-ways-2"}, {"model": "look-both-ways-2"}),
    ({"snapshot": 100}, {"snapshot": 100}),
    ({"batch_size": 2, "seed": 9}, {"batch_size": 2, "seed": 9}),
    ({"words": OWN}, {"words": OWN}),
    ({"what_if_off": [(0, 1), (1, 2)]}, {"interventions": "0:1=zero 1:2=zero"}),
    ({"what_if_way": "mean", "what_if_off": [(1, 0)]}, {"interventions": "1:0=mean"}),
    ({"what_if_off": [(1, 0)], "what_if_way": "uniform"}, {"interventions": "1:0=uniform"}),
    ({"what_if_keys": "3, 4"}, {"interventions": "0:keys=3,4 1:keys=3,4"}),
    ({"what_if_temperature": 2.0}, {"interventions": "0:temperature=2.0 1:temperature=2.0"}),
]
by_change = pytest.mark.parametrize(("moves", "meant"), CHANGES, ids=lambda value: ", ".join(map(str, value.values())))


@pytest.fixture(autouse=True)
def own_session():
    """What another test's page kept is not this one's."""
    clear_session_resource_cache("test session id")


def shows(at, settings, view=None, run=None):
    """Whether the picture and the overview hold exactly the weights of these settings."""
    view, traces = view or View(), (run or trained(settings).recording).traces
    trace = shown_trace(traces[view.layer], view)
    choice = choose(trace, view)
    drawn = figure(at)
    meta, tiles = drawn["layout"]["meta"], [decoded(one["z"]) for one in drawn["data"] if one["type"] == "heatmap"]
    assert meta["chosen"] == {"head": choice.head, "query": choice.query, "key": choice.key}
    np.testing.assert_array_equal(tiles[-2], trace.weights[choice.item, choice.head])
    np.testing.assert_array_equal(tiles[-1], trace.mean_weights[choice.item])
    if len(traces) > 1:
        assert len(tiles) == 2, "the overview has the others"
        for one, small in zip(traces, np.split(overview(at), len(traces)), strict=True):
            np.testing.assert_array_equal(small, shown_trace(one, view).weights[choice.item])
    assert not at.exception and not at.error
    return True


def overview(at):
    """Every small map of the overview, layer by layer [layers · H, L, S]."""
    return np.array([decoded(one["z"]) for one in figure(at, "overview")["data"] if one["type"] == "heatmap"])


def about(at):
    """What the page says of how well the model does."""
    return read(at, "mode")


def answers_html(at):
    return next(html.value for html in at.get("html") if "class='answers'" in html.value)


def answered(at):
    """The rows of the table of answers, as lists of texts; a wrong one with the right one behind it."""
    rows = re.findall(r"<tr>(.*?)</tr>", answers_html(at))
    return [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row)] for row in rows]


# Model, input, what if


def test_opens_with_a_trained_model_its_scores_and_its_answers():
    at = models()
    assert shows(at, Trained())
    assert at.query_params == {}
    assert MODELS["induction"].shows in page_text(at)
    final = record("induction")["final"]
    measured = f"accuracy {final['accuracy']['next']:.3f} · loss {prose(final['loss'], '.1e')} · "
    assert about(at).startswith(f"held out, 512 sequences: {measured}")
    assert "chance 0.04 · 39,168 parameters" in about(at)
    assert "previous token: head 0·1 0.94 · induction: head 1·2 0.99" in page_text(at).replace("<b>", "").replace("</b>", "")
    run = trained(Trained())
    reads, says = answered(at)
    assert reads == ["reads", *(text.replace("<bos>", "&lt;bos&gt;") for text in run.recording.traces[0].query_tokens[0])]
    assert [bool(text) for text in says[1:]] == run.asked[0, :, 0].tolist()
    assert says[-1] == run.predictions[0, -1, 0]
    assert any("Over 1500 training steps: loss from" in chart.proto.alt for chart in at.get("plotly_chart"))


@by_change
@pytest.mark.slow
def test_a_control_does_what_it_says(moves, meant):
    at = models()
    for name, value in moves.items():
        set_to(at, name, value)
    assert shows(at, Trained(**meant))
    assert at.query_params == to_address(Trained, **meant)


@by_change
def test_an_address_opens_what_it_spells(moves, meant):
    at = models(**to_address(Trained, **meant))
    assert shows(at, Trained(**meant))
    assert at.query_params == to_address(Trained, **meant)
    assert held(at).items() >= moves.items()


@pytest.mark.parametrize("name", MODELS)
def test_every_shipped_model_is_shown(name):
    at = models(model=name)
    assert shows(at, Trained(name))
    assert MODELS[name].title in page_text(at)
    assert (held(at).get("view_layer") is None) == (MODELS[name].num_layers == 1)


def test_every_control_has_a_name_and_says_what_it_changes():
    for widget in widgets(models()):
        assert widget.label, widget.key
        assert widget.proto.help or widget.key.startswith(("view_", "what_if_way")), widget.key


def test_wrong_answers_are_struck_out_beside_the_right_ones():
    at = models(model="look-both-ways-1")
    run = trained(Trained("look-both-ways-1"))
    wrong = run.asked & ~run.right  # [N, L, A]
    assert wrong[0].any() and run.right[0].any()
    for a, (name, *texts) in enumerate(answered(at)[1:]):
        assert name == run.answers[a]
        for place, text in enumerate(texts):
            said, right = run.predictions[0, place, a], run.targets[0, place, a]
            assert text == (f"{said} {right}" if wrong[0, place, a] else said if run.asked[0, place, a] else "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moves", "said"),
    [
        ({"seed": -1}, "seed = -1: must be a whole number from 0"),
        ({"batch_size": 65}, "batch_size = 65: must be a whole number from 1 to 64"),
        ({"words": "<bos> 5"}, "words = <bos> 5: holds '5' where the model cannot read it"),
        ({"words": "<bos> " + "a " * 32}, "the model knows 32 positions"),
    ],
)
def test_a_wrong_value_is_named_and_stays_to_be_mended(moves, said):
    at = models(seed="3")
    before = sent(at)
    for name, value in moves.items():
        set_to(at, name, value)
    assert said in errors(at)[0].replace("**", "")
    assert sent(at) == before
    assert at.query_params.get("seed") == (None if "seed" in moves else "3"), "what breaks the rule of its field spells nothing"
    assert all(held(at)[name] == value for name, value in moves.items())
    set_to(at, "snapshot", 100)
    assert said in errors(at)[0].replace("**", ""), "another change does not hide it"
    for name in moves:
        set_to(at, name, {"seed": 8, "batch_size": 2, "words": OWN}[name])
    assert not at.error


def test_what_is_wrong_goes_with_the_model_and_with_its_widget():
    at = set_to(models(), "words", "5")
    set_to(at, "model", "look-both-ways-2")
    assert not at.error and held(at)["words"] == ""
    set_to(at, "seed", -1)
    set_to(at, "words", "a b c")  # which takes the seed's place
    assert not at.error and "seed" not in held(at)
    set_to(at, "words", "")
    assert held(at)["seed"] == 0


def test_what_if_says_what_it_costs():
    changes = "0:0=zero 0:1=zero 0:2=zero 0:3=zero"
    without, found = accuracy(Trained(interventions=changes))
    said = about(models(interventions=changes))
    assert found.accuracy["next"] < 0.5 < without.accuracy["next"]
    assert f"accuracy {found.accuracy['next']:.3f} (unchanged model {without.accuracy['next']:.3f}" in said
    assert f"loss {found.loss:.4f} (unchanged model {prose(without.loss, '.1e')}" in said


def test_a_position_without_a_key_has_no_answer_and_the_loss_is_undefined():
    """Position 0 masked, <bos> may read nothing: its NaN spreads, and no answer is struck out for what is no answer."""
    at = models(interventions="0:keys=0 1:keys=0")
    assert "loss undefined" in about(at) and "nan" not in about(at)
    assert "<s>" not in answers_html(at) and "undefined: nothing is left to read" in answers_html(at)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("what_if_keys", "x", "must be positions of keys, whole numbers from 0, and 'x' is not"),
        ("what_if_keys", "32", "names key 32, and there are 32, from 0 to 31"),
        ("what_if_temperature", 0.0, "must be a number from 0.001 to 1000"),
    ],
)
def test_what_cannot_be_is_named_and_nothing_changes(name, value, said):
    at = models(interventions="1:2=zero")
    before = sent(at)
    set_to(at, name, value)
    assert said in errors(at)[0]
    assert sent(at) == before and held(at)[name] == value
    set_to(at, "model", "reverse-or-shift")  # the next model begins as it is
    assert shows(at, Trained("reverse-or-shift"))
    assert held(at)["what_if_off"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "button", "right"),
    [
        ("batch_size", "1,5", "batch_size = 2", {"batch_size": 2}),
        ("batch_size", "100", "batch_size = 64", {"batch_size": 64}),
        ("batch_size", "", "batch_size = 1", {"batch_size": 1}),
        ("seed", "0x10", "seed = 16", {"seed": 16}),
        ("seed", "-3", "seed = 0", {}),
        ("words", "a a a a a", "words = ", {"words": "<bos> a a a a a"}),
        ("what_if_temperature", "2,5", "temperature = 2.5", {"interventions": "0:temperature=2.5 1:temperature=2.5"}),
        ("what_if_keys", "3, x", "tokens masked = 3", {"interventions": "0:keys=3 1:keys=3"}),
        ("what_if_keys", "1e3", "interventions = ", {}),
    ],
)
def test_what_is_typed_wrong_stays_with_a_button_that_mends_it(name, text, button, right):
    at = models()
    before = sent(at)
    set_to(at, name, text)
    assert errors(at) and sent(at) == before and held(at)[name] in (text, typed(text))
    press(at, button)
    assert not at.exception and shows(at, Trained(**right))
    assert not errors(at)


def test_the_way_in_which_heads_go_off_waits_for_one_and_all_is_undone_at_once():
    at = set_to(models(), "what_if_way", "uniform")
    assert at.query_params == {} and held(at)["what_if_way"] == "uniform"
    set_to(at, "what_if_off", [(1, 3)])
    assert at.query_params == {"interventions": "1:3=uniform"}
    assert shows(press(at, "Undo all"), Trained())
    assert held(at)["what_if_off"] == [] and at.query_params == {}


@pytest.mark.slow
def test_training_is_played_step_by_step_and_back_does_not_lead_through_it():
    at = press(models(model="look-both-ways-2"), "Play the training")
    every = steps("look-both-ways-2")
    assert held(at)["snapshot"] == every[0] and "Stop" in [button.label for button in at.button]
    seen = []
    while "task_playing" in at.session_state and at.session_state["task_playing"].going:
        seen.append(held(at)["snapshot"])
        at.session_state["task_playing"].due = 0  # it was looked at for long enough
        at.run()
    assert [a < b for a, b in pairwise(seen)] == [True] * (len(every) - 2)
    assert seen == list(every[:-1])
    assert held(at)["snapshot"] == every[-1] and shows(at, Trained("look-both-ways-2"))
    assert at.query_params == {"model": "look-both-ways-2"}


def test_playing_stops_where_it_is():
    at = press(models(), "Play the training")
    at.session_state["task_playing"].due = 0
    step = held(at.run())["snapshot"]
    at = press(at, "Stop")
    assert "task_playing" not in at.session_state
    assert held(at.run())["snapshot"] == step == steps("induction")[1]
    assert at.query_params == {"snapshot": str(step)}


def test_a_page_of_its_own_writes_its_address_while_a_training_is_played():
    at = to_page(press(models(), "Play the training"), "profile")
    assert set_to(at, "profile_repeats", 3).query_params == {"repeats": "3"}


# Layers and heads


def test_the_overview_holds_every_head_and_marks_the_chosen_one():
    at = models(layer="1", head="2", order="index")
    meta = figure(at, "overview")["layout"]["meta"]
    assert [tile["head"] for tile in meta["tiles"]] == list(range(8))
    assert meta["chosen"]["head"] == 4 + 2, "its place among all"
    assert b"Overview of 2 layers by 4 heads as small maps. Layer 1 head 2 is chosen." in sent(at, "overview")
    assert shows(at, Trained(), View(layer=1, head=2, order="index"))


def test_a_layer_is_chosen():
    at = set_to(models(), "view_layer", 1)
    assert at.query_params == {"layer": "1"}
    assert shows(at, Trained(), View(layer=1))
    assert "q [N 4, H 4, L 32, D 16]" in read(at, "shapes")
    set_to(at, "model", "look-both-ways-2")  # which has one
    assert len([one for one in figure(at)["data"] if one["type"] == "heatmap"]) == 2 + 2, "the strip stands in the picture"
    np.testing.assert_array_equal(
        decoded([one for one in figure(at)["data"] if one["type"] == "heatmap"][-1]["z"]),
        trained(Trained("look-both-ways-2")).recording.traces[0].mean_weights[0],
    )


@pytest.mark.parametrize(("name", "value", "view"), [("item", 1, View(item=1)), ("order", "entropy", View(order="entropy"))])
def test_what_the_toolbar_changes_is_changed_in_all_that_shows_it(name, value, view):
    at = set_to(models(), f"view_{name}", value)
    assert shows(at, Trained(), view)  # picture and overview alike
    assert answered(at)[0][2] == trained(Trained()).recording.traces[0].query_tokens[view.item][1]
    choice = choose(trained(Trained()).recording.traces[0], view)
    assert at.expander[0].label.startswith(f"Layer 0 head {choice.head}:")


def test_cells_weighted_by_norms_are_weighted_everywhere():
    at = models(model="reverse-or-shift", weighting="norms")
    view = View(weighting="norms")
    assert shows(at, Trained("reverse-or-shift"), view)
    assert "value-norm weight" in read(at, "chosen")
    head = figure(at)["layout"]["meta"]["chosen"]["head"]
    assert at.expander[0].label.startswith(f"Layer 0 head {head}:")
    at.session_state["popover_scale"] = True
    switch = next(widget for widget in widgets(at.run()) if widget.key == "view_weighting")
    assert not switch.disabled and "Kobayashi" in switch.proto.help
    assert shows(set_to(at, "view_weighting", "weights"), Trained("reverse-or-shift"))


def test_the_statistics_of_all_heads_are_those_of_the_analysis():
    at = models(item="1")
    assert not at.get("dataframe"), "nothing is computed while it is folded"
    at.session_state["statistics"] = True
    shown = at.run().get("dataframe")[0].value
    table = head_table(trained(Trained()).recording, 1)
    assert list(zip(shown["layer"], shown["head"], strict=True)) == [(row.trace, row.head) for row in table.rows]
    for name in STATISTICS:
        np.testing.assert_allclose(shown[name].astype(float), [row.values[name] for row in table.rows])
    at.session_state["statistics_chosen"] = {"selection": {"rows": [6], "columns": [], "cells": []}}
    assert not at.run().exception


def test_heads_like_the_chosen_one_lead_to_themselves():
    at = models(layer="1", head="0")
    at.session_state["head_panel"] = True
    at.run()
    found = heads_like(trained(Trained()).recording, 1, 0, 0, 8).heads
    labels = [button.label for button in at.button if str(button.key).startswith("alike")]
    assert labels == [f"layer {one.trace} head {one.head} · {100 * one.distance:.1f} %" for one in found]
    press(at, labels[-1])
    assert at.query_params == to_address(layer=found[-1].trace, head=found[-1].head)
    assert shows(at, Trained(), View(layer=found[-1].trace, head=found[-1].head))


def test_a_head_that_is_chosen_is_shown_though_others_were_picked():
    at = models(heads="2,1")
    at.session_state["head_panel"] = True
    at.run()
    other = next(button for button in at.button if str(button.key).startswith("alike") and button.label.split()[3] in "03")
    layer, head = int(other.label.split()[1]), int(other.label.split()[3])
    at = whole(other.click().run())
    assert figure(at)["layout"]["meta"]["chosen"]["head"] == head
    assert at.query_params == to_address(layer=layer, head=head, heads=(2, 1, head))


def test_a_heads_strongest_examples_lead_to_their_sequence_and_cell():
    at = models(layer="1", head="0", words=OWN)
    at.session_state["head_panel"] = True
    at.run()
    many = Trained(batch_size=64)
    trace = trained(many).recording.traces[1]
    first = strongest([trace], 0, 8, sink=False)[0]
    button = next(button for button in at.button if button.key == "example_0")
    said = f"item {first.item} · {first.query} “{trace.query_tokens[first.item][first.query]}” → {first.key}"
    assert unescaped(button.label).replace("\u2068", "").replace("\u2069", "").startswith(said)
    at = whole(button.click().run())
    view = View(layer=1, head=0, item=first.item, cell=(first.query, first.key))
    assert shows(at, many, view)
    assert at.query_params == to_address(Trained, **vars(many), **vars(view))


def test_a_beside_b_with_the_accuracy_of_a():
    at = press(models(model="look-both-ways-2", order="index"), "Pin as A")
    assert at.query_params["pinned"] == "model=look-both-ways-2"
    set_to(at, "what_if_off", [(0, 1)])
    settings = Trained("look-both-ways-2", interventions="0:1=zero")
    without, found = accuracy(settings)
    said = about(at)
    assert (
        f"accuracy: after {found.accuracy['after']:.3f} (unchanged" in said
        or f"accuracy: before {found.accuracy['before']:.3f}" in said
    )
    assert f"A: accuracy: before {without.accuracy['before']:.3f}, accuracy: after {without.accuracy['after']:.3f}" in said
    a, b = (trained(one).recording.traces[0] for one in (Trained("look-both-ways-2"), settings))
    tiles = [decoded(one["z"]) for one in figure(at)["data"] if one["type"] == "heatmap"]
    change = b.weights[0, choose(b, View(order="index")).head] - a.weights[0, choose(b, View(order="index")).head]
    assert any(tile.shape == change.shape and np.allclose(tile, change, atol=1e-7) for tile in tiles)
    assert "Output: each query's vector moves by" in page_text(at).replace("**", "")
    assert shows(press(at, "Unpin A"), settings, View(order="index"))


# The address


@pytest.mark.parametrize(
    ("address", "stands", "named"),
    [
        ({"seed": "x", "batch_size": "2"}, {"batch_size": 2}, "seed = x"),
        ({"seed": "5", "batch_size": "900"}, {"seed": 5}, "batch_size = 900"),
        ({"model": "gpt", "seed": "5"}, {"seed": 5}, "model = gpt: must be one of induction"),
        ({"interventions": "foo", "seed": "5"}, {"seed": 5}, "interventions = foo: must be written LAYER:WHAT"),
        ({"source": "paper", "seed": "5"}, {"seed": 5}, "source = paper: must be one of random, tiny, trained, pretrained"),
        ({"sed": "3", "seed": "5"}, {"seed": 5}, "is seed meant?"),
        ({"scale": "cubic", "seed": "5"}, {"seed": 5}, "scale = cubic"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)
def test_a_bad_value_of_an_address_falls_back_alone(address, stands, named):
    at = models(**address)
    assert shows(at, Trained(**stands))
    assert at.query_params == to_address(Trained, **stands)
    note = unescaped(at.warning[0].value)
    assert named in note
    for name, value in stands.items():
        assert f"{name} = {value}" not in note
    assert not set_to(at, "words", "a b c" if "model" in stands else OWN).warning, "until something is changed"


@pytest.mark.parametrize(
    ("address", "shown", "said"),
    [
        ({"snapshot": "33", "seed": "5"}, {"seed": 5}, "snapshot = 33: is no step after which induction was kept"),
        ({"model": "look-both-ways-2", "words": "a b z"}, {"model": "look-both-ways-2"}, "words = a b z: holds 'z'"),
        ({"interventions": "4:0=zero", "seed": "5"}, {"seed": 5}, "names layer 4, and induction has 2"),
    ],
)
def test_values_of_an_address_that_do_not_go_together_are_said_and_the_others_are_shown(address, shown, said):
    at = models(**address)
    assert said in errors(at)[0].replace("**", "") and "Not current." in page_text(at)
    assert sent(at) == sent(models(**to_address(Trained, **shown)))
    assert at.query_params == address, "a class can be sent to it"
    assert not press(at, next(unescaped(button.label) for button in at.get("button") if button.key == "nearest_0")).error


def test_an_address_that_points_beyond_the_model_says_so_until_something_changes():
    at = models(layer="7", item="9", head="4", cell="3,32", seed="5")
    said = page_text(at)
    for part in (
        "layer = 7: points to layer 7, and there are 2",
        "item = 9: points to 9",
        "head = 4: points to 4",
        "points to 32",
    ):
        assert part in said
    assert shows(at, Trained(seed=5))
    assert "points to" not in page_text(set_to(at, "view_layer", 1))


def test_what_is_pinned_must_be_such_settings():
    for pinned, said in {
        "snapshot=7": "snapshot = 7: is no step",
        "garbage": "must be settings as an address spells them",
    }.items():
        at = models(pinned=pinned)
        assert said in page_text(at) and not at.exception


def test_back_returns_to_what_was_set_then():
    at = set_to(models(), "seed", 11)
    set_to(at, "view_layer", 1)
    at.query_params = {"seed": "11"}
    assert shows(at.run(), Trained(seed=11))
    at.query_params = {}
    assert shows(at.run(), Trained())
    assert held(at)["seed"] == 0 and held(at)["view_layer"] == 0


# From page to page


def test_each_source_is_found_as_it_was_left():
    at = opened(seed="11", order="entropy", scale="log")
    at = set_to(at, "view_source", "trained")
    assert shows(at, Trained(), View(scale="log")) and held(at)["seed"] == 0
    set_to(at, "seed", 5)
    set_to(at, "what_if_off", [(1, 2)])
    changed = sent(at)
    at = set_to(at, "view_source", "random")
    assert held(at)["seed"] == 11 and at.query_params == {"seed": "11", "scale": "log"}
    at = set_to(at, "view_source", "trained")
    assert sent(at) == changed


def test_the_page_of_models_and_explore_look_at_the_same():
    at = models(seed="5", layer="1")
    seen = sent(at)
    address = address_in_link(at, "Explore")
    assert address == {"source": "trained", "seed": "5", "layer": "1"}
    at = to_page(at, "explore", **address)
    assert sent(at) == seen and at.query_params == address
    at = set_to(to_page(at, "models", seed="5", layer="1"), "view_source", "random")
    assert at.query_params["source"] == "random" and held(at)["seed"] == 7


def address_in_link(at, page):
    """The address with which a link leads to another page."""
    link = next(link for link in at.get("page_link") if link.label == page)
    return dict(parse_qsl(link.proto.query_string))


# A file on the command line


def test_a_file_on_the_command_line_is_looked_at_first_and_where_it_went_wrong(tmp_path, monkeypatch):
    traces = mv.synthetic(), mv.synthetic(mv.Settings(causal=True, padding_side="left"))
    path = tmp_path / "run.safetensors"
    mv.Recording(traces, (), Cause(1, "Here a query has no key.", 0, 3, 1)).save(path)
    monkeypatch.setenv("MHA_VIZ_FILE", str(path))
    at = opened()  # the page that is first then
    assert "Here a query has no key." in errors(at)[0]
    assert figure(at)["layout"]["meta"]["chosen"] | {"key": None} == {"head": 3, "query": 1, "key": None}
    assert at.query_params == {"source": "file", "file": "run.safetensors", "layer": "1", "head": "3", "cell": "1,"}
    set_to(at, "view_source", "trained")
    assert shows(at, Trained())
    set_to(at, "view_source", "file")
    assert "run.safetensors" in page_text(at), "it stays open"


def test_an_address_comes_before_the_file_on_the_command_line(tmp_path, monkeypatch):
    path = tmp_path / "run.safetensors"
    mv.Recording((mv.synthetic(), mv.synthetic(mv.Settings(seed=8)))).save(path)
    monkeypatch.setenv("MHA_VIZ_FILE", str(path))
    at = models(model="look-both-ways-2")
    assert shows(at, Trained("look-both-ways-2"))
    assert "run.safetensors" in page_text(set_to(at, "view_source", "file"))
    at = models(source="file", file="run.safetensors", layer="1", head="5")  # the page loaded anew
    assert figure(at)["layout"]["meta"]["chosen"]["head"] == 5 and held(at)["view_layer"] == 1


def test_a_file_on_the_command_line_that_is_none_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("MHA_VIZ_FILE", str(tmp_path / "gone.npy"))
    at = opened()
    assert "gone.npy: is not there: no such file" in errors(at)[0].replace("**", "") and not at.exception


def test_after_a_walk_to_another_source_and_back_the_picture_is_that_of_its_address():
    at = set_to(models(), "view_picture", "lines")
    at = press(set_to(at, "batch_size", 8), "Pin as A")
    at = set_to(set_to(set_to(at, "batch_size", 9), "snapshot", 70), "view_item", 3)
    at = whole(next(one for one in at.button if one.key == "change_0").click().run())
    assert at.query_params["pinned"] == "batch_size=8" and figure(at) == figure(models(**at.query_params))
    at = set_to(at, "view_source", "file")
    assert at.query_params == {"source": "file"}, "nothing is open, and the address says so"
    at = set_to(at, "view_source", "trained")
    assert at.query_params == {"batch_size": "9", "snapshot": "70"} and figure(at) == figure(models(**at.query_params))
