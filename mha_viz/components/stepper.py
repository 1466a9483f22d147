"""Arrow keys and − and + for fields of numbers, in the browser: a field is Streamlit's for text, which has neither."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_mount = st.components.v2.component(
    "mha_stepper",
    html="<div class='mha-stepper' popover='manual'><button tabindex='-1' aria-hidden='true'>−</button>"
    "<button tabindex='-1' aria-hidden='true'>+</button></div>",
    css="""
    .mha-stepper { inset: auto; margin: 0; padding: 0; border: 0; width: 52px; }
    .mha-stepper:popover-open { display: flex; }
    .mha-stepper button {
      flex: 1; border: 0; padding: 0; background: none; color: inherit; font-size: 1.1rem; cursor: pointer;
    }
    .mha-stepper button:hover { background: color-mix(in srgb, currentColor 15%, transparent); }
    """,
    js=Path(__file__).with_name("stepper.js").read_text("utf-8"),
)


def stepper() -> None:
    """Let every number field of the page be stepped through; once a page."""
    _mount(key="stepper")
