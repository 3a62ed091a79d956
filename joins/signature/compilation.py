"""Has the loop that compares pairs compiled by a process of its own (`templates.compilation`).

python -m joins.signature.compilation
"""

from __future__ import annotations

import os

import numpy as np

from joins.signature.limits import SignatureLimits
from templates.compilation import Loops
from templates.compiling import lacks_code

__all__ = ["are_compiled", "compile_loops"]


def _are_missing() -> bool:
    from joins.signature.kernels import equal_slots

    return lacks_code(equal_slots)


_LOOPS = Loops(
    "joins.signature.compilation", "compare pairs", "array operations do it", _are_missing
)


def are_compiled(pairs: int, limits: SignatureLimits) -> bool:
    """Return whether a compiled loop compares so many pairs."""
    return pairs >= limits.compiled_pairs and _LOOPS.are_ready()


def compile_loops() -> None:
    """Call the loop with what it is called with in a join, so that it is compiled or read."""
    from joins.signature.kernels import equal_slots

    numbers, hashes = np.zeros(1, np.int64), np.zeros(1, np.uint64)
    sides = (numbers, numbers, numbers), (numbers, numbers)
    equal_slots(hashes, hashes, *sides[0], *sides[1], np.ones(1, np.bool_), 0)


if __name__ == "__main__":
    os.nice(10)
    compile_loops()
