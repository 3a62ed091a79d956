"""Has the loops that look values up compiled by a process of their own (`templates.compilation`).

python -m joins.memory.compilation
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from joins.memory.limits import MemoryLimits
from templates.compilation import Loops
from templates.compiling import lacks_code

__all__ = ["are_compiled", "compile_loops"]


def _are_missing() -> bool:
    from joins.memory.kernels import share_values, values_under

    return lacks_code(share_values) or lacks_code(values_under)


_WORTH_READING = 50
"""To look up so many times `compiled_values` takes array operations as long as it takes to read the
loops, which are faster for a few hundred values, too."""

_LOOPS = Loops("joins.memory.compilation", "look up values", "array operations do it", _are_missing)


@dataclass(slots=True)
class _LookedUp:
    """How many values array operations have looked up in this process."""

    values: int = 0


_looked_up = _LookedUp()


def are_compiled(values: int, limits: MemoryLimits) -> bool:
    """Return whether compiled loops look so many values up.

    They do where these are many, and where so many have come that to read the loops has paid.
    """
    has_paid = _looked_up.values >= _WORTH_READING * limits.compiled_values
    if values < limits.compiled_values and not has_paid:
        _looked_up.values += values
        return False
    return _LOOPS.are_ready()


def compile_loops() -> None:
    """Call each loop with what it is called with in a join, so that it is compiled or read."""
    from joins.memory.kernels import share_values, values_under
    from joins.memory.limits import DEFAULT_MEMORY_LIMITS
    from joins.memory.lookups import LookUps
    from joins.memory.sortedrun import IndexRun

    numbers, hashes = np.zeros(1, np.int64), np.ones(1, np.uint64)
    run = IndexRun.of(hashes, numbers, DEFAULT_MEMORY_LIMITS).columns
    share_values(hashes, numbers, np.zeros(1, np.bool_), run, 1)
    table = LookUps.of(numbers, numbers).table.columns
    values_under(hashes, numbers, numbers, numbers, run, table, 1)


if __name__ == "__main__":
    os.nice(10)
    compile_loops()
