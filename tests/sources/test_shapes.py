"""The types that sources declare for their arrays are true: each has the shape that its annotation says."""

import numpy as np
import pytest
import torch

from mha_viz.sources.capture.kept import Filters, Kept
from mha_viz.sources.capture.rows import Rows
from mha_viz.sources.capture.run import Run as Recorded
from mha_viz.sources.models import MODELS, Parameters, parameters
from mha_viz.sources.pretrained.encode import Encoded, numbered
from mha_viz.sources.pretrained.load import Loaded
from mha_viz.sources.tasks import TASKS
from mha_viz.sources.trained import Run, Trained, trained
from tests.shapes import SHAPED, check, declared


@pytest.mark.parametrize("name", MODELS)
def test_a_shipped_model_and_its_run(name):
    model, run = MODELS[name], trained(Trained(name, batch_size=3))
    V, E = len(model.vocabulary), model.embed_dim
    check(run, {"N": 3, "L": run.tokens.shape[1], "A": len(run.answers)})
    check(parameters(name), {"V": V, "E": E, "length": run.tokens.shape[1], "A": len(run.answers)})


@pytest.mark.parametrize("name", TASKS)
def test_a_task(name):
    task = TASKS[name]
    tokens = task.draw(np.random.default_rng(0), 5)
    N, L, A = 5, task.length, len(task.answers)
    assert tokens.shape == (N, L) and task.targets(tokens).shape == (N, L, A)
    assert {keys.shape for keys in task.roles(tokens).values()} == {(N, L, L)}
    assert {keys.dtype for keys in task.roles(tokens).values()} == {np.dtype(bool)}


def test_texts_as_tokens():
    model = torch.nn.Module()
    model.config = type("Config", (), {"vocab_size": 9})
    check(numbered(Loaded("nine tokens", model, None, None), ("1 2 3", "4")), {"N": 2, "L": 3})


@pytest.mark.parametrize("items", [None, (1,)])
def test_a_call_that_is_kept(items):
    model = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True)
    run = Recorded(model, Filters(items=items))
    padding = torch.tensor([[False, False, True], [False, False, False]])
    with run.watched():
        model(torch.zeros(2, 3, 8), src_key_padding_mask=padding)
    (kept,) = run.store.calls
    sizes = {"N": 2 if items is None else 1, "L": 3, "S": 3}
    check(kept, sizes)
    check(kept.places, {"L": 3, "S": 3})
    assert kept.query_padding.shape == (sizes["N"], 3)


def test_every_array_that_is_kept_says_its_shape():
    """But for the arrays of Kept, which are of several kinds by their names."""
    for kind in (Run, Parameters, Encoded, Rows):
        assert declared(kind)
        for name, annotation in vars(kind)["__annotations__"].items():
            assert "np.ndarray" not in SHAPED.sub("", annotation), (kind.__name__, name)
    assert "query_padding" in declared(Kept)
