"""What a page says: what is wrong, with the nearest right values one click away, and what is odd, with its cause."""

from html import escape

import streamlit as st

from mha_viz.app.drawing import WHOLE, draw, heard
from mha_viz.app.session import looking
from mha_viz.core.rules import Shape, Wrong
from mha_viz.core.typed_number import meant, read_number
from mha_viz.export.markdown import plain
from mha_viz.settings import ruled_value, spell


def say_wrong(wrong, panel):
    """The rule that is broken, a button for each change that would keep it, and what the ``panel`` of the source has to say besides."""
    with st.container(key="wrong"):
        say_error(wrong)
        with st.container(horizontal=True, vertical_alignment="center"):
            for number, choice in enumerate(offers(wrong)):
                st.button(spelled_change(choice), key=f"nearest_{number}", on_click=heard(mend), kwargs=choice)
            panel.beside_wrong(wrong)
        panel.below_wrong(wrong)


def say_with_mends(wrong, mend, key="wrong", **of):
    """The rule that is broken, and a button for each change that would keep it: ``mend(change)``. Where a page says several, each has
    a ``key`` of its own; ``of`` is as ``heard`` takes it."""
    with st.container(key=key):
        say_error(wrong)
        with st.container(horizontal=True):
            for number, right in enumerate(wrong.nearest):
                st.button(spelled_change(right), key=f"{key}_nearest_{number}", on_click=heard(mend, **of), args=(right,))


def say_error(wrong):
    st.error(f"**{plain(assigned(wrong.argument, wrong.value))}**: {plain(wrong.rule)}", icon=":material/error:")


def offers(wrong):
    """Changes that would keep the rule; for a field that is empty, or holds what means no number, what stood in it first."""
    last = getattr(looking().form.good, wrong.argument, None)
    says_none = wrong.value in (None, "")
    if isinstance(last, int | float) and isinstance(wrong.value, str):
        says_none = isinstance(read_number(wrong.value), str) and meant(wrong.value) is None
    if not says_none or last in (None, ""):
        return list(wrong.nearest)
    return [{wrong.argument: last}, *(choice for choice in wrong.nearest if choice != {wrong.argument: last})]


def mend(**values):
    """Set what was offered, in the form or the display; its widgets stand in the sidebar, so the whole page is drawn."""
    look = looking()
    look.form.change(**{name: value for name, value in values.items() if name in look.form.raw})
    look.change(**{name: value for name, value in values.items() if name not in look.form.raw})
    draw(WHOLE)


def say_not_current(form):
    """That the picture is of the last good settings of a ``form``, where they differ from what is set; it steps back while it is."""
    shown, wanted = form.good, form.values()
    differing = [
        f"{name} {spelled(value)}" for name, value in vars(shown).items() if value != read_or_raw(form, name, wanted[name])
    ]
    of = f": {escape(', '.join(differing))}" if differing else ""
    st.html(f"<p class='not-current'><b>Not current.</b> The picture shows the last settings that keep the rules{of}.</p>")
    st.html("<style>.st-key-stage { opacity: 0.45; }</style>")


def read_or_raw(form, name, value):
    """The ``value`` of a field as its rule brings it into form, as it is where it breaks that."""
    try:
        return ruled_value(form.of, name, value)
    except Wrong:
        return value


def say_notes(notes):
    """Values of the address that fell back to their defaults, each by name."""
    if notes:
        lines = [f"{plain(assigned(note.argument, note.value))}: {plain(note.rule)}" for note in notes]
        st.warning("The address says what cannot be shown: " + "  \n".join(lines), icon=":material/link_off:")


def say_findings(trace, sizes_chosen):
    """What is odd about this call, each with its cause."""
    from mha_viz.analysis.causes import findings

    said = [finding.sentence for finding in findings(trace, sizes_chosen)]
    if said:
        st.warning("  \n".join(map(plain, said)), icon=":material/warning:")


def spelled_change(change):
    """``embed_dim = 128, num_heads = 8`` as Markdown."""
    return plain(", ".join(assigned(name, value) for name, value in change.items()))


def assigned(name, value):
    """``num_heads = 8``; ``causal off`` of what is on or off."""
    return f"{name} {spelled(value)}" if isinstance(value, bool) else f"{name} = {spelled(value)}"


def spelled(value):
    if isinstance(value, Shape):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, bool):
        return "on" if value else "off"
    text = "none" if value in (None, ()) else spell(value).strip() or "empty"
    return text if len(text) <= 40 else text[:37] + "…"
