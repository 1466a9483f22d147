"""Every wrong value, typed by hand or in a link: the page says what is wrong, and nothing else that was set is lost."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from mha_viz import Settings
from mha_viz.settings import to_address
from tests.browser.person import eventually
from tests.browser.test_explore import FOLDED, picture_is

pytestmark = pytest.mark.browser


@dataclass
class ByHand:
    """``text`` typed into the widget ``name`` of a causal page with a seed of its own, what is said, and a button that mends it.

    ``before`` is what a person does to get to the widget; ``mended`` the fields that the button changes.
    """

    name: str
    text: str
    says: str
    button: str = ""
    mended: dict = field(default_factory=dict)
    before: callable = lambda person: None

    def __str__(self):
        return f"{self.name}={self.text[:20]!r}"


@dataclass
class ByLink:
    """An address with these values, what is said to it, and what the picture shows instead.

    ``instead`` are the fields of Settings that stand where the wrong ones are left out; None where each value is right by itself,
    so that nothing is left out and the last good picture stays.
    """

    query: dict
    says: str
    instead: dict | None = field(default_factory=dict)

    def __str__(self):
        return "&".join(f"{name}={value}"[:24] for name, value in self.query.items())


def folded(person):
    person.unfold(FOLDED)


def words(person):
    person.click("own_words", "your words")
    eventually(lambda: person.widget("words").count())


def source(person):
    person.click("cross")
    eventually(lambda: person.widget("source_len").count())


def source_words(person):
    words(person)
    person.click("cross")
    eventually(lambda: person.widget("source_words").count())


def window(person):
    person.click("windowed")
    eventually(lambda: person.widget("window").count())


def own_mask(person):
    person.click("masked")
    eventually(lambda: person.widget("attn_mask").count())


BY_HAND = [
    # embed_dim and num_heads
    ByHand("num_heads", "7", "embed_dim must be divisible by num_heads, but 128 = 7 × 18 + 2", "num_heads = 8", {"num_heads": 8}),
    ByHand("embed_dim", "130", "130 = 8 × 16 + 2", "embed_dim = 136", {"embed_dim": 136}),
    ByHand("embed_dim", "130", "130 = 8 × 16 + 2", "num_heads = 10", {"embed_dim": 130, "num_heads": 10}),
    ByHand("embed_dim", "4", "4 = 8 × 0 + 4", "num_heads = 4", {"embed_dim": 4, "num_heads": 4}),
    ByHand("embed_dim", "0", "embed_dim = 0: must be a whole number from 1", "embed_dim = 8", {"embed_dim": 8}),
    ByHand("embed_dim", "-8", "embed_dim = -8: must be a whole number from 1", "embed_dim = 8", {"embed_dim": 8}),
    ByHand("embed_dim", "", "embed_dim = none: must be a whole number from 1", "embed_dim = 8", {"embed_dim": 8}),
    ByHand("embed_dim", "many", "embed_dim = none: must be a whole number from 1", "embed_dim = 8", {"embed_dim": 8}),
    ByHand("embed_dim", "9007199254740991", "embed_dim = 9007199254740991: must be a whole number from 1 to", "embed_dim = 100000"),
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
    ByHand("seq_len", "2", "padding = 3: pads 3 tokens of item 0, which has 2", "padding = 2", {"seq_len": 2, "padding": (2,)}),
    ByHand("source_len", "0", "source_len = 0: must be a whole number from 1", "source_len = 1", {"source_len": 1}, source),
    ByHand("kdim", "0", "kdim = 0: must be a whole number from 1", "kdim = 1", {"kdim": 1}, folded),
    ByHand("vdim", "-2", "vdim = -2: must be a whole number from 1", "vdim = 1", {"vdim": 1}, folded),
    ByHand("window", "0", "window = 0: must be a whole number from 1", "window = 1", {"window": 1}, window),
    # seed and dropout
    ByHand("seed", "-1", "seed = -1: must be a whole number from 0", "seed = 0", {"seed": 0}),
    ByHand("seed", "", "seed = none: must be a whole number from 0", "seed = 0", {"seed": 0}),
    ByHand("dropout", "1.5", "dropout = 1.5: must be a probability, from 0 to 1", "dropout = 1.0", {"dropout": 1.0}, folded),
    ByHand("dropout", "-0.1", "dropout = -0.1: must be a probability, from 0 to 1", "dropout = 0.0", {"dropout": 0.0}, folded),
    ByHand("dropout", "", "dropout = none: must be a probability", "dropout = 0.0", {"dropout": 0.0}, folded),
    # padding
    ByHand("padding", "three", "padding = three: must be whole numbers, 0 or more, one per batch item", "padding = 0", {"padding": ()}),
    ByHand("padding", "3, x", "must be whole numbers, 0 or more, one per batch item, and 'x' is not", "padding = 3,0", {"padding": (3,)}),
    ByHand("padding", "1.5", "must be whole numbers, 0 or more"),
    ByHand("padding", "-1", "must be whole numbers, 0 or more, one per batch item, and -1 is not", "padding = 0", {"padding": ()}),
    ByHand("padding", "1, 2, 3, 4", "names 4 batch items, and there are 3", "batch_size = 4", {"padding": (1, 2, 3, 4), "batch_size": 4}),
    ByHand("padding", "1, 2, 3, 4", "names 4 batch items, and there are 3", "padding = 1,2,3", {"padding": (1, 2, 3)}),
    ByHand("padding", "25", "pads 25 tokens of item 0, which has 20", "seq_len = 25", {"padding": (25,), "seq_len": 25}),
    ByHand("padding", "25", "pads 25 tokens of item 0, which has 20", "padding = 20", {"padding": (20,)}),
    ByHand("padding", "99999999999999999999", "must be whole numbers"),
    ByHand(
        "source_padding", "13", "source_padding = 13: pads 13 tokens of item 0, which has 12",
        "source_len = 13", {"source_len": 13, "source_padding": (13,)}, source,
    ),
    # words and masks
    ByHand("words", "", "must hold at least one word", before=words),
    ByHand("words", "   ", "must hold at least one word", before=words),
    ByHand("source_words", "only one line", "must hold one line per batch item: 2, but 1", before=source_words),
    ByHand("attn_mask", "0 1 2", "attn_mask", before=own_mask),
    ByHand("attn_mask", "cat", "must hold 0 and 1", before=own_mask),
    ByHand("attn_mask", "", "must hold a line per query", before=own_mask),
]  # fmt: skip

BY_LINK = [
    ByLink({"embed_dim": "130"}, "130 = 8 × 16 + 2", None),
    ByLink({"seq_len": "100000"}, "would take", None),
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
    ByLink({"cell": "x,9"}, "must be a whole number"),
    ByLink({"heads": ""}, "must name at least one head"),
    ByLink({"limits": "1,0"}, "the lower first"),
    ByLink({"item": "99"}, "item = 99: points to 99, and there are 3"),
    ByLink({"head": "50"}, "head = 50: points to 50, and there are 8"),
    ByLink({"cell": "99,99"}, "points to 99"),
    ByLink({"heads": "50,51"}, "points to 50"),
]


@pytest.mark.parametrize("wrong", BY_HAND + BY_LINK, ids=str)
def test_a_wrong_value_is_said_and_nothing_else_is_lost(person, wrong):
    (typed_by_hand if isinstance(wrong, ByHand) else followed_a_link)(person, wrong)
    person.saw_nothing_wrong()


STEPS_BACK = """() => {
    let opacity = 1;
    for (let e = document.querySelector('.mha-maps'); e; e = e.parentElement) opacity *= getComputedStyle(e).opacity;
    return opacity < 0.6;
}"""


def typed_by_hand(person, wrong):
    seed = person.go(causal=1)
    wrong.before(person)
    good = eventually(settled, person)
    person.type(wrong.name, wrong.text)
    person.sees(".st-key-wrong", wrong.says)
    person.sees(".not-current", "Not current")
    np.testing.assert_array_equal(person.tiles(), good)  # the last good picture stays, and steps back
    assert person.page.evaluate(STEPS_BACK)
    kept = {"causal": "1"} if wrong.name == "seed" else {"causal": "1", "seed": str(seed)}
    still_set(person, kept)
    if wrong.button:
        person.page.locator(".st-key-wrong").get_by_role("button", name=wrong.button, exact=True).click()
        eventually(lambda: wrong.says not in person.text(".st-key-wrong"))
        if wrong.mended:
            eventually(lambda: person.page.locator(".st-key-wrong, .not-current").count() == 0)
            eventually(picture_is, person, Settings(**{"seed": seed, "causal": True} | wrong.mended))
        still_set(person, kept)


def followed_a_link(person, wrong):
    seed = person.go(causal=1, **wrong.query)
    person.sees("[data-testid=stAlert]", wrong.says)
    if wrong.instead is None:
        person.sees(".not-current", "Not current")
    else:
        assert person.page.locator(".st-key-wrong, .not-current").count() == 0
        eventually(picture_is, person, Settings(seed=seed, causal=True, **wrong.instead))
        expected = to_address(seed=seed, causal=True, **wrong.instead)
        eventually(lambda: person.query().items() >= expected.items())
    still_set(person, {"causal": "1", "seed": str(seed)})


def settled(person):
    """The maps as they are drawn, once they no longer change."""
    before = person.tiles()
    assert person.page.locator("[data-test-script-state=notRunning]").count()
    person.page.wait_for_timeout(100)
    np.testing.assert_array_equal(person.tiles(), before)
    return before


def still_set(person, query):
    """The widgets and the address hold what was set besides."""
    assert person.holds("causal") and person.holds("seed") == query.get("seed", person.holds("seed"))
    eventually(lambda: person.query().items() >= query.items())
