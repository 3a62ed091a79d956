"""How many matches of a chain end with an element, without drawing one.

Each is a number for every element, or for every step.

    by elements   the ways to an element are the sum of those to all that may stand before it.  That
                  is all where nothing is asked of a match as a whole
    by steps      where elements that have a key in common may all stand behind each other within a
                  time, what was there says how many ways go from each step to each other one.  An
                  element that comes adds to these, and the oldest one is taken away again
    apart         what an element breaks of this is apart: as long as a match can have it, matches
                  are drawn (`chainpaths`)

Elements that end behind all others, or with them, are taken many at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Protocol

from joins.memory.durations import UNBOUNDED
from joins.sequences.absentunits import Key
from joins.sequences.counting.chaingraph import (
    ChainGraph,
    ChainNode,
    Place,
    edges_from,
)
from joins.sequences.counting.chainreading import NodeReading
from joins.sequences.counting.chainsums import PlaceSums, RunSums, StepWindow
from joins.sequences.counting.chaintriples import WaysOfThree
from templates.chaindecision import ChainDecision

__all__ = ["ChainWays", "chain_ways"]

Ends = list[tuple[int, int]]
"""Times at which matches end that an element completes, each with how many they are."""


class ChainWays(Protocol):
    """Counts the matches of one chain."""

    def enter(self, nodes: Sequence[ChainNode]) -> Ends | None:
        """Take elements with one label, which are in the graph; None where they are drawn."""

    def enter_in_order(self, nodes: Sequence[ChainNode]) -> list[int] | None:
        """Take elements in order that end last, each a label by itself; return the ways to each.

        Those to an element that is not of the last step are 0.  None says that they have to be
        taken one by one, and changes nothing.
        """

    def forget(self, before_us: int) -> None:
        """Forget what ends before a time."""


def chain_ways(
    decision: ChainDecision, reading: NodeReading, graph: ChainGraph
) -> ChainWays | None:
    """Return what counts the matches of a chain, None where all of them are drawn."""
    counting, links = decision.counting, decision.links
    assert counting is not None
    if counting.has_steps:
        return None
    within_us = decision.within_us
    windows = [link.window_us for link in links[1:]]
    windows += [link.gap_us for link in links if link.is_repeated]
    if within_us < UNBOUNDED and min(windows, default=UNBOUNDED) >= within_us:
        of_three = WaysOfThree.of(decision, reading)
        if reading.is_of_one_key and (of_three is None or reading.has_one_term_each):
            return WaysBySteps(decision)
        if len(links) == 2 and not any(link.is_repeated for link in links):
            # Two elements are next to each other: WITHIN is a window of theirs.
            return WaysByElements(decision, reading, graph, within_us)
        return of_three
    # What bounds a match as a whole, or all of a repetition from what stands before it.
    reach_us = UNBOUNDED if links[0].is_repeated else sum(link.window_us for link in links[1:])
    is_bounded = within_us < min(reach_us, UNBOUNDED)
    bounded = {
        step
        for step, link in enumerate(links)
        if step and link.is_repeated and link.window_us < UNBOUNDED
    }
    if is_bounded or not all(map(reading.takes_any, bounded)):
        return None
    return WaysByElements(decision, reading, graph, reach_us, bounded)


class WaysByElements:
    """A number for each element: how many ways lead to it.

    `bounded` are the steps of repetitions with a window before them.
    """

    def __init__(
        self,
        decision: ChainDecision,
        reading: NodeReading,
        graph: ChainGraph,
        reach_us: int,
        bounded: Collection[int] = (),
    ) -> None:
        self._reading = reading
        self._graph = graph
        self._last = len(decision.links) - 1
        self._reach_us = reach_us
        self._apart_us = self._newest_us = -UNBOUNDED
        # The ways to what may stand before an element.
        self._sums: dict[Place, PlaceSums] = {}
        self._runs: dict[tuple[int, Key], RunSums] = {}
        self._windows_us = {step: decision.links[step].window_us for step in bounded}

    def enter(self, nodes: Sequence[ChainNode]) -> Ends | None:
        """Take elements with one label; a late one changes the ways to all that come behind it."""
        found: Ends = []
        end_us = nodes[0].end_us
        is_apart = len(nodes) > 1 or not nodes[0].is_in_time
        if self._windows_us:
            # What has a window before it is no sum of single elements, to which one could be added.
            is_apart |= end_us < self._newest_us or nodes[0].part.start_us < end_us
        if is_apart:
            self._apart_us = max(self._apart_us, end_us + self._reach_us)
        for node in [] if is_apart and self._windows_us else nodes:
            node.ways = self._ways_to(node)
            self._add(node)
            if not node.ways:
                continue
            if node.step == self._last:
                found.append((end_us, node.ways))
            if end_us < self._newest_us:
                found += self._spread(node)
        self._newest_us = max(self._newest_us, end_us)
        return None if end_us <= self._apart_us else _added_up(found)

    def enter_in_order(self, nodes: Sequence[ChainNode]) -> list[int] | None:
        """Take elements that end last: of each a sum is asked, and each is added to some."""
        if nodes[0].end_us <= max(self._apart_us, self._newest_us - 1):
            return None
        sums, last, bounded = self._sums, self._last, self._windows_us
        found: list[int] = []
        for node in nodes:
            ways, end_us = int(node.begins), node.end_us
            if bounded and node.step in bounded:
                ways = self._ways_to_run(node)
            else:
                for place, asked in node.asks:
                    own = sums.get(place)
                    if own is not None:
                        ways += own.ways_to(end_us, end_us, asked)
            node.ways = ways
            self._add(node)
            found.append(ways if node.step == last else 0)
        self._newest_us = nodes[-1].end_us
        return found

    def _ways_to(self, node: ChainNode) -> int:
        """Return how many ways lead to a node, of the ways to those that may stand before it."""
        if node.step in self._windows_us:
            return self._ways_to_run(node)
        total, rest = int(node.begins), [*node.asks]
        for is_further in (False, True):
            own = [each for each in node.asks if each[0][1] is is_further]
            # What has several values in common with another one may follow it once.
            if len(own) != 1 or not self._reading.is_summed(own[0][0]):
                continue
            [(place, asked)] = own
            rest.remove(own[0])
            if place in self._sums:
                start_us = node.part.start_us
                total += self._sums[place].ways_to(node.end_us, start_us, asked)
        return total + sum([each.ways for each in self._graph.before(node, rest)] if rest else [])

    def _ways_to_run(self, node: ChainNode) -> int:
        """Return how many ways lead to an element of a repetition with a window before it."""
        return self._run(node.step, node.same).ways_to(node.end_us) if node.asks else 0

    def _add_to_run(self, node: ChainNode, place: Place) -> None:
        """Add a node to what a repetition with a window before it is counted by."""
        step, is_further, _ = place
        run = self._run(step, node.same)
        if not is_further:
            run.add_left(node.end_us, node.ways)
        elif node.asks:
            run.add_element(node.end_us)

    def _run(self, step: int, same: Key) -> RunSums:
        run = self._runs.get((step, same))
        if run is None:
            run = self._runs[step, same] = RunSums(self._windows_us[step])
        return run

    def _add(self, node: ChainNode) -> None:
        sums, bounded = self._sums, self._windows_us
        for place, given in node.gives:
            if bounded and place[0] in bounded:
                self._add_to_run(node, place)
                continue
            own = sums.get(place)
            if own is None:
                own = sums[place] = self._sums_at(place)
            own.add(node, given)

    def _sums_at(self, place: Place) -> PlaceSums:
        step, is_further, _ = place
        compared = self._reading.compared_at(step, is_further=is_further)
        longest_us = self._reading.neighbours[step].longest_us(is_further=is_further)
        return PlaceSums(longest_us, None if compared is None else compared.operator)

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
                for place, _ in node.gives:
                    self._sums[place].change(node)
                if node.step == self._last:
                    found.append((node.end_us, more[node]))
        return found

    def forget(self, before_us: int) -> None:
        """Forget what ends before a time."""
        for place, own in list(self._sums.items()):
            if not own.forget(before_us):
                del self._sums[place]
        self._runs = {key: each for key, each in self._runs.items() if each.last_us >= before_us}


_END = attrgetter("end_us")


def _added_up(found: Ends) -> Ends:
    ends: dict[int, int] = {}
    for end_us, ways in found:
        ends[end_us] = ends.get(end_us, 0) + ways
    return sorted(ends.items())


class WaysBySteps:
    """Numbers for each two steps: how many ways lead from one to the other."""

    def __init__(self, decision: ChainDecision) -> None:
        self._are_repeated = [link.is_repeated for link in decision.links]
        self._last = len(decision.links) - 1
        self._within_us = decision.within_us
        self._apart_us = self._newest_us = -UNBOUNDED
        self._windows: dict[Key, StepWindow] = {}

    def _key_of(self, node: ChainNode) -> tuple[bool, Key | None]:
        """Return whether matches may have an element, and the key of its window.

        It has none where what may stand next to it is a matter of more than a key.
        """
        step = node.step
        before = [key for (_, is_further, key), _ in node.asks if not is_further]
        behind = [key for (_, is_further, key), _ in node.gives if not is_further]
        is_first = bool(before) if step else node.begins
        if self._are_repeated[step] and is_first != (len(node.asks) > len(before)):
            return True, None
        if not is_first or (step < self._last and not behind):
            return False, None
        keys = [*before, *behind]
        is_one = len(keys) == (step > 0) + (step < self._last) and keys[0] == keys[-1]
        return True, keys[0] if is_one else None

    def enter(self, nodes: Sequence[ChainNode]) -> Ends | None:
        """Take elements with one label; what is late stands in the window, and is drawn."""
        end_us, is_late = nodes[0].end_us, False
        if len(nodes) > 1 or not nodes[0].is_in_time or nodes[0].part.start_us < end_us:
            self._apart_us = max(self._apart_us, end_us + self._within_us)
        found: Ends = []
        for node in nodes:
            is_placed, key = self._key_of(node)
            if not is_placed:
                continue
            if key is None:
                self._apart_us = max(self._apart_us, end_us + self._within_us)
                continue
            window = self._window(key)
            if end_us < window.last_us:
                is_late = True
                if end_us >= window.last_us - self._within_us:
                    window.insert(end_us, node.step)
                continue
            total = window.add(end_us, node.step)
            if total and node.step == self._last:
                found.append((end_us, total))
        self._newest_us = max(self._newest_us, end_us)
        return None if is_late or end_us <= self._apart_us else _added_up(found)

    def enter_in_order(self, nodes: Sequence[ChainNode]) -> list[int] | None:
        """Take elements that end last: each adds to the ways between steps, under its key."""
        if nodes[0].end_us <= max(self._apart_us, self._newest_us - 1):
            return None
        keys = [*map(self._key_of, nodes)]
        if any(is_placed and key is None for is_placed, key in keys):
            return None
        found = [0] * len(nodes)
        for at, (node, (_, key)) in enumerate(zip(nodes, keys, strict=True)):
            if key is not None:
                total = self._window(key).add(node.end_us, node.step)
                if node.step == self._last:
                    found[at] = total
        self._newest_us = nodes[-1].end_us
        return found

    def _window(self, key: Key) -> StepWindow:
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = StepWindow(self._are_repeated, self._within_us)
        return window

    def forget(self, before_us: int) -> None:
        """Forget windows in which all ends before a time."""
        self._windows = {
            key: window for key, window in self._windows.items() if window.last_us >= before_us
        }
