"""What matches over documents of the same blocks have in common: where their nodes are.

A tuple has a document for each block, and of a repetition one for each element.  A repetition
stands in a clause as the first block of its unit, and in the tuple as a run (`xscl.runvalues`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring

from xscl.query import Query, SelectAll, Variable
from xscl.runvalues import Run
from xscl.sequence import Repetition, nodes_below, units_of

__all__ = ["MatchForm", "MatchForms"]


@dataclass(frozen=True, slots=True, eq=False)
class MatchForm:
    """The form of matches: which block and which branch each document has, in order.

    `visible` are variables, each with the place of its document among them; of a repeated variable
    there is one for each element.  `sources` have the run of each of these, None where it stands in
    none, and its element there.  `roots` are those of the documents, by their index there, and
    `indices` those of each variable.  `units` are the places of the documents' units, and
    `branches` say which alternatives they are, None where a unit has one only.  `runs` are the
    places of each run, `missing` the units that were lost, each with its block.  `order` has all
    variables of the query, block by block, and `labels` begin the spelling of a node of each of
    them; `shown` are the variables that the SELECT mentions.
    """

    query: Query
    order: tuple[Variable, ...]
    labels: tuple[str, ...]
    shown: tuple[tuple[str, str], ...]
    visible: tuple[tuple[str, int], ...]
    sources: tuple[tuple[str, int | None, int], ...]
    roots: tuple[int, ...]
    indices: Mapping[str, tuple[int, ...]]
    units: tuple[int, ...]
    unit_of: Mapping[str, int]
    branches: tuple[int | None, ...]
    runs: tuple[range, ...]
    has_blocks: bool
    names_blocks: bool
    missing: tuple[tuple[int, int], ...]

    @property
    def spelling(self) -> Hashable:
        """What lines of this form say alike, beside their query, with those of an equal one."""
        places = tuple([place for _, place in self.visible])
        shown = tuple([(label, self.indices[name]) for name, label in self.shown])
        blocks = self.units, self.branches, self.runs, self.has_blocks, self.names_blocks
        streams = tuple([self.query.blocks[block].stream for _, block in self.missing])
        which = self.query.is_ordered, self.query.has_confidence, self.missing, streams
        return self.labels, self.roots, places, shown, blocks, which

    def run_at(self, place: int) -> range | None:
        """Return the places of the run that has a document."""
        return next((run for run in self.runs if place in run), None)

    def numbers(self, nodes: Mapping[str, int], runs: Sequence[Run]) -> list[int]:
        """Return the node of each visible variable in a tuple with these nodes and runs."""
        return [
            nodes[name] if run is None else runs[run].elements[at].terms[name].node
            for name, run, at in self.sources
        ]


class MatchForms:
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
        self._lossy = [b for b in self._place_of if query.blocks[b].loss is not None]
        self._forms: dict[tuple[tuple[int, ...], ...], MatchForm] = {}

    def run_terms(self, blocks: Sequence[int]) -> list[str]:
        """Return the terms of tuples of some blocks whose values are runs."""
        return [f"+{block}" for block in blocks if block in self._repeated]

    def of(self, blocks: tuple[int, ...], runs: Sequence[Run]) -> MatchForm:
        """Return the form of tuples of a clause's blocks with these runs."""
        elements = [tuple([element.block for element in run.elements]) for run in runs]
        key = (blocks, *elements)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._make(blocks, elements)
        return form

    def _make(self, blocks: tuple[int, ...], elements: Sequence[tuple[int, ...]]) -> MatchForm:
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
        index_of = {each: i for i, each in enumerate(visible)}
        run_of = {place: (i, at) for i, run in enumerate(places) for at, place in enumerate(run)}
        indices: dict[str, list[int]] = {}
        for i, (name, _) in enumerate(visible):
            indices.setdefault(name, []).append(i)
        in_order = {n: sorted(at, key=lambda i: visible[i][1]) for n, at in indices.items()}
        branches = tuple([self._branch_of[block] for block in own])
        names_blocks = bool(self._repeated or self._lossy)
        unit_of = {name: self._place_of[own[at[0]]] for name, at in bound.items()}
        order = tuple(sorted(query.variables, key=lambda variable: variable.block))
        labels = {v.name: _label(v, unit_of[v.name]) for v in query.variables if v.name in unit_of}
        named = dict.fromkeys(selected)
        return MatchForm(
            query,
            order,
            tuple([labels.get(variable.name, "") for variable in order]),
            tuple([(name, labels[name]) for name in named if name in indices]),
            visible,
            tuple([(name, *run_of.get(place, (None, 0))) for name, place in visible]),
            tuple([index_of[root] for root in roots]),
            {name: tuple(at) for name, at in in_order.items()},
            tuple([self._place_of[block] for block in own]),
            unit_of,
            branches,
            tuple(places),
            has_blocks=names_blocks or any(each is not None for each in branches),
            names_blocks=names_blocks,
            missing=tuple([(self._place_of[b], b) for b in self._lossy if b not in own]),
        )


def _label(variable: Variable, unit: int) -> str:
    return f'{encode_basestring(variable.label)}: {{"block": {unit}, "node'
