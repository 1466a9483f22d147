"""Step by step: one query of the layer that is looked at, from its token to the output, in mathematics, NumPy and PyTorch."""

from html import escape

import streamlit as st

from mha_viz.app.drawing import CHOICES, draw, field, fill, heard
from mha_viz.app.fragment import fragment
from mha_viz.app.looked_at import UNCHANGED, begin_whole, current, file_name, say_what_is_wrong, to_save
from mha_viz.app.looked_at import told as told_of_layer
from mha_viz.app.number_field import number_field, typed
from mha_viz.app.page_list import file_of
from mha_viz.app.parts.save import OnScreen, keep_for_saving, save
from mha_viz.app.parts.shapes import token
from mha_viz.app.parts.step_words import OF_HEAD, OF_KEY, SHORT, STAGES, formulas, symbols, told
from mha_viz.app.parts.toolbar import change, choose_item, popover, say_wrong_view, typed_or
from mha_viz.app.picture import picture, theme
from mha_viz.app.session import looking, write_address
from mha_viz.core.decimals import prose
from mha_viz.core.rules import Wrong, whole
from mha_viz.export.markdown import plain
from mha_viz.settings import STEPS

LANGUAGE_WORDS = {"mathematics": "mathematics", "numpy": "NumPy from scratch", "torch": "PyTorch"}
MOST = 300  # tokens that a list offers; beyond it their number is typed


def page():
    if not begin_whole("steps", part=UNCHANGED):
        return
    looked = current(UNCHANGED)
    if looked.trace.off:
        say_what_is_wrong(looked)
        st.info(
            "A head is off in this recording, and its numbers are another's: record it with its heads on.",
            icon=":material/info:",
        )
        write_address()
        return
    fill(above=above, toolbar=toolbar_alone, stage=stage)


@fragment(key="above")
def above():
    """What is said of what is set: what is wrong with it, and what of the address cannot be shown."""
    say_what_is_wrong(current(UNCHANGED))


@fragment(key="toolbar")
def toolbar_alone():
    """What is followed: batch item, head, query and key."""
    from mha_viz.analysis import choose

    trace = current(UNCHANGED).trace
    choice = choose(trace, looking().view)
    _, H, L, S = trace.weights.shape
    together = looking().display.walk.together
    with st.container(horizontal=True, vertical_alignment="bottom", key="followed"):
        choose_item(trace, choice.item, 110, 230, "visible", CHOICES)
        heads = {-1: "all heads"} | {head: f"head {head}" for head in range(H)}
        pick("head", "through", list(heads), -1 if together else choice.head, choose_head, 150, heads.get)
        pick_token("query", "follow query", L, choice.query, trace.query_tokens[choice.item])
        pick_token("key", "numbers for key", S, choice.key, trace.key_tokens[choice.item])


def pick(name, label, options, value, take, width, words):
    field(st.selectbox, label, f"follow_{name}", value, take, options=options, format_func=words, width=width)


def pick_token(name, label, count, value, tokens):
    """One of the tokens, from a list; where there are too many for one, by its number."""
    if count <= MOST:
        words = [str(i) if tokens[i] == str(i) else f"{i} “{tokens[i]}”" for i in range(count)]
        pick(name, label, list(range(count)), value, choose_cell, 170, words.__getitem__)
        return
    key = f"follow_{name}"
    field(number_field, label, key, typed_or(key, value), choose_token, (name, count), width=170)


def choose_head(head):
    """Another head, or all of them: the query that is followed stays."""
    change(together=head < 0, cell=cell_asked(), **({} if head < 0 else {"head": head}))
    draw(CHOICES)


def choose_cell(_):
    change(cell=cell_asked())
    draw(CHOICES)


def choose_token(value, name, count):
    """The token of this number; what is none of them stays in its field to be mended."""
    state, (query, key) = st.session_state, cell_asked()
    try:
        whole(name, value, 0, count - 1)
    except Wrong as wrong:
        right = wrong.nearest[0][name]
        cell = (right, key) if name == "query" else (query, right)
        state.wrong_view = Wrong(name, value, wrong.rule, [{"cell": cell}])
        state.typed_view = {f"follow_{name}": value}
        draw(CHOICES)
    else:
        choose_cell(value)


def cell_asked():
    """(query, key) of the controls, the ends of a list or numbers that are typed."""
    held = (st.session_state[f"follow_{name}"] for name in ("query", "key"))
    return tuple(typed(one) if isinstance(one, str) else one for one in held)


@fragment(key="stage")
def stage():
    """The step that is shown, and the way to the others."""
    looked = current(UNCHANGED)
    trace = looked.trace
    walked = walked_now(trace)
    step = step_of(walked)
    keep(step, walked, looked)
    with st.container(key="stage"):
        say_wrong_view()
        if looking().view.what_if:
            st.caption("What if is left out here: these are the steps of the layer as it is.")
        ways(walked.steps, step)
        st.html(f"<p class='step-told'>{escape(told(step, walked, trace))}</p>")
        if step == "validate":
            with st.container(key="holds"):
                checks(walked)
        words, key = st.columns([3, 2])
        with words, st.container(key="told"):
            with st.container(horizontal=True, key="languages"):
                either("language", LANGUAGE_WORDS, looking().display.walk.language)
            if looking().display.walk.language == "mathematics":
                mathematics(step, walked, trace)
            else:
                code(step, walked, looked)
        with key, st.container(key="symbols"):
            symbol_key(step, trace)
        drawn(step, walked, looked.batch_first)
        st.html(told_of_layer(looked))
        left_out(walked)
    write_address()


def left_out(walked):
    """The steps that cannot be followed here, and why."""
    reasons = {}
    for step, why in walked.missing.items():
        reasons.setdefault(why, []).append(SHORT[step])
    if reasons:
        said = " ".join(f"**{plain(', '.join(steps))}**: {plain(why)}" for why, steps in reasons.items())
        st.caption(f"Steps that cannot be followed here. {said}")


def walked_now(trace):
    from mha_viz.analysis import choose
    from mha_viz.analysis.walkthrough import walk

    choice, together = choose(trace, looking().view), looking().display.walk.together
    return walk(trace, choice.item, None if together else choice.head, choice.query, choice.key, choice.head)


def step_of(walked):
    """The step that is asked for; the softmax in place of a dropout that does not fall, the first where that step is not known."""
    step = looking().display.walk.step
    return step if step in walked.steps else "softmax" if step == "dropout" else walked.steps[0]


def ways(steps, step):
    """The tutorial's five steps, those of this layer, the buttons and keys that lead forward and back, and what saves this one."""
    number = steps.index(step)
    with st.container(horizontal=True, vertical_alignment="center", key="ways"):
        st.button("Back", key="step_back", on_click=heard(go), args=(steps, number - 1), disabled=number == 0, shortcut="Left")
        either("step", {name: SHORT[name] for name in steps}, step)
        last = number == len(steps) - 1
        st.button("Forward", key="step_on", on_click=heard(go), args=(steps, number + 1), disabled=last, shortcut="Right")
        popover("Save", "save", save)
    stages = (f"<b aria-current='step'>{name}</b>" if name == STEPS[step][0] else name for name in STAGES)
    st.html(
        f"<div class='step-head'><h2 role='status'>{number + 1} of {len(steps)} · {escape(STEPS[step][1])}</h2>"
        f"<p>{' <span class=arrow>→</span> '.join(stages)}</p></div>"
    )


def either(name, words, value):
    """One of a few values of the field ``name``, a button each: a control of several would keep the arrow keys to itself."""
    for option, label in words.items():
        kind = "primary" if option == value else "secondary"
        st.button(label, key=f"{name}_{option}", type=kind, on_click=heard(change), kwargs={name: option})


def go(steps, number):
    change(step=steps[min(max(number, 0), len(steps) - 1)])


def mathematics(step, walked, trace):
    general, numbers = formulas(step, walked, trace)
    st.latex(general)
    if numbers and step == "configure":
        st.latex(numbers)
    elif numbers:
        whose = [token(trace, 0, walked.item, walked.query)] * (step != "keys")
        whose += [token(trace, 1, walked.item, walked.key)] * (step in OF_KEY)
        whose += [f"head {walked.shown}"] * (step in OF_HEAD)
        st.html(f"<p class='with-numbers'>with the numbers of {', '.join(whose)}:</p>")
        st.latex(numbers)


def code(step, walked, looked):
    """The lines of this step, and the program that they are a part of; of a model's layer, the file that the program reads."""
    from mha_viz.export.code import program, shown_expression, step_lines
    from mha_viz.export.kept import kept, numbers, why_not_kept

    seeded = looked.of.kind.seeded
    settings, language, together = looked.settings, looking().display.walk.language, walked.head is None
    if not seeded:
        missing = why_not_kept(looked.trace)
        if missing:
            st.info(f"No program can be given here. {plain(missing)}", icon=":material/info:")
            return
        settings = kept(looked.trace, file_name(looked))
    lines = step_lines(settings, language, step)
    if step != "validate":
        lines = [*lines, f"print({shown_expression(settings, language, step, together)})"]
    st.code("\n".join(lines), language="python", wrap_lines=True)
    place = {"item": walked.item, "head": walked.shown, "query": walked.query, "together": together}
    beside = "" if seeded else f" beside {settings.file}"
    with st.expander(f"The whole program up to here, which runs as it stands{plain(beside)}"):
        st.code(program(settings, language, step, **place), language="python", height=360)
        if not seeded:
            st.download_button(
                f"Save {settings.file}",
                lambda: numbers(looked.trace),
                settings.file,
                "application/octet-stream",
                on_click="ignore",
                icon=":material/download:",
                help="The layer's weights and its input: the program reads it from the folder it is run in.",
            )


def symbol_key(step, trace):
    rows = [f"| ${symbol}$ | {about} | {shape} |" for symbol, about, shape in symbols(step, trace)]
    st.markdown("\n".join(["| symbol | is | shape |", "|---|---|---|", *rows]))


def checks(walked):
    """What was compared, with its figure and what it may be."""
    verdicts = {True: "holds", False: "**fails**", None: "not checked"}
    lines = [
        f"| {verdicts[check.holds]} | {plain(check.name)} | {plain(check.words)} | {written(check.figure)} | {written(check.limit)} |"
        for check in walked.checks
    ]
    st.markdown("\n".join(["| verdict | check | what was compared | figure | limit |", "|---|---|---|---|---|", *lines]))

    more = "More checks, of the whole layer: padding, causality, gradients, dropout, the fast path"
    st.page_link(file_of("validate"), label=more, icon=":material/fact_check:", query_params=st.session_state.address)


def written(number):
    return "" if number is None else prose(number, ".3g")


def drawn(step, walked, batch_first):
    """The tensors of the step as pictures, each with its shape in the present layout."""
    from mha_viz.analysis.walkthrough import in_layout
    from mha_viz.components import room
    from mha_viz.figures import steps

    tensors = in_layout(walked.tensors[step], batch_first)
    width = room("steps_room")
    if not tensors:
        return
    figure = steps.picture(tensors, theme(), width, summed=step == "project")
    if any(one.kind == "signed" for one in tensors):
        st.html(
            "<p class='mode'>Blue above zero, orange below, the stronger the larger within its tensor; hatched: hidden by a mask.</p>"
        )
    picture(figure, steps.describe(tensors), f"step_picture_{step}")


def keep(step, walked, looked):
    """What can be saved of this step: its picture, where it has one."""
    shown = to_save(looked, step=step)
    name = f"step-{step}-item{walked.item}"
    keep_for_saving(OnScreen(shown, "steps", "steps_room", name) if walked.tensors[step] else None)


page()
