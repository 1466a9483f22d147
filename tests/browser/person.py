"""What a person does at a page in a browser, and what they see there."""

import itertools
import json
import time
from urllib.parse import parse_qsl, urlencode

import numpy as np

IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
READY = f"{IDLE} .mha-maps .main-svg"
PATIENCE = 30  # seconds that anything may take on a slow machine before it counts as not happening

# In the page: a picture, and an axis of it by its id.
PLOT = (
    "const plot = document.querySelector('.st-key-%s .mha-maps'), axis = id => plot._fullLayout[`${id[0]}axis${id.slice(1)}`];"
)


class Person:
    PATH, SEED = "", "seed"  # of the page, and the key of its seed's widget
    seeds = itertools.count(1000)

    def __init__(self, page, address):
        self.page, self.address = page, address

    # Doing

    def open(self, **query):
        """Follow a link to the page with these values in its address."""
        self.page.goto(f"{self.address}/{self.PATH}?{urlencode(query)}")
        self.page.wait_for_selector(f"{READY}, [data-testid=stException]", timeout=60_000)
        self.saw_nothing_wrong()
        return self

    def go(self, **query):
        """Follow a link within the page that is open, as Back does; much faster than loading it anew.

        Its seed is one that was not used here before, which tells when the page has arrived.
        """
        if not self.page.url.startswith(f"{self.address}/{self.PATH}?") and self.page.url != f"{self.address}/{self.PATH}":
            self.open()
        query = {"seed": next(self.seeds)} | query
        script = "query => { history.pushState({}, '', query); window.dispatchEvent(new PopStateEvent('popstate')) }"
        self.page.evaluate(script, f"?{urlencode(query)}")
        eventually(lambda: self.holds(self.SEED) == str(query["seed"]) and self.page.locator(IDLE).count())
        return query["seed"]

    def widget(self, name):
        return self.page.locator(f".st-key-{name}")

    def type(self, name, text):
        """Replace what a field holds, key by key, and leave it."""
        field = self.widget(name).locator("input, textarea").first
        field.click()
        field.press("ControlOrMeta+a")
        field.press("Delete")
        self.page.keyboard.type(text)
        field.press("ControlOrMeta+Enter" if "\n" in text or field.evaluate("f => f.tagName") == "TEXTAREA" else "Enter")

    def click(self, name, label=None):
        """Click a checkbox, or the choice with this label of a control that offers a few."""
        if label is None:
            self.widget(name).locator("p").first.click()
        else:
            self.widget(name).get_by_role("radio", name=label, exact=True).click()

    def pick(self, name, label):
        """Pick an option of a drop-down list."""
        self.widget(name).get_by_role("button", name="Open").click()
        self.page.get_by_role("option", name=label, exact=True).click()

    def unfold(self, label):
        """Open a folded group; one that is open stays."""
        folded = self.page.locator("details:not([open]) > summary").filter(has_text=label)
        if folded.count():
            folded.click()

    def tip(self, tile, query, key):
        """What stands beside the pointer over a cell. The page may still move away below it: then one points again."""
        self.page.mouse.move(*self.place(tile, query, key))
        return self.page.locator(".mha-tip").inner_text()

    def click_cell(self, tile, query, key, picture="picture"):
        self.page.mouse.click(*self.place(tile, query, key, picture))

    def zoom(self, tile, first, last):
        """Draw a rectangle from cell to cell, (query, key) each, in one of the large maps."""
        self.page.mouse.move(*self.place(tile, *first))
        self.page.mouse.down()
        self.page.mouse.move(*self.place(tile, *last), steps=5)
        self.page.mouse.up()

    # Seeing

    def place(self, tile, query, key, picture="picture"):
        """The window's px at which the middle of a cell stands."""
        script = f"""([tile, query, key]) => {{
            {PLOT % picture}
            const {{ axes: [x, y], x0, y0 }} = plot.layout.meta.tiles[tile], box = plot.getBoundingClientRect();
            return [box.left + axis(x)._offset + axis(x).l2p(x0 + key), box.top + axis(y)._offset + axis(y).l2p(y0 + query)];
        }}"""
        return self.page.evaluate(script, [tile, query, key])

    def meta(self, picture="picture"):
        return self.page.evaluate(f"() => {{ {PLOT % picture} return plot.layout.meta }}")

    def tiles(self, picture="picture"):
        """Every map as it is drawn, in order: the strip's, the chosen head's, the average's."""
        tile = "(_, i) => Array.from(plot._fullData[i].z, row => Array.from(row))"
        script = f"() => {{ {PLOT % picture} return JSON.stringify((plot?.layout?.meta.tiles ?? []).map({tile})) }}"
        return np.array(json.loads(self.page.evaluate(script)), np.float32)  # null, which stands for NaN, becomes NaN

    def zoomed_to(self):
        script = f"() => {{ {PLOT % 'picture'} return [axis('x2').range, axis('y2').range, axis('x3').range, axis('y3').range].flat() }}"
        return self.page.evaluate(script)

    def legend(self):
        """The looks of cells that the picture explains."""
        return self.page.locator(".mha-maps .legendtext").all_text_contents()

    def text(self, selector):
        found = self.page.locator(selector)
        return " ".join(found.all_inner_texts())

    def query(self):
        """What the address holds."""
        return dict(parse_qsl(self.page.evaluate("location.search.slice(1)"), keep_blank_values=True))

    def holds(self, name):
        """What a field or a checkbox holds."""
        field = self.widget(name).locator("input, textarea").first
        return field.is_checked() if field.get_attribute("type") == "checkbox" else field.input_value()

    def chosen(self, name):
        """The label of the choice that a control of a few shows as chosen."""
        return self.widget(name).locator("[role=radio][aria-checked=true]").inner_text()

    # Judging

    def sees(self, selector, text):
        """Waits until ``text`` stands there."""

        def there():
            found = self.text(selector)
            assert text in found, f"{text!r} is not in {found!r}"

        eventually(there)

    def saw_nothing_wrong(self):
        complaints, self.page.complaints[:] = list(self.page.complaints), []
        assert not complaints, f"complaints: {complaints}"
        assert self.page.locator("[data-testid=stException]").count() == 0, "an exception on the page"
        assert "Traceback" not in self.page.inner_text("body")


def eventually(check, *arguments):
    """Wait until ``check(*arguments)`` holds: until it raises no AssertionError and returns nothing false."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            found = check(*arguments)
            assert found is None or np.any(found), f"{check.__name__} does not come true"
            return found
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.03)
