"""Tuples of one subscriber's query, gathered into matches.

A match is one assignment of visible nodes over one tuple of documents; its witness tuples are the
different assignments of the compared variables that go with it (semantics, section 6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from broker.fanout import BoundNode, Found, Subscriber
from broker.match import Match, MatchDocument, MatchNode, match_id
from joins.instance import Instance
from xscl.output import build
from xscl.query import SelectAll

__all__ = ["WITNESSES_MAX", "MatchBuilder"]

WITNESSES_MAX = 1_000
"""Witness tuples listed in a match; the rest is counted (semantics, section 6)."""

Witness = tuple[tuple[str, BoundNode], ...]


@dataclass(slots=True)
class _Gathered:
    found: Found
    witnesses: set[Witness] = field(default_factory=set)


class MatchBuilder:
    """Gathers the tuples of a query's root within one batch."""

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        query = subscriber.query
        self._order = sorted(query.variables, key=lambda variable: variable.block)
        self._gathered: dict[tuple[Any, ...], _Gathered] = {}

    def add(self, found: Found) -> bool:
        """Add one tuple; return whether it begins a match."""
        visible = tuple(found.nodes[v].number for v in self.subscriber.query.visible())
        matches = len(self._gathered)
        gathered = self._gathered.setdefault((found.leaves, visible), _Gathered(found))
        gathered.witnesses.add(
            tuple(
                (variable.name, found.nodes[variable.name])
                for variable in self._order
                if variable.name in found.clause.compared
            )
        )
        return len(self._gathered) > matches

    def drop_from(self, docid: int) -> None:
        """Forget the matches of a document and of later ones."""
        self._gathered = {
            key: gathered
            for key, gathered in self._gathered.items()
            if gathered.found.docid < docid
        }

    def leaves(self) -> Iterator[int]:
        """Yield the documents of all matches."""
        for leaves, _ in self._gathered:
            yield from leaves

    def build(
        self, documents: Mapping[int, Instance], roots: Mapping[int, etree._Element]
    ) -> Iterator[tuple[Match, list[Instance]]]:
        """Yield each match with its documents; `roots` has the root element of every document."""
        for (leaves, _), gathered in self._gathered.items():
            behind = [documents[leaf] for leaf in leaves]
            yield self._match(gathered, behind, [roots[leaf] for leaf in leaves]), behind

    def _match(
        self, gathered: _Gathered, behind: Sequence[Instance], trees: Sequence[etree._Element]
    ) -> Match:
        query, found = self.subscriber.query, gathered.found
        blocks = {variable.name: variable.block for variable in query.variables}
        visible = {v: (blocks[v], found.nodes[v].number) for v in query.visible()}
        shown = () if isinstance(query.select, SelectAll) else query.select.variables
        output, error = build(
            query, trees, visible, found.start_us, found.end_us, self.subscriber.parameters
        )
        witnesses = sorted(gathered.witnesses, key=self._numbers)
        return Match(
            id=match_id(
                query.id,
                query.version,
                self.subscriber.parameters,
                [(document.stream, document.key) for document in behind],
                [number for _, number in visible.values()],
            ),
            query=query.id,
            start_us=found.start_us,
            end_us=found.end_us,
            documents=tuple(MatchDocument(d.docid, d.stream, d.key, d.end_us) for d in behind),
            roots=tuple(visible[block.root][1] for block in query.blocks),
            nodes={v: MatchNode(*visible[v]) for v in shown},
            witnesses=tuple(self._render(w, blocks) for w in witnesses[:WITNESSES_MAX]),
            witnesses_omitted=max(0, len(witnesses) - WITNESSES_MAX),
            parameters=dict(self.subscriber.parameters),
            output=output,
            output_error=error,
        )

    def _numbers(self, witness: Witness) -> list[int]:
        """Order witnesses by node numbers; -1 where an OR's alternative has no such node."""
        nodes = {variable: node.number for variable, node in witness}
        return [nodes.get(variable.name, -1) for variable in self._order]

    def _render(self, witness: Witness, blocks: Mapping[str, int]) -> dict[str, MatchNode]:
        labels = {variable.name: variable.label for variable in self._order}
        return {
            labels[variable]: MatchNode(blocks[variable], node.number, node.value)
            for variable, node in witness
        }
