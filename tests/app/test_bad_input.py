"""Every wrong value, set by hand or in a link: the page says what is wrong, and nothing else that was set is lost."""

from dataclasses import dataclass, field

import pytest

from mha_viz import Settings, Wrong, synthetic
from mha_viz.app.number_field import typed
from mha_viz.app.panels.random import change_cross, is_cross, prepare_mask
from mha_viz.app.parts.messages import assigned, spelled_change
from mha_viz.app.state import Looking
from mha_viz.settings import to_address
from tests.app.pages.test_explore import shows
from tests.app.screen import held, opened, press, read, sent, set_to, unescaped, unfolded

KEPT = {"seed": 11, "causal": True}  # what is set besides
WORDS, SOURCE, WINDOW, OWN_MASK = {"own_words": True}, {"cross": True}, {"windowed": True}, {"masked": True}
SOURCE_WORDS = WORDS | SOURCE


@dataclass
class ByHand:
    """``text`` typed into the widget ``name`` of a page where KEPT is set, what is said, and a button that mends it.

    ``before`` are the switches that unfold the widget; ``mended`` the fields that the button changes.
    """

    name: str
    text: str
    says: str
    button: str = ""
    mended: dict = field(default_factory=dict)
    before: dict = field(default_factory=dict)

    def __str__(self):
        return f"{self.name}={self.text[:20]!r}"


@dataclass
class ByLink:
    """An address with these values, what is said to it, and what the picture shows instead.

    ``instead`` are the fields of Settings that stand where the wrong ones are left out; None where each value is right by itself,
    so that nothing is left out and no picture is there yet.
    """

    query: dict
    says: str
    instead: dict | None = field(default_factory=dict)

    def __str__(self):
        return "&".join(f"{name}={value}"[:24] for name, value in self.query.items())


BY_HAND = [
    # embed_dim and num_heads
    ByHand(
        "num_heads", "7", "embed_dim must be divisible by num_heads, but 128 = 7 × 18 + 2", "num_heads = 8", {"num_heads": 8}
    ),
    ByHand("embed_dim", "130", "130 = 8 × 16 + 2", "embed_dim = 136", {"embed_dim": 136}),
    ByHand("embed_dim", "130", "130 = 8 × 16 + 2", "num_heads = 10", {"embed_dim": 130, "num_heads": 10}),
    ByHand("embed_dim", "4", "4 = 8 × 0 + 4", "num_heads = 4", {"embed_dim": 4, "num_heads": 4}),
    ByHand("embed_dim", "0", "embed_dim = 0: must be a whole number from 1", "embed_dim = 8", {"embed_dim": 8}),
    ByHand("embed_dim", "-8", "embed_dim = -8: must be a whole number from 1", "embed_dim = 8", {"embed_dim": 8}),
    ByHand("embed_dim", "", "embed_dim = none: must be a whole number from 1", "embed_dim = 8", {"embed_dim": 8}),
    ByHand("embed_dim", "many", "embed_dim = many: must be a whole number from 1", "embed_dim = 128", {"embed_dim": 128}),
    ByHand("embed_dim", "1,5", "embed_dim = 1,5: must be a whole number from 1", "embed_dim = 8", {"embed_dim": 8}),
    ByHand("seq_len", "1 000", "seq_len = 1 000: must be a whole number from 1", "seq_len = 1000"),
    ByHand("seed", "0x10", "seed = 0x10: must be a whole number from 0", "seed = 16", {"seed": 16}),
    ByHand("seed", "1_000", "seed = 1_000: must be a whole number from 0", "seed = 1000", {"seed": 1000}),
    ByHand("dropout", "0,5", "dropout = 0,5: must be a probability", "dropout = 0.5", {"dropout": 0.5}),
    ByHand("embed_dim", "9007199254740991", "embed_dim = 9007199254740991: must be a whole number from 1 to"),
    ByHand("embed_dim", "98304", "embed_dim = 98304: the weights would take"),
    ByHand("num_heads", "0", "num_heads = 0: must be a whole number from 1", "num_heads = 1", {"num_heads": 1}),
    ByHand("num_heads", "-1", "num_heads = -1: must be a whole number from 1", "num_heads = 1", {"num_heads": 1}),
    ByHand("num_heads", "", "num_heads = none: must be a whole number", "num_heads = 1", {"num_heads": 1}),
    # sizes
    ByHand("batch_size", "0", "batch_size = 0: must be a whole number from 1", "batch_size = 1", {"batch_size": 1}),
    ByHand("batch_size", "", "batch_size = none: must be a whole number", "batch_size = 1", {"batch_size": 1}),
    ByHand("batch_size", "-1", "batch_size = -1: must be a whole number from 1", "batch_size = 1", {"batch_size": 1}),
    ByHand("seq_len", "0", "seq_len = 0: must be a whole number from 1"),
    ByHand("seq_len", "-3", "seq_len = -3: must be a whole number from 1"),
    ByHand("seq_len", "100000", "seq_len = 100000: [N, H, L, S] = [3, 8, 100000, 100000] would take"),
    ByHand("seq_len", "2", "padding = 3: pads 3 tokens of item 0, which has 2", "padding = 1", {"seq_len": 2, "padding": (1,)}),
    ByHand("source_len", "0", "source_len = 0: must be a whole number from 1", "source_len = 1", {"source_len": 1}, SOURCE),
    ByHand("kdim", "0", "kdim = 0: must be a whole number from 1", "kdim = 1", {"kdim": 1}),
    ByHand("vdim", "-2", "vdim = -2: must be a whole number from 1", "vdim = 1", {"vdim": 1}),
    ByHand("window", "0", "window = 0: must be a whole number from 1", "window = 1", {"window": 1}, WINDOW),
    # seed and dropout
    ByHand("seed", "1.5", "seed = 1.5: must be a whole number from 0", "seed = 2", {"seed": 2}),
    ByHand("embed_dim", "12.8", "embed_dim = 12.8: must be a whole number from 1", "embed_dim = 16", {"embed_dim": 16}),
    ByHand("window", "2.5", "window = 2.5: must be a whole number from 1", "window = 2", {"window": 2}, WINDOW),
    ByHand("seed", "-1", "seed = -1: must be a whole number from 0", "seed = 0", {"seed": 0}),
    ByHand("seed", "", "seed = none: must be a whole number from 0", "seed = 0", {"seed": 0}),
    ByHand("dropout", "1.5", "dropout = 1.5: must be a probability, from 0 to 1", "dropout = 1.0", {"dropout": 1.0}),
    ByHand("dropout", "-0.1", "dropout = -0.1: must be a probability, from 0 to 1", "dropout = 0.0", {"dropout": 0.0}),
    ByHand("dropout", "", "dropout = none: must be a probability", "dropout = 0.0", {"dropout": 0.0}),
    # padding
    ByHand(
        "padding",
        "three",
        "padding = three: must be whole numbers, 0 or more, one per batch item",
        "padding = 0",
        {"padding": ()},
    ),
    ByHand(
        "padding",
        "3, x",
        "must be whole numbers, 0 or more, one per batch item, and 'x' is not",
        "padding = 3,0",
        {"padding": (3,)},
    ),
    ByHand("padding", "1.5", "must be whole numbers, 0 or more"),
    ByHand(
        "padding", "-1", "must be whole numbers, 0 or more, one per batch item, and -1 is not", "padding = 0", {"padding": ()}
    ),
    ByHand(
        "padding",
        "1, 2, 3, 4",
        "names 4 batch items, and there are 3",
        "batch_size = 4",
        {"padding": (1, 2, 3, 4), "batch_size": 4},
    ),
    ByHand("padding", "1, 2, 3, 4", "names 4 batch items, and there are 3", "padding = 1,2,3", {"padding": (1, 2, 3)}),
    ByHand("padding", "25", "pads 25 tokens of item 0, which has 20", "seq_len = 26", {"padding": (25,), "seq_len": 26}),
    ByHand("padding", "25", "pads 25 tokens of item 0, which has 20", "padding = 19", {"padding": (19,)}),
    ByHand("padding", "99999999999999999999", "must be whole numbers"),
    ByHand(
        "source_padding",
        "13",
        "source_padding = 13: pads 13 tokens of item 0, which has 12",
        "source_len = 14",
        {"source_len": 14, "source_padding": (13,)},
        SOURCE,
    ),
    # words and masks
    ByHand("words", "", "must hold at least one word", before=WORDS),
    ByHand("words", "   ", "must hold at least one word", before=WORDS),
    ByHand("source_words", "only one line", "must hold one line per batch item: 2, but 1", before=SOURCE_WORDS),
    ByHand("attn_mask", "0 1 2", "attn_mask", before=OWN_MASK),
    ByHand("attn_mask", "cat", "must hold 0 and 1", before=OWN_MASK),
    ByHand("attn_mask", "", "must hold a line per query", before=OWN_MASK),
]

BY_LINK = [
    ByLink({"embed_dim": "130"}, "130 = 8 × 16 + 2", None),
    ByLink({"seq_len": "100000"}, "Up to 32,768 tokens are pooled", None),
    ByLink({"padding": "1,2,3,4"}, "names 4 batch items", None),
    ByLink({"padding": "30"}, "pads 30 tokens of item 0", None),
    ByLink({"embed_dim": "0"}, "embed_dim = 0: must be a whole number"),
    ByLink({"embed_dim": "64.5", "num_heads": "4"}, "embed_dim = 64.5: must be a whole number", {"num_heads": 4}),
    ByLink({"num_heads": ""}, "num_heads = empty: must be a whole number"),
    ByLink({"seq_len": "9" * 30}, "must be a whole number from 1 to"),
    ByLink({"window": "0"}, "window = 0: must be a whole number from 1"),
    ByLink({"kdim": "0", "vdim": "24"}, "kdim = 0: must be a whole number from 1", {"vdim": 24}),
    ByLink({"dropout": "1.5"}, "dropout = 1.5: must be a probability"),
    ByLink({"dropout": "nan"}, "dropout = nan: must be a probability"),
    ByLink({"training": "maybe"}, "training = maybe: must be true or false"),
    ByLink({"padding_side": "up"}, "padding_side = up: must be one of"),
    ByLink({"padding": "a,b"}, "must be whole numbers"),
    ByLink({"words": ""}, "must hold at least one word"),
    ByLink({"attn_mask": "cat"}, "must hold 0 and 1"),
    ByLink({"foo": "3", "seq_len": "9"}, "foo = 3: is no setting", {"seq_len": 9}),
    ByLink({"embed_dimm": "64"}, "is no setting; is embed_dim meant?"),
    ByLink({"<script>alert(1)</script>": "<b>x</b>"}, "<b>x</b>: is no setting"),
    ByLink({"order": "best"}, "order = best: must be one of"),
    ByLink({"item": "-1"}, "item = -1: must be a whole number from 0"),
    ByLink({"cell": "6"}, "must be a query and a key"),
    ByLink({"cell": "x,9"}, "must be a query and a key, whole numbers"),
    ByLink({"heads": ""}, "must name at least one head"),
    ByLink({"limits": "1,0"}, "the lower first"),
    ByLink({"item": "99"}, "item = 99: points to 99, and there are 3"),
    ByLink({"head": "50"}, "head = 50: points to 50, and there are 8"),
    ByLink({"cell": "99,99"}, "points to 99"),
    ByLink({"heads": "50,51"}, "points to 50"),
]


# Of each kind one is tried on the page as well: a pair, a number, an empty field, too much memory, a folded field, texts, switches.
ON_THE_PAGE = {
    "num_heads='7'",
    "embed_dim=''",
    "dropout='1.5'",
    "padding='1, 2, 3, 4'",
    "source_len='0'",
    "window='2.5'",
    "words=''",
    "source_words='only one line'",
    "attn_mask='cat'",
    "padding=30",
    "foo=3&seq_len=9",
    "<script>alert(1)</script>=<b>x</b>",
    "item=99",
}
ALONE = {  # only the page knows how much memory there is, and what stood in a field first
    "seq_len='100000'",
    "seq_len=100000",
    "embed_dim='98304'",
    "embed_dim='many'",
}
ON_THE_PAGE |= ALONE
SWITCHES = {
    "own_words": lambda form: (form.switch(True, "words"), form.put("padding", ""), change_cross(form, is_cross(form))),
    "cross": lambda form: change_cross(form, True),
    "windowed": lambda form: form.switch(True, "window"),
    "masked": lambda form: prepare_mask(form, True),
}
on_the_page = lambda wrongs: pytest.mark.parametrize("wrong", [one for one in wrongs if str(one) in ON_THE_PAGE], ids=str)  # noqa: E731
by_itself = lambda wrongs: pytest.mark.parametrize("wrong", [one for one in wrongs if str(one) not in ALONE], ids=str)  # noqa: E731


def told(wrong):
    """A Wrong as the page says it."""
    return f"{assigned(wrong.argument, wrong.value)}: {wrong.rule}"


@by_itself(BY_HAND)
def test_a_wrong_value_is_told_apart_and_what_is_offered_mends_it(wrong):
    form = Looking().form
    form.change(**KEPT)
    for name in wrong.before:
        SWITCHES[name](form)
    form.put(wrong.name, wrong.text if has_text(wrong.name) else typed(wrong.text))
    with pytest.raises(Wrong) as caught:
        form.settings()
    assert wrong.says in told(caught.value)
    besides = {name: value for name, value in KEPT.items() if name != wrong.name}
    assert form.address().items() >= to_address(**besides).items()
    if wrong.button:
        (right,) = (right for right in caught.value.nearest if spelled_change(right).replace("\\", "") == wrong.button)
        form.change(**right)
        assert form.address().items() >= to_address(**besides).items()
    if wrong.mended:
        assert form.settings() == Settings(**KEPT | wrong.mended)


def has_text(name):
    return "tuple" in str(Settings.__dataclass_fields__[name].type) or name in ("words", "source_words", "attn_mask")


@by_itself(BY_LINK)
def test_what_is_wrong_in_an_address_is_left_out_alone(wrong):
    looking = Looking()
    notes = looking.read(to_address(**KEPT) | wrong.query)
    if wrong.instead is None:
        with pytest.raises(Wrong) as caught:
            looking.form.settings()
        assert wrong.says in told(caught.value)
        return
    said = [*notes, *looking.display.misfits(*synthetic(looking.form.settings()).shape)]
    assert wrong.says in " ".join(map(told, said))
    assert looking.form.settings() == looking.form.good == Settings(**KEPT | wrong.instead)
    assert looking.address().items() >= to_address(**KEPT | wrong.instead).items()


@on_the_page(BY_HAND)
@pytest.mark.slow
def test_a_wrong_value_is_said_and_nothing_else_is_lost(wrong):
    at = unfolded(opened(**to_address(**KEPT)))
    for name, value in wrong.before.items():
        set_to(at, name, value)
    good = sent(at)
    set_to(at, wrong.name, wrong.text)
    assert wrong.says in alerts(at)
    assert "Not current" in read(at, "not-current") and sent(at) == good, "the last good picture stays"
    besides = {name: value for name, value in KEPT.items() if name != wrong.name}
    assert is_set(at, besides)
    if wrong.button:
        press(at, wrong.button)
        assert wrong.says not in alerts(at)
        assert is_set(at, besides)
    if wrong.mended:
        assert shows(at, Settings(**KEPT | wrong.mended)) and not read(at, "not-current")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["embed_dim", "batch_size", "seq_len"])
def test_what_is_advised_for_a_number_beyond_all_has_room(name, monkeypatch):
    """100,000 is the largest that may be named, and more than this machine holds: what is offered leaves no further error."""
    at = opened(**to_address(**KEPT))
    monkeypatch.setattr("mha_viz.core.memory.free", lambda: 200 * 2**20)
    set_to(at, name, "1e20")
    labels = [label for button in at.get("button") if (label := unescaped(button.label)).startswith(f"{name} = ")]
    assert labels and f"{name} = 100000" not in labels
    for label in labels:
        set_to(at, name, "1e20")
        press(at, label)
        assert not at.error and not at.exception


@on_the_page(BY_LINK)
def test_a_wrong_link_is_said_and_nothing_else_is_lost(wrong):
    at = opened(**to_address(**KEPT), **wrong.query)
    assert wrong.says in alerts(at)
    if wrong.instead is None:
        assert at.error
    else:
        assert shows(at, Settings(**KEPT | wrong.instead)) and not read(at, "not-current")
        assert at.query_params.items() >= to_address(**KEPT | wrong.instead).items()
    assert is_set(at, KEPT)


def alerts(at):
    """What is called wrong or odd, as it is read."""
    return unescaped(" ".join(alert.value for alert in (*at.error, *at.warning))).replace("**", "")


def is_set(at, fields):
    """Whether the widgets and the address hold these fields."""
    return held(at).items() >= fields.items() and at.query_params.items() >= to_address(**fields).items()
