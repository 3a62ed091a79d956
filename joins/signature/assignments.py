"""The tuples of one class on one signature, found without a statement.

A statement of the database takes milliseconds, whatever it finds, and most signatures are of few
classes.  Where each variable of a class binds one node there is one choice of nodes, which holds
if the edges are there: some 3 µs.  Else the atoms of the class's conjunctive query are gone
through, some 10 µs: value joins come first, then edges, each of which has an end with a node
already where one can be had.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from joins.memory.shapes import Shape, Shapes
from templates.queryclass import QueryClass
from templates.template import Template

__all__ = ["NodePair", "PairsOfNodes", "ShapeNodes", "ShapesNodes", "assignments"]

_NO_NODE = -1
"""Stands for the node of a meta-variable that has none yet."""

_SEVERAL = -2
"""Stands for the nodes of a variable that binds more than one."""

NodePair = tuple[int, int]

_TEMPLATES = 1_000
"""Templates whose steps are kept."""

_SHAPES = 4_096
"""Shapes whose nodes are kept by variables, some 20 KB each; then all are made again."""


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

    def __init__(self, pairs: Mapping[tuple[int, int], Sequence[NodePair]]) -> None:
        self.pairs = pairs
        self._having: dict[tuple[int, int, bool], dict[int, list[NodePair]]] = {}

    def of(self, variables: tuple[int, int], first: int, second: int) -> Sequence[NodePair]:
        """Return the pairs under two variables, with a first or a second node if one is given."""
        pairs = self.pairs.get(variables, ())
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


class ShapeNodes:
    """The nodes of a shape by the variables that bind them."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.binding = shape.binding

    @cached_property
    def nodes(self) -> dict[int, int]:
        """The node that each variable binds; `_SEVERAL` where these are more."""
        found: dict[int, int] = {}
        for node, variables in self.binding.items():
            for variable in variables:
                found[variable] = _SEVERAL if variable in found else node
        return found

    @cached_property
    def edges(self) -> PairsOfNodes:
        """The edges of the shape."""
        pairs: dict[tuple[int, int], list[NodePair]] = defaultdict(list)
        for first, second, *nodes in self._shape.edges:
            pairs[first, second].append((nodes[0], nodes[1]))
        return PairsOfNodes(pairs)


def assignments(
    query_class: QueryClass, equal: PairsOfNodes, sides: tuple[ShapeNodes, ShapeNodes], most: int
) -> list[tuple[int, ...]] | None:
    """Return the tuples of a class whose value joins all hold: a node for each meta-variable.

    None where there are more than `most` on the way: of several value joins the pairs multiply.
    """
    template, variables = query_class.template, query_class.row.variables
    size, (left, right) = template.left_size, sides
    of_left, of_right = left.nodes.__getitem__, right.nodes.__getitem__
    try:
        nodes = (*map(of_left, variables[:size]), *map(of_right, variables[size:]))
    except KeyError:
        return []
    if _SEVERAL in nodes:
        return _gone_through(template, variables, (equal, left.edges, right.edges), most)
    edges = left.edges.pairs, right.edges.pairs
    for first, second in template.edges:
        edge = variables[first], variables[second]
        if edge not in edges[second >= size] and not _is_joined_alone(template, first, second):
            return []
    return [nodes]


def _is_joined_alone(template: Template, first: int, second: int) -> bool:
    """Return whether an edge is that of a node with itself, which a value join says to be there."""
    return first == second and any(first in pair for pair in template.value_joins)


def _gone_through(
    template: Template, variables: Sequence[int], relations: Sequence[PairsOfNodes], most: int
) -> list[tuple[int, ...]] | None:
    """Return what `assignments` does, by an atom after the other of the template's query."""
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


class ShapesNodes:
    """The nodes of shapes by variables, kept for the shapes that were asked for of late."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._kept: dict[int, ShapeNodes] = {}
        shapes.watch(self._forget)

    def _forget(self, shapes: Iterable[int]) -> None:
        for shape in shapes:
            self._kept.pop(shape, None)

    def of(self, shape: int) -> ShapeNodes:
        """Return the nodes of a shape."""
        found = self._kept.get(shape)
        if found is None:
            if len(self._kept) >= _SHAPES:
                self._kept.clear()
            found = self._kept[shape] = ShapeNodes(self._shapes[shape])
        return found
