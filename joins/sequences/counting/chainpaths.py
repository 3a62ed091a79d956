"""Paths of a match graph that are matches: states that have taken the same so far are one.

What is asked of neighbours is asked of edges.  What is asked of more is carried along: where the
step before ended, of a repetition whose window is not that of the last step, and, where something
came so late that it was not remembered with all, what section 1.1 asks.  So a node is as many
**states** as there are ways to have come to it that differ in what is asked later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from joins.memory.durations import UNBOUNDED
from joins.sequences.counting.chaingraph import ChainEdges, ChainNode
from joins.sequences.counting.lanes import LaneNode, Start, Steps
from joins.sequences.runparts import Part, PartRow, is_remembered
from templates.chaindecision import ChainDecision

__all__ = ["ChainPaths", "paths_to"]


class _Left(NamedTuple):
    """What stands before a step, as section 1.1 asks for it."""

    newest: Part
    end_us: int

    @property
    def position(self) -> tuple[int, int, str]:
        """Where it stands."""
        return self.newest.position

    @property
    def watermark_us(self) -> int:
        """`W` when it was there."""
        return self.newest.watermark_us


@dataclass(frozen=True, slots=True)
class _Carried:
    """What a path carries along: the first element, what stands before the step, the newest part.

    Each is None where nothing asks for it.
    """

    first: Part | None = None
    left: _Left | None = None
    left_us: int | None = None
    newest: Part | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from any other."""
        parts = self.first, self.newest, None if self.left is None else self.left.newest
        left_us = self.left_us if self.left is None else self.left.end_us
        return (*map(id, parts), left_us)


class ChainPaths(NamedTuple):
    """Paths as they are drawn: what they begin with, and the steps between states."""

    starts: list[tuple[Start, LaneNode]]
    steps: Steps


class _Carrying:
    """What paths to one time carry along."""

    def __init__(
        self, decision: ChainDecision, end_us: int, lateness_us: int, *, are_remembered: bool
    ) -> None:
        self._links, self._within_us = decision.links, decision.within_us
        self._last = len(decision.links) - 1
        self._end_us, self._lateness_us = end_us, lateness_us
        self._are_remembered = are_remembered

    def begun(self, node: ChainNode) -> _Carried:
        """Return what a path carries that begins with a node."""
        if self._are_remembered:
            return _Carried()
        is_asked = self._links[0].is_repeated
        return _Carried(first=node.part if is_asked else None, newest=node.part)

    def further(self, one: ChainNode, carried: _Carried, other: ChainNode) -> _Carried | None:
        """Return what a path carries with one node more; None if it may not have that."""
        link, is_further = self._links[other.step], one.step == other.step
        left_us = carried.left_us if is_further else one.part.end_us
        if link.is_repeated and other.step and link.window_us < UNBOUNDED:
            # All elements of the last step end before the path does.
            end_us = self._end_us if other.step == self._last else other.part.end_us
            asked_us = left_us if other.step < self._last or not is_further else end_us
            assert asked_us is not None
            if end_us - asked_us > link.window_us:
                return None
        is_kept = link.is_repeated and 0 < other.step < self._last and link.window_us < UNBOUNDED
        if self._are_remembered:
            return _Carried(left_us=left_us if is_kept else None)
        newest = carried.newest
        assert newest is not None
        left = carried.left if is_further else _Left(newest, one.part.end_us)
        if not self._is_remembered(carried.first, left, other):
            return None
        return _Carried(
            carried.first if is_further and not other.step else None,
            left if link.is_repeated and other.step else None,
            left_us if is_kept else None,
            max(newest, other.part, key=lambda part: part.position),
        )

    def _is_remembered(self, first: Part | None, left: _Left | None, other: ChainNode) -> bool:
        """Return whether an operator's operands were remembered with each other (section 1.1)."""
        if not other.step:
            assert first is not None
            return is_remembered(first, other.part, self._within_us + self._lateness_us)
        assert left is not None
        window_us = self._links[other.step].window_us
        window_us = window_us if window_us < UNBOUNDED else self._within_us
        return is_remembered(left, other.part, window_us + self._lateness_us)


def paths_to(
    decision: ChainDecision,
    end_us: int,
    lateness_us: int,
    begun: Iterable[ChainNode],
    edges: ChainEdges,
) -> ChainPaths:
    """Return the paths that end at a time: along edges, of nodes that all lead there."""
    are_remembered = all(node.is_in_time for node in edges)
    carrying = _Carrying(decision, end_us, lateness_us, are_remembered=are_remembered)
    last = len(decision.links) - 1
    states: dict[ChainNode, dict[tuple[object, ...], tuple[_Carried, LaneNode]]] = {}
    steps: Steps = {}
    starts: list[tuple[Start, LaneNode]] = []

    def state(node: ChainNode, carried: _Carried) -> LaneNode:
        own = states.setdefault(node, {})
        found = own.get(carried.key)
        if found is None:
            found = own[carried.key] = carried, LaneNode(node.part)
            steps[found[1]] = []
        return found[1]

    for node in begun:
        made = state(node, carrying.begun(node))
        starts.append((Start(node.part, PartRow({})), made))
    order = sorted(edges, key=lambda node: node.part.end_us)
    for node in order:
        for carried, own in list(states.get(node, {}).values()):
            for other in edges[node]:
                longer = carrying.further(node, carried, other)
                if longer is not None:
                    steps[own].append(state(other, longer))
    # What a path may not go on from is no end of one.
    leads = set[LaneNode]()
    for node in reversed(order):
        is_end = node.step == last and node.part.end_us == end_us
        for _, own in states.get(node, {}).values():
            steps[own] = [each for each in steps[own] if each in leads]
            if steps[own] or is_end:
                leads.add(own)
    return ChainPaths(
        [(start, own) for start, own in starts if own in leads],
        {own: behind for own, behind in steps.items() if own in leads},
    )
