"""Decode: the tokens of the layer that is looked at, all at once with a causal mask and one at a time with a KV cache."""

from dataclasses import replace

import streamlit as st

from mha_viz.app.drawing import CHOICES, draw, fill, heard
from mha_viz.app.fragment import fragment
from mha_viz.app.looked_at import UNCHANGED, begin_whole, notes, say_what_is_wrong, to_save, told
from mha_viz.app.looked_at import current as looked_at
from mha_viz.app.number_field import number_field
from mha_viz.app.parts.decode_numbers import beside_each_other, cache_grows, compared, differences, step_in_words, works
from mha_viz.app.parts.messages import say_not_current, say_notes, say_with_mends, say_wrong
from mha_viz.app.parts.save import OnScreen, keep_for_saving, save
from mha_viz.app.parts.timed import timings
from mha_viz.app.parts.toolbar import change, popover, say_wrong_view, show
from mha_viz.app.picture import theme
from mha_viz.app.session import looking, write_address
from mha_viz.app.visitor import visitor
from mha_viz.app.warm import kept
from mha_viz.core.arrays import DTYPES
from mha_viz.core.rules import Wrong, divisors
from mha_viz.export.markdown import plain

OWN = ("prompt", "kv_heads", "token", "cache_dtype")  # what a person sets here, and not in the sidebar
BAR = ["toolbar", "stage"]


def page():
    if not begin_whole("decode", part=UNCHANGED):
        return
    looked = looked_at(UNCHANGED)
    missing = lacks(looked)
    if missing:
        say_what_is_wrong(looked)
        st.html(told(looked))
        st.info(f"Nothing is decoded here. {plain(missing)}", icon=":material/info:")
        write_address()
        return
    fill(above=above, toolbar=toolbar, stage=stage)


def lacks(looked):
    """Why the layer cannot be decoded, None where it can, or where its settings can be made such that it can."""
    from mha_viz.analysis.decoding import why_not_decoded

    return None if looked.of.kind.seeded else why_not_decoded(looked.trace)


@fragment(key="above")
def above():
    """What is said of what is set, and what this page is about."""
    _, looked, wrong = current()
    with st.container(key="messages"):
        if wrong is not None and wrong.argument in OWN:
            say_with_mends(wrong, mend)
        elif wrong is not None:
            say_wrong(wrong, looked.panel)
            say_not_current(looking().form)
        say_notes(notes(looked.of))
    causal = getattr(looked.settings, "causal", True)
    says = "" if causal else " Causal is set here, whatever the sidebar says."
    st.html(
        "<p class='mode'>The same tokens <b>all at once</b> with a causal mask, as in training, and <b>one at a time</b> with a KV cache, "
        f"as in generating.{says}</p>"
    )
    st.html(told(looked))


@fragment(key="toolbar")
def toolbar():
    """Which batch item, how the cache is kept, and the way from token to token."""
    say_wrong_view("prompt")
    found, *_ = current()
    caching, token, batch = looking().display.caching, token_of(found), found.decoding.batch
    with st.container(horizontal=True, vertical_alignment="bottom", key="decode_bar"):
        item = item_of(found)
        seen = {"label_visibility": "visible", "rerun": CHOICES}
        items, prompt = list(range(batch.N)), min(caching.prompt, batch.L)
        show("item", st.selectbox, "batch item", item, options=items, width=110, help="The sequence that is looked at.", **seen)
        about = "So many tokens are read in one call, as a prompt is; those after it one by one."
        show("prompt", number_field, "prompt", prompt, width=130, help=about, **seen)
        about = (
            "Heads of keys and values that the cache keeps. Fewer than heads: each group of query heads reads one, the mean of its "
            "heads' projections (grouped-query attention, Ainslie et al. 2023)."
        )
        kinds, of = found.decoding.num_kv_heads, divisors(found.decoding.layer.num_heads)
        show("kv_heads", st.selectbox, "KV heads", kinds, options=of, width=110, help=about, **seen)
        about = "The type of weights, cache and both computations."
        show("cache_dtype", st.selectbox, "dtype", caching.cache_dtype, options=list(DTYPES), width=120, help=about, **seen)
        step, last = found.step_of(token), len(found.decoding.steps) - 1
        for label, icon, key, by, off in (
            ("Back", "arrow_back", "Left", -1, step == 0),
            ("Next token", "arrow_forward", "Right", 1, step == last),
        ):
            st.button(label, icon=f":material/{icon}:", shortcut=key, on_click=heard(go), args=(by,), disabled=off)
        keep(found, token, item)
        popover("Save", "save", save)


@fragment(key="stage")
def stage():
    """The step that is looked at, and what belongs to all of them."""
    from mha_viz.analysis.decoding import lengths
    from mha_viz.components import live, measured_width
    from mha_viz.figures.decoding import cache, describe_cache

    found, *_ = current()
    display, token, item = looking().display, token_of(found), item_of(found)
    look = {"theme": theme(), "width": measured_width("decoding")}
    with st.container(key="stage"):
        st.html(step_in_words(found, token, item) + compared(found, token, item))
        figure = cache(found, lengths(found.decoding, item), token, item, display.view, **look)
        live(figure, key="decoding", alt=describe_cache(found, token, item), on_choose=heard(choose))
        left, right, look = beside_each_other(look)
        with left:
            differences(found, token, item, look)
            timings(found, look)
        with right:
            works(found, token, look)
            cache_grows(found, display.caching, look)
    write_address()


def keep(found, token, item):
    """What can be saved of this step: the picture of new and kept, of what is decoded now."""
    decoding = found.decoding
    _, looked, _ = current()
    causal = looked.of.kind.to_decode(looked.settings)
    if causal is not None:
        looked = replace(looked, of=looked.panel.open(causal[0]))
    grouped = decoding.num_kv_heads if decoding.num_kv_heads < decoding.layer.num_heads else None
    how = {"prompt": decoding.steps[0].stop, "kv_heads": grouped, "cache_dtype": decoding.dtype, "token": token, "item": item}
    shown = to_save(looked, **how)
    keep_for_saving(OnScreen(shown, "decode", "decoding", f"decode-token{token}-item{item}"))


def choose(choices):
    """Go to the token of a column that somebody chose."""
    change(token=choices[-1]["key"])
    draw(BAR)


def go(steps):
    """To another step; before the first and after the last there is none."""
    found, *_ = current()
    decoding = found.decoding
    step = min(max(found.step_of(token_of(found)) + steps, 0), len(decoding.steps) - 1)
    change(token=decoding.steps[step].stop - 1)
    draw(BAR)


def item_of(found):
    """The batch item that is looked at; the first where the View's is beyond the batch."""
    item = looking().view.item
    return item if item < found.decoding.batch.N else 0


def token_of(found):
    """The newest token of the step that is looked at: the one that is asked for, or the middle one."""
    L, token = found.decoding.batch.L, looking().display.caching.token
    token = token if token is not None and token < L else L // 2
    return max(token, found.decoding.steps[0].stop - 1)


def current():
    """(the Beside of what is set, the LookedAt that it is of, None); the last good ones where what is set breaks a rule, and the Wrong."""
    looked, caching, last = looked_at(UNCHANGED), looking().display.caching, visitor().holds.get("decoded_last")
    how = {"prompt": caching.prompt, "num_kv_heads": caching.kv_heads, "dtype": caching.cache_dtype}
    try:
        found = decoded(looked, how)
    except Wrong as wrong:
        of_this = last is not None and last[0].of.kind is looked.of.kind
        looked, how = last if of_this else (replace(looked, of=looked.panel.open(looked.of.kind.made()), index=0), {})
        return decoded(looked, how), looked, renamed(wrong)
    visitor().holds["decoded_last"] = looked, how
    return found, looked, looked.wrong


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


def decoded(looked, how):
    """The Beside of a layer, shared by every session that asks for the same; of a file the last one is kept."""
    from mha_viz.analysis.decoding import beside

    kind, settings = looked.of.kind, looked.settings
    causal = kind.to_decode(settings)
    of = looked.of if causal is None else looked.panel.open(causal[0])
    trace, how = of.traces[looked.index], how | (causal[1] if causal else {})

    def make():
        return beside(trace.layer, trace.batch, **how)

    if kind.in_address:
        size = 2 * kind.peak(settings)  # once all tokens at once, and once the steps
        return kept(("decoded", of.settings, looked.index, *how.items()), make, size)
    holds = visitor().holds
    last = holds.get("decoded")
    if last is None or last[0] is not trace or last[1] != how:
        last = holds["decoded"] = trace, how, make()
    return last[2]


page()
