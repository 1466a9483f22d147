"""What stands under a figure, and in its place: a caption, an alternative text, and both as Markdown."""

from urllib.parse import quote, urlencode

from mha_viz import __version__
from mha_viz.core.versions import release
from mha_viz.export.markdown import plain_in_a_file
from mha_viz.figures.around import seen
from mha_viz.settings import to_address
from mha_viz.views.shown import Measured


def caption(what, view):
    """A caption of what this ``view`` shows of a Shown or a Measured: what is seen, of what, and what computed or measured it."""
    drawn = view.drawn_as(what)
    said = drawn.caption(what)
    return " ".join(
        [said, drawn.trust(what), made_by()] if isinstance(what, Measured) else [*of_attention(what, drawn, said), made_by()]
    )


def of_attention(shown, view, said):
    """The sentences of a caption that begins with what is ``said``: whose attention it is, the shape of its weights, its address."""
    trace = shown.trace
    N, H, L, S = trace.plain.shape
    step_of = "" if trace.step is None else f", step {trace.step}"
    layer = f", {trace.name}{step_of}" if len(shown.source.traces) > 1 else ""
    yield f"{said}, {trace.tokens.item_name(shown.item)} of {shown.source.name}{layer}."
    if view.two and (told := told_a(shown)):
        yield told
    if shown.sight is not None:
        yield seen(trace)[0].removeprefix(" · ").capitalize() + "."
    yield f"Weights [N, H, L, S] = [{N}, {H}, {L}, {S}]{masks(shown.source)}."
    if address := address_of(shown):
        yield f"Settings: {address}."


def told_a(shown):
    """What A of a comparison is, as a sentence; "" where nobody said."""
    if shown.a_is or shown.view.pinned is None:
        return shown.a_is
    if not shown.view.pinned:
        return "A: as the app starts."
    return f"A: ?{shown.view.pinned}{' of the same file' * (shown.source.address is None)}."


def made_by():
    libraries = ", ".join(f"{name} {release(name)}" for name in ("torch", "numpy"))
    return f"Made by MHA Explorer {__version__} with {libraries}."


def masks(of):
    said = of.kind.masks(of.settings)
    return f"; {', '.join(said)}" if said else ""


def address_of(shown):
    """The address that shows the same, from the "?" on; "" for a file, and where all is as it is at first."""
    if not shown.source.kind.in_address:
        return ""
    told = shown.source.address | _display_of(shown)
    return f"?{urlencode(told)}" if told else ""


def view_address_of(shown):
    """The part of an address that says how a file is shown."""
    return f"?{urlencode(_display_of(shown))}"


def _display_of(shown):
    return to_address(**vars(shown.view), **vars(shown.walk), **vars(shown.caching))


def markdown(image, alt, caption):
    """A Markdown ``image`` with its alternative text, and the caption below it; nothing in the texts is taken for Markdown."""
    return f"![{plain_in_a_file(alt)}]({quote(image)})\n\n{plain_in_a_file(caption)}\n"
