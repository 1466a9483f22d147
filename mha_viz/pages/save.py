"""Save what is shown: the picture as the browser has it, the numbers as a table."""

import csv
import io

import streamlit as st

from mha_viz.pages.draft import PICTURE, draw


def save():
    """Buttons for PNG, SVG and CSV. The picture is written by the browser; the table here, when it is asked for."""
    left, right = st.columns(2)
    name = f"attention-item{st.session_state.view.item}"
    saved = st.session_state.setdefault("saved", [])  # the list itself: the table is made where there is no session
    left.button("PNG", on_click=ask, args=("png", name), width="stretch", help="The picture, at twice its size on screen.")
    right.button("SVG", on_click=ask, args=("svg", name), width="stretch", help="The picture, for documents.")
    st.download_button(
        "CSV", lambda: table(*saved), f"{name}.csv", "text/csv", on_click="ignore", width="stretch",
        help="The weights of the heads shown and of the average: one line per cell.",
    )  # fmt: skip


def ask(format, name):
    """Have the picture saved when it is next drawn, which is at once."""
    st.session_state.saving = {
        "format": format,
        "name": name,
        "serial": st.session_state.get("saving", {}).get("serial", 0) + 1,
    }
    draw(PICTURE)


def table(trace, choice, pinned=None):
    """CSV, one line per cell: batch item, head (or "average"), query and key by number and name, weight; empty where undefined.

    Beside a ``pinned`` Trace of the same shape, A, also A's weight and the difference, weight − A's.
    """
    beside = pinned is not None and pinned.weights.shape == trace.weights.shape
    text = io.StringIO()
    lines = csv.writer(text)
    what = trace.quantity.replace(" ", "_").replace("-", "_")
    names = ["item", "head", "query", "key", "query_token", "key_token", what, "masked", "padded_query"]
    lines.writerow(names + [f"{what}_a", "difference"] * beside)
    item = choice.item
    maps = [(head, trace.weights[item, head], trace.mask[item, head]) for head in choice.order]
    maps.append(("average", trace.mean_weights[item], trace.mask[item].all(axis=0)))
    for head, weights, masked in maps:
        before = None
        if beside:
            before = (pinned.mean_weights[item] if head == "average" else pinned.weights[item, head]).tolist()
        for query, (row, hidden, name) in enumerate(
            zip(weights.tolist(), masked.tolist(), trace.query_tokens[item], strict=True)
        ):
            padded = int(trace.query_padding[item][query])
            for key, (weight, is_hidden) in enumerate(zip(row, hidden, strict=True)):
                line = [item, head, query, key, name, trace.key_tokens[item][key], written(weight), int(is_hidden), padded]
                if beside:
                    a = before[query][key]
                    line += [written(a), written(weight - a)]
                lines.writerow(line)
    return text.getvalue()


def written(number):
    """A number in full, nothing where it is undefined."""
    return "" if number != number else repr(number)
