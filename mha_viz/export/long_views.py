"""The views that a figure can have of a sequence too long for whole maps: its heads pooled, or an exact window of one."""

from dataclasses import replace

from mha_viz.core.long import around, pooled, striking, window
from mha_viz.core.rules import Wrong
from mha_viz.figures import long


def heads(shown, **dress):
    """Every head, pooled."""
    maps = maps_of(shown, shown.numbers)
    found = chosen(shown, maps)
    return long.every_head(shown.trace.tokens, maps, marked(shown, found), view_of(shown), **dress), words(shown, maps, found)


def head(shown, **dress):
    """One head, pooled."""
    maps = maps_of(shown, [shown.head])
    spec = long.pooled_head(shown.trace.tokens, maps, marked(shown, maps[0]), view_of(shown), **dress)
    return spec, words(shown, maps, maps[0])


def exact(shown, **dress):
    """A window of one head, cell by cell."""
    (found,) = maps = maps_of(shown, [shown.head])
    own = around(found.pool, *cell_of(shown, found))
    rows, columns = (span or near for span, near in zip((shown.view.rows, shown.view.columns), own, strict=True))
    cut = window(shown.trace, found.head, rows, columns, item=shown.item)
    cell = (rows[0] + rows[1]) // 2, (columns[0] + columns[1]) // 2
    return long.exact_head(shown.trace.tokens, cut, cell, view_of(shown), **dress), words(shown, maps, found)


VIEWS = {"page": heads, "heads": heads, "head": head, "window": exact}


def check(shown, view):
    """Raises Wrong where there is no such ``view`` of a long sequence."""
    if view not in VIEWS:
        L = shown.trace.shape[2]
        rule = f"would need the whole maps of {L:,} tokens. Of so long a sequence there are {', '.join(VIEWS)}."
        raise Wrong("view", view, rule, [{"view": "heads"}])
    if shown.a is not None:
        raise Wrong("pinned", shown.view.pinned, "is compared with whole maps, and these are too long to be whole.", [{"pinned": None}])
    if shown.heads is not None and shown.with_mean:
        rule = "names the average, which is not made of a sequence that is so long."
        raise Wrong("heads", ",".join(map(str, shown.heads)), rule, [{"heads": None}])


def maps_of(shown, numbers):
    return list(pooled(shown.trace, numbers, item=shown.item))


def chosen(shown, maps):
    return next((one for one in maps if one.head == shown.head), maps[0])


def cell_of(shown, found):
    query, key = shown.view.cell or (None, None)
    return striking(found) if query is None or key is None else (query, key)


def marked(shown, found):
    """The head, and the block in it, that are marked."""
    return found.head, *found.pool.block(*cell_of(shown, found))


def view_of(shown):
    """The View, its colours logarithmic for linear ones: beside the first rows, which share few keys, all others would be blank."""
    return replace(shown.view, scale="log") if shown.view.scale == "linear" else shown.view


def words(shown, maps, found):
    return long.describe(shown.trace, maps, found, view_of(shown))
