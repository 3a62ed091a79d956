"""Tuples of one subscriber's query, gathered into matches.

A match is one assignment of visible nodes over one tuple of documents; its witness tuples are the
different assignments of the compared variables that go with it (semantics, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from broker.matching.fanout import BoundNode, FoundTuple, Subscriber
from broker.matching.match import Match, MatchDocument, MatchNode, match_id
from joins import Instance
from xscl.output import build
from xscl.query import SelectAll

__all__ = ["WITNESSES_MAX", "MatchBuilder"]

WITNESSES_MAX = 1_000
"""Witness tuples listed in a match; the rest is counted (semantics, section 6)."""

Witness = tuple[tuple[str, BoundNode], ...]


LONG = 1_000
"""Characters from which on equal values are held once, however often they have been read."""


@dataclass(slots=True)
class _Gathered:
    """What a match needs of its tuples: not their instances, whose values may be long."""

    docid: int
    start_us: int
    end_us: int
    witnesses: set[Witness] = field(default_factory=set)


class MatchBuilder:
    """Gathers the tuples of a query's root within one batch."""

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        query = subscriber.query
        self._order = sorted(query.variables, key=lambda variable: variable.block)
        self._gathered: dict[tuple[Any, ...], _Gathered] = {}
        self._long: dict[str, str] = {}

    def add(self, found: FoundTuple) -> bool:
        """Add one tuple; return whether it begins a match."""
        visible = tuple(found.nodes[v].number for v in self.subscriber.query.visible())
        key = found.leaves, visible
        gathered = self._gathered.get(key)
        is_new = gathered is None
        if gathered is None:
            gathered = _Gathered(found.docid, found.start_us, found.end_us)
            self._gathered[key] = gathered
        gathered.witnesses.add(
            tuple(
                (variable.name, self._held(found.nodes[variable.name]))
                for variable in self._order
                if variable.name in found.clause.compared
            )
        )
        return is_new

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
        for leaves, _ in self._gathered:
            yield from leaves

    def build(
        self,
        documents: Mapping[int, Instance],
        root_of: Callable[[Instance], etree._Element],
        is_wanted: Callable[[str], bool],
    ) -> Iterator[tuple[Match, list[Instance]]]:
        """Yield each match whose id is wanted with its documents.

        Their root elements are asked for only then.
        """
        for (leaves, visible), gathered in self._gathered.items():
            behind = [documents[leaf] for leaf in leaves]
            name = self._id(visible, behind)
            if is_wanted(name):
                trees = list(map(root_of, behind))
                yield self._match(name, gathered, visible, behind, trees), behind

    def _id(self, numbers: Sequence[int], behind: Sequence[Instance]) -> str:
        query, parameters = self.subscriber.query, self.subscriber.parameters
        keys = [(document.stream, document.key) for document in behind]
        return match_id(query.id, query.version, parameters, keys, numbers)

    def _match(
        self,
        name: str,
        gathered: _Gathered,
        numbers: Sequence[int],
        behind: Sequence[Instance],
        trees: Sequence[etree._Element],
    ) -> Match:
        query = self.subscriber.query
        blocks = {variable.name: variable.block for variable in query.variables}
        visible = {
            v: (blocks[v], number) for v, number in zip(query.visible(), numbers, strict=True)
        }
        shown = () if isinstance(query.select, SelectAll) else query.select.variables
        output, error = build(
            query, trees, visible, gathered.start_us, gathered.end_us, self.subscriber.parameters
        )
        witnesses = sorted(gathered.witnesses, key=self._numbers)
        return Match(
            id=name,
            query=query.id,
            start_us=gathered.start_us,
            end_us=gathered.end_us,
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
