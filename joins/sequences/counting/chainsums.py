"""Sums of ways: to what may stand before an element, and between the steps of a chain."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from joins.memory.durations import UNBOUNDED
from joins.sequences.counting.chaingraph import ChainNode
from joins.sequences.counting.sums import SumByKey, asked_of

__all__ = ["PlaceSums", "RunSums", "StepWindow"]


class PlaceSums:
    """The ways to the elements at a place, by end, of which the last ones within a time count.

    With an operator each has a number, NaN where nothing may stand behind it; without one sums are
    those of all so far.
    """

    __slots__ = (
        "_ends_us",
        "_first",
        "_given",
        "_last",
        "_longest_us",
        "_next_to",
        "_nodes",
        "_numbers",
        "_sums",
    )

    def __init__(self, longest_us: int, operator: str | None) -> None:
        self._longest_us = longest_us
        self._next_to = None if operator is None else asked_of(operator, of_next=True)
        self._nodes: list[ChainNode] = []
        self._ends_us: list[int] = []
        self._given: list[float] = []
        # Sums of the first ways, as far as they are known.
        self._sums = [0]
        # By number those of the elements from the first one on, before the last.
        self._numbers = SumByKey()
        self._first = self._last = 0

    def add(self, node: ChainNode, given: float) -> None:
        """Add a node, with its number, behind others that end when it does."""
        ends_us, end_us = self._ends_us, node.end_us
        if not ends_us or ends_us[-1] <= end_us:
            ends_us.append(end_us)
            self._nodes.append(node)
            self._given.append(given)
            return
        at = bisect_right(ends_us, end_us)
        ends_us.insert(at, end_us)
        self._nodes.insert(at, node)
        self._given.insert(at, given)
        self._forget_sums(at)

    def change(self, node: ChainNode) -> None:
        """Forget sums of ways that a node has a part in."""
        self._forget_sums(bisect_left(self._ends_us, node.end_us))

    def _forget_sums(self, at: int) -> None:
        del self._sums[at + 1 :]
        if at < self._last:
            self._begin_at(0)

    def _begin_at(self, first: int) -> None:
        self._numbers, self._first, self._last = SumByKey(), first, first

    def ways_to(self, end_us: int, before_us: int, asked: float) -> int:
        """Return the ways to what may stand before an element: what ends before a time.

        `asked` is the number of the element, which ends at `end_us`.
        """
        first = bisect_left(self._ends_us, end_us - self._longest_us)
        last = bisect_left(self._ends_us, before_us, first)
        if self._next_to is not None:
            if asked != asked:
                return 0
            self._move(first, last)
            return self._next_to(self._numbers, asked)
        sums = self._sums
        if len(sums) <= last:
            total = sums[-1]
            for node in self._nodes[len(sums) - 1 : last]:
                total += node.ways
                sums.append(total)
        return sums[last] - sums[first]

    def _move(self, first: int, last: int) -> None:
        """Have sums by number be those of the elements between two places."""
        if not self._first <= first <= self._last <= last:
            self._begin_at(first)
        numbers, nodes, given = self._numbers, self._nodes, self._given
        for at in range(self._last, last):
            if nodes[at].ways and given[at] == given[at]:
                numbers.add(given[at], nodes[at].ways)
        for at in range(self._first, first):
            if nodes[at].ways and given[at] == given[at]:
                numbers.take(given[at], nodes[at].ways)
        self._first, self._last = first, last

    def forget(self, before_us: int) -> bool:
        """Forget what ends before a time; return whether something is left."""
        gone = bisect_left(self._ends_us, before_us)
        del self._nodes[:gone], self._ends_us[:gone], self._given[:gone], self._sums[:gone]
        self._sums = self._sums or [0]
        if gone <= self._first:
            self._first, self._last = self._first - gone, self._last - gone
        else:
            self._begin_at(0)
        return bool(self._nodes)


class RunSums:
    """The ways to elements of a repetition, all of which end within a time of what stands before.

    Behind what stands before a run has any of the elements that come, of one time at most one: the
    ways are multiplied by one more than there are.  Those that end last, together, are apart.
    """

    __slots__ = (
        "_last_count",
        "_last_left",
        "_last_us",
        "_lefts",
        "_product",
        "_times",
        "_total",
        "_window_us",
    )

    def __init__(self, window_us: int) -> None:
        self._window_us = window_us
        # What stands before, by end, with the ways to it; and the factors that came behind the
        # first of these, with their product.
        self._lefts: deque[tuple[int, int]] = deque()
        self._times: deque[tuple[int, int]] = deque()
        self._product = 1
        self._total = 0
        self._last_us = -UNBOUNDED
        self._last_left = self._last_count = 0

    @property
    def last_us(self) -> int:
        """When the last of all ended."""
        return self._last_us

    def ways_to(self, end_us: int) -> int:
        """Return the ways to an element that ends last."""
        self._pass_to(end_us)
        return self._total

    def add_left(self, end_us: int, ways: int) -> None:
        """Add what may stand before, and ends last."""
        self._pass_to(end_us)
        self._last_left += ways

    def add_element(self, end_us: int) -> None:
        """Add an element that ends last."""
        self._pass_to(end_us)
        self._last_count += 1

    def _pass_to(self, end_us: int) -> None:
        if end_us <= self._last_us:
            return
        if self._last_count and self._lefts:
            factor = 1 + self._last_count
            self._total *= factor
            self._product *= factor
            self._times.append((self._last_us, factor))
        if self._last_left:
            self._lefts.append((self._last_us, self._last_left))
            self._total += self._last_left
        self._last_us, self._last_left, self._last_count = end_us, 0, 0
        while self._lefts and self._lefts[0][0] < end_us - self._window_us:
            self._total -= self._lefts.popleft()[1] * self._product
            while self._times and (not self._lefts or self._times[0][0] <= self._lefts[0][0]):
                self._product //= self._times.popleft()[1]


@dataclass(slots=True, order=True)
class _Tied:
    """How many elements of each step end at one time."""

    end_us: int
    counts: list[int] = field(compare=False)


class StepWindow:
    """The elements under one key within a time, and the ways between the steps.

    Those that end last, together, are apart: none of them stands behind another.
    """

    __slots__ = ("_are_repeated", "_last", "_tied", "_ways", "_within_us")

    def __init__(self, are_repeated: Sequence[bool], within_us: int) -> None:
        self._are_repeated = are_repeated
        self._within_us = within_us
        # From each step to each other one: how many choices there are of elements of the steps from
        # the one to the other that stand behind each other.
        self._ways = [[0] * len(are_repeated) for _ in are_repeated]
        self._tied: deque[_Tied] = deque()
        self._last = _Tied(-UNBOUNDED, [0] * len(are_repeated))

    @property
    def last_us(self) -> int:
        """When the last elements end."""
        return self._last.end_us

    def add(self, end_us: int, step: int) -> int:
        """Add an element that ends last; return the ways to it from the first step on."""
        last, tied = self._last, self._tied
        if end_us > last.end_us:
            if last.end_us > -UNBOUNDED:
                self._add(last.counts)
                tied.append(last)
            last = self._last = _Tied(end_us, [0] * len(self._are_repeated))
            while tied and tied[0].end_us < end_us - self._within_us:
                self._take(tied.popleft().counts)
        last.counts[step] += 1
        own = self._ways[0]
        further = own[step] if self._are_repeated[step] else 0
        return further + (own[step - 1] if step else 1)

    def insert(self, end_us: int, step: int) -> None:
        """Add an element that ended before the last ones."""
        at = next((each for each in self._tied if each.end_us == end_us), None)
        if at is None:
            at = _Tied(end_us, [0] * len(self._are_repeated))
            tied = list(self._tied)
            insort(tied, at)
            self._tied = deque(tied)
        at.counts[step] += 1
        self._ways = [[0] * len(self._are_repeated) for _ in self._are_repeated]
        for each in self._tied:
            self._add(each.counts)

    def _add(self, counts: Sequence[int]) -> None:
        """Add elements that end behind all others."""
        # From the last step on back: what is added to one is of what the one before had.
        for step in range(len(counts) - 1, -1, -1):
            count = counts[step]
            if not count:
                continue
            share = 1 + count * self._are_repeated[step]
            for own in self._ways[:step]:
                own[step] = own[step] * share + count * own[step - 1]
            own = self._ways[step]
            own[step] = own[step] * share + count

    def _take(self, counts: Sequence[int]) -> None:
        """Take elements away that end before all others: all ways that begin with one of them."""
        size = len(counts)
        for first in range(size - 1, -1, -1):
            count = counts[first]
            if not count:
                continue
            own = self._ways[first]
            share = 1 + count * self._are_repeated[first]
            own[first] = (own[first] - count) // share
            if first + 1 < size:
                behind = self._ways[first + 1]
                for last in range(first + 1, size):
                    own[last] = (own[last] - count * behind[last]) // share
