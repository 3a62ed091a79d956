"""The match graph: all runs of elements any of which may be left out, without listing them.

Where what is asked of an element speaks of itself, of the element before it, and of what stands
before the run, the runs that begin alike are the paths of a graph: its nodes are elements, and an
edge leads to each element that may come next.  A graph has an **anchor**: the tuple that stands
before, or the first element where nothing does; so windows from there are asked of single nodes.

    ways     how many paths lead to a node: counted, not listed
    new      with a part that comes, as many runs as the ways to it times the ways on from it
    listed   backward and forward from the part, among the nodes that were there when it came:
             each step of a listing is on a path, so listing is linear in what is listed
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from joins.sequences.runparts import Part

__all__ = ["Grown", "RunGraph", "RunNode"]


@dataclass(slots=True, eq=False)
class RunNode:
    """An element in a graph; `begins` says that a run may begin with it.

    `ways` is the number of paths to it, `longest` the number of elements of the longest.
    """

    part: Part
    serial: int
    begins: bool
    before: list[RunNode] = field(default_factory=list)
    behind: list[RunNode] = field(default_factory=list)
    ways: int = 0
    longest: int = 0


class RunGraph:
    """The graph of the runs behind one tuple, or of those with one first element.

    `is_next` tells whether an element may come behind another.
    """

    def __init__(self, is_next: Callable[[Part, Part], bool]) -> None:
        self._is_next = is_next
        self._ends_us: list[int] = []
        self._nodes: list[RunNode] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, part: Part, serial: int, *, begins: bool) -> RunNode:
        """Add an element with its edges, and count the ways to it and to all behind it."""
        node = RunNode(part, serial, begins)
        low = bisect_left(self._ends_us, part.start_us)
        node.before = [each for each in self._nodes[:low] if self._is_next(each.part, part)]
        later = [each for each in self._nodes[low:] if each.part.start_us > part.end_us]
        node.behind = [each for each in later if self._is_next(part, each.part)]
        for each in node.before:
            each.behind.append(node)
        for each in node.behind:
            each.before.append(node)
        at = bisect_left(self._ends_us, part.end_us + 1)
        self._ends_us.insert(at, part.end_us)
        self._nodes.insert(at, node)
        _count(node)
        if node.behind:
            for each in self._nodes[at + 1 :]:
                _count(each)
        return node


def _count(node: RunNode) -> None:
    node.ways = node.begins + sum(each.ways for each in node.before)
    node.longest = 1 + max((each.longest for each in node.before), default=0)


@dataclass(frozen=True, slots=True)
class Grown:
    """An element that came to a graph: the runs that it is the newest part of."""

    node: RunNode

    def count(self) -> int:
        """Return how many runs there are, without listing them."""
        return self.node.ways * self._onward(self.node, {})

    def _onward(self, node: RunNode, known: dict[int, int]) -> int:
        """Return in how many ways a path may go on from a node, or end there."""
        order: list[RunNode] = []
        stack = [node]
        seen = {id(node)}
        while stack:
            each = stack.pop()
            order.append(each)
            for further in each.behind:
                if id(further) not in seen and further.serial < self.node.serial:
                    seen.add(id(further))
                    stack.append(further)
        for each in sorted(order, key=lambda n: -n.part.end_us):
            known[id(each)] = 1 + sum(known.get(id(further), 0) for further in each.behind)
        return known[id(node)]

    def runs(self) -> Iterator[tuple[Part, ...]]:
        """Yield the elements of each run."""
        onward = list(self._paths(self.node, is_back=False))
        for before in self._paths(self.node, is_back=True):
            for behind in onward:
                yield (*before[::-1], *behind[1:])

    def _paths(self, node: RunNode, *, is_back: bool) -> Iterator[tuple[Part, ...]]:
        """Yield the paths from a node, back to where a run begins, or on."""
        stack: list[tuple[RunNode, tuple[Part, ...]]] = [(node, (node.part,))]
        while stack:
            each, path = stack.pop()
            if each.begins or not is_back:
                yield path
            for further in each.before if is_back else each.behind:
                if further.serial < self.node.serial and (further.ways or not is_back):
                    stack.append((further, (*path, further.part)))
