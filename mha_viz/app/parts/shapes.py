"""Shapes, modes and single numbers in words, as HTML: what stands around the picture."""

from html import escape
from math import isfinite

from mha_viz.core.cells import content
from mha_viz.core.decimals import prose


def shape_strip(trace, settings, swapped=False):
    """Every tensor's shape, in the present layout; ``swapped`` lets the axes that have just changed places be seen to move."""
    s = settings
    N, H, L, S = trace.shape
    query = tokens(s, N, s.embed_dim, L=L)
    steps = [f"tokens {query}"]
    if s.cross:
        steps = [f"query {query}", f"key {tokens(s, N, s.kdim or s.embed_dim, S=s.S)}"]
    if L == S:
        steps.append(f"q, k, v {axes(N=N, H=H, L=L, D=s.head_dim)}")
    else:
        steps.append(f"q {axes(N=N, H=H, L=L, D=s.head_dim)} k, v {axes(N=N, H=H, S=S, D=s.head_dim)}")
    steps += [f"weights {axes(N=N, H=H, L=L, S=S)}", f"output {tokens(s, N, s.embed_dim, L=L)}"]
    moving = "" if not swapped else "batch-came-first" if s.batch_first else "sequence-came-first"
    return f"<div class='{moving}'><p class='shapes'>{' <span class=arrow>→</span> '.join(steps)}</p></div>"


def trace_strip(trace):
    """The shapes of one recorded call: what is known of it."""
    N, H, L, S = trace.shape
    steps = [f"weights {axes(N=N, H=H, L=L, S=S)}"]
    if trace.has("q", "k"):
        D = trace.q.shape[3]
        steps = [f"q {axes(N=N, H=H, L=L, D=D)} k {axes(N=N, H=H, S=S, D=D)}", *steps]
    if trace.has("v", "head_outputs"):
        steps.append(f"head outputs {axes(N=N, H=H, L=L, D=trace.v.shape[3])}")
    if trace.has("output"):
        steps.append(f"output {axes('tokens', N=N, L=L, E=trace.out_proj[0].shape[0])}")
    return f"<p class='shapes'>{' <span class=arrow>→</span> '.join(steps)}</p>"


def tokens(settings, N, width, **length):
    """One tensor of tokens, its axes in the order that ``batch_first`` gives them."""
    return axes("tokens", N=N, **length, E=width) if settings.batch_first else axes("tokens", **length, N=N, E=width)


def axes(kind="heads", **sizes):
    named = ", ".join(f"<span class='axis-{name}'><i>{name}</i> {size}</span>" for name, size in sizes.items())
    return f"<b class='shape {kind}'>[{named}]</b>"


def mode(settings):
    """Which weights are shown, and of what kind of layer."""
    if not settings.training:
        shown = "eval mode: no dropout"
    elif settings.dropout:
        shown = f"train mode: weights after dropout {settings.dropout:g}, rows need not sum to 1; order and differences are before it"
    else:
        shown = "train mode, dropout 0"
    untrained = f"untrained layer (seed {settings.seed}): its heads differ by chance"
    return f"<p class='mode'>{shown} · {untrained if settings.case == 'random' else 'weights and tokens worked by hand'}</p>"


def chosen_number(trace, choice, pinned=None):
    """The chosen cell's exact weight in its head and in the average; beside a ``pinned`` Trace, A, with the change from A."""
    item, head, query, key = choice.item, choice.head, choice.query, choice.key
    asks, is_read = token(trace, 0, item, query), token(trace, 1, item, key)
    in_head, average = content(trace, item, head, query, key), ""
    if trace.has("mean_weights"):  # of a long sequence it comes last
        average = f" · average <b>{content(trace, item, None, query, key)}</b>"
    change = ""
    if pinned is not None and pinned.tokens.sight == trace.tokens.sight and has_cell(pinned, choice):
        alike = pinned.weights.shape[1] == trace.weights.shape[1]  # or a head's number says nothing about the other's
        before = pinned.weights[item, head, query, key] if alike else pinned.mean_weights[item, query, key]
        after = trace.weights[item, head, query, key] if alike else trace.mean_weights[item, query, key]
        moved = f"{prose(after - before, '+.6f')}" if isfinite(before) and isfinite(after) else "undefined"
        was = content(pinned, item, head if alike else None, query, key)
        change = f" · A{'' if alike else ', average'} <b>{was}</b> · B − A <b>{moved}</b>"
    what = "" if trace.quantity == "weight" else f"{trace.quantity}: "
    where = f"{what}head {head} · {asks} → {is_read}"
    return f"<p class='chosen' role='status'>{where} <b>{in_head}</b>{average}{change}</p>"


def has_cell(trace, choice):
    """True where a Trace has a cell at the place of this Choice."""
    place = (choice.item, choice.head, choice.query, choice.key)
    return all(index < count for index, count in zip(place, trace.weights.shape, strict=True))


def what_average_hides(trace, choice):
    """What the average hides of the heads of a Choice, in a sentence with the number; nothing where it hides nothing."""
    from mha_viz.analysis.average import what_average_hides as find

    hidden = find(trace, choice.item, choice.order)
    return "" if hidden is None else f"<p class='hides'><b>What the average hides.</b> {escape(hidden.sentence)}</p>"


def token(trace, side, item, index):
    """``query 6 “because”`` of row (``side`` 0) or ``key 6`` of column (1) ``index`` of an item's maps; ``queries 128–255`` of a block."""
    name, sight = (trace.query_tokens, trace.key_tokens)[side][item][index], trace.tokens.sight
    if sight is not None and sight.several[side]:
        return f"{('queries', 'keys')[side]} {name}"
    return named(("query", "key")[side], trace.tokens.place(side, index), name)


def named(kind, number, name):
    """``token 6 “because”``, or ``token 6`` for one that has no name but its number."""
    return f"{kind} {number}" if name == str(number) else f"{kind} {number} “<bdi>{escape(name)}</bdi>”"
