"""Step by step, run without a browser: what its controls, its address, its words and its pictures say of each other."""

import json

import numpy as np
import pytest
from streamlit.runtime.caching import clear_session_resource_cache
from streamlit.testing.v1 import AppTest

from mha_viz import Settings, View, synthetic
from mha_viz.analysis import choose
from mha_viz.analysis.walkthrough import walk
from mha_viz.export.code import program, shown_expression, step_lines
from mha_viz.settings import STEPS, Walk
from mha_viz.settings.settings import TINY
from tests.app.screen import APP, decoded, errors, held, opened, page_text, press, set_to, to_page

CROSS = {"kdim": "5", "vdim": "7", "source_len": "6", "add_bias_kv": "1"}
EVERY = [name for name in STEPS if name != "dropout"]


@pytest.fixture(autouse=True)
def own_session():
    """What another test's page kept is not this one's."""
    clear_session_resource_cache("test session id")


def steps(**address):
    """The page as it opens at this address."""
    return to_page(AppTest.from_file(str(APP), default_timeout=60), "steps", **address)


def pictures(at):
    """The tensors that are drawn, [rows, columns] each."""
    return [decoded(trace["z"]) for trace in figure(at)["data"] if trace["type"] == "heatmap"]


def figure(at):
    return json.loads(next(iter(at.get("plotly_chart"))).proto.spec)


def words(at):
    """All that the picture says."""
    return " ".join(note["text"] for note in figure(at)["layout"]["annotations"])


def shows(at, settings, view=None, **walk_of):
    """Whether the pictures are those of the step that this Walk names, of what it follows in this View."""
    trace = synthetic(settings)
    choice, asked = choose(trace, view or View()), Walk(**walk_of)
    walked = walk(trace, choice.item, None if asked.together else choice.head, choice.query, choice.key, choice.head)
    return draws(at, walked.tensors[asked.step])


def draws(at, tensors):
    """Whether the pictures are these Tensors, hidden cells and all."""
    for one, drawn in zip(tensors, pictures(at), strict=True):
        hidden = False if one.hidden is None else one.hidden
        wanted = np.where(np.isfinite(one.values) & ~np.bool_(hidden), one.values, np.nan)
        if len(wanted) == len(drawn):  # all rows are drawn
            np.testing.assert_array_equal(drawn, np.float32(wanted))
    assert not at.exception and not at.error
    return True


def address(at):
    return {name: value if isinstance(value, str) else value[0] for name, value in at.query_params.items()}


def test_it_opens_at_the_first_step_of_the_layer_of_explore():
    at = steps()
    assert shows(at, Settings(), View())
    assert f"1 of {len(EVERY)} · the tokens" in page_text(at)
    assert address(at) == {}


def test_forward_and_back_through_every_step():
    at = steps()
    for number, name in enumerate(EVERY[1:], 2):
        at = press(at, "Forward")
        assert f"{number} of {len(EVERY)} · {STEPS[name][1]}" in page_text(at)
        assert address(at) == {"step": name}
        if name != "validate":
            assert shows(at, Settings(), step=name)
    assert next(button for button in at.get("button") if button.label == "Forward").disabled
    at = press(at, "Back")
    assert address(at) == {"step": "output"}


@pytest.mark.slow
@pytest.mark.parametrize("language", ["numpy", "torch"])
def test_every_step_as_a_program(language):
    """The lines of the step, what prints its numbers, and the whole program, which tests/export runs."""
    settings = Settings(causal=True, training=True)
    for name in STEPS:
        at = steps(step=name, language=language, head="3", cell="6,2", causal="1", training="1")
        lines = "\n".join(step_lines(settings, language, name))
        short, whole = (code.value for code in at.code)
        assert short.startswith(lines)
        assert whole == program(settings, language, name, item=0, head=3, query=6).rstrip()
        if name != "validate":
            assert short.endswith(f"print({shown_expression(settings, language, name)})")


def test_mathematics_has_formula_numbers_and_symbols():
    at = steps(step="dot", case="tiny", **{n: str(v) for n, v in TINY.items() if v != ()}, padding="", cell="0,1", head="0")
    general, numbers = (latex.value for latex in at.get("latex"))
    assert r"\sum_{d=0}^{D-1} q_{i,d}" in general
    assert r"q_{0} \cdot k_{1} = 1 \cdot 3 + 1 \cdot 0 = 3" in numbers
    said = page_text(at)
    assert "| $q_i$ | query: what token i asks | [D 2] |" in said and "with the numbers of query 0, key 1, head 0:" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "together"),
    [({}, "1"), ({"padding": "20"}, "0"), ({"bias": "0", "num_heads": "1"}, "1"), (CROSS, "0")],
    ids=["padded", "undefined", "bare", "cross"],
)
def test_every_step_can_be_told_of_any_layer(given, together):
    at = steps(together=together, **given)
    for _ in EVERY[1:]:
        at = (
            next(button for button in at.get("button") if button.label == "Forward").click().run()
        )  # which draws the step alone
        assert not at.exception and at.get("latex")


def test_what_is_followed_is_chosen_here():
    at = steps(step="softmax")
    at = set_to(at, "follow_head", 5)
    first = choose(synthetic(Settings()), View())
    assert shows(at, Settings(), View(head=5, cell=(first.query, first.key)), step="softmax")  # the query stays
    at = set_to(at, "follow_query", 3)
    at = set_to(at, "follow_key", 4)
    at = set_to(at, "view_item", 1)
    assert shows(at, Settings(), View(head=5, cell=(3, 4), item=1), step="softmax")
    assert address(at) == {"step": "softmax", "head": "5", "cell": "3,4", "item": "1"}
    at = set_to(at, "follow_head", -1)
    assert shows(at, Settings(), View(head=5, cell=(3, 4), item=1), step="softmax", together=True)
    assert address(at)["together"] == "1"
    again = steps(**address(at))
    assert held(again)["follow_head"] == -1 and held(again)["follow_query"] == 3


def test_the_sidebar_of_explore_drives_it():
    at = steps(step="mask")
    at = set_to(at, "causal", True)
    assert shows(at, Settings(causal=True), step="mask")
    at = set_to(at, "training", True)
    at = press(press(at, "Forward"), "Forward")
    assert address(at) == {"step": "dropout", "causal": "1", "training": "1"}
    assert shows(at, Settings(causal=True, training=True), step="dropout")


def test_cross_attention_and_extra_keys_are_told():
    said = page_text(steps(step="keys", **CROSS))
    assert "bias_k, are made of no token" in said and "| $y_j$ | token j of the source" in said
    said = page_text(steps(step="keys", bias="0"))
    assert "made of no token" not in said and "$y_j$" not in said and "bias of a projection" not in said


def test_a_dropout_that_does_not_fall_is_no_step():
    assert f"8 of {len(EVERY)} · softmax" in page_text(steps(step="dropout"))


def test_explore_and_step_by_step_are_of_one_layer():
    """From page to page everything that is set stays, in both directions, and so do their links."""
    at = opened(seed="8", head="2", cell="5,6")
    at = set_to(at, "num_heads", 4)
    at.switch_page("mha_viz/app/pages/steps.py")
    at = at.run()
    assert shows(at, Settings(seed=8, num_heads=4), View(head=2, cell=(5, 6)))
    assert address(at) == {"seed": "8", "num_heads": "4", "head": "2", "cell": "5,6"}
    at = press(at, "Forward")
    at = set_to(at, "seq_len", 9)
    at.switch_page("mha_viz/app/pages/explore.py")
    at = at.run()
    assert not at.exception and held(at)["seq_len"] == 9 and held(at)["num_heads"] == 4
    assert address(at) == {"seed": "8", "num_heads": "4", "head": "2", "cell": "5,6", "seq_len": "9", "step": "configure"}


def test_a_link_from_before_a_change_brings_the_change_back():
    at = opened()
    at = set_to(at, "seed", 9)
    at.session_state.behind = [{}]  # as while fragments alone are drawn
    at = to_page(at, "steps")  # the address of a link that was drawn before
    assert held(at)["seed"] == 9 and address(at)["seed"] == "9"


def test_models_in_between_changes_nothing():
    at = steps(step="softmax", seed="8")
    at = to_page(at, "models")
    at = to_page(at, "steps", **{"step": "softmax", "seed": "8"})
    assert shows(at, Settings(seed=8), step="softmax")


def test_what_is_wrong_is_said_and_the_last_good_steps_stay():
    at = set_to(steps(step="query"), "embed_dim", 130)
    assert any("130 = 8 × 16 + 2" in said for said in errors(at))
    assert "Not current" in page_text(at) and not at.exception
    at = press(at, "num_heads = 10")
    assert not errors(at) and held(at)["num_heads"] == 10


def test_an_address_that_cannot_be_shown_falls_back_and_says_so():
    at = steps(step="nonsense", language="latin", cell="90,3")
    said = page_text(at)
    assert "step = nonsense" in said and "language = latin" in said and "points to 90" in said
    assert not at.exception


def test_what_has_to_hold_is_told_with_figures():
    said = page_text(steps(step="validate"))
    table = said[said.index("| verdict |") : said.index("| symbol |")].splitlines()
    assert {line.count("|") for line in table if line.startswith("|")} == {6}, "five columns, whatever is said"
    assert "| holds | row sums |" in said and "| holds | padding and masks |" in said and "| holds | output is a sum |" in said
    assert "not checked" in page_text(steps(step="validate", padding=""))
    assert "**fails** | keys left" in page_text(steps(step="validate", padding="20"))


def test_shapes_are_told_in_the_present_layout():
    for layout, shape in (("1", "[N 3, L 20, E 128]"), ("0", "[L 20, N 3, E 128]")):
        at = steps(batch_first=layout)
        assert shape in words(at)


def test_what_if_is_left_out_and_says_so():
    at = steps(what_if="0:1=zero", step="concat")
    assert shows(at, Settings(), step="concat") and "What if is left out" in page_text(at)


def test_long_sequences_are_followed_by_number():
    at = steps(seq_len="400", padding="", batch_size="1", num_heads="2", embed_dim="8", cell="350,20", step="softmax")
    assert held(at)["follow_query"] == 350 and not at.exception
    assert "keys 0–255 of 400 drawn" in words(at)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "cell"), [("400", "399,7"), ("-1", "0,7"), ("12.8", "13,7"), ("1000", "399,7"), ("x", "0,7")])
def test_a_number_of_no_token_is_said_and_stays_to_be_mended(text, cell):
    at = steps(seq_len=400, padding="", cell="350,7")
    set_to(at, "follow_query", text)
    assert "must be a whole number from 0 to 399" in errors(at)[0] and not at.exception
    assert next(one for one in at.text_input if one.key == "follow_query").value == text
    press(at, f"cell = {cell}")
    assert address(at)["cell"] == cell and not errors(at) and held(at)["follow_query"] == int(cell.split(",")[0])
