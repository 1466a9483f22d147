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
    for figure in (
        mv.heads(attention=pattern, tokens=TOKENS),
        mv.heads(pattern.numpy(), TOKENS),
        mv.heads(list(pattern), TOKENS),
    ):
        assert set(tiles(figure)) == {0, 1, 2, 3, None}
    assert tiles(mv.head(pattern[0], TOKENS)) == [0]
    assert tiles(mv.head([[0.5, 0.5], [1.0, 0.0]], ["a", "b"])) == [0]


def test_all_layers_in_one_array_and_several_batch_items():
    assert len(tiles(mv.layers(weights(3, 1, 2, 5, 5)))) == 6
    figure = mv.heads(weights(2, 3, 5, 5), [TOKENS, TOKENS[::-1]], item=1)
    assert tokens(figure)[0] == TOKENS[::-1]


# Which axis is which


def read(figure):
    """What the picture says below: as it stands in the layout, and as one line is drawn of it."""
    drawn = " ".join(note.text.replace("<br>", " ") for note in figure.layout.annotations if note.text)
    assert figure.layout.meta["read"] in drawn
    return figure.layout.meta["read"].removeprefix("Read as ")


def test_queries_of_a_grid_are_asked_about_and_drawn_as_queries():
    """Cross-attention of a diffusion block: 5 heads, 6 × 6 places of the picture, 77 words."""
    maps = weights(2, 5, 6, 6, 77)
    with pytest.raises(Wrong, match="layers, or queries in a grid") as wrong:
        mv.heads(maps)
    assert wrong.value.nearest == ({"axes": "N H L L S"}, {"axes": "layer N H L S"})
    for axes in ("N H L L S", "NHLLS"):
        figure = mv.heads(maps, axes=axes, item=1)
        assert set(tiles(figure)) == {0, 1, 2, 3, 4, None} and [len(one) for one in tokens(figure)] == [36, 77]
    assert read(figure) == "2 items × 5 heads × 36 queries (6 × 6) × 77 keys"
    as_layers = mv.heads(maps, axes="layer N H L S", layer=1)
    assert len(tiles(as_layers)) == 7 and read(as_layers) == "2 layers × 5 items × 6 heads × 6 queries × 77 keys"


def test_averaged_maps_are_items_where_that_is_said_or_their_tokens_say_it():
    averaged = weights(3, 5, 5)
    assert read(mv.heads(averaged)) == '3 heads × 5 queries × 5 keys; items averaged over heads are axes="N L S"'
    for figure in (mv.heads(averaged, axes="N L S", item=2), mv.heads(averaged, [TOKENS] * 3, item=2)):
        assert tiles(figure) == [0, None] and read(figure) == "3 items × 5 queries × 5 keys, of one head or averaged"
    assert figure.layout.meta["queries"] == TOKENS


@pytest.mark.parametrize(
    ("shape", "axes", "said"),
    [
        ((5, 5), None, "5 queries × 5 keys, of one head or averaged"),
        ((1, 5, 5), None, "1 head × 5 queries × 5 keys"),
        ((2, 3, 5, 5), None, "2 items × 3 heads × 5 queries × 5 keys"),
        ((4, 1, 3, 5, 5), None, "4 layers × 1 item × 3 heads × 5 queries × 5 keys"),
        ((5, 6, 6, 77), None, '5 items × 6 heads × 6 queries × 77 keys; queries in a grid are axes="H L L S"'),
        ((5, 6, 6, 77), "H L L S", "5 heads × 36 queries (6 × 6) × 77 keys"),
        ((3, 4, 2, 5), "L N H S", "4 items × 2 heads × 3 queries × 5 keys"),
        ((2, 3, 5, 5), "layer H L S", "2 layers × 3 heads × 5 queries × 5 keys"),
    ],
)
@pytest.mark.parametrize("name", ["heads", "head", "average", "pair", "lines", "layers", "page"])
def test_every_picture_says_what_was_taken_for_what(name, shape, axes, said):
    assert read(getattr(mv, name)(weights(*shape), axes=axes)) == said


def test_pictures_of_lists_and_differences_say_it_too():
    assert (
        read(mv.heads([weights(3, 5, 5)] * 2, axes="N L S"))
        == "2 layers × 3 items × 5 queries × 5 keys, of one head or averaged"
    )
    both = mv.difference(weights(2, 3, 5, 5), weights(1, 3, 5, 5)).layout.meta["read"]
    assert both == "Read A as 2 items × 3 heads × 5 queries × 5 keys; B as 1 item × 3 heads × 5 queries × 5 keys"
    assert "read" not in mv.difference(mv.synthetic(SMALL), mv.synthetic(SMALL)).layout.meta
    assert not any("Read" in (note.text or "") for note in mv.heads(weights(2, 3, 5, 5), title=False).layout.annotations)


@pytest.mark.parametrize("axes", ["H L", "H H S", "H L S N", "H Q S", "L L S S S", "", 3])
def test_axes_that_name_no_map_are_refused(axes):
    with pytest.raises(Wrong, match="axes"):
        mv.heads(weights(3, 5, 5), axes=axes)


def test_a_trace_knows_its_own_axes():
    with pytest.raises(Wrong, match=r"axes.*a Trace knows its own"):
        mv.heads(mv.synthetic(SMALL), axes="N H L S")


@pytest.mark.parametrize(
    ("attention", "said"),
    [
        (None, 'attn_implementation="eager"'),
        ((None, None), 'attn_implementation="eager"'),
        (SimpleNamespace(attentions=(weights(1, 2, 3, 3),)), r"pass outputs\.attentions\."),
        (SimpleNamespace(attentions=None), r"pass outputs\.attentions, from .*eager"),
        ({"pattern": weights(2, 3, 3)}, "of a cache, one pattern"),
        (((weights(1, 2, 3, 3),), (weights(1, 2, 1, 4),)), r"attentions\[step\]"),
        (torch.randn(2, 3, 3), "scores from before the softmax"),
        (torch.ones(2, 3, 3, dtype=torch.long), "floating type"),
        (torch.ones(3), r"must be weights \[N, H, L, S\]"),
        ("attention.npy", "cannot be read|floating type"),
    ],
)
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
)
def test_a_wrong_option_is_named(given, said):
    with pytest.raises(Wrong, match=said):
        mv.heads(weights(3, 5, 5), **given)


def test_a_trace_knows_its_own_tokens():
    with pytest.raises(Wrong, match="a Trace knows its own"):
        mv.heads(mv.synthetic(SMALL), TOKENS)
