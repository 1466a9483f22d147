"""Step by step, Decode, Pitfalls and Validate of a model's layer: what they open, what they say is not known, where they lead."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from mha_viz import Settings, Trained, synthetic, trained
from mha_viz.analysis.decoding import beside
from mha_viz.analysis.pitfalls import PITFALLS, Bench
from mha_viz.analysis.walkthrough import walk
from mha_viz.app.panels.file import FILE
from mha_viz.app.session import OF_LAYER
from mha_viz.core.decimals import prose
from mha_viz.export.code import program
from mha_viz.export.kept import kept
from mha_viz.recording import Recording
from mha_viz.settings import STEPS
from tests.analysis.kinds import of_kind
from tests.app.pages.test_steps import draws, pictures
from tests.app.screen import APP, decoded, figure, held, models, page_text, press, read, set_to, to_page

INDUCTION = {"source": "trained", "layer": "1"}
LAYER = trained(Trained()).recording.traces[1]


def page(name, **address):
    return to_page(AppTest.from_file(str(APP), default_timeout=60), name, **address)


def links(at):
    """{label: the address that the link leads to}"""
    return {link.proto.label: link.proto.query_string for link in at.get("page_link")}


@pytest.fixture
def file(tmp_path, monkeypatch):
    """``file(trace)`` is an address at which a recording of that one Trace is open."""

    def opened(*traces):
        Recording(traces).save(tmp_path / "run.safetensors")
        monkeypatch.setenv(FILE, str(tmp_path / "run.safetensors"))
        return {"source": "file", "file": "run.safetensors"}

    return opened


def test_every_step_of_a_trained_layer_is_what_its_trace_holds():
    for step in STEPS:
        if step in ("dropout", "validate"):
            continue
        at = page("steps", **INDUCTION, step=step, head="2", cell="9,5")
        assert draws(at, walk(LAYER, 0, 2, 9, 5).tensors[step])
    assert "Induction · layer 1" in page_text(at) and held(at)["follow_query"] == 9


@pytest.mark.parametrize("language", ["numpy", "torch"])
def test_a_trained_layer_as_a_program_that_reads_a_file(language):
    at = page("steps", **INDUCTION, step="softmax", language=language, head="2", cell="9,5")
    whole = program(kept(LAYER, "induction-layer-1.npz"), language, "softmax", item=0, head=2, query=9)
    assert at.code[1].value == whole.rstrip()
    assert [button.label for button in at.get("download_button")] == ["Save induction-layer-1.npz"]


def test_a_recording_is_followed_from_q_on_and_says_why_not_before(file):
    at = page("steps", **file(of_kind("call", synthetic(Settings(causal=True)))))
    said = page_text(at)
    assert "1 of 11 · " in said and "X: What went into the layer is not known here." in said.replace("**", "")
    assert "as the model made it" in said.lower() and not at.exception
    at = press(at, "NumPy")
    assert "No program can be given here." in said + " ".join(info.value for info in at.info)


def test_of_maps_the_weights_and_their_average_are_followed(file):
    trace = of_kind("maps", synthetic(Settings()))
    at = page("steps", **file(trace))
    assert not at.exception and "1 of 2 · softmax" in page_text(at)
    followed = [held(at)[f"follow_{name}"] for name in ("head", "query", "key")]
    assert draws(at, walk(trace, 0, *followed).tensors["softmax"])
    at = press(at, "Forward")
    assert "| holds | row sums |" in page_text(at) and not at.exception


@pytest.mark.parametrize("kind", ["call", "maps"])
@pytest.mark.parametrize(
    ("name", "says"), [("pitfalls", "No pitfall can be tried on this layer."), ("decode", "Nothing is decoded here.")]
)
def test_what_needs_the_layer_says_so_where_it_is_not_known(file, kind, name, says):
    at = page(name, **file(of_kind(kind, synthetic(Settings(causal=True)))))
    assert not at.exception and not at.error
    assert says in at.info[0].value and "known here" in at.info[0].value


def test_a_trained_layer_is_decoded():
    at = page("decode", **INDUCTION, token="20")
    found = beside(LAYER.layer, LAYER.batch)
    drawn = {trace["name"]: decoded(trace["z"]) for trace in figure(at, "decoding")["data"] if trace["type"] == "heatmap"}
    row = found.decoding.steps[20].weights[0, :, -1]
    np.testing.assert_allclose(drawn["weights"][:, :21], np.where(row == 0, np.nan, row), rtol=1e-6)
    assert f"at most {prose(found.difference.worst, '.1e')}" in read(at, "hides")
    assert "Causal is set here" not in page_text(at)
    at = press(at, "Next token")
    assert at.query_params == INDUCTION | {"token": "21"}


def test_a_prompt_longer_than_the_model_reads_says_so():
    at = page("decode", **INDUCTION, prompt="99")
    assert not at.exception and "prompt" in at.error[0].value
    assert not press(at, "prompt = 32").error


def test_what_is_not_causal_is_not_decoded():
    at = page("decode", source="trained", model="look-both-ways-2")
    assert not at.exception and "not causal" in at.info[0].value
    at = set_to(at, "model", "induction")
    assert not at.info and "Step 17 of 32" in read(at, "chosen")


def test_a_pitfall_is_tried_on_a_trained_layer():
    at = page("pitfalls", **INDUCTION, pitfall="averaged-heads")
    found = PITFALLS["averaged-heads"].run(Bench.of(LAYER))
    assert read(at, "chosen") == f"Here. {found.sentence}".replace("'", "&#x27;")
    assert not at.exception and not at.error


def test_what_if_in_a_shipped_model_is_left_out_of_its_steps():
    at = page("steps", **INDUCTION, interventions="1:2=zero", head="2", cell="9,5", step="values")
    np.testing.assert_array_equal(pictures(at)[-1], LAYER.head_outputs[0, [2], 9])
    assert not at.exception and "What if is left out here" in page_text(at)
    said = page_text(page("validate", **INDUCTION, interventions="1:2=zero"))
    assert "Layer 1, head 2 is off" in said and "left out" not in said


def test_a_recording_with_a_head_off_is_not_followed(file):
    from mha_viz import Intervention, changed

    at = page("steps", **file(changed(of_kind("call", synthetic()), Intervention(off={1: "zero"}))))
    assert not at.exception and "A head is off" in at.info[0].value


@pytest.mark.parametrize("name", OF_LAYER)
def test_nothing_open_says_what_to_open(name):
    at = page(name, source="file")
    assert not at.exception and "Open a file on the left" in page_text(at)


def test_links_carry_what_is_looked_at_and_lead_back():
    at = models(model="reverse-or-shift", layer="1", head="3")
    told, whole = links(at), "source=trained&model=reverse-or-shift&layer=1&head=3"
    assert {told[title] for title in ("Explore", "Step by step", "Decode", "Pitfalls", "Validate")} == {whole}
    at = to_page(at, "steps", source="trained", model="reverse-or-shift", layer="1", head="3")
    assert links(at)["Explore"] == whole and held(at)["follow_head"] == 3
    at = set_to(at, "follow_head", 1)
    assert "head=1" in links(at)["Explore"] and "head=1" in links(at)["Pitfalls"]
    at = to_page(at, "about")
    assert links(at)["Decode"] == links(at)["Step by step"] == links(at)["Explore"] != ""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OF_LAYER if name not in ("explore", "models")])
def test_every_page_of_a_layer_begins_with_the_choice_of_a_source(name):
    at = page(name, seed="8")
    at = set_to(at, "view_source", "trained")
    assert not at.exception and at.query_params["source"] == "trained"
    at = set_to(at, "view_source", "random")
    assert held(at)["seed"] == 8 and not at.exception
    at = set_to(at, "view_source", "tiny")
    assert not at.exception and not at.error and at.query_params["case"] == "tiny"


def test_a_layer_is_chosen_in_the_sidebar():
    at = set_to(page("steps", source="trained", step="softmax"), "view_layer", 1)
    assert "Induction · layer 1" in page_text(at) and at.query_params["layer"] == "1"


def test_validate_of_a_model_is_what_the_models_page_checks():
    at = page("validate", source="trained", model="look-both-ways-2")
    assert not at.exception and "On held-out data the model beats uniform attention" in page_text(at)
