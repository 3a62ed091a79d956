"""Conditions on tuples, as functions: compiled once, called for each tuple.

A condition is what a join does not look up: comparisons of any operands, and tests such as
`exists` and `contains`.  It reads a tuple by the names of terms (`xscl.comparison.term`), and the
interval of the tuple.  Every operand is a sequence of values, and a comparison holds if it does
for some value of one side and some value of the other.

Times and durations are numbers, of microseconds.  Arithmetic is that of `xs:double`; what is no
number is NaN, for which no comparison holds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, cast

from xscl import functions, measures
from xscl.arithmetic import CALCULATE
from xscl.comparison import (
    FIRST_TIME,
    INSTANTS,
    LAST_TIME,
    OF_EXCERPT,
    REVISION,
    TIME_BETWEEN,
    UNBOUND,
    XPATH_FRAME,
    XPATH_NUMBER,
    Call,
    Cell,
    Conditional,
    Disjunct,
    Elements,
    Operand,
    PathFrom,
    Residual,
    Row,
    ValueJoin,
    ValuesFrom,
    VariableValue,
    operands_below,
    term,
)
from xscl.disjunctions import DataForm
from xscl.excerpttests import passes_excerpt, read_excerpted
from xscl.path import Literal, Parameter, XPathValue
from xscl.runvalues import RunAtHand, RunElement, RunReading, UnboundError, aggregate, read_run
from xscl.signatures import MEASURES
from xscl.xpath1calls import XPathArgument, call_xpath, given_value
from xscl.xpath1numbers import number_of_truth

__all__ = [
    "Condition",
    "Reading",
    "StepReading",
    "TableReading",
    "UnboundError",
    "Values",
    "compile_condition",
    "compile_conjunction",
    "compile_operand",
    "compile_score",
    "compile_sets",
    "compile_test",
    "key_reader",
    "optional_values",
]

Values = Sequence[functions.Atom]
"""The values of an operand."""

_OF_DOCUMENT = INSTANTS | {REVISION}
"""Functions of a variable that are read as numbers of its document."""


class Reading(Protocol):
    """A tuple, as conditions read it."""

    @property
    def start_us(self) -> int:
        """The start of its interval."""

    @property
    def end_us(self) -> int:
        """The end of its interval."""

    @property
    def parameters(self) -> Mapping[str, str | float | int]:
        """The values of parameters."""

    def value(self, name: str) -> str:
        """Return the value of a term."""


class TableReading(Reading, Protocol):
    """A tuple beside tables, as conditions and actions read both."""

    def cell(self, table: str, key: str, column: str) -> str | float:
        """Return a cell; of a row that is not there the default."""

    def has_row(self, table: str, key: str) -> bool:
        """Return whether a row is there."""

    def bound_key(self, row: Row) -> str | None:
        """Return the key of a row that is being set; None for all others."""


class StepReading(Reading, Protocol):
    """What stands before a repetition, with the run whose next element is judged."""

    @property
    def run(self) -> RunAtHand:
        """The run at hand."""


Condition = Callable[[Reading], bool]
_Reader = Callable[[Reading], Values]


def optional_values(values: Iterable[str]) -> str:
    """Return the values of an optional path as one, which a tuple carries for all of them."""
    return json.dumps(list(values), ensure_ascii=False)


def values_of_optional(text: str) -> Values:
    """Return what `optional_values` has written."""
    if text.count('"') == 2 and "\\" not in text:
        return (text[2:-2],)  # one value, as mostly, without anything that JSON spells otherwise
    values: list[str] = json.loads(text)
    return values


def compile_condition(residuals: Sequence[Residual], tests: Sequence[Call] = ()) -> Condition:
    """Return what tells whether all of these hold for a tuple."""
    if not residuals and not tests:  # as mostly
        return _always
    parts = [*map(_comparison, residuals), *map(compile_test, tests)]
    if len(parts) == 1:
        return parts[0]
    return lambda reading: all(part(reading) for part in parts)


def _always(_: Reading) -> bool:
    return True


def _comparison(residual: Residual) -> Condition:
    left, operator = compile_operand(residual.left), residual.operator
    right = compile_operand(residual.right)

    def compares(reading: Reading) -> bool:
        return functions.compare(left(reading), operator, right(reading))

    return _left_out(compares, residual.left, residual.right)


def compile_test(test: Call) -> Condition:
    """Return what tells whether `exists`, `empty`, `contains` or the like holds for a tuple.

    A variable alone is bound, in a tuple that is asked.
    """
    if test.function in ("exists", "empty") and isinstance(test.arguments[0], VariableValue):
        is_bound = test.function == "exists"
        return lambda reading: is_bound
    arguments = list(map(compile_operand, test.arguments))
    if test.function in ("exists", "empty"):
        (asked,) = arguments
        exists = _left_out(lambda reading: bool(asked(reading)), *test.arguments, otherwise=False)
        wanted = test.function == "exists"
        return lambda reading: exists(reading) is wanted
    if test.function == "joins":
        left, right = arguments
        return _left_out(
            lambda reading: bool((set(left(reading)) & set(right(reading))) - {""}), *test.arguments
        )
    function = test.function

    def passes(reading: Reading) -> bool:
        return functions.passes(function, [each(reading) for each in arguments])

    return _left_out(passes, *test.arguments)


def _framed(expression: str, operands: Sequence[Operand]) -> _Reader:
    truth = number_of_truth(expression)
    arguments = list(map(_xpath_argument, operands))
    return lambda reading: (call_xpath(truth, [each(reading) for each in arguments]),)


def _excerpted(written: str, excerpt: _Reader) -> _Reader:
    asked = read_excerpted(written)
    names = [*dict.fromkeys(each.name for each in asked.parameters())]

    @lru_cache(maxsize=4_096)
    def asked_with(*given: str | float | int) -> str:
        return asked.text(dict(zip(names, given, strict=True)))

    def holds(reading: Reading) -> Values:
        wanted = asked_with(*[reading.parameters[name] for name in names])
        return (float(passes_excerpt(functions.spell(excerpt(reading)[0]), wanted)),)

    return holds


def _xpath_argument(operand: Operand) -> Callable[[Reading], XPathArgument]:
    """Return what gives an operand to XPath 1.0: texts of nodes, a text or a number."""
    match operand:
        case Parameter(name):
            return lambda reading: given_value(reading.parameters[name])
        case ValuesFrom(values=of_node) if isinstance(value := of_node.operands[0], XPathValue):
            read = compile_operand(operand)
            if value.is_text:
                return lambda reading: functions.spell(read(reading)[0])
            return lambda reading: functions.to_double(read(reading)[0])
    texts = compile_operand(operand)
    return lambda reading: [*map(functions.spell, texts(reading))]


def _left_out(condition: Condition, *operands: Operand, otherwise: bool = True) -> Condition:
    """Return a condition that is `otherwise` where an operand is not bound in a tuple.

    That is where it is in the branch of an `if`, or of elements.
    """
    below = [each for operand in operands for each in operands_below(operand)]
    if not any(each == UNBOUND or isinstance(each, Elements) for each in below):
        return condition

    def bound(reading: Reading) -> bool:
        try:
            return condition(reading)
        except UnboundError:
            return otherwise

    return bound


def _unbound(reading: Reading) -> Values:
    raise UnboundError


def compile_operand(operand: Operand) -> _Reader:
    """Return what gives the values of an operand in a tuple."""
    match operand:
        case VariableValue(variable):
            return lambda reading: (reading.value(variable),)
        case PathFrom():
            name = term(operand)
            return lambda reading: values_of_optional(reading.value(name))
        case ValuesFrom(values=read_values):
            name = term(operand)
            if read_values.is_of_several:
                return lambda reading: values_of_optional(reading.value(name))
            return lambda reading: (reading.value(name),)
        case Call(function, (Parameter(name),)) if function == XPATH_NUMBER:
            read = DataForm.XPATH_NUMBER.read
            return lambda reading: (read(reading.parameters[name], "<"),)
        case Call(function, (Literal(str() as expression), *operands)) if function == XPATH_FRAME:
            return _framed(expression, operands)
        case Call(function, (Literal(str() as written), excerpt, *_)) if function == OF_EXCERPT:
            return _excerpted(written, compile_operand(excerpt))
        case Row():
            return _rows(operand)
        case Cell(row, column):
            return _cells(row, column)
        case Literal(value):
            constant = (_atom(value),)
            return lambda reading: constant
        case Parameter(name):
            return lambda reading: (_atom(reading.parameters[name]),)
        case Conditional(condition, then, otherwise):
            return _choice(condition, then, otherwise)
        case Elements():
            return _of_elements(operand)
        case Call(function, arguments) if function in _OF_DOCUMENT and arguments:
            name = term(operand)
            return lambda reading: (float(reading.value(name)),)
        case Call(function, _) if function in (TIME_BETWEEN, *_EXTREMES):
            time = _whole_time(operand)
            return lambda reading: (float(time(reading)),)
        case Call("unbound"):
            return _unbound
        case Call("start"):
            return lambda reading: (float(reading.start_us),)
        case Call("end"):
            return lambda reading: (float(reading.end_us),)
        case Call("dur"):
            return lambda reading: (float(reading.end_us - reading.start_us),)
        case Call(function, (left, right)) if function in MEASURES:
            return _measure(function, left, right)
        case Call(function, arguments):
            return _function(function, list(map(compile_operand, arguments)))
    raise AssertionError(f"not run yet: {operand}")


def _whole_time(operand: Operand) -> Callable[[Reading], int]:
    """Return what gives a time of documents, or the time between two, in microseconds."""
    match operand:
        case Call(function, (first, last)) if function == TIME_BETWEEN:
            start, end = _whole_time(first), _whole_time(last)
            return lambda reading: end(reading) - start(reading)
        case Call(function, times) if function in _EXTREMES:
            names, extreme = [*map(term, times)], _EXTREMES[function]
            return lambda reading: extreme([int(reading.value(name)) for name in names])
    raise AssertionError(operand)


_EXTREMES: Mapping[str, Callable[[Iterable[int]], int]] = {FIRST_TIME: min, LAST_TIME: max}


def _measure(function: str, left: Operand, right: Operand) -> _Reader:
    first, second = compile_sets(left), compile_sets(right)

    def measured(reading: Reading) -> Values:
        rights = second(reading)
        return [measures.measure(function, a, b) for a in first(reading) for b in rights]

    return measured


def compile_score(measured: Residual) -> Callable[[Reading], float]:
    """Return what gives the double by which to compare the largest value of a measure.

    It is NaN where there is none; see `xscl.measures.comparable`.
    """
    values, operator = compile_operand(measured.left), measured.operator

    def score(reading: Reading) -> float:
        found = cast(Sequence[Fraction], values(reading))
        return measures.comparable(max(found), operator) if found else math.nan

    return score


def compile_sets(call: Operand) -> Callable[[Reading], list[measures.WordSet]]:
    """Return what gives a set for each value of the first argument of `words` and the like."""
    assert isinstance(call, Call)
    text, *others = map(compile_operand, call.arguments)
    return lambda reading: measures.sets_of_values(
        call.function, text(reading), [each(reading) for each in others]
    )


def key_reader(row: Row) -> Callable[[Reading], list[str]]:
    """Return what gives the keys of a row, each once: a path may have several values."""
    if isinstance(row.key, VariableValue):
        name = row.key.variable
        return lambda reading: [reading.value(name)]
    keys = compile_operand(row.key)
    return lambda reading: list(dict.fromkeys(map(functions.spell, keys(reading))))


def _rows(row: Row) -> _Reader:
    """Return what gives the keys of the rows that are there."""
    keys = key_reader(row)

    def present(reading: Reading) -> Values:
        beside = cast(TableReading, reading)
        return [key for key in keys(reading) if beside.has_row(row.table, key)]

    return present


def _cells(row: Row, column: str) -> _Reader:
    keys = key_reader(row)

    def cells(reading: Reading) -> Values:
        beside = cast(TableReading, reading)
        bound = beside.bound_key(row)
        those = keys(reading) if bound is None else [bound]
        return [beside.cell(row.table, key, column) for key in those]

    return cells


def _of_elements(operand: Elements) -> _Reader:
    """Return what gives the values of an operand of the elements of a run."""
    run, function = operand.run, operand.function

    def at_hand(reading: Reading) -> RunAtHand:
        if run is None:
            return cast(StepReading, reading).run
        if isinstance(reading, RunReading) and run in reading.runs:
            return reading.runs[run]
        return read_run(reading.value(run)).at_hand()

    if function == "fold":
        assert isinstance(operand.operand, Literal)
        name = str(operand.operand.value)

        def folded(reading: Reading) -> Values:
            found = at_hand(reading).folds.get(name)
            if found is None:
                # UNLESS speaks of the first element of a run, which folds nothing.
                raise UnboundError
            return found

        return folded
    if operand.operand is None:
        return lambda reading: (float(len(at_hand(reading).before)),)
    of: Callable[[RunElement], Values] = compile_operand(operand.operand)
    otherwise = _unbound if operand.otherwise is None else compile_operand(operand.otherwise)

    def values(reading: Reading) -> Values:
        own = at_hand(reading)
        match function:
            case "candidate":
                assert own.candidate is not None
                return of(own.candidate)
            case "prev":
                return of(own.before[-1]) if own.before else otherwise(reading)
            case "last":
                return of(own.before[-1])
            case "first":
                first = own.before[0] if own.before else own.candidate
                assert first is not None
                return of(first)
        return aggregate(function, of, own.before)

    return values


def _atom(value: str | float | int) -> str | float:
    """Return a canonical value: of a parameter that is a duration, a number of microseconds."""
    return value if isinstance(value, str) else float(value)


def _choice(condition: tuple[Disjunct, ...], then: Operand, otherwise: Operand) -> _Reader:
    holds = [compile_conjunction(disjunct) for disjunct in condition]
    first, second = compile_operand(then), compile_operand(otherwise)

    def chosen(reading: Reading) -> Values:
        return first(reading) if any(each(reading) for each in holds) else second(reading)

    return chosen


def compile_conjunction(disjunct: Disjunct) -> Condition:
    """Return what tells whether a conjunction holds for a tuple, value joins and all."""
    similar = [join.residual for join in disjunct.similarity_joins]
    rest = compile_condition([*similar, *disjunct.residuals], disjunct.tests)
    joins = list(map(_join, disjunct.value_joins))
    return lambda reading: all(join(reading) for join in joins) and rest(reading)


def _join(join: ValueJoin) -> Condition:
    """Equality of the two operands of an operator: the empty string is equal to nothing."""
    left, right = compile_operand(join.left), compile_operand(join.right)
    return lambda reading: bool((set(left(reading)) & set(right(reading))) - {""})


def _function(function: str, arguments: Sequence[_Reader]) -> _Reader:
    calculate = CALCULATE.get(function)
    if calculate is None:
        return lambda reading: functions.apply(function, [each(reading) for each in arguments])
    if len(arguments) == 1:
        (only,) = arguments
        return lambda reading: [-functions.to_double(value) for value in only(reading)]
    left, right = arguments

    def calculated(reading: Reading) -> Values:
        numbers = [functions.to_double(value) for value in right(reading)]
        return [calculate(functions.to_double(a), b) for a in left(reading) for b in numbers]

    return calculated
