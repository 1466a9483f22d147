"""What stands around the picture: one number opened, the wrong layout, warnings, a mask of one's own, the tiny case, Save."""

import re

import numpy as np
import pytest

from mha_viz import Settings, synthetic
from mha_viz.app.parts.layout_demo import leak_table, leaks_in_words
from mha_viz.app.parts.messages import assigned
from tests.app.screen import held, opened, page_text, press, read, set_to, unescaped, whole, widgets

TINY = {"case": "tiny", "embed_dim": "4", "num_heads": "2", "batch_size": "1", "seq_len": "3", "padding": ""}


def test_one_number_opened_gives_the_weight_that_the_map_shows():
    at = opened(opened="1", head="4", cell="6,0")
    steps = page_text(at)
    assert "0.293571" in read(at, "chosen")
    assert "<b>softmax</b>" in steps and "<b>0.293571</b>" in steps
    assert "× 1/√16 = 0.250000" in steps


def test_a_number_that_fits_on_a_blackboard_is_written_out():
    assert "1 · 1 + 1 · 1 = <b>2.000000</b>" in page_text(opened(**TINY, opened="1", head="0", cell="0,0"))


def test_a_masked_number_names_the_rule_that_hides_it():
    assert "causal hides this key" in page_text(opened(opened="1", causal="1", cell="0,5"))


def test_a_row_without_a_key_has_no_number():
    steps = page_text(opened(opened="1", causal="1", padding_side="left", cell="0,0"))
    assert "the weight is undefined (NaN)" in steps


def test_warnings_name_their_cause_and_go_with_it():
    at = opened(causal="1", padding_side="left")
    assert "causal and key padding together leave no key" in page_text(at)
    assert not set_to(at, "padding_side", "right").get("warning")


def test_pytorchs_own_words_on_demand():
    at = opened(num_heads="7")
    assert not at.get("code")
    at = set_to(at, "view_verbatim", True)
    assert "AssertionError: embed_dim must be divisible by num_heads" in at.get("code")[0].value


def test_the_wrong_layout_is_tried_and_what_leaks_is_said():
    at = press(opened(batch_size="4", seq_len="4", padding="1"), "Wrong layout?")
    said = page_text(at)
    assert "the shapes are the same and give nothing away" in said
    assert "Batch items leak into each other**: 0 → 1, 2, 3" in said


def test_without_leaks_none_are_claimed():
    apart = np.diag([0.5, 0.25])
    assert leaks_in_words(apart) == "No batch item leaks into another here."
    assert leak_table(apart).splitlines()[2] == "| change item 0 | **0.5000** | 0 |"


def test_only_heads_that_divide_are_offered():
    at = set_to(opened(embed_dim="12", num_heads="4"), "view_divisors", True)
    offered = next(widget for widget in widgets(at) if widget.key == "divisor")
    assert offered.options == ["1", "2", "3", "4", "6", "12"] and offered.value == 4
    at = set_to(at, "divisor", 6)
    assert at.query_params["num_heads"] == "6"
    assert held(set_to(at, "view_divisors", False))["num_heads"] == 6


def test_what_was_wanted_comes_back_when_it_divides_again():
    at = set_to(opened(divisors="1"), "embed_dim", 130)
    assert held(at)["divisor"] == 5 and "8 does not divide 130: 5 is used" in [caption.value for caption in at.get("caption")]
    assert held(set_to(at, "embed_dim", 128))["divisor"] == 8


def test_the_tiny_case_has_its_own_heads_where_only_divisors_are_offered():
    at = set_to(opened(divisors="1"), "view_source", "tiny")
    assert held(at)["divisor"] == 2 and "H 2" in read(at, "shapes") and not at.get("error")


def test_words_and_random_tokens_have_paddings_of_their_own():
    at = set_to(opened(padding="2"), "own_words", True)
    assert held(at)["padding"] == ""
    at = set_to(at, "padding", "1")
    at = set_to(at, "own_words", False)
    assert held(at)["padding"] == "2"
    assert held(set_to(at, "own_words", True))["padding"] == "1"


@pytest.mark.parametrize(("switch", "name"), [("windowed", "window"), ("cross", "source_len")])
def test_what_is_switched_on_and_left_empty_is_wrong_and_what_stood_there_comes_first(switch, name):
    at = set_to(set_to(opened(), switch, True), name, None)
    assert f"{name} = empty" in at.get("error")[0].value.replace("\\", "")
    assert not set_to(at, switch, False).get("error")


def test_a_field_that_was_emptied_gets_back_what_stood_in_it():
    at = set_to(opened(seed="11"), "seed", None)
    labels = [unescaped(button.label) for button in at.get("button")]
    assert [label for label in labels if label.startswith("seed")] == ["seed = 11", "seed = 0"]
    assert held(press(at, "seed = 11"))["seed"] == 11


def test_limits_that_are_wrong_stay_to_be_mended():
    at = opened()
    at.session_state["popover_scale"] = True
    at = set_to(at.run(), "view_limits", "0.5, 0.1")
    assert held(at)["view_limits"] == "0.5, 0.1"
    at = set_to(at, "view_limits", "0.1, 0.5")
    assert at.query_params["limits"] == "0.1,0.5" and not at.get("error")


def test_not_current_names_what_differs():
    at = set_to(opened(seq_len="3", batch_size="1", padding="", attn_mask="011/001/000"), "seq_len", 2)
    assert "seq_len 3" in read(at, "not-current") and "num_heads" not in read(at, "not-current")


def test_what_is_pinned_must_be_settings():
    assert "as in seed=8&causal=1" in page_text(opened(pinned="garbage")).replace("\\", "")


def test_beside_a_the_chosen_cell_says_both_and_the_change():
    said = read(opened(pinned="seed=8", head="2", cell="3,4"), "chosen")
    a, b = synthetic(Settings(seed=8)).weights[0, 2, 3, 4], synthetic().weights[0, 2, 3, 4]
    assert f"{b:.6f}" in said and f"A {a:.6f} · B − A {b - a:+.6f}" in said


def test_the_tiny_case_comes_and_goes_without_loss():
    at = set_to(opened(embed_dim="64", seed="11", causal="1"), "view_source", "tiny")
    assert "q, k, v [N 1, H 2, L 3, D 2]" in read(at, "shapes")
    at = set_to(at, "view_source", "random")
    assert (held(at)["embed_dim"], held(at)["seed"], held(at)["causal"]) == (64, 11, True)


def test_the_tiny_case_cannot_be_stretched():
    at = set_to(opened(**TINY), "seq_len", 4)
    assert "worked by hand for seq_len = 3" in at.get("error")[0].value.replace("\\", "")
    assert "tokens [N 1, L 4, E 4]" in read(press(at, "case = random"), "shapes")


def test_a_mask_of_ones_own_begins_empty_and_hides_what_is_typed():
    at = set_to(opened(seq_len="3", batch_size="1", padding="", cell="0,2"), "masked", True)
    assert held(at)["attn_mask"] == "000\n000\n000"
    at = set_to(at, "attn_mask", "011\n001\n000")
    assert at.query_params["attn_mask"] == "011/001/000"
    assert "attn_mask hides this key" in page_text(set_to(at, "view_opened", True))


def test_a_mask_that_does_not_fit_is_mended_in_one_click():
    at = set_to(opened(seq_len="3", batch_size="1", padding="", attn_mask="011/001/000"), "seq_len", 2)
    assert "has 3 lines of 3 entries" in at.get("error")[0].value.replace("\\", "")
    assert held(press(at, "attn_mask = 01/00"))["attn_mask"] == "01\n00"


def test_reset_view_leaves_what_other_pages_and_switches_hold():
    at = press(opened(head="3", scale="log", item="1", opened="1", step="softmax", token="4"), "Reset view")
    assert at.query_params == {"item": "1", "opened": "1", "step": "softmax", "token": "4"}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("causal", False, "causal off"),
        ("bias", True, "bias on"),
        ("seed", 0, "seed = 0"),
        ("window", None, "window = none"),
        ("padding", (3, 0), "padding = 3,0"),
    ],
)
def test_what_is_set_is_said_as_its_control_shows_it(name, value, said):
    assert assigned(name, value) == said


def test_a_and_b_that_give_the_same_are_said_to():
    said = page_text(opened(pinned="causal=1")).replace("\\", "")
    assert "**A**: causal on" in said and "**B**: causal off" in said
    assert "**Output**: unchanged, bit for bit." in page_text(opened(pinned="batch_first=0"))


def test_the_pinned_settings_are_in_the_address():
    at = press(opened(seed="8"), "Pin as A")
    assert at.query_params["pinned"] == "seed=8"
    assert not at.exception
    at = press(set_to(at, "seed", 9), "Unpin A")
    assert "pinned" not in at.query_params and at.query_params["seed"] == "9"


def test_what_is_pinned_wrongly_is_named_and_left_out():
    at = opened(pinned="num_heads=7&seed=3")
    assert "128 = 7 × 18 + 2" in page_text(at).replace("\\", "")
    assert not at.exception


@pytest.mark.parametrize(("typed", "message"), [("0.5, 0.1", "the lower first"), ("a, b", "two numbers"), ("1", "two numbers")])
def test_limits_that_are_none_are_named_and_the_view_stays(typed, message):
    at = opened()
    at.session_state["popover_scale"] = True
    at = at.run()
    at = set_to(at, "view_limits", typed)
    assert message in page_text(at).replace("\\", "")
    assert "limits" not in at.query_params


def test_an_address_that_points_beyond_the_trace_says_so_until_something_changes():
    at = opened(item="9", head="8", cell="3,25", seed="11")
    said = page_text(at).replace("\\", "")
    assert "item = 9: points to 9, and there are 3, from 0 to 2" in said
    assert "head = 8: points to 8" in said and "points to 25, and there are 20" in said
    assert held(at)["seed"] == 11
    assert "points to" not in page_text(set_to(at, "seed", 12))


def test_the_largest_changes_are_listed_and_lead_to_their_cells():
    at = opened(pinned="seed=8")
    assert "**A**: seed \\= 8" in page_text(at) or "**A**: seed = 8" in page_text(at)
    first = next(button for button in at.get("button") if button.key == "change_0")
    head, query, key = map(int, re.findall(r"head (\d+) · (\d+) → (\d+)", first.label.replace("\\", ""))[0])
    a, b = synthetic(Settings(seed=8)).weights[0], synthetic().weights[0]
    real = np.abs(b - a)[:, :17]
    assert np.abs(b - a)[head, query, key] == real.max()
    at = whole(first.click().run())
    assert (at.query_params["head"], at.query_params["cell"]) == (str(head), f"{query},{key}")


def test_equal_settings_have_no_changes():
    assert "No weight of a real query changed" in page_text(opened(pinned=""))
