"""Runs of lanes with steps as they are found: graphs of documents, in which each match is one path.

Where each path is a match by itself, the ways to an element are their number, and nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from joins.memory.durations import UNBOUNDED
from joins.sequences.absentunits import Key
from joins.sequences.counting.drawing import Drawing, Label, labels_of
from joins.sequences.counting.found import FoundGraph
from joins.sequences.counting.lanes import LaneNode, Start, Steps
from joins.sequences.counting.ways import WaysBack
from joins.sequences.runconditions import RunConditions
from joins.sequences.runparts import Part, is_remembered
from templates.rundecision import RunAtHand, RunDecision, RunReading, compile_keys
from templates.rungraphs import CountedRuns, PathGraph

__all__ = ["Begun", "DrawnRuns"]

Begun = Sequence[tuple[Start, LaneNode]]
"""What runs begin with, each with an element that may be the first behind it."""


class DrawnRuns:
    """Makes what is handed on of the runs of one repetition."""

    def __init__(self, decision: RunDecision, conditions: RunConditions, lateness_us: int) -> None:
        assert decision.counting is not None
        self.decision = decision
        self._counting = decision.counting
        self._conditions = conditions
        self._lateness_us = lateness_us
        self._visible = dict(self._counting.visible)
        keys = self._counting.keys
        self._left_keys = [compile_keys(key.operand) for key in keys if not key.is_of_elements]
        of_elements = [(at, key) for at, key in enumerate(keys) if key.is_of_elements]
        self._element_key = [(at, compile_keys(key.operand)) for at, key in of_elements]

    def same(self, part: Part) -> tuple[str, ...]:
        """Return the values of SAME of an element."""
        assert part.element is not None
        terms = self._conditions.keys[part.blocks[0]]
        return tuple(part.element.value(term) for term in terms)

    def data(self, part: Part) -> Key:
        """Return the values of SAME that are held against data, of an element."""
        return self._counting.data_of(self.same(part)) if self._counting.data else ()

    # -- numbers -------------------------------------------------------------------------------

    def are_matches(self, ways: WaysBack) -> bool:
        """Return whether each path is a match, and all of it was remembered together."""
        labels = [self._label_of(node) for node in ways.nodes]
        if len(set(labels)) < len(labels):
            return False
        retention_us = self.decision.retention_us
        if retention_us >= UNBOUNDED or not labels:
            return True
        newest_us = max([node.part.watermark_us for node in ways.nodes])
        return ways.nodes[0].part.end_us >= newest_us - retention_us - self._lateness_us

    def _label_of(self, node: LaneNode) -> Label:
        if node.label is None:
            (node.label,) = labels_of(node.part, self._visible)
        return node.label

    def counted(self, docid: int, ways: WaysBack) -> FoundGraph:
        """Return the matches that are the ways to an element, as they are handed on."""
        nodes = sorted(ways.nodes, key=self._place_of)
        labels = [self._label_of(node) for node in nodes]
        return FoundGraph(
            docid,
            tuple([node.part for node in nodes]),
            tuple([label.leaf for label in labels]),
            CountedRuns(ways.total, (), tuple([(e.block, e.nodes[0]) for e in labels])),
            min([node.part.start_us for node in ways.begun]),
            nodes[-1].part.end_us,
            data=self.data(nodes[-1].part),
        )

    def _place_of(self, node: LaneNode) -> tuple[object, ...]:
        """Return where an element stands among others, as `Drawing` says it of labels."""
        return node.part.end_us, node.part.position, self._label_of(node)

    # -- graphs --------------------------------------------------------------------------------

    def longest(self, steps: Steps, begun: Begun) -> int:
        """Return how many elements the longest run has."""
        found = 0
        for some, allowed in self._remembered(steps, begun):
            longest: dict[LaneNode, int] = {}
            for node in sorted(allowed, key=lambda each: -each.part.end_us):
                longest[node] = 1 + max((longest[each] for each in allowed[node]), default=0)
            found = max([found, *(longest[node] for _, node in some)])
        return found

    def graphs(self, docid: int, end_us: int, steps: Steps, begun: Begun) -> Iterator[FoundGraph]:
        """Yield the graphs of runs, by what they are told apart by."""
        by_keys: dict[tuple[Key, Key], list[tuple[Start, LaneNode]]] = {}
        for start, node in begun:
            for keys in self._keys_of(start, node):
                by_keys.setdefault((self.data(node.part), keys), []).append((start, node))
        for (data, keys), own in by_keys.items():
            drawn = Drawing(self._visible)
            for some, allowed in self._remembered(steps, own):
                drawn.draw(some, allowed)
            for further, graph in self._by_element(keys, drawn):
                runs = graph.deterministic()
                if runs.first:
                    yield FoundGraph.of_drawing(
                        docid,
                        end_us,
                        further,
                        drawn,
                        runs,
                        has_steps=self._counting.has_steps,
                        data=data,
                    )

    def _keys_of(self, start: Start, node: LaneNode) -> Iterable[tuple[str, ...]]:
        """Return what runs are told apart by that is known where they begin: each choice."""
        if self._counting.has_steps:
            return [self.same(node.part)]
        reading = RunReading(start.row.terms, start.part.start_us, 0, RunAtHand((), None, {}))
        return product(*[read(reading) for read in self._left_keys])

    def _remembered(self, steps: Steps, begun: Begun) -> Iterator[tuple[Begun, Steps]]:
        """Yield what runs begin with, and the steps that section 1.1 leaves to those runs."""
        retention_us = self.decision.retention_us
        parts = [node.part for node in steps] + [start.part for start, _ in begun]
        oldest_us = max(part.watermark_us for part in parts) - retention_us - self._lateness_us
        if retention_us >= UNBOUNDED or min(part.end_us for part in parts) >= oldest_us:
            yield begun, steps
            return
        for start, node in begun:
            allowed: Steps = {}
            for each in sorted(steps, key=lambda n: -n.part.end_us):
                if is_remembered(start.part, each.part, retention_us + self._lateness_us):
                    kept = [further for further in steps[each] if further in allowed]
                    if kept or not steps[each]:
                        allowed[each] = kept
            if node in allowed:
                yield [(start, node)], allowed

    def _by_element(
        self, keys: tuple[str, ...], drawn: Drawing
    ) -> Iterator[tuple[tuple[str, ...], PathGraph[Label]]]:
        """Yield the graph of the runs with each value of the key that is of elements, if any is."""
        graph = drawn.graph()
        if not self._element_key:
            yield keys, graph
            return
        ((at, read),) = self._element_key
        values: list[set[str]] = []
        for part in drawn.parts:
            if part.blocks[0] not in self._conditions.keys:
                values.append(set())
                continue
            run = RunAtHand((), part.element, {})
            values.append(set(read(RunReading({}, 0, part.end_us, run))))
        for value in sorted(set().union(*values)):
            graph_of_value = graph.through([value in own for own in values])
            yield (*keys[:at], value, *keys[at:]), graph_of_value
