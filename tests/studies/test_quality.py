"""What head counts do to quality: what is trained, what is measured of it, and what ships."""

import pytest

from mha_viz.core.rules import Wrong
from mha_viz.sources.models import MODELS, record
from mha_viz.studies.quality import (
    HEADS,
    SEEDS,
    Quality,
    Step,
    Trial,
    quality_json,
    read_quality,
    shipped,
    shipped_tasks,
    try_out,
)
from mha_viz.studies.training import recipe_of

TINY = Trial(num_heads=(1, 2), seeds=(3,), steps=2)


def test_every_seed_trains_every_head_count_once():
    steps = list(try_out(TINY))
    assert [(one.outcome.num_heads, one.outcome.seed) for one in steps if one.outcome] == [(1, 3), (2, 3)]
    done = [one.done for one in steps]
    assert done == sorted(done) and done[-1] == 1
    quality = Quality(TINY)
    for step in steps:
        quality.add(step)
    assert set(quality.of("loss")) == {1, 2} and "1 head 0." in quality.summary
    assert read_quality(quality_json(quality)).summary == quality.summary


def test_a_stop_keeps_what_is_trained():
    quality = Quality(TINY)
    for step in try_out(TINY):
        quality.add(step)
        if step.outcome:
            break
    assert list(quality.of("accuracy")) == [1] and 0 < quality.share < 1
    assert Quality(TINY).summary == "No training is done yet."


def test_all_but_heads_is_the_shipped_models():
    trial, shipped_one = Trial(), recipe_of("look-both-ways-2")
    assert trial.recipe(1).learning_rate == shipped_one.learning_rate and trial.steps == shipped_one.steps
    assert trial.profile.embed_dim == MODELS["look-both-ways-2"].embed_dim and trial.profile.seq_len == (12,)


def test_a_head_count_that_does_not_divide_is_refused():
    with pytest.raises(Wrong, match="32 = 3 × 10 \\+ 2") as found:
        Trial(num_heads=(1, 3))
    assert found.value.nearest[0] == {"num_heads": (1,)}


def test_what_ships_is_the_whole_of_it():
    quality = shipped("look-both-ways")
    assert quality.trial == Trial() and {(one.num_heads, one.seed) for one in quality.outcomes} == {
        (heads, seed) for heads in HEADS for seed in SEEDS
    }
    assert all(row.seconds and row.peak is not None for row in quality.results.rows)
    accuracy = quality.of("accuracy")
    assert max(accuracy[1]) < 0.7 < min(accuracy[32]) < max(accuracy[32]) < min(accuracy[2]), (
        "one head cannot, 32 are too small"
    )


@pytest.mark.parametrize("task", shipped_tasks())
def test_what_ships_was_measured_whole(task):
    quality = shipped(task)
    assert len(quality.outcomes) == len(quality.trial.num_heads) * len(quality.trial.seeds) >= 15
    assert all(row.seconds and row.peak for row in quality.results.rows) and not quality.results.busy
    assert min(one.accuracy - one.uniform for one in quality.outcomes) > 0.2, "every head count beats uniform attention"


def test_what_ships_agrees_with_the_shipped_models():
    """Their seed is the first: the same weights, scored again."""
    seed = record("look-both-ways-1")["recipe"]["seed"]
    found = {one.num_heads: one.loss for one in shipped("look-both-ways").outcomes if one.seed == seed}
    for heads in (1, 2, 32):
        assert found[heads] == pytest.approx(record(f"look-both-ways-{heads}")["final"]["loss"], rel=0.05, abs=1e-4)


def test_nothing_is_done_is_a_step():
    quality = Quality(TINY)
    quality.add(Step(0.5))
    assert quality.share == pytest.approx(0.45)
