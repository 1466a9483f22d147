"""Pitfalls: mistakes as experiments on the layer that is looked at, found by their symptom, each with the check that catches it."""

from html import escape

import streamlit as st

from mha_viz.app.drawing import CHOICES, STAGE, draw, field, fill, heard
from mha_viz.app.fragment import fragment
from mha_viz.app.looked_at import BARE, begin_whole, say_what_is_wrong, told
from mha_viz.app.looked_at import current as looked_at
from mha_viz.app.number_field import number_field
from mha_viz.app.parts.messages import mend, say_error, say_with_mends, spelled_change
from mha_viz.app.parts.toolbar import change, typed_or
from mha_viz.app.picture import picture, theme
from mha_viz.app.session import looking, write_address
from mha_viz.core.rules import Wrong
from mha_viz.export.markdown import plain


def page():
    if begin_whole("pitfalls", "layer_alone", BARE):
        fill(above=above, toolbar=symptoms, stage=stage)


@fragment(key="above")
def above():
    """What is said of what is set, and of an address that points to nothing."""
    say_what_is_wrong(looked_at(BARE), misfits())


@fragment(key="toolbar")
def symptoms():
    """The symptom that a person sees: only what may be its cause is offered."""
    from mha_viz.analysis.pitfalls import SYMPTOMS

    field(
        st.pills,
        "What do you see?",
        "pitfall_symptom",
        symptom() or None,
        choose_symptom,
        options=SYMPTOMS,
        help="Offers the pitfalls that may look like this.",
    )


@fragment(key="stage")
def stage():
    """The pitfalls to choose from, and the one that is chosen."""
    with st.container(key="stage"):
        offered, shown = st.columns([2, 7], gap="medium")
        chosen, values = choice()
        with offered, st.container(key="pitfall_list"):
            pick(chosen)
        with shown:
            about(chosen)
            knobs(chosen, values)
            experiment(chosen, values)
    write_address()


# What is chosen


def choice():
    """The Pitfall that is asked for, and the values of its knobs; the first that is offered where there is none of that name."""
    from mha_viz.analysis.pitfalls.spelling import read_pitfall

    name = looking().display.diagnosis.pitfall or offers()[0]
    try:
        return read_pitfall(name)
    except Wrong:
        return read_pitfall(offers()[0])


def symptom():
    """The symptom that is asked for, "" for all, and for one that there is not."""
    from mha_viz.analysis.pitfalls import SYMPTOMS

    named = looking().display.diagnosis.symptom
    return named if named in SYMPTOMS else ""


def misfits():
    """A Wrong for a pitfall or a symptom that there is not, in an address of long ago or one that was typed."""
    from mha_viz.analysis.pitfalls import SYMPTOMS
    from mha_viz.analysis.pitfalls.spelling import read_pitfall

    asked, found = looking().display.diagnosis, []
    try:
        read_pitfall(asked.pitfall)
    except Wrong as wrong:
        found.append(wrong)
    if asked.symptom and not symptom():
        found.append(Wrong("symptom", asked.symptom, f"is none of: {'; '.join(SYMPTOMS)}."))
    return found


def offers():
    """The names of the pitfalls that may look like the chosen symptom."""
    from mha_viz.analysis.pitfalls import PITFALLS

    return [name for name, one in PITFALLS.items() if symptom() in (*one.symptoms, "")]


def choose_symptom(named):
    change(symptom=named or "")
    if choice()[0].name not in offers():
        change(pitfall=offers()[0])
    draw(CHOICES)


def pick(chosen):
    from mha_viz.analysis.pitfalls import PITFALLS

    names = offers()
    count = f"{len(names)} pitfalls" if len(names) != 1 else "1 pitfall"
    field(
        st.radio,
        count,
        "pitfall_name",
        chosen.name if chosen.name in names else None,
        choose_pitfall,
        options=names,
        format_func=lambda name: PITFALLS[name].title,
        help="Each is an experiment on the layer that the sidebar sets.",
    )


def choose_pitfall(name):
    change(pitfall=name)
    draw(STAGE)


# What is shown of it


def about(chosen):
    st.html(
        f"<h2 class='pitfall'>{escape(chosen.title)}</h2><p class='mode'>Looks like: {escape(' · '.join(chosen.symptoms))}</p>"
        f"<p class='shapes'><b>Why.</b> {escape(chosen.why)}</p>"
    )


def knobs(chosen, values):
    """What a person can change of the experiment."""
    if not chosen.knobs:
        return
    with st.container(horizontal=True, key="knobs"):
        for knob in chosen.knobs:
            key, what, label, options = (
                f"knob_{knob.name}",
                number_field,
                f"{knob.name}, {knob.least} to {knob.most}",
                {"width": 190},
            )
            if knob.choices:
                what, label = st.selectbox, knob.name
                options = {"options": knob.choices, "width": 270 if max(map(len, knob.choices)) > 12 else 150}
            value = typed_or(key, values[knob.name])
            field(what, label, key, value, turn, (chosen.name, knob), lambda: choice()[0].name, help=knob.help, **options)
    wrong = st.session_state.get("wrong_view")
    knob = next((knob for knob in chosen.knobs if wrong is not None and wrong.argument == knob.name), None)
    if knob is not None:
        say_with_mends(wrong, lambda right: turn(right[knob.name], chosen.name, knob), key="wrong_knob")


def turn(value, name, knob):
    """Set a knob of the pitfall ``name``; what breaks its rule is said, and stays in its field."""
    from mha_viz.analysis.pitfalls.spelling import spelled as spelled_pitfall

    try:
        value = knob.check(value)
    except Wrong as wrong:
        st.session_state.wrong_view, st.session_state.typed_view = wrong, {f"knob_{knob.name}": value}
    else:
        change(pitfall=spelled_pitfall(name, choice()[1] | {knob.name: value}))
    draw(STAGE)


def experiment(chosen, values):
    """What comes out, and what would have caught it."""
    from mha_viz.analysis.pitfalls import Bench, why_no_bench

    looked = looked_at(BARE)
    trace, missing = looked.trace, why_no_bench(looked.trace)
    st.html(told(looked))
    if missing:
        st.info(f"No pitfall can be tried on this layer. {plain(missing)}", icon=":material/info:")
        return
    try:
        found = chosen.run(Bench.of(trace), **values)
    except Wrong as needed:
        say_needed(needed, looked.wrong is None)
        return
    st.html(f"<p class='chosen' role='status'><b>Here.</b> {escape(found.sentence)}</p>")
    maps(found)
    st.html(numbers(found))
    st.html(f"<p class='shapes'><b>How to avoid it.</b> {escape(chosen.avoid)}</p>")
    mistake, right = st.columns(2)
    code(mistake, "✗ The mistake", found.wrong)
    code(right, "✓ The right way", found.right)
    check(found)


def say_needed(needed, can_mend):
    """What the experiment needs, with a button that sets it."""
    say_error(needed)
    for one in needed.nearest if can_mend and needed.argument in looking().form.raw else ():
        st.button(spelled_change(one), key="needed", on_click=heard(mend), kwargs=one)


def maps(found):
    from mha_viz.figures.pitfalls import describe, shared_scale, small_map

    if not found.maps:
        return
    scale = shared_scale(found.maps)
    with st.container(horizontal=True, key="pitfall_maps"):
        for i, one in enumerate(found.maps):
            picture(small_map(one, scale, theme(), looking().view.colors), describe(one), f"pitfall_map_{i}")
    of_head = found.maps[0].quantity == "weight" and found.maps[0].rows == "query"
    named = any("head" in one.title for one in found.maps)  # of which head, or of how many, the titles say
    of = ("Item 0. " if named else "Head 0 of item 0. ") if of_head else ""
    looks = "Striped: hidden by the mask. Crossed: no key left, undefined. Checked: NaN that no mask made."
    st.caption(f"{of}Paper is 0, full ink {scale.high:.4f}. {looks}")


def numbers(found):
    rows = "".join(
        f"<tr><th scope='row'>{escape(one.what)}</th><td>{escape(one.wrong)}</td><td>{escape(one.right)}</td></tr>"
        for one in found.numbers
    )
    return (
        "<div class='compared'><table><thead><tr><td></td><th scope='col'>✗ the mistake</th><th scope='col'>✓ the right way</th></tr>"
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def code(column, title, version):
    with column:
        st.markdown(f"**{title}**")
        st.code(version.source.strip(), language="python", wrap_lines=True)


def check(found):
    """The check as text to paste, and what it says to both versions here."""
    from mha_viz.analysis.pitfalls import pasted

    st.markdown("**The check that catches it**, to paste into your own tests:")
    st.code(pasted(found.check).strip(), language="python", wrap_lines=True)
    said = [verdict(found.caught), verdict(found.objection)]
    if found.caught is None:
        said[0] += ": as it is set the mistake does no harm here, and no test could see it"
    st.markdown(f"Run here:  \n✗ the mistake {said[0]}  \n✓ the right way {said[1]}")


def verdict(objection):
    return "**passes**" if objection is None else f"**fails**: {plain(objection)}"


page()
