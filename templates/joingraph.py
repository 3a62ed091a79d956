"""Join graphs and their minors (Hong 2009, sections 6.4.1 and 6.4.2).

A join graph has a tree for each operand of an operator: one node for each node of its tree
pattern, labelled with its variable.  Value-join edges connect nodes of the two trees; residual
edges connect any two nodes.  A single block is a graph with one tree.

`reduce` takes the minor: what remains are the nodes that are joined, compared or shown, and the
least common ancestors of those.  It is what templates are made of.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["GraphNode", "JoinGraph", "NodeRef", "ResidualEdge", "Side", "reduce"]

LEFT, RIGHT = 0, 1
Side = int
NodeRef = tuple[Side, int]
"""A node: the side that it is on, and its index there."""


class GraphNode(NamedTuple):
    """A node of one side: its variable, and the index of the node above it (-1 for the root).

    `is_kept` says that the node must survive the reduction though it joins nothing: a block
    root, or a variable that is selected or held against a constant.
    """

    variable: int
    parent: int
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class ResidualEdge:
    """A comparison of two nodes' string values, `=` or `!=`, other than a value join."""

    left: NodeRef
    operator: str
    right: NodeRef


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """The join graph of one operator under one conjunction of its predicate.

    In each side parents stand before children.  `value_joins` are pairs of indexes, (left node,
    right node).  Without a right side, `sides` has one element and there are no value joins.
    """

    sides: tuple[tuple[GraphNode, ...], ...]
    value_joins: tuple[tuple[int, int], ...] = ()
    residuals: tuple[ResidualEdge, ...] = ()

    def joined(self, side: Side) -> set[int]:
        """Return the nodes of a side that take part in value joins or residuals."""
        nodes = {pair[side] for pair in self.value_joins}
        for edge in self.residuals:
            for end in (edge.left, edge.right):
                if end[0] == side:
                    nodes.add(end[1])
        return nodes


def reduce(graph: JoinGraph) -> tuple[JoinGraph, tuple[dict[int, int], ...]]:
    """Return the minor of a join graph, and for each side where the surviving nodes went.

    A side in which nothing is needed keeps its root alone.
    """
    sides: list[tuple[GraphNode, ...]] = []
    moved: list[dict[int, int]] = []
    for side, nodes in enumerate(graph.sides):
        needed = graph.joined(side)
        needed.update([i for i, node in enumerate(nodes) if node.is_kept])
        survivors = _with_common_ancestors(nodes, needed or {0})
        places = {old: new for new, old in enumerate(survivors)}
        kept: list[GraphNode] = []
        for variable, parent, is_kept in [nodes[old] for old in survivors]:
            while parent >= 0 and parent not in places:
                parent = nodes[parent].parent
            kept.append(GraphNode(variable, places.get(parent, -1), is_kept))
        sides.append(tuple(kept))
        moved.append(places)
    minor = JoinGraph(
        tuple(sides),
        tuple([(moved[LEFT][a], moved[RIGHT][b]) for a, b in graph.value_joins]),
        tuple([_move(edge, moved) for edge in graph.residuals]),
    )
    return minor, tuple(moved)


def _with_common_ancestors(nodes: tuple[GraphNode, ...], needed: Set[int]) -> list[int]:
    """Return the needed nodes and the least common ancestors of any of them, in order."""
    branches = [0] * len(nodes)
    survivors: list[int] = []
    # Children stand behind their parents, so one walk from the back counts the branches.
    for i in range(len(nodes) - 1, -1, -1):
        is_needed, below = i in needed, branches[i]
        if is_needed or below > 1:
            survivors.append(i)
        if is_needed or below:
            parent = nodes[i].parent
            if parent >= 0:
                branches[parent] += 1
    return survivors[::-1]


def _move(edge: ResidualEdge, moved: list[dict[int, int]]) -> ResidualEdge:
    left, right = ((side, moved[side][node]) for side, node in (edge.left, edge.right))
    return ResidualEdge(left, edge.operator, right)
