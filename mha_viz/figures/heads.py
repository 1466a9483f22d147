"""The heads of one layer: in a strip with one of them beside the average of them all, all of them large, or one alone."""

import numpy as np
import plotly.graph_objects as go

from mha_viz.analysis import choose
from mha_viz.analysis.statistics import silent
from mha_viz.figures import around, tiles
from mha_viz.figures.geometry import arrange, arrange_all
from mha_viz.figures.labels import Names, numbered, width_of
from mha_viz.figures.picture import Large, Map, Tiles, large_pool, picture, strip_pool
from mha_viz.figures.scale import Scale, largest_weight
from mha_viz.figures.theme import THEMES

__all__ = ["describe", "heads", "largest_weight", "spec"]


def heads(trace, view, theme="light", width=1104):
    """The picture of one batch item's weights, exactly ``width`` px wide, as a ``go.Figure``.

    ``view.arrangement``: every head in a strip and below it the chosen one beside the average ("pair"), every shown head large and
    the average last ("all"), or the chosen head alone ("one"). All maps share one Scale, from ``view.scale`` and ``view.limits``, in
    the colours of ``view.colors``. Each map [L, S] holds the weights as they are; on the scale "row" it holds shares, and the weights
    as ``customdata``. Where a map has more cells than there are px, and a large one beyond 512 a side, it is pooled: it holds the
    largest weight of each block, and cell i of n lies in block ⌊i · blocks / n⌋.

    ``layout.meta`` says what stands where, for whoever answers the pointer: ``tiles``, one per heatmap and in their order, each with
    its ``head`` (None: the average), the ids of its ``axes``, its first cell's centre ``x0``, ``y0``, the px of its ``label``, the
    ``title`` in that and its size, whether its rows and columns are ``named`` beside it, and the index of its ``side``; ``sides``,
    the tokens of rows and columns in full (``queries``, ``keys``) and as drawn (``rows``, ``columns``), the latter at an ``angle``;
    ``names``, all short texts that axes of the layout have, and how many px apart those must stand to be drawn; ``order``, the heads
    shown; ``largest``, where scales end; ``chosen``, the head, query and key; ``quantity``, what a cell is called.
    """
    return go.Figure(spec(trace, view, theme, width))


def spec(trace, view, theme="light", width=1104, strip=True):
    """``heads`` as the plain dict that ``go.Figure`` checks: for the live picture, which has no time for that at every change.

    Without its ``strip`` a pair stands alone: where every head is on show elsewhere.
    """
    theme, choice = THEMES[theme].dressed(view.colors), choose(trace, view)
    item, shown = choice.item, list(choice.order)
    weights, padding = trace.weights[item], trace.query_padding[item]  # [H, L, S], [L]
    H, L, S = weights.shape
    scale = Scale.of([weights[:, ~padding]], view, trace.quantity)
    rows, columns = sides(trace, item, width)
    own = [head_map(weights[head], head, choice, scale) for head in shown]
    of = f"of {H} head{'s' if H > 1 else ''}" + (f", {len(silent(trace))} off" if silent(trace) else "")
    average = Map(
        f"average {of}" if view.arrangement != "all" else "average", None, trace.mean_weights[item], scale, short=(of, f"of {H}"),
    )  # fmt: skip
    texts, ticks = (rows.widest, columns.widest, columns.numbered), ticks_width(scale)
    large, tiles_of_heads = [], None
    if view.arrangement == "all":
        place = arrange_all(
            width, len(shown) + 1, L, S, *texts, ticks, around.label_widths([map.label for map in (*own, average)])
        )
        tiles_of_heads = Tiles((*own, average), looks_of(trace, item, shown, average=True), rows, columns)
    else:
        pair = view.arrangement == "pair"
        place = arrange(
            width,
            len(shown) if pair and strip else 0,
            L,
            S,
            *texts,
            maps=2 if pair else 1,
            bars={int(pair): ticks},
            labels=around.label_widths([map.label for map in own]),
        )
        if pair and strip:
            tiles_of_heads = Tiles(tuple(own), looks_of(trace, item, shown), rows, columns)
        large = [Large(own[shown.index(choice.head)], looks_of(trace, item, [choice.head]), rows, columns, strong=True)]
        large += [Large(average, looks_of(trace, item, None), rows, columns)] if pair else []
    alone = f"One head of {H}" + (" beside the average" if view.arrangement == "pair" else "")
    texts = around.captions(view.order, dropped_out(trace)) if tiles_of_heads else (alone,)
    small, big = strip_pool(place, (L, S)) if tiles_of_heads else None, large_pool((L, S)) if large else None
    texts = [text + around.weighted(trace) + note for note in around.pooled(small, big, trace.quantity) for text in texts]
    found = picture(place, tiles_of_heads, large, (choice.head, choice.query, choice.key), [scale], theme, [texts])
    found["layout"]["meta"]["order"] = shown
    return found


def head_map(weights, head, choice, scale, source=None):
    """The Map of one head's weights [L, S], with what its title and label say of it."""
    said = around.said(choice, head)
    whole = (f"{said} from the average",) if choice.statistic == "difference" else ()
    return Map(f"head {head}", head, weights, scale, (*whole, said), (said, around.value(choice, head)), source)


def sides(trace, item, width):
    """The Names of one batch item's queries and keys; padded queries and keys that nobody may read step back."""
    return (
        Names(trace.query_tokens[item], min(120, 0.2 * width), trace.query_padding[item]),
        Names(trace.key_tokens[item], 96, trace.mask[item].all(axis=(0, 1))),
    )


def looks_of(trace, item, shown, average=False):
    """The looks of the cells of some heads' maps, and of the ``average`` after them: each [T, L, S], or [1, L, S] where all heads
    have one mask. ``shown`` None: of the average alone, [1, L, S]."""
    mask, undefined, padding = trace.mask[item], trace.undefined[item], trace.query_padding[item]
    if (mask == mask[0]).all() and (undefined == undefined[0]).all():
        return tiles.looks(mask[:1], padding, undefined[:1])
    masks, undefineds = mask[shown or []], undefined[shown or []]
    if average or shown is None:
        masks = np.concatenate([masks, mask.all(axis=0)[None]])  # [T, L, S]
        undefineds = np.concatenate([undefineds, undefined.any(axis=0)[None]])  # [T, L]
    return tiles.looks(masks, padding, undefineds)


def dropped_out(trace):
    """True where dropout fell on the weights, and so not on what heads are told apart by."""
    return trace.has("dropped") and trace.dropped is not None


def ticks_width(scale):
    """px of the widest number beside the colour bar."""
    return max((width_of(text, 13) for text in scale.ticks()[1]), default=0)


def describe(trace, view):
    """What the picture shows, in a few sentences: its text alternative."""
    choice = choose(trace, view)
    item, head, query, key = choice.item, choice.head, choice.query, choice.key
    mask, padding, undefined = trace.mask[item], trace.query_padding[item], trace.undefined[item]
    H, L, S = mask.shape
    shown = f"all {H} heads" if len(choice.order) == H else f"{len(choice.order)} of {H} heads"
    if view.arrangement == "one":
        shown = f"head {head} alone"
    phrase = "difference from their average" if view.order == "difference" else around.SAID[choice.statistic][1]
    first = f", largest {phrase} first: head {choice.order[0]}" if view.order != "index" and view.arrangement != "one" else ""
    before = ", both before dropout" if dropped_out(trace) else ""
    weights = [trace.weights[item, head, query, key], trace.mean_weights[item, query, key]]
    in_head, in_average = ("undefined" if np.isnan(weight) else f"{weight:.6f}" for weight in weights)
    names = (numbered(i, tokens[item][i]) for i, tokens in ((query, trace.query_tokens), (key, trace.key_tokens)))
    looks = tiles.looks(mask[[head]], padding, undefined[[head]])
    cells = [f"{look.sum()} {name}" for name, look in looks.items() if look.any()]
    return (
        f"Attention maps of {shown}{around.weighted(trace)}, {L} queries by {S} keys{first}. "
        f"Head {head} differs {around.percent(choice.differences[head])} from the average of {H}{before}. "
        f"Chosen cell: query {next(names)}, key {next(names)}: {in_head} in head {head}, {in_average} in the average."
        + (f" Of {L * S} cells in head {head}: {', '.join(cells)}." if cells else "")
    )
