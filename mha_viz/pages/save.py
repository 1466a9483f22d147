"""Save what is shown: the picture, drawn by the browser or as a file of its own, its numbers, and what to paste into a document."""

from dataclasses import replace
from shlex import quote

import streamlit as st

from mha_viz.core.rules import Wrong
from mha_viz.pages.draft import PICTURE, draw
from mha_viz.pages.messages import plain

DRESS = {  # how a saved picture is dressed, at first as it is on screen: fields of Figure, and the format
    "format": "PNG", "scale": 2, "theme": "as on screen", "transparent": False, "title": True, "labels": True, "bar": True, "legend": True,
    "values": True, "width": "", "font_size": "", "font": "", "paste": "caption",
}  # fmt: skip
ON_SCREEN = ("format", "scale", "paste")  # what does not change how it looks
PARTS = {"title": "titles", "labels": "labels", "bar": "colour bar", "legend": "legend", "values": "values in cells"}
PASTE = {  # what can be pasted, and its language
    "caption": None, "alternative text": None, "Markdown image": "markdown", "PyTorch": "python", "NumPy": "python", "pytest": "python",
    "command": "bash",
}  # fmt: skip
CODE = {"PyTorch": "torch", "NumPy": "numpy", "pytest": "pytest"}


def keep_for_saving(shown):
    """What is shown now. A list, which a download's own thread can read: there is no session where that runs."""
    st.session_state.setdefault("saved", [])[:] = [shown]


def save():
    """The popover's contents."""
    saved, state = st.session_state.setdefault("saved", []), st.session_state
    state.setdefault("dress", dict(DRESS))
    if not saved:
        st.caption("Nothing is shown yet.")
        return
    picture(saved)
    numbers(saved)
    to_paste(saved[0])


def picture(saved):
    """Its format, its dress, and the button that saves it."""
    dress = st.session_state.dress
    st.markdown("**Picture**")
    with st.container(horizontal=True, vertical_alignment="center", key="save_picture"):
        held("format", st.segmented_control, "format", options=["PNG", "SVG", "PDF", "HTML"], required=True)
        if dress["format"] == "PNG":
            held("scale", st.segmented_control, "pixels", options=[1, 2, 4], format_func="{}×".format, required=True)
    with st.expander("Theme, size, what to leave out", expanded=dressed()):
        choose_dress()
    try:
        figure = figure_now(saved[0])
    except Wrong as wrong:
        say(wrong)
        return
    name = f"{figure.out} ({'as on screen' if not dressed() else told(figure)})"
    if dress["format"] in ("PNG", "SVG"):
        st.button(f"Save {name}", key="save_now", type="primary", on_click=ask, args=(saved, figure))
        if wrong := st.session_state.pop("wrong_saving", None):
            say(wrong)
    elif dress["format"] == "HTML":
        about = "One file that needs no network; pointing at a cell says its exact weight."
        st.download_button(
            f"Save {name}", lambda: page_of(saved, figure), figure.out, "text/html", key="save_now", type="primary", on_click="ignore",
            help=about,
        )  # fmt: skip
    else:
        pdf(saved, figure, name)


def choose_dress():
    with st.container(horizontal=True):
        held("theme", st.selectbox, "theme", options=["as on screen", "light", "dark", "print"], width=150, label_visibility="visible")
        held("width", st.text_input, "width", placeholder="as on screen", width=120, help="1104 px, 160 mm or 6.3 in; the height follows.",
             label_visibility="visible")  # fmt: skip
        held("font_size", st.text_input, "text size", placeholder="14 px, or 8 pt", width=120, help="8 pt or 14 px: of ordinary text.",
             label_visibility="visible")  # fmt: skip
        held("font", st.text_input, "font", placeholder="as on screen", width=140, label_visibility="visible")
    with st.container(horizontal=True):
        for part, label in PARTS.items():
            held(part, st.checkbox, label, label_visibility="visible")
        held("transparent", st.checkbox, "transparent", label_visibility="visible")
    st.caption("Limits of the colours are set under Scale: with the same ones, all figures of a document agree.")


def held(name, widget, label, label_visibility="collapsed", **options):
    """The widget of one field of the dress, which outlives the popover."""
    key = f"save_{name}"
    st.session_state[key] = st.session_state.dress[name]
    widget(label, key=key, on_change=take, args=(name,), label_visibility=label_visibility, **options)


def take(name):
    st.session_state.dress[name] = st.session_state[f"save_{name}"]


def dressed():
    """Whether the picture is to look otherwise than on screen."""
    return any(st.session_state.dress[name] != value for name, value in DRESS.items() if name not in ON_SCREEN)


def figure_now(shown):
    """The Figure of what is shown, dressed as it is set; raises Wrong for a width or a size that is none."""
    from mha_viz.components import measured_width
    from mha_viz.export.figure import figure_of

    dress = dict(st.session_state.dress)
    format = dress.pop("format").lower()
    if dress["theme"] == "as on screen":
        dress["theme"] = st.context.theme.type or "light"
    dress["width"] = dress["width"] or f"{measured_width('picture')} px"
    given = {name: value for name, value in dress.items() if name != "paste" and value not in ("", None)}
    return figure_of(given | {"out": f"attention-item{shown.choice.item}.{format}"})


def told(figure):
    number, unit = figure.size
    return f"{number:g} {unit} wide, {figure.theme}"


def ask(saved, figure):
    """Have the browser save the picture when it is next drawn, which is at once: what is on screen, or another dress of it."""
    from mha_viz.export.make import drawn

    state = st.session_state
    asked = {"format": figure.format, "name": figure.out.rpartition(".")[0], "scale": figure.scale, "size": None}
    if dressed():
        try:
            asked |= {"figure": drawn(figure, saved[0])[0], "size": figure.size}
        except Wrong as wrong:
            state.wrong_saving = wrong
            return
    state.saving = asked | {"serial": state.get("saving", {}).get("serial", 0) + 1}
    draw(PICTURE)


def page_of(saved, figure):
    from mha_viz.export.make import WRITERS, drawn

    return WRITERS["html"](figure, saved[0], *drawn(figure, saved[0]))


def pdf(saved, figure, name):
    """A PDF is drawn by a Chromium beside the app, and takes a moment: made first, then saved."""
    from mha_viz.export.browser import Browser
    from mha_viz.export.make import drawn

    state = st.session_state
    if st.button(f"Make {name}", key="save_pdf", type="primary"):
        try:
            with st.spinner("Drawing …"), Browser() as browser:
                state.made_pdf = figure, saved[0], browser.picture(drawn(figure, saved[0])[0], "pdf", size=figure.size)
        except Wrong as wrong:
            say(wrong)
    made = state.get("made_pdf")
    if made is not None and made[:2] == (figure, saved[0]):
        st.download_button("Save it", made[2], figure.out, "application/pdf", key="save_now", on_click="ignore")


def numbers(saved):
    """Tables and arrays, each made when it is asked for."""
    from mha_viz.export.make import WRITERS

    st.markdown("**Numbers**")
    about = {
        "csv": ("CSV", "text/csv", "The weights of the heads that are shown and of their average: a line per cell."),
        "npz": ("NPZ", "application/zip", "Every tensor by name, and the settings; mha_viz.load opens it, and so does this app."),
        "safetensors": ("Recording", "application/octet-stream", "q, k, v, masks and settings: small, and opened as the other is."),
        "statistics": ("Statistics", "text/csv", "Ten statistics of every head, a line each."),
    }
    with st.container(horizontal=True, key="save_numbers"):
        for kind, (label, mime, help) in about.items():
            view, ending = ("layers", "csv") if kind == "statistics" else ("page", kind)
            st.download_button(
                label, lambda view=view, ending=ending: WRITERS[ending](named(saved, ending, view), saved[0], None, ""),
                f"{'statistics' if view == 'layers' else 'attention'}-item{saved[0].choice.item}.{ending}", mime, key=f"save_{kind}",
                on_click="ignore", help=help,
            )  # fmt: skip


def named(saved, ending, view="page"):
    from mha_viz.export.figure import Figure

    return Figure(out=f"attention.{ending}", view=view)


def to_paste(shown):
    """A text for a document or a report, with its button to copy."""
    st.markdown("**To paste**")
    held("paste", st.selectbox, "what to paste", options=list(PASTE))
    what = st.session_state.dress["paste"]
    try:
        st.code(text_of(what, shown), language=PASTE[what], wrap_lines=True, height=260 if what in CODE else "content")
    except Wrong as wrong:
        say(wrong)


def text_of(what, shown):
    from mha_viz.export import words
    from mha_viz.export.figure import Figure
    from mha_viz.export.make import drawn
    from mha_viz.export.paste import PROGRAMS

    if what in CODE:
        return PROGRAMS[CODE[what]](shown)
    caption, alt = words.caption(shown, "page"), drawn(Figure(), shown)[1]
    if what == "caption":
        return caption
    if what == "alternative text":
        return alt
    figure = figure_now(shown)
    return command(figure, shown) if what == "command" else words.markdown(figure.out, alt, caption)


def command(figure, shown):
    """The command that makes the same file: where this app is, or a file of the person's."""
    from mha_viz.export.figure import specification
    from mha_viz.export.words import address_of, view_address_of

    told = ["python -m mha_viz export"]
    if shown.source.settings is None:
        told += ["--recording", quote(shown.source.name), "--address", quote(view_address_of(shown))]
    else:
        told += ["--address", quote(address_of(shown) or "?")]
    for name, value in specification(replace(figure, view="page")).items():
        if value is False:
            told.append(f"--no-{name}")
        elif value is True:
            told.append(f"--{name.replace('_', '-')}")
        else:
            spelled = f"{value[0]:g} {value[1]}" if isinstance(value, tuple) else str(value)
            told += [f"--{name.replace('_', '-')}", quote(spelled)]
    return " ".join([*told, "--out", figure.out])


def say(wrong):
    st.error(plain(str(wrong)), icon=":material/error:")
