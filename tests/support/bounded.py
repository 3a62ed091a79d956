"""An oracle that gives up: the obvious implementation has no limits, and a few cases ask too much.

What it does is counted, not timed: a case is too large on each machine, or on none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from oracle import sequences
from oracle.operators import Rules, Tuple
from oracle.runs import Runs

from xscl.query import Disjunct, Operator

__all__ = ["PAIRS_MAX", "TooLargeError", "bounded"]

PAIRS_MAX = 2_000_000
"""Pairs of tuples that an operator's nested loops look at in a case: some 20 s."""


class TooLargeError(Exception):
    """A case is left out: the oracle would look at more pairs than it may."""


LOOKS_MAX = 1_000_000
"""Elements that are tried behind runs in a case: some 30 s."""


TUPLES_MAX = 100_000
"""Tuples of operators in a case: minutes of an engine that does everything in pieces of one."""


@contextmanager
def bounded(
    pairs_max: int = PAIRS_MAX, looks_max: int = LOOKS_MAX, tuples_max: int = TUPLES_MAX
) -> Iterator[None]:
    """Let the oracle raise `TooLargeError` where it looks at more than so many pairs, or elements.

    Pairs and tuples are those of operators; elements are those that a run could take next.
    """
    pairs = looks = tuples = 0
    # As they are now: mutants of the rules may stand in for them.
    join, extended = sequences.join, Runs.extended

    def counted(
        operator: Operator,
        disjunct: Disjunct,
        lefts: Sequence[Tuple],
        rights: Sequence[Tuple],
        rules: Rules,
    ) -> Iterator[Tuple]:
        nonlocal pairs, tuples
        pairs += len(lefts) * len(rights)
        if pairs > pairs_max:
            raise TooLargeError
        for each in join(operator, disjunct, lefts, rights, rules):
            tuples += 1
            if tuples > tuples_max:
                raise TooLargeError
            yield each

    def looked(self: Runs, *arguments: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks > looks_max:
            raise TooLargeError
        return extended(self, *arguments)

    with patch.object(sequences, "join", counted), patch.object(Runs, "extended", looked):
        yield
