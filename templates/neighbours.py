"""What a repetition asks of two elements that stand next to each other, taken apart.

What is asked of an element by itself, of the one before it by itself, and one inequality between a
number of each: runs of which no more is asked can be counted without holding any two elements
against each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

from templates.rundecision import Begin, Test, Values, compile_disjuncts
from xscl.comparison import Call, Elements, Operand, PathFrom, VariableValue, term
from xscl.evaluation import StepReading, UnboundError, compile_operand, values_of_optional
from xscl.functions import to_double
from xscl.path import Literal
from xscl.pattern import INEQUALITIES
from xscl.query import Disjunct, Residual

__all__ = [
    "AskedNeighbours",
    "ComparedNumbers",
    "ComparedSides",
    "InexactError",
    "ReadTerm",
    "compile_neighbours",
    "compile_sides",
    "read_term",
]

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TIMES = frozenset({"start", "end", "dur", "time", "unbound"})

_Side = frozenset[str]
"""Which elements an operand speaks of: `candidate`, `prev`."""


class InexactError(Exception):
    """What is compared of an element is not bound, or a measure: no one number stands for it."""


@dataclass(frozen=True)
class ReadTerm:
    """A term that an operand is, as it reads an element; it may be a path, with several values."""

    name: str
    is_path: bool

    def single(self, texts: Sequence[str | None]) -> Sequence[str] | None:
        """Return the value that each element has of the term, empty where a path has none.

        `texts` are those of the term.  It is None where some have several, or are not bound.
        """
        if None in texts:
            return None
        own = cast(Sequence[str], texts)
        if not self.is_path:
            return own
        values = [values_of_optional(text) for text in own]
        if any(len(each) > 1 for each in values):
            return None
        return [str(each[0]) if each else "" for each in values]

    def numbers(self, texts: Sequence[str | None]) -> list[float] | None:
        """Return the numbers of these values, NaN of what is none."""
        own = self.single(texts)
        return None if own is None else [*map(to_double, own)]


def read_term(operand: Operand) -> ReadTerm | None:
    """Return the term that an operand is, None where it is more than one."""
    of = operand.operand if isinstance(operand, Elements) else None
    if isinstance(of, (VariableValue, PathFrom)):
        return ReadTerm(term(of), isinstance(of, PathFrom))
    return None


@dataclass(frozen=True)
class ComparedNumbers:
    """One inequality: a number of an element, `operator`, another of the one before it.

    `of_element` gives both of an element, in this order: each is the number by which alone the
    comparison is decided, NaN where it never holds.  With `are_same` both sides read the same: if
    that is a term, `read` is it.
    """

    operator: str
    of_element: Callable[[StepReading], tuple[float, float]]
    are_same: bool
    read: ReadTerm | None = None


@dataclass(frozen=True)
class AskedNeighbours:
    """What is asked: `own` of each element, `leads` of one that another follows, `compared`.

    What is None is asked of none.  With `may_all_begin` a run may begin with each element of which
    `own` holds.
    """

    own: Test | None
    leads: Test | None
    compared: ComparedNumbers | None
    may_all_begin: bool


def compile_neighbours(begin: Begin) -> AskedNeighbours | None:
    """Return what a way to begin asks of neighbours, None where that cannot be taken apart.

    It is for runs before which nothing stands.
    """
    if begin.left is not None or begin.folds or begin.go_on is not None:
        return None
    is_free = begin.first == Disjunct()
    if len(begin.each) > 1:
        sides = [_side(operand) for each in begin.each for operand in each.operands()]
        if any(side is None or "prev" in side for side in sides):
            return None
        return AskedNeighbours(compile_disjuncts(begin.each), None, None, is_free)
    (asked,) = begin.each
    own, leads, pairs = _taken_apart(asked) or (None, None, [])
    if own is None or leads is None or len(pairs) > 1:
        return None
    compared = _compared(pairs[0]) if pairs else None
    if pairs and compared is None:
        return None
    of_previous = [*leads.operands(), *(side for each in pairs for side in (each.left, each.right))]
    is_free = is_free and not leads.tests and not any(map(_has_default, of_previous))
    return AskedNeighbours(
        None if own == Disjunct() else compile_disjuncts((own,)),
        None if leads == Disjunct() else compile_disjuncts((leads,)),
        compared,
        is_free,
    )


def _taken_apart(asked: Disjunct) -> tuple[Disjunct, Disjunct, list[Residual]] | None:
    """Return what speaks of an element, of the one before it, and of both."""
    if asked.value_joins or asked.similarity_joins:
        return None
    own: list[Residual] = []
    leads: list[Residual] = []
    pairs: list[Residual] = []
    for residual in asked.residuals:
        side = _sides((residual.left, residual.right))
        if side is None:
            return None
        of = pairs if len(side) > 1 else leads if "prev" in side else own
        of.append(residual)
    tests: tuple[list[Call], list[Call]] = ([], [])
    for test in asked.tests:
        side = _sides(test.arguments)
        if side is None or len(side) > 1:
            return None
        tests["prev" in side].append(test)
    return (
        Disjunct(residuals=tuple(own), tests=tuple(tests[0])),
        Disjunct(residuals=tuple(leads), tests=tuple(tests[1])),
        pairs,
    )


def _sides(operands: Iterable[Operand]) -> _Side | None:
    found: _Side = frozenset()
    for operand in operands:
        side = _side(operand)
        if side is None:
            return None
        found |= side
    return found


def _side(operand: Operand) -> _Side | None:
    """Return which elements an operand speaks of, None where it speaks of more than those two."""
    match operand:
        case Elements(run=None, function="candidate" | "prev" as function):
            return frozenset({function})
        case Literal():
            return frozenset()
        case Call(function, arguments) if function not in _TIMES:
            return _sides(arguments)
    return None


def _has_default(operand: Operand) -> bool:
    if isinstance(operand, Elements):
        return operand.otherwise is not None
    return isinstance(operand, Call) and any(map(_has_default, operand.arguments))


def _compared(pair: Residual) -> ComparedNumbers | None:
    """Return a comparison of neighbours as one of numbers, if it is an inequality."""
    left, operator, right = pair.left, pair.operator, pair.right
    if operator not in INEQUALITIES:
        return None
    if _side(left) == frozenset({"prev"}):
        left, operator, right = right, _TURNED[operator], left
    if _side(left) != frozenset({"candidate"}) or _side(right) != frozenset({"prev"}):
        return None
    are_same = (
        isinstance(left, Elements) and isinstance(right, Elements) and left.operand == right.operand
    )
    # Of several values some pair has to hold: that is the greatest of one side, the least of
    # the other.
    greatest = operator in (">", ">=")
    of_next = _numbers(left)
    of_previous = None if are_same else _numbers(right)

    def of_element(reading: StepReading) -> tuple[float, float]:
        asked = of_next(reading)
        given = asked if of_previous is None else of_previous(reading)
        if len(asked) == len(given) == 1:
            return asked[0], given[0]
        if greatest:
            return max(asked, default=math.nan), min(given, default=math.nan)
        return min(asked, default=math.nan), max(given, default=math.nan)

    return ComparedNumbers(operator, of_element, are_same, read_term(left) if are_same else None)


@dataclass(frozen=True)
class ComparedSides:
    """One inequality: a number of an element, `operator`, another of the one before it.

    `asked` gives that of an element, `given` that of one before another: each is the number by
    which alone the comparison is decided, NaN where it never holds.  Where a side is a term, `read`
    has it: that of `asked`, then that of `given`.
    """

    operator: str
    asked: Callable[[StepReading], float]
    given: Callable[[StepReading], float]
    read: tuple[ReadTerm | None, ReadTerm | None]


def compile_sides(pair: Residual, run: str | None) -> ComparedSides | None:
    """Return a comparison of neighbours of a chain as one of numbers, if it is an inequality.

    `run` is that of the step before, None where both are of one step.
    """
    (of_left, left), (of_right, right) = (_alone(each, run) for each in (pair.left, pair.right))
    operator = pair.operator
    if operator not in INEQUALITIES:
        return None
    if of_left == frozenset({"prev"}):
        of_left, of_right, left, right = of_right, of_left, right, left
        operator = _TURNED[operator]
    if of_left != frozenset({"candidate"}) or of_right != frozenset({"prev"}):
        return None
    greatest = operator in (">", ">=")
    asked, given = _numbers(left), _numbers(right)
    of_asked, of_given = (max, min) if greatest else (min, max)
    return ComparedSides(
        operator,
        lambda reading: of_asked(asked(reading), default=math.nan),
        lambda reading: of_given(given(reading), default=math.nan),
        (read_term(left), read_term(right)),
    )


def _alone(operand: Operand, run: str | None) -> tuple[_Side | None, Operand]:
    """Return which elements an operand speaks of, and the same of an element alone."""
    match operand:
        case Elements(run=None, function="candidate"):
            return frozenset({"candidate"}), operand
        case Elements(run=None, function="prev", otherwise=None) if run is None:
            return frozenset({"prev"}), replace(operand, function="candidate")
        case Elements(function="all" | "last") if operand.run == run is not None:
            return frozenset({"prev"}), replace(operand, run=None, function="candidate")
        case Call(function, arguments) if function not in _TIMES:
            found = [_alone(each, run) for each in arguments]
            sides = [side for side, _ in found]
            if None in sides:
                return None, operand
            side: _Side = frozenset().union(*(each for each in sides if each is not None))
            return side, Call(function, tuple(each for _, each in found))
        case Literal():
            return frozenset(), operand
    return None, operand


def _numbers(operand: Operand) -> Callable[[StepReading], list[float]]:
    """Return what gives the numbers among the values of an operand; one value is one, or NaN."""
    of: Callable[[StepReading], Values] = compile_operand(operand)

    def numbers(reading: StepReading) -> list[float]:
        try:
            values = of(reading)
        except UnboundError:
            raise InexactError from None
        if len(values) == 1 and isinstance(values[0], str):
            return [to_double(values[0])]
        if any(isinstance(value, Fraction) for value in values):
            raise InexactError
        return [own for own in map(to_double, values) if own == own]

    return numbers
