"""Numbers as XPath 2.0 writes them."""

from __future__ import annotations

import math
from decimal import Decimal

__all__ = ["spell_decimal", "spell_double"]


def spell_double(value: float, decimal_below: float = 1e6) -> str:
    """Return a double as XPath 2.0 writes it; a decimal from a millionth on, up to a bound.

    >>> spell_double(1e6), spell_double(1e-5), spell_double(1.5e-7), spell_double(-math.inf)
    ('1.0E6', '0.00001', '1.5E-7', '-INF')
    """
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "INF", "-inf": "-INF"}[repr(value)]
    number = Decimal(repr(value))
    if value == 0 or 1e-6 <= abs(value) < decimal_below:
        return spell_decimal(number)
    mantissa, _, exponent = f"{number.normalize():E}".partition("E")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def spell_decimal(number: Decimal) -> str:
    """Return a decimal as XPath writes it: without zeros at its end."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
