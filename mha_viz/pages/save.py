"""Save what is shown: the picture as the browser has it, the numbers as a table."""

import csv
import io

import streamlit as st


def save(trace, choice):
    """Buttons for PNG, SVG and CSV. The picture is written by the browser; the table here, when it is asked for."""
    left, right = st.columns(2)
    name = f"attention-item{choice.item}"
    left.button("PNG", on_click=ask, args=("png", name), width="stretch", help="The picture, at twice its size on screen.")
    right.button("SVG", on_click=ask, args=("svg", name), width="stretch", help="The picture, for documents.")
    st.download_button(
        "CSV", lambda: table(trace, choice), f"{name}.csv", "text/csv", on_click="ignore", width="stretch",
        help="The weights of the heads shown and of the average: one line per cell.",
    )  # fmt: skip


def ask(format, name):
    """Have the picture saved when it is next drawn, which is at once."""
    st.session_state.saving = {
        "format": format,
        "name": name,
        "serial": st.session_state.get("saving", {}).get("serial", 0) + 1,
    }


def table(trace, choice):
    """CSV, one line per cell: batch item, head (or "average"), query and key by number and name, weight; empty where undefined."""
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(["item", "head", "query", "key", "query_token", "key_token", "weight", "masked", "padded_query"])
    item = choice.item
    maps = [(head, trace.weights[item, head], trace.mask[item, head]) for head in choice.order]
    maps.append(("average", trace.mean_weights[item], trace.mask[item].all(axis=0)))
    for head, weights, masked in maps:
        for query, (row, hidden, name) in enumerate(
            zip(weights.tolist(), masked.tolist(), trace.query_tokens[item], strict=True)
        ):
            padded = int(trace.query_padding[item][query])
            for key, (weight, is_hidden) in enumerate(zip(row, hidden, strict=True)):
                written = "" if weight != weight else repr(weight)
                lines.writerow([item, head, query, key, name, trace.key_tokens[item][key], written, int(is_hidden), padded])
    return text.getvalue()
