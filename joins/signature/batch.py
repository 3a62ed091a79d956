"""The batch in hand: its new values, and the uses of classes that are over their budget in it.

A batch is made when it begins and dropped when the next one does, so nothing has to be reset.
"""

from __future__ import annotations

import numpy as np

from joins.budget.pairs import PairBudget
from joins.memory.remembered import Hashes
from joins.memory.times import Flags
from joins.memory.valueindexes import NewValues
from joins.signature.compared import SharedSlots

__all__ = ["Batch"]


class Batch:
    """A batch in which the instances from `first` on are new.

    `shared` are the slots of new instances whose values another instance may have too.  It is None
    until it is asked for, and again when further instances come; `were_shared` says of the slots
    of those before whether they were among them.
    """

    def __init__(self, first: int, pair_budget: PairBudget) -> None:
        self.first = first
        self.pair_budget = pair_budget
        self.shared: SharedSlots | None = None
        self.were_shared: Flags = np.zeros(0, np.bool_)
        self._values = [NewValues.none()]

    def add(self, values: NewValues) -> None:
        """Add the values of further new instances."""
        self._values.append(values)
        if self.shared is not None:
            self.were_shared, self.shared = self.shared.flags, None

    @property
    def values(self) -> NewValues:
        """The values of new instances; owners ascend."""
        if len(self._values) > 1:
            self._values = [NewValues(*map(np.concatenate, zip(*self._values, strict=True)))]
        return self._values[0]

    def values_of(self, owner: int) -> dict[int, Hashes]:
        """Return the values of a new instance by variable."""
        values = self.values
        own = values.take(slice(*np.searchsorted(values.owners, [owner, owner + 1])))
        return {int(v): own.values[own.variables == v] for v in np.unique(own.variables)}
