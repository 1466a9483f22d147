"""Pictures from a notebook: what one has at hand is drawn in one line, or told what to pass."""

from types import SimpleNamespace

import plotly.graph_objects as go
import pytest
import torch

import mha_viz as mv
from mha_viz.core.rules import Wrong
from mha_viz.settings import Settings, View

SMALL = Settings(embed_dim=8, num_heads=4, seq_len=5, batch_size=2, padding=())
TOKENS = ["[CLS]", "the", "cat", "sat", "[SEP]"]


def weights(*shape):
    """Random maps [..., L, S] whose rows sum to 1."""
    return torch.softmax(torch.randn(*shape, generator=torch.Generator().manual_seed(0)), dim=-1)


def tiles(figure):
    return [tile["head"] for tile in figure.layout.meta["tiles"]]


def tokens(figure):
    return figure.layout.meta["queries"], figure.layout.meta["keys"]


@pytest.mark.parametrize("name", ["heads", "head", "average", "pair", "lines", "layers", "page"])
def test_each_view_draws_a_trace(name):
    figure = getattr(mv, name)(mv.synthetic(SMALL), width=700)
    assert isinstance(figure, go.Figure) and figure.layout.width == 700
    assert getattr(mv, name).__doc__ and getattr(mv, name).__name__ == name


def test_what_is_shown_and_how_is_said_by_name():
    figure = mv.heads(mv.synthetic(SMALL), item=1, heads=[2, "mean"], colors="grey", limits=[0, 0.5], theme="dark", title=False)
    assert tiles(figure) == [2, None] and figure.layout.coloraxis.cmax == 0.5
    assert mv.pair(mv.synthetic(SMALL), view=View(head=3), item=1).layout.meta["chosen"]["head"] == 3


def test_a_difference_of_two():
    figure = mv.difference(mv.synthetic(SMALL), mv.synthetic(Settings(**{**vars(SMALL), "seed": 8})))
    assert {tile["source"] for tile in figure.layout.meta["tiles"]} == {"a", "b", "difference"}


def test_a_recording_and_the_run_of_a_model():
    run = mv.trained(mv.Trained("look-both-ways-2", batch_size=1))
    for of in (run, run.recording, run.recording.traces[0]):
        assert set(tiles(mv.heads(of))) == {0, 1, None}


# What others take


def test_what_bertvizs_examples_pass_in():
    """``outputs.attentions``: a tuple with a tensor [1, H, L, L] per layer; ``tokens`` from convert_ids_to_tokens."""
    attention = tuple(weights(1, 3, 5, 5) for _ in range(4))
    figure = mv.heads(attention, TOKENS, layer=2, head=1)
    assert set(tiles(figure)) == {0, 1, 2, None} and tokens(figure) == (TOKENS, TOKENS)
    assert len(tiles(mv.layers(attention, TOKENS))) == 12


def test_cross_attention_has_tokens_of_its_own():
    figure = mv.pair((weights(1, 2, 3, 5),), ["le", "chat", "dort"], TOKENS)
    assert tokens(figure) == (["le", "chat", "dort"], TOKENS)


def test_what_circuitsviss_examples_pass_in():
    """A pattern [H, L, S] beside its tokens, by name and in either order; one map [L, S]."""
    pattern = weights(4, 5, 5)
    for figure in (mv.heads(attention=pattern, tokens=TOKENS), mv.heads(pattern.numpy(), TOKENS), mv.heads(list(pattern), TOKENS)):
        assert set(tiles(figure)) == {0, 1, 2, 3, None}
    assert tiles(mv.head(pattern[0], TOKENS)) == [0]
    assert tiles(mv.head([[0.5, 0.5], [1.0, 0.0]], ["a", "b"])) == [0]


def test_all_layers_in_one_array_and_several_batch_items():
    assert len(tiles(mv.layers(weights(3, 1, 2, 5, 5)))) == 6
    figure = mv.heads(weights(2, 3, 5, 5), [TOKENS, TOKENS[::-1]], item=1)
    assert tokens(figure)[0] == TOKENS[::-1]


@pytest.mark.parametrize(
    ("attention", "said"),
    [
        (None, "attn_implementation=\"eager\""),
        ((None, None), "attn_implementation=\"eager\""),
        (SimpleNamespace(attentions=(weights(1, 2, 3, 3),)), r"pass outputs\.attentions\."),
        (SimpleNamespace(attentions=None), r"pass outputs\.attentions, from .*eager"),
        ({"pattern": weights(2, 3, 3)}, "of a cache, one pattern"),
        (((weights(1, 2, 3, 3),), (weights(1, 2, 1, 4),)), r"attentions\[step\]"),
        (torch.randn(2, 3, 3), "scores from before the softmax"),
        (torch.ones(2, 3, 3, dtype=torch.long), "floating type"),
        (torch.ones(3), r"must be weights \[N, H, L, S\]"),
        ("attention.npy", "cannot be read|floating type"),
    ],
)  # fmt: skip
def test_what_holds_no_weights_is_told_what_to_pass(attention, said):
    with pytest.raises(Wrong, match=said):
        mv.heads(attention)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tokens": TOKENS[:3]}, "tokens.*must name 5 tokens"),
        ({"tokens": torch.tensor([101, 7, 102])}, "convert_ids_to_tokens"),
        ({"tokens": "the cat sat"}, "one sequence of texts|must name"),
        ({"layer": 1}, "there is 1, layer 0"),
        ({"head": 9}, "head = 9"),
        ({"heads": [9]}, "points to head 9"),
        ({"colour": "grey"}, "is colors meant|is no setting"),
        ({"theme": "sepia"}, "light, dark, print"),
        ({"width": 100}, "320 to 3840"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named(given, said):
    with pytest.raises(Wrong, match=said):
        mv.heads(weights(3, 5, 5), **given)


def test_a_trace_knows_its_own_tokens():
    with pytest.raises(Wrong, match="a Trace knows its own"):
        mv.heads(mv.synthetic(SMALL), TOKENS)
