"""Numbers as XPath 1.0 reads them."""

from __future__ import annotations

import math
from functools import lru_cache

from xscl.canonical import render_number

__all__ = ["NUMBER_OF_TEXT", "TEXT_OF_NODE", "as_number", "number_of_text", "number_of_truth"]


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


NUMBER_OF_TEXT = "number(.)"
"""The expression that makes a number of the text of a node."""

TEXT_OF_NODE = "string(.)"
"""The expression that is the text of a node."""


def number_of_truth(expression: str) -> str:
    """Return the expression that is 1 where another one holds, and 0 where it does not."""
    return f"number(boolean({expression}))"


_DIGITS = 15
"""Of so many digits a number is exact."""


def number_of_text(text: str) -> float:
    """Return the number that XPath 1.0 reads in a text; negative zero is one of its own.

    >>> number_of_text("12"), number_of_text(" -0 "), number_of_text("x")
    (12.0, -0.0, nan)
    """
    if len(text) <= _DIGITS and text.isascii() and text.isdigit():
        return float(text)
    return _read_text(text)


def _read(constant: str | float) -> float:
    return _read_text(constant if isinstance(constant, str) else render_number(constant)) + 0.0


@lru_cache(maxsize=4_096)
def _read_text(text: str) -> float:
    from lxml import etree  # parsing does without it

    try:
        found = etree.XPath("number($text)")(etree.Element("anywhere"), text=text)
    except ValueError:  # a character that XML has no way to write
        return math.nan
    assert isinstance(found, float)
    return found
