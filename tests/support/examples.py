"""How much is tried: little in the suite, much in `make soak`.

What searches asks here how far: how many examples of a property, which of many cases, how large a
run.  `XSCL_EXAMPLES` says that this is a search, and how many times as many examples it tries.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

__all__ = ["examples", "is_searching", "size", "some"]

T = TypeVar("T")

_TIMES = int(os.environ.get("XSCL_EXAMPLES", "1"))


def is_searching() -> bool:
    """Return whether this is a search, which tries other examples each time."""
    return "XSCL_EXAMPLES" in os.environ


def examples(number: int) -> int:
    """Return a number of examples, `XSCL_EXAMPLES` times so many where that is set."""
    return number * _TIMES


def some(cases: Iterable[T], number: int) -> list[T]:
    """Return some cases, spread evenly over all of them; a search tries all.

    Each is taken a little further behind its share of them: of a product, what varies fastest
    varies, too.
    """
    them = list(cases)
    if is_searching() or number >= len(them):
        return them
    share = len(them) // number
    return [them[i * len(them) // number + i * share // number] for i in range(number)]


def size(small: int, full: int) -> int:
    """Return how large a run is: small in the suite, and of its full size in a search."""
    return full if is_searching() else small
