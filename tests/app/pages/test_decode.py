"""The Decode page, run without a browser: what it says and draws is what decoding gives, for the settings of Explore and its own."""

import re
import time

import numpy as np
import pytest
from streamlit.runtime.caching import clear_session_resource_cache
from streamlit.testing.v1 import AppTest

from mha_viz import Settings, Wrong, attend, synthetic
from mha_viz.analysis.decoding import difference, hint_difference, lengths, works
from mha_viz.app import task
from mha_viz.app.number_field import typed
from mha_viz.app.state import Looking
from mha_viz.core.decimals import prose
from mha_viz.core.decode import cache_bytes, decode, share_kv
from tests.app.screen import APP, decoded, errors, figure, held, page_text, press, read, sent, set_to, to_page


@pytest.fixture(autouse=True)
def own_session():
    """What another test's page kept is not this one's."""
    clear_session_resource_cache("test session id")


def page(**address):
    """The Decode page as it opens at this address."""
    return to_page(AppTest.from_file(str(APP), default_timeout=60), "decode", **address)


def panels(at):
    """The cells of the picture's panels by name, [heads, columns] each, NaN where nothing is."""
    return {trace["name"]: decoded(trace["z"]) for trace in figure(at, "decoding")["data"] if trace["type"] == "heatmap"}


def graphs(at):
    """The text alternatives of the graphs."""
    return [chart.proto.alt for chart in at.get("plotly_chart") if chart.proto.alt]


def shows(at, token, settings=None, groups=8, item=0, **how):
    """Whether the picture and the words are those of the step that reads ``token``."""
    trace = synthetic(settings or Settings(causal=True))
    layer = share_kv(trace.layer, groups)
    found = decode(layer, trace.batch, num_kv_heads=groups, **how)
    number = max(token - found.steps[0].stop + 1, 0)
    step, drawn = found.steps[number], panels(at)
    q, k, v = lengths(found, item)
    for name, values, first in (("q", q, step.start), ("k", k, 0), ("v", v, 0)):
        np.testing.assert_allclose(drawn[name][:, first : step.stop], values[:, first : step.stop], rtol=1e-6)
        assert np.isnan(drawn[name][:, :first]).all() and np.isnan(drawn[name][:, step.stop :]).all()
    row = step.weights[item, :, -1].astype(np.float32)  # [H, stop], as pictures hold it
    np.testing.assert_array_equal(drawn["weights"][:, : step.stop][row != 0], row[row != 0])
    assert np.isnan(drawn["weights"][:, : step.stop][row == 0]).all(), "masked cells hold no weight"
    assert np.isnan(drawn["weights"][:, step.stop :]).all()
    says = read(at, "chosen")
    assert f"Step {number + 1} of {len(found.steps)}" in says
    by_formula = cache_bytes(step.stop, groups, layer.head_dim, dtype=how.get("dtype", "float32"), batch_size=trace.batch.N)
    assert says.count(f"{by_formula:,}") == 2 and step.held == by_formula
    assert f"held {step.start} token{'s' * (step.start != 1)} and holds {step.stop}:" in says
    assert not at.exception and not errors(at)
    return found


def test_opens_in_the_middle_of_the_tutorials_tokens():
    at = page()
    found = shows(at, 10)
    full = attend(found.layer, found.batch)
    own = difference(found, full)
    assert own.agrees and f"at most {prose(own.worst, '.1e')}, and up to 1e−06 is rounding: they agree" in read(at, "hides")
    off = hint_difference(found)[10]
    assert f"off by {off:.1%} of the largest output" in re.sub("<[^>]*>", "", page_text(at))
    cached, again = works(found)
    text = re.sub("<[^>]*>", "", page_text(at))
    assert f"{cached[10]:,} multiply-adds in this step, {again[10]:,} where" in text
    assert f"{again.sum() / cached.sum():.1f} times as many" in text
    assert "Causal is set here" in text
    assert at.query_params == {}


def test_forward_and_back():
    at = press(page(), "Next token")
    shows(at, 11)
    assert at.query_params == {"token": "11"}
    at = press(press(at, "Back"), "Back")
    shows(at, 9)
    assert at.query_params == {"token": "9"}


def test_the_ends_have_no_further_step():
    def off(at):
        return {button.label: button.disabled for button in at.get("button") if button.label in ("Back", "Next token")}

    assert off(page(token="0")) == {"Back": True, "Next token": False}
    assert off(page(token="19")) == {"Back": False, "Next token": True}
    assert off(page(prompt="20")) == {"Back": True, "Next token": True}


def test_a_prompt_is_one_step():
    at = page(prompt="6", token="2")
    found = shows(at, 5, prompt=6)
    assert len(found.steps) == 15
    assert "the prompt, tokens 0 to 5, is read in one call" in read(at, "chosen")
    shows(press(at, "Next token"), 6, prompt=6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moves", "how"),
    [
        ({"view_kv_heads": 2}, {"groups": 2}),
        ({"view_cache_dtype": "float16"}, {"dtype": "float16"}),
        ({"view_prompt": 4}, {"prompt": 4}),
        ({"view_item": 2}, {"item": 2}),
        ({"window": 3, "windowed": True}, {"settings": Settings(window=3, causal=True)}),
    ],
    ids=str,
)
def test_a_control_does_what_it_says(moves, how):
    at = page()
    for name, value in sorted(moves.items(), reverse=True):
        set_to(at, name, value)
    shows(at, 10, **how)
    again = page(**at.query_params)
    shows(again, 10, **how)
    assert held(again).items() >= moves.items()


def test_words_are_decoded_and_named():
    at = page(words="the cat sat on the mat", padding="", token="2")
    shows(at, 2, Settings(words="the cat sat on the mat", padding=(), causal=True))
    assert "token 2 “sat” is new" in read(at, "chosen")
    assert figure(at, "decoding")["layout"]["meta"]["keys"] == ["the", "cat", "sat", "on", "the", "mat"]


def test_the_extra_columns_are_always_there():
    at = page(add_bias_kv="1", add_zero_attn="1", token="3")
    drawn = panels(at)["weights"]
    assert drawn.shape == (8, 22) and np.isfinite(drawn[:, [0, 1, 2, 3, 20, 21]]).all() and np.isnan(drawn[:, 4:20]).all()
    np.testing.assert_allclose(np.nansum(drawn, axis=1), 1, atol=1e-6)


def test_padded_prompts():
    at = page(padding="4", padding_side="left", token="8")
    shows(at, 8, Settings(padding=(4,), padding_side="left", causal=True))
    text = page_text(at)
    assert "4 are padding of 9 tokens in this item's cache: kept, counted, and masked at every step." in text
    assert "must call token 8 this item's token 4" in text
    assert "key 0, which is padding" in re.sub("<[^>]*>", "", text)
    at = page(padding="4", padding_side="left", token="2")
    text = page_text(at)
    assert "no key left: undefined, in both passes" in text and "undefined in both" in text
    assert np.isnan(panels(at)["weights"]).all()
    assert "undefined: no key left" in sent(at, "decoding").decode()
    assert "Padding" not in page_text(page(item="1"))


def test_dropout_on_and_off():
    text = re.sub("<[^>]*>", "", page_text(page(training="1", dropout="0.3")))
    apart, alike = re.search(
        r"differ by up to (\d+)% of the largest output; with the full pass's draws by (\S+)\. ", text
    ).groups()
    assert int(apart) > 5 and float(alike.replace("−", "-")) < 1e-6
    text = re.sub("<[^>]*>", "", page_text(page(training="1", dropout="0.0")))
    assert "they agree" in text and "Dropout" not in text


def test_how_a_cache_grows():
    at = page(kv_heads="4", cache_layers="2", cache_length="1000", cache_dtype="float16", batch_size="1", padding="")
    total = cache_bytes(1000, 4, 16, dtype="float16", layers=2)
    assert f"2 · layers 2 · N 1 · G 4 · S 1,000 · D 16 · 2 bytes = {total:,}" in re.sub("<[^>]*>", "", page_text(at))
    alt = next(alt for alt in graphs(at) if "KV heads" in alt)
    for heads in (8, 4, 2, 1):
        end = cache_bytes(1000, heads, 16, dtype="float16", layers=2) / 1024
        assert f"{heads} KV head{'s' * (heads > 1)}: from 0.000 KiB to {end:,.3f} KiB" in alt
    set_to(at, "view_cache_layers", 4)
    assert f"= {2 * total:,}" in re.sub("<[^>]*>", "", page_text(at))
    assert at.query_params["cache_layers"] == "4"


@pytest.mark.slow
def test_both_ways_are_timed_when_somebody_asks(monkeypatch):
    monkeypatch.setattr(task, "SLICE", 1000)  # nothing ticks here
    at = page(embed_dim="16", num_heads="2")
    assert not [alt for alt in graphs(at) if alt.startswith("Over tokens 16")]
    at = press(at, "Time both")
    alt = next(alt for alt in graphs(at) if alt.startswith("Over tokens 16"))
    assert re.search(r"with the cache: from 0\.\d{4} s to \d+\.\d{4} s; without: from", alt)
    at = set_to(at, "view_kv_heads", 1)
    assert not [alt for alt in graphs(at) if alt.startswith("Over tokens 16")], "that was another cache"


def test_timing_shows_how_far_it_is_and_what_was_measured_when_it_was_stopped(monkeypatch):
    monkeypatch.setattr(task, "SLICE", 0)
    at = press(page(embed_dim="16", num_heads="2"), "Time both")
    assert any(button.label == "Stop" for button in at.button)
    measured = len(at.session_state["task_timing"].results)
    at = press(at, "Stop")
    assert len(at.session_state["task_timing"].results) == measured >= 1
    assert next(alt for alt in graphs(at) if alt.startswith("Over tokens 16"))
    assert any(button.label == "Time both again" for button in at.button)
    assert f"Stopped at {at.session_state['task_timing'].results[-1].length} tokens." in page_text(at)
    assert task._taken["by"] is None


@pytest.mark.slow
def test_timing_begins_once_nobody_else_measures(monkeypatch):
    monkeypatch.setattr(task, "SLICE", 1000)
    monkeypatch.setattr(task, "_taken", {"by": "another session", "until": time.monotonic() + 600})
    at = press(page(embed_dim="16", num_heads="2"), "Time both")
    assert "Somebody else is measuring" in at.info[0].value and at.session_state["task_timing"].results == []
    monkeypatch.setitem(task._taken, "by", None)
    at = at.run()
    assert [alt for alt in graphs(at) if alt.startswith("Over tokens 16")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "named", "offer", "right"),
    [
        ({"source_len": "5"}, "source_len = 5", "source_len = none", {}),
        ({"vdim": "64"}, "vdim = 64", "vdim = none", {}),
        ({"seq_len": "513"}, "seq_len = 513", "seq_len = 512", {"seq_len": "512"}),
        ({"num_heads": "3"}, "num_heads = 3", "num_heads = 2", {"num_heads": "2"}),
        ({"prompt": "21"}, "prompt = 21", "prompt = 20", {"prompt": "20"}),
        ({"kv_heads": "3"}, "kv_heads = 3", "kv_heads = 2", {"kv_heads": "2"}),
    ],
    ids=str,
)
def test_what_cannot_be_decoded_says_why_and_what_would_be_right(address, named, offer, right):
    at = page(**address)
    assert any(named in error for error in errors(at)) and not at.exception
    assert panels(at), "the last good picture stays"
    at = press(at, offer)
    assert not errors(at) and at.query_params == right


def test_a_bad_value_of_an_address_falls_back_alone():
    at = page(token="99", cache_dtype="int3", seq_len="9", prompt="0")
    text = page_text(at)
    for said in ("token = 99", "cache_dtype = int3", "prompt = 0"):
        assert said in text
    shows(at, 4, Settings(seq_len=9, causal=True))


def test_its_place_is_taken_along_to_other_pages():
    at = press(page(), "Next token")
    links = {element.proto.label: element.proto.query_string for element in at.get("page_link")}
    assert links["Explore"] == links["Decode"] == "token=11"
    shows(to_page(to_page(at, "explore", token="11"), "decode", token="11"), 11)


def test_every_control_of_the_page_has_a_name_and_says_what_it_changes():
    at = page()
    own = {widget.key: widget for widget in (*at.get("text_input"), *at.get("selectbox"))}
    for key in ("item", "prompt", "kv_heads", "cache_dtype", "cache_layers", "cache_length"):
        assert own[f"view_{key}"].label and own[f"view_{key}"].proto.help


NUMBERS = ("prompt", "cache_layers", "cache_length")


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize(("text", "right"), [("12.8", 13), ("-1", 1), ("", 1), ("1,5", 2), ("0x10", 16), ("many", 1)])
def test_a_number_that_breaks_its_rule_changes_nothing_and_the_nearest_is_offered(field, text, right):
    with pytest.raises(Wrong, match="must be a whole number") as caught:
        Looking().change(**{field: typed(text)})
    assert {field: right} in caught.value.nearest


@pytest.mark.parametrize(("field", "text", "right"), [*zip(NUMBERS, ("12.8", "", "many"), (13, 1, 1), strict=True)])
def test_a_number_that_breaks_its_rule_is_said_and_stays_to_be_mended(field, text, right):
    at = page()
    before = dict(at.query_params)
    at = set_to(at, f"view_{field}", text)
    assert any(field in error.value.replace("\\", "") for error in at.error), [error.value for error in at.error]
    assert next(one for one in at.text_input if one.key == f"view_{field}").value == text and not at.exception
    assert at.query_params == before
    at = press(at, f"{field} = {right}")
    assert held(at)[f"view_{field}"] == right and not at.error and not at.exception
