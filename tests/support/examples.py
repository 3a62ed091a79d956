"""How many examples a property is tried with: few in the suite, many in `make soak`."""

from __future__ import annotations

import os

__all__ = ["examples"]

_TIMES = int(os.environ.get("XSCL_EXAMPLES", "1"))


def examples(number: int) -> int:
    """Return a number of examples, `XSCL_EXAMPLES` times so many where that is set."""
    return number * _TIMES
