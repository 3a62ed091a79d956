"""Has the loops that count runs compiled by a process of their own, as those of similarity are.

python -m joins.sequences.counting.compilation
"""

from __future__ import annotations

import os

import numpy as np

from templates.compilation import Loops
from templates.compiling import lacks_code

__all__ = ["LOOPS", "compile_loops"]


def _are_missing() -> bool:
    from joins.sequences.counting.kernels import ways_back, ways_since

    return lacks_code(ways_back) or lacks_code(ways_since)


LOOPS = Loops(
    "joins.sequences.counting.compilation",
    "count runs",
    "they are counted without",
    _are_missing,
)


def compile_loops() -> None:
    """Call each loop with what it is called with for a window, so that it is compiled or read."""
    from joins.sequences.counting.kernels import PIVOTS, ways_back, ways_since

    numbers, flags = np.zeros(1, np.int64), np.ones(1, np.bool_)
    ways_back(numbers, numbers, numbers, flags, flags, numbers, 1, 1, True, 1, 60)
    pivots = np.zeros(PIVOTS, np.int64)
    ways_since(numbers, numbers, numbers, flags, flags, pivots, 1, 1)


if __name__ == "__main__":
    os.nice(10)
    compile_loops()
