"""Numbers as texts for a reader."""

DIGITS = 6  # decimals that two weights must share to count as equal
SURE = 7  # decimals that rounding errors of float32 leave alone


def in_decimals(value, digits, sign=""):
    """``value`` with so many decimals, "+" in front where ``sign`` is "+"; what float32 cannot tell apart reads the same.

    Rounding errors put one 0.125 just above the half and another just below it, and a reader would see 0.13 beside 0.12.

    >>> in_decimals(0.12500001, 2), in_decimals(0.12499999, 2), in_decimals(-0.5, 1, "+")
    ('0.12', '0.12', '−0.5')
    """
    return f"{round(value, SURE):{sign}.{digits}f}".replace("-", "−")
