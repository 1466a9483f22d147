"""Captions, alternative texts and the address in them."""

import numpy as np
import pytest

from mha_viz.export.figure import Figure
from mha_viz.export.make import made, shown
from mha_viz.export.paste import PROGRAMS
from mha_viz.export.words import address_of, caption, markdown, view_address_of
from mha_viz.views import HEAD, HEADS, PAGE, PAIR


def what(**asked):
    return shown(Figure(**asked))


def test_a_caption_says_what_of_what_with_which_shapes_settings_and_versions():
    said = caption(what(address="?num_heads=4&causal=1&head=2&item=1", heads="2,mean"), PAIR)
    assert said.startswith("Attention of head 2 beside the average of all heads, batch item 1 of untrained layer, seed 7.")
    assert "[N, H, L, S] = [3, 4, 20, 20]; causal, 3, 0, 0 padded tokens per item, right." in said
    assert "Settings: ?num_heads=4&causal=1&item=1&head=2." in said
    assert "MHA Explorer" in said and "torch 2." in said and "numpy" in said


def test_the_layer_of_several_is_named():
    assert ", layer 1." in caption(what(address="?source=trained", layer=1), HEAD)


def test_heads_that_were_asked_for_are_told():
    assert "Attention of heads 2 and 5 and the average of all 8 heads," in caption(what(heads="2,5,mean"), HEADS)
    assert "Attention of heads 5 and 2," in caption(what(heads="5,2"), HEADS), "in the order that was asked for"
    assert "Attention of all 8 heads and their average," in caption(what(), PAGE)


@pytest.mark.parametrize(
    ("address", "heads"),
    [
        ("?heads=2,5", [5, 2, None]),  # by difference, as on the page
        ("?heads=2,5&order=index", [2, 5, None]),
        ("?heads=5,2&order=listed", [5, 2, None]),
        ("?heads=2,5&arrangement=all", [5, 2, None]),
        ("?heads=2,5&arrangement=one", [5]),
        ("?heads=2,5&picture=lines", [5, None]),
        ("?heads=2,5&picture=lines&arrangement=all", [5, 2, None]),
        ("?arrangement=one&head=3", [3]),
    ],
)
def test_caption_table_program_and_case_are_of_the_heads_on_screen(address, heads):
    one = what(address=address)
    assert PAGE.heads(one) == heads
    numbers = [head for head in heads if head is not None]
    assert one.head == numbers[0], "the chosen head is one of them"
    assert " and ".join(map(str, numbers)) in caption(one, PAGE).partition(",")[0]
    table = made(Figure(out="a.csv", address=address), None)[0].decode().splitlines()[1:]
    named = list(dict.fromkeys(line.split(",")[1] for line in table))
    assert named == ["average" if head is None else str(head) for head in heads]
    for language in ("torch", "numpy"):
        program = PROGRAMS[language](one, "page")
        assert f"shown_heads = weights[0, {numbers}]" in program and f"head {numbers[0]}:" in program
    assert f"_of_head_{numbers[0]}" in PROGRAMS["pytest"](one, "page")


def test_a_caption_of_a_comparison_says_so_and_what_a_is():
    """The page shows A, B and B − A where something is pinned, of the heads that are chosen."""
    said = caption(what(address="?pinned=seed%3D8"), PAGE)
    assert said.startswith(
        "Attention of A and of B, and what changed from A to B, batch item 0 of untrained layer, seed 7. A: ?seed=8."
    )
    of_some = caption(what(address="?pinned=seed%3D8&heads=2,5"), PAGE)
    assert ", in heads 5 and 2, batch item 0" in of_some or ", in heads 2 and 5, batch item 0" in of_some


def test_the_alternative_text_of_a_pair_speaks_of_the_pair():
    """No strip of all heads stands above it, as it does on the page."""
    _, said = PAIR.drawn(what(address="?head=1"))
    assert said.startswith("Attention maps of head 1 and the average of 8 heads, 20 queries by 20 keys. Head 1 differs")
    _, page = PAGE.drawn(what(address="?head=1"))
    assert page.startswith("Attention maps of all 8 heads")


def test_the_address_of_what_is_shown_shows_the_same():
    of_a_model = "?source=trained&model=look-both-ways-2&layer=0&order=index"
    for address in ("?embed_dim=8&num_heads=4&head=2&words=a+b%0Ac&limits=0%2C0.5", of_a_model):
        one = what(address=address)
        again = what(address=address_of(one))
        assert again.view == one.view and again.source.settings == one.source.settings
        np.testing.assert_array_equal(again.trace.weights, one.trace.weights)
    assert address_of(what()) == ""
    assert view_address_of(what(address="?num_heads=4&head=2")) == "?head=2"


def test_nothing_in_markdown_is_taken_for_markdown():
    assert markdown("a b.svg", "[CLS] *x* <b>", "a_b") == "![\\[CLS\\] \\*x\\* \\<b\\>](a%20b.svg)\n\na\\_b\n"
    assert markdown("a.svg", "http://host/a", "www.host.example &amp;") == (
        "![http:<!-- -->//host/a](a.svg)\n\nwww<!-- -->.host.example \\&amp;\n"
    )
