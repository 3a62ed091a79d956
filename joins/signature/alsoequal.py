"""Pairs that an anchor has found, held against what else all of its classes join by.

An anchor is one of the value joins of its classes.  Where all of these have another one, too, most
of the pairs that it finds have nothing else in common: author and feed are looked up by author, and
few of an author's items are in one feed.  To see that from two hashes costs a tenth of what it
costs to make a pair and its signature.

What is left out is what would not be found if the classes were anchored in the other value join;
and it changes nothing in which one they are.  Where an instance has several slots under a variable,
or none, nothing is said.
"""

from __future__ import annotations

import numpy as np

from joins.memory.remembered import Hashes, Remembered
from joins.memory.slots import Ints, Layouts, ranges
from joins.memory.times import Flags

__all__ = ["AlsoEqual"]

Under = tuple[int, Ints]
"""A variable, and instances that may have values under it."""


class AlsoEqual:
    """Says of pairs whether their values are equal under further variables."""

    def __init__(self, remembered: Remembered, layouts: Layouts) -> None:
        self._remembered = remembered
        self._layouts = layouts

    def may_hold(self, of_owners: Under, counts: Ints, of_partners: Under) -> Flags:
        """Return which pairs may have equal values under a variable of each.

        The next `counts[i]` of the partners are those of the owner `i`.
        """
        known, values = self._only(*of_owners)
        are_known, found = self._only(*of_partners)
        differ: Flags = np.repeat(values, counts) != found
        differ &= np.repeat(known, counts) & are_known
        return ~differ

    def _only(self, variable: int, instances: Ints) -> tuple[Flags, Hashes]:
        """Return which instances have one slot under a variable, and the hashes there."""
        layouts = self._remembered.take("layout", instances)
        slots = self._slots(variable)[layouts]
        is_one = slots >= 0
        first, _ = self._remembered.padded_hashes(1)
        return is_one, first[self._remembered.slots(instances) + np.maximum(slots, 0)]

    def _slots(self, variable: int) -> Ints:
        """Return, by layout, the only slot under a variable, -1 where there is none or several."""
        arrays = self._layouts.arrays
        bindings = ranges(arrays.binding_starts, arrays.binding_counts)
        of_layout = np.repeat(np.arange(len(arrays.binding_counts)), arrays.binding_counts)
        rows = np.flatnonzero(arrays.binding_variables[bindings] == variable)
        times = np.bincount(of_layout[rows], minlength=len(arrays.binding_counts))
        slots = np.full(len(times), -1, np.int64)
        slots[of_layout[rows]] = arrays.binding_slots[bindings[rows]]
        slots[times != 1] = -1
        return slots
