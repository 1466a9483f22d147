"""The pages as AppTest runs them, and what a person would read off them."""

import json
import re
from base64 import b64decode
from pathlib import Path

import numpy as np
from streamlit.testing.v1 import AppTest

from mha_viz.app.number_field import typed, written

APP = Path(__file__).parents[2] / "app.py"


def opened(**address):
    """The Explore page as it opens at this address."""
    at = AppTest.from_file(str(APP), default_timeout=60)
    at.query_params.update(address)
    return at.run()


def models(**address):
    """The Models page as it opens at this address."""
    return to_page(AppTest.from_file(str(APP), default_timeout=60), "models", **address)


def to_page(at, page, **address):
    """Follow a link to another page with this address."""
    at.switch_page(f"mha_viz/app/pages/{page}.py")
    at.query_params = address
    return at.run()


def set_to(at, name, value):
    """Let the widget of the field ``name`` hold ``value``, as a person would, and run the page. What if is unfolded for it."""
    if name.startswith("what_if_") and name not in held(at):
        at.session_state["what_if_here"] = True
        at.run()
    widget = next(widget for widget in widgets(at) if widget.key == name)
    return whole(widget.set_value(written(value) if is_number_field(widget) else value).run())


def unfolded(at, is_open=True):
    """The page with what is rarely set of a layer unfolded, or folded again."""
    at.session_state["rare_open"] = is_open
    return at.run()


def whole(at):
    """The whole page: a run that drew a fragment alone leaves AppTest with nothing else."""
    return at if at.get("page_link") else at.run()


def press(at, label):
    """Press the button that begins with ``label`` and run the page."""
    return whole(next(button for button in at.get("button") if unescaped(button.label).startswith(label)).click().run())


def widgets(at):
    """Every widget that is drawn now."""
    for kind in ("text_input", "text_area", "checkbox", "toggle", "selectbox", "select_slider", "radio", "button_group"):
        yield from at.get(kind)


def held(at):
    """What every widget that is drawn holds, by its key."""
    return {widget.key: typed(widget.value) if is_number_field(widget) else widget.value for widget in widgets(at)}


def is_number_field(widget):
    return widget.type == "text_input" and widget.proto.autocomplete == "off"


def sent(at, key="picture"):
    """What a live picture was sent: its text alternative and its figure, as bytes."""
    return next(element.proto.bytes for element in at.get("bidi_component") if element.key == key)


def pictures(at):
    """The keys of the live pictures that the page shows."""
    return [element.key for element in at.get("bidi_component") if element.key not in ("stepper", "hold_links")]


def figure(at, key="picture"):
    """The figure that a live picture shows, as the dict that Plotly draws."""
    return json.loads(sent(at, key))["figure"]


def maps(at):
    """The large map of the chosen head and the average's [L, S], and every head's map in the strip by its number."""
    drawn = figure(at)
    tiles = [decoded(trace["z"]) for trace in drawn["data"] if trace["type"] == "heatmap"]
    heads = [tile["head"] for tile in drawn["layout"]["meta"]["tiles"]]
    return tiles[-2], tiles[-1], dict(zip(heads[:-2], tiles[:-2], strict=True))


def decoded(array):
    """A typed array of Plotly's as NumPy."""
    shape = [int(size) for size in str(array.get("shape", -1)).split(",")]
    return np.frombuffer(b64decode(array["bdata"]), array["dtype"]).reshape(shape)


def read(at, css_class):
    """The text of the one paragraph with this class, as it is read; empty where there is none."""
    found = re.search(rf"<p class='{css_class}'.*?</p>", " ".join(html.value for html in at.get("html")), re.DOTALL)
    return re.sub(r"<[^>]*>", "", found[0]) if found else ""


def page_text(at):
    """All that the page says in words, without Markdown's escapes."""
    kinds = ("html", "markdown", "caption", "warning", "error", "code")
    return unescaped("\n".join(str(element.value) for kind in kinds for element in at.get(kind)))


def errors(at):
    """What the page calls wrong."""
    return [unescaped(element.value) for element in at.error]


def unescaped(markdown):
    """``markdown`` as it is read: without escapes, and without what stands for nothing."""
    told = re.sub(r"\\(.)|:color\[\]", r"\1", markdown, flags=re.DOTALL)
    return re.sub(r"^&#(\d+);|&#(\d+);$", lambda found: chr(int(found[1] or found[2])), told)
