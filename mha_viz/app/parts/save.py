"""Save what is shown: the picture, drawn by the browser or as a file of its own, its numbers, and what to paste into a document.

A page tells what it shows by ``keep_for_saving`` and draws ``save`` in a popover; all else follows from the OnScreen that it kept.
"""

from dataclasses import dataclass

import streamlit as st

from mha_viz.app.drawing import PICTURE, draw, field, heard
from mha_viz.app.parts.messages import say_with_mends
from mha_viz.app.picture import theme
from mha_viz.app.visitor import visitor
from mha_viz.core.rules import Wrong
from mha_viz.export.markdown import plain

DRESS = {  # how a saved picture is dressed, at first as it is on screen: fields of Figure, and the format
    "format": "PNG",
    "scale": 2,
    "theme": "as on screen",
    "transparent": False,
    "title": True,
    "labels": True,
    "bar": True,
    "legend": True,
    "values": True,
    "width": "",
    "font_size": "",
    "font": "",
    "paste": "caption",
}
NO_LOOK = ("format", "scale", "paste")  # what does not change how it looks
PARTS = {"title": "titles", "labels": "labels", "bar": "colour bar", "legend": "legend", "values": "values in cells"}
PASTE = {  # what can be pasted, and its language
    "caption": None,
    "alternative text": None,
    "Markdown image": "markdown",
    "PyTorch": "python",
    "NumPy": "python",
    "pytest": "python",
    "command": "bash",
}
CODE = {"PyTorch": "torch", "NumPy": "numpy", "pytest": "pytest"}


@dataclass(frozen=True)
class OnScreen:
    """What a page shows now: a ``view`` of ``shown``, a Shown or a Measured, in a picture as wide as the ``room`` of this name, and what
    files of it are called.

    ``live`` is True where the browser can save the very picture that is on screen, zoom and marks included; any other is drawn anew.
    ``place`` is the popover that saves it, where a page has several.
    """

    shown: object
    view: str = "page"
    room: str = "picture"
    name: str = "attention"
    live: bool = False
    place: str = "save"

    @property
    def parts(self):
        """What of the picture may be left out."""
        from mha_viz.views import VIEWS

        return [part for part in PARTS if part in VIEWS[self.view].parts]

    @property
    def maps(self):
        """True of the maps that Explore shows: their numbers and programs can be saved as well."""
        from mha_viz.views import VIEWS

        return VIEWS[self.view].maps

    @property
    def measured(self):
        from mha_viz.views.shown import Measured

        return isinstance(self.shown, Measured)


def keep_for_saving(on_screen, place="save"):
    """What is shown now, None for nothing. A list, which a download's own thread can read: there is no session where that runs."""
    shown = visitor().holds[f"{place}_shown"] = st.session_state.setdefault(f"{place}_shown", [])
    shown[:] = [] if on_screen is None else [on_screen]


def save(place="save"):
    """The popover's contents."""
    saved, state = st.session_state.setdefault(f"{place}_shown", []), st.session_state
    state.setdefault("dress", dict(DRESS))
    if not saved:
        st.caption("Nothing is drawn here that could be saved.")
        return
    picture(saved)
    if saved[0].maps:
        numbers(saved)
    elif saved[0].measured:
        table(saved)
    to_paste(saved[0])


def picture(saved):
    """Its format, its dress, and the button that saves it."""
    dress, place = st.session_state.dress, saved[0].place
    st.markdown("**Picture**")
    with st.container(horizontal=True, vertical_alignment="center", key=f"{place}_picture"):
        held(place, "format", st.segmented_control, "format", options=["PNG", "SVG", "PDF", "HTML"], required=True)
        if dress["format"] == "PNG":
            held(place, "scale", st.segmented_control, "pixels", options=[1, 2, 4], format_func="{}×".format, required=True)
    with st.expander("Theme, size, what to leave out", expanded=dressed()):
        choose_dress(saved[0])
    try:
        figure = figure_now(saved[0])
    except Wrong as wrong:
        say_with_mends(wrong, dress_in, key=f"wrong_{place}")
        return
    name, key = f"{figure.out} ({'as on screen' if not dressed() else told(figure)})", f"{place}_now"
    if dress["format"] in ("PNG", "SVG"):
        st.button(f"Save {plain(name)}", key=key, type="primary", on_click=heard(ask), args=(saved, figure))
        if wrong := st.session_state.pop("wrong_saving", None):
            say(wrong)
        if not saved[0].live:
            drawn_anew(place)
    elif dress["format"] == "HTML":
        about = "One file that needs no network; pointing at a cell or a point says its exact value."
        st.download_button(
            f"Save {plain(name)}",
            lambda: page_of(saved, figure),
            figure.out,
            "text/html",
            key=key,
            type="primary",
            on_click="ignore",
            help=about,
        )
    else:
        pdf(saved, figure, name)


def choose_dress(on_screen):
    place, beside = on_screen.place, {"label_visibility": "visible"}
    with st.container(horizontal=True):
        held(place, "theme", st.selectbox, "theme", options=["as on screen", "light", "dark", "print"], width=150, **beside)
        about = "1104 px, 160 mm or 6.3 in; the height follows."
        held(place, "width", st.text_input, "width", placeholder="as on screen", width=120, help=about, **beside)
        about = "8 pt or 14 px: of ordinary text."
        held(place, "font_size", st.text_input, "text size", placeholder="14 px, or 8 pt", width=120, help=about, **beside)
        held(place, "font", st.text_input, "font", placeholder="as on screen", width=140, **beside)
    with st.container(horizontal=True):
        for part in on_screen.parts:
            held(place, part, st.checkbox, PARTS[part], **beside)
        held(place, "transparent", st.checkbox, "transparent", **beside)
    if on_screen.maps:
        st.caption("Limits of the colours are set under Scale: with the same ones, all figures of a document agree.")


def held(place, name, widget, label, label_visibility="collapsed", **options):
    """The widget of one field of the dress, which outlives the popover."""
    key = f"{place}_{name}"
    value = st.session_state.dress[name]
    field(widget, label, key, value, take, (name,), label_visibility=label_visibility, **options)


def take(value, name):
    st.session_state.dress[name] = value


def dress_in(right):
    """Set what was offered for a look that breaks a rule."""
    st.session_state.dress |= {name: "" if value is None else value for name, value in right.items()}


def dressed():
    """Whether the picture is to look otherwise than on screen."""
    return any(st.session_state.dress[name] != value for name, value in DRESS.items() if name not in NO_LOOK)


def figure_now(on_screen):
    """The Figure of what is shown, dressed as it is set; raises Wrong for a width or a size that is none."""
    from mha_viz.components import measured_width
    from mha_viz.export.figure import figure_of

    dress = {name: value for name, value in st.session_state.dress.items() if name not in PARTS or name in on_screen.parts}
    format = dress.pop("format").lower()
    if dress["theme"] == "as on screen":
        dress["theme"] = theme()
    dress["width"] = dress["width"] or f"{measured_width(on_screen.room)} px"
    kept_back = ("paste", *["scale"] * (format != "png"))  # the latter waits until it counts again
    given = {name: value for name, value in dress.items() if name not in kept_back and value not in ("", None)}
    return figure_of(given | {"out": f"{on_screen.name}.{format}", "view": on_screen.view})


def told(figure):
    number, unit = figure.size
    return f"{number:g} {unit} wide, {figure.theme}"


def ask(saved, figure):
    """Have the browser save the picture when it is next drawn, which is at once: what is on screen, or another dress of it."""
    from mha_viz.export.make import drawn

    state, live = st.session_state, saved[0].live
    asked = {"format": figure.format, "name": figure.out.rpartition(".")[0], "scale": figure.scale, "size": None}
    if dressed() or not live:
        try:
            asked |= {"figure": drawn(figure, saved[0].shown)[0], "size": figure.size}
        except Wrong as wrong:
            state.wrong_saving = wrong
            return
    state.saving = asked | {"serial": state.get("saving", {}).get("serial", 0) + 1}
    if live:
        draw(PICTURE)


def drawn_anew(place):
    """What draws the picture that was asked for last, and saves it."""
    from mha_viz.components import saver

    saver(st.session_state.get("saving", {"serial": 0}), key=f"{place}_saver")


def page_of(saved, figure):
    from mha_viz.export.make import WRITERS, drawn

    return WRITERS["html"](figure, saved[0].shown, *drawn(figure, saved[0].shown))


def pdf(saved, figure, name):
    """A PDF is drawn by a Chromium beside the app, and takes a moment: made first, then saved."""
    from mha_viz.export.browser import Browser
    from mha_viz.export.make import drawn

    state, place = st.session_state, saved[0].place
    if st.button(f"Make {plain(name)}", key=f"{place}_pdf", type="primary"):
        try:
            with st.spinner("Drawing …"), Browser() as browser:
                state.made_pdf = figure, saved[0], browser.picture(drawn(figure, saved[0].shown)[0], "pdf", size=figure.size)
        except Wrong as wrong:
            say(wrong)
    made = state.get("made_pdf")
    if made is not None and made[:2] == (figure, saved[0]):
        st.download_button("Save it", made[2], figure.out, "application/pdf", key=f"{place}_now", on_click="ignore")


def numbers(saved):
    """Tables and arrays, each made when it is asked for."""
    from mha_viz.export.make import WRITERS

    st.markdown("**Numbers**")
    about = {
        "csv": ("CSV", "text/csv", "The weights of the heads that are shown and of their average: a line per cell."),
        "npz": (
            "NPZ",
            "application/zip",
            "Every tensor by name, and the settings; mha_viz.load opens it, and so does this app.",
        ),
        "safetensors": (
            "Recording",
            "application/octet-stream",
            "q, k, v, masks and settings: small, and opened as the other is.",
        ),
        "statistics": ("Statistics", "text/csv", "Ten statistics of every head, a line each."),
    }
    if saved[0].shown.sight is not None:
        del about["npz"]  # it would hold whole maps
    with st.container(horizontal=True, key="save_numbers"):
        for kind, (label, mime, help) in about.items():
            view, ending, what = ("layers", "csv", kind) if kind == "statistics" else (saved[0].view, kind, "attention")
            st.download_button(
                label,
                lambda view=view, ending=ending: WRITERS[ending](named(saved, ending, view), saved[0].shown, None, ""),
                f"{what}-item{saved[0].shown.choice.item}.{ending}",
                mime,
                key=f"save_{kind}",
                on_click="ignore",
                help=help,
            )


def table(saved):
    """The numbers of what was measured."""
    from mha_viz.export.make import WRITERS

    st.markdown("**Numbers**")
    about = "Of a profile a line a point, of quality a line a training."
    st.download_button(
        "CSV",
        lambda: WRITERS["csv"](named(saved, "csv", saved[0].view), saved[0].shown, None, ""),
        f"{saved[0].name}.csv",
        "text/csv",
        key=f"{saved[0].place}_csv",
        on_click="ignore",
        help=about,
    )


def named(saved, ending, view="page"):
    from mha_viz.export.figure import Figure

    return Figure(out=f"attention.{ending}", view=view)


def to_paste(on_screen):
    """A text for a document or a report, with its button to copy."""
    st.markdown("**To paste**")
    offered = [what for what in PASTE if what not in CODE or on_screen.maps]
    if st.session_state.dress["paste"] not in offered:
        st.session_state.dress["paste"] = offered[0]
    held(on_screen.place, "paste", st.selectbox, "what to paste", options=offered)
    what = st.session_state.dress["paste"]
    try:
        st.code(text_of(what, on_screen), language=PASTE[what], wrap_lines=True, height=260 if what in CODE else "content")
    except Wrong as wrong:
        say(wrong)
    if what == "command" and on_screen.measured and on_screen.shown.name.endswith(".json"):
        st.caption(f"It reads {plain(on_screen.shown.name)}, which “Save the numbers” saves.")


def text_of(what, on_screen):
    from mha_viz.export import words
    from mha_viz.export.command import command
    from mha_viz.export.figure import Figure
    from mha_viz.export.make import caption_of, drawn
    from mha_viz.export.paste import PROGRAMS

    shown, view = on_screen.shown, on_screen.view
    if what in CODE:
        return PROGRAMS[CODE[what]](shown, view)
    caption, alt = caption_of(Figure(view=view), shown), drawn(Figure(view=view), shown)[1]
    if what == "caption":
        return caption
    if what == "alternative text":
        return alt
    figure = figure_now(on_screen)
    return command(figure, shown) if what == "command" else words.markdown(figure.out, alt, caption)


def say(wrong):
    st.error(plain(str(wrong)), icon=":material/error:")
