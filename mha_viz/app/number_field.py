"""A field for a number. What is typed stays text until it is read here: a browser's own field for numbers drops letters unseen,
and makes 15 of "1,5" and 10 of "0x10"."""

import streamlit as st

from mha_viz.core.typed_number import read_number


def number_field(label, *, column=st, **options):
    """Draw a field for a number and return what stands in it, as ``typed`` reads it.

    Its widget holds text, as ``written`` writes it.

    Arrow keys and the − and + of ``components.stepper`` know it by its ``autocomplete``, which also keeps a browser's list away. A narrow
    field has no room for − and +, and its help says that keys do the same.
    """
    if options.get("help"):
        options["help"] += " ↑ and ↓ step it."
    return typed(column.text_input(label, autocomplete="off", **options))


def typed(text):
    """What stands in a field: an int if it is whole, a float, text that is no number as it is, and None for an empty one."""
    return read_number(text) if text and text.strip() else None


def written(value):
    """The text in a field that holds ``value``."""
    return "" if value is None else str(value)
