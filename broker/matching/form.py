"""What matches over documents of the same blocks have in common: where their nodes are.

A tuple has a document for each block, and of a repetition one for each element.  A repetition
stands in a clause as the first block of its unit, and in the tuple as a run (`xscl.runvalues`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broker.matching.fanout import BoundNode, FoundTuple
from xscl.query import Query, SelectAll
from xscl.runvalues import Run, read_run
from xscl.sequence import Repetition, nodes_below, units_of

__all__ = ["Form", "Forms"]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """The form of matches: which block and which branch each document has, in order.

    `visible` are variables, each with the place of its document among them; of a repeated variable
    there is one for each element.  `roots` are those of the documents, by their index there, and
    `indices` those of each variable.  `units` are the places of the documents' units, and
    `branches` say which alternatives they are, None where a unit has one only.  `runs` are the
    places of each run.
    """

    visible: tuple[tuple[str, int], ...]
    roots: tuple[int, ...]
    indices: Mapping[str, tuple[int, ...]]
    units: tuple[int, ...]
    unit_of: Mapping[str, int]
    branches: tuple[int | None, ...]
    runs: tuple[range, ...]
    has_blocks: bool
    names_blocks: bool

    def run_at(self, place: int) -> range | None:
        """Return the places of the run that has a document."""
        return next((run for run in self.runs if place in run), None)

    def numbers(self, found: FoundTuple, runs: Sequence[Run]) -> tuple[int, ...]:
        """Return the node of each visible variable in a tuple with these runs."""
        nodes = found.nodes
        if not self.runs:
            return tuple([nodes[name].number for name, _ in self.visible])
        return tuple([self._node(name, place, nodes, runs) for name, place in self.visible])

    def _node(
        self, name: str, place: int, nodes: Mapping[str, BoundNode], runs: Sequence[Run]
    ) -> int:
        for places, run in zip(self.runs, runs, strict=True):
            if place in places:
                return run.elements[place - places.start].terms[name].node
        return nodes[name].number


class Forms:
    """The forms of one query's matches."""

    def __init__(self, query: Query) -> None:
        self._query = query
        units = list(units_of(query.root))
        self._place_of = {block: place for place, unit in enumerate(units) for block in unit}
        self._branch_of = {
            block: unit.index(block) if len(unit) > 1 else None for unit in units for block in unit
        }
        self._repeated = [
            unit[0]
            for node in nodes_below(query.root)
            if isinstance(node, Repetition)
            for unit in units_of(node)
        ]
        self._forms: dict[tuple[tuple[int, ...], ...], Form] = {}

    def runs(self, found: FoundTuple) -> list[Run]:
        """Return the runs of a tuple in the order of its blocks."""
        if not self._repeated:
            return []
        texts = (found.nodes[f"+{b}"].value for b in found.clause.blocks if b in self._repeated)
        return [read_run(text) for text in texts if text is not None]

    def of(self, blocks: tuple[int, ...], runs: Sequence[Run]) -> Form:
        """Return the form of tuples of a clause's blocks with these runs."""
        elements = [tuple([element.block for element in run.elements]) for run in runs]
        key = (blocks, *elements)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._make(blocks, elements)
        return form

    def _make(self, blocks: tuple[int, ...], elements: Sequence[tuple[int, ...]]) -> Form:
        own: list[int] = []
        places: list[range] = []
        waiting = iter(elements)
        for block in blocks:
            if block in self._repeated:
                run = next(waiting)
                places.append(range(len(own), len(own) + len(run)))
                own += run
            else:
                own.append(block)
        query = self._query
        bound: dict[str, list[int]] = {}
        for variable in query.variables:
            at = [place for place, block in enumerate(own) if block == variable.block]
            if at:
                bound[variable.name] = sorted([*bound.get(variable.name, ()), *at])
        roots = [(query.blocks[block].root, place) for place, block in enumerate(own)]
        selected = () if isinstance(query.select, SelectAll) else query.select.variables
        shown = [(name, place) for name in selected for place in bound.get(name, ())]
        visible = tuple(dict.fromkeys([*roots, *shown]))
        indices: dict[str, list[int]] = {}
        for i, (name, _) in enumerate(visible):
            indices.setdefault(name, []).append(i)
        in_order = {n: sorted(at, key=lambda i: visible[i][1]) for n, at in indices.items()}
        branches = tuple([self._branch_of[block] for block in own])
        return Form(
            visible,
            tuple([visible.index(root) for root in roots]),
            {name: tuple(at) for name, at in in_order.items()},
            tuple([self._place_of[block] for block in own]),
            {name: self._place_of[own[at[0]]] for name, at in bound.items()},
            branches,
            tuple(places),
            has_blocks=bool(self._repeated) or any(each is not None for each in branches),
            names_blocks=bool(self._repeated),
        )
