"""The match graph of a chain under MATCH ANY: elements at their steps, and what may stand behind.

An element is a **node** at each step that takes it.  An edge leads to a node of the same step, if
that is repeated, or of the next one, where all that is asked of the two holds.  Nodes stand in
lines, by end, under what they and those next to them must have in common.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from joins.sequences.absentunits import Key
from joins.sequences.chained.neighbours import Neighbours
from joins.sequences.counting.rowelements import RowElements
from joins.sequences.runparts import Part

__all__ = ["AtPlace", "ChainEdges", "ChainGraph", "ChainNode", "Place", "edges_from"]

_END = attrgetter("end_us")

Place = tuple[int, bool, Key]
"""A step, whether what is looked for is a further element of it, and the values in common."""

AtPlace = tuple[Place, float]
"""A place, and the number that is compared there; NaN where none is."""


@dataclass(slots=True, eq=False)
class ChainNode:
    """An element at a step; `begins` says that a match may begin with it.

    `tuple_of` is what it is in the join: a tuple, or a row of columns that is one once it is asked.
    `same` are its keys, `serial` is its place in the order in which nodes came.  `is_in_time` says
    that it came no later than is allowed: it was remembered with all that is in its windows.  It
    `asks` for what stands before it at some places, and `gives` itself to what comes behind it.
    """

    tuple_of: Part | tuple[RowElements, int]
    end_us: int
    step: int
    same: Key
    begins: bool
    is_in_time: bool
    asks: Sequence[AtPlace]
    gives: Sequence[AtPlace]
    serial: int = 0
    ways: int = 0

    @property
    def part(self) -> Part:
        """What it is in the join."""
        own = self.tuple_of
        if isinstance(own, tuple):
            columns, row = own
            own = self.tuple_of = columns.part(row)
        return own


ChainEdges = dict[ChainNode, list[ChainNode]]
"""Nodes, each with some that may come next."""


class ChainGraph:
    """The nodes of one chain; in lines they are put once somebody asks what is next to one."""

    def __init__(self, neighbours: Sequence[Neighbours]) -> None:
        self._neighbours = neighbours
        # What may stand before an element, and what may come behind one.
        self._before: dict[Place, list[ChainNode]] = {}
        self._behind: dict[Place, list[ChainNode]] = {}
        self._nodes: list[ChainNode] = []
        self._placed = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, nodes: Sequence[ChainNode]) -> None:
        """Add nodes."""
        self._nodes += nodes

    def _put_in_lines(self) -> None:
        for node in self._nodes[self._placed :]:
            for lines, places in ((self._before, node.gives), (self._behind, node.asks)):
                for place, _ in places:
                    insort(lines.setdefault(place, []), node, key=_END)
        self._placed = len(self._nodes)

    def before(self, node: ChainNode, places: Iterable[AtPlace] | None = None) -> list[ChainNode]:
        """Return the nodes that may stand before one, each once, or those at some places."""
        self._put_in_lines()
        part, found = node.part, dict[ChainNode, None]()
        for place, _ in node.asks if places is None else places:
            step, is_further, _ = place
            neighbours = self._neighbours[step]
            from_us = part.end_us - neighbours.longest_us(is_further=is_further)
            for each in _between(self._before.get(place, ()), from_us, part.start_us - 1):
                if neighbours.may_follow(each.part, part, is_further=is_further):
                    found[each] = None
        return list(found)

    def behind(self, node: ChainNode) -> list[ChainNode]:
        """Return the nodes that may come behind one, each once."""
        self._put_in_lines()
        part, found = node.part, dict[ChainNode, None]()
        for place, _ in node.gives:
            step, is_further, _ = place
            neighbours = self._neighbours[step]
            until_us = part.end_us + neighbours.longest_us(is_further=is_further)
            for each in _between(self._behind.get(place, ()), part.end_us + 1, until_us):
                if each.part.start_us > part.end_us and neighbours.may_follow(
                    part, each.part, is_further=is_further
                ):
                    found[each] = None
        return list(found)

    def forget(self, before_us: int) -> None:
        """Forget what ends before a time."""
        placed, coming = self._nodes[: self._placed], self._nodes[self._placed :]
        placed = [node for node in placed if node.end_us >= before_us]
        self._placed = len(placed)
        self._nodes = placed + [node for node in coming if node.end_us >= before_us]
        for lines in (self._before, self._behind):
            for place, line in list(lines.items()):
                del line[: bisect_left(line, before_us, key=_END)]
                if not line:
                    del lines[place]


def _between(line: Sequence[ChainNode], from_us: int, until_us: int) -> Sequence[ChainNode]:
    """Return the nodes that end from a time on, until another."""
    first = bisect_left(line, from_us, key=_END)
    return line[first : bisect_right(line, until_us, key=_END)]


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
