"""What depends on what among queries: streams that they publish, tables that they read and write.

    table -> guard            of a query that asks the table behind WHERE or HAVING
    guard -> stream -> guard  a match is published, and read by another query
    guard -> actions <-> table

The guard of a query says which of its candidates are matches; of one that asks no table, all are.
Nodes that reach each other are one group.  `docs/rules.md` has the theory.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from xscl.query import Query

__all__ = ["Node", "NodeKind", "dependencies", "groups"]


class NodeKind(enum.Enum):
    """What a node stands for."""

    GUARD = "guard"
    ACTIONS = "actions"
    TABLE = "table"
    STREAM = "stream"


class Node(NamedTuple):
    """A part of a query, by the query's id; or a table or a stream, by its name."""

    part: NodeKind
    name: str


Edges = Mapping[Node, Sequence[Node]]
"""For each node the nodes that depend on it."""


def dependencies(queries: Iterable[Query]) -> dict[Node, list[Node]]:
    """Return for each node of some queries the nodes that depend on it."""
    queries = list(queries)
    published = {query.publish for query in queries if query.publish is not None}
    edges: dict[Node, list[Node]] = {}

    def lead(start: Node, end: Node) -> None:
        edges.setdefault(start, []).append(end)
        edges.setdefault(end, [])

    for query in queries:
        guard, actions = Node(NodeKind.GUARD, query.id), Node(NodeKind.ACTIONS, query.id)
        edges.setdefault(guard, [])
        for stream in sorted(published.intersection(each.stream for each in query.blocks)):
            lead(Node(NodeKind.STREAM, stream), guard)
        if query.publish is not None:
            lead(guard, Node(NodeKind.STREAM, query.publish))
        for table in sorted(query.guards):
            lead(Node(NodeKind.TABLE, table), guard)
        if query.actions:
            lead(guard, actions)
            written = {use.table for use in query.tables if use.is_written}
            for table in sorted(query.table_names):
                lead(Node(NodeKind.TABLE, table), actions)
                if table in written:
                    lead(actions, Node(NodeKind.TABLE, table))
    return edges


def groups(edges: Edges) -> list[list[Node]]:
    """Return the nodes that reach each other, together; each group behind those it depends on.

    These are the strong components of the graph, by R. Tarjan's algorithm of 1972.
    """
    found: list[list[Node]] = []
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    open_nodes: dict[Node, None] = {}
    for start in edges:
        if start in index:
            continue
        way: list[tuple[Node, Iterator[Node]]] = [(start, iter(edges[start]))]
        index[start] = low[start] = len(index)
        open_nodes[start] = None
        while way:
            node, ahead = way[-1]
            for each in ahead:
                if each not in index:
                    index[each] = low[each] = len(index)
                    open_nodes[each] = None
                    way.append((each, iter(edges[each])))
                    break
                if each in open_nodes:
                    low[node] = min(low[node], index[each])
            else:
                way.pop()
                if way:
                    low[way[-1][0]] = min(low[way[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(_closed(open_nodes, node))
    return found[::-1]


def _closed(open_nodes: dict[Node, None], first: Node) -> list[Node]:
    group: list[Node] = []
    while not group or group[-1] != first:
        group.append(open_nodes.popitem()[0])
    return group
