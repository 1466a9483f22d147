"""The Explore page, run without a browser: what its widgets, its address and its picture say of each other."""

import numpy as np
import pytest
import torch
from streamlit.runtime.caching import clear_session_resource_cache
from torch import nn

import mha_viz.sources.synthetic
from mha_viz import Settings, View, synthetic
from mha_viz.analysis import choose
from mha_viz.app.state import Looking
from mha_viz.core.budget import BUDGET
from mha_viz.settings import to_address
from tests.app.screen import figure, held, maps, opened, press, read, sent, set_to, unescaped, unfolded, widgets

WORDS = "the cat sat\nthe dog slept all day"

# What a person does to a page at its defaults, widget by widget, and the Settings that this means.
CHANGES = [
    ({"embed_dim": 64}, {"embed_dim": 64}),
    ({"num_heads": 4}, {"num_heads": 4}),
    ({"batch_size": 2}, {"batch_size": 2}),
    ({"seq_len": 9}, {"seq_len": 9}),
    ({"seed": 11}, {"seed": 11}),
    ({"padding": "2, 5"}, {"padding": (2, 5)}),
    ({"padding": ""}, {"padding": ()}),
    ({"padding_side": "left"}, {"padding_side": "left"}),
    ({"causal": True}, {"causal": True}),
    ({"windowed": True}, {"window": 4}),
    ({"seq_len": 2, "padding": "", "masked": True, "attn_mask": "01\n00"}, {"seq_len": 2, "padding": (), "attn_mask": "01/00"}),
    ({"windowed": True, "window": 2, "causal": True}, {"window": 2, "causal": True}),
    ({"batch_first": False}, {"batch_first": False}),
    ({"training": True}, {"training": True}),
    ({"training": True, "dropout": 0.4}, {"training": True, "dropout": 0.4}),
    ({"bias": False}, {"bias": False}),
    ({"add_bias_kv": True}, {"add_bias_kv": True}),
    ({"add_zero_attn": True}, {"add_zero_attn": True}),
    ({"kdim": 24}, {"kdim": 24}),
    ({"vdim": 40}, {"vdim": 40}),
    ({"positions": True}, {"positions": True}),
    ({"cross": True}, {"source_len": 12}),
    ({"cross": True, "source_len": 6, "source_padding": "1, 2"}, {"source_len": 6, "source_padding": (1, 2)}),
    ({"own_words": True, "words": WORDS}, {"words": WORDS, "padding": ()}),
    (
        {"own_words": True, "words": WORDS, "cross": True, "source_words": "eins zwei\ndrei"},
        {"words": WORDS, "padding": (), "source_words": "eins zwei\ndrei"},
    ),
]
by_change = pytest.mark.parametrize(("moves", "meant"), CHANGES, ids=lambda value: ", ".join(map(str, value)))


@pytest.fixture(autouse=True)
def nothing_kept():
    """Traces that another test left behind would hide what this one computes."""
    BUDGET.clear()
    clear_session_resource_cache("test session id")  # every AppTest's


@pytest.fixture
def computed(monkeypatch):
    """The Settings for which a Trace was computed, in order."""
    found = []

    def counting(settings, **options):
        found.append(settings)
        return synthetic(settings, **options)

    monkeypatch.setattr(mha_viz.sources.synthetic, "synthetic", counting)
    return found


def shows(at, settings, view=None):
    """Whether the picture holds exactly the weights of these Settings."""
    trace = synthetic(settings)
    choice = choose(trace, view or View())
    weights, (head, average, strip) = trace.weights[choice.item], maps(at)
    assert list(strip) == list(choice.order)
    np.testing.assert_array_equal(head, weights[choice.head])
    np.testing.assert_array_equal(average, trace.mean_weights[choice.item])
    for number, tile in strip.items():
        np.testing.assert_array_equal(tile, weights[number])
    assert not at.exception and not at.error
    return True


def test_opens_with_the_numbers_of_the_tutorial():
    torch.manual_seed(7)
    attention = nn.MultiheadAttention(embed_dim=128, num_heads=8, dropout=0.1, batch_first=True)
    tokens = torch.randn(3, 20, 128)
    padding_mask = torch.zeros(3, 20, dtype=torch.bool)
    padding_mask[0, -3:] = True
    attention.eval()
    _, weights = attention(tokens, tokens, tokens, key_padding_mask=padding_mask, average_attn_weights=False)
    weights = weights.detach().numpy()  # [N, H, L, S]

    at = opened()

    _, average, strip = maps(at)
    assert sorted(strip) == list(range(8))
    for head, tile in strip.items():
        np.testing.assert_array_equal(tile, weights[0, head])
    np.testing.assert_allclose(average, weights[0].mean(axis=0), rtol=2e-6)
    assert at.query_params == {}
    assert not at.exception


@by_change
@pytest.mark.slow
def test_a_control_does_what_it_says(moves, meant):
    at = unfolded(opened())
    for name, value in moves.items():
        set_to(at, name, value)
    assert shows(at, Settings(**meant))
    assert at.query_params == to_address(**meant)


@by_change
def test_an_address_sets_what_it_spells(moves, meant):
    looking = Looking()
    assert looking.read(to_address(**meant)) == []
    assert looking.form.settings() == looking.form.good == Settings(**meant)
    assert looking.address() == to_address(**meant)
    assert looking.form.raw.items() >= {name: value for name, value in moves.items() if name in looking.form.raw}.items()


@pytest.mark.parametrize("number", [10, -1], ids=["a mask of one's own", "words and a source"])
def test_an_address_opens_what_it_spells(number):
    moves, meant = CHANGES[number]
    at = opened(**to_address(**meant))
    assert shows(at, Settings(**meant))
    assert at.query_params == to_address(**meant)
    assert held(unfolded(at)).items() >= moves.items()


def test_what_is_folded_away_stays_as_it_was_set():
    at = unfolded(opened())
    for name, value in (("kdim", 24), ("add_zero_attn", True)):
        set_to(at, name, value)
    unfolded(at, False)
    assert "kdim" not in held(at)
    set_to(at, "seed", 11)
    meant = {"seed": 11, "kdim": 24, "add_zero_attn": True}
    assert shows(at, Settings(**meant)) and at.query_params == to_address(**meant)
    assert held(unfolded(at)).items() >= meant.items()


def test_every_field_has_a_control():
    every = unfolded(set_to(opened(source_len="5", window="3"), "masked", True))
    drawn = held(every) | held(opened(words="a b", source_words="c d"))
    assert drawn.keys() >= set(Settings.__dataclass_fields__) - {"case"}, "which the choice of a source sets"


def test_every_control_has_help_and_a_name():
    for address in ({"source_len": "5", "window": "3"}, {"words": "a b", "source_words": "c d"}):
        for widget in widgets(unfolded(opened(**address))):
            assert widget.label, widget.key
            assert widget.proto.help or widget.key.startswith("view_"), widget.key


@pytest.mark.slow
@pytest.mark.parametrize(
    ("switch", "off", "inside"),
    [
        ("own_words", False, {"words": "a b c\nd", "cross": True}),
        ("own_words", True, {"seq_len": 7, "batch_size": 2}),
        ("cross", False, {"source_len": 5, "source_padding": "1"}),
        ("windowed", False, {"window": 2}),
    ],
    ids=["words", "random tokens", "source", "window"],
)
def test_what_a_switch_folds_away_comes_back_with_it(switch, off, inside):
    at = set_to(opened(), switch, not off)
    for name, value in inside.items():
        set_to(at, name, value)
    before = figure(at)
    set_to(at, switch, off)
    assert figure(at) != before
    set_to(at, "seed", 7)
    set_to(at, switch, not off)
    assert held(at).items() >= inside.items()
    assert figure(at) == before


def test_layout_changes_shapes_and_no_number():
    at = opened(batch_size="4", seq_len="9")
    before, shapes = sent(at), read(at, "shapes")
    set_to(at, "batch_first", False)
    assert sent(at) == before
    assert "[N 4, L 9, E 128]" in shapes and "[L 9, N 4, E 128]" not in shapes
    assert read(at, "shapes") == shapes.replace("[N 4, L 9, E 128]", "[L 9, N 4, E 128]")
    assert "[N 4, H 8, L 9, S 9]" in shapes  # weights stay as they are


def test_shapes_name_every_axis_of_another_source():
    shapes = read(opened(source_len="6", kdim="24"), "shapes")
    assert shapes == (
        "query [N 3, L 20, E 128] → key [N 3, S 6, E 24] → q [N 3, H 8, L 20, D 16] k, v [N 3, H 8, S 6, D 16] "
        "→ weights [N 3, H 8, L 20, S 6] → output [N 3, L 20, E 128]"
    )


def test_mode_says_which_weights_are_shown():
    at = opened()
    assert "eval" in read(at, "mode") and "untrained" in read(at, "mode") and "seed 7" in read(at, "mode")
    set_to(at, "training", True)
    assert "after dropout 0.1" in read(at, "mode")
    assert (maps(at)[0] == 0).sum() > 60 + 20  # beside the masked ones
    set_to(unfolded(at), "dropout", 0.0)
    assert "dropout 0" in read(at, "mode") and "after" not in read(at, "mode")


def test_head_dim_is_always_on_show():
    at = opened(embed_dim="96", num_heads="6")
    assert "head_dim = 96 / 6 = 16" in read(at, "head-dim")
    set_to(at, "num_heads", 7)
    assert "96 = 7 × 13 + 5" in read(at, "head-dim")


def test_words_name_the_rows_and_equal_words_are_equal():
    at = opened(words="a b a <s>", num_heads="2", padding="")
    head, _, _ = maps(at)
    meta = figure(at)["layout"]["meta"]
    assert meta["queries"] == meta["keys"] == ["a", "b", "a", "<s>"]
    np.testing.assert_array_equal(head[0], head[2])
    np.testing.assert_array_equal(head[:, 0], head[:, 2])
    set_to(at, "positions", True)
    assert (maps(at)[0][0] != maps(at)[0][2]).any()


def test_padding_of_words_shows_pad_tokens_on_its_side():
    at = opened(words="a b c\nd", padding="0, 1", padding_side="left", item="1")
    assert figure(at)["layout"]["meta"]["keys"] == ["<pad>", "<pad>", "d"]
    assert (maps(at)[0][:, :2] == 0).all()


# How it is shown


def test_batch_item_and_order_are_views():
    at = set_to(opened(seed="3"), "view_item", 2)
    assert shows(at, Settings(seed=3), View(item=2))
    set_to(at, "view_order", "index")
    assert shows(at, Settings(seed=3), View(item=2, order="index"))
    assert at.query_params == {"seed": "3", "item": "2", "order": "index"}


def test_an_address_chooses_head_and_cell():
    at = opened(head="2", cell="6,9", order="index", heads="1,2,5")
    _, _, strip = maps(at)
    trace = synthetic(Settings())
    assert list(strip) == [1, 2, 5]
    np.testing.assert_array_equal(maps(at)[0], trace.weights[0, 2])
    assert figure(at)["layout"]["meta"]["chosen"] == {"head": 2, "query": 6, "key": 9}
    weight, average = trace.weights[0, 2, 6, 9], trace.mean_weights[0, 6, 9]
    assert read(at, "chosen") == f"head 2 · query 6 → key 9 {weight:.6f} · average {average:.6f}"


@pytest.mark.parametrize("view", [{"item": "2"}, {"head": "7"}, {"cell": "19,19"}, {"heads": "6,7"}])
def test_a_view_beyond_the_trace_gives_way(view):
    at = opened(**view, batch_size="2", num_heads="4", seq_len="8")
    assert shows(at, Settings(batch_size=2, num_heads=4, seq_len=8))


# What is computed


def test_what_only_changes_the_picture_computes_nothing(computed):
    at = opened()
    assert computed == [Settings()]
    for name, value in (("view_item", 1), ("view_order", "index"), ("batch_first", False), ("batch_first", True)):
        set_to(at, name, value)
    assert computed == [Settings()]


def test_a_setting_is_computed_once(computed):
    at = opened()
    for seed in (8, 7, 8):
        set_to(at, "seed", seed)
    assert computed == [Settings(), Settings(seed=8)]
    clear_session_resource_cache("test session id")
    opened(seed="8")  # another person
    assert computed == [Settings(), Settings(seed=8)]


def test_what_others_compute_pushes_nothing_out(computed):
    at = opened()
    for seed in range(20, 30):
        BUDGET.kept(Settings(seed=seed), lambda: None, 2**20, None, "another")
    count = len(computed)
    set_to(at, "view_item", 1)
    assert len(computed) == count


def test_what_is_folded_away_computes_nothing(computed):
    at = set_to(opened(), "own_words", True)
    count = len(computed)
    set_to(at, "own_words", False)
    set_to(at, "training", True)
    set_to(at, "training", False)
    assert computed[count:] == [Settings(training=True)]


# Wrong values; each of them by itself: test_bad_input.py


def test_the_last_good_picture_stays_and_is_marked():
    at = opened(seed="11", causal="1")
    before = sent(at)
    set_to(at, "num_heads", 7)
    assert "128 = 7 × 18 + 2" in unescaped(at.error[0].value)
    assert "Not current" in read(at, "not-current") and "num_heads 8" in read(at, "not-current")
    assert "padding" not in read(at, "not-current"), "what does not differ is not named"
    assert sent(at) == before
    assert held(at)["seed"] == 11 and held(at)["causal"] and held(at)["num_heads"] == 7
    assert at.query_params == {"seed": "11", "causal": "1", "num_heads": "7"}  # so that a class can be sent to it


def test_nearest_right_values_are_one_click_each():
    labels = [unescaped(button.label) for button in opened(num_heads="7").button]
    labels = [label for label in labels if " = " in label]
    assert labels == ["num_heads = 4", "num_heads = 8", "embed_dim = 126", "embed_dim = 133"]
    for label in labels:
        at = press(opened(num_heads="7", seed="11"), label)
        name, value = label.split(" = ")
        assert shows(at, Settings(**{"num_heads": 7, "seed": 11, name: int(value)}))


def test_a_bad_value_of_an_address_falls_back_alone():
    at = opened(seed="x", embed_dim="64", foo="3")
    assert held(at)["seed"] == 7 and held(at)["embed_dim"] == 64
    note = unescaped(at.warning[0].value)
    assert "seed = x" in note and "foo = 3" in note and "embed_dim" not in note


# The address, which the browser sends along with every change


def test_a_change_that_overtakes_the_address_of_the_one_before_loses_nothing():
    at = set_to(opened(), "windowed", True)
    at.query_params.clear()  # the browser has not heard of the window yet
    set_to(at, "cross", True)
    assert shows(at, Settings(window=4, source_len=12))
    at.query_params.clear()
    set_to(at, "view_order", "index")
    assert shows(at, Settings(window=4, source_len=12), View(order="index"))
    assert at.query_params == {"window": "4", "source_len": "12", "order": "index"}


def test_back_twice_at_once_is_no_change_of_a_widget():
    at = set_to(set_to(opened(), "seed", 11), "seed", 12)
    at.query_params = {}
    set_to(at, "seed", 11)  # what the browser still holds: it has not drawn the first step back yet
    assert shows(at, Settings())


def test_back_returns_to_what_was_set_then():
    at = set_to(opened(), "seed", 11)
    set_to(at, "num_heads", 7)
    at.query_params = {"seed": "11"}
    assert shows(at.run(), Settings(seed=11))
    at.query_params = {}
    assert shows(at.run(), Settings())
    assert held(at)["seed"] == 7 and held(at)["num_heads"] == 8
