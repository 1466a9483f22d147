"""A shipped model run: on drawn and typed sequences, with and without something changed."""

from dataclasses import replace

import numpy as np
import pytest

from mha_viz.core.intervention import Intervention
from mha_viz.core.rules import Wrong
from mha_viz.sources.models import MODELS, record
from mha_viz.sources.tasks import TASKS
from mha_viz.sources.trained import Trained, accuracy, trained


@pytest.mark.parametrize("name", MODELS)
def test_a_run_holds_every_layer_and_every_answer(name):
    run = trained(Trained(model=name, seed=2, batch_size=3))
    model, task = MODELS[name], TASKS[MODELS[name].task]
    assert [trace.name for trace in run.recording.traces] == [f"layer {i}" for i in range(model.num_layers)]
    assert run.recording.traces[0].weights.shape == (3, model.num_heads, task.length, task.length)
    assert run.answers == task.answers and run.recording.notes == ()
    for array in (run.predictions, run.targets, run.probability, run.asked, run.right):
        assert array.shape == (3, task.length, len(task.answers))
    assert np.array_equal(run.right, run.asked & (run.predictions == run.targets))
    assert np.array_equal(run.targets == "", ~run.asked)
    assert ((run.probability > 0) & (run.probability <= 1)).all()
    for a, answer in enumerate(task.answers):
        assert run.accuracy[answer] == run.right[..., a].sum() / run.asked[..., a].sum()


def test_typed_tokens():
    run = trained(Trained(words="<bos> m a r c h i n g m a r c h"))
    trace = run.recording.traces[1]
    assert trace.query_tokens == (("<bos>", *"marchingmarch"),)
    assert [*run.predictions[0, 9:, 0]] == [*"archi"] and run.asked.sum() == run.right.sum() == 5
    assert trace.weights[0, :, 9, 2].min() > 0.7, "the second m reads what followed the first"


def test_typed_lines_of_different_lengths_are_padded():
    run = trained(Trained(model="reverse-or-shift", words="reverse a b c d e f g\nshift a b c d e f <pad>"))
    assert run.recording.traces[0].key_tokens[1] == ("shift", *"abcdef", "<pad>")
    assert [" ".join(item[1:8, 0]) for item in run.targets] == ["g f e d c b a", "b c d e f a "]
    assert run.accuracy == {"answer": 1.0}
    assert run.recording.traces[0].query_padding.sum() == 1


@pytest.mark.parametrize(
    ("model", "words", "message", "nearest"),
    [
        ("induction", "a b a", "must begin each line with <bos>, and one begins with 'a'", "<bos> a b a"),
        (
            "induction",
            "<bos> a 7 a",
            "holds '7' where the model cannot read it. It reads <bos> at the beginning, a to z",
            "<bos> a a",
        ),
        ("induction", "<bos> A b a", "holds 'A'", "<bos> a b a"),
        ("induction", "<bos> a <bos> a", "holds '<bos>'", "<bos> a a"),
        ("induction", "<bos>", "must hold at least 1 of a to z", "<bos> a"),
        ("induction", "<bos>" + " a" * 40, "holds a line of 41 tokens, and the model knows 32 positions", "<bos>" + " a" * 31),
        ("induction", "<bos> a b\n<bos> a", "must hold lines of one length, and these have 2, 3", "<bos> a\n<bos> a"),
        ("reverse-or-shift", "a b c", "must begin each line with reverse or shift", "reverse a b c"),
        ("reverse-or-shift", "shift a <pad> b <pad>", "holds '<pad>' where the model cannot read it", "shift a b <pad>"),
        ("look-both-ways-2", "a b", "must hold at least 3 of a to j", "a b a"),
        ("look-both-ways-2", "a b z c", "holds 'z' where the model cannot read it. It reads a to j.", "a b c"),
        ("look-both-ways-1", "\n".join(["a b c"] * 65), "holds 65 lines, and may hold 64", "\n".join(["a b c"] * 64)),
    ],
)
def test_words_that_the_model_cannot_read(model, words, message, nearest):
    with pytest.raises(Wrong, match=message.replace("(", r"\(")) as caught:
        Trained(model=model, words=words)
    assert caught.value.nearest == ({"words": nearest},)
    Trained(model=model, words=nearest)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": "deduction"}, "must be one of induction"),
        ({"snapshot": 55}, "no step after which induction was kept"),
        ({"snapshot": -1}, "must be a whole number from 0"),
        ({"seed": -1}, "must be a whole number"),
        ({"batch_size": 65}, "from 1 to 64"),
        ({"words": " "}, "must hold at least one word"),
        ({"interventions": "2:0=zero"}, "names layer 2, and induction has 2"),
        ({"interventions": "1:4=zero"}, "in layer 1 names head 4, and there are 4"),
        ({"interventions": "1:keys=5,32"}, "in layer 1 names key 32, and there are 32"),
        ({"interventions": "1:2"}, "must be written LAYER:WHAT"),
    ],
)
def test_settings_that_are_none(values, message):
    with pytest.raises(Wrong, match=message) as caught:
        Trained(**values)
    for nearest in caught.value.nearest:
        Trained(**values | nearest)


def test_nothing_changed_is_nothing():
    assert Trained(interventions=(Intervention(), Intervention())) == Trained(interventions=" ") == Trained()


def test_a_change_in_a_layer_reaches_the_next():
    """Without layer 0's previous-token head, the heads of layer 1 find nothing."""
    plain = trained(Trained())
    carrier = int(np.argmax(record("induction")["final"]["roles"]["previous token"][0]))
    run = trained(Trained(interventions=(Intervention({carrier: "zero"}),)))
    assert not run.recording.traces[0].weights[:, carrier].any()
    assert np.array_equal(run.recording.traces[0].q, plain.recording.traces[0].q)
    assert not np.allclose(run.recording.traces[1].q, plain.recording.traces[1].q)
    assert run.accuracy["next"] < 0.5 < plain.accuracy["next"]
    assert run.recording.notes == (f"Layer 0, head {carrier} is off: its output is 0.",)


def test_a_position_that_may_read_nothing_answers_nothing():
    """<bos> hidden from itself is undefined, and in layer 1 it is alone with that."""
    run = trained(Trained(interventions="1:keys=0", batch_size=1))
    assert np.isnan(run.probability[0, 0]).all() and not run.right[0, 0].any()
    assert np.isfinite(run.probability[0, 1:]).all()


def test_a_snapshot_of_the_beginning_knows_nothing():
    assert trained(Trained(snapshot=0)).accuracy["next"] < 0.2


def test_accuracy_with_and_without():
    settings = Trained(model="look-both-ways-2", interventions="0:0=zero")
    without, with_it = accuracy(settings)
    assert without.accuracy == record("look-both-ways-2")["final"]["accuracy"]
    assert sorted(with_it.accuracy.values()) == [pytest.approx(0.1, abs=0.05), pytest.approx(1, abs=0.01)], (
        "one neighbour is lost"
    )
    plain = replace(settings, interventions="")
    assert accuracy(plain) == (without, without)
    early = accuracy(replace(plain, snapshot=0))[0]
    assert early.accuracy == record("look-both-ways-2")["snapshots"][0]["accuracy"]
