"""How much room the browser has, for a figure that is no live picture."""

from __future__ import annotations

import streamlit as st

from mha_viz.components.live import measured_width

_measure = st.components.v2.component(
    "mha_width",
    html="<div class='mha-width'></div>",
    css=".mha-width { height: 0; }",
    js="""
    const observers = new WeakMap(); // a component's element → what watches it, and outlives every update
    export default function ({ data, parentElement, setStateValue }) {
      const strip = parentElement.querySelector(".mha-width");
      const measure = () => {
        const width = Math.max(320, Math.floor(strip.clientWidth / 8) * 8);
        if (strip.clientWidth && width !== strip.told) setStateValue("width", (strip.told = width));
      };
      strip.told = data.width;
      if (!observers.has(strip)) {
        observers.set(strip, new ResizeObserver(() => { clearTimeout(strip.later); strip.later = setTimeout(measure, 150); }));
        observers.get(strip).observe(strip);
      }
      measure();
    }
    """,
)


def room(key: str) -> int:
    """px that there are from side to side where this is called, a multiple of 8; the script, or the fragment around the call, runs
    again when that changes. Before the browser has told it is what a window of 1440 px has."""
    width = measured_width(key)
    _measure(key=key, data={"width": width}, on_width_change=lambda: None)
    return width
