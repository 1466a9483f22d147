"""The Validate page and the checks on the Models page, run without a browser."""

import re

import numpy as np
import pytest
import torch
from torch import nn

import mha_viz as mv
from mha_viz import Settings, Trained, synthetic, trained
from mha_viz.analysis.validation import QUESTIONS, Subject, contract_text
from mha_viz.analysis.validation.gradients import head_norms
from mha_viz.app import task, warm
from mha_viz.app.parts import checked
from mha_viz.sources.source import source
from mha_viz.studies.validation import OF_HELD_OUT, found, validate
from tests.app.panels.test_file import opened_with
from tests.app.screen import APP, AppTest, models, page_text, press, set_to, to_page, unescaped

SMALL = {"embed_dim": "8", "num_heads": "2", "batch_size": "2", "seq_len": "4", "padding": "1"}


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    """Checks that another test left behind would hide what this one runs; and all are run at once, since nothing ticks here."""
    warm.kept_checks.clear()
    monkeypatch.setattr(checked, "AT_ONCE", 1000)


def page(**address):
    return to_page(AppTest.from_file(str(APP), default_timeout=60), "validate", **address)


def rows(at):
    """{title: (verdict, words)} of every check that the page tells."""
    text = " ".join(html.value for html in at.get("html"))
    row = r"<span class='verdict'>. ([a-z ]+)</span> <span class='title'>(.*?)</span>.*?<span class='words'>(.*?)</span>"
    found = re.findall(row, text)
    return {title: (verdict, words) for verdict, title, words in found}


def told(of, layer=0):
    return {check.title.replace("'", "&#x27;"): check.verdict for check in validate(of, layer)}


def shows(at, of, layer=0):
    assert {title: verdict for title, (verdict, _) in rows(at).items()} == told(of, layer)
    return True


def test_every_check_of_the_layer_is_told():
    at = page()
    assert not at.exception
    assert shows(at, source(Settings()))
    assert len(rows(at)) == len(QUESTIONS) + 1
    said = page_text(at)
    assert "Nothing that could be checked fails" in said and "29 pass, 0 fail, 1 cannot run" in said
    assert "“No query is moved by what comes later”" in said
    assert "python -m mha_viz validate" in said


def test_the_gradients_of_each_head_are_bars():
    norms = head_norms(Subject(synthetic(Settings())))
    said = " ".join(html.value for html in page().get("html"))
    drawn = re.findall(r"<span title='head (\d+): (\S+)'><b style='--share:([\d.]+)'></b><i>(\d+)</i></span>", said)
    assert [int(head) for head, *_ in drawn] == list(range(8)) == [int(label) for *_, label in drawn]
    np.testing.assert_allclose([float(height) for *_, height, _ in drawn], norms / norms.max(), atol=6e-4)
    assert [value for _, value, *_ in drawn] == [f"{norm:.3g}" for norm in norms]


def test_what_does_not_hold_is_named_first():
    at = page(causal="1", padding_side="left")
    assert shows(at, source(Settings(causal=True, padding_side="left")))
    assert "Does not hold: “Every query has a key that it may see”, “Every gradient is finite”" in page_text(at)
    assert "24 rows of padded queries" in rows(at)["Every query has a key that it may see"][1]


def test_the_layer_is_that_of_the_address_and_of_the_sidebar():
    at = page(**SMALL)
    assert "python -m mha_viz validate --address '?embed_dim=8&num_heads=2&batch_size=2&seq_len=4&padding=1'" in page_text(at)
    at = set_to(at, "training", True)
    assert shows(at, source(Settings(embed_dim=8, num_heads=2, batch_size=2, seq_len=4, padding=(1,), training=True)))
    assert at.session_state.address == SMALL | {"training": "1"}


def test_settings_that_break_a_rule_say_so_and_the_last_good_are_checked():
    at = page(embed_dim="12", num_heads="7")
    assert any("divisible" in unescaped(error.value) for error in at.error)
    assert "Not current." in page_text(at)
    assert shows(at, source(Settings()))


def test_what_if_is_checked_as_it_is_shown():
    at = page(what_if="0:0=zero", **SMALL)
    assert "Layer 0, head 0 is off" in page_text(at)
    assert rows(at)["Several heads do what one does not (baseline: one head)"][0] == "cannot run"
    at = page(what_if="0:keys=0", **SMALL)
    assert rows(at)["A padded key has weight exactly 0"][0] == "pass"


def test_a_large_layer_waits_until_somebody_asks(monkeypatch):
    monkeypatch.setattr(checked, "QUICK", 0)
    at = page(**SMALL)
    assert not rows(at) and "This layer is large" in page_text(at)
    at = press(at, "Run the checks")
    assert len(rows(at)) == len(QUESTIONS) + 1


def test_checks_that_were_stopped_go_on_from_there(monkeypatch):
    """Stopping leaves what is done; going on does not do it again."""
    monkeypatch.setattr(checked, "QUICK", 0)
    asked = []

    def counted(of, layer):
        for check in validate(of, layer):
            asked.append(check.name)
            yield check

    at = page(**SMALL)
    of = source(Settings(embed_dim=8, num_heads=2, batch_size=2, seq_len=4, padding=(1,)))
    left = counted(of, 0)
    now = at.session_state["task_checks"]
    now.results[:], now.steps = [next(left), next(left)], left
    at = at.run()
    assert len(rows(at)) == 2
    at = press(at, "Go on")
    assert len(rows(at)) == len(QUESTIONS) + 1
    assert len(asked) == len(set(asked)) == len(QUESTIONS) + 1


def test_how_far_long_checks_are_is_said_and_they_can_be_stopped(monkeypatch):
    monkeypatch.setattr(checked, "AT_ONCE", 0)
    monkeypatch.setattr(task, "SLICE", 0)
    at = page(**SMALL)
    assert not rows(at)
    assert any(button.label == "Stop" for button in at.button)
    at = press(at, "Stop")
    assert len(rows(at)) == 2
    assert any(button.label == "Go on" for button in at.button)


def test_the_contract_and_the_versions_can_be_copied():
    at = page(batch_first="0")
    said = "\n".join(code.value for code in at.code)
    assert contract_text(synthetic(), batch_first=False) in said
    assert "[L, N, E]" in said and "[20, 3, 128]" in said
    assert f"numpy: {np.__version__}" in said


def test_a_second_session_is_shown_what_the_first_computed(monkeypatch):
    page(**SMALL)
    monkeypatch.setattr("mha_viz.studies.validation.validate", lambda *_: pytest.fail("computed again"))
    assert len(rows(page(**SMALL))) == len(QUESTIONS) + 1


# On the Models page


def test_a_layer_of_a_shipped_model_and_its_scores():
    at = models(model="look-both-ways-2")
    assert not rows(at)
    at.session_state["checks"] = True
    at = at.run()
    assert not at.exception
    of = source(Trained("look-both-ways-2"))
    assert shows(at, of) and len(rows(at)) == len(QUESTIONS) + 1 + len(OF_HELD_OUT)
    assert "--address '?source=trained&model=look-both-ways-2'" in page_text(at)


def test_another_layer_is_checked_anew():
    at = models(model="induction", layer="1")
    at.session_state["checks"] = True
    assert shows(at.run(), source(Trained("induction")), layer=1)


def test_a_recording_is_checked_as_far_as_it_goes(tmp_path, monkeypatch):
    from mha_viz.app.panels.file import FILE

    recording = trained(Trained("look-both-ways-2", batch_size=2)).recording
    recording.save(tmp_path / "run.safetensors")
    monkeypatch.setenv(FILE, str(tmp_path / "run.safetensors"))
    at = models()
    at.session_state["checks"] = True
    at = at.run()
    assert shows(at, source(mv.load(tmp_path / "run.safetensors")))
    assert "python -m mha_viz validate run.safetensors" in page_text(at)


def test_what_is_odd_is_said_as_the_command_says_it():
    address = {
        "embed_dim": "8",
        "num_heads": "2",
        "batch_size": "1",
        "seq_len": "3",
        "padding": "",
        "causal": "1",
        "padding_side": "left",
    }
    at = page(**address | {"padding": "1"})
    small = {"embed_dim": 8, "num_heads": 2, "batch_size": 1, "seq_len": 3}
    right = [sentence for _, sentence in found(source(Settings(**small, padding=(1,), causal=True, padding_side="left")))]
    said = " ".join(unescaped(one.value) for one in at.warning)
    assert right and all(sentence in said for sentence in right)
    assert not page(**address | {"causal": "0"}).warning


def test_the_notes_and_findings_of_a_recording_are_said(tmp_path, monkeypatch):
    """A mask of the numbers 0 and 1, and that dropout was on while it was recorded."""
    attention = nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)
    with mv.record(attention) as recording:
        x = torch.randn(1, 4, 8)
        attention(x, x, x, attn_mask=torch.tril(torch.ones(4, 4)))
    recording.save(tmp_path / "run.safetensors")
    at = opened_with("run.safetensors", (tmp_path / "run.safetensors").read_bytes())
    at = to_page(at, "validate", source="file", file="run.safetensors")
    said = unescaped(" ".join(one.value for one in (*at.warning, *at.caption)))
    assert "holds the numbers 0 and 1 only" in said and all(note in said for note in recording.notes)
