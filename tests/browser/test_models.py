"""The Models page in a real browser: what only one can tell."""

import io

import numpy as np
import pytest

import mha_viz as mv
from mha_viz import Settings, Trained, View, synthetic, trained
from mha_viz.analysis import choose
from mha_viz.sources.models import steps
from tests.browser.person import IDLE, PLOT, Person, eventually


class Reader(Person):
    PATH, SEED = "models", "seed"

    def upload(self, name, data, key="upload"):
        self.widget(key).locator("input[type=file]").set_input_files({"name": name, "mimeType": "", "buffer": data})

    def where(self):
        """The page and its address."""
        return self.page.evaluate("location.pathname + location.search")

    def is_at(self, url):
        """That this address is open."""
        assert self.where() == url, self.where()

    def arrives(self, url, key, held):
        """Waits until the page of this address is there, its widget ``key`` holds what it should, and all is drawn."""
        eventually(lambda: self.where() == url and self.widget(key).count() and self.holds(key) == held)
        self.page.wait_for_selector(f"{IDLE} .st-key-picture .main-svg")
        self.page.wait_for_timeout(300)  # a picture that is new to the page tells its width
        self.page.wait_for_selector(IDLE)

    def step(self):
        """The training step that the slider stands at."""
        return int(self.widget("snapshot").get_by_role("slider").get_attribute("aria-valuetext"))


@pytest.fixture
def person(usual_window, address):
    person = Reader(usual_window, address)
    yield person
    person.saw_nothing_wrong()


def shows(person, traces, view=None):
    """The picture and the overview hold exactly these weights."""
    view = view or View()
    trace = traces[view.layer]
    choice = choose(trace, view)
    large = person.tiles()[-2:]
    np.testing.assert_array_equal(large, [trace.weights[choice.item, choice.head], trace.mean_weights[choice.item]])
    if len(traces) > 1:
        weights = np.concatenate([one.weights[choice.item] for one in traces])
        np.testing.assert_array_equal(person.tiles("overview"), weights)


def traces(**settings):
    return trained(Trained(**settings)).recording.traces


def panel(person):
    """What the panel of the chosen head is called."""
    return person.widget("head_panel").locator("summary p").inner_text()


# Layers and heads


def test_the_box_of_all_layers_scrolls_to_the_one_that_is_chosen(person, look, tmp_path):
    layers = [
        synthetic(Settings(embed_dim=8, num_heads=2, seq_len=6, batch_size=1, padding=(), seed=seed)) for seed in range(9)
    ]
    mv.Recording(tuple(layers)).save(tmp_path / "nine.safetensors")
    look(1280, 720)
    person.go()
    person.pick("view_source", "file of your own")
    person.upload("nine.safetensors", (tmp_path / "nine.safetensors").read_bytes())
    eventually(lambda: len(person.tiles("overview")) == 18)

    def in_sight(layer):
        box, row = person.widget("overview_box").bounding_box(), person.place(2 * layer, 3, 0, "overview")[1]
        return box["y"] < row < box["y"] + box["height"]

    eventually(in_sight, 0)
    assert not in_sight(7)
    person.pick("view_layer", "layer 7 · attention")
    eventually(in_sight, 7)
    assert not in_sight(0)


def test_a_click_in_the_overview_opens_the_head_in_its_layer(person):
    seed = person.go()
    eventually(shows, person, traces(seed=seed))
    person.click_cell(4 + 2, 20, 5, "overview")
    eventually(shows, person, traces(seed=seed), View(layer=1, head=2))
    eventually(lambda: person.query() == {"seed": str(seed), "layer": "1", "head": "2", "cell": "20,5"})
    assert person.text(".chosen").startswith("head 2 · query 20")
    eventually(lambda: person.meta("overview")["chosen"] == {"head": 6, "query": 20, "key": 5})
    eventually(lambda: panel(person).startswith("Layer 1 head 2:"))
    assert person.holds("view_layer") == "layer 1"


def test_what_the_toolbar_changes_is_changed_in_all_that_shows_it(person):
    seed = person.go()
    person.pick("view_item", "batch item 2")
    eventually(shows, person, traces(seed=seed), View(item=2))
    tokens = traces(seed=seed)[0].query_tokens[2]
    eventually(lambda: person.page.locator(".answers tr").first.inner_text().split() == ["reads", *tokens])
    person.pick("view_order", "order: entropy")
    head = choose(traces(seed=seed)[0], View(item=2, order="entropy")).head
    eventually(lambda: panel(person).startswith(f"Layer 0 head {head}:"))


def test_a_row_of_the_table_opens_its_head(person):
    seed = person.go()
    person.widget("statistics").locator("summary").click()
    table = person.widget("statistics_chosen").locator("canvas").first
    table.wait_for()
    table.scroll_into_view_if_needed()
    eventually(lambda: person.page.locator(IDLE).count())
    box = table.bounding_box()
    person.page.mouse.click(box["x"] + 12, box["y"] + 36 + 35 * 5 + 17)  # the sixth row's left edge
    eventually(lambda: person.query() == {"seed": str(seed), "layer": "1", "head": "1"})
    eventually(shows, person, traces(seed=seed), View(layer=1, head=1))


# Training


def test_training_plays_and_stops_where_one_likes(person):
    seed = person.go(model="look-both-ways-2")
    every = steps("look-both-ways-2")
    person.page.get_by_role("button", name="Play the training").click()
    eventually(lambda: every[1] < person.step() < every[-1])
    assert "snapshot" not in person.query(), "what is played writes no address"
    person.page.get_by_role("button", name="Stop", exact=True).click()
    person.page.get_by_role("button", name="Play the training").wait_for()
    step = person.step()
    eventually(lambda: person.query() == {"model": "look-both-ways-2", "seed": str(seed), "snapshot": str(step)})
    eventually(shows, person, traces(model="look-both-ways-2", seed=seed, snapshot=step))
    person.page.wait_for_timeout(1600)  # two more would have been played
    assert person.step() == step


def test_training_here_shows_how_far_it_is_and_ends_with_its_dialog(person):
    person.go(model="look-both-ways-2")
    dialog = person.page.get_by_role("dialog")

    def start():
        person.page.get_by_role("button", name="Train it here").click()
        dialog.get_by_role("button", name="Start").click()
        eventually(lambda: dialog.get_by_text("held-out sequences: accuracy").count())
        assert "Somebody else" not in dialog.inner_text()
        eventually(lambda: dialog.locator(".js-plotly-plot .heatmaplayer image").count() == 2)

    start()
    dialog.get_by_role("button", name="Close").click()
    eventually(lambda: dialog.count() == 0)
    start()  # the first has ended
    dialog.get_by_role("button", name="Stop").click()
    eventually(lambda: dialog.get_by_text("stopped after step").count())
    assert dialog.get_by_text("held-out sequences: accuracy").count() and dialog.locator(".js-plotly-plot").count() == 2
    dialog.get_by_role("button", name="Close").click()
    eventually(lambda: dialog.count() == 0)


# From page to page


def test_back_leads_over_pages_as_one_went(person):
    seed = person.go()
    person.type("seed", "11")
    person.arrives("/models?seed=11", "seed", "11")
    links = person.widget("pages")
    links.get_by_text("Explore").click()
    person.arrives("/?source=trained&seed=11", "seed", "11")
    person.type("seed", "12")
    person.arrives("/?source=trained&seed=12", "seed", "12")
    links.get_by_text("Step by step").click()
    eventually(person.is_at, "/steps?source=trained&seed=12")
    person.page.wait_for_selector(IDLE)
    for url, held in (
        ("/?source=trained&seed=12", "12"),
        ("/?source=trained&seed=11", "11"),
        ("/models?seed=11", "11"),
        (f"/models?seed={seed}", str(seed)),
    ):
        person.page.go_back()
        person.arrives(url, "seed", held)
    eventually(shows, person, traces(seed=seed))


# Files


def test_a_file_is_dropped_asked_about_and_opened(person, tmp_path):
    calls = synthetic(), synthetic(Settings(seed=8))
    mv.Recording(calls, ("A note.",)).save(tmp_path / "run.safetensors")
    person.go()
    person.pick("view_source", "file of your own")
    person.upload("run.safetensors", (tmp_path / "run.safetensors").read_bytes())
    eventually(lambda: person.query() == {"source": "file", "file": "run.safetensors"})
    eventually(lambda: person.tiles("overview").shape == (16, 20, 20))
    eventually(lambda: person.tiles().shape == (2, 20, 20))
    assert "A note." in person.text(".st-key-messages")
    before = person.tiles()
    person.upload("cut.npy", npy(calls[0].weights)[:-100])
    person.sees("[data-testid=stAlert]", "is cut off")
    person.page.wait_for_selector(IDLE)
    np.testing.assert_array_equal(person.tiles(), before)
    person.upload("attention.npy", npy(calls[1].weights))
    person.sees(".st-key-asked", "What are the axes of [3, 8, 20, 20]?")
    assert person.page.get_by_text("is cut off").count() == 0
    person.page.wait_for_selector(IDLE)
    person.widget("asked").get_by_test_id("stBaseButton-primary").filter(visible=True).click()
    eventually(lambda: person.query() == {"source": "file", "file": "attention.npy"})
    eventually(lambda: person.tiles().shape[0] == 10)
    np.testing.assert_allclose(person.tiles()[-1], calls[1].mean_weights[0], rtol=1e-6)
    person.pick("view_source", "shipped model")
    eventually(lambda: "source" not in person.query())


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# What it looks like

# In the page: what stands in the main column, top to bottom, as boxes with what they are.
BOXES = """() => {
    const found = document.querySelectorAll('.answers, .mode, .shapes, .chosen, .hides, .st-key-overview .main-svg, .st-key-toolbar,'
        + '.st-key-picture .main-svg, .st-key-curves .main-svg, .st-key-head_panel, .st-key-statistics');
    return Array.from(found, e => ({ what: e.className.baseVal ?? e.className, ...e.getBoundingClientRect().toJSON() }))
        .filter(box => box.width > 0 && box.height > 0 && !/main-svg/.test(box.what) || box.width > 200);
}"""


def overlapping(boxes):
    """Pairs of boxes of which one covers a part of the other."""
    return [
        (a["what"], b["what"])
        for i, a in enumerate(boxes)
        for b in boxes[:i]
        if (a["left"], a["top"], a["right"], a["bottom"])
        != (b["left"], b["top"], b["right"], b["bottom"])  # layers of one picture
        and min(a["right"], b["right"]) - max(a["left"], b["left"]) > 1
        and min(a["bottom"], b["bottom"]) - max(a["top"], b["top"]) > 1
    ]


PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 17, 23)"}


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 720), (390, 844)])
def test_every_width_and_theme_has_room(look, person, width, height):
    for model, pictures, schemes in (
        ("induction", ("curves", "picture", "overview"), ("light", "dark")),
        ("look-both-ways-32", ("curves", "picture"), ("dark", "light")),
    ):
        look(width, height, schemes[0])
        person.page.mouse.wheel(0, -10_000)
        seed = person.go(model=model)
        eventually(shows, person, traces(model=model, seed=seed))
        if width > 640:
            eventually(lambda model=model: on_first_screen(person, height, model == "induction"))
        for scheme in schemes:
            look(width, height, scheme)
            for key in pictures:
                drawn = person.page.locator(f".st-key-{key} .main-svg").first
                paper = "e => getComputedStyle(e).backgroundColor"
                eventually(lambda drawn=drawn, scheme=scheme, paper=paper: drawn.evaluate(paper) == PAPER[scheme])
            has_room(person, width, height)


def has_room(person, width, height):
    """Nothing is cut off, covered or scrolled sideways."""
    picture = "document.querySelector('.st-key-picture .main-svg').getBoundingClientRect()"
    eventually(lambda: person.page.evaluate(f"{picture}.right") <= width)
    eventually(lambda: person.page.locator(".st-key-curves .main-svg").count() and person.page.locator(IDLE).count())
    eventually(lambda: overlapping(person.page.evaluate(BOXES)) == [])
    assert person.page.evaluate("document.documentElement.scrollWidth") <= width
    main = person.page.locator("[data-testid=stMain]")
    assert main.evaluate("e => e.scrollWidth <= e.clientWidth"), "nothing is scrolled sideways"
    boxes = person.page.evaluate(BOXES)
    assert len(boxes) >= 8
    assert all(box["left"] >= 0 and box["right"] <= width + 1 for box in boxes), boxes


def on_first_screen(person, height, whole):
    """The row of controls is one row, and below it stands the head beside the average: all of both maps, or not ``whole`` half of them."""
    toolbar = person.widget("toolbar").bounding_box()
    assert toolbar["height"] < 50, toolbar
    axis = f"(() => {{ {PLOT % 'picture'} const y = axis('y2'); return [y._offset, y._length, plot.getBoundingClientRect().top] }})()"
    first, long, top = person.page.evaluate(axis)
    assert top + first + (long if whole else long / 2) <= height, (top, first, long)
    return True


def test_pictures_say_in_words_what_they_show(person):
    person.go()
    for key, words in {"overview": "Overview of 2 layers by 4 heads", "picture": "average"}.items():
        assert words in person.widget(key).locator(".mha-maps").first.get_attribute("aria-label")
