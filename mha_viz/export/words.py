"""What stands under a figure, and in its place: a caption, an alternative text, and both as Markdown."""

from importlib import metadata
from urllib.parse import quote, urlencode

from mha_viz.export.markdown import plain_in_a_file
from mha_viz.figures.around import seen
from mha_viz.settings import STEPS, to_address
from mha_viz.studies.validation import app_version

TOLD = {  # of a view, what it is called; {heads} are those that are shown
    "page": "Attention of {heads}", "heads": "Attention of {heads}", "head": "Attention of head {head}",
    "average": "Attention, the average of all heads", "pair": "Attention of head {head} beside the average of all heads",
    "lines": "Attention of {heads} as lines from queries to keys",
    "difference": "Attention of A and of B, and what changed from A to B", "layers": "Attention of every head of every layer",
    "terms": "q · k term by term", "softmax": "One row through the softmax", "cell": "One cell in every head",
    "steps": "Step by step: {step}", "window": "A window of the attention of head {head}",
    "decode": "Decoding with a KV cache", "curves": "Training",
}  # fmt: skip

def caption(shown, name):
    """A caption of the view called ``name``: what is seen, of what, the shape of its weights, and what computed it."""
    trace = shown.trace
    N, H, L, S = trace.plain.shape
    if name == "page" and shown.a is not None:
        name = "difference"  # which the page then shows
    what = TOLD[name].format(heads=heads_drawn(shown, name), head=shown.head, step=step(shown) if name == "steps" else "")
    step_of = "" if trace.step is None else f", step {trace.step}"
    layer = f", {trace.name}{step_of}" if len(shown.source.traces) > 1 else ""
    if name == "difference" and len(shown.choice.order) < H:
        what += f", in {_listed(shown.choice.order)}"
    parts = [f"{what}, {trace.tokens.item_name(shown.item)} of {shown.source.name}{layer}."]
    if name == "difference" and (told := told_a(shown)):
        parts.append(told)
    if shown.sight is not None:
        parts.append(seen(trace)[0].removeprefix(" · ").capitalize() + ".")
    parts.append(f"Weights [N, H, L, S] = [{N}, {H}, {L}, {S}]{masks(shown.source)}.")
    address = address_of(shown)
    if address:
        parts.append(f"Settings: {address}.")
    return " ".join([*parts, made_by()])


def told_a(shown):
    """What A of a comparison is, as a sentence; "" where nobody said."""
    if shown.a_is or shown.view.pinned is None:
        return shown.a_is
    if not shown.view.pinned:
        return "A: as the app starts."
    return f"A: ?{shown.view.pinned}{' of the same file' * (shown.source.address is None)}."


def made_by():
    libraries = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "numpy"))
    return f"Made by MHA Explorer {app_version()} with {libraries}."


def step(shown):
    """Which step is seen, and of what: "softmax: the weights, query 6 in head 4"."""
    where = "in all heads" if shown.view.together else f"in head {shown.head}"
    return f"{STEPS[shown.view.step][1]}, query {shown.choice.query} {where}"


def heads_drawn(shown, name):
    """Which heads the view called ``name`` draws, in their order: "heads 5 and 2 and the average of all 8 heads"."""
    H, drawn = shown.trace.plain.shape[1], shown.drawn_heads(name)
    heads = [head for head in drawn if head is not None]
    if not heads:
        return f"the average of all {H} heads"
    if len(heads) == H > 1:
        return f"all {H} heads" + " and their average" * (None in drawn)
    return _listed(heads) + f" and the average of all {H} heads" * (None in drawn and H > 1)


def _listed(heads):
    *before, last = map(str, heads)
    return f"heads {', '.join(before)} and {last}" if before else f"head {last}"


def masks(of):
    said = of.kind.masks(of.settings)
    return f"; {', '.join(said)}" if said else ""


def address_of(shown):
    """The address that shows the same, from the "?" on; "" for a file, and where all is as it is at first."""
    if not shown.source.kind.in_address:
        return ""
    told = shown.source.address | to_address(**vars(shown.view))
    return f"?{urlencode(told)}" if told else ""


def view_address_of(shown):
    """The part of an address that says how a file is shown."""
    return f"?{urlencode(to_address(**vars(shown.view)))}"


def markdown(image, alt, caption):
    """A Markdown ``image`` with its alternative text, and the caption below it; nothing in the texts is taken for Markdown."""
    return f"![{plain_in_a_file(alt)}]({quote(image)})\n\n{plain_in_a_file(caption)}\n"
