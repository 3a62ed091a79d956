"""How many examples a property is tried with: few in the suite, many in `make soak`."""

from __future__ import annotations

import os

__all__ = ["examples", "is_searching"]

_TIMES = int(os.environ.get("XSCL_EXAMPLES", "1"))


def is_searching() -> bool:
    """Return whether this is a search, which tries other examples each time."""
    return "XSCL_EXAMPLES" in os.environ


def examples(number: int) -> int:
    """Return a number of examples, `XSCL_EXAMPLES` times so many where that is set."""
    return number * _TIMES
