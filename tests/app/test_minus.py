"""Numbers in prose and pictures have a real minus, in front and in their exponents; what is copied has the hyphen of the keyboard. The
tests of lessons and pitfalls, which open each, see to theirs."""

import numpy as np
import pytest
from torch import nn

from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.decimals import fill, prose
from mha_viz.core.layer import Layer
from mha_viz.export.figure import figure_of
from mha_viz.export.make import shown
from mha_viz.figures.parts import ALL
from mha_viz.views import VIEWS
from mha_viz.views.base import OfAttention
from tests.app.hyphens import HYPHEN, hyphened
from tests.app.panels.test_file import give, npz, opened_with, pt
from tests.app.screen import models, opened, to_page


@pytest.mark.slow
@pytest.mark.parametrize(
    "address",
    [
        {"opened": "1"},
        {"opened": "1", "case": "tiny"},
        {"pinned": "seed=8", "opened": "1"},
        {"what_if": "0:1=zero", "opened": "1"},
        {"training": "1", "opened": "1"},
        {"embed_dim": "8", "num_heads": "2", "attn_mask": "0 -2.5\n-1 0", "seq_len": "2", "padding": "", "opened": "1"},
        {"weighting": "norms", "opened": "1"},
    ],
)
def test_explore(address):
    at = opened(**address)
    assert not at.exception and hyphened(at) == []


@pytest.mark.parametrize("page", ["decode", "validate"])
@pytest.mark.parametrize("address", [{}, {"training": "1", "dropout": "0.5"}])
def test_pages_of_one_layer(page, address):
    at = to_page(opened(), page, **address)
    assert not at.exception and hyphened(at) == []


@pytest.mark.parametrize("step", ["scale", "softmax", "output", "project"])
def test_steps(step):
    at = to_page(opened(), "steps", step=step)
    assert not at.exception and hyphened(at) == []


@pytest.mark.parametrize(
    "address", [{"model": "induction", "what_if": "0:1=zero", "pinned": "model=induction"}, {"snapshot": "0"}]
)
def test_models(address):
    at = models(**address)
    assert not at.exception and hyphened(at) == []


def test_what_is_known_of_weights():
    state = nn.MultiheadAttention(16, 4).state_dict()
    at = opened_with("layer.pt", pt(state))
    query = np.random.default_rng(0).standard_normal((1, 3, 16), np.float32)
    output = attend(Layer.from_state_dict(state, num_heads=4), Batch(query)).output
    at = give(at, "known", "known.npz", npz(query=query, output=output))
    assert at.success and hyphened(at) == []
    at = give(at, "known", "known.npz", npz(query=query, output=output + 1e-7 * 0.5 + np.float32(1e-2)))
    assert hyphened(at) == []


def texts_of(figure):
    """Every text that a figure holds."""
    if isinstance(figure, dict):
        for name, value in figure.items():
            if name in ("text", "hovertext", "ticktext", "name", "title"):
                yield from [value] if isinstance(value, str) else []
                yield from (one for one in (value if isinstance(value, list | tuple) else ()) if isinstance(one, str))
            yield from texts_of(value)
    elif isinstance(figure, list | tuple):
        for one in figure:
            yield from texts_of(one)


@pytest.mark.parametrize("view", [name for name, view in VIEWS.items() if isinstance(view, OfAttention) and name != "window"])
@pytest.mark.parametrize("step", ["scale", "output"])
def test_pictures_and_what_they_say(view, step):
    address = "?embed_dim=8&num_heads=2&batch_size=1&seq_len=5&padding=&causal=1" if view != "curves" else "?source=trained"
    what = shown(
        figure_of({"address": f"{address}&step={step}", "view": view} | ({"against": "?"} if view == "difference" else {}))
    )
    spec, alt = VIEWS[view].drawn(what, theme="light", width=1104, parts=ALL)
    assert [text for text in (*texts_of(spec), alt) if HYPHEN.search(text)] == []


def test_one_function_decides():
    assert (prose(-0.5, ".2f"), prose(0.000002, ".1e"), prose(1, "+d")) == ("−0.50", "2.0e−06", "+1")
    assert fill("{} is {:.1e} of {name}", "gt-2 -1", 1e-8, name="a-b") == "gt-2 -1 is 1.0e−08 of a-b"
