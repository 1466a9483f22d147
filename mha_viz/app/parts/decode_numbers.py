"""What a step of decoding comes to, in words and in lines over all steps."""

from html import escape

import numpy as np
import streamlit as st

from mha_viz.app.number_field import number_field
from mha_viz.app.parts.shapes import axes, named
from mha_viz.app.parts.toolbar import say_wrong_view, show
from mha_viz.app.picture import picture
from mha_viz.core.decimals import fill, prose

NARROW = 900  # px below which graphs stand one under the other
UNITS = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "bytes": 1}


def step_in_words(found, token, item):
    """What this step reads, makes and keeps, with the cache's bytes by formula and by number."""
    from mha_viz.core.decode import SIZES, cache_bytes
    from mha_viz.core.memory import readable_size

    decoding = found.decoding
    number = found.step_of(token)
    step, N, H, G, D = (
        decoding.steps[number],
        decoding.batch.N,
        decoding.layer.num_heads,
        decoding.num_kv_heads,
        decoding.layer.head_dim,
    )
    n = step.stop - step.start
    new = named("token", token, decoding.batch.key_tokens[item][token])
    new = f"{new} is new" if n == 1 else f"the prompt, tokens 0 to {token}, is read in one call"
    size = SIZES[decoding.dtype]
    by_formula = cache_bytes(step.stop, G, D, dtype=decoding.dtype, batch_size=N)
    formula = f"2 · N {N} · G {G} · S {step.stop} · D {D} · {size} bytes"
    return (
        f"<p class='chosen' role='status'><b>Step {number + 1} of {len(decoding.steps)}</b>: {new}. Made: q {axes(N=N, H=H, L=n, D=D)}, "
        f"k and v {axes(N=N, G=G, L=n, D=D)} each. The cache held {step.start} token{'' if step.start == 1 else 's'} and "
        f"holds {step.stop}: {formula} = <b>{by_formula:,}</b> bytes ({readable_size(by_formula)}); counted in its tensors: "
        f"<b>{step.held:,}</b>.</p>"
    )


def compared(found, token, item):
    """This step and all of them beside the full pass, in words."""
    from mha_viz.analysis.decoding import difference

    own, number = found.difference, found.step_of(token)
    step, here = found.decoding.steps[number], difference(found.decoding, found.full, item).steps[number]
    told = "undefined in both" if np.isnan(here) else f"{prose(here, '.1e')} of the largest output"
    lines = []
    if found.alike is None:
        lines.append(
            f"<b>Difference from the full causal pass</b>: {told}; "
            + fill(
                "over all steps and batch items at most <b>{:.1e}</b>, and up to {:.0e} is rounding: ", own.worst, own.tolerance
            )
            + f"<b>{'they agree' if own.agrees else 'they do not agree'}</b>."
        )
    else:
        lines.append(
            f"<b>Dropout is on</b> (train mode): each call draws its own, so that the two passes differ by up to <b>{own.worst:.0%}</b> of "
            f"the largest output; with the full pass's draws by <b>{prose(found.alike.worst, '.1e')}</b>. Generating is done in eval mode."
        )
    padding = found.decoding.batch.query_padding_mask
    if padding is not None and padding[item, : step.stop].any():
        count, real = int(padding[item, : step.stop].sum()), int((~padding[item, : step.stop]).sum())
        one = "1 is" if count == 1 else f"{count} are"
        words = f"<b>Padding</b>: {one} padding of {step.stop} tokens in this item's cache: kept, counted, and masked at every step."
        if padding[item, 0] and real:
            words += f" A model with positions must call token {token} this item's token {real - 1}."
        elif padding[item, 0]:
            words += " A padded query before the first token has no key left: undefined, in both passes."
        lines.append(words)
    return "".join(f"<p class='hides'>{line}</p>" for line in lines)


def differences(found, token, item, look):
    """How far each step is from the full pass, with the cache and with the causal hint in place of a mask."""
    from mha_viz.analysis.decoding import hint_difference

    own, hint = found.difference, hint_difference(found.decoding, item)
    steps = [step.stop - 1 for step in found.decoding.steps]
    lines = {"with the cache": own.steps, "is_causal=True": hint}
    here = hint[found.step_of(token)]
    first = named("key", 0, found.decoding.batch.key_tokens[item][0])
    padding = found.decoding.batch.query_padding_mask
    pad = ", which is padding" if padding is not None and padding[item, 0] else ""
    words = (
        "<b>The causal hint at one token.</b> <code>scaled_dot_product_attention(q, k, v, is_causal=True)</code> aligns its mask top left: "
        f"with one query that query sees {first}{pad} alone. "
    )
    if np.isfinite(here):
        words += f"This step would be off by <b>{here:.1%}</b> of the largest output."
        if found.step_of(token) == 0:
            words += " The first step is right, so that a test of one token passes."
    section("Difference from the full pass, by step", words)
    marks = {"mark": token, "limit": (own.tolerance, "rounding")}
    draw(steps, lines, "token", "of the largest output", "difference", look, log=True, unit="{:.1e}", **marks)


def works(found, token, look):
    """Multiply-adds of each step with the cache, and running all tokens so far again."""
    from mha_viz.analysis.decoding import works as count

    cached, again = count(found.decoding)
    number, steps = found.step_of(token), [step.stop - 1 for step in found.decoding.steps]
    words = (
        f"<b>{cached[number]:,}</b> multiply-adds in this step, <b>{again[number]:,}</b> where all tokens so far are run again. All "
        f"steps: {cached.sum():,} and {again.sum():,}, <b>{again.sum() / cached.sum():.1f} times</b> as many. For n new tokens that read S "
        "columns: N · n · (E · (H + 2G) · D + 2 · S · H · D + H · D · E)."
    )
    section("Work, counted", words)
    draw(
        steps, {"with the cache": cached, "without": again}, "token", "multiply-adds", "work", look, mark=token, unit="{:,.0f}"
    )


def cache_grows(found, caching, look):
    """Bytes of a cache over its length, for as many key heads as one likes."""
    from mha_viz.analysis.decoding import growth
    from mha_viz.core.decode import SIZES, cache_bytes
    from mha_viz.core.memory import readable_size

    decoding, layers, length = found.decoding, caching.cache_layers, caching.cache_length
    H, G, D, N = decoding.layer.num_heads, decoding.num_kv_heads, decoding.layer.head_dim, decoding.batch.N
    kept = {"dtype": decoding.dtype, "batch_size": N, "layers": layers}
    total = cache_bytes(length, G, D, **kept)
    section(
        "The cache grows",
        f"2 · layers {layers} · N {N} · G {G} · S {length:,} · D {D} · {SIZES[decoding.dtype]} bytes = <b>{total:,}</b> "
        f"({readable_size(total)}); a token takes {readable_size(cache_bytes(1, G, D, dtype=decoding.dtype))} a layer.",
    )
    say_wrong_view("cache_layers", "cache_length")
    with st.container(horizontal=True, key="growth"):
        options = {"label_visibility": "visible", "width": 150}
        show("cache_layers", number_field, "layers", layers, help="Each layer keeps keys and values of its own.", **options)
        show("cache_length", number_field, "up to tokens", length, help="The longest sequence, S.", **options)
    tokens, grown = growth(D, kinds_of_heads(H, G), length, **kept)
    largest = max(int(values[-1]) for values in grown.values())
    unit, size = next((unit, size) for unit, size in UNITS.items() if largest >= size or size == 1)
    lines = {f"{heads} KV head{'' if heads == 1 else 's'}": values / size for heads, values in grown.items()}
    draw(tokens, lines, "tokens in the cache", unit, "growth", look, unit=f"{{:,.3f}} {unit}")


def kinds_of_heads(H, G):
    """Numbers of key heads to compare: as many as heads, half of them and so on, one, and the present one."""
    from mha_viz.core.rules import divisors

    found, fitting = [H], divisors(H)
    while found[-1] > 1 and len(found) < 4:
        found.append(max(d for d in fitting if d <= found[-1] / 2))
    return sorted({*found, G, 1}, reverse=True)


def beside_each_other(look):
    """Two places for graphs, one under the other where there is little room, and the look that fits into one."""
    if look["width"] < NARROW:
        return st.container(), st.container(), look
    return *st.columns(2, gap="medium"), look | {"width": look["width"] // 2 - 16}


def section(title, words):
    st.html(f"<h3 class='part'>{escape(title)}</h3><p class='hides'>{words}</p>")


def draw(x, lines, across, upwards, key, look, unit, **options):
    from mha_viz.figures.graph import describe_graph, graph

    figure = graph(x, lines, across, upwards, unit=unit, **look, **options)
    picture(figure, describe_graph(x, lines, across, unit), f"graph_{key}")
