"""The match graph of a chain under MATCH ANY: elements at their steps, and what may stand behind.

An element is a **node** at each step that takes it.  An edge leads to a node of the same step, if
that is repeated, or of the next one, where all that is asked of the two holds.  Nodes stand in
lines, by end, under what they and those next to them must have in common.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import nan
from operator import attrgetter

from joins.sequences.absentunits import Key
from joins.sequences.chained.neighbours import Neighbours
from joins.sequences.counting.sums import SumByKey, asked_of
from joins.sequences.runparts import Part
from templates.chaindecision import ChainDecision
from templates.neighbours import InexactError

__all__ = ["ChainEdges", "ChainGraph", "ChainNode", "edges_from"]

_END = attrgetter("part.end_us")


@dataclass(slots=True, eq=False)
class ChainNode:
    """An element at a step; `begins` says that a match may begin with it.

    `same` are its keys, `serial` is its place in the order in which nodes came.  `is_in_time` says
    that it came no later than is allowed: it was remembered with all that is in its windows.  It is
    found at `places_before` by what comes behind it, and at the others by what stands before it.
    """

    part: Part
    step: int
    same: Key
    begins: bool
    serial: int
    is_in_time: bool
    ways: int = 0
    places_before: list[_Place] = field(default_factory=list)
    places_behind: list[_Place] = field(default_factory=list)


ChainEdges = dict[ChainNode, list[ChainNode]]
"""Nodes, each with some that may come next."""

_Place = tuple[int, bool, Key]
"""A step, whether what is looked for is a further element of it, and the values in common."""


@dataclass(slots=True)
class _Ways:
    """Nodes by end; `sums` are those of the ways to the first nodes, as far as they are known.

    `given` are the numbers of nodes that what comes behind them is compared with, NaN where nothing
    is; `by_number` are the ways to those from `first` on, before `last`, by these.
    """

    nodes: list[ChainNode] = field(default_factory=list)
    given: list[float] = field(default_factory=list)
    sums: list[int] = field(default_factory=lambda: [0])
    by_number: SumByKey = field(default_factory=SumByKey)
    first: int = 0
    last: int = 0

    def add(self, node: ChainNode, given: float = nan) -> None:
        """Add a node behind others that end when it does."""
        at = bisect_right(self.nodes, node.part.end_us, key=_END)
        self.nodes.insert(at, node)
        self.given.insert(at, given)
        self._forget_sums(at)

    def change(self, node: ChainNode) -> None:
        """Forget sums of ways that a node has a part in."""
        self._forget_sums(bisect_left(self.nodes, node.part.end_us, key=_END))

    def _forget_sums(self, at: int) -> None:
        del self.sums[at + 1 :]
        if at < self.last:
            self._begin_at(0)

    def _begin_at(self, first: int) -> None:
        self.by_number, self.first, self.last = SumByKey(), first, first

    def fitting(self, from_us: int, until_us: int) -> SumByKey:
        """Return the ways to the nodes that end from a time on, until another, by number."""
        first = bisect_left(self.nodes, from_us, key=_END)
        last = bisect_right(self.nodes, until_us, key=_END)
        if not self.first <= first <= self.last <= last:
            self._begin_at(first)
        for at in range(self.last, last):
            if self.nodes[at].ways and self.given[at] == self.given[at]:
                self.by_number.add(self.given[at], self.nodes[at].ways)
        for at in range(self.first, first):
            if self.nodes[at].ways and self.given[at] == self.given[at]:
                self.by_number.take(self.given[at], self.nodes[at].ways)
        self.first, self.last = first, max(first, last)
        return self.by_number

    def ways(self, from_us: int, until_us: int) -> int:
        """Return the ways to the nodes that end from a time on, until another."""
        first = bisect_left(self.nodes, from_us, key=_END)
        last = bisect_right(self.nodes, until_us, key=_END)
        sums = self.sums
        for node in self.nodes[len(sums) - 1 : last]:
            sums.append(sums[-1] + node.ways)
        return sums[last] - sums[first] if first < last else 0

    def forget(self, before_us: int) -> None:
        """Forget what ends before a time."""
        gone = bisect_left(self.nodes, before_us, key=_END)
        del self.nodes[:gone], self.given[:gone], self.sums[:gone]
        self.sums = self.sums or [0]
        if gone <= self.first:
            self.first, self.last = self.first - gone, self.last - gone
        else:
            self._begin_at(0)

    def between(self, from_us: int, until_us: int) -> list[ChainNode]:
        """Return the nodes that end from a time on, until another."""
        first = bisect_left(self.nodes, from_us, key=_END)
        return self.nodes[first : bisect_right(self.nodes, until_us, key=_END)]


class ChainGraph:
    """The nodes of one chain."""

    def __init__(self, decision: ChainDecision) -> None:
        self._links = decision.links
        count = len(decision.links)
        self._neighbours = [Neighbours(decision, number) for number in range(count)]
        assert all(each.is_all for each in self._neighbours), "more is asked than of neighbours"
        self._compared = [
            [each.compared(is_further=is_further) for is_further in (False, True)]
            for each in self._neighbours
        ]
        # What may stand before an element, and what may come behind one.
        self._before: dict[_Place, _Ways] = {}
        self._behind: dict[_Place, _Ways] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, node: ChainNode) -> None:
        """Add a node."""
        node.places_before = list(self._places_before(node))
        node.places_behind = list(self._places_behind(node))
        for place in node.places_before:
            given = self._number(place, node, is_given=True)
            self._before.setdefault(place, _Ways()).add(node, given)
            self._size += 1
        for place in node.places_behind:
            self._behind.setdefault(place, _Ways()).add(node)
            self._size += 1

    def _number(self, place: _Place, node: ChainNode, *, is_given: bool) -> float:
        """Return what is compared of a node at a place, NaN where nothing is.

        From the first one on of which no one number stands for it, nodes are compared one by one.
        """
        step, is_further, _ = place
        compared = self._compared[step][is_further]
        if compared is None:
            return nan
        reading = self._neighbours[step].alone(node.part)
        try:
            return compared.given(reading) if is_given else compared.asked(reading)
        except InexactError:
            self._compared[step][is_further] = None
            return nan

    def _places_before(self, node: ChainNode) -> Iterator[_Place]:
        """Yield where a node is found by what comes behind it."""
        if self._links[node.step].is_repeated:
            yield node.step, True, node.same
        if node.step + 1 < len(self._links):
            neighbours = self._neighbours[node.step + 1]
            for key in neighbours.keys_of_one(node.part, is_further=False):
                yield node.step + 1, False, (*node.same, *key)

    def _places_behind(self, node: ChainNode) -> Iterator[_Place]:
        """Yield where a node is found by what stands before it."""
        if self._links[node.step].is_repeated:
            yield node.step, True, node.same
        if node.step:
            neighbours = self._neighbours[node.step]
            for key in neighbours.keys_of_other(node.part, is_further=False):
                yield node.step, False, (*node.same, *key)

    def before(self, node: ChainNode) -> list[ChainNode]:
        """Return the nodes that may stand before one, each once."""
        return list(self._standing_before(node, node.places_behind))

    def _standing_before(self, node: ChainNode, places: Iterable[_Place]) -> dict[ChainNode, None]:
        part, found = node.part, dict[ChainNode, None]()
        for place in places:
            line = self._before.get(place)
            if line is None:
                continue
            step, is_further, _ = place
            neighbours = self._neighbours[step]
            from_us = part.end_us - neighbours.longest_us(is_further=is_further)
            for each in line.between(from_us, part.start_us - 1):
                if neighbours.may_follow(each.part, part, is_further=is_further):
                    found[each] = None
        return found

    def behind(self, node: ChainNode) -> list[ChainNode]:
        """Return the nodes that may come behind one, each once."""
        part, found = node.part, dict[ChainNode, None]()
        for place in node.places_before:
            line = self._behind.get(place)
            if line is None:
                continue
            step, is_further, _ = place
            neighbours = self._neighbours[step]
            until_us = part.end_us + neighbours.longest_us(is_further=is_further)
            for each in line.between(part.end_us + 1, until_us):
                if each.part.start_us > part.end_us and neighbours.may_follow(
                    part, each.part, is_further=is_further
                ):
                    found[each] = None
        return list(found)

    def ways_to(self, node: ChainNode) -> int:
        """Return how many ways lead to a node, of the ways to those that may stand before it."""
        part, total = node.part, int(node.begins)
        places = node.places_behind.copy()
        for is_further in (False, True):
            own = [each for each in places if each[1] is is_further]
            neighbours = self._neighbours[node.step]
            if len(own) != 1:
                continue
            [place] = own
            asked = self._number(place, node, is_given=False)
            compared = self._compared[node.step][is_further]
            if compared is None and not neighbours.is_looked_up(is_further=is_further):
                continue
            places.remove(place)
            line = self._before.get(place)
            if line is None or not neighbours.takes(part, is_further=is_further):
                continue
            from_us = part.end_us - neighbours.longest_us(is_further=is_further)
            if compared is None:
                total += line.ways(from_us, part.start_us - 1)
            elif asked == asked:
                sums = line.fitting(from_us, part.start_us - 1)
                total += asked_of(compared.operator, of_next=True)(sums, asked)
        return total + sum([each.ways for each in self._standing_before(node, places)])

    @property
    def is_of_one_key(self) -> bool:
        """Whether what elements must have in common is all that is asked, of all or of none.

        Elements of a repetition have nothing in common that SAME does not say.
        """
        first = [each.is_looked_up(is_further=False) for each in self._neighbours[1:]]
        are_repeated = [link.is_repeated for link in self._links]
        further = [
            each.is_looked_up(is_further=True)
            for each, is_repeated in zip(self._neighbours, are_repeated, strict=True)
            if is_repeated
        ]
        have_keys = [each.has_keys for each in self._neighbours[1:]]
        is_one = not any(have_keys) or (all(have_keys) and not any(are_repeated))
        return is_one and all(first) and all(further)

    def takes(self, node: ChainNode) -> bool | None:
        """Return whether matches may have an element; None if it depends on what is before it."""
        neighbours = self._neighbours[node.step]
        is_first = node.begins
        if node.step:
            is_first = neighbours.takes(node.part, is_further=False)
        if not self._links[node.step].is_repeated:
            return is_first
        is_further = neighbours.takes(node.part, is_further=True)
        return is_first if is_first == is_further else None

    def keys_of(self, node: ChainNode) -> list[list[Key]]:
        """Return the values that a node must have one of in common with its neighbours.

        They are those with what stands before it, and with what comes behind it, where these are;
        those of SAME are among them.
        """
        before = [key for _, is_further, key in node.places_behind if not is_further]
        behind = [key for _, is_further, key in node.places_before if not is_further]
        is_last = node.step + 1 == len(self._links)
        return [*([before] if node.step else []), *([] if is_last else [behind])]

    def change(self, node: ChainNode) -> None:
        """Note that there are more ways to a node."""
        for place in node.places_before:
            self._before[place].change(node)

    def forget(self, before_us: int) -> None:
        """Forget what ends before a time."""
        for lines in (self._before, self._behind):
            for place, line in list(lines.items()):
                line.forget(before_us)
                if not line.nodes:
                    del lines[place]
        lines_of_all = (*self._before.values(), *self._behind.values())
        self._size = sum(len(line.nodes) for line in lines_of_all)


def edges_from(
    nodes: Iterable[ChainNode], nexts: Callable[[ChainNode], Iterable[ChainNode]]
) -> ChainEdges:
    """Return some nodes, and all that come next, directly or not, each with those next to it."""
    found: ChainEdges = {}
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = list(nexts(node))
            stack += found[node]
    return found
