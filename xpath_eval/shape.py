"""Witness shapes, and how one is filled from a document.

A shape's edges are columns of numbers, not rows of objects: with ten thousand patterns a document
of four kilobytes has thousands of edges, and rows would cost more than finding them.

Two raw shapes with the same witnesses have the same shape: nodes are numbered by their order in
the document, and edges stand in one order, so that the digest of the columns is the shape's id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from xpath_eval.structure import NodeTree, Structure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[np.int32]
    Numbers = NDArray[np.int64]

__all__ = [
    "Bound",
    "DerivedValues",
    "Edge",
    "Labels",
    "Shape",
    "ShapeCollector",
    "Witnesses",
    "gather",
]

Bound = int | tuple[int, int, int]
"""What a variable is bound to: a node, or value number i of variable d at a node (n, d, i)."""

Edge = tuple[int, int, int, int]
"""Two variables and the nodes that they bind in a shape, one below the other."""

DerivedValues = Mapping[tuple[int, int], Sequence[str]]
"""The values of each derived variable at each node."""


class Shape:
    """A witness shape: edges (var1, var2, node1, node2) over its own node positions."""

    __slots__ = ("__dict__", "columns", "id")

    def __init__(self, columns: tuple[Column, Column, Column, Column]) -> None:
        self.columns = columns
        digest = hashlib.blake2b(digest_size=12)
        var1, var2, node1, node2 = columns
        digest.update(b"%d %d" % (var1 is not var2, len(var1)))
        digest.update(var2.tobytes())
        digest.update(node2.tobytes())
        # Where a variable is its own context, as with most of very many, half says it all.
        if var1 is not var2:
            digest.update(var1.tobytes())
            digest.update(node1.tobytes())
        self.id = digest.hexdigest()

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The edges as rows."""
        return tuple(zip(*(column.tolist() for column in self.columns), strict=True))

    def __len__(self) -> int:
        return len(self.columns[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Shape({self.edges!r})"


class Witnesses(NamedTuple):
    """The witnesses of one document: its shape, and the number and value of each shape node."""

    shape: Shape
    nodes: tuple[int, ...]
    values: tuple[str | None, ...]


class Labels(NamedTuple):
    """Which variables bind which elements by themselves: edges from a variable to itself.

    `valued` are those of the elements whose values are wanted.
    """

    variables: Column
    elements: Numbers
    valued: Sequence[int]


@dataclass(frozen=True, slots=True)
class ShapeCollector:
    """A witness shape, and how to fill it from a document.

    `leaves[i]` is the element without children whose text is the value of the shape's node i, or
    -1 where the value is none or comes from `others`: (i, kind, number, detail).
    """

    shape: Shape
    nodes: tuple[int, ...]
    leaves: tuple[int, ...]
    others: tuple[tuple[int, str, int, object], ...]

    def values(self, tree: NodeTree, derived: DerivedValues) -> tuple[str | None, ...]:
        """Return the value of each node of the shape in a document."""
        found = tree.values(self.leaves)
        for place, kind, number, detail in self.others:
            found[place] = _value(tree, derived, kind, number, detail)
        return tuple(found)


def _value(
    tree: NodeTree,
    derived: DerivedValues,
    kind: str,
    number: int,
    detail: object,
) -> str:
    if kind == "derived":
        variable, i = detail  # type: ignore[misc]
        return derived[variable, number][i]  # type: ignore[has-type]
    element = tree.elements[number]
    if kind == "element":
        return "".join(map(str, element.itertext()))
    if kind == "attribute":
        return str(element.attrib[detail])  # type: ignore[index]
    return (element.tail if detail else element.text) or ""


def gather(
    structure: Structure,
    labels: Labels,
    edges: Iterable[tuple[int, int, Bound, Bound]],
    valued: frozenset[int],
) -> ShapeCollector:
    """Put a shape together from the labels of elements and from edges between bound nodes."""
    elements = np.bincount(labels.elements).nonzero()[0]
    labelled: Sequence[Bound] = elements.tolist()
    bound: dict[Bound, bool] = dict.fromkeys(labelled, False)
    bound.update(dict.fromkeys(labels.valued, True))
    distinct = set(edges)
    for var1, var2, node1, node2 in distinct:
        bound[node1] = bound.get(node1, False) or var1 in valued
        bound[node2] = bound.get(node2, False) or var2 in valued
    order: Sequence[Bound] = sorted(bound, key=_bound_order) if distinct else labelled
    place = {node: at for at, node in enumerate(order)} if distinct else {}
    named = sorted((place[n1], v1, place[n2], v2) for v1, v2, n1, n2 in distinct)
    place_of = np.zeros(structure.element_count, np.int32)
    place_of[elements] = [place[e] for e in labelled] if distinct else np.arange(len(labelled))
    shape = Shape(_columns(labels.variables, place_of[labels.elements], named))
    leaves, others = _sources(structure, order, bound)
    nodes = tuple([b[0] if isinstance(b, tuple) else b for b in order])
    return ShapeCollector(shape, nodes, leaves, others)


def _bound_order(bound: Bound) -> tuple[bool, Bound]:
    return isinstance(bound, tuple), bound


def _columns(
    variables: Column, nodes: Column, named: Sequence[tuple[int, int, int, int]]
) -> tuple[Column, Column, Column, Column]:
    """Return the edges as columns: those of labels by element, then the others."""
    if not named:
        return variables, variables, nodes, nodes
    others = np.array(named, np.int32).T
    return (
        np.concatenate([variables, others[1]]),
        np.concatenate([variables, others[3]]),
        np.concatenate([nodes, others[0]]),
        np.concatenate([nodes, others[2]]),
    )


def _sources(
    structure: Structure, order: Sequence[Bound], bound: Mapping[Bound, bool]
) -> tuple[tuple[int, ...], tuple[tuple[int, str, int, object], ...]]:
    leaves = [-1] * len(order)
    others: list[tuple[int, str, int, object]] = []
    if True not in bound.values():
        return tuple(leaves), ()
    for place, node in enumerate(order):
        if not bound[node]:
            continue
        if isinstance(node, tuple):
            others.append((place, "derived", node[0], node[1:]))
        elif structure.is_element(node):
            if structure.children[node]:
                others.append((place, "element", node, None))
            else:
                leaves[place] = node
        elif structure.is_text(node):
            owner, is_tail = structure.texts[node - structure.text_base]
            others.append((place, "text", owner, is_tail))
        else:
            owner, name = structure.attributes[node - structure.element_count]
            others.append((place, "attribute", owner, name))
    return tuple(leaves), tuple(others)
