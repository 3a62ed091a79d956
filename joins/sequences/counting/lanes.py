"""Elements that one run may have, each with the elements that may come next.

A **lane** has the elements under one key, by end, and what runs begin with.  Steps lead from an
element to each that may come behind it; a run is a path that begins where it may and ends anywhere.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from joins.sequences.runparts import Part, PartRow

__all__ = ["Label", "LaneNode", "RunLane", "Start", "Steps", "reached", "steps_back", "steps_to"]


class Label(NamedTuple):
    """A place of a match: a block, its document, the visible nodes there, the root first."""

    block: int
    leaf: int
    nodes: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Start:
    """What runs begin with: a row of what stands before them, or their first element."""

    part: Part
    row: PartRow


@dataclass(slots=True, eq=False)
class LaneNode:
    """An element in a lane; `begins` are the starts behind which it may be the first.

    `ways` and `is_reached` are of the last time that ways were counted (`ways`), `label` what a
    match shows of it, once it has been asked.
    """

    part: Part
    before: list[LaneNode] = field(default_factory=list)
    behind: list[LaneNode] = field(default_factory=list)
    begins: list[Start] = field(default_factory=list)
    ways: int = 0
    is_reached: bool = False
    label: Label | None = None


Steps = dict[LaneNode, list[LaneNode]]
"""Elements, each with some that may come next; at an end there are none."""


@dataclass(slots=True, eq=False)
class RunLane:
    """Elements by end; `left` is what stands before them, where conditions speak of it."""

    left: Part | None = None
    nodes: list[LaneNode] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    _ends_us: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.starts) + sum(1 + len(node.before) for node in self.nodes)

    def add(self, part: Part, from_us: int, is_next: Callable[[Part, Part], bool]) -> LaneNode:
        """Add an element with its steps; those before it end at `from_us` or behind that."""
        node = LaneNode(part)
        first, low = (bisect_left(self._ends_us, each) for each in (from_us, part.start_us))
        node.before = [each for each in self.nodes[first:low] if is_next(each.part, part)]
        later = (each for each in self.nodes[low:] if each.part.start_us > part.end_us)
        node.behind = [each for each in later if is_next(part, each.part)]
        for each in node.before:
            each.behind.append(node)
        for each in node.behind:
            each.before.append(node)
        at = bisect_right(self._ends_us, part.end_us)
        self._ends_us.insert(at, part.end_us)
        self.nodes.insert(at, node)
        return node

    def behind(self, part: Part) -> Sequence[LaneNode]:
        """Return the elements that end behind another part."""
        return self.nodes[bisect_right(self._ends_us, part.end_us) :]

    def forget(self, before_us: int) -> bool:
        """Forget what ends before a time; return whether something is left."""
        gone = bisect_left(self._ends_us, before_us)
        for node in self.nodes[:gone]:
            for each in node.behind:
                each.before.remove(node)
        del self.nodes[:gone], self._ends_us[:gone]
        self.starts = [start for start in self.starts if start.part.end_us >= before_us]
        for node in self.nodes:
            node.begins = [start for start in node.begins if start.part.end_us >= before_us]
        if self.left is not None:
            return self.left.end_us >= before_us
        return bool(self.nodes or self.starts)


def reached(
    nodes: Iterable[LaneNode], behind: Callable[[LaneNode], Iterable[LaneNode]]
) -> set[LaneNode]:
    """Return some elements, and all that come behind them, directly or not."""
    found: set[LaneNode] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += behind(node)
    return found


def steps_to(end_us: int, some: set[LaneNode]) -> Steps:
    """Return the steps among some elements that lead to the ones that end at a time."""
    return _steps([n for n in some if n.part.end_us == end_us], lambda each: each in some)


def steps_back(last: Sequence[LaneNode], from_us: int) -> Steps:
    """Return the steps that lead to some elements, from a time on."""
    return _steps(last, lambda each: each.part.start_us >= from_us)


def _steps(last: Sequence[LaneNode], is_one: Callable[[LaneNode], bool]) -> Steps:
    steps: Steps = {node: [] for node in last}
    stack = list(last)
    while stack:
        node = stack.pop()
        for each in filter(is_one, node.before):
            if each not in steps:
                steps[each] = []
                stack.append(each)
            steps[each].append(node)
    return steps
