"""How many matches of a chain end with an element, without drawing one.

Each is a number for every element, or for every step.

    by elements   the ways to an element are the sum of those to all that may stand before it.  That
                  is all where nothing is asked of a match as a whole
    by steps      where elements that have a key in common may all stand behind each other within a
                  time, what was there says how many ways go from each step to each other one.  An
                  element that comes adds to these, and the oldest one is taken away again
    apart         what an element breaks of this is apart: as long as a match can have it, matches
                  are drawn (`chainpaths`)
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Protocol

from joins.memory.durations import UNBOUNDED
from joins.sequences.absentunits import Key
from joins.sequences.counting.chaingraph import ChainGraph, ChainNode, edges_from
from templates.chaindecision import ChainDecision

__all__ = ["ChainWays", "chain_ways"]

Ends = list[tuple[int, int]]
"""Times at which matches end that an element completes, each with how many they are."""


class ChainWays(Protocol):
    """Counts the matches of one chain."""

    def enter(self, nodes: Sequence[ChainNode]) -> Ends | None:
        """Take elements with one label, which are in the graph; None where they are drawn."""

    def forget(self, before_us: int) -> None:
        """Forget what ends before a time."""


def chain_ways(decision: ChainDecision, graph: ChainGraph) -> ChainWays | None:
    """Return what counts the matches of a chain, None where all of them are drawn."""
    counting, links = decision.counting, decision.links
    assert counting is not None
    if counting.has_steps or counting.keys:
        return None
    within_us = decision.within_us
    windows = [link.window_us for link in links[1:]]
    windows += [link.gap_us for link in links if link.is_repeated]
    if within_us < UNBOUNDED and min(windows, default=UNBOUNDED) >= within_us:
        return WaysBySteps(decision, graph) if graph.is_of_one_key else None
    # What bounds a match as a whole, or all of a repetition from what stands before it.
    reach_us = UNBOUNDED if links[0].is_repeated else sum(link.window_us for link in links[1:])
    is_bounded = within_us < min(reach_us, UNBOUNDED)
    has_bound = any(link.is_repeated and link.window_us < UNBOUNDED for link in links[1:])
    return None if is_bounded or has_bound else WaysByElements(decision, graph, reach_us)


class WaysByElements:
    """A number for each element: how many ways lead to it."""

    def __init__(self, decision: ChainDecision, graph: ChainGraph, reach_us: int) -> None:
        self._graph = graph
        self._last = len(decision.links) - 1
        self._reach_us = reach_us
        self._apart_us = self._newest_us = -UNBOUNDED

    def enter(self, nodes: Sequence[ChainNode]) -> Ends | None:
        """Take elements with one label; a late one changes the ways to all that come behind it."""
        found: Ends = []
        end_us = nodes[0].part.end_us
        if len(nodes) > 1 or not nodes[0].is_in_time:
            self._apart_us = max(self._apart_us, end_us + self._reach_us)
        for node in nodes:
            node.ways = self._graph.ways_to(node)
            self._graph.change(node)
            if not node.ways:
                continue
            if node.step == self._last:
                found.append((end_us, node.ways))
            if end_us < self._newest_us:
                found += self._spread(node)
        self._newest_us = max(self._newest_us, end_us)
        return None if end_us <= self._apart_us else _added_up(found)

    def _spread(self, late: ChainNode) -> Ends:
        """Add the ways through a late element to all behind it; return those that end there."""
        found: Ends = []
        edges = edges_from([late], self._graph.behind)
        more = dict.fromkeys(edges, 0)
        more[late] = late.ways
        for node in sorted(edges, key=_END):
            for each in edges[node]:
                more[each] += more[node]
            if node is not late:
                node.ways += more[node]
                self._graph.change(node)
                if node.step == self._last:
                    found.append((node.part.end_us, more[node]))
        return found

    def forget(self, before_us: int) -> None:
        """Forget nothing: the graph has the elements."""


_END = attrgetter("part.end_us")


def _added_up(found: Ends) -> Ends:
    ends: dict[int, int] = {}
    for end_us, ways in found:
        ends[end_us] = ends.get(end_us, 0) + ways
    return sorted(ends.items())


@dataclass(slots=True, order=True)
class _Tied:
    """How many elements of each step end at one time."""

    end_us: int
    counts: list[int] = field(compare=False)


class _Window:
    """The elements under one key within a time, but for the last ones that end together.

    `ways` are those from each step to each other one: `ways[i][j]` is how many choices there are of
    elements of the steps from `i` to `j` that stand behind each other.
    """

    def __init__(self, are_repeated: Sequence[bool]) -> None:
        self._are_repeated = are_repeated
        size = len(are_repeated)
        self._steps = range(size)
        self.ways = [[0] * size for _ in are_repeated]
        self.tied: deque[_Tied] = deque()
        self.last = _Tied(-UNBOUNDED, [0] * size)

    def pass_to(self, end_us: int, from_us: int) -> None:
        """Have time pass to the next elements, and forget what ends before `from_us`."""
        if end_us > self.last.end_us:
            if any(self.last.counts):
                self._add(self.last.counts)
                self.tied.append(self.last)
            self.last = _Tied(end_us, [0] * len(self._are_repeated))
        while self.tied and self.tied[0].end_us < from_us:
            self._take(self.tied.popleft().counts)

    def insert(self, end_us: int, step: int) -> None:
        """Add an element that ended before the last ones."""
        at = next((each for each in self.tied if each.end_us == end_us), None)
        if at is None:
            at = _Tied(end_us, [0] * len(self._are_repeated))
            tied = list(self.tied)
            insort(tied, at)
            self.tied = deque(tied)
        at.counts[step] += 1
        self.ways = [[0] * len(self._are_repeated) for _ in self._are_repeated]
        for each in self.tied:
            self._add(each.counts)

    def to_first(self, step: int) -> int:
        """Return the ways from the first step to what stands before an element of a step."""
        own = self.ways[0]
        further = own[step] if self._are_repeated[step] else 0
        return further + (own[step - 1] if step else 1)

    def _add(self, counts: Sequence[int]) -> None:
        """Add elements that end behind all others."""
        for own in self._rows():
            first, ways = own
            added = [
                count
                * (
                    (step == first)
                    + (ways[step - 1] if step > first else 0)
                    + (ways[step] if self._are_repeated[step] else 0)
                )
                if count and step >= first
                else 0
                for step, count in enumerate(counts)
            ]
            self.ways[first] = [old + more for old, more in zip(ways, added, strict=True)]

    def _rows(self) -> list[tuple[int, list[int]]]:
        return list(enumerate(self.ways))

    def _take(self, counts: Sequence[int]) -> None:
        """Take elements away that end before all others: all ways that begin with one of them."""
        size = len(counts)
        for first in reversed(self._steps):
            count = counts[first]
            if not count:
                continue
            own, behind = self.ways[first], self.ways[first + 1] if first + 1 < size else None
            share = 1 + count * self._are_repeated[first]
            for last in range(first, size):
                further = 0 if behind is None else behind[last]
                own[last] = (own[last] - count * ((first == last) + further)) // share


class WaysBySteps:
    """Numbers for each two steps: how many ways lead from one to the other."""

    def __init__(self, decision: ChainDecision, graph: ChainGraph) -> None:
        self._graph = graph
        self._are_repeated = [link.is_repeated for link in decision.links]
        self._last = len(decision.links) - 1
        self._within_us = decision.within_us
        self._apart_us = -UNBOUNDED
        self._windows: dict[Key, _Window] = {}

    def enter(self, nodes: Sequence[ChainNode]) -> Ends | None:
        """Take elements with one label; what is late stands in the window, and is drawn."""
        end_us, is_late = nodes[0].part.end_us, False
        if len(nodes) > 1 or not nodes[0].is_in_time or nodes[0].part.start_us < end_us:
            self._apart_us = max(self._apart_us, end_us + self._within_us)
        found: Ends = []
        for node in nodes:
            is_taken, keys = self._graph.takes(node), self._graph.keys_of(node)
            if is_taken is False or not all(keys):
                continue
            if is_taken is None or any(each != keys[0] or len(each) > 1 for each in keys):
                self._apart_us = max(self._apart_us, end_us + self._within_us)
                continue
            key = keys[0][0]
            window = self._windows.get(key)
            if window is None:
                window = self._windows[key] = _Window(self._are_repeated)
            if end_us < window.last.end_us:
                is_late = True
                if end_us >= window.last.end_us - self._within_us:
                    window.insert(end_us, node.step)
                continue
            window.pass_to(end_us, end_us - self._within_us)
            window.last.counts[node.step] += 1
            total = window.to_first(node.step) if node.step == self._last else 0
            if total:
                found.append((end_us, total))
        return None if is_late or end_us <= self._apart_us else _added_up(found)

    def forget(self, before_us: int) -> None:
        """Forget windows in which all ends before a time."""
        self._windows = {
            key: window for key, window in self._windows.items() if window.last.end_us >= before_us
        }
