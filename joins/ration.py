"""The budget of predicted work: how many partners a new instance may meet in a class.

A use of a class goes over it where a new instance meets more than `pairs_max` partners, known
before it, by every one of the class's value joins, within the use's own window.  That is a matter
of the documents and of the use alone: neither other queries, nor the anchor that happens to be in
use, nor how documents are grouped into batches decide it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from joins.classes import ClassRegistry
from joins.remembered import Remembered
from joins.slots import Ints
from joins.times import Flags, Pairs

__all__ = ["UNBOUNDED", "Bounds", "Cut", "Group", "Meeting", "Ration", "ValueJoin"]

UNBOUNDED = 1 << 62
"""A budget that nothing goes over."""

ValueJoin = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What bounds the partners of an instance: allowed lateness, and a number."""

    lateness_us: int
    pairs_max: int = UNBOUNDED


@dataclass(frozen=True, slots=True)
class Group:
    """Classes that are paired alike, with the widest of their windows."""

    members: tuple[int, ...]
    window_us: int
    is_symmetric: bool

    @classmethod
    def of(cls, members: Sequence[int], classes: ClassRegistry) -> Group:
        """Return the group of some classes."""
        return cls(
            tuple(members),
            max(map(classes.window_us, members)),
            any(classes.by_number[number].is_symmetric for number in members),
        )


@dataclass(frozen=True, slots=True)
class Cut:
    """The uses of a class with one window went over the budget at a document.

    There they met `partners`, by the value join that is met least often; None: there is none.
    """

    query_class: int
    window_us: int
    docid: int
    partners: int
    value_join: ValueJoin | None


@dataclass(slots=True)
class Meeting:
    """What one new instance meets under one value join.

    The partners with a docid that is not above its own count (`is_counted`); the pairs with those
    that came before it are found here (`is_own`).  The two differ only for tuples of operators,
    which come after all documents of their batch.
    """

    met: Pairs
    is_counted: Flags
    is_own: Flags
    _spans: dict[bool, Ints] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        remembered: Remembered,
        owner: int,
        found: Sequence[tuple[Ints, bool]],
        lateness_us: int,
    ) -> Meeting:
        """Return the meeting of an instance with (partners, whether it is the right one)."""
        lefts, rights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for partners, is_right in found:
            partners = partners[partners != owner]
            owners = np.full(len(partners), owner)
            lefts.append(partners if is_right else owners)
            rights.append(owners if is_right else partners)
        left, right = np.concatenate(lefts), np.concatenate(rights)
        partner = left + right - owner
        docid = remembered.take("docid", np.array([owner]))
        is_counted = remembered.take("docid", partner) <= docid
        return cls(Pairs.of(remembered, left, right, lateness_us), is_counted, partner < owner)

    def partners(self, window_us: int, *, is_symmetric: bool) -> int:
        """Return how many partners a window holds."""
        spans = self._spans.get(is_symmetric)
        if spans is None:
            counted = self.is_counted & (self.met.follows | is_symmetric)
            spans = self._spans[is_symmetric] = np.sort(self.met.span[counted])
        return int(np.searchsorted(spans, window_us, "right"))

    def pairs(self, window_us: int, *, is_symmetric: bool) -> Pairs:
        """Return the pairs that are found here and that a window holds."""
        held = self.is_own & (self.met.span <= window_us) & (self.met.follows | is_symmetric)
        return self.met.keep(np.flatnonzero(held))


Meet = Callable[[ValueJoin | None], Meeting]


class Ration:
    """Which uses of classes are over the budget in the batch in hand."""

    def __init__(self, classes: ClassRegistry, pairs_max: int) -> None:
        self.pairs_max = pairs_max
        self.cuts: list[Cut] = []
        self._classes = classes
        self._below: dict[int, int] = {}
        self._closed: dict[int, int] = {}

    def close(self, number: int, docid: int) -> None:
        """Pair no instance from a document on for a class in this batch."""
        self._closed[number] = docid

    def closed_from(self, group: Group) -> int:
        """Return from which document on no class of a group is asked for."""
        if not self._closed:
            return UNBOUNDED
        return max(self._closed.get(number, UNBOUNDED) for number in group.members)

    def begin_batch(self) -> None:
        """Forget what was cut: who asks takes those uses away, or has them looked at again."""
        self.cuts = []
        self._below = {}
        self._closed = {}

    def is_open(self, number: int) -> bool:
        """Return whether some use of a class is within the budget so far."""
        below = self._below.get(number)
        return below is None or self._classes.windows(number)[0] < below

    def pairs(
        self, group: Group, docid: int, meet: Meet, first: ValueJoin | None
    ) -> Iterator[Pairs]:
        """Yield the pairs of a new instance that a group's classes ask for, `first` by one join.

        The rest goes to `allow`, class by class.
        """
        if docid >= self.closed_from(group) or not any(map(self.is_open, group.members)):
            return
        window_us, is_symmetric = group.window_us, group.is_symmetric
        if meet(first).partners(window_us, is_symmetric=is_symmetric) <= self.pairs_max:
            yield meet(first).pairs(window_us, is_symmetric=is_symmetric)
            return
        for number in filter(self.is_open, group.members):
            allowed = self.allow(number, docid, meet)
            if allowed is not None:
                meeting, window_us = allowed
                is_symmetric = self._classes.by_number[number].is_symmetric
                yield meeting.pairs(window_us, is_symmetric=is_symmetric)

    def allow(self, number: int, docid: int, meet: Meet) -> tuple[Meeting, int] | None:
        """Return what to pair an instance with for a class, and the widest window to do it for.

        Uses that this instance takes over the budget are cut; None where no other is left.
        """
        query_class = self._classes.by_number[number]
        joins: list[ValueJoin | None] = [*query_class.value_pairs()] or [None]

        def fewest(window_us: int) -> tuple[int, ValueJoin | None]:
            """Return the fewest partners; any number within the budget will do."""
            counted = []
            for value_join in joins:
                is_symmetric = query_class.is_symmetric
                partners = meet(value_join).partners(window_us, is_symmetric=is_symmetric)
                if partners <= self.pairs_max:
                    return partners, value_join
                counted.append((partners, value_join))
            return min(counted, key=lambda each: each[0])

        below = self._below.get(number)
        windows = [w for w in self._classes.windows(number) if below is None or w < below]
        within = bisect_right(windows, self.pairs_max, key=lambda w: fewest(w)[0])
        for window_us in windows[within:]:
            self.cuts.append(Cut(number, window_us, docid, *fewest(window_us)))
        if within < len(windows):
            self._below[number] = windows[within]
        if not within:
            return None
        window_us = windows[within - 1]
        return meet(fewest(window_us)[1]), window_us
