"""Numbers as XPath 1.0 reads them."""

from __future__ import annotations

import math
from functools import lru_cache

from lxml import etree

from xscl.canonical import render_number

__all__ = ["as_number"]


@lru_cache(maxsize=4_096)
def as_number(constant: str | float) -> float:
    """Return a constant as the number that XPath 1.0 reads in it, in the text of a condition.

    Not always the nearest one: libxml2 adds up digits.

    >>> as_number("12"), as_number(" -1. "), as_number("+1"), as_number("INF")
    (12.0, -1.0, nan, nan)
    """
    text = constant if isinstance(constant, str) else render_number(constant)
    try:
        found = etree.XPath("number($text)")(etree.Element("anywhere"), text=text)
    except ValueError:  # a character that XML has no way to write
        return math.nan
    assert isinstance(found, float)
    return found + 0.0
