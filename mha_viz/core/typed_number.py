"""Numbers as they are typed: one reading for fields, addresses, commands and files.

A number is digits, with a sign, a point and a power of ten if it has them: 12, -3, 0.05, 1e3. A whole number is whole however it is
written: 1e3 is 1000 and 12.0 is 12. Nothing groups digits and no comma is a point: "1,000", "1 000" and "1_000" mean 1 in some places and
1000 in others, and in a list the comma separates. Such text is refused, and ``meant`` says what to advise.
"""

import math
import re
from decimal import Decimal
from typing import TypeVar, overload

T = TypeVar("T")

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_GROUPED = r"[+-]?[0-9]{1,3}(?:([ ,_'\u00a0\u202f])[0-9]{3})(?:\1[0-9]{3})*"
_COMMA = r"[+-]?[0-9]*,[0-9]+"


@overload
def read_number(text: str) -> int | float | str: ...
@overload
def read_number(text: T) -> T: ...
def read_number(text: object) -> object:
    """The number that ``text`` spells: an int if it is whole, else a float.

    Text that spells none is returned as it is, and so is a value that is no text.

    >>> read_number("1e3"), read_number(" −0.5 "), read_number("1,000"), read_number(None)
    (1000, -0.5, '1,000', None)
    """
    if not isinstance(text, str):
        return text
    plain = _plain(text)
    if not re.fullmatch(NUMBER, plain) or math.isinf(float(plain)):
        return text
    exact = Decimal(plain)
    return int(exact) if exact == exact.to_integral_value() else float(plain)


def meant(text: str) -> int | float | None:
    """The number that ``text``, which spells none, most likely means: None if nothing tells.

    >>> meant("1,5"), meant("1 000"), meant("0x10"), meant("many")
    (1.5, 1000, 16, None)
    """
    plain = _plain(text)
    if re.fullmatch(NUMBER, plain):
        return float(plain)  # beyond all that a float holds
    if re.fullmatch(_GROUPED, plain):
        return int(re.sub(r"[^0-9+-]", "", plain))
    if re.fullmatch(_COMMA, plain):
        return float(plain.replace(",", "."))
    if not re.fullmatch(r"0[xob][0-9a-fA-F]{1,12}", plain):
        return None
    try:
        return int(plain, 0)
    except ValueError:  # a digit that the base lacks
        return None


def _plain(text: str) -> str:
    return text.strip().replace("−", "-")
