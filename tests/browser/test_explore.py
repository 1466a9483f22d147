"""The Explore page in a real browser: controls moved, answers read off the screen, and what only a browser shows."""

import numpy as np
import pytest

from mha_viz import Settings, View, synthetic
from mha_viz.analysis import choose
from mha_viz.settings import to_address
from tests.browser.person import eventually

FOLDED = "dropout, bias, extra keys, widths"
WORDS = "the cat sat\nthe dog slept all day"

# What a person does, one of each kind of control, and the Settings that this means: tests/app/pages/test_explore.py moves every one.
MOVES = {
    "num_heads": (lambda p: p.type("num_heads", "4"), {"num_heads": 4}),
    "padding": (lambda p: p.type("padding", "2, 5"), {"padding": (2, 5)}),
    "padding_side": (lambda p: p.click("padding_side", "left"), {"padding_side": "left"}),
    "window": (lambda p: (p.click("windowed"), p.type("window", "2")), {"window": 2}),
    "dropout": (
        lambda p: (p.unfold(FOLDED), p.click("training", "train"), p.type("dropout", "0.4")),
        {"training": True, "dropout": 0.4},
    ),
    "words and source": (
        lambda p: (
            p.click("own_words", "your words"),
            p.type("words", WORDS),
            p.click("cross"),
            p.type("source_words", "eins zwei\ndrei"),
        ),
        {"words": WORDS, "source_words": "eins zwei\ndrei", "padding": ()},
    ),
}


def picture_is(person, settings, view=None):
    """The picture holds exactly these weights: heads in their order, the chosen one, the average."""
    trace, drawn = synthetic(settings), person.tiles()
    choice = choose(trace, view or View())
    weights = trace.weights[choice.item]
    expected = np.stack([*weights[list(choice.order)], weights[choice.head], trace.mean_weights[choice.item]])
    np.testing.assert_array_equal(drawn, expected)


def follow(person, **values):
    """Follow a link with these fields of Settings and View; the Settings, once their picture is there."""
    values = {"seed": person.go(**to_address(**values))} | values
    settings = Settings(**{name: value for name, value in values.items() if name in Settings.__dataclass_fields__})
    view = View(**{name: value for name, value in values.items() if name in View.__dataclass_fields__})
    eventually(picture_is, person, settings, view)
    return settings


@pytest.mark.parametrize(("move", "meant"), MOVES.values(), ids=list(MOVES))
def test_a_control_does_what_it_says(person, move, meant):
    meant = {"seed": person.go()} | meant
    move(person)
    eventually(picture_is, person, Settings(**meant))
    eventually(lambda: person.query() == to_address(**meant))
    shape = synthetic(Settings(**meant)).weights.shape
    assert "weights [N {}, H {}, L {}, S {}]".format(*shape) in person.text(".shapes")
    assert person.page.locator(".st-key-wrong, .not-current").count() == 0


# Cells


@pytest.mark.parametrize("length", [5, 20])
def test_hover_is_exact_in_every_tile(person, length):
    weights = synthetic(follow(person, seq_len=length, padding=(1,), causal=True)).weights[0]
    last = length - 2
    for tile, described in enumerate(person.meta()["tiles"]):
        head = described["head"]
        seen = weights.mean(axis=0) if head is None else weights[head]
        name = "average of 8 heads" if head is None else f"head {head}"
        for query, key in ((0, 0), (last, 0), (last, last), (length // 2, 1)):
            told = f"{name}\nquery {query} → key {key}\nweight {seen[query, key]:.6f}"
            eventually(lambda *cell, told=told: person.tip(*cell) == told, tile, query, key)


def test_hover_names_what_a_cell_without_weight_is(person):
    follow(person, seq_len=5, padding=(2,), causal=True)
    tile = len(person.meta()["tiles"]) - 2
    for (query, key), look in {(1, 3): "masked", (4, 0): "padded"}.items():
        eventually(lambda *cell, look=look: look in person.tip(*cell), tile, query, key)


def test_words_are_read_as_typed(person):
    follow(person, words="a <s> $5 the the", padding=())
    tile = len(person.meta()["tiles"]) - 2
    for key, token in enumerate(["a", "<s>", "$5", "the", "the"]):
        told = f"query 1 “<s>” → key {key} “{token}”"
        eventually(lambda *cell, told=told: told in person.tip(*cell), tile, 1, key)
    person.click_cell(tile, 1, 2)
    person.sees(".chosen", "query 1 “<s>” → key 2 “$5”")
    labels = person.page.locator(".mha-maps .x4tick text, .mha-maps .xtick text").all_text_contents()
    assert [label for label in labels if "<s>" in label or "$5" in label]


@pytest.mark.parametrize("which", ["strip", "head", "average"])
def test_a_click_chooses_a_cell(person, which):
    settings = follow(person)
    tiles = person.meta()["tiles"]
    tile = {"strip": 3, "head": len(tiles) - 2, "average": len(tiles) - 1}[which]
    head = tiles[0]["head"] if which == "average" else tiles[tile]["head"]
    person.click_cell(tile, 12, 4)
    trace = synthetic(settings)
    weight, average = trace.weights[0, head, 12, 4], trace.mean_weights[0, 12, 4]
    eventually(lambda: person.text(".chosen") == f"head {head} · query 12 → key 4 {weight:.6f} · average {average:.6f}")
    address = {"seed": str(settings.seed), "cell": "12,4"} | ({} if which == "average" else {"head": str(head)})
    eventually(lambda: person.query() == address)
    eventually(lambda: person.meta()["chosen"] == {"head": head, "query": 12, "key": 4})
    np.testing.assert_array_equal(person.tiles()[-2], trace.weights[0, head])


def test_keys_walk_cells_and_heads(person):
    follow(person, head=2, cell=(6, 9), order="index")
    person.page.locator(".mha-maps").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft"):
        person.page.keyboard.press(key)
    eventually(lambda: person.text(".chosen").startswith("head 2 · query 8 → key 8"))
    person.page.keyboard.press("PageDown")
    eventually(lambda: person.text(".chosen").startswith("head 3 · query 8 → key 8"))


# In place

# Counts the frames in which the picture is not the one that stood there first, or is empty, or has lost a map, until told to stop.
WATCH_FRAMES = """() => {
    const first = document.querySelector('.mha-maps');
    window.blank = 0;
    window.watching = true;
    const look = () => {
        const maps = document.querySelectorAll('.mha-maps .heatmaplayer image').length;
        if (document.querySelector('.mha-maps') !== first || maps < 10) window.blank++;
        if (window.watching) requestAnimationFrame(look);
    };
    look();
}"""


def test_a_change_redraws_in_place_and_keeps_zoom_head_and_cell(person):
    follow(person, head=2, cell=(6, 9))
    person.page.evaluate(WATCH_FRAMES)
    pair = len(person.meta()["tiles"]) - 2
    person.zoom(pair, (4, 6), (10, 13))
    eventually(lambda: person.page.get_by_text("Reset zoom").is_visible())
    zoomed = person.zoomed_to()
    assert zoomed[1] - zoomed[0] < 10 and zoomed[:2] == zoomed[4:6]
    moves = [
        (lambda: person.type("seed", "11"), {"seed": 11}, {}),
        (lambda: person.pick("view_order", "order: number"), {}, {"order": "index"}),
        (lambda: person.click("causal"), {"causal": True}, {}),
        (lambda: person.type("padding", "1"), {"padding": (1,)}, {}),
        (lambda: person.pick("view_item", "batch item 1"), {}, {"item": 1}),
        (lambda: person.pick("view_item", "batch item 0"), {}, {"item": 0}),
    ]
    settings, view = {}, {"head": 2, "cell": (6, 9)}
    for move, set_now, viewed_now in moves:
        move()
        settings, view = settings | set_now, view | viewed_now
        eventually(picture_is, person, Settings(**settings), View(**view))
        np.testing.assert_allclose(person.zoomed_to(), zoomed)
        assert person.meta()["chosen"] == {"head": 2, "query": 6, "key": 9}
    person.type("num_heads", "7")  # wrong: the message above the picture does not push it out
    person.sees(".st-key-wrong", "128 = 7 × 18 + 2")
    person.page.get_by_role("button", name="num_heads = 8", exact=True).click()
    eventually(lambda: person.page.locator(".not-current").count() == 0)
    person.click("padding_side", "left")  # queries without a key: so does a warning
    eventually(picture_is, person, Settings(padding_side="left", **settings), View(**view))
    assert person.page.evaluate("window.watching = false, window.blank") == 0
    np.testing.assert_allclose(person.zoomed_to(), zoomed)
    person.page.get_by_text("Reset zoom").click()
    eventually(lambda: person.zoomed_to() == [-0.5, 19.5, 19.5, -0.5] * 2)


def test_back_and_forward_return_to_what_was_set(person):
    first = follow(person)
    person.type("seed", "11")
    eventually(picture_is, person, Settings(seed=11))
    eventually(lambda: person.query() == {"seed": "11"})
    person.click("causal")
    eventually(picture_is, person, Settings(seed=11, causal=True))
    eventually(lambda: person.query() == {"seed": "11", "causal": "1"})
    person.page.go_back()
    eventually(picture_is, person, Settings(seed=11))
    eventually(lambda: not person.holds("causal"))
    person.page.go_back()
    eventually(picture_is, person, first)
    eventually(lambda: person.holds("seed") == str(first.seed))
    person.page.go_forward()
    eventually(picture_is, person, Settings(seed=11))
    eventually(lambda: person.holds("seed") == "11")


# What it looks like


def test_the_legend_explains_what_is_there(person):
    follow(person, padding=())
    hatched = person.page.locator(".mha-maps .fills path, .mha-maps .js-fill")
    assert person.legend() == [] and hatched.count() == 0
    follow(person, padding=(3,), causal=True, padding_side="left")
    assert person.legend() == ["undefined: no key left", "masked: may not be read"] and hatched.count()


def test_undefined_is_undefined_everywhere(person):
    follow(person, padding=(3,), causal=True, padding_side="left", cell=(1, 0))
    assert np.isnan(person.tiles()[:, :3]).all() and not np.isnan(person.tiles()[:, 3:]).any()
    assert "undefined" in person.text(".chosen") and "nan" not in person.text(".chosen")
    tile = len(person.meta()["tiles"]) - 2
    eventually(lambda: "undefined: no key left" in person.tip(tile, 1, 0))


@pytest.mark.parametrize(("width", "height", "scheme"), [(390, 844, "dark"), (1280, 720, "light"), (2200, 1200, "dark")])
def test_every_width_and_theme_has_room(look, person, width, height, scheme):
    look(width, height, scheme)
    person.open(words="the cat sat on the mat because the cat was tired\nthe dog slept")
    paper = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 17, 23)"}[scheme]
    background = "e => getComputedStyle(e).backgroundColor"
    assert person.page.locator("[data-testid=stApp]").evaluate(background) == paper
    eventually(lambda: person.page.locator(".mha-maps .main-svg").first.evaluate(background) == paper)
    picture_is(person, Settings(words="the cat sat on the mat because the cat was tired\nthe dog slept"))
    size = "e => e.getBoundingClientRect().toJSON()"
    picture = "document.querySelector('.mha-maps .main-svg').getBoundingClientRect()"
    eventually(lambda: person.page.evaluate(f"{picture}.right") <= width)
    assert person.page.evaluate("document.documentElement.scrollWidth") <= width
    shown = person.page.evaluate(f"{picture}.toJSON()")
    assert shown["left"] >= 0 and shown["width"] > 0.6 * width - 300
    for text in person.page.locator(".shapes, .chosen, .mode").all():
        assert text.evaluate(size)["right"] <= width
    if width < 640:  # the controls come on demand
        assert not person.widget("seed").locator("input").is_visible() or person.widget("seed").evaluate(size)["right"] <= 0
        person.page.get_by_test_id("stExpandSidebarButton").click()
        eventually(lambda: person.widget("embed_dim").evaluate(size)["left"] >= 0)
    else:  # maps and controls at one look
        assert person.widget("embed_dim").locator("input").is_visible()
        assert person.page.evaluate(f"{picture}.top") < height / 3
