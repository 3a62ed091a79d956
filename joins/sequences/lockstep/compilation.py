"""Has the loops that step runs compiled by a process of its own, as those of similarity are.

Statements that come before they are there go without them.

    python -m joins.sequences.lockstep.compilation
"""

from __future__ import annotations

import os

from templates.compilation import Loops
from templates.compiling import lacks_code

__all__ = ["LOOPS", "compile_loops"]


def _are_missing() -> bool:
    from joins.sequences.lockstep.loops.beginning import begin
    from joins.sequences.lockstep.loops.lines import enter
    from joins.sequences.lockstep.loops.stepping import keep_before, step_on

    return any(map(lacks_code, (enter, begin, keep_before, step_on)))


LOOPS = Loops(
    "joins.sequences.lockstep.compilation",
    "step runs on",
    "runs are found one by one",
    _are_missing,
)


def compile_loops() -> None:
    """Call each loop with what it is called with in a table, so that it is compiled or read."""
    from joins.sequences.lockstep.sample import step_sample

    step_sample()


if __name__ == "__main__":
    os.nice(10)
    compile_loops()
