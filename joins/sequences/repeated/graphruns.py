"""Runs behind FOLLOWED BY that are counted in graphs before they are listed.

It is for conditions that speak of an element, of the one before it and of what stands before the
run (`speaks_of_neighbours`); any other repetition is found run by run (`runs`).
What comes is taken in the order of documents.  A document that makes too many runs makes none: its
runs are counted before one of them is listed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.sequences.repeated.elements import UnitElements
from joins.sequences.repeated.lefts import Left, Lefts
from joins.sequences.repeated.readers import Place
from joins.sequences.repeated.rungraph import Grown, RunGraph
from joins.sequences.repeated.runs import RunEvaluation
from joins.sequences.runconditions import Key
from joins.sequences.runparts import DecidedRun, Head, Part
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


_Entered = tuple[Part, Sequence[Place]]
"""An element, and the places where it is looked up."""

_POSITION = itemgetter(0)


def _until_us(begun: _Begun) -> int:
    return begun.until_us


class GraphRunEvaluation(RunEvaluation):
    """The elements and graphs of one repetition."""

    def __init__(
        self,
        decision: RunDecision,
        lateness_us: int,
        limits: RunLimits,
        lefts: Lefts,
        elements: UnitElements,
    ) -> None:
        super().__init__(decision, lateness_us, limits, lefts, elements)
        self._graphs: dict[Place, list[_Begun]] = {}
        self._graphs_size = 0

    def __len__(self) -> int:
        return super().__len__() + self._graphs_size

    def _any(self) -> Iterator[DecidedRun]:
        """Yield the runs that have a part which is new, document by document."""
        new: list[tuple[tuple[int, int, str], Left | _Entered]] = [
            (left.part.position, left) for left in self._lefts.at_hand(self.elements.latest_us)
        ]
        new += [(part.position, (part, places)) for part, places in self.elements.new]
        new.sort(key=_POSITION)
        for docid, coming in groupby(new, key=lambda each: each[0][0]):
            if self.limit is not None and docid >= self.limit:
                return
            grown = [
                each
                for _, one in coming
                for each in (
                    self._begin_behind(one) if isinstance(one, Left) else self._grow_by(*one)
                )
            ]
            counted = Counter[Key]()
            for begun, one, count in grown:
                left = begun.head.left
                before = () if left is None else left.data
                counted[*before, *one.node.part.data] += count
            most = max(counted.values(), default=0)
            longest = max((one.node.longest for _, one, _ in grown), default=0)
            if most > self._limits.runs or longest > self._limits.elements:
                self.limit = docid
                return
            for begun, one, _ in grown:
                head = begun.head
                for run in one.runs():
                    yield DecidedRun(Head(head.begin, head.left, run, {}, docid), None)

    def _begin_behind(self, left: Left) -> Iterator[tuple[_Begun, Grown, int]]:
        """Yield what the elements that are there become behind a tuple that came."""
        for head in self._heads_behind(left):
            known = [part for part in self._known(head) if self._may_stand(head, left.part, part)]
            begun = self._graph_behind(head) if known else None
            for part in known:
                assert begun is not None
                yield from self._add(begun, part, begins=self._asked.fits(head, part))

    def _graph_behind(self, head: Head) -> _Begun:
        """Return a new graph of the runs behind a tuple, which elements will find."""
        part, decision = head.first, self.decision
        until_us = min(part.start_us + decision.within_us, part.end_us + decision.window_us)
        self._lefts.note_head(part, head.data)
        return self._graph(head, part, min(until_us, UNBOUNDED))

    def _grow_by(self, part: Part, places: Sequence[Place]) -> Iterator[tuple[_Begun, Grown, int]]:
        """Yield what an element that came adds to each graph."""
        self._through = part.serial + 1
        for before in self._lefts.before(places, part):
            head = self._head(before, part.data)
            is_there = before.part.position <= part.position
            if is_there and self._may_stand(head, before.part, part):
                self._graph_behind(head)
        found: dict[int, _Begun] = {}
        for place in places:
            graphs = self._graphs.get(place, [])
            for begun in graphs[bisect_left(graphs, part.start_us, key=_until_us) :]:
                found[id(begun)] = begun
        for begun in found.values():
            left = begun.head.left
            begins = left is not None and self._asked.fits(begun.head, part)
            yield from self._add(begun, part, begins=begins)
        if self.decision.is_leading:
            for number in range(len(self._begins)):
                empty = Head(number, None, (), {}, 0)
                if self._asked.fits(empty, part):
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
            if head.left is not None:
                self.elements.waiting.note(place, self, first.end_us)
            self._graphs_size += 1
        return begun

    def _add(
        self, begun: _Begun, part: Part, *, begins: bool
    ) -> Iterator[tuple[_Begun, Grown, int]]:
        """Yield an element that was added to a graph, with the number of its runs, if it may be."""
        first = begun.first
        if first is not part and (
            id(part) in begun.known or not self._may_stand(begun.head, first, part)
        ):
            return
        begun.known.add(id(part))
        self._graphs_size += 1
        node = begun.anchor.add(part, next(self._serial), begins=begins)
        one = Grown(node)
        count = one.count() if node.ways else 0
        if count:
            yield begun, one, count

    def _may_stand(self, head: Head, first: Part, part: Part) -> bool:
        """Return whether an element may be somewhere in a run that begins with another tuple."""
        decision = self.decision
        return (
            part.start_us > first.end_us
            and part.end_us - first.start_us <= decision.within_us
            and (head.left is None or part.end_us - first.end_us <= decision.window_us)
            and self._asked.meet(first, part)
            and self._begins[head.begin].passes(head.left, part)
        )

    def _forget(self, before_us: int) -> None:
        super()._forget(before_us)
        for place, graphs in list(self._graphs.items()):
            graphs[:] = [each for each in graphs if each.first.end_us >= before_us]
            if not graphs:
                del self._graphs[place]
        self._graphs_size = sum(
            1 + len(each.anchor) for graphs in self._graphs.values() for each in graphs
        )
