"""Settings that do not go together: each Wrong holds the value as it was given, and every set of nearest right ones."""

import pytest

from mha_viz.core.rules import Wrong
from mha_viz.settings import Settings
from mha_viz.settings.settings import MOST_LINES

CASES = [
    ({"source_padding": (1,)}, "source_padding", [{"source_padding": ()}]),
    ({"words": "a b\nc", "source_words": "x y"}, "source_words", [{"source_words": "x y\nx y"}]),
    ({"words": "a b\nc", "source_words": "x y\nz\nu v w"}, "source_words", [{"source_words": "x y\nz"}]),
    ({"batch_size": 2, "source_words": "x y"}, "source_words", [{"batch_size": 1}, {"source_words": "x y\nx y"}]),
    ({"batch_size": 3, "source_words": "x y\nz"}, "source_words", [{"batch_size": 2}, {"source_words": "x y\nz\nz"}]),
    ({"case": "tiny", "embed_dim": 8}, "embed_dim", [{"embed_dim": 4, "num_heads": 2, "case": "random"}, {"case": "random"}]),
    ({"batch_size": 1, "padding": (1, 2)}, "padding", [{"padding": (1,)}, {"batch_size": 2}]),
    ({"words": "a b", "padding": (1, 2)}, "padding", [{"padding": (1,)}]),
    ({"seq_len": 4, "batch_size": 2, "padding": (1, 5)}, "padding", [{"padding": (1, 3)}, {"seq_len": 6}]),
    ({"seq_len": 4, "batch_size": 2, "padding": (4, 5)}, "padding", [{"padding": (4, 3)}, {"seq_len": 6}]),
    (
        {"seq_len": 4, "batch_size": 2, "source_len": 3, "source_padding": (1, 5)},
        "source_padding",
        [{"source_padding": (1, 2)}, {"source_len": 6}],
    ),
    ({"seq_len": 0, "batch_size": 2, "padding": (1, 5)}, "seq_len", [{"seq_len": 6}]),
    ({"padding": (-1, 2)}, "padding", [{"padding": (0, 2)}]),
    ({"padding": 5}, "padding", [{"padding": ()}]),
    ({"causal": "yes"}, "causal", [{"causal": True}, {"causal": False}]),
    ({"source_words": "  "}, "source_words", [{"source_words": None}]),
]


@pytest.mark.parametrize(("values", "argument", "nearest"), CASES)
def test_a_wrong_holds_what_was_given_and_all_that_is_near(values, argument, nearest):
    with pytest.raises(Wrong) as refused:
        Settings(**values)
    assert (refused.value.argument, refused.value.value) == (argument, values[argument])
    assert list(refused.value.nearest) == nearest


def test_the_words_of_a_long_source_are_not_written_out():
    lines = "\n".join(["x"] * (MOST_LINES + 1))
    with pytest.raises(Wrong) as refused:
        Settings(words=lines, source_words="x")
    assert refused.value.nearest == ()
    with pytest.raises(Wrong) as refused:
        Settings(words="\n".join(["x"] * MOST_LINES), source_words="x")
    assert [*refused.value.nearest] == [{"source_words": "\n".join(["x"] * MOST_LINES)}]


def test_texts_may_be_padded_beyond_their_words():
    assert (Settings(words="x y z", padding=(9,)).L, Settings(words="x\ny z", padding=(4,)).L) == (5 + 7, 5)
    assert Settings(batch_size=1, source_words="x y z", source_padding=(9,)).S == 12


def test_what_does_not_touch_its_numbers_may_be_changed_in_the_tiny_case():
    free = {
        "causal": True,
        "window": 2,
        "training": True,
        "dropout": 0.5,
        "seed": 3,
        "batch_first": False,
        "padding_side": "left",
    }
    sizes = {"embed_dim": 4, "num_heads": 2, "batch_size": 1, "seq_len": 3}
    made = Settings(case="tiny", **sizes, **free, padding=(1,), attn_mask="010/000/000")
    assert made.causal and made.padding == (1,)
