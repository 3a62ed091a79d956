"""Runs behind FOLLOWED BY that are counted, and never listed.

Elements enter as they do behind NEXT: at the document that settles their end, or at their own where
that is later, by end.  So within the grace nothing enters behind what follows it, and a run is
found with the last of its elements.  Parts with one label, the documents and visible nodes that a
match shows, enter together: they are one place of a match.

    lanes    elements under one key, with a step to each that may come next (`lanes`).  Where
             conditions speak of what stands before, each such tuple has a lane of its own
    through  what enters completes the runs through it: back to where they begin, and on to each
             time at which they end
    drawn    these are a graph of documents, in which each match is one path (`drawnruns`)

Where neighbours are asked for little, lanes have no steps (`plainruns`), and numbers are found.

> **Each match is counted once**: with the last of its places that enters.  All others have entered
> by then, so it is decided at that document.

`docs/repetition.md` has the theory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa

from joins.budget.limits import RunLimits
from joins.sequences.clock import WatermarkSteps
from joins.sequences.counting.drawing import Label, labels_of
from joins.sequences.counting.drawnruns import Begun, DrawnRuns
from joins.sequences.counting.found import EndsInOrder, FoundGraph
from joins.sequences.counting.inorder import WaitingColumns
from joins.sequences.counting.lanes import (
    LaneNode,
    RunLane,
    Start,
    Steps,
    reached,
    steps_back,
    steps_to,
)
from joins.sequences.counting.plain import FoundWays, NotPlainError
from joins.sequences.counting.plainruns import PlainRuns
from joins.sequences.counting.ways import ways_back
from joins.sequences.repeated.runs import RunEvaluation
from joins.sequences.repeated.shared import SharedSides
from joins.sequences.runparts import Head, Part, PartRow, Parts
from templates.decision import TupleStream
from templates.rundecision import RunDecision
from templates.rungraphs import CountedRuns

__all__ = ["CountedRunEvaluation"]

_behind = attrgetter("behind")
_PLACE = itemgetter(slice(0, 3))


class CountedRunEvaluation(RunEvaluation):
    """The elements and lanes of one repetition whose runs are counted."""

    def __init__(self, decision: RunDecision, lateness_us: int, limits: RunLimits) -> None:
        # All that stands before has a lane, or is in one.
        super().__init__(decision, lateness_us, limits, *SharedSides.alone(decision, limits))
        assert decision.counting is not None
        for each in decision.elements:
            self._roles.give(each.stream, self.elements.parts)
        if not decision.is_leading:
            lefts = [begin.left.name for begin in decision.begins if begin.left is not None]
            elements = [each.stream.name for each in decision.elements]
            self.needs = [frozenset(lefts), frozenset(elements)]
        self._left = Parts()
        for begin in decision.begins:
            if begin.left is not None:
                self.read(begin.left)
        self._counting = decision.counting
        self._visible = dict(self._counting.visible)
        self._conditions = self._begins[0]
        self._reads_left = decision.reads_left
        self._lanes: dict[tuple[int, tuple[str, ...]], list[RunLane]] = {}
        self._lanes_size = self._plain_size = 0
        self._steps = 0
        keys = self._counting.keys
        self._drawn_runs = DrawnRuns(decision, self._conditions, lateness_us)
        # An element that is a place of a match by itself, and of which nothing is told apart.
        self._are_ways = self.decision.is_leading and not (keys or self._counting.has_steps)
        self._has_keys = any(self._conditions.keys.values())
        self._plain: PlainRuns | None = None
        self._columns: WaitingColumns | None = None
        if self._are_ways:
            self._plain = PlainRuns.of(decision, self._conditions, lateness_us)
        if self._plain is not None and len(decision.elements) == 1 and not self._has_keys:
            stream, point = decision.elements[0].stream, self._counting.point
            self._columns = WaitingColumns(stream, decision.grace_us, point)

    def __len__(self) -> int:
        return super().__len__() + len(self.elements) + self._lanes_size + self._plain_size

    @property
    def waiting(self) -> int:
        """How many elements wait until they are settled."""
        return self.elements.settling + len(self._columns or ())

    @property
    def due_us(self) -> int | None:
        """The first time that must be settled before something that waits goes on."""
        own = () if self._columns is None else self._columns.due_us
        one_by_one = self.elements.due_us
        return min(own if one_by_one is None else [one_by_one, *own], default=None)

    def read(self, stream: TupleStream) -> None:
        """Have rows of a stream stand before the repetition."""
        self._roles.give(stream, self._left)

    @property
    def takes_columns(self) -> bool:
        """Whether elements may stay rows of the join, of the only stream that is read."""
        return self._columns is not None

    def absorb(self, rows: pa.Table) -> None:
        """Take rows of the only stream."""
        assert self._columns is not None
        self._columns.add(rows)

    def decide_ends(self, clock: WatermarkSteps) -> EndsInOrder[Any] | None:
        """Return what `decide_graphs` would, where it is no more than numbers of runs, in order."""
        columns, plain = self._columns, self._plain
        if columns is None or plain is None:
            return None
        elements = found = None
        if not (self.elements.settling or self._lanes or self.limit is not None):
            elements = columns.entering(clock)
            if elements is not None:
                found = plain.enter_in_order(elements, self._limits.bits)
        if found is None:
            one_by_one = [] if elements is None else [*elements.columns.instances()]
            for row in (*one_by_one, *columns.give_back()):
                self._roles.add(columns.stream.name, row)
            return None
        self._plain_size = len(plain)
        if found.are_too_many(self._limits.bits):
            self.limit = int(found.entered[-1])
            return found.before(self.limit)
        return found

    def decide_graphs(self, clock: WatermarkSteps) -> list[FoundGraph]:
        """Return what is found in the batch, in the order in which it is decided."""
        new = [(part.docid, False, part.end_us, part) for part in self._left.take_new()]
        new += [(part.entered, True, part.end_us, part) for part in self.elements.entering(clock)]
        point = self._counting.point
        coming = [each for each in new if each[-1].docid_min > point]
        coming.sort(key=_PLACE)
        found: list[FoundGraph] = []
        counted_at = 0
        for (docid, is_element, _), group in groupby(coming, key=_PLACE):
            if self.limit is not None and docid >= self.limit:
                break
            if docid != counted_at:
                self._steps, counted_at = 0, docid
            entering = self._enter_elements if is_element else self._enter_lefts
            for parts in self._of_labels([each[-1] for each in group]):
                found += entering(docid, parts)
        limit = self.limit
        return found if limit is None else [each for each in found if each.docid < limit]

    def _of_labels(self, parts: list[Part]) -> list[list[Part]]:
        """Return parts that come at one place, together where they have one label."""
        if len(parts) == 1:
            return [parts]
        found: dict[tuple[Label, ...], list[Part]] = {}
        for part in parts:
            found.setdefault(labels_of(part, self._visible), []).append(part)
        return [found[labels] for labels in sorted(found)]

    # -- what enters ---------------------------------------------------------------------------

    def _enter_elements(self, docid: int, parts: Sequence[Part]) -> Iterable[FoundGraph]:
        """Return the graphs of the runs through elements with one label."""
        counted = self._counted_plainly(docid, parts)
        return self._drawn(docid, parts) if counted is None else counted

    def _drawn(self, docid: int, parts: Sequence[Part]) -> Iterator[FoundGraph]:
        """Yield the graphs of the runs through elements with one label, of lanes with steps."""
        new: list[LaneNode] = []
        lane, most = None, self._limits.elements
        for part in parts:
            for lane in self._lanes_of(part):
                if self._is_behind(lane, part):
                    new.append(self._add(lane, part))
        if self._are_ways and len(new) == 1 and not new[0].behind:
            assert lane is not None
            ways = ways_back(lane, new[0], new[0].part.end_us - self.longest_us)
            if self._drawn_runs.are_matches(ways):
                if len(ways.nodes) > most and ways.longest() > most:
                    self.limit = docid
                elif ways.begun:
                    yield self._drawn_runs.counted(docid, ways)
                return
        some = reached(new, _behind)
        for end_us in sorted({node.part.end_us for node in some}):
            behind = steps_to(end_us, some)
            before = steps_back([n for n in new if n in behind], end_us - self.longest_us)
            begun = [
                (start, node)
                for node in before
                for start in node.begins
                if self._reaches(start, end_us)
            ]
            yield from self._graphs(docid, end_us, {**before, **behind}, begun)

    def _counted_plainly(self, docid: int, parts: Sequence[Part]) -> list[FoundGraph] | None:
        """Add elements to their lanes without steps; None where these need some."""
        plain = self._plain
        if plain is None:
            return None
        keys = list(dict.fromkeys(map(self._drawn_runs.same, parts))) if self._has_keys else [()]
        if len(keys) == 1 and not all(keys[0]):
            return []
        if len(keys) == 1 and (0, keys[0]) not in self._lanes:
            try:
                found = plain.enter(keys[0], parts)
            except NotPlainError:
                pass
            else:
                self._plain_size += 1
                data = self._counting.data_of(keys[0])
                return [self._counted_runs(docid, each, data) for each in found]
        for key in keys:
            for part in plain.leave(key):
                if part not in parts:
                    for lane in self._lanes_of(part):
                        self._add(lane, part)
        return None

    def _counted_runs(self, docid: int, found: FoundWays, data: tuple[str, ...]) -> FoundGraph:
        """Return runs that are only counted, as they are handed on: where the last one stands."""
        if found.total.bit_length() > self._limits.bits:
            self.limit = docid
        last = found.parts[-1]
        runs = CountedRuns(found.total, ())
        end_us = found.end_us
        return FoundGraph(
            docid, found.parts, last.leaves, runs, end_us, end_us, found.documents, data
        )

    def _enter_lefts(self, docid: int, parts: Sequence[Part]) -> Iterator[FoundGraph]:
        """Yield the graphs of the runs behind tuples with one label."""
        begun: list[tuple[Start, LaneNode]] = []
        for part in parts:
            head = Head(0, part, (), {}, part.docid)
            rows = self._conditions.rows(part)
            lane = self._lane_behind(head) if rows else None
            if lane is None:
                continue
            for start in [Start(part, row) for row in rows]:
                lane.starts.append(start)
                self._lanes_size += 1
                for node in lane.behind(part):
                    if self._may_begin(start, node.part):
                        node.begins.append(start)
                        begun.append((start, node))
        some = reached((node for _, node in begun), _behind)
        for end_us in sorted({node.part.end_us for node in some}):
            steps = steps_to(end_us, some)
            own = [(s, node) for s, node in begun if node in steps and self._reaches(s, end_us)]
            yield from self._graphs(docid, end_us, steps, own)

    def _lanes_of(self, part: Part) -> Iterable[RunLane]:
        """Return the lanes that an element enters, each once."""
        if self.decision.is_leading:
            same = self._drawn_runs.same(part)
            places = [(0, same)] if all(same) else []
            for place in places:
                if place not in self._lanes:
                    self._lanes[place] = [RunLane()]
        else:
            places = self.elements.enter(part)
            self._through = self.elements.next
        return {id(lane): lane for at in places for lane in self._lanes.get(at, ())}.values()

    def _lane_behind(self, head: Head) -> RunLane | None:
        """Return the lane of the runs behind a tuple, with the elements that are there."""
        same = self._conditions.same_key(head) or ()
        if not all(same):
            return None
        lane = RunLane(head.left if self._reads_left else None)
        known: Sequence[Part]
        if self._reads_left:
            known = self._known(head)
            places = self._places(head)
        else:
            known = self.elements.at((0, same))
            places = [(0, same)]
            if self._lanes.get((0, same)):
                return self._lanes[0, same][0]
        for place in places:
            self._lanes.setdefault(place, []).append(lane)
        for part in known:
            if self._is_behind(lane, part):
                self._add(lane, part)
        return lane

    def _is_behind(self, lane: RunLane, part: Part) -> bool:
        """Return whether a run of a lane may have an element."""
        left, decision = lane.left, self.decision
        return left is None or (
            part.start_us > left.end_us
            and part.end_us - left.end_us <= decision.window_us
            and part.end_us - left.start_us <= decision.within_us
        )

    def _add(self, lane: RunLane, part: Part) -> LaneNode:
        """Add an element to a lane."""
        left, conditions = lane.left, self._conditions
        row = PartRow({}) if left is None else conditions.rows(left)[0]

        def is_next(one: Part, other: Part) -> bool:
            return conditions.are_neighbours(row, (left or one).start_us, one, other)

        longest_us = min(self.decision.gap_us, self.longest_us)
        node = lane.add(part, part.end_us - longest_us, is_next)
        starts = [Start(part, PartRow({}))] if self.decision.is_leading else lane.starts
        node.begins = [start for start in starts if self._may_begin(start, part)]
        self._lanes_size += 1 + len(node.before)
        return node

    def _may_begin(self, start: Start, part: Part) -> bool:
        """Return whether an element may be the first behind what runs begin with."""
        first = None if start.part is part else start.part
        if first is not None and part.start_us <= first.end_us:
            return False
        step = self._conditions.step(Head(0, first, (), {}, 0), part, start.row)
        return self._conditions.each(step) and self._conditions.first(step)

    def _reaches(self, start: Start, end_us: int) -> bool:
        """Return whether runs that begin so may end at a time."""
        if end_us - start.part.start_us > self.decision.within_us:
            return False
        return self.decision.is_leading or (end_us - start.part.end_us <= self.decision.window_us)

    def _graphs(self, docid: int, end_us: int, steps: Steps, begun: Begun) -> Iterator[FoundGraph]:
        """Yield the graphs of runs, by what they are told apart by; none if one is too long."""
        most = self._limits.elements
        if len(steps) > most and self._drawn_runs.longest(steps, begun) > most:
            self.limit = docid
            return
        for found in self._drawn_runs.graphs(docid, end_us, steps, begun):
            self._steps += found.steps
            if self._steps > self._limits.steps:
                self.limit = docid
            yield found

    # -- what is kept --------------------------------------------------------------------------

    def _forget(self, before_us: int) -> None:
        super()._forget(before_us)
        self.elements.forget(before_us)
        if self._plain is not None:
            self._plain.forget(before_us)
            self._plain_size = len(self._plain)
        all_lanes = {id(lane): lane for lanes in self._lanes.values() for lane in lanes}
        kept = {i for i, lane in all_lanes.items() if lane.forget(before_us)}
        for place, lanes in list(self._lanes.items()):
            lanes[:] = [lane for lane in lanes if id(lane) in kept]
            if not lanes:
                del self._lanes[place]
        self._lanes_size = sum(len(all_lanes[i]) for i in kept)
