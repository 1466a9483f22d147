"""Kinds of options that several commands have."""

from argparse import ArgumentTypeError

from mha_viz.core.typed_number import meant, read_number


def whole_number(text):
    """The whole number that ``text`` spells, as in a field of the app; argparse tells what this raises."""
    number = read_number(text)
    if isinstance(number, int):
        return number
    likely = number if isinstance(number, float) else meant(text)
    advice = f"; nearest right: {round(likely)}" if likely is not None and abs(likely) < 1e9 else ""
    raise ArgumentTypeError(f"{text!r} is no whole number{advice}")
