"""Tuples of one subscriber's query, gathered into matches.

A match is one assignment of visible nodes over one tuple of documents; its witness tuples are the
different assignments of the compared variables that go with it (semantics, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.matching.budget import Tally
from broker.matching.fanout import BoundNode, FoundTuple, Subscriber
from broker.matching.match import Match, MatchDocument, MatchNode, match_id
from broker.matching.trees import DocumentTree
from joins import Instance
from templates.clause import Clause
from xscl.meter import ExhaustedError, Meter, size
from xscl.output import build
from xscl.query import Constructor, Query, SelectAll
from xscl.sequence import units_of

__all__ = ["WITNESSES_MAX", "MatchBuilder"]

WITNESSES_MAX = 1_000
"""Witness tuples listed in a match; the rest is counted (semantics, section 6)."""

PUBLISHED_COST = 7
"""What a byte of output costs besides where it is published: it is evaluated as a document."""

LONG = 1_000
"""Characters from which on equal values are held once, however often they have been read."""

Witness = tuple[tuple[str, BoundNode], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """What matches over documents of some blocks have in common.

    `visible` and `roots` are variables, `places` the place of each variable's document among them.
    `branches` has for each document its branch, None where its block is the only one there.
    """

    visible: tuple[str, ...]
    roots: tuple[str, ...]
    places: Mapping[str, int]
    branches: tuple[int | None, ...]

    @classmethod
    def of(cls, query: Query, blocks: Sequence[int]) -> _Form:
        """Return the form of a query's matches over documents of these blocks, in order."""
        place_of = {block: place for place, block in enumerate(blocks)}
        places = {v.name: place_of[v.block] for v in query.variables if v.block in place_of}
        roots = tuple(query.blocks[block].root for block in blocks)
        selected = () if isinstance(query.select, SelectAll) else query.select.variables
        visible = (*roots, *(v for v in selected if v in places))
        branches = tuple(
            unit.index(block) if len(unit) > 1 else None
            for unit, block in zip(units_of(query.root), blocks, strict=True)
        )
        return cls(tuple(dict.fromkeys(visible)), roots, places, branches)


@dataclass(slots=True)
class _Gathered:
    """The parts of its tuples that a match needs; their instances may have long values."""

    docid: int
    start_us: int
    end_us: int
    form: _Form
    witnesses: set[Witness] = field(default_factory=set)


class MatchBuilder:
    """Gathers the tuples of a query's root within one batch."""

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        query = subscriber.query
        self._order = sorted(query.variables, key=lambda variable: variable.block)
        self._labels = {variable.name: variable.label for variable in query.variables}
        self._forms: dict[tuple[int, ...], _Form] = {}
        self._is_constructed = isinstance(query.select, Constructor)
        self._compared: dict[Clause, list[str]] = {}
        self._gathered: dict[tuple[Any, ...], _Gathered] = {}
        self._long: dict[str, str] = {}

    def add(self, found: FoundTuple) -> bool:
        """Add one tuple; return whether it begins a match."""
        nodes, blocks = found.nodes, found.clause.blocks
        form = self._forms.get(blocks)
        if form is None:
            form = self._forms[blocks] = _Form.of(self.subscriber.query, blocks)
        key = found.leaves, tuple([nodes[v].number for v in form.visible]), form.branches
        gathered = self._gathered.get(key)
        is_new = gathered is None
        if gathered is None:
            gathered = _Gathered(found.docid, found.start_us, found.end_us, form)
            self._gathered[key] = gathered
        compared = self._compared.get(found.clause)
        if compared is None:
            compared = self._order_compared(found.clause)
        gathered.witnesses.add(tuple([(name, self._held(nodes[name])) for name in compared]))
        return is_new

    def _order_compared(self, clause: Clause) -> list[str]:
        """Return the variables of a clause's witness tuples in the order of the match line."""
        compared = [
            each.name
            for each in self._order
            if each.name in clause.compared and each.block in clause.blocks
        ]
        self._compared[clause] = compared
        return compared

    def _held(self, node: BoundNode) -> BoundNode:
        """Return a node with a value that is held once."""
        if node.value is None or len(node.value) < LONG:
            return node
        return BoundNode(node.number, self._long.setdefault(node.value, node.value))

    def drop_from(self, docid: int) -> None:
        """Forget the matches of a document and of later ones."""
        self._gathered = {
            key: gathered for key, gathered in self._gathered.items() if gathered.docid < docid
        }

    def leaves(self) -> Iterator[int]:
        """Yield the documents of all matches."""
        for leaves, *_ in self._gathered:
            yield from leaves

    def build(
        self,
        documents: Mapping[int, Instance],
        tree_of: Callable[[Instance], DocumentTree],
        is_wanted: Callable[[str], bool],
        tally: Tally,
    ) -> Iterator[tuple[Match, list[Instance]]]:
        """Yield each match whose id is wanted with its documents, as far as its budget goes.

        Trees are made for wanted matches only.  A document whose matches go over the budget stops
        the tally; some of its matches may have been yielded before.
        """
        # Matches of one document in a row: its partners are read once.
        for (leaves, visible, _), gathered in sorted(
            self._gathered.items(), key=lambda item: (item[1].docid, item[0][0])
        ):
            if gathered.docid >= tally.limit:
                return
            behind = [documents[leaf] for leaf in leaves]
            name = self._id(visible, behind, gathered.form)
            if is_wanted(name):
                meter = Meter(tally.left(gathered.docid))
                try:
                    trees = [
                        self._read(one, tree_of, gathered.docid, tally, meter) for one in behind
                    ]
                    match = self._match(name, gathered, visible, behind, trees, meter)
                except ExhaustedError:
                    tally.spend(gathered.docid, meter.spent)
                    continue
                tally.spend(gathered.docid, meter.spent)
                tally.keep(gathered.docid, size(match.output))
                yield match, behind

    def _read(
        self,
        document: Instance,
        tree_of: Callable[[Instance], DocumentTree],
        newest: int,
        tally: Tally,
        meter: Meter,
    ) -> DocumentTree:
        """Return a document's tree.

        All matches with one newest document pay for it together; each that has a constructor pays
        for its text again, as it may go through all of it.
        """
        tree = tree_of(document)
        if tally.reads(newest, document.instance):
            meter.spend(tree.cost + (tree.xpath_cost if self._is_constructed else 0))
        if self._is_constructed:
            meter.spend(tree.nbytes)
        return tree

    def _id(self, numbers: Sequence[int], behind: Sequence[Instance], form: _Form) -> str:
        query, parameters = self.subscriber.query, self.subscriber.parameters
        keys = [
            (each.stream, each.key) if branch is None else (each.stream, each.key, branch)
            for each, branch in zip(behind, form.branches, strict=True)
        ]
        return match_id(query.id, query.version, parameters, keys, numbers)

    def _match(
        self,
        name: str,
        gathered: _Gathered,
        numbers: Sequence[int],
        behind: Sequence[Instance],
        trees: Sequence[DocumentTree],
        meter: Meter,
    ) -> Match:
        query = self.subscriber.query
        form = gathered.form
        places = form.places
        visible = {v: (places[v], number) for v, number in zip(form.visible, numbers, strict=True)}
        selected = () if isinstance(query.select, SelectAll) else query.select.variables
        shown = [v for v in selected if v in visible]
        output, error = build(
            query,
            trees,
            visible,
            gathered.start_us,
            gathered.end_us,
            self.subscriber.parameters,
            meter,
        )
        if query.publish is not None:
            meter.spend(PUBLISHED_COST * size(output))
        witnesses = sorted(gathered.witnesses, key=self._numbers)
        return Match(
            id=name,
            query=query.id,
            start_us=gathered.start_us,
            end_us=gathered.end_us,
            documents=tuple(_documents(behind, form.branches)),
            roots=tuple(visible[root][1] for root in form.roots),
            nodes={v: MatchNode(*visible[v]) for v in shown},
            witnesses=tuple(self._render(w, places) for w in witnesses[:WITNESSES_MAX]),
            witnesses_omitted=max(0, len(witnesses) - WITNESSES_MAX),
            parameters=dict(self.subscriber.parameters),
            output=output,
            output_error=error,
        )

    def _numbers(self, witness: Witness) -> list[int]:
        """Order witnesses by node numbers; -1 where an OR's alternative has no such node."""
        nodes = {variable: node.number for variable, node in witness}
        return [nodes.get(variable.name, -1) for variable in self._order]

    def _render(self, witness: Witness, places: Mapping[str, int]) -> dict[str, MatchNode]:
        labels = self._labels
        return {
            labels[variable]: MatchNode(places[variable], node.number, node.value)
            for variable, node in witness
        }


def _documents(
    behind: Sequence[Instance], branches: Sequence[int | None]
) -> Iterator[MatchDocument]:
    """Yield the documents of a match; they have places where some unit has alternatives."""
    is_placed = any(branch is not None for branch in branches)
    for place, (each, branch) in enumerate(zip(behind, branches, strict=True)):
        block = place if is_placed else None
        yield MatchDocument(each.docid, each.stream, each.key, each.end_us, block, branch)
