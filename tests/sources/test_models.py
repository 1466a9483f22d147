"""The shipped models: their forward pass is the trained module's, and their records say what is measured again here."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from mha_viz.core.intervention import WAYS, Intervention
from mha_viz.core.rules import Wrong
from mha_viz.sources.models import DATA, MODELS, forward, is_right, kept_step, parameters, record, score, steps
from mha_viz.sources.tasks import HELD_OUT, SHOWN, TASKS
from mha_viz.studies.training import RECIPES, AttentionOnly

LOOKING = ["look-both-ways-1", "look-both-ways-2", "look-both-ways-32"]


def final(name):
    return record(name)["final"]


def module_of(name):
    """The module that was trained, with the shipped weights, in PyTorch alone."""
    from safetensors.torch import load_file

    module = AttentionOnly(MODELS[name])
    module.load_state_dict(load_file(DATA / f"{name}.safetensors"))
    return module


@pytest.mark.parametrize("name", MODELS)
def test_the_forward_pass_is_the_modules(name):
    model = MODELS[name]
    tokens = TASKS[model.task].examples(SHOWN, 5, 6)
    traces, logits = forward(model, parameters(name), tokens)
    theirs = module_of(name)(torch.tensor(tokens)).detach()
    np.testing.assert_allclose(logits, theirs, rtol=0, atol=1e-5 * float(theirs.abs().max()))
    assert [trace.name for trace in traces] == [f"layer {i}" for i in range(model.num_layers)]
    assert traces[0].query_tokens[0] == tuple(model.vocabulary[token] for token in tokens[0])


@pytest.mark.parametrize("name", MODELS)
def test_the_record_is_what_is_measured(name):
    """Final weights, and the first, a middle and the last snapshot as they are kept."""
    model, snapshots = MODELS[name], record(name)["snapshots"]
    for kept, step in [(final(name), None), *((snapshots[i], snapshots[i]["step"]) for i in (0, 8, -1))]:
        scores = score(model, parameters(name, step))
        assert scores.loss == pytest.approx(kept["loss"], rel=1e-3, abs=1e-5)
        assert scores.accuracy == pytest.approx(kept["accuracy"], abs=1e-3)
        for role, layers in scores.roles.items():
            np.testing.assert_allclose(layers, kept["roles"][role], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_the_record_says_how_to_make_it_again(name):
    about, recipe = record(name), RECIPES[name]
    assert about["recipe"] == {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(recipe).items()}
    assert about["sizes"].items() <= asdict(MODELS[name]).items() and "num_heads" in about["sizes"]
    assert about["command"] == f"python -m mha_viz train {name} --seed {recipe.seed} --steps {recipe.steps}"
    assert about["parameters"] == sum(tensor.numel() for tensor in module_of(name).parameters())
    assert set(about["versions"]) == {"python", "torch", "numpy"}
    assert steps(name) == recipe.snapshots and len(steps(name)) == 20


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_falls_over_the_snapshots(name):
    losses = [snapshot["loss"] for snapshot in record(name)["snapshots"]]
    assert losses[0] > 2 and losses[-1] == min(losses)


def test_what_is_shipped_is_small():
    weights = [DATA / f"{name}.safetensors" for name in MODELS]
    snapshots = [DATA / f"{name}.snapshots.safetensors" for name in MODELS]
    assert sum(path.stat().st_size for path in weights) < 1e6
    assert sum(path.stat().st_size for path in snapshots) < 4e6
    quality = [DATA / f"quality-{task}.json" for task in {model.task for model in MODELS.values()}]
    assert sum(path.stat().st_size for path in quality) < 1e5
    shipped = {path.name for path in weights + snapshots + quality} | {f"{name}.json" for name in MODELS}
    assert {path.name for path in DATA.iterdir()} == shipped


def test_induction_heads():
    assert final("induction")["accuracy"]["next"] > 0.99
    roles = final("induction")["roles"]
    assert max(roles["previous token"][0]) > 0.85
    assert min(roles["induction"][1]) > 0.7
    assert max(roles["induction"][0]) < 0.2, "layer 0 cannot know yet what followed"


@pytest.mark.parametrize("way", WAYS)
def test_induction_heads_stand_in_for_each_other(way):
    """Any one of layer 1 can go; layer 0's one previous-token head cannot."""
    model, weights = MODELS["induction"], parameters("induction")
    whole = final("induction")["accuracy"]["next"]
    for head in range(model.num_heads):
        without = score(model, weights, (Intervention(), Intervention({head: way}))).accuracy["next"]
        assert abs(without - whole) <= 0.01, f"head {head}"
    carrier = int(np.argmax(final("induction")["roles"]["previous token"][0]))
    assert score(model, weights, (Intervention({carrier: way}),)).accuracy["next"] < 0.5


def test_heads_change_their_pattern_with_the_task():
    assert final("reverse-or-shift")["accuracy"]["answer"] > 0.99
    roles = final("reverse-or-shift")["roles"]
    assert min(roles["reverse"][1]) > 0.9, "every head of layer 1 mirrors where it is to reverse,"
    assert max(roles["shift"][1]) > 0.95 and min(roles["shift"][1]) > 0.7, "and looks ahead where it is to shift"


def test_padding_weighs_exactly_nothing():
    model = MODELS["reverse-or-shift"]
    tokens = TASKS[model.task].examples(HELD_OUT, 0, 100)
    padding = TASKS[model.task].padding(tokens)
    assert padding.any()
    for trace in forward(model, parameters("reverse-or-shift"), tokens)[0]:
        assert not trace.weights[np.broadcast_to(padding[:, None, None], trace.weights.shape)].any()
        assert np.array_equal(trace.query_padding, padding)


def test_two_neighbours_need_two_heads():
    one, two, many = (sorted(final(name)["accuracy"].values()) for name in LOOKING)
    assert one[1] > 0.99 and one[0] < 0.2, "one head: chance is 0.1 for the neighbour that weighs less"
    assert two[0] > 0.999
    assert 0.8 < many[0] < 0.97 and 0.8 < many[1] < 0.97
    roles = final("look-both-ways-2")["roles"]
    back, ahead = np.array(roles["token before"][0]), np.array(roles["token after"][0])
    assert back.max() > 0.9 and ahead.max() > 0.9 and back.argmax() != ahead.argmax(), "one head each"
    assert max(map(max, (roles[0] for roles in final("look-both-ways-32")["roles"].values()))) < 0.5


def test_heads_cost_no_parameters():
    assert len({record(name)["parameters"] for name in LOOKING}) == 1


def test_a_snapshot_is_the_model_on_the_way():
    first, last = parameters("induction", 0), parameters("induction", steps("induction")[-1])
    assert not np.array_equal(first.tokens, last.tokens)
    np.testing.assert_allclose(last.tokens, parameters("induction").tokens, atol=2e-3)


def test_what_there_is_not():
    with pytest.raises(Wrong, match="must be one of induction"):
        parameters("deduction")
    with pytest.raises(Wrong, match="no step after which induction was kept") as caught:
        parameters("induction", 55)
    assert caught.value.nearest == ({"snapshot": 50}, {"snapshot": 60})
    assert kept_step("induction", 50) == 50


def test_an_undefined_answer_is_never_right():
    """argmax takes NaN for the largest: were it the right answer's place, it would count."""
    logits = np.full((1, 1, 1, 3), np.nan)
    assert not is_right(logits, np.array([[[logits.argmax()]]])).any()
