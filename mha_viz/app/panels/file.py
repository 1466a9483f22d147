"""A file of the person's own: a recording, weights, maps; token lists for what is open."""

import os
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from mha_viz.app.drawing import field, heard, renew
from mha_viz.app.number_field import number_field, written
from mha_viz.app.opened import close, hold, keep_open, reading
from mha_viz.app.panels.panel import Panel
from mha_viz.app.parts.messages import say_error, say_with_mends
from mha_viz.app.session import looking
from mha_viz.core.decimals import fill, prose
from mha_viz.core.rules import Wrong
from mha_viz.export.markdown import plain
from mha_viz.settings import Display, View
from mha_viz.settings.environment import FILE
from mha_viz.sources.base import Source
from mha_viz.sources.files.kind import FILE as KIND

TYPES = ["safetensors", "pt", "pth", "npy", "npz", "txt", "json"]


class FilePanel(Panel):
    kinds = ("file",)

    def begin(self):
        """Open the file that the command line named, once in a session: where no address says what to look at, it is looked at first."""
        hold()
        state, path = st.session_state, os.environ.get(FILE)
        if path and "opened" not in state and (looking().kind is self.kind or not st.query_params):
            from mha_viz.sources.files import look

            looking().choose(self.kind.name)
            state.opened = {}
            take(Path(path).name, 0, lambda: look(Path(path).name, Path(path)))

    def sidebar(self):
        """The upload, and a choice among what was opened before."""
        about = (
            "A recording (recording.save), weights (a state_dict as .safetensors or .pt), or attention maps (.npy, .npz, "
            ".safetensors) from any framework. A token list (.txt, .json) names the rows and columns of what is open, a list for "
            "each batch item or one for all; a blank line begins the next. Nothing leaves this machine. Larger files: "
            "python -m mha_viz run FILE."
        )
        st.file_uploader("Open a file", TYPES, key="upload", on_change=heard(take_upload, "upload"), help=about)
        opened, name = st.session_state.setdefault("opened", {}), current()
        if name is not None and opened[name][0].kind == "weights":
            st.file_uploader(
                "An input for these weights",
                TYPES[:5],
                key="input_upload",
                on_change=heard(take_input, "input_upload"),
                help="[N, L, E], as .npy, or named query in .npz or .safetensors. Until then they read random numbers.",
            )
        if len(opened) > 1:
            field(st.selectbox, "opened", "opened_file", name, show, options=list(opened))
        if name is not None:
            st.button(
                "Close this file", key="close_file", on_click=heard(close_file), args=(name,), help="It gives its memory back."
            )

    def open(self, settings):
        """The Source of an opened file, None where it is not open in this session."""
        opened = st.session_state.get("opened", {})
        if settings.file not in opened:
            return None
        recording = opened[settings.file][2]
        return Source(settings.file, recording.traces, settings, tuple(recording.notes), recording.cause)

    def ask(self):
        if st.session_state.get("wrong_file") is not None:
            say_error(st.session_state.wrong_file)
        questions()
        ask_for_the_rest()

    def nothing(self):
        name = looking().form.value("file")
        gone = (
            f"**{plain(name)}** is not open in this session: an address names a file and does not hold it.  \n" if name else ""
        )
        return f"{gone}Open a file on the left: a recording of your own model, its weights, or its attention maps."

    def above(self, looked):
        """Which file it is."""
        found = st.session_state.opened[looked.settings.file][0]
        st.markdown(f"**{plain(found.name)}** · {found.kind}")

    def inputs(self, looked):
        """The calls of the same module: each ran on an input of its own."""
        return [looked.of.traces[i] for i in same_module(looked)]

    def go_to(self, looked, example):
        return {"layer": same_module(looked)[example.trace]}


def same_module(looked):
    """The layers that are calls of the module that is looked at."""
    return [i for i, trace in enumerate(looked.of.traces) if trace.name == looked.trace.name]


def current():
    """The name of the file that is looked at, None before one is opened."""
    name = looking().form.raw.get("file")
    return name if name in st.session_state.get("opened", {}) else None


def take_upload(upload):
    """Look at what was uploaded; open it where nothing has to be asked."""
    if upload is not None:
        from mha_viz.sources.files import look

        take(upload.name, upload.size, lambda: look(upload.name, upload.getvalue()))


def take(name, size, look):
    """Look at a file of which ``size`` bytes are in memory, and open it where nothing has to be asked."""
    state = st.session_state
    try:
        with reading(name, size):
            found = look()
        state.asked_size = size
        if found.kind == "tokens" and current() is not None and state.opened[current()][0].kind != "tokens":
            name_tokens(found)
        elif found.questions:
            state.asked = found
        else:
            state.asked = None
            put(found, {}, size)
        state.wrong_file = None
    except Wrong as wrong:
        state.wrong_file = wrong  # what was open stays open


def name_tokens(found, rest=None):
    """Give what is open the names in a token list. Where it names fewer tokens than there are, the ``rest`` is "numbered" or "cropped";
    None asks which."""
    from mha_viz.sources.files import open_found

    of, answers, _ = st.session_state.opened[current()]
    if isinstance(of, Kept):
        raise Wrong("file", found.name, f"names tokens, and those of {of.name} have names.")
    queries, keys = (one_for_all(texts, len(recording().traces[0].weights)) for texts in found.content.lists())
    st.session_state.too_few = None
    L, S = recording().traces[0].shape[2:]
    most = max(map(len, queries))
    if rest is None and keys is None and L == S and most < L:
        st.session_state.too_few = found, most, L, current()
        return
    if rest is not None:
        queries = tuple((*item, *map(str, range(len(item), L))) for item in queries)
    named = open_found(of, tokens=queries, key_tokens=keys, **answers)
    said = f"Rows and columns are named by {found.name}"
    if rest == "cropped":
        from mha_viz.sources.pretrained.shape import taken

        first = [range(most)] * len(queries)
        named.traces = tuple(taken(trace, range(len(queries)), first) for trace in named.traces)
        said = f"{said}, and cropped to the {most} tokens that it names: each row shares among them what it gave to the others"
    elif rest == "numbered":
        said = f"{said}; it names {most} of {L} tokens, and the rest are numbered"
    named.notes = (*named.notes, f"{said}.")
    keep_open(current(), of, answers, named)


def ask_for_the_rest():
    """Where a token list names fewer tokens than the maps have: whether to crop these or to number the rest, while they are looked at."""
    found, names, tokens, of = st.session_state.get("too_few") or (None, 0, 0, None)
    if found is None or of != current():
        return
    with st.container(border=True, key="too_few"):
        st.markdown(f"**{plain(found.name)}** names {names} tokens, and the maps have {tokens}.")
        with st.container(horizontal=True):
            for rest, label in (("cropped", f"Crop the maps to the first {names}"), ("numbered", "Number the rest")):
                st.button(label, key=f"rest_{rest}", on_click=heard(take_rest), args=(found, rest))
            st.button("Leave the names out", key="rest_none", on_click=heard(take_rest), args=(None, None))


def take_rest(found, rest):
    state = st.session_state
    state.too_few = None
    if found is None:
        return
    try:
        name_tokens(found, rest)
        state.wrong_file = None
    except Wrong as wrong:
        state.wrong_file = wrong


def one_for_all(texts, count):
    """Token lists for ``count`` batch items: a single list names them all. Raises Wrong for another number of lists."""
    if texts is None or len(texts) == count:
        return texts
    if len(texts) > 1:
        raise Wrong(
            "token lists",
            len(texts),
            f"must be one for each batch item, {count}, or one for all. A blank line begins the next.",
        )
    return tuple(texts) * count


def take_input(upload):
    """Let the weights that are open read what was uploaded."""
    from mha_viz.sources.files import open_found, read_input

    state = st.session_state
    found, answers, _ = state.opened[current()]
    try:
        query = None if upload is None else read_input(upload.name, upload.getvalue())[0]
        keep_open(current(), found, answers, open_found(found, query=query, **answers))
        state.wrong_file = None
    except Wrong as wrong:
        state.wrong_file = wrong


@dataclass(frozen=True)
class Kept:
    """What stands in the place of a file for a recording that never was one: nothing is asked of it."""

    name: str
    kind: str


def keep(name, kind, recording):
    """Look at a recording that was made in this session, beside the files that are open."""
    keep_open(name, Kept(name, kind), {}, recording)
    show(name)


def put(found, answers, size):
    from mha_viz.sources.files import open_found

    recording = open_found(found, **answers)
    linked = current() is None and found.name == looking().form.raw["file"] and looking().display != Display()
    keep_open(found.name, found, answers, recording, size)
    if not linked:  # an address that names the file has said what to look at
        show(found.name)


def close_file(name):
    """Close an opened file, and look at the one that was opened last of the others."""
    close(name)
    renew()
    left = list(st.session_state.opened)
    if left:
        show(left[-1])
    else:
        looking().form.change(file="")


def show(name):
    """Look at an opened file, at the cause of what went wrong in it if there is one."""
    look = looking()
    renew()
    look.choose(KIND.name)
    look.form.change(file=name)
    cause = st.session_state.opened[name][2].cause
    place = {}
    if cause is not None:
        cell = None if cause.query is None else (cause.query, None)
        place = {
            "layer": cause.trace or 0,
            "item": cause.item or 0,
            "head": cause.head,
            "cell": cell,
        }  # outside attention the first
    look.display = Display(View(**place))


def questions():
    """What has to be known before the file is opened: what it holds, each question with its guess, and a button."""
    state = st.session_state
    found = state.get("asked")
    if found is None:
        return
    with st.container(border=True, key="asked"):
        st.markdown(f"**{plain(found.name)}** · {found.kind}")
        for sentence in found.holds:
            st.markdown(plain(sentence))
        answers, fields = {}, set()
        while question := next((one for one in found.ask(**answers) if one.field not in fields), None):
            fields.add(question.field)
            answers |= ask(found, question)
        if found.kind == "weights":
            known_output(found)
        with st.container(horizontal=True):
            open_it = {"type": "primary", "on_click": heard(open_asked), "args": (found, answers)}
            st.button("Open", disabled=len(answers) < len(fields), help="Once every question has an answer.", **open_it)
            st.button("Not now", on_click=heard(forget))


def ask(found, question):
    """One question as a widget: its answer by its field, {} where there is none yet. What one asks may depend on those before."""
    key, choices = f"answer_{found.name}_{question.field}", question.choices
    if isinstance(choices, range):
        value = number_field(plain(question.text), value=written(question.guess), key=key)
    else:
        if st.session_state.get(key) not in choices:
            st.session_state.pop(key, None)
        index = choices.index(question.guess) if question.guess in choices else None
        value = st.selectbox(plain(question.text), choices, index, key=key, format_func=in_words)
    if question.check:
        st.caption(plain(question.check))
    try:
        return {} if value is None else {question.field: question.answered({question.field: value})}
    except Wrong as wrong:
        say_with_mends(wrong, lambda right: answer_with(key, right[question.field]), key=f"wrong_{question.field}")
        return {}


def answer_with(key, answer):
    st.session_state[key] = written(answer)


def known_output(found):
    """What numbers in weights cannot say, an output that is known for an input can."""
    st.file_uploader(
        "Something known tells what is not: query and output of one layer, in one .npz or .safetensors",
        TYPES[:5],
        key="known",
        on_change=heard(try_answers, "known"),
        args=(found,),
        help="What one attention layer of the model was given, query [N, L, E], and what it gave after its output projection, output. "
        "Every combination of answers is run on it.",
    )
    if st.session_state.get("fitted"):
        st.success(plain(st.session_state.fitted), icon=":material/check:")


def try_answers(upload, found):
    """Answer the questions as the known output does."""
    from mha_viz.sources.files import agreeing, fits, read_input

    state = st.session_state
    state.fitted = None
    if upload is None:
        return
    try:
        query, output = read_input(upload.name, upload.getvalue())
        if output is None:
            raise Wrong("file", upload.name, "holds an input alone: an array named output is needed beside query.")
        tried = fits(found, query, output)
        best, others = agreeing(tried), tried[1:]
        for name, value in best.answers.items():
            state[f"answer_{found.name}_{name}"] = value
        rest = [fit for fit in others if not fit.agrees]
        beside = f" The next other answer is off by {prose(rest[0].error, '.2g')}." if rest else ""
        said = ", ".join(f"{name} = {in_words(value)}" for name, value in best.answers.items())
        state.fitted = (
            f"Of {len(tried)} combinations this gives the output, "
            + fill("off by at most {:.2g} where it reaches {:.3g}: ", best.error, best.size)
            + f"{said}.{beside}"
        )
        state.wrong_file = None
    except Wrong as wrong:
        state.wrong_file = wrong


def in_words(choice):
    if isinstance(choice, bool):
        return "yes" if choice else "no"
    return ", ".join(map(str, choice)) if isinstance(choice, tuple) else str(choice)


def open_asked(found, answers):
    state = st.session_state
    try:
        with reading(found.name, state.asked_size):
            put(found, answers, state.asked_size)
        state.asked = state.wrong_file = state.fitted = None
    except Wrong as wrong:
        state.wrong_file = wrong


def forget():
    st.session_state.asked = st.session_state.wrong_file = None


def recording():
    """The Recording that is looked at."""
    return st.session_state.opened[current()][2]
