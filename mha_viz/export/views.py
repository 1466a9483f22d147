"""The views that a figure can have, by name: each a picture of a source, and what that shows in words."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from mha_viz.analysis import choose
from mha_viz.analysis.choice import place_of
from mha_viz.analysis.long_maps import finished, in_small, open_in_sight
from mha_viz.analysis.number import open_number
from mha_viz.core.rules import Wrong
from mha_viz.core.trace import Trace
from mha_viz.figures import heads as in_maps
from mha_viz.figures import lines as in_lines
from mha_viz.figures import number, overview
from mha_viz.figures.compare import describe_difference, difference_spec
from mha_viz.figures.drawn_lines import describe_average as describe_average_lines
from mha_viz.figures.drawn_lines import describe_lines
from mha_viz.settings import View
from mha_viz.sources.base import Source

MEAN = "mean"  # among the heads of a figure: their average


@dataclass(frozen=True, eq=False)
class Shown:
    """What a figure is of: a ``source``, the ``trace`` of the layer that is looked at, as the ``view`` shows it, and ``a``, the Trace
    that it is compared with, or None.

    ``heads`` are those that a figure names in its own order, "mean" among them for the average; None leaves them to the View.
    ``a_is`` says what A is, as a sentence, where the View does not pin it.
    """

    source: Source
    trace: Trace
    view: View
    heads: tuple | None = None
    a: Trace | None = None
    a_is: str = ""

    @property
    def title(self):
        return self.source.name

    @property
    def average_at(self):
        """The place of the average among the heads: -1 last, None where it was left out."""
        if self.heads is None:
            return -1
        return self.heads.index(MEAN) if MEAN in self.heads else None

    def arranged(self, arrangement=None):
        """The View with the named heads alone, in the order in which they are named unless it sorts them; in an ``arrangement``, its own
        where None."""
        named = tuple(head for head in self.heads or () if head != MEAN)
        view = replace(self.view, arrangement=arrangement or self.view.arrangement)
        return replace(view, heads=named, order="listed" if view.order == View().order else view.order) if named else view

    @property
    def choice(self):
        """What is chosen among the heads that are shown."""
        return choose(self.trace, self.arranged())

    def drawn_heads(self, name):
        """What the view called ``name`` draws: the numbers of heads, in their order, with None where the average stands."""
        view, order, chosen = self.arranged(), list(self.choice.order), [self.head]
        average = [None] if self.trace.has("mean_weights") else []
        if name == "average":
            return average
        alone = self.heads == (MEAN,)
        if alone or (self.heads is not None and (name in ("heads", "lines") or (name == "page" and view.arrangement == "all"))):
            order = [] if alone else order
            return order if self.average_at is None else [*order[: self.average_at], *average, *order[self.average_at :]]
        if name in ("head", "window") or (name in ("page", "lines") and view.arrangement == "one"):
            return chosen
        if name in ("pair", "lines") or (name == "page" and view.picture == "lines" and view.arrangement == "pair"):
            return chosen + average
        return order + average

    @property
    def sight(self):
        """What is in sight of maps that are too long to be whole, None of whole ones."""
        return self.trace.tokens.sight

    @property
    def opened(self):
        """(Trace, Derivation) of the chosen number; of a long sequence the Trace holds one query and the keys around the chosen one."""
        trace, c = self.trace.plain, self.choice
        if self.sight is not None:
            return open_in_sight(trace, c.item, c.head, *place_of(self.trace, self.view, c))
        return trace, open_number(trace, c.item, c.head, c.query, c.key)

    @property
    def item(self):
        return self.choice.item

    @property
    def head(self):
        """The head that is looked at, where one can be."""
        return self.choice.head


def page(shown, **dress):
    """What the page shows: maps or lines, or A, B and B − A, arranged as its View says."""
    if shown.a is not None:
        return difference(shown, **dress)
    view = shown.arranged()
    if shown.heads == (MEAN,) or (shown.heads is not None and view.arrangement == "all"):
        return (lines if view.picture == "lines" else heads)(shown, **dress)
    if view.picture == "lines":
        return in_lines.spec(shown.trace, view, **dress), describe_lines(shown.trace, view)
    strip = len(shown.source.traces) == 1 or shown.sight is not None  # of several layers another picture shows all heads
    return in_maps.spec(shown.trace, view, **dress, strip=strip), in_maps.describe(shown.trace, view, strip)


def heads(shown, **dress):
    """The heads, all alike, and their average, last unless it is named elsewhere."""
    if shown.heads == (MEAN,):
        return average(shown, **dress)
    view = shown.arranged("all")
    return in_maps.spec(shown.trace, view, **dress, average=shown.average_at), in_maps.describe(shown.trace, view)


def head(shown, **dress):
    """One head alone."""
    view = shown.arranged("one")
    return in_maps.spec(shown.trace, view, **dress), in_maps.describe(shown.trace, view)


def average(shown, **dress):
    """The average of all heads alone."""
    return in_maps.average(shown.trace, shown.view, **dress), in_maps.describe_average(shown.trace, shown.view)


def pair(shown, **dress):
    """One head beside the average."""
    view = shown.arranged("pair")
    return in_maps.spec(shown.trace, view, **dress, strip=False), in_maps.describe(shown.trace, view, strip=False)


def lines(shown, **dress):
    """Heads as lines between tokens: those that were asked for, or one beside the average."""
    if shown.heads == (MEAN,):
        return in_lines.average(shown.trace, shown.view, **dress), describe_average_lines(shown.trace, shown.view)
    view = shown.view if shown.heads is None else shown.arranged("all")
    spec = in_lines.spec(shown.trace, view, **dress, average=shown.average_at)
    return spec, describe_lines(shown.trace, view, shown.average_at)


def difference(shown, **dress):
    """A, B and B − A."""
    if shown.a is None:
        rule = 'needs something to compare with: give against="?seed=8" (an address, or a file), or an address that pins something.'
        raise Wrong("view", "difference", rule)
    view = shown.arranged()
    return difference_spec(shown.a, shown.trace, view, **dress), describe_difference(shown.a, shown.trace, view)


def layers(shown, **dress):
    """Every head of every layer."""
    layer, traces = shown.view.layer, list(shown.source.traces)
    if shown.sight is not None:
        size = shown.trace.plain.shape[1:]  # layers of another are not drawn
        traces = [finished(in_small(one, shown.view)).seen("max") if one.shape[1:] == size else one for one in traces]
    return overview.spec(traces, shown.view, layer, **dress), overview.describe(traces, shown.view, layer)


def opened(picture, describe):
    """A view of the chosen number by one of the pictures of its derivation."""

    def view(shown, **dress):
        trace, found = shown.opened
        if picture is number.terms and found.products is None:
            raise Wrong("view", "terms", "needs q and k, and the source knows the weights alone.", [{"view": "softmax"}])
        return picture(trace, found, **dress).to_plotly_json(), describe(trace, found)

    view.__doc__ = picture.__doc__
    return view


def steps(shown, **dress):
    """The tensors of one step on the way of one query, the ``step`` of the View."""
    from mha_viz.analysis.walkthrough import in_layout, walk
    from mha_viz.figures import steps as in_steps

    c, view = shown.choice, shown.view
    walked = walk(shown.trace, c.item, None if view.together else c.head, c.query, c.key, c.head)
    if view.step not in walked.steps or not walked.tensors[view.step]:
        drawn = [name for name in walked.steps if walked.tensors[name]]
        raise Wrong("step", view.step, f"has no picture here; those that have: {', '.join(drawn)}.")
    tensors = in_layout(walked.tensors[view.step], getattr(shown.source.settings, "batch_first", True))
    return in_steps.picture(tensors, **dress, summed=view.step == "project").to_plotly_json(), in_steps.describe(tensors)


def decode(shown, **dress):
    """One step of decoding with a KV cache: the tensors that are new, and those that are kept."""
    from mha_viz.analysis.decoding import beside, decodable, lengths, why_not_decoded
    from mha_viz.figures import decoding
    from mha_viz.settings import Settings
    from mha_viz.sources.synthetic import synthetic

    settings, view, trace = shown.source.settings, shown.view, shown.trace
    how = {"prompt": view.prompt, "num_kv_heads": view.kv_heads, "dtype": view.cache_dtype}
    if isinstance(settings, Settings):
        trace = synthetic(decodable(settings))
        how |= {"training": settings.training, "seed": settings.seed}
    elif reason := why_not_decoded(trace):
        raise Wrong("view", "decode", f"is not there for {shown.source.name}: {reason}", [{"view": "page"}])
    found = beside(trace.layer, trace.batch, **how)
    L, item = trace.batch.L, shown.choice.item
    token = max(view.token if view.token is not None and view.token < L else L // 2, found.decoding.steps[0].stop - 1)
    kept = lengths(found.decoding, item)
    return (
        decoding.cache(found, kept, token, item, view, **dress).to_plotly_json(),
        decoding.describe_cache(found, token, item),
    )


def curves(shown, *, theme, width, parts):
    """How the shipped model was trained: loss and accuracy over the steps."""
    from mha_viz.figures import curves as in_curves
    from mha_viz.sources.trained import Trained, training_curves

    settings = shown.source.settings
    if not isinstance(settings, Trained):
        raise Wrong("view", "curves", f"is for a shipped model, and {shown.source.name} is none.", [{"view": "page"}])
    told, found, at = training_curves(settings)
    return (
        in_curves.curves(told, found, at, theme, width, round(width * 0.32)).to_plotly_json(),
        in_curves.describe(told, found, at),
    )


def window(shown, **dress):
    """An exact window of one head of maps that are too long to be whole; of others there is no need for it."""
    if shown.sight is None:
        rule = "is an exact window of maps that are too long to be whole, and these are not: every view of them is exact."
        raise Wrong("view", "window", rule, [{"view": "head"}])
    return head(shown, **dress)


VIEWS: dict[str, Callable] = {
    "page": page, "heads": heads, "head": head, "average": average, "pair": pair, "lines": lines, "difference": difference,
    "layers": layers, "terms": opened(number.terms, number.describe_terms), "softmax": opened(number.softmax, number.describe_softmax),
    "cell": opened(number.cell_in_heads, number.describe_cell_in_heads), "steps": steps, "decode": decode, "curves": curves,
    "window": window,
}  # fmt: skip
PARTS = ("title", "labels", "bar", "legend", "values")
NEED_WHOLE = ("steps", "decode")  # maps, and so are none of a long sequence
WITHOUT = {  # parts that a view does not have, and so cannot leave out
    "lines": ("values",), "layers": ("values",), "terms": ("bar", "legend"), "softmax": ("bar", "legend"), "cell": ("bar",),
    "steps": ("bar", "legend"), "curves": PARTS,
    "profile": PARTS, "quality": PARTS,
}  # fmt: skip


def check_heads(figure, trace):
    """Raises Wrong where a Figure asks for a head that a Trace does not have."""
    H = trace.shape[1]
    beyond = [head for head in figure.heads or () if head != MEAN and head >= H]
    if beyond:
        right = tuple(head for head in figure.heads if head == MEAN or head < H)
        rule = f"points to head {beyond[0]}, and there {'is 1, head 0' if H == 1 else f'are {H}, from 0 to {H - 1}'}."
        raise Wrong("heads", ",".join(map(str, figure.heads)), rule, [{"heads": ",".join(map(str, right))}] if right else [])
