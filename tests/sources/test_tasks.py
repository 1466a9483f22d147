"""What the tasks ask, on sequences that can be read by eye, and that their streams never meet."""

import numpy as np
import pytest

from mha_viz.sources.tasks import HELD_OUT, SHOWN, TASKS, TRAINING, UNASKED
from mha_viz.studies.training import RECIPES

MODELS_OF = {"induction": "induction", "reverse-or-shift": "reverse-or-shift", "look-both-ways": "look-both-ways-2"}


def read(name, words):
    vocabulary = TASKS[name].vocabulary
    return np.array([[vocabulary.index(word) for word in words.split()]])


def answers(name, words):
    """The right answers as texts, "." where none is asked for."""
    task = TASKS[name]
    texts = (*task.vocabulary, ".")
    return [" ".join(texts[number] for number in column) for column in task.targets(read(name, words))[0].T]


def reads(name, words, role):
    """query → keys of a role, for the rows that have any."""
    keys = TASKS[name].roles(read(name, words))[role][0]
    return {int(query): np.flatnonzero(row).tolist() for query, row in enumerate(keys) if row.any()}


def test_induction_goes_on_with_what_followed_last():
    assert answers("induction", "<bos> a b c a b d a") == [". . . . b c . b"]
    assert reads("induction", "<bos> a b c a b", "induction") == {4: [2], 5: [3]}
    assert reads("induction", "<bos> a b a b a", "induction")[5] == [2, 4]
    assert reads("induction", "<bos> a b c a b", "previous token") == {1: [0], 2: [1], 3: [2]}


def test_reverse_or_shift():
    assert answers("reverse-or-shift", "reverse a b c <pad>") == [". c b a ."]
    assert answers("reverse-or-shift", "shift a b c <pad>") == [". b c a ."]
    assert reads("reverse-or-shift", "reverse a b c <pad>", "reverse") == {1: [3], 2: [2], 3: [1]}
    assert reads("reverse-or-shift", "reverse a b c <pad>", "shift") == {}
    assert reads("reverse-or-shift", "shift a b c <pad>", "shift") == {1: [2], 2: [3], 3: [1]}


def test_look_both_ways():
    assert answers("look-both-ways", "a b c d") == [". a b .", ". c d ."]
    assert reads("look-both-ways", "a b c d", "token before") == {1: [0], 2: [1]}
    assert reads("look-both-ways", "a b c d", "token after") == {1: [2], 2: [3]}


@pytest.mark.parametrize("name", TASKS)
def test_drawn_sequences_are_the_tasks(name):
    task = TASKS[name]
    tokens = task.examples(SHOWN, 3, 50)
    assert tokens.shape == (50, task.length)
    assert np.array_equal(tokens, task.examples(SHOWN, 3, 50)) and not np.array_equal(tokens, task.examples(SHOWN, 4, 50))
    assert (task.targets(tokens) != UNASKED).any(axis=(1, 2)).all()
    texts = np.array(task.vocabulary)[tokens]
    if task.openings:
        assert set(texts[:, 0]) == set(task.openings) and not np.isin(texts[:, 1:], task.openings).any()


def test_padding_stands_at_the_end_and_only_where_a_task_knows_it():
    task = TASKS["reverse-or-shift"]
    padding = task.padding(task.examples(SHOWN, 0, 50))
    assert padding.any() and not (padding[:, :-1] & ~padding[:, 1:]).any()
    assert TASKS["induction"].padding(TASKS["induction"].examples(SHOWN, 0, 50)) is None


@pytest.mark.parametrize("name", TASKS)
def test_training_never_sees_what_scores_are_measured_on(name):
    """The streams draw apart, and what they drew, all of it, has no sequence in common."""
    task, recipe = TASKS[name], RECIPES[MODELS_OF[name]]
    rng = np.random.default_rng((TRAINING, recipe.seed))
    seen = {item.tobytes() for _ in range(recipe.steps) for item in task.draw(rng, recipe.batch_size)}
    assert len(seen) > 0.9 * recipe.steps * recipe.batch_size
    for stream, seeds, count in ((HELD_OUT, 1, 512), (SHOWN, 20, 4)):
        assert not seen & {item.tobytes() for seed in range(seeds) for item in task.examples(stream, seed, count)}
