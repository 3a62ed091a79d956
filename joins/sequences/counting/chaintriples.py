"""How many matches of a chain of three units end with an element, under a WITHIN.

What leaves the window takes its ways away from every match that began with it.  Of three units that
is one for each element of the middle that may stand behind it: all of these came later.  So an
element of the middle has a number, how many of the first unit that are still there may stand before
it; what ends adds these up.  Elements of the middle stand in order of the number that both sides
compare: then what may stand behind one that goes, and before one that comes, stands together.

`docs/repetition.md` has the theory.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from joins.memory.durations import UNBOUNDED
from joins.sequences.absentunits import Key
from joins.sequences.counting.chaingraph import ChainNode
from joins.sequences.counting.chainreading import NodeReading
from joins.sequences.counting.sums import SumByKey, asked_of
from templates.chaindecision import ChainDecision

__all__ = ["WaysOfThree"]

_END = attrgetter("end_us")

_SIDES = {"<": "left", "<=": "right", ">": "right", ">=": "left"}


class _MiddleLine:
    """Elements of the middle unit by number, each with how many may stand before it."""

    __slots__ = ("_counts", "_ends_us", "_numbers", "size")

    def __init__(self) -> None:
        self.size = 0
        self._numbers = np.empty(64)
        self._counts = np.empty(64, np.int64)
        self._ends_us = np.empty(64, np.int64)

    def add(self, number: float, count: int, end_us: int) -> None:
        """Add an element."""
        size = self.size
        columns = self._numbers, self._counts, self._ends_us
        if size == len(self._numbers):
            columns = tuple([np.concatenate([each, each]) for each in columns])  # type: ignore[assignment]
            self._numbers, self._counts, self._ends_us = columns
        at = int(self._numbers[:size].searchsorted(number, "right"))
        for column, value in zip(columns, (number, count, end_us), strict=True):
            column[at + 1 : size + 1] = column[at:size]
            column[at] = value
        self.size = size + 1

    def take(self, number: float, end_us: int) -> None:
        """Take an element away, before which nothing is left."""
        size = self.size
        at = int(self._numbers[:size].searchsorted(number, "left"))
        while self._ends_us[at] != end_us:
            at += 1
        for column in (self._numbers, self._counts, self._ends_us):
            column[at : size - 1] = column[at + 1 : size]
        self.size = size - 1

    def change(self, operator: str | None, number: float, by: int) -> None:
        """Change the counts of all that may stand behind an element with a number."""
        self._counts[: self.size][self._some(operator, number)] += by

    def change_behind(self, operator: str | None, number: float, end_us: int, by: int) -> None:
        """Change the counts of those that end behind a time, too."""
        some = self._some(operator, number)
        counts = self._counts[: self.size][some]
        counts[self._ends_us[: self.size][some] > end_us] += by

    def total(self, operator: str | None, number: float) -> int:
        """Return the sum of the counts of all that may stand before an element with a number."""
        turned = None if operator is None else operator.translate(_TURNED)
        return int(self._counts[: self.size][self._some(turned, number)].sum())

    def _some(self, operator: str | None, number: float) -> slice:
        """Return the elements of which `own operator number` holds."""
        if operator is None:
            return slice(None)
        at = int(self._numbers[: self.size].searchsorted(number, _SIDES[operator]))  # type: ignore[call-overload]
        return slice(at) if operator in ("<", "<=") else slice(at, None)


_TURNED = str.maketrans("<>", "><")


class WaysOfThree:
    """The elements of the first two units within a time, and the ways to the third."""

    def __init__(self, decision: ChainDecision, reading: NodeReading) -> None:
        self._within_us = decision.within_us
        compared = [reading.compared_at(step, is_further=False) for step in (1, 2)]
        self._operators = [None if each is None else each.operator for each in compared]
        first = self._operators[0]
        self._asked = None if first is None else asked_of(first, of_next=True)
        self._apart_us = self._newest_us = -UNBOUNDED
        # What ends last, together: none of it stands behind another.
        self._tied: list[ChainNode] = []
        self._nodes: list[ChainNode] = []
        self._firsts: dict[Key, SumByKey] = {}
        # By what an element of the middle has in common with the one before it, and behind it.
        self._lines: dict[Key, dict[Key, _MiddleLine]] = {}
        self._behind: dict[Key, dict[Key, _MiddleLine]] = {}

    @classmethod
    def of(cls, decision: ChainDecision, reading: NodeReading) -> WaysOfThree | None:
        """Return the ways of a chain, None where it is not one of three, or compares otherwise.

        Either side has in common with the middle what is looked up; of the middle both compare the
        same term, or one nothing.
        """
        links = decision.links
        if len(links) != 3 or any(link.is_repeated for link in links):
            return None
        if not all(reading.is_summed((step, False, ())) for step in (1, 2)):
            return None
        before, behind = (reading.compared_at(step, is_further=False) for step in (1, 2))
        if before is not None and behind is not None:
            asked, given = before.read[0], behind.read[1]
            if asked is None or asked != given:
                return None
        return cls(decision, reading)

    # -- what comes ----------------------------------------------------------------------------

    def enter(self, nodes: Sequence[ChainNode]) -> list[tuple[int, int]] | None:
        """Take elements with one label; what is late stands in the window, and is drawn."""
        end_us = nodes[0].end_us
        if len(nodes) > 1 or not nodes[0].is_in_time or nodes[0].part.start_us < end_us:
            self._apart_us = max(self._apart_us, end_us + self._within_us)
        is_late = end_us < self._newest_us
        found = 0
        for node in nodes:
            if not _is_placed(node):
                continue
            if not _is_single(node):
                self._apart_us = max(self._apart_us, end_us + self._within_us)
            elif is_late:
                self._insert(node)
            else:
                found += self._add(node)
        if is_late or end_us <= self._apart_us:
            return None
        return [(end_us, found)] if found else []

    def enter_in_order(self, nodes: Sequence[ChainNode]) -> list[int] | None:
        """Take elements that end last; each of the third unit adds up what is before it."""
        if nodes[0].end_us <= max(self._apart_us, self._newest_us - 1):
            return None
        placed = [*map(_is_placed, nodes)]
        if not all(_is_single(n) for n, is_placed in zip(nodes, placed, strict=True) if is_placed):
            return None
        return [
            self._add(node) if is_placed else 0
            for node, is_placed in zip(nodes, placed, strict=True)
        ]

    def _add(self, node: ChainNode) -> int:
        """Add an element that ends last; return the ways to it, if it is of the third unit."""
        end_us = node.end_us
        if end_us > self._newest_us:
            self._pass_to(end_us)
        if node.step < 2:
            self._tied.append(node)
            return 0
        (_, _, key), asked = node.asks[0]
        operator = self._operators[1]
        if operator is not None and asked != asked:
            return 0
        return sum([line.total(operator, asked) for line in self._behind.get(key, {}).values()])

    def _pass_to(self, end_us: int) -> None:
        """Let time pass: what ended last stands before what comes, and what is too old goes."""
        tied, self._tied = self._tied, []
        for node in tied:
            if node.step:
                self._put(node, self._count(node))
        for node in tied:
            if not node.step:
                self._put_first(node)
        self._nodes += tied
        self._newest_us = end_us
        gone = bisect_left(self._nodes, end_us - self._within_us, key=_END)
        if gone:
            # Of one time those of the middle go first: nothing is left before them.
            for node in sorted(self._nodes[:gone], key=lambda each: (each.end_us, -each.step)):
                self._take(node)
            del self._nodes[:gone]

    # -- the window ----------------------------------------------------------------------------

    def _count(self, node: ChainNode) -> int:
        """Return how many of the first unit may stand before an element of the middle."""
        (_, _, key), asked = node.asks[0]
        sums = self._firsts.get(key)
        return 0 if sums is None else self._some_of(sums, asked)

    def _some_of(self, sums: SumByKey, asked: float) -> int:
        """Return how many of some elements of the first unit may stand before a number."""
        if self._asked is None:
            return sums.total
        return self._asked(sums, asked) if asked == asked else 0

    def _number(self, node: ChainNode) -> float:
        """Return the number by which an element of the middle stands in its line; NaN for none."""
        first, second = self._operators
        asked, given = node.asks[0][1], node.gives[0][1]
        return asked if first is not None else given if second is not None else 0.0

    def _put(self, node: ChainNode, count: int) -> None:
        number = self._number(node)
        if number == number:
            self._line(node).add(number, count, node.end_us)

    def _line(self, node: ChainNode) -> _MiddleLine:
        before, behind = node.asks[0][0][2], node.gives[0][0][2]
        line = self._lines.setdefault(before, {}).get(behind)
        if line is None:
            line = self._lines[before][behind] = _MiddleLine()
            self._behind.setdefault(behind, {})[before] = line
        return line

    def _put_first(self, node: ChainNode) -> None:
        (_, _, key), given = node.gives[0]
        number = self._given(given)
        if number == number:
            self._firsts.setdefault(key, SumByKey()).add(number, 1)

    def _given(self, given: float) -> float:
        return 0.0 if self._operators[0] is None else given

    def _take(self, node: ChainNode) -> None:
        """Take the oldest element away, and of all that may stand behind it one way."""
        if node.step:
            number = self._number(node)
            if number == number:
                line = self._line(node)
                line.take(number, node.end_us)
                if not line.size:
                    self._forget_line(node)
            return
        (_, _, key), given = node.gives[0]
        number = self._given(given)
        if number != number:
            return
        sums = self._firsts[key]
        sums.take(number, 1)
        if not sums.total:
            del self._firsts[key]
        for line in self._lines.get(key, {}).values():
            line.change(self._operators[0], number, -1)

    def _forget_line(self, node: ChainNode) -> None:
        before, behind = node.asks[0][0][2], node.gives[0][0][2]
        for lines, one, other in ((self._lines, before, behind), (self._behind, behind, before)):
            del lines[one][other]
            if not lines[one]:
                del lines[one]

    def _insert(self, node: ChainNode) -> None:
        """Put an element into the window that ended before the last ones."""
        end_us = node.end_us
        if node.step > 1 or end_us < self._newest_us - self._within_us:
            return
        (_, _, key), given = node.gives[0]
        if node.step:
            self._put(node, sum(self._may_stand_before(each, node) for each in self._nodes))
        else:
            self._put_first(node)
            number = self._given(given)
            for line in self._lines.get(key, {}).values() if number == number else ():
                line.change_behind(self._operators[0], number, end_us, 1)
        insort(self._nodes, node, key=_END)

    def _may_stand_before(self, first: ChainNode, node: ChainNode) -> bool:
        """Return whether an element of the window is of the first unit, and may stand before."""
        if first.step or first.end_us >= node.end_us:
            return False
        ((_, _, key), given), ((_, _, own), asked) = first.gives[0], node.asks[0]
        number = self._given(given)
        if key != own or number != number:
            return False
        alone = SumByKey()
        alone.add(number, 1)
        return bool(self._some_of(alone, asked))

    def forget(self, before_us: int) -> None:
        """Forget all, once it ends before a time."""
        if self._newest_us < before_us:
            for each in (self._tied, self._nodes, self._firsts, self._lines, self._behind):
                each.clear()


def _is_placed(node: ChainNode) -> bool:
    """Return whether a match may have an element."""
    return (bool(node.asks) if node.step else node.begins) and (node.step > 1 or bool(node.gives))


def _is_single(node: ChainNode) -> bool:
    """Return whether an element has one place, and the middle one number, however it is read."""
    if len(node.asks) > 1 or len(node.gives) > 1:
        return False
    if node.step != 1:
        return True
    asked, given = node.asks[0][1], node.gives[0][1]
    return asked == given or asked != asked or given != given
