"""Decisions in plain statements, and the alternatives of a plain statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from templates.decision import DecisionKind
from templates.elements import RepeatedUnit, element_operands
from xscl.path import Literal, Parameter, Path
from xscl.query import (
    INFINITE_US,
    Disjunct,
    From,
    Node,
    Operand,
    Operator,
    Residual,
    Strategy,
    VariableValue,
    Window,
    operand_variables,
)

__all__ = [
    "AbsentInChain",
    "AbsentUnit",
    "ChainStep",
    "Chained",
    "Kept",
    "Ordered",
    "PlainNode",
    "Repeated",
    "asked_of_elements",
    "blocks_of",
    "choices",
    "given_us",
    "length_us",
    "mentioned_in",
    "operators_of",
    "ordered_nodes",
    "predicates_of",
]

_Disjuncts = tuple[Disjunct, ...]


@dataclass(frozen=True, slots=True)
class AbsentUnit:
    """A unit that must be absent: its blocks, each with the predicate that applies to it."""

    blocks: tuple[tuple[int, _Disjuncts], ...]
    window_us: int | Parameter


@dataclass(frozen=True, slots=True)
class Ordered:
    """A decision in a plain statement.

    `origin` is its place among the decisions of the query, the same in all plain statements of it.
    `disjuncts` are asked of two operands.  The window is that of the whole tuple, from the start of
    its left part, where it `is_whole`.
    """

    origin: int
    kind: DecisionKind
    operands: tuple[PlainNode, ...]
    disjuncts: _Disjuncts
    absences: tuple[AbsentUnit, ...]
    window_us: int | Parameter
    within_us: int
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class AbsentInChain:
    """A unit that must be absent before a step: what is asked of it, as of an element.

    `compared` are the variables that its conditions compare; `keys` are as in a step.
    """

    step: int
    unit: RepeatedUnit
    asked: _Disjuncts
    compared: frozenset[str]
    keys: tuple[tuple[str, ...], ...]
    window_us: int | Parameter


@dataclass(frozen=True, slots=True)
class Repeated:
    """A repetition in a plain statement: the runs of a unit, behind an operand or without one.

    `begin` is asked of the operand and the first element, `each` of every element, `go_on` (WHILE)
    of every one that a run takes.  `folds` are names with the values at first and with an element.
    `absences` stand between what stands before and the first element.  `keys` are for each block
    its variables of SAME, `left_keys` those of what stands before, and `run_keys` what tuples carry
    of them.  A WITHIN that is a parameter is `given`, besides those that are none.
    """

    origin: int
    unit: RepeatedUnit
    is_next: bool
    operand: PlainNode | None
    begin: _Disjuncts
    each: _Disjuncts
    go_on: _Disjuncts | None
    folds: tuple[tuple[str, Operand, Operand], ...]
    keys: tuple[tuple[str, ...], ...]
    left_keys: tuple[str, ...]
    run_keys: tuple[str, ...]
    gap_us: int | Parameter
    window_us: int | Parameter
    within_us: int
    retention_us: int | Parameter
    absences: tuple[AbsentInChain, ...] = ()
    given_within: Parameter | None = None

    def conditions(self) -> Iterator[Disjunct]:
        """Yield all that is asked."""
        yield from self.begin
        yield from self.further()

    def further(self) -> Iterator[Disjunct]:
        """Yield what is asked however a run begins: keys and FOLD too, as comparisons."""
        there = (Residual(VariableValue(key), "!=", Literal("")) for key in self.left_keys)
        yield Disjunct(residuals=tuple(there))
        yield from self.each_step()
        for _, first, following in self.folds:
            yield Disjunct(residuals=(Residual(first, "=", following),))
        for absent in self.absences:
            yield from absent.asked

    def each_step(self) -> Iterator[Disjunct]:
        """Yield what is asked of every element."""
        yield from self.each
        yield from self.go_on or ()


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A unit or a repetition of a chain under MATCH.

    `block` stands for it in a tuple: the alternative of a unit, the first one of a repetition.
    `begin` is asked of a tuple that is handed on.  While a run goes on, all that it has taken are
    elements, of units too: so `first` is asked of the first element, and `each` of every one.
    `compared` are the variables that conditions of a repetition compare.  `keys` are for each block
    of the unit its variables of SAME, `run_keys` what tuples carry of them.
    """

    unit: RepeatedUnit
    block: int
    is_repeated: bool
    begin: _Disjuncts
    first: _Disjuncts
    each: _Disjuncts
    folds: tuple[tuple[str, Operand, Operand], ...]
    compared: frozenset[str]
    keys: tuple[tuple[str, ...], ...]
    run_keys: tuple[str, ...]
    gap_us: int | Parameter
    window_us: int | Parameter


@dataclass(frozen=True, slots=True)
class Chained:
    """A chain under MATCH NEXT, PARTITION or STRICT in a plain statement.

    `partition` are the paths of SAME, by which PARTITION tells documents apart.  `innermost_us` is
    the innermost WITHIN, for which the first document is remembered where the operators have no
    windows of their own.  If it is a parameter it is `given_within`, besides those that are none.
    """

    origin: int
    strategy: Strategy
    steps: tuple[ChainStep, ...]
    absences: tuple[AbsentInChain, ...]
    partition: tuple[Path, ...]
    within_us: int
    innermost_us: int | Parameter
    given_within: Parameter | None = None

    def conditions(self) -> Iterator[Disjunct]:
        """Yield all that is asked while a run goes on; values of FOLD as comparisons."""
        for step in self.steps:
            yield from step.first
            yield from step.each
            for _, first, following in step.folds:
                yield Disjunct(residuals=(Residual(first, "=", following),))
        for absent in self.absences:
            yield from absent.asked


@dataclass(frozen=True, slots=True)
class Kept:
    """What of a decision's tuples is kept: WHERE behind it, which is asked of what was decided."""

    node: Ordered | Repeated | Chained
    where: _Disjuncts


PlainNode = Node | Ordered | Repeated | Chained | ChainStep | Kept
"""A part of a plain statement's source."""


def choices(root: PlainNode) -> list[dict[int, Disjunct]]:
    """Return the alternatives of a plain source: a disjunct for each node, by its identity.

    A block alone may have conditions: then it stands in a From, which has its disjunct.
    """
    nodes = _plain_nodes(root)
    chosen = product(*map(_disjuncts, nodes))
    return [dict(zip(map(id, nodes), each, strict=True)) for each in chosen]


def _disjuncts(node: PlainNode) -> _Disjuncts:
    match node:
        case Operator(disjuncts=disjuncts) | Ordered(disjuncts=disjuncts):
            return disjuncts
        case Repeated(begin=begin) | ChainStep(begin=begin):
            return begin
        case Chained():
            return (Disjunct(),)
        case From(where=where) | Kept(where=where):
            return where or ()
    raise AssertionError(node)


def _plain_nodes(root: PlainNode) -> list[PlainNode]:
    """Return the nodes of a plain source that have a predicate, inner ones first."""
    found: list[PlainNode] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, int):
            continue
        match node:
            case Operator(left=left, right=right):
                pending += (left, right)
            case Ordered(operands=operands):
                pending += operands
            case Repeated(operand=operand):
                pending += () if operand is None else (operand,)
            case Chained(steps=steps):
                pending += steps
            case Kept(node=inner):
                pending.append(inner)
            case ChainStep() | From():
                pass
            case _:
                continue
        found.append(node)
    return found[::-1]


def blocks_of(node: PlainNode) -> Iterator[int]:
    """Yield the blocks of a node's tuples, in order."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, int):
            yield each
            continue
        match each:
            case Operator(left=left, right=right):
                pending += (right, left)
            case Ordered(operands=operands):
                pending += reversed(operands)
            case Repeated(operand=operand, unit=unit):
                pending.append(unit.first)
                pending += () if operand is None else (operand,)
            case Chained(steps=steps):
                yield from (step.block for step in steps)
            case Kept(node=inner) | From(node=inner):
                pending.append(inner)


def operators_of(root: PlainNode) -> Iterator[Operator]:
    """Yield the operators of a plain source in which nothing is decided, inner ones first."""
    return (each for each in _plain_nodes(root) if isinstance(each, Operator))


def predicates_of(root: PlainNode) -> list[Disjunct]:
    """Return all disjuncts of a plain source, those of absent units too."""
    found: list[Disjunct] = []
    for node in _plain_nodes(root):
        found += node.conditions() if isinstance(node, Repeated) else _disjuncts(node)
        if isinstance(node, Ordered):
            found += [each for unit in node.absences for _, own in unit.blocks for each in own]
    return found


def asked_of_elements(root: PlainNode) -> Iterator[Operand]:
    """Yield what conditions ask of elements, of those of chains too."""
    for disjunct in predicates_of(root):
        yield from element_operands(disjunct)
    for node in _plain_nodes(root):
        if isinstance(node, Chained):
            for disjunct in node.conditions():
                yield from element_operands(disjunct)


def ordered_nodes(root: PlainNode) -> Iterator[Ordered | Repeated | Chained]:
    """Yield the decisions of a plain source, inner ones first."""
    return (each for each in _plain_nodes(root) if isinstance(each, (Ordered, Repeated, Chained)))


def mentioned_in(root: PlainNode) -> set[str]:
    """Return the variables that conditions of repetitions and chains mention, and all of elements.

    A tuple of an operand is one choice of nodes for them, nodes that paths lead from included.
    """
    found: set[str] = set()
    for asked in asked_of_elements(root):
        found.update(operand_variables(asked))
    for node in _plain_nodes(root):
        if isinstance(node, Repeated):
            for disjunct in node.further():
                for operand in disjunct.operands():
                    found.update(operand_variables(operand))
    return found


def given_us(window: Window | Parameter | None) -> int | Parameter:
    """Return a length where runs read it, which may be a constant that is given."""
    return window if isinstance(window, Parameter) else length_us(window)


def length_us(window: Window | Parameter | None) -> int:
    """Return a length where decisions are; a parameter is none that all assignments have."""
    return window.length_us if isinstance(window, Window) else INFINITE_US
