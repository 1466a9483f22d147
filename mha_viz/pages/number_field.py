"""A field for a number, which says what was typed into it: 12.8 stays 12.8 where a whole number is wanted, and breaks that rule.

Streamlit's browser cuts 12.8 to 12 and reads 1e3 as 1 in a field of whole numbers, so every field is one of numbers with a point.
"""

import streamlit as st


def number_field(label, *, column=st, step=1, min_value=None, max_value=None, **options):
    """Draw ``column.number_input`` and return what stands in it, None where that is empty: an int where the number is whole."""
    bounds = {name: float(end) for name, end in (("min_value", min_value), ("max_value", max_value)) if end is not None}
    return as_typed(
        column.number_input(label, step=float(step), format="%g", **bounds, **options)
    )  # %g: as many digits as it has


def as_typed(value):
    """The number that stands in a field, an int where it is whole; any other value as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
