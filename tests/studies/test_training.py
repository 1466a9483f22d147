"""Training in short: it learns, it can be stopped, and it leaves what sessions share alone."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from mha_viz.__main__ import main
from mha_viz.core.rules import Wrong
from mha_viz.sources import models
from mha_viz.sources.models import MODELS, Parameters, score
from mha_viz.studies import training
from mha_viz.studies.training import RECIPES, recipe_of, rounded, train, untrained, write

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def fewer_sequences_to_score(monkeypatch):
    monkeypatch.setattr(models, "HELD_OUT_COUNT", 64)


def last_state(name, seed=1, steps=3):
    return list(train(name, seed, steps))[-1].state


def same(one, other):
    return all(np.array_equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_falls(name):
    reports = list(train(name, seed=3, steps=60))
    assert reports[-1].loss < reports[1].loss
    assert reports[-1].scores.loss < reports[0].scores.loss - 0.1


def test_what_is_reported():
    reports = list(train("look-both-ways-2", steps=30))
    kept = [report.step for report in reports if report.state is not None]
    assert kept == list(recipe_of("look-both-ways-2", steps=30).snapshots)
    assert {report.step for report in reports} == {*kept, 0, 10, 20, 30}
    assert reports[0].loss is None and all(report.loss > 0 for report in reports[1:])
    assert all((report.scores is None) == (report.state is None) for report in reports)
    last = reports[-1]
    assert last.scores == score(MODELS["look-both-ways-2"], Parameters.of(MODELS["look-both-ways-2"], last.state))


def test_a_state_is_not_changed_by_the_steps_after_it():
    reports = [report for report in train("look-both-ways-2", steps=20) if report.state is not None]
    assert not np.array_equal(reports[0].state["tokens.weight"], reports[-1].state["tokens.weight"])


def test_the_rate_rises_and_falls():
    recipe = RECIPES["induction"]
    assert recipe.rate(0) == pytest.approx(1 / recipe.warmup, rel=1e-3)
    assert recipe.rate(recipe.warmup) > 0.99
    assert recipe.rate(recipe.steps) == pytest.approx(0.1)


def test_one_seed_is_one_training():
    assert same(last_state("induction", seed=1), last_state("induction", seed=1))
    assert not same(last_state("induction", seed=1), last_state("induction", seed=2))


def test_the_seed_draws_the_sequences_as_well(monkeypatch):
    monkeypatch.setattr(training, "untrained", lambda model, seed, std: untrained(model, 1, std))
    assert not same(last_state("induction", seed=1), last_state("induction", seed=2))


def test_a_loss_is_the_mean_since_the_report_before(monkeypatch):
    said = {report.step: report.loss for report in train("look-both-ways-2", steps=20)}
    monkeypatch.setattr(training, "REPORT", 1)
    each = {report.step: report.loss for report in train("look-both-ways-2", steps=20)}
    steps = sorted(said)
    for before, step in pairwise(steps):
        assert said[step] == pytest.approx(np.mean([each[i] for i in range(before + 1, step + 1)]))


def test_sessions_at_once_do_not_meet():
    """Each draws from generators of its own: several at once give what each gives alone."""
    names = ["look-both-ways-1", "look-both-ways-2"] * 2
    alone = {name: last_state(name) for name in set(names)}
    with ThreadPoolExecutor(4) as pool:
        for name, state in zip(names, pool.map(last_state, names), strict=True):
            assert same(state, alone[name])


def test_what_sessions_share_is_left_alone():
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    last_state("induction")
    assert torch.equal(torch.get_rng_state(), before) and torch.get_num_threads() == threads


def test_every_parameter_is_drawn():
    """Nothing of the module that was made without memory is left; LayerNorm begins at one and zero, biases at zero."""
    module = untrained(MODELS["induction"], 1, 0.25)
    for name, tensor in module.named_parameters():
        assert tensor.device.type == "cpu" and tensor.requires_grad
        constant = 1 if "norms" in name and name.endswith("weight") else 0 if name.endswith("bias") else None
        assert (tensor == constant).all() if constant is not None else tensor.std() > 0, name


def test_whoever_stops_asking_stops_it():
    reports = train("induction")
    assert next(reports).step == 0
    reports.close()
    with pytest.raises(StopIteration):
        next(reports)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": "deduction"}, "must be one of"),
        ({"seed": -1}, "seed = -1"),
        ({"steps": 0}, "steps = 0"),
        ({"steps": 1.5}, "steps = 1.5"),
    ],
)
def test_values_that_are_none(wrong, message):
    """At once, not when the first report is asked for."""
    with pytest.raises(Wrong, match=message):
        train(**{"name": "induction"} | wrong)


def test_what_is_written(tmp_path):
    reports = list(train("look-both-ways-1", seed=4, steps=12))
    write("look-both-ways-1", reports, tmp_path, seed=4, steps=12)
    about = json.loads((tmp_path / "look-both-ways-1.json").read_text())
    final = load_file(tmp_path / "look-both-ways-1.safetensors")
    snapshots = load_file(tmp_path / "look-both-ways-1.snapshots.safetensors")
    assert same(final, reports[-1].state)
    assert about["recipe"]["seed"] == 4 and about["command"].endswith("look-both-ways-1 --seed 4 --steps 12")
    assert [snapshot["step"] for snapshot in about["snapshots"]] == about["recipe"]["snapshots"]
    model = MODELS["look-both-ways-1"]
    for i, snapshot in enumerate(about["snapshots"]):
        assert all(array.dtype == np.float16 and len(array) == len(about["snapshots"]) for array in snapshots.values())
        kept = score(model, Parameters.of(model, {name: np.float32(array[i]) for name, array in snapshots.items()}))
        assert snapshot["roles"] == rounded(kept.roles) and snapshot["loss"] == rounded(kept.loss), "scored after the cast"
    assert about["final"]["loss"] == pytest.approx(reports[-1].scores.loss, abs=1e-5)


def test_the_command(tmp_path, capsys):
    threads = torch.get_num_threads()
    try:
        assert main(["train", "look-both-ways-2", "--steps", "10", "--seed", "3", "--out", str(tmp_path / "new")]) == 0
    finally:
        torch.set_num_threads(threads)
    said = capsys.readouterr().out
    assert "step 10/10: training loss" in said and "right: before 0." in said
    assert len(list((tmp_path / "new").iterdir())) == 3


def test_the_command_says_what_is_wrong(tmp_path):
    command = [sys.executable, "-m", "mha_viz", "train", "deduction", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 2 and "must be one of induction, reverse-or-shift" in done.stderr
    assert "Traceback" not in done.stderr and not list(tmp_path.iterdir())
