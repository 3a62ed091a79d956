"""The ways to an element that came last, counted over its lane without drawing a step of them.

Where each place of a match is one element, the matches that end with it are the paths to it.  So
the numbers of ways on to the end are added up backward, element by element, and a second pass from
the beginnings says which elements are on a path at all: a row names their documents.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from joins.sequences.counting.lanes import LaneNode, RunLane

__all__ = ["WaysBack", "ways_back"]

_END = attrgetter("part.end_us")


class WaysBack(NamedTuple):
    """The number of paths to an element, and the elements on them by end; `begun` begin one."""

    total: int
    nodes: Sequence[LaneNode]
    begun: Sequence[LaneNode]

    def longest(self) -> int:
        """Return how many elements the longest path has."""
        longest: dict[LaneNode, int] = {}
        for node in self.nodes:
            longest[node] = 1 + max((longest.get(each, 0) for each in node.before), default=0)
        return max(longest.values(), default=0)


def ways_back(lane: RunLane, last: LaneNode, from_us: int) -> WaysBack:
    """Return the paths to an element with nothing behind it, of elements from a time on.

    A path begins with any element that begins a run.
    """
    first = bisect_left(lane.nodes, from_us, key=_END)
    some = [node for node in lane.nodes[first:] if node.part.start_us >= from_us]
    for node in some:
        node.ways = 0
    last.ways = 1
    count = 0
    leading: list[LaneNode] = []
    for node in reversed(some):
        ways = node.ways
        if ways:
            leading.append(node)
            if node.begins:
                count += ways
            for each in node.before:
                each.ways += ways
    nodes: list[LaneNode] = []
    begun: list[LaneNode] = []
    for node in some:
        node.is_reached = False
    for node in reversed(leading):
        if node.begins:
            begun.append(node)
            node.is_reached = True
        else:
            node.is_reached = any(
                each.is_reached for each in node.before if each.part.start_us >= from_us
            )
        if node.is_reached:
            nodes.append(node)
    return WaysBack(count, nodes, begun)
