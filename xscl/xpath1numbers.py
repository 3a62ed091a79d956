"""Numbers as XPath 1.0 reads them."""

from __future__ import annotations

import math
from functools import lru_cache

from xscl.canonical import render_number

__all__ = ["as_number"]


_EXACT_BELOW = 1e15


def as_number(constant: str | float) -> float:
    """Return a constant as the number that XPath 1.0 reads in it, in the text of a condition.

    Not always the nearest one: libxml2 adds up digits.

    >>> as_number("12"), as_number(" -1. "), as_number("+1"), as_number("INF")
    (12.0, -1.0, nan, nan)
    """
    # Whole numbers are what their digits add up to.
    is_whole = not isinstance(constant, str) and constant % 1 == 0 and abs(constant) < _EXACT_BELOW
    return constant + 0.0 if is_whole else _read(constant)  # type: ignore[operator]


@lru_cache(maxsize=4_096)
def _read(constant: str | float) -> float:
    from lxml import etree  # parsing does without it

    text = constant if isinstance(constant, str) else render_number(constant)
    try:
        found = etree.XPath("number($text)")(etree.Element("anywhere"), text=text)
    except ValueError:  # a character that XML has no way to write
        return math.nan
    assert isinstance(found, float)
    return found + 0.0
