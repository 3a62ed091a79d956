"""What a query asks of documents together: operators, and what their operands can be.

A query's source is a tree.  Its leaves are blocks, by their index; a `Unit` with several of them is
a choice.  An `Operator` has a kind and two operands; an `Absence` takes tuples of its operand away;
a `Repetition` is a run of tuples of a unit; a `From` bounds, keys, or filters what it holds.

    S//a NEXT {x = y, 1 h} S//b+ {p > prev(p)} UNLESS {, 1 h} S//c SAME (//@id)

    From(keys)
      Absence(BETWEEN)
        Operator(NEXT)
          0
          Repetition
            1
        2
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from xscl.comparison import Disjunct, Operand
from xscl.path import Literal, Parameter, Path, Span

__all__ = [
    "INFINITE_US",
    "Absence",
    "AbsenceKind",
    "Fold",
    "From",
    "Key",
    "Node",
    "Operator",
    "OperatorKind",
    "Repetition",
    "Strategy",
    "Unit",
    "Window",
    "absences_at",
    "blocks_below",
    "chain_steps",
    "children",
    "decides",
    "documents_of",
    "is_chain",
    "is_of_joins",
    "is_open_chain",
    "nodes_below",
    "operators_below",
    "units_of",
    "windows_within",
]

INFINITE_US = 1 << 62
"""The length of an `INF` window in microseconds: larger than any difference of two times."""


class OperatorKind(enum.Enum):
    """What an operator asks of the times of its operands."""

    FOLLOWED_BY = "FOLLOWED BY"
    JOIN = "JOIN"
    NEXT = "NEXT"


class AbsenceKind(enum.Enum):
    """Where a document must not stand, seen from the tuples of the operand.

    `BETWEEN` is between the operands of the operator (UNLESS behind the right one), `BEFORE` before
    the first operand of a from (UNLESS), `AFTER` is NOT FOLLOWED BY, and `AROUND` is NOT JOIN.
    """

    BETWEEN = "UNLESS"
    BEFORE = "UNLESS before"
    AFTER = "NOT FOLLOWED BY"
    AROUND = "NOT JOIN"


class Strategy(enum.Enum):
    """How a run over a whole chain goes on from a document: the MATCH clause."""

    ANY = "ANY"
    NEXT = "NEXT"
    PARTITION = "PARTITION"
    STRICT = "STRICT"


@dataclass(frozen=True, slots=True)
class Window:
    """How far apart in time two operands may end and still join; the bound is closed.

    `length_us` is in microseconds, `INFINITE_US` for `INF`.
    """

    length_us: int


@dataclass(frozen=True, slots=True)
class Unit:
    """Alternatives: a tuple of any one of the blocks, given by their indexes."""

    alternatives: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """A value that is carried along a run: what it is at first, and with each element."""

    name: str
    first: Operand
    following: Operand


@dataclass(frozen=True, slots=True)
class Repetition:
    """Runs of tuples of a unit.

    `disjuncts` hold for each element, `condition` (WHILE) for each that a run takes, else it ends.
    `gap` is how far apart neighbours may end, `None` for no bound.
    """

    unit: Node
    disjuncts: tuple[Disjunct, ...]
    gap: Window | Parameter | None = None
    condition: tuple[Disjunct, ...] | None = None
    folds: tuple[Fold, ...] = ()


@dataclass(frozen=True, slots=True)
class Absence:
    """The tuples of an operand that no tuple of the absent unit takes away.

    `window` is `None` where none is given: of `AFTER` and `AROUND`, WITHIN bounds it.
    """

    kind: AbsenceKind
    operand: Node
    absent: Node
    disjuncts: tuple[Disjunct, ...]
    window: Window | Parameter | None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Operator:
    """A join of two operands.

    `disjuncts` is never empty; a predicate that was left out is one empty disjunct.  A window that
    was left out is `INF`: WITHIN bounds it.
    """

    kind: OperatorKind
    left: Node
    right: Node
    disjuncts: tuple[Disjunct, ...]
    window: Window | Parameter
    span: Span | None = field(default=None, compare=False)

    def blocks(self) -> Iterator[int]:
        """Yield the indexes of the blocks below this operator, in order."""
        yield from blocks_below(self)


@dataclass(frozen=True, slots=True)
class Key:
    """A path from the document that every unit has, with the value that it must have, if any.

    `variables` are the blocks, each with the name of the variable that the path binds there.
    """

    path: Path
    literal: Literal | Parameter | None
    variables: tuple[tuple[int, str], ...] = ()

    def variable(self, block: int) -> str:
        """Return the variable of a block."""
        return next(name for each, name in self.variables if each == block)


@dataclass(frozen=True, slots=True)
class From:
    """The tuples of a node under WITHIN, SAME, MATCH and WHERE, `None` where they are absent."""

    node: Node
    within: Window | Parameter | None = None
    keys: tuple[Key, ...] = ()
    strategy: Strategy | None = None
    where: tuple[Disjunct, ...] | None = None


Node = int | Unit | Repetition | Absence | Operator | From
"""A part of a query's source; an `int` is the index of a block."""


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes that a node is made of."""
    match node:
        case Operator(left=left, right=right):
            return (left, right)
        case Absence(operand=operand, absent=absent):
            return (operand, absent)
        case Repetition(unit=unit):
            return (unit,)
        case From(node=inner):
            return (inner,)
        case Unit(alternatives):
            return alternatives
    return ()


def windows_within(node: Node, *, is_within: bool = False) -> Iterator[str]:
    """Yield the parameters that are windows of operators around which there is a WITHIN.

    Without a bound such a window is that of WITHIN.
    """
    if isinstance(node, From):
        is_within |= node.within is not None
    elif is_within and isinstance(node, (Operator, Absence)):
        yield from [node.window.name] if isinstance(node.window, Parameter) else ()
    for child in children(node):
        yield from windows_within(child, is_within=is_within)


def nodes_below(node: Node) -> Iterator[Node]:
    """Yield a node behind all below it, left before right."""
    for child in children(node):
        yield from nodes_below(child)
    yield node


def is_of_joins(node: Node) -> bool:
    """Return whether a node is blocks that FOLLOWED BY and JOIN put together, as most are."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, int):
            continue
        if not isinstance(each, Operator) or each.kind is OperatorKind.NEXT:
            return False
        pending += (each.left, each.right)
    return True


def documents_of(node: Node) -> int:
    """Return how many documents a tuple of a node has, where nothing is repeated."""
    return len(list(units_of(node)))


def units_of(node: Node) -> Iterator[tuple[int, ...]]:
    """Yield the blocks of each unit of a node's tuples in order, where nothing is repeated."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, int):
            yield (each,)
        elif isinstance(each, Operator):
            pending += (each.right, each.left)
        elif isinstance(each, Unit):
            yield each.alternatives
        elif isinstance(each, Absence):
            pending.append(each.operand)
        else:
            pending += reversed(children(each))


def blocks_below(node: Node) -> Iterator[int]:
    """Yield the indexes of the blocks of a node, absent ones too, in order."""
    return (each for each in nodes_below(node) if isinstance(each, int))


def decides(node: Node) -> bool:
    """Return whether something is decided at a node itself: what is next, or what is absent."""
    is_next = isinstance(node, Operator) and node.kind is OperatorKind.NEXT
    return is_next or isinstance(node, Absence)


def absences_at(node: Node) -> tuple[list[Absence], Node]:
    """Return the absences that are decided together at a node, and what stands below them."""
    found: list[Absence] = []
    while isinstance(node, Absence) and (not found or node.kind is found[0].kind):
        if found and node.kind not in (AbsenceKind.BEFORE, AbsenceKind.BETWEEN):
            break
        found.append(node)
        node = node.operand
    return found, node


def is_chain(node: Node) -> bool:
    """Return whether a from is decided as a whole: under MATCH NEXT, PARTITION or STRICT."""
    return isinstance(node, From) and node.strategy not in (None, Strategy.ANY)


def is_open_chain(node: Node) -> bool:
    """Return whether a from is a chain whose tuples are found once they are complete.

    It has MATCH ANY, and three blocks, or repetitions of one, or more.
    """
    return isinstance(node, From) and node.strategy is Strategy.ANY and len(chain_steps(node)) > 2


def chain_steps(source: Node) -> tuple[Node, ...]:
    """Return the blocks, and repetitions of one, that FOLLOWED BY joins to a chain.

    There are none where something else stands in a source.
    """
    below = source.node if isinstance(source, From) else source
    steps: list[Node] = []
    while isinstance(below, Operator):
        if below.kind is not OperatorKind.FOLLOWED_BY:
            return ()
        steps.append(below.right)
        below = below.left
    steps.append(below)
    return tuple(steps[::-1]) if all(map(_is_step, steps)) else ()


def _is_step(node: Node) -> bool:
    return isinstance(node.unit if isinstance(node, Repetition) else node, int)


def operators_below(node: Node) -> Iterator[Operator]:
    """Yield the operators of a node, inner ones before outer ones, left before right."""
    return (each for each in nodes_below(node) if isinstance(each, Operator))
