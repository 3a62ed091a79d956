"""The tuples of one class on one signature, found without a statement.

A statement of the database takes milliseconds, whatever it finds, and most signatures are of few
classes: to go through the atoms of a class's conjunctive query takes some 10 µs.  Value joins come
first, then edges, each of which has an end with a node already where one can be had.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from joins.memory.shapes import Shapes
from templates.queryclass import QueryClass
from templates.template import Template
from xpath_eval.shape import Edge

__all__ = ["PairsOfNodes", "ShapeEdges", "assignments"]

_NO_NODE = -1
"""Stands for the node of a meta-variable that has none yet."""

_TEMPLATES = 1_000
"""Templates whose steps are kept."""

_SHAPES = 4_096
"""Shapes whose edges are kept by variables, some 20 KB each; then all are made again."""


class _AtomStep(NamedTuple):
    """An atom: two meta-variables, and whose it is: of value joins, or of the edges of a side."""

    relation: int
    first: int
    second: int


_JOINS, _LEFT, _RIGHT = range(3)


@lru_cache(maxsize=_TEMPLATES)
def _steps(template: Template) -> tuple[_AtomStep, ...]:
    """Return the atoms of a template's query in an order in which they are gone through."""
    joined = {node for pair in template.value_joins for node in pair}
    parents = set(template.parents)
    edges: list[_AtomStep] = []
    for node, parent in enumerate(template.parents):
        relation = _LEFT if node < template.left_size or not template.has_right else _RIGHT
        if parent >= 0:
            edges.append(_AtomStep(relation, parent, node))
        elif node not in parents and node not in joined:
            edges.append(_AtomStep(relation, node, node))
    steps = [_AtomStep(_JOINS, left, right) for left, right in template.value_joins]
    assigned = set(joined)
    while edges:
        near = (edge for edge in edges if {edge.first, edge.second} & assigned)
        chosen = next(near, edges[0])
        edges.remove(chosen)
        steps.append(chosen)
        assigned |= {chosen.first, chosen.second}
    return tuple(steps)


class PairsOfNodes:
    """The pairs of nodes that stand in a relation, by the two variables that bind them."""

    def __init__(self, rows: Iterable[Edge]) -> None:
        self._pairs: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for first, second, *nodes in rows:
            self._pairs[first, second].append((nodes[0], nodes[1]))
        self._having: dict[tuple[int, int, bool], dict[int, list[tuple[int, int]]]] = {}

    def of(self, variables: tuple[int, int], first: int, second: int) -> Sequence[tuple[int, int]]:
        """Return the pairs under two variables, with a first or a second node if one is given."""
        pairs = self._pairs.get(variables, ())
        if not pairs or first == second == _NO_NODE:
            return pairs
        by_second = first == _NO_NODE
        having = self._having.get((*variables, by_second))
        if having is None:
            having = self._having[(*variables, by_second)] = defaultdict(list)
            for pair in pairs:
                having[pair[by_second]].append(pair)
        found = having.get(second if by_second else first, ())
        if _NO_NODE in (first, second):
            return found
        return [pair for pair in found if pair[1] == second]


def assignments(
    query_class: QueryClass, relations: Sequence[PairsOfNodes], most: int
) -> list[tuple[int, ...]] | None:
    """Return the tuples of a class: a node for each of its meta-variables.

    `relations` are the nodes with equal values, and the edges of the left and of the right side.
    None where there are more than `most` on the way: of several value joins the pairs multiply.
    """
    template, variables = query_class.template, query_class.row.variables
    found = [[_NO_NODE] * template.size]
    for which, first, second in _steps(template):
        asked, relation = (variables[first], variables[second]), relations[which]
        longer: list[list[int]] = []
        for nodes in found:
            for pair in relation.of(asked, nodes[first], nodes[second]):
                if first == second and pair[0] != pair[1]:
                    continue
                more = nodes.copy()
                more[first], more[second] = pair
                longer.append(more)
            if len(longer) > most:
                return None
        found = longer
        if not found:
            return []
    return [*map(tuple, found)]


class ShapeEdges:
    """The edges of shapes as pairs of nodes."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._edges: dict[int, PairsOfNodes] = {}
        shapes.watch(self._forget)

    def _forget(self, shapes: Iterable[int]) -> None:
        for shape in shapes:
            self._edges.pop(shape, None)

    def of(self, shape: int) -> PairsOfNodes:
        """Return the edges of a shape."""
        found = self._edges.get(shape)
        if found is None:
            if len(self._edges) >= _SHAPES:
                self._edges.clear()
            found = self._edges[shape] = PairsOfNodes(self._shapes[shape].edges)
        return found
