"""A picture saved by the browser as PNG or SVG, for a page whose picture is no live one."""

from pathlib import Path

import streamlit as st

from mha_viz.figures.serial import to_json

_PICTURE = (Path(__file__).parents[1] / "export" / "picture.js").read_text("utf-8")
_mount = st.components.v2.component(
    "mha_saver",
    html="<p class='mha-saver' role='status'></p>",
    css=".mha-saver { margin: 0; font-size: 0.875rem; } .mha-saver:empty { display: none; }",
    js=_PICTURE
    + """
    const told = new WeakMap(); // a component's element → the serial of what it was last asked for
    export default async function ({ data, parentElement }) {
      const { format, name, serial, figure, scale, size } = JSON.parse(new TextDecoder().decode(data));
      const before = told.get(parentElement), status = parentElement.querySelector(".mha-saver");
      told.set(parentElement, serial);
      if (before === undefined || serial === before) return; // asked for before this was here
      try {
        const file = await pictureOf(window.Plotly, figure, format, { scale, size: size ?? undefined });
        const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: `${name}.${format}` });
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
        status.textContent = `Saved ${link.download}.`;
      } catch (error) {
        status.textContent = `Not saved: ${error instanceof TooLarge ? `${format.toUpperCase()} ` : ""}${error.message}`;
      }
    }
    """,
)


def saver(save, *, key):
    """Where this stands, what is saved is told. ``save`` is as ``live`` takes it, always with its "figure"; {"serial": 0} asks for nothing.

    A picture of Plotly's has to be on the page: it brings what draws this one.
    """
    _mount(key=key, data=to_json(save).encode())
