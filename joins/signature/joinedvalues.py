"""The joined values: indexes of all values that some class compares.

A value is in an index under every variable that binds its node.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np

from joins.budget.probe import Partners, ValueJoin
from joins.memory.lookups import entry_keys
from joins.memory.remembered import EMPTY, Hashes, Remembered
from joins.memory.slots import Ints, Layouts, ranges
from joins.memory.times import Flags
from joins.memory.valueindexes import NewValues, ValueIndexes
from joins.signature.compared import SharedSlots
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits
from templates.queryclass import Sides

__all__ = ["JoinedValues"]


class JoinedValues:
    """The indexes of remembered values."""

    def __init__(
        self, remembered: Remembered, layouts: Layouts, limits: SignatureLimits = DEFAULT_LIMITS
    ) -> None:
        self.indexes = ValueIndexes(limits.memory)
        self._limits = limits
        self._remembered = remembered
        self._layouts = layouts

    def absorb(self, first: int, layouts: Ints, documents: Ints) -> NewValues:
        """Index the values of instances that have just been remembered, and return them.

        They have some layouts, and are of so many documents each.
        """
        arrays = self._layouts.arrays
        counts = arrays.binding_counts[layouts]
        bindings = ranges(arrays.binding_starts[layouts], counts)
        owners = np.arange(first, first + len(layouts)).repeat(counts)
        hashes, _ = self._remembered.hashes
        slots = arrays.binding_slots[bindings]
        values = hashes[self._remembered.slots(owners) + slots]
        entries = NewValues(owners, arrays.binding_variables[bindings], slots, values)
        new = entries.take((values != EMPTY).nonzero()[0])
        if arrays.of_one_variable[layouts].max(initial=0) > self._limits.repeats:
            new = new.without_repeats()
        of_each = documents[new.owners - first]
        self.indexes.add(new, of_each, self._remembered.base, self._remembered.are_there)
        return new

    def shared_slots(self, first: int, known: Flags) -> SharedSlots:
        """Return which slots of the instances from `first` on hold a value that others may have.

        `known` says it of the first of them as it was before further instances came.
        """
        remembered = self._remembered
        new = np.arange(first, remembered.next_instance)
        counts = self._layouts.arrays.slot_counts[remembered.take("layout", new)]
        start = int(remembered.slots(new[:1])[0])
        hashes, _ = remembered.hashes
        found = np.zeros(len(hashes) - start, np.bool_)
        found[: len(known)] = known
        rest = (~found).nonzero()[0]
        owners = new.repeat(counts)[rest]
        found[rest] = self.indexes.shared(hashes[start:][rest], owners)
        return SharedSlots(start, found)

    def partners(
        self,
        values: Mapping[int, Hashes],
        value_join: ValueJoin,
        asked: Sides | None,
        since_us: int,
    ) -> Partners:
        """Return the instances that have a value in common with an instance of some values.

        `value_join` says under which variables.  Both instances have values under all variables
        `asked` for on their sides.  Instances that end before `since_us` may be left out.
        """
        left, right = value_join
        found: Partners = []
        for mine, other, is_right in ((right, left, True), (left, right, False)):
            fits = asked is None or asked[is_right] <= values.keys()
            if mine in values and fits:
                partners = self._having(values[mine], other, since_us)
                if asked is not None:
                    partners = partners[self._have_all(partners, asked[not is_right])]
                found.append((partners, is_right))
        return found

    def _having(self, values: Hashes, variable: int, since_us: int) -> Ints:
        """Return the instances with any of some values under a variable, each once."""
        keys = entry_keys(values, np.full(len(values), variable))
        (first,) = self._remembered.first_from(np.array([since_us]))
        oldest = np.full(len(keys), first)
        parts = [
            partners
            for hits in self.indexes.find(keys)
            for *_, partners in hits.since(oldest[hits.indices]).listed(self._limits.found)
        ]
        found: Ints = np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))
        return found[self._remembered.are_there(found)]

    def _have_all(self, instances: Ints, variables: Set[int]) -> Flags:
        """Return which instances have values under all of some variables."""
        have = np.ones(len(instances), np.bool_)
        positions, bound, values = self._bindings(instances)
        for variable in variables:
            with_value = positions[(bound == variable) & (values != EMPTY)]
            have &= np.bincount(with_value, minlength=len(instances)) > 0
        return have

    def under(self, variable: int, instances: Ints) -> tuple[Ints, Hashes]:
        """Return all values under a variable, as (index into `instances`, value)."""
        positions, bound, values = self._bindings(instances)
        held = (bound == variable) & (values != EMPTY)
        return positions[held], values[held]

    def _bindings(self, instances: Ints) -> tuple[Ints, Ints, Hashes]:
        """Return all values of instances as (index into `instances`, variable, value)."""
        layouts, arrays = self._remembered.take("layout", instances), self._layouts.arrays
        counts = arrays.binding_counts[layouts]
        bindings = ranges(arrays.binding_starts[layouts], counts)
        positions = np.repeat(np.arange(len(instances)), counts)
        slots = self._remembered.slots(instances)[positions] + arrays.binding_slots[bindings]
        return positions, arrays.binding_variables[bindings], self._remembered.hashes[0][slots]
