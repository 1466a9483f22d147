"""Decode: the tokens of the layer that is looked at, all at once with a causal mask and one at a time with a KV cache."""

from dataclasses import replace

import streamlit as st

from mha_viz.app import draft
from mha_viz.app import drawing as form
from mha_viz.app.drawing import CHOICES, draw, heard
from mha_viz.app.fragment import fragment
from mha_viz.app.looked_at import begin, of_model, say_of_model, say_what_is_wrong, to_save, told, write_address
from mha_viz.app.looked_at import current as looked_at
from mha_viz.app.number_field import number_field
from mha_viz.app.parts.decode_numbers import beside_each_other, cache_grows, compared, differences, step_in_words, works
from mha_viz.app.parts.messages import say_not_current, say_notes, say_with_mends, say_wrong, say_wrong_view
from mha_viz.app.parts.save import OnScreen, keep_for_saving, save
from mha_viz.app.parts.timed import timings
from mha_viz.app.parts.toolbar import change, lazy_popover, show
from mha_viz.app.visitor import visitor
from mha_viz.app.warm import kept, synthetic_trace
from mha_viz.core.rules import Wrong, divisors
from mha_viz.export.markdown import plain
from mha_viz.settings import Settings
from mha_viz.settings.view import DTYPES

OWN = ("prompt", "kv_heads", "token", "cache_dtype")  # what a person sets here, and not in the sidebar
BAR = ["toolbar", "stage"]


def page():
    if not begin("decode"):
        return
    missing = of_model() and lacks(looked_at().trace)
    if missing:
        say_what_is_wrong()
        st.html(told(looked_at()))
        st.info(f"Nothing is decoded here. {plain(missing)}", icon=":material/info:")
        write_address()
        return
    head, tools, shown = form.rooms("above", "toolbar", "stage")
    with head:
        above()
    with tools:
        toolbar()
    with shown:
        stage()
    form.drawn()


def lacks(trace):
    from mha_viz.analysis.decoding import why_not_decoded

    return why_not_decoded(trace)


@fragment(key="above")
def above():
    """What is said of what is set, and what this page is about."""
    found, wrong = current()
    with st.container(key="messages"):
        if wrong and (wrong.argument in OWN or of_model()):
            say_with_mends(wrong, mend)
        elif wrong:
            say_wrong(wrong)
            say_not_current(st.session_state.decoded[0], draft.values())
        if of_model():
            say_of_model()
        else:
            say_notes(draft.notes(found.full))
    says = "" if of_model() or st.session_state.decoded[0].causal else " Causal is set here, whatever the sidebar says."
    st.html(
        "<p class='mode'>The same tokens <b>all at once</b> with a causal mask, as in training, and <b>one at a time</b> with a KV cache, "
        f"as in generating.{says}</p>"
    )
    if of_model():
        st.html(told(looked_at()))


@fragment(key="toolbar")
def toolbar():
    """Which batch item, how the cache is kept, and the way from token to token."""
    say_wrong_view("prompt")
    found, _ = current()
    view, token, batch = st.session_state.view, token_of(found), found.decoding.batch
    with st.container(horizontal=True, vertical_alignment="bottom", key="decode_bar"):
        item = item_of(found)
        visible = {"label_visibility": "visible", "rerun": CHOICES}
        show(
            "item", st.selectbox, "batch item", item, options=list(range(batch.N)), width=110, help="The sequence that is looked at.",
            **visible,
        )  # fmt: skip
        prompt = view.prompt if view.prompt <= batch.L else batch.L
        show(
            "prompt", number_field, "prompt", prompt, width=130,
            help="So many tokens are read in one call, as a prompt is; those after it one by one.", **visible,
        )  # fmt: skip
        show(
            "kv_heads", st.selectbox, "KV heads", found.decoding.num_kv_heads, options=divisors(found.decoding.layer.num_heads), width=110,
            help="Heads of keys and values that the cache keeps. Fewer than heads: each group of query heads reads one, the mean of its "
            "heads' projections (grouped-query attention, Ainslie et al. 2023).", **visible,
        )  # fmt: skip
        show(
            "cache_dtype", st.selectbox, "dtype", view.cache_dtype, options=list(DTYPES), width=120,
            help="The type of weights, cache and both computations.", **visible,
        )  # fmt: skip
        st.button(
            "Back",
            icon=":material/arrow_back:",
            shortcut="Left",
            on_click=heard(go),
            args=(-1,),
            disabled=found.step_of(token) == 0,
        )
        last = found.step_of(token) == len(found.decoding.steps) - 1
        st.button("Next token", icon=":material/arrow_forward:", shortcut="Right", on_click=heard(go), args=(1,), disabled=last)
        keep(found, token, item)
        with lazy_popover("Save", "save") as opened:
            if opened:
                save()


@fragment(key="stage")
def stage():
    """The step that is looked at, and what belongs to all of them."""
    from mha_viz.analysis.decoding import lengths
    from mha_viz.components import live, measured_width
    from mha_viz.figures.decoding import cache, describe_cache

    found, _ = current()
    view, token, item = st.session_state.view, token_of(found), item_of(found)
    look = {"theme": st.context.theme.type or "light", "width": measured_width("decoding")}
    with st.container(key="stage"):
        st.html(step_in_words(found, token, item) + compared(found, token, item))
        figure = cache(found, lengths(found.decoding, item), token, item, view, **look)
        live(figure, key="decoding", alt=describe_cache(found, token, item), on_choose=heard(choose))
        left, right, look = beside_each_other(look)
        with left:
            differences(found, token, item, look)
            timings(found, look)
        with right:
            works(found, token, look)
            cache_grows(found, view, look)
    write_address()


def keep(found, token, item):
    """What can be saved of this step: the picture of new and kept, of what is decoded now."""
    from mha_viz.analysis.decoding import decodable

    looked, decoding = looked_at(), found.decoding
    if not of_model():
        settings = decodable(st.session_state.decoded[0])
        looked = replace(looked, settings=settings, trace=synthetic_trace(replace(settings, batch_first=True)))
    grouped = decoding.num_kv_heads if decoding.num_kv_heads < decoding.layer.num_heads else None
    how = {"prompt": decoding.steps[0].stop, "kv_heads": grouped, "cache_dtype": decoding.dtype, "token": token, "item": item}
    shown = to_save(looked, replace(st.session_state.view, **how))
    keep_for_saving(OnScreen(shown, "decode", "decoding", f"decode-token{token}-item{item}"))


def choose(choices):
    """Go to the token of a column that somebody chose."""
    change(token=choices[-1]["key"])
    draw(BAR)


def go(steps):
    """To another step; before the first and after the last there is none."""
    found, _ = current()
    decoding = found.decoding
    step = min(max(found.step_of(token_of(found)) + steps, 0), len(decoding.steps) - 1)
    change(token=decoding.steps[step].stop - 1)
    draw(BAR)


def item_of(found):
    """The batch item that is looked at; the first where the View's is beyond the batch."""
    item = st.session_state.view.item
    return item if item < found.decoding.batch.N else 0


def token_of(found):
    """The newest token of the step that is looked at: the View's, or the middle one."""
    L, token = found.decoding.batch.L, st.session_state.view.token
    token = token if token is not None and token < L else L // 2
    return max(token, found.decoding.steps[0].stop - 1)


def current():
    """The Beside of what is set, and None; the last good one where it breaks a rule, and the Wrong."""
    from mha_viz.analysis.decoding import decodable

    state, view = st.session_state, st.session_state.view
    how = {"prompt": view.prompt, "num_kv_heads": view.kv_heads, "dtype": view.cache_dtype}
    if of_model():
        trace = looked_at().trace
        try:
            return decoded_model(trace, how), None
        except Wrong as wrong:
            return decoded_model(trace, {}), renamed(wrong)
    try:
        settings = draft.settings()
        found = decoded(decodable(settings), **how)
    except Wrong as wrong:
        settings, how = state.setdefault("decoded", (Settings(), {}))
        return decoded(decodable(settings), **how), renamed(wrong)
    state.decoded = settings, how
    return found, None


def renamed(wrong):
    """The Wrong with the names that its argument has on this page."""
    names = {"num_kv_heads": "kv_heads"}
    if wrong.argument not in names:
        return wrong
    nearest = [{names.get(name, name): value for name, value in change.items()} for change in wrong.nearest]
    return Wrong(names[wrong.argument], wrong.value, wrong.rule, nearest)


def mend(right):
    change(**right)
    draw(CHOICES)


def decoded_model(trace, how):
    """The Beside of a model's layer; the last one is kept."""
    from mha_viz.analysis.decoding import beside

    holds = visitor().holds
    kept = holds.get("decoded_model")
    if kept is None or kept[0] is not trace or kept[1] != how:
        kept = holds["decoded_model"] = trace, how, beside(trace.layer, trace.batch, **how)
    return kept[2]


def decoded(settings, prompt=1, num_kv_heads=None, dtype="float32"):
    """The Beside of these Settings, shared by every session that asks for the same."""
    from mha_viz.analysis.decoding import beside
    from mha_viz.sources.synthetic import peak_of

    how = {"prompt": prompt, "num_kv_heads": num_kv_heads, "dtype": dtype}
    trace = synthetic_trace(replace(settings, batch_first=True))
    size = 2 * peak_of(settings)  # once all tokens at once, and once the steps
    key = "decoded", settings, *how.values()
    return kept(key, lambda: beside(trace.layer, trace.batch, **how, training=settings.training, seed=settings.seed), size)


page()
