"""Runs behind FOLLOWED BY that are counted in graphs before they are listed.

It is for conditions that speak of an element, of the one before it and of what stands before the
run (`speaks_of_neighbours`); any other repetition is found run by run (`joins.sequences.runs`).
What comes is taken in the order of documents.  A document that makes too many runs makes none: its
runs are counted before one of them is listed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.sequences.rungraph import Grown, RunGraph
from joins.sequences.runparts import DecidedRun, Head, Part
from joins.sequences.runs import RunEvaluation
from templates.rundecision import RunDecision

__all__ = ["GraphRunEvaluation"]


@dataclass(slots=True, eq=False)
class _Begun:
    """A graph with what its runs begin with: `head` is the run of nothing else."""

    head: Head
    first: Part
    anchor: RunGraph
    until_us: int
    known: set[int] = field(default_factory=set)


def _until_us(begun: _Begun) -> int:
    return begun.until_us


class GraphRunEvaluation(RunEvaluation):
    """The elements and graphs of one repetition."""

    def __init__(self, decision: RunDecision, lateness_us: int, limits: RunLimits) -> None:
        super().__init__(decision, lateness_us, limits)
        self._graphs: dict[tuple[int, tuple[str, ...]], list[_Begun]] = {}
        self._graphs_size = 0

    def __len__(self) -> int:
        return super().__len__() + self._graphs_size

    def _any(self) -> Iterator[DecidedRun]:
        """Yield the runs that have a part which is new, document by document."""
        new = [(part, True) for part in self._left.take_new()]
        new += [(part, False) for part in self._elements.take_new()]
        new.sort(key=lambda each: each[0].position)
        for docid, parts in groupby(new, key=lambda each: each[0].docid):
            if self.limit is not None and docid >= self.limit:
                return
            grown = [
                each
                for part, is_left in parts
                for each in (self._begin_behind(part) if is_left else self._grow_by(part))
            ]
            counted = sum(count for _, _, count in grown)
            longest = max((one.node.longest for _, one, _ in grown), default=0)
            if counted > self._limits.runs or longest > self._limits.elements:
                self.limit = docid
                return
            for begun, one, _ in grown:
                head = begun.head
                for elements in one.runs():
                    yield DecidedRun(Head(head.begin, head.left, elements, {}, docid), None)

    def _begin_behind(self, left: Part) -> Iterator[tuple[_Begun, Grown, int]]:
        """Yield what the elements that are there become behind a tuple that came."""
        for number, conditions in enumerate(self._begins):
            if conditions.rows(left):
                head = Head(number, left, (), {}, left.docid)
                until_us = min(
                    left.start_us + self.decision.within_us,
                    left.end_us + self.decision.window_us,
                    UNBOUNDED,
                )
                begun = self._graph(head, left, until_us)
                for part in self._known(head):
                    yield from self._add(begun, part, begins=self._fits(head, part))
                # Other ways to begin ask the same of each element.
                break

    def _grow_by(self, part: Part) -> Iterator[tuple[_Begun, Grown, int]]:
        """Yield what an element that came adds to each graph."""
        places = self._enter(part)
        found: dict[int, _Begun] = {}
        for place in places:
            graphs = self._graphs.get(place, [])
            for begun in graphs[bisect_left(graphs, part.start_us, key=_until_us) :]:
                found[id(begun)] = begun
        for begun in found.values():
            left = begun.head.left
            begins = left is not None and self._fits(begun.head, part)
            yield from self._add(begun, part, begins=begins)
        if self.decision.is_leading:
            for number in range(len(self._begins)):
                empty = Head(number, None, (), {}, 0)
                if self._fits(empty, part):
                    head = Head(number, None, (part,), {}, part.docid)
                    until_us = min(part.start_us + self.decision.within_us, UNBOUNDED)
                    begun = self._graph(head, part, until_us)
                    yield from self._add(begun, part, begins=True)
                    for further in self._known(head):
                        yield from self._add(begun, further, begins=False)

    def _graph(self, head: Head, first: Part, until_us: int) -> _Begun:
        """Return a new graph, which elements will find."""
        conditions = self._begins[head.begin]
        (row, *_) = conditions.rows(head.left)

        def is_next(one: Part, other: Part) -> bool:
            return conditions.are_neighbours(row, first.start_us, one, other)

        begun = _Begun(head, first, RunGraph(is_next), until_us)
        for place in self._places(head):
            insort(self._graphs.setdefault(place, []), begun, key=_until_us)
            self._graphs_size += 1
        return begun

    def _add(
        self, begun: _Begun, part: Part, *, begins: bool
    ) -> Iterator[tuple[_Begun, Grown, int]]:
        """Yield an element that was added to a graph, with the number of its runs, if it may be."""
        first, decision = begun.first, self.decision
        if first is not part:
            if part.start_us <= first.end_us or id(part) in begun.known:
                return
            if part.end_us - first.start_us > decision.within_us:
                return
            if begun.head.left is not None and part.end_us - first.end_us > decision.window_us:
                return
            if not self._meet(first, part):
                return
        begun.known.add(id(part))
        self._graphs_size += 1
        node = begun.anchor.add(part, next(self._serial), begins=begins)
        one = Grown(node)
        count = one.count() if node.ways else 0
        if count:
            yield begun, one, count

    def _forget(self, before_us: int) -> None:
        super()._forget(before_us)
        for place, graphs in list(self._graphs.items()):
            graphs[:] = [each for each in graphs if each.first.end_us >= before_us]
            if not graphs:
                del self._graphs[place]
        self._graphs_size = sum(
            1 + len(each.anchor) for graphs in self._graphs.values() for each in graphs
        )
