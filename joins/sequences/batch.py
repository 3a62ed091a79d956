"""The batch in hand: how time passes in it, and what is decided in it.

A batch is made when it begins and dropped when the next one does, so nothing has to be reset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from joins.budget.pairs import Overrun
from joins.memory.durations import UNBOUNDED
from joins.sequences.clock import WatermarkSteps
from joins.sequences.counting.found import EndsInOrder
from joins.sequences.decidedtuples import DecidedTuples
from joins.sequences.takenvalues import TakenValues

__all__ = ["DecidingBatch"]

Chosen = tuple[Any, ...]
"""A choice of nodes of elements."""


class DecidingBatch:
    """A batch whose time `clock` tells.

    `decided` are the tuples of each stratum so far, `taken` the values for which some of them are
    taken away, `found` the runs of each evaluation, `others` those of classes whose plain ends
    were given.  From the document in `limits` on nobody asks for tuples of a class.  `numbered`
    returns a number that no choice of nodes has had.
    """

    def __init__(self, clock: WatermarkSteps, numbered: Callable[[], int]) -> None:
        self.clock = clock
        self.decided: list[DecidedTuples] = []
        self.limits: dict[int, int] = defaultdict(lambda: UNBOUNDED)
        self.found: dict[object, list[Any] | EndsInOrder[Any]] = {}
        self.others: dict[int, list[Any]] = {}
        self.taken = TakenValues()
        self.overruns: list[Overrun] = []
        self._inner_overruns = 0
        self._numbered = numbered
        self._identities: dict[Chosen, int] = {}

    def identity(self, chosen: Chosen) -> int:
        """Return a number for a choice of nodes of elements, which another one has not."""
        if chosen not in self._identities:
            self._identities[chosen] = self._numbered()
        return self._identities[chosen]

    def overrun(self, inner: Sequence[Overrun], own: Sequence[Overrun]) -> list[Overrun]:
        """Note the overruns so far, of the join and of repetitions; return all in order."""
        self.overruns += inner[self._inner_overruns :]
        self._inner_overruns = len(inner)
        self.overruns += [each for each in own if each not in self.overruns]
        return self.overruns
