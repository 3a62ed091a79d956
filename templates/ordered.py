"""Decisions in plain statements, and the alternatives of a plain statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from templates.decision import DecisionKind
from xscl.query import Disjunct, From, Node, Operator

__all__ = [
    "AbsentUnit",
    "Kept",
    "Ordered",
    "PlainNode",
    "blocks_of",
    "choices",
    "operators_of",
    "ordered_nodes",
    "predicates_of",
]

_Disjuncts = tuple[Disjunct, ...]


@dataclass(frozen=True, slots=True)
class AbsentUnit:
    """A unit that must be absent: its blocks, each with the predicate that applies to it."""

    blocks: tuple[tuple[int, _Disjuncts], ...]
    window_us: int


@dataclass(frozen=True, slots=True)
class Ordered:
    """A decision in a plain statement.

    `origin` is its place among the decisions of the query, the same in all plain statements of it.
    `disjuncts` are asked of two operands.
    """

    origin: int
    kind: DecisionKind
    operands: tuple[PlainNode, ...]
    disjuncts: _Disjuncts
    absences: tuple[AbsentUnit, ...]
    window_us: int
    within_us: int


@dataclass(frozen=True, slots=True)
class Kept:
    """What of a decision's tuples is kept: WHERE behind it, which is asked of what was decided."""

    node: Ordered
    where: _Disjuncts


PlainNode = Node | Ordered | Kept
"""A part of a plain statement's source."""


def choices(root: PlainNode) -> list[dict[int, Disjunct]]:
    """Return the alternatives of a plain source: a disjunct for each node, by its identity.

    A block alone may have conditions: then it stands in a From, which has its disjunct.
    """
    nodes = list(_plain_nodes(root))
    chosen = product(*(_disjuncts(node) for node in nodes))
    return [dict(zip(map(id, nodes), each, strict=True)) for each in chosen]


def _disjuncts(node: PlainNode) -> _Disjuncts:
    match node:
        case Operator(disjuncts=disjuncts) | Ordered(disjuncts=disjuncts):
            return disjuncts
        case From(where=where) | Kept(where=where):
            return where or ()
    raise AssertionError(node)


def _plain_nodes(node: PlainNode) -> Iterator[PlainNode]:
    """Yield the nodes of a plain source that have a predicate, inner ones first."""
    below: tuple[PlainNode, ...] = ()
    match node:
        case Ordered(operands=operands):
            below = operands
        case Kept(node=inner):
            below = (inner,)
        case Operator(left=left, right=right):
            below = (left, right)
        case From():
            pass
        case _:
            return
    for each in below:
        yield from _plain_nodes(each)
    yield node


def blocks_of(node: PlainNode) -> Iterator[int]:
    """Yield the blocks of a node's tuples, in order."""
    match node:
        case int():
            yield node
        case Ordered(operands=operands):
            for each in operands:
                yield from blocks_of(each)
        case Operator(left=left, right=right):
            yield from blocks_of(left)
            yield from blocks_of(right)
        case Kept(node=inner) | From(node=inner):
            yield from blocks_of(inner)


def operators_of(root: PlainNode) -> Iterator[Operator]:
    """Yield the operators of a plain source in which nothing is decided, inner ones first."""
    return (each for each in _plain_nodes(root) if isinstance(each, Operator))


def predicates_of(root: PlainNode) -> Iterator[Disjunct]:
    """Yield all disjuncts of a plain source, those of absent units too."""
    for node in _plain_nodes(root):
        yield from _disjuncts(node)
        if isinstance(node, Ordered):
            for unit in node.absences:
                for _, disjuncts in unit.blocks:
                    yield from disjuncts


def ordered_nodes(root: PlainNode) -> Iterator[Ordered]:
    """Yield the decisions of a plain source, inner ones first."""
    return (each for each in _plain_nodes(root) if isinstance(each, Ordered))
