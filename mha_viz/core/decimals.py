"""Numbers as texts for a reader: with a real minus, as in formulas. Programs, files and addresses are for machines and have hyphens."""

from __future__ import annotations

import string
from typing import Any

DIGITS = 6  # decimals that two weights must share to count as equal
SURE = 7  # decimals that rounding errors of float32 leave alone


def in_decimals(value: float, digits: int, sign: str = "") -> str:
    """``value`` with so many decimals, "+" in front where ``sign`` is "+"; what float32 cannot tell apart reads the same.

    Rounding errors put one 0.125 just above the half and another just below it, and a reader would see 0.13 beside 0.12.

    >>> in_decimals(0.12500001, 2), in_decimals(0.12499999, 2), in_decimals(-0.5, 1, "+")
    ('0.12', '0.12', '−0.5')
    """
    return prose(round(value, SURE), f"{sign}.{digits}f")


def prose(value: float, spec: str) -> str:
    """``value`` as the format ``spec`` writes it, with a real minus before it and in its exponent; an exact 0 has no exponent.

    >>> prose(-0.5, ".2f"), prose(0.000002, ".1e"), prose(0.0, ".1e")
    ('−0.50', '2.0e−06', '0')
    """
    if spec.endswith("e") and value == 0:
        return "0"
    return format(value, spec).replace("-", "−")


class Prose(string.Formatter):
    """Fills numbers into the places of a text, as ``str.format`` does, each by ``prose``.

    Where the place says "within" it is done by ``to_within``. Texts stay as they are.
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        """One place of the text, filled."""
        if format_spec == "within":
            return to_within(value)
        return format(value, format_spec) if isinstance(value, str) else prose(value, format_spec)


def to_within(error: float) -> str:
    """How nearly equal what differs by at most ``error`` is, to stand behind "identical" or "unchanged".

    >>> to_within(0.0), to_within(0.00002)
    (', bit for bit', ' to within 2e−05')
    """
    return ", bit for bit" if error == 0 else f" to within {prose(error, '.1g')}"


def fill(text: str, *values: object, **named: object) -> str:
    """``text`` with these numbers in its places, as a reader takes them.

    >>> fill("{:.1f} to {high:g}", -0.5, high=2)
    '−0.5 to 2'
    """
    return Prose().format(text, *values, **named)
