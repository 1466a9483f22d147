"""What the views of one number, which is opened, have in common."""

from mha_viz.views.base import CHOSEN, ONE_HEAD, OfAttention


class OfNumber(OfAttention):
    """A view of the chosen number, of which a long sequence computes the one row."""

    public = False
    reads: tuple[str, ...] = (*CHOSEN, "weighting")  # which decides where head and average differ most
    naming = ONE_HEAD
    needs: tuple[str, ...] = ()
    whole = False
