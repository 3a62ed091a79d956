"""All matches of all queries: every query over every document, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from broker.documents.document import Document
from broker.matching.match import Match, MatchDocument, MatchNode
from oracle.freshpaths import fresh_paths, with_fresh, without_fresh
from oracle.lines import match_id
from oracle.operators import Rules, Tuple, join, position, variables_of
from oracle.output import build_output
from oracle.paths import Assignment, bindings
from oracle.tree import Node, is_well_formed, parse_tree
from xscl.query import Block, Disjunct, Operator, Query, SelectAll

__all__ = ["InForce", "matches", "matches_of"]

WITNESSES_MAX = 1_000

Witness = tuple[tuple[str, Node], ...]
"""The compared variables of one tuple in order, each with its node."""


@dataclass(frozen=True, slots=True)
class InForce:
    """A query under one assignment, while it is registered: section 7.

    It sees documents above `point`; the newest document of a match is in (`after`, `through`].
    """

    query: Query
    parameters: Mapping[str, Any]
    point: int = 0
    after: int = 0
    through: int = 1 << 62

    def has(self, match: Match) -> bool:
        """Return whether a match was found while the query was in force."""
        return self.after < match.position <= self.through


def matches(
    queries: Sequence[Query],
    documents: Sequence[Document],
    *,
    lateness_us: int,
    assignments: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    registered: Mapping[str, int] | None = None,
) -> list[Match]:
    """Return all matches of queries that stay, sorted by (largest docid, query id, match id).

    `assignments` are the canonical parameters of each parameterised query, `registered` the
    registration points (a query without one sees every document).
    """
    in_force = [
        InForce(query, parameters, (registered or {}).get(query.id, 0))
        for query in queries
        for parameters in _distinct((assignments or {}).get(query.id, ()), query)
    ]
    return matches_of(in_force, documents, lateness_us=lateness_us)


def matches_of(
    in_force: Iterable[InForce], documents: Sequence[Document], *, lateness_us: int
) -> list[Match]:
    """Return the matches of queries that come and go, each once, sorted as `matches` does."""
    streams = _Streams(documents)
    found: dict[str, Match] = {}
    for one in _publishers_first(in_force):
        rules = Rules(one.parameters, lateness_us)
        for match, newest in _query_matches(one.query, streams, rules, one.point):
            if one.has(match) and match.id not in found:
                found[match.id] = match
                streams.publish(one.query, match, newest)
    return sorted(found.values(), key=lambda match: (match.position, match.query, match.id))


def _publishers_first(in_force: Iterable[InForce]) -> Iterator[InForce]:
    """Yield every query after all those whose published streams it reads."""
    waiting = list(in_force)
    while waiting:
        unfinished = {one.query.publish for one in waiting if one.query.publish is not None}
        ready = [
            one
            for one in waiting
            if unfinished.isdisjoint(block.stream for block in one.query.blocks)
        ]
        assert ready, "published streams form a cycle"
        yield from ready
        waiting = [one for one in waiting if one not in ready]


def _distinct(rows: Iterable[Mapping[str, Any]], query: Query) -> list[Mapping[str, Any]]:
    """Return the different assignments of a query; the empty one where it has no parameters."""
    if not query.parameters:
        return [{}]
    distinct: list[Mapping[str, Any]] = []
    for row in rows:
        if row not in distinct:
            distinct.append(row)
    return distinct


class _Streams:
    """The documents of every stream, from outside and published, with their trees."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = [document for document in documents if is_well_formed(document.xml)]
        self._trees: dict[int, Node] = {}

    def read(self, stream: str, point: int) -> list[tuple[Document, Node]]:
        """Return the documents of a stream after a registration point, with their trees."""
        return [
            (document, self._tree(document))
            for document in self._documents
            if document.docid > point
            and (document.depth == 0 if stream == "*" else document.stream == stream)
        ]

    def _tree(self, document: Document) -> Node:
        if id(document) not in self._trees:
            self._trees[id(document)] = parse_tree(document.xml)
        return self._trees[id(document)]

    def publish(self, query: Query, match: Match, documents: Sequence[Document]) -> None:
        """Add a match's output to the stream that its query publishes, if it does."""
        if query.publish is None:
            return
        newest = max(documents, key=position)
        self._documents.append(
            Document(
                docid=newest.docid,
                stream=query.publish,
                key=match.id,
                start_us=match.start_us,
                end_us=match.end_us,
                arrival_us=newest.arrival_us,
                watermark_us=newest.watermark_us,
                xml=match.output.encode(),
                depth=1 + max(document.depth for document in documents),
                match_id=match.id,
            )
        )


def _query_matches(
    query: Query, streams: _Streams, rules: Rules, point: int
) -> list[tuple[Match, tuple[Document, ...]]]:
    """Return the matches of one query under one assignment, each with its documents."""
    found: dict[tuple[Any, ...], tuple[Tuple, set[Witness]]] = {}
    operators = list(query.operators())
    for choice in product(*(operator.disjuncts for operator in operators)):
        compared = _in_order(query, set().union(*map(variables_of, choice)))
        kept = {*compared, *query.visible()}
        blocks = [_bound(block, kept, streams, rules, point) for block in query.blocks]
        alternatives = dict(zip(operators, choice, strict=True))
        for one in _tuples(query.root, alternatives, blocks, rules):
            key = (tuple(map(position, one.documents)), *(one.nodes[v] for v in query.visible()))
            witness = tuple((variable, one.nodes[variable]) for variable in compared)
            found.setdefault(key, (one, set()))[1].add(witness)
    return [
        (_match(query, one, witnesses, rules), one.documents) for one, witnesses in found.values()
    ]


Bound = list[tuple[Document, set[Assignment]]]
"""The documents that a block reads, each with its bindings."""


def _bound(block: Block, kept: set[str], streams: _Streams, rules: Rules, point: int) -> Bound:
    """Bind a block's variables on all its documents, and keep those that the query looks at."""
    own = without_fresh(block.path)
    fresh = [each for each in fresh_paths(block.path) if each.variable in kept]
    return [
        (
            document,
            {
                frozenset((variable, node) for variable, node in assignment if variable in kept)
                for chosen in bindings(own, tree, rules.parameters)
                for assignment in with_fresh(chosen, fresh, rules.parameters)
            },
        )
        for document, tree in streams.read(block.stream, point)
    ]


def _tuples(
    node: Operator | int,
    alternatives: Mapping[Operator, Disjunct],
    blocks: Sequence[Bound],
    rules: Rules,
) -> list[Tuple]:
    """Return the tuples of an operator or a block."""
    if isinstance(node, Operator):
        lefts = _tuples(node.left, alternatives, blocks, rules)
        rights = _tuples(node.right, alternatives, blocks, rules)
        return list(join(node, alternatives[node], lefts, rights, rules))
    return [
        Tuple((document,), dict(nodes), document.start_us, document.end_us, position(document))
        for document, bound in blocks[node]
        for nodes in bound
    ]


def _in_order(query: Query, variables: Iterable[str]) -> list[str]:
    """Sort variables by block, and within a block in the order of the query's text."""
    wanted = set(variables)
    ordered = sorted(query.variables, key=lambda variable: variable.block)
    return [variable.name for variable in ordered if variable.name in wanted]


def _match(query: Query, one: Tuple, witnesses: set[Witness], rules: Rules) -> Match:
    ordered = _sort_witnesses(query, witnesses)
    blocks = {variable.name: variable.block for variable in query.variables}
    labels = {variable.name: variable.label for variable in query.variables}
    visible = {v: (blocks[v], one.nodes[v].number) for v in query.visible()}
    output, error = build_output(query, one.documents, visible, one.start_us, one.end_us)
    return Match(
        id=match_id(
            query.id,
            query.version,
            rules.parameters,
            [(document.stream, document.key) for document in one.documents],
            [number for _, number in visible.values()],
        ),
        query=query.id,
        start_us=one.start_us,
        end_us=one.end_us,
        documents=tuple(MatchDocument(d.docid, d.stream, d.key, d.end_us) for d in one.documents),
        roots=tuple(one.nodes[block.root].number for block in query.blocks),
        nodes={
            labels[v]: MatchNode(*visible[v])
            for v in (() if isinstance(query.select, SelectAll) else query.select.variables)
        },
        witnesses=tuple(
            {labels[v]: MatchNode(blocks[v], node.number, node.value) for v, node in witness}
            for witness in ordered[:WITNESSES_MAX]
        ),
        witnesses_omitted=max(0, len(ordered) - WITNESSES_MAX),
        parameters=dict(rules.parameters),
        output=output,
        output_error=error,
    )


def _sort_witnesses(query: Query, witnesses: set[Witness]) -> list[Witness]:
    """Sort by node numbers in block order; -1 where an alternative of an OR has no such node."""
    variables = _in_order(query, (variable.name for variable in query.variables))

    def numbers(witness: Witness) -> list[int]:
        nodes = {variable: node.number for variable, node in witness}
        return [nodes.get(variable, -1) for variable in variables]

    return sorted(witnesses, key=numbers)
