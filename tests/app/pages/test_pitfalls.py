"""The Pitfalls page, run without a browser: what it offers, what a person changes, what its address says."""

import pytest
from streamlit.testing.v1 import AppTest

from mha_viz import Settings, synthetic
from mha_viz.analysis.pitfalls import PITFALLS, SYMPTOMS, Bench, pasted
from mha_viz.analysis.pitfalls.spelling import read_pitfall, spelled
from mha_viz.core.layer import Layer
from mha_viz.core.rules import Wrong
from tests.app.hyphens import hyphened
from tests.app.screen import APP, errors, held, opened, page_text, press, read, set_to, to_page, unescaped, unfolded, widgets

TINY = {"embed_dim": "4", "num_heads": "2", "batch_size": "1", "seq_len": "3", "padding": ""}


def pitfalls(**address):
    """The Pitfalls page as it opens at this address."""
    return to_page(AppTest.from_file(str(APP), default_timeout=60), "pitfalls", **address)


def shows(at, name, settings=None, **values):
    """Whether the page shows this experiment, whole: sentence, maps, numbers, code, check and its verdict."""
    experiment = PITFALLS[name].run(Bench.of(synthetic(settings or Settings())), **values)
    text, code = page_text(at), [block.value for block in at.code]
    assert read(at, "chosen") == f"Here. {experiment.sentence}".replace("'", "&#x27;").replace('"', "&quot;")
    assert code == [experiment.wrong.source.strip(), experiment.right.source.strip(), pasted(experiment.check).strip()]
    assert len(at.get("plotly_chart")) == len(experiment.maps)
    assert ("the mistake **fails**" in text) == (experiment.caught is not None)
    assert "the right way **passes**" in text
    assert not at.exception and not at.error
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", PITFALLS)
def test_every_pitfall_opens_at_its_address_and_its_controls_say_what_they_change(name):
    at = pitfalls(pitfall=name)
    assert shows(at, name)
    assert held(at)["pitfall_name"] == name
    assert at.query_params == {"pitfall": name}
    for widget in widgets(at):
        assert widget.label and (widget.proto.help or widget.key == "view_divisors"), widget.key
    assert hyphened(at) == []


def test_opens_with_the_first_and_every_pitfall_is_offered():
    at = pitfalls()
    assert shows(at, next(iter(PITFALLS)))
    assert next(widget for widget in widgets(at) if widget.key == "pitfall_name").options == [
        one.title for one in PITFALLS.values()
    ]
    assert at.query_params == {}


@pytest.mark.slow
@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_a_symptom_offers_what_may_look_like_it(symptom):
    at = set_to(pitfalls(), "pitfall_symptom", symptom)
    offered = [name for name, one in PITFALLS.items() if symptom in one.symptoms]
    assert next(widget for widget in widgets(at) if widget.key == "pitfall_name").options == [
        PITFALLS[name].title for name in offered
    ]
    assert held(at)["pitfall_name"] in offered
    assert at.query_params["symptom"] == symptom
    again = pitfalls(**at.query_params)
    assert held(again).items() >= {"pitfall_symptom": symptom, "pitfall_name": held(at)["pitfall_name"]}.items()
    every = set_to(at, "pitfall_symptom", None)
    assert len(next(widget for widget in widgets(every) if widget.key == "pitfall_name").options) == len(PITFALLS)


def test_a_symptom_keeps_a_pitfall_that_may_look_like_it():
    at = set_to(pitfalls(pitfall="softmax-twice"), "pitfall_symptom", "everything uniform")
    assert held(at)["pitfall_name"] == "softmax-twice"
    at = set_to(at, "pitfall_symptom", "rows do not sum to 1")
    assert shows(at, "dropout-in-the-weights"), "the first that may look like this, where the other cannot"
    assert at.query_params == {"pitfall": "dropout-in-the-weights", "symptom": "rows do not sum to 1"}


def test_an_experiment_is_changed_by_its_knobs_and_the_address_says_so():
    at = set_to(pitfalls(), "pitfall_name", "window-off-by-one")
    at = set_to(at, "knob_window", 5)
    assert shows(at, "window-off-by-one", window=5)
    assert at.query_params == {"pitfall": "window-off-by-one&window=5"}
    assert shows(pitfalls(**at.query_params), "window-off-by-one", window=5)
    at = set_to(at, "pitfall_name", "averaged-heads")
    at = set_to(at, "knob_heads", "two heads that cancel out")
    assert shows(at, "averaged-heads", heads="two heads that cancel out")
    assert "the mistake **passes**: as it is set the mistake does no harm here" in page_text(
        pitfalls(pitfall="window-off-by-one&window=8")
    )


def test_runs_on_the_layer_that_the_sidebar_sets():
    settings = Settings(embed_dim=24, num_heads=3, batch_size=2, seq_len=5, seed=11)
    at = pitfalls(pitfall="wrong-scale")
    for name in ("embed_dim", "num_heads", "batch_size", "seq_len", "seed"):
        at = set_to(at, name, getattr(settings, name))
    assert shows(at, "wrong-scale", settings)
    at = set_to(at, "own_words", True)
    at = set_to(at, "words", "a b <b>\nc")
    assert shows(at, "wrong-scale", Settings(embed_dim=24, num_heads=3, words="a b <b>\nc", padding=(), seed=11))


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        (Settings(case="tiny", embed_dim=4, num_heads=2, batch_size=1, seq_len=3, padding=()), {"case": "tiny", **TINY}),
        (Settings(positions=True, bias=False), {"positions": "1", "bias": "0"}),
        (
            Settings(seed=5),
            {"seed": "5", "causal": "1", "kdim": "24", "source_len": "4", "training": "1", "add_zero_attn": "1"},
        ),
        (Settings(words="a b", padding=()), {"words": "a b", "padding": "2"}),
    ],
)
def test_takes_the_layer_and_leaves_masks_extra_keys_and_modes_behind(settings, address):
    assert shows(pitfalls(pitfall="wrong-scale", **address), "wrong-scale", settings)
    assert shows(pitfalls(pitfall="averaged-heads", **address), "averaged-heads", settings)


def test_explore_and_pitfalls_look_at_one_layer():
    at = opened(embed_dim="24", num_heads="3", causal="1", dropout="0.5", cell="2,1")
    at = to_page(at, "pitfalls", **at.query_params)
    assert shows(at, next(iter(PITFALLS)))
    assert held(at).items() >= {"embed_dim": 24, "num_heads": 3}.items()
    at = set_to(at, "pitfall_name", "wrong-scale")
    assert shows(at, "wrong-scale", Settings(embed_dim=24, num_heads=3)), "masks are the experiment's own"
    at = set_to(at, "num_heads", 4)
    at = to_page(at, "explore", **at.query_params)
    assert held(unfolded(at)).items() >= {"num_heads": 4, "causal": True, "dropout": 0.5}.items()
    assert at.query_params["cell"] == "2,1"
    assert not at.exception


def test_what_an_experiment_needs_is_one_click_away():
    at = pitfalls(pitfall="head-masks-in-wrong-order", batch_size="1")
    assert errors(at) == [
        "**batch_size = 1**: must be 2 or more here: with 1 the mistake changes nothing, and no test could see it."
    ]
    assert not at.code
    at = press(at, "batch_size = 2")
    assert shows(at, "head-masks-in-wrong-order", Settings(batch_size=2))


def test_settings_that_break_a_rule_are_named_and_the_last_good_ones_stay():
    at = set_to(pitfalls(pitfall="wrong-scale"), "num_heads", 7)
    assert "128 = 7 × 18 + 2" in errors(at)[0]
    assert "Not current." in page_text(at)
    assert read(at, "chosen").startswith("Here. 8 heads of 16")
    assert shows(press(at, "num_heads = 8"), "wrong-scale")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ({"pitfall": "wrong-scales"}, "pitfall = wrong-scales: is none of the 22."),
        ({"pitfall": "window-off-by-one&window=99"}, "window = 99: must be a whole number from 1 to 8."),
        ({"pitfall": "window-off-by-one&window=x"}, "window = x: must be a whole number from 1 to 8."),
        ({"pitfall": "wrong-scale&scale=1/2"}, "scale = 1/2: must be one of 1/√embed_dim, none, 1/head_dim."),
        ({"pitfall": "wrong-scale&depth=2"}, "depth = 2: is nothing that wrong-scale has; it has scale."),
        ({"symptom": "headache"}, "symptom = headache: is none of: NaN;"),
        ({"pitfall": "<script>"}, "pitfall = <script>: is none of the 22."),
    ],
)
def test_an_address_that_points_to_nothing_is_named_and_the_page_stands(address, said):
    at = pitfalls(**address)
    assert said in page_text(at)
    assert not at.exception and read(at, "chosen")


def test_every_map_has_its_words():
    at = pitfalls(pitfall="causal-with-left-padding")
    assert [chart.proto.alt.partition(":")[0] for chart in at.get("plotly_chart")] == [
        "padded on the left",
        "padded on the right",
    ]


def test_spelling_is_read_back_and_says_only_what_differs():
    for name, pitfall in PITFALLS.items():
        defaults = {knob.name: knob.default for knob in pitfall.knobs}
        assert spelled(name, defaults) == name
        assert read_pitfall(name) == (pitfall, defaults)
        for knob in pitfall.knobs:
            for value in knob.choices or (knob.least, knob.most):
                values = defaults | {knob.name: value}
                assert read_pitfall(spelled(name, values)) == (pitfall, values)
    assert read_pitfall("")[0] is next(iter(PITFALLS.values()))
    with pytest.raises(Wrong) as raised:
        read_pitfall("wrong-scales")
    assert raised.value.nearest == ({"pitfall": "wrong-scale"},)


def test_a_caption_names_the_head_where_the_titles_do_not():
    assert "Head 0 of item 0." in page_text(pitfalls(pitfall="softmax-twice"))
    said = page_text(pitfalls(pitfall="averaged-heads"))
    assert "Item 0." in said and "Head 0 of item 0." not in said


def test_a_layer_that_is_too_wide_for_experiments_is_not_made(monkeypatch):
    """Of experiments the last layer that was tried is shown, not Explore's, which may be as wide."""
    made, draw = [], Layer.random
    monkeypatch.setattr(
        Layer, "random", lambda embed_dim, *rest, **more: made.append(embed_dim) or draw(embed_dim, *rest, **more)
    )
    at = pitfalls(embed_dim="8192")
    assert "may be 2,048 at most here" in unescaped(at.error[0].value) and 8192 not in made
    at = press(at, "embed_dim = 2048")
    assert not at.error and made == [2048]


@pytest.mark.parametrize(("text", "right"), [("99", 8), ("1,9", 2), ("", 1)])
def test_a_knob_that_breaks_its_rule_says_so_and_stays_to_be_mended(text, right):
    at = pitfalls(pitfall="window-off-by-one&window=5")
    before = read(at, "chosen")
    set_to(at, "knob_window", text)
    assert len(errors(at)) == 1 and "must be a whole number from 1 to 8" in errors(at)[0]
    assert next(one for one in at.text_input if one.key == "knob_window").value == text
    assert read(at, "chosen") == before, "the last good one is shown"
    press(at, f"window = {right}")
    assert shows(at, "window-off-by-one", window=right) and not errors(at)
