"""The matches of one chain under MATCH ANY that are counted, and never listed.

Elements enter as those of repetitions do (`counted`), each at every step that takes it.  What
enters completes the matches through it: back to where they begin, and on to each time at which one
ends.  Mostly numbers say how many these are (`chainways`); else they are drawn as a graph in which
each is one path.

`docs/repetition.md` has the theory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count, groupby
from typing import Any

import pyarrow as pa

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.sequences.absentunits import Key
from joins.sequences.chained.chainelements import ChainElements
from joins.sequences.clock import WatermarkSteps
from joins.sequences.counting.chaincolumns import NodesInOrder, WaitingNodes
from joins.sequences.counting.chaingraph import ChainEdges, ChainGraph, ChainNode, edges_from
from joins.sequences.counting.chainkeys import end_key
from joins.sequences.counting.chainpaths import paths_to
from joins.sequences.counting.chainreading import NodeReading
from joins.sequences.counting.chainways import chain_ways
from joins.sequences.counting.drawing import Drawing, Label, labels_of
from joins.sequences.counting.found import EndsInOrder, FoundGraph
from joins.sequences.runparts import Part
from templates.chaindecision import ChainDecision
from templates.rundecision import RunAtHand, RunReading, compile_keys
from templates.rungraphs import CountedRuns, PathGraph
from templates.runtotals import RunTotals

__all__ = ["CountedChainEvaluation"]


class CountedChainEvaluation(ChainElements):
    """The elements of one chain whose matches are counted."""

    def __init__(self, decision: ChainDecision, lateness_us: int, limits: RunLimits) -> None:
        super().__init__(decision, limits)
        self.needs = self._of_each_step()
        assert decision.counting is not None
        self._counting = decision.counting
        self._visible = dict(self._counting.visible)
        self._lateness_us = lateness_us
        self._last = len(decision.links) - 1
        self._keys = [(key.block, compile_keys(key.operand)) for key in self._counting.keys]
        self._serial = count()
        self._reading = NodeReading(decision, lateness_us)
        self._graph = ChainGraph(self._reading.neighbours)
        links = decision.links[1:]
        self._has_bounds = any(e.is_repeated and e.window_us < UNBOUNDED for e in links)
        self._end_key = end_key(decision, self._reading.neighbours)
        self._ways = None
        if not self._keys or self._end_key is not None:
            self._ways = chain_ways(decision, self._reading, self._graph)
        self._columns: WaitingNodes | None = None
        if self._ways is not None and not self._keys and self._reading.takes_columns:
            point = self._counting.point
            self._columns = WaitingNodes(decision, self._reading, point, lateness_us)
        self._newest = -1
        self._are_outside = True
        self._drawn = 0

    def __len__(self) -> int:
        return len(self._graph) + len(self._settling)

    @property
    def waiting(self) -> int:
        """How many elements wait until they are settled."""
        return super().waiting + len(self._columns or ())

    @property
    def due_us(self) -> int | None:
        """The first time that must be settled before something that waits goes on."""
        own = () if self._columns is None else self._columns.due_us
        one_by_one = super().due_us
        return min(own if one_by_one is None else [one_by_one, *own], default=None)

    # -- columns -------------------------------------------------------------------------------

    @property
    def takes_columns(self) -> bool:
        """Whether elements may stay rows of the join."""
        return self._columns is not None

    def absorb(self, rows: pa.Table) -> None:
        """Take rows of the streams that are read."""
        assert self._columns is not None
        self._columns.add(rows)

    def decide_ends(self, clock: WatermarkSteps) -> EndsInOrder[Any] | None:
        """Return what `decide_graphs` would, where it is no more than numbers, in order."""
        columns, ways = self._columns, self._ways
        if columns is None or ways is None:
            return None
        waiting = self._settled(clock)
        entering: NodesInOrder | None = None
        totals: list[int] | None = None
        if self.limit is None and self._are_outside:
            entering = columns.entering(clock, waiting)
        if entering is not None and not entering.nodes:
            totals = []
        elif entering is not None and entering.are_behind(self._newest):
            totals = ways.enter_in_order(entering.nodes)
        if entering is None or totals is None:
            for step, part in waiting:
                self._settling.add(step, part)
            for stream, row in columns.give_back():
                self._roles.add(stream, row)
            return None
        return self._in_order(entering, totals)

    def _in_order(self, entering: NodesInOrder, totals: Sequence[int]) -> EndsInOrder[Any]:
        """Note elements that have been counted; return the ends that these are."""
        for node in entering.nodes:
            node.serial = next(self._serial)
        self._graph.add(entering.nodes)
        if entering.nodes:
            self._newest = int(entering.docids[-1])
        some = [at for at, total in enumerate(totals) if total]
        ends = entering.take(some)
        numbers = RunTotals.of([totals[at] for at in some])
        found = EndsInOrder(
            ends.nodes, numbers, ends.entered, ends.stand, self._documents_to, self._data
        )
        most = self._limits.bits
        for at, total in zip(some, numbers.exact(range(len(some))), strict=True):
            if total.bit_length() > most:
                self.limit = int(entering.entered[at])
                return found.before(self.limit)
        return found

    # -- a batch -------------------------------------------------------------------------------

    def decide_graphs(self, clock: WatermarkSteps) -> list[FoundGraph]:
        """Return the matches that are decided in the batch, in order."""
        found: list[FoundGraph] = []
        for docid, entering in groupby(self._entering(clock), key=lambda each: each[0]):
            if self.limit is not None and docid >= self.limit:
                break
            self._drawn = 0
            for _, own in groupby(entering, key=lambda each: each[1:4]):
                found += self._enter(docid, [(step, part) for _, _, step, _, part in own])
        limit = self.limit
        return found if limit is None else [each for each in found if each.docid < limit]

    def _settled(self, clock: WatermarkSteps) -> list[tuple[int, Part]]:
        """Return the tuples that enter, each with its step."""
        for step, parts in enumerate(self._parts):
            for part in parts.take_new():
                if part.docid_min > self._counting.point:
                    self._settling.add(step, part)
        return self._settling.entering(clock)

    def _entering(
        self, clock: WatermarkSteps
    ) -> list[tuple[int, int, int, tuple[Label, ...], Part]]:
        """Return the elements that enter: from which document on, when they end, at which step.

        They are in this order, and those with one label together.
        """
        found = [
            (part.entered, part.end_us, step, labels_of(part, self._visible), part)
            for step, part in self._settled(clock)
        ]
        return sorted(found, key=lambda each: each[:4])

    def _enter(self, docid: int, own: Sequence[tuple[int, Part]]) -> Iterator[FoundGraph]:
        """Yield the matches that elements with one label complete."""
        nodes = [each for one in own if (each := self._reading.node(*one)) is not None]
        if not nodes:
            return
        self._graph.add(nodes)
        for node in nodes:
            node.serial = next(self._serial)
            self._newest = max(self._newest, node.part.docid)
            self._are_outside &= not (node.part.match_id or node.part.depth)
        # What is held against data tells matches with the same documents apart.
        of_data: dict[Key, list[ChainNode]] = {}
        for node in nodes:
            of_data.setdefault(self._data(node), []).append(node)
        for alike in of_data.values():
            node = alike[0]
            ends = None if self._ways is None else self._ways.enter(alike)
            if ends is None or (self._keys and any(end_us > node.end_us for end_us, _ in ends)):
                yield from self._through(docid, alike)
            else:
                for end_us, total in ends:
                    for keys in self._keys_of(node):
                        yield self._counted(docid, node, end_us, total, keys)

    def _keys_of(self, node: ChainNode) -> list[Key]:
        """Return what the matches that end with an element are told apart by."""
        if self._end_key is None:
            return [()]
        return [(value,) for value in sorted(self._end_key(node.part))]

    def _data(self, node: ChainNode) -> Key:
        """Return the values of SAME that are held against data, which all of a match have."""
        return self._counting.data_of(node.same)

    # -- what is complete ----------------------------------------------------------------------

    def _through(self, docid: int, nodes: Sequence[ChainNode]) -> Iterator[FoundGraph]:
        """Yield the matches through some nodes, by when they end."""
        onward = edges_from(nodes, self._graph.behind)
        ends_us = {node.part.end_us for node in onward if node.step == self._last}
        if not ends_us:
            return
        back = edges_from(nodes, self._graph.before)
        for end_us in sorted(ends_us):
            behind = self._leading(onward, end_us)
            from_us = end_us - min(self.decision.within_us, UNBOUNDED)
            before = self._led_to(back, [node for node in nodes if node in behind], from_us)
            begun = [node for node in before if node.begins]
            if begun:
                yield from self._graphs(docid, end_us, begun, {**before, **behind})

    def _on_paths(self, own: ChainNode, end_us: int) -> list[ChainNode]:
        """Return the elements of the matches through one that end at a time, as it came."""
        serial, graph = own.serial, self._graph
        onward = edges_from([own], lambda n: (e for e in graph.behind(n) if e.serial < serial))
        back = edges_from([own], lambda n: (e for e in graph.before(n) if e.serial < serial))
        behind = self._leading(onward, end_us)
        before = self._led_to(back, [own], end_us - min(self.decision.within_us, UNBOUNDED))
        edges = {**before, **behind}
        begun = [node for node in before if node.begins]
        found = edges_from(begun, edges.__getitem__)
        if self._has_bounds:
            # Not all that stands next to each other is within the window before a repetition.
            paths = paths_to(self.decision, end_us, self._lateness_us, begun, found)
            on_paths = {id(each.part) for each in paths.steps}
            return sorted((n for n in found if id(n.part) in on_paths), key=self._place_of)
        return sorted(found, key=self._place_of)

    def _place_of(self, node: ChainNode) -> tuple[object, ...]:
        """Return where an element stands among others, as `Drawing` says it of labels."""
        return node.part.end_us, node.part.position, labels_of(node.part, self._visible)

    def _leading(self, onward: ChainEdges, end_us: int) -> ChainEdges:
        """Return the nodes that lead to a time at which matches end, with what comes next."""
        found: ChainEdges = {}
        for node in sorted(onward, key=lambda each: -each.part.end_us):
            nexts = [each for each in onward[node] if each in found]
            if nexts or (node.step == self._last and node.part.end_us == end_us):
                found[node] = nexts
        return found

    @staticmethod
    def _led_to(back: ChainEdges, last: Sequence[ChainNode], from_us: int) -> ChainEdges:
        """Return the nodes from a time on that lead to some nodes, with what comes next."""
        found: ChainEdges = {node: [] for node in last}
        stack = list(last)
        while stack:
            node = stack.pop()
            for each in back[node]:
                if each.part.start_us >= from_us:
                    if each not in found:
                        found[each] = []
                        stack.append(each)
                    found[each].append(node)
        return {node: nexts for node, nexts in found.items() if node.part.start_us >= from_us}

    # -- what is found -------------------------------------------------------------------------

    def _graphs(
        self, docid: int, end_us: int, begun: Sequence[ChainNode], edges: ChainEdges
    ) -> Iterator[FoundGraph]:
        """Yield the graphs of matches, by what they are told apart by."""
        has_steps = self._counting.has_steps
        for same in list(dict.fromkeys(node.same for node in begun)) if has_steps else [()]:
            own = [node for node in begun if not has_steps or node.same == same]
            drawn = Drawing(self._visible)
            drawn.draw(*paths_to(self.decision, end_us, self._lateness_us, own, edges))
            for keys, graph in self._by_keys(same if has_steps else (), drawn):
                runs = graph.deterministic()
                if runs.first:
                    yield self._found(docid, end_us, keys, drawn, runs, self._data(own[0]))

    def _counted(
        self, docid: int, own: ChainNode, end_us: int, total: int, keys: Key
    ) -> FoundGraph:
        """Return how many matches through an element end at a time, as they are handed on.

        They stand where the newest of their documents says.
        """
        if total.bit_length() > self._limits.bits:
            self.limit = docid
        parts: tuple[Part, ...] = (own.part,)
        is_newest = self._are_outside and own.part.docid >= self._newest
        if not is_newest or end_us > own.part.end_us:
            parts = tuple([node.part for node in self._on_paths(own, end_us)])

        documents = partial(self._documents, own, end_us)
        runs = CountedRuns(total, keys)
        data, leaves = self._data(own), parts[-1].leaves
        return FoundGraph(docid, parts, leaves, runs, end_us, end_us, documents, data)

    def _documents(self, own: ChainNode, end_us: int) -> list[int]:
        """Return the documents of the matches through an element that end at a time."""
        return list(dict.fromkeys(n.part.leaves[0] for n in self._on_paths(own, end_us)))

    def _documents_to(self, own: ChainNode) -> list[int]:
        return self._documents(own, own.end_us)

    def _by_keys(
        self, same: tuple[str, ...], drawn: Drawing
    ) -> Iterator[tuple[tuple[str, ...], PathGraph[Label]]]:
        """Yield the graph of the matches with each value of the key, if there is one."""
        graph = drawn.graph()
        if not self._keys:
            yield same, graph
            return
        ((block, read),) = self._keys
        values = [
            set(read(RunReading({}, 0, part.end_us, RunAtHand((), part.element, {}))))
            if part.blocks[0] == block
            else set()
            for part in drawn.parts
        ]
        for value in sorted(set().union(*values)):
            yield (value,), graph.through([value in own for own in values])

    def _found(
        self,
        docid: int,
        end_us: int,
        keys: tuple[str, ...],
        drawn: Drawing,
        runs: PathGraph[Label],
        data: Key,
    ) -> FoundGraph:
        """Return matches as they are handed on."""
        has_steps = self._counting.has_steps
        found = FoundGraph.of_drawing(
            docid, end_us, keys, drawn, runs, has_steps=has_steps, data=data
        )
        self._drawn += found.steps
        if self._drawn > self._limits.steps:
            self.limit = docid
        if found.runs.count.bit_length() > self._limits.bits:
            self.limit = docid
        return found

    # -- what is kept --------------------------------------------------------------------------

    def evict(self, horizon_us: int) -> None:
        """Forget, once there are enough, what no match can have any more."""
        if len(self) <= self._swept:
            return
        retention_us = self.decision.retained_us
        if retention_us < UNBOUNDED:
            self._graph.forget(horizon_us - retention_us)
            if self._ways is not None:
                self._ways.forget(horizon_us - retention_us)
        self._swept = max(self._limits.swept_parts, 2 * len(self))
