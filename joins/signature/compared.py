"""Compared pairs of instances, and the signatures that they have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from joins.memory.remembered import Remembered
from joins.memory.slots import Ints, Layouts
from joins.memory.times import Flags, groups

__all__ = ["SLOT_BITS", "Code", "Codes", "Compared", "Equal", "Grouped", "SharedSlots"]

SLOT_BITS = 32
"""Bits that hold a slot's number in a code."""

Codes = tuple[int, ...]
"""The equal pairs of slots, in order: left slot times 2 ** `SLOT_BITS` plus right slot."""


class Grouped(NamedTuple):
    """The equal pairs of slots, where these are too many to be listed: a group for each value.

    A group is the left and the right slots that have one value; all left ones equal all right ones.
    """

    groups: tuple[tuple[Codes, Codes], ...]


Equal = Codes | Grouped

Code = tuple[int, int, Equal]
"""A signature: left layout, right layout, and the equal pairs of slots."""


@dataclass(frozen=True, slots=True)
class SharedSlots:
    """The slots of new instances that have a value which another instance may have too.

    Slots are places in `Remembered.hashes`, valid until further instances are remembered; the slots
    of new instances begin at `first`.  A slot that is not shared is equal to no other.
    """

    first: int
    flags: Flags

    def has(self, places: Ints) -> Flags:
        """Return which of some slots of new instances are among them."""
        found: Flags = self.flags[places - self.first]
        return found


@dataclass(frozen=True, slots=True)
class Compared:
    """Pairs to compare: their layouts, where their slots start, and how many there are.

    A newer instance has one row in `newer` and `newer_count`, for its next `counts` pairs, up to
    the one before `ends`.  `is_right` says of a pair that the newer instance is the right one.
    """

    is_right: Flags
    counts: Ints
    ends: Ints
    newer_layout: Ints
    newer: Ints
    newer_count: Ints
    older_layout: Ints
    older: Ints
    older_count: Ints

    @classmethod
    def of(cls, remembered: Remembered, layouts: Layouts, left: Ints, right: Ints) -> Compared:
        """Return pairs of instances; the pairs of one newer instance stand together."""
        newer, counts = groups(np.maximum(left, right))
        older = np.minimum(left, right)
        layout1, layout2 = remembered.take("layout", newer), remembered.take("layout", older)
        starts = remembered.slots(newer), remembered.slots(older)
        widths = layouts.arrays.slot_counts
        one = np.repeat(layout1, counts), starts[0], widths[layout1]
        ends = np.cumsum(counts)
        return cls(right > left, counts, ends, *one, layout2, starts[1], widths[layout2])

    def __len__(self) -> int:
        return len(self.older)

    @property
    def widest(self) -> int:
        """The combinations of slots that pairs as wide as the widest on either side have."""
        if not len(self):
            return 0
        return max(1, int(self.newer_count.max())) * max(1, int(self.older_count.max()))

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Give every pair the value of its newer instance."""
        return values.repeat(self.counts)

    def code(self, row: int, equal: Iterable[tuple[int, int]]) -> Code:
        """Return a pair's signature by the (newer slot, older slot) that are equal."""
        newer, older = self._layouts(row)
        if self.is_right[row]:
            return older, newer, tuple(sorted(j << SLOT_BITS | i for i, j in equal))
        return newer, older, tuple(sorted(i << SLOT_BITS | j for i, j in equal))

    def codes(self, rows: Ints, which: Ints, newer: Ints, older: Ints) -> Iterator[Code]:
        """Yield the signatures of some pairs, of which slots `newer` and `older` are equal.

        `which` says which of `rows` a pair of slots is of.
        """
        is_right = self.is_right[rows]
        left, right = np.where(is_right[which], (older, newer), (newer, older))
        equal = left << SLOT_BITS | right
        equal = equal[np.lexsort((equal, which))].tolist()
        ends = np.cumsum(np.bincount(which, minlength=len(rows))).tolist()
        layouts = np.where(
            is_right,
            (self.older_layout[rows], self.newer_layout[rows]),
            (self.newer_layout[rows], self.older_layout[rows]),
        )
        for start, stop, (one, other) in zip([0, *ends], ends, layouts.T.tolist(), strict=False):
            yield one, other, tuple(equal[start:stop])

    def grouped_code(self, row: int, groups: Iterable[tuple[Codes, Codes]]) -> Code:
        """Return a pair's signature by groups of (newer slots, older slots) that are equal."""
        newer, older = self._layouts(row)
        if self.is_right[row]:
            return older, newer, Grouped(tuple(sorted((j, i) for i, j in groups)))
        return newer, older, Grouped(tuple(sorted(groups)))

    def _layouts(self, row: int) -> tuple[int, int]:
        return int(self.newer_layout[row]), int(self.older_layout[row])
