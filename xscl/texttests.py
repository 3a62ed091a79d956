"""Tests that look for something in a text: words and regular expressions."""

from __future__ import annotations

from itertools import combinations

__all__ = ["EITHER", "IN_NO_TEXT", "NEGATED", "REFUTED", "TEXT_TESTS", "text_test"]

EITHER = "either"
"""The operator of several tests of which one must hold (`xscl.disjunctions`)."""

REFUTED = "refuted"
"""The operator of a number of which a comparison does not hold, whose text says the comparison."""

TEXT_TESTS = frozenset(
    [
        EITHER,
        REFUTED,
        "contains",
        "equals",
        "starts-with",
        "ends-with",
        "matches",
        *("matches/" + "".join(f) for n in range(1, 5) for f in combinations("imsx", n)),
    ]
)
"""Their operators; that of `matches` has its flags in it, in order.

`equals`, which is no function of XPath, is `=` with a string, where a text stands for several
values or must have none of them.
"""

NEGATED = "not "
"""Stands before an operator that must hold for none of several values."""

IN_NO_TEXT = "\0"
"""A character that XML has no way to write: who looks for it finds nothing."""


def text_test(function: str, flags: str) -> str | None:
    """Return the operator of a test by a function of XPath; None if it has none."""
    operator = f"{function}/{''.join(sorted(set(flags)))}" if flags else function
    return operator if operator in TEXT_TESTS else None
