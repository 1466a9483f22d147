"""What a source is told beyond its layers' checks, and what is written down to be pinned."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from packaging.version import Version

from mha_viz import Intervention, Recording, Settings, __version__, attend, synthetic
from mha_viz.analysis.layout import module_of
from mha_viz.analysis.validation import QUESTIONS
from mha_viz.core.maps import trace_of_maps
from mha_viz.settings.settings import TINY
from mha_viz.sources.source import source, source_of_file
from mha_viz.sources.trained import HeldOut, Trained, training_sequences
from mha_viz.studies import training
from mha_viz.studies.validation import (
    Tiny,
    held_out_disjoint,
    held_out_one_head,
    held_out_score,
    report,
    summary,
    tiny,
    validate,
    versions,
)

SMALL = Settings(embed_dim=8, num_heads=2, batch_size=2, seq_len=4, padding=(1,))
MODEL = Trained("look-both-ways-2", batch_size=2)


def verdicts(of):
    return {(check.of, check.name): check.verdict for check in validate(of)}


# What is checked of a source


def test_the_tutorials_layer_passes_all_that_can_be_checked_of_it():
    found = verdicts(source(Settings()))
    assert found.pop(("attention", "causality")) == "cannot run"
    assert set(found.values()) == {"pass"}
    assert {name for _, name in found} == {*QUESTIONS, "numpy_tiny"} - {"causality"}


def test_left_padding_under_a_causal_mask_is_found():
    """The loss is a fine number, and the model is dead."""
    found = {check.name: check for check in validate(source(Settings(causal=True, padding_side="left")))}
    assert {name for name, check in found.items() if check.verdict == "fail"} == {
        "no_key",
        "gradients_finite",
        "gradients_padding",
    }
    assert found["no_key"].figure == 24
    assert "0.03573" in found["gradients_finite"].words
    assert "49,152 of in_proj_weight" in found["gradients_finite"].words
    assert found["gradcheck"].verdict == "cannot run"


@pytest.mark.parametrize(
    "options",
    [
        {"embed_dim": 7, "num_heads": 1},
        {"bias": False},
        {"add_bias_kv": True, "add_zero_attn": True},
        {"kdim": 5, "vdim": 3},
        {"source_len": 6, "source_padding": (2,)},
        {"source_len": 6, "causal": True},
        {"window": 3},
        {"causal": True, "positions": True},
        {"causal": True, "padding_side": "left", "add_zero_attn": True},
        {"words": "a b c\nb a", "padding": ()},
        {"case": "tiny", **TINY},
        {"attn_mask": "0 0.5 0 1/-inf 1 0 2/0 0 0 0/0 0 0 0"},
        {"attn_mask": "0100/0010/0000/1000"},
        {"seq_len": 1, "padding": ()},
        {"batch_first": False},
        {"batch_size": 1},
    ],
    ids=str,
)
def test_no_right_layer_is_called_wrong(options):
    """Whatever the options, as long as each query has a key."""
    found = verdicts(source(replace(SMALL, **options)))
    assert "fail" not in found.values(), {name for name, verdict in found.items() if verdict == "fail"}


def test_numbers_that_are_not_finite_are_found_and_nothing_breaks():
    trace = synthetic(SMALL)
    query = np.array(trace.batch.query)
    query[0, 1, 2] = np.nan
    for broken in (
        attend(trace.layer, replace(trace.batch, query=query)),
        attend(trace.layer, replace(trace.batch, query=query * np.inf)),
    ):
        found = {check.name: check for check in validate(source(Recording((broken,))))}
        assert found["input_values"].verdict == "fail" and found["row_sums"].verdict != "fail", "what came in is to blame"
        assert all(check.words for check in found.values())


def test_train_mode_is_found():
    found = verdicts(source(replace(SMALL, training=True)))
    assert {name for (_, name), verdict in found.items() if verdict == "fail"} == {"dropout_off", "deterministic"}


def test_of_a_trained_model_every_layer_and_the_scores():
    found = verdicts(source(Trained("induction", batch_size=2)))
    assert {of for of, _ in found} == {"tiny case", "layer 0", "layer 1", "model"}
    assert found["model", "held_out_score"] == found["model", "held_out_disjoint"] == "pass"
    assert found["model", "held_out_one_head"] == "cannot run"  # no model with one head was trained on that
    assert "fail" not in found.values()


def test_one_layer_alone():
    of = source(Trained("induction", batch_size=2))
    assert {check.of for check in validate(of, layer=1)} == {"tiny case", "layer 1", "model"}


def test_what_a_recording_and_maps_do_not_hold_is_never_passed(tmp_path):
    trace = synthetic(SMALL)
    Recording((trace,)).save(tmp_path / "run.safetensors")
    recorded = {name: verdict for (_, name), verdict in verdicts(source_of_file(tmp_path / "run.safetensors")).items()}
    assert {recorded[name] for name in ("row_sums", "padding_content", "numpy", "decoding", "gradcheck")} == {"pass"}
    assert {recorded[name] for name in ("input_shape", "dropout_off", "layouts")} == {"cannot run"}
    maps = {check.name: check for check in validate(source(Recording((trace_of_maps(trace.weights),))))}
    assert {name for name, check in maps.items() if check.verdict == "pass"} == {
        "numpy_tiny",
        "shapes",
        "row_sums",
        "mean_weights",
        "no_key",
    }
    assert all(check.words for check in maps.values())


def test_the_summary_counts_what_cannot_run_apart():
    done = list(validate(source(replace(SMALL, training=True, padding=()))))
    counts = {verdict: sum(check.verdict == verdict for check in done) for verdict in ("pass", "fail", "cannot run")}
    assert summary(done).startswith(f"{counts['pass']} pass, 2 fail, {counts['cannot run']} cannot run and count as neither")


# Each of the source's own checks fails on what it is there to find


def test_the_tiny_case_finds_a_wrong_module_and_a_wrong_engine():
    def scaled(*arguments):
        module = module_of(*arguments)
        with torch.no_grad():
            module.in_proj_weight[:4] *= 2**0.5  # as if the scale were that of one head
        return module

    assert tiny.ask(Tiny()).verdict == "pass"
    assert tiny.ask(Tiny(module=scaled)).verdict == "fail"
    wrong = tiny.ask(Tiny(attend=lambda layer, batch, **options: attend(layer, replace(batch, causal=True), **options)))
    assert wrong.verdict == "fail"


def test_the_tiny_case_finds_a_softmax_that_overflows(monkeypatch):
    def unshifted(scores):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)

    monkeypatch.setattr("mha_viz.core.reference.softmax", unshifted)
    assert tiny.ask(Tiny()).verdict == "fail"


def test_a_model_that_does_no_better_than_uniform_attention_is_found():
    off = {head: "uniform" for head in range(2)}
    found = held_out_score.ask(HeldOut(replace(MODEL, interventions=(Intervention(off),))))
    assert found.verdict == "fail" and found.figure == found.least
    assert held_out_score.ask(HeldOut(MODEL)).verdict == "pass"


def test_a_model_that_does_no_better_than_one_head_is_found():
    assert held_out_one_head.ask(HeldOut(MODEL)).verdict == "pass"
    assert held_out_one_head.ask(HeldOut(replace(MODEL, snapshot=0))).verdict == "fail"


def test_training_data_among_the_held_out_is_found(monkeypatch):
    held = HeldOut(MODEL)
    assert held_out_disjoint.ask(held).verdict == "pass"
    leaked = held.training.copy()
    leaked[100] = held.sequences[7]
    monkeypatch.setattr(HeldOut, "training", leaked)
    found = held_out_disjoint.ask(held)
    assert found.verdict == "fail" and found.figure == 1


def test_the_training_data_is_what_training_draws(monkeypatch):
    task, seen = training.TASKS["look-both-ways"], []

    def draw(rng, N):
        seen.append(task.draw(rng, N))
        return seen[-1]

    monkeypatch.setitem(training.TASKS, "look-both-ways", replace(task, draw=draw))
    for _ in training.train("look-both-ways-2", steps=3):
        pass
    batches = np.concatenate([drawn for drawn in seen if len(drawn) == 64])
    assert len(batches) == 3 * 64
    np.testing.assert_array_equal(training_sequences("look-both-ways-2")[: len(batches)], batches)


# What is pinned


def test_versions_name_what_ran():
    found = versions(source(MODEL))
    assert found["torch"] == Version(torch.__version__).public and found["torch_build"] == torch.__version__
    assert found["numpy"] == np.__version__ and found["mha_viz"] == __version__
    assert "look-both-ways-2, final weights, sha256 " in found["model"] and "--seed 1" in found["model"]
    assert "seed 7" in versions(source(Settings()))["model"]
    assert versions(source(Recording((synthetic(SMALL),))))["model"] == "a recording: not known"


def test_the_report_is_json_whatever_the_figures():
    of = source(Settings(causal=True, padding_side="left"))
    text = json.dumps(report(of, list(validate(of))), allow_nan=False)
    assert '"figure": "inf"' in text
    told = json.loads(text)
    assert told.keys() == {"of", "checks", "notes", "findings", "versions"}
    assert any("causal and key padding together leave no key" in one["sentence"] for one in told["findings"])
