"""Arithmetic that is held against data: tests of numbers that are made of a tuple.

Where the data stand alone on their side, `b/price - a/price > $x`, the tuple has a number, whatever
the data.  Where they stand within arithmetic, `b/price > $x * a/price`, the comparison is solved
for them: the tuple has two, between which they must be (`Solution`).  What is calculated of data
alone, `b/price < $x * 2`, is a number before any tuple is there (`Formula`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass

from templates.box import (
    OTHER_NUMBER,
    SPAN,
    ArithmeticStep,
    Computed,
    Data,
    Formula,
    Instant,
    Place,
    Solution,
    Terms,
    Test,
)
from xscl.comparison import INSTANTS, REVISION, operands_below
from xscl.disjunctions import DataForm
from xscl.functions import to_double
from xscl.path import Literal, Parameter
from xscl.pattern import INEQUALITIES
from xscl.query import (
    Call,
    Operand,
    Residual,
    ValuesFrom,
    VariableValue,
    operand_parameters,
    operand_terms,
    term,
)
from xscl.solving import LARGEST_SOLVED, STEPS_MAX
from xscl.syntax import ARITHMETIC, TURNED

__all__ = [
    "NO_NUMBERS",
    "Numbered",
    "is_solved_of_times",
    "number_tests",
    "numbered",
    "reads_only",
    "stands_alone",
]

PlaceOf = Callable[[str], Place | Instant]
"""Says where a term is."""

Held = list[tuple[str, Data]]
"""What a number is held against, with how."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """The tests of numbers of a conjunction, and the residuals that are left.

    Of these the `solved` ones are also tests, which decide them for most tuples.
    """

    tests: tuple[Test, ...]
    solved: tuple[Residual, ...]
    others: tuple[Residual, ...]


NO_NUMBERS = Numbered((), (), ())
"""Those of a conjunction without residuals."""


_Datum = Literal | Parameter | Call
"""Data within arithmetic; a call reads a parameter as `XPATH_NUMBER`."""


def numbered(
    residuals: Iterable[Residual],
    texts: Collection[str],
    place_of: PlaceOf,
    *,
    has_formulas: bool,
    solved_of: Set[str] | None,
) -> Numbered:
    """Return residuals as tests of numbers; `texts` are the parameters that may have strings.

    Solved is what reads values of `solved_of` alone; None is for all that a tuple has.  Of sums of
    times the ends are handed on.
    """
    tests: list[Test] = []
    solved: list[Residual] = []
    others: list[Residual] = []
    for each in residuals:
        if (alone := _alone(each, texts, has_formulas=has_formulas)) is not None:
            operand, against = alone
            computed = Computed(operand, _terms([operand], place_of))
            tests += [Test(computed, *test) for test in against]
        elif (
            solved_of is not None
            and has_formulas
            and _is_of_times(each)
            and (within := _within(each, place_of, is_handed_on=True))
        ):
            tests += within  # times are moderate: nothing is left open
        elif (solved_of is None or reads_only(solved_of, each.left, each.right)) and (
            within := _within(each, place_of)
        ) is not None:
            tests += within
            solved.append(each)
        else:
            others.append(each)
    return Numbered(tuple(tests), tuple(solved), tuple(others))


def number_tests(
    residual: Residual, texts: Collection[str], *, has_formulas: bool
) -> tuple[VariableValue, Held] | None:
    """Return a comparison of a variable's value and a number as tests of it; None if it is none.

    Data are a `Formula` only where it `has_formulas`.
    """
    alone = _alone(residual, texts, has_formulas=has_formulas)
    if alone is None or not isinstance(alone[0], VariableValue):
        return _unequal(residual, texts) if has_formulas else None
    return alone[0], alone[1]


def _unequal(residual: Residual, texts: Collection[str]) -> tuple[VariableValue, Held] | None:
    """Return a value that must be another number than one, with how; None if none must be."""
    for one, data in ((residual.left, residual.right), (residual.right, residual.left)):
        given = _given(data, has_formulas=True)
        if residual.operator != "!=" or not isinstance(one, VariableValue):
            continue
        # No number is another one than what is none, as it may come of a formula.
        if isinstance(given, (Parameter, float)) and _is_number(given, texts) and given == given:
            # What is no number is below none, and nor is it above.
            return one, [("<=", math.inf), (OTHER_NUMBER, given)]
    return None


def reads_only(values: Set[str], *operands: Operand) -> bool:
    """Return whether operands read some values at most, and no times of the tuple."""
    below = [each for operand in operands for each in operands_below(operand)]
    has_interval = any(isinstance(each, Call) and not each.arguments for each in below)
    return not has_interval and all(
        term(each) in values for operand in operands for each in operand_terms(operand)
    )


def stands_alone(residual: Residual, texts: Collection[str]) -> bool:
    """Return whether a number of a tuple is held against data that are alone on their side."""
    return _alone(residual, texts, has_formulas=True) is not None


def _alone(
    residual: Residual, texts: Collection[str], *, has_formulas: bool
) -> tuple[Operand, Held] | None:
    """Return arithmetic, and what it is held against; None where data do not stand alone."""
    left, right, operator = residual.left, residual.right, residual.operator
    for one, data, compared in ((left, right, operator), (right, left, TURNED[operator])):
        given = _given(data, has_formulas=has_formulas)
        if given is None or not _is_computed(one):
            continue
        if compared in INEQUALITIES:
            return one, [(compared, given)]
        if compared == "=" and _is_number(given, texts):
            return one, [("<=", given), (">=", given)]
    return None


def _given(data: Operand, *, has_formulas: bool) -> Data | None:
    """Return an operand as data; None where it reads a tuple."""
    match data:
        case Literal(value):
            return value
        case Parameter():
            return data
    if not (has_formulas and _is_of_data(data)):
        return None
    formula = Formula(data)
    return formula if operand_parameters(data) else formula.number({})


def _is_of_data(operand: Operand) -> bool:
    match operand:
        case Call(function, arguments) if function in ARITHMETIC:
            return all(
                isinstance(each, (Literal, Parameter)) or _is_of_data(each) for each in arguments
            )
    return False


def _is_number(data: Data, texts: Collection[str]) -> bool:
    if isinstance(data, Parameter):
        return data.name not in texts
    return not isinstance(data, str)


def _is_computed(operand: Operand) -> bool:
    """Return whether an operand is arithmetic of single values without data that differ."""
    match operand:
        case VariableValue():
            return True
        case ValuesFrom(values=values):
            return not values.is_of_several
        case Call(function, ()):
            return function in ("start", "end", "dur")
        case Call(function, arguments) if function in ARITHMETIC:
            return all(isinstance(each, Literal) or _is_computed(each) for each in arguments)
        case Call(function, _):
            return function in INSTANTS or function == REVISION
    return False


def _within(
    residual: Residual, place_of: PlaceOf, *, is_handed_on: bool = False
) -> list[Test] | None:
    """Return a comparison with data within arithmetic as tests of both ends of its solutions.

    The data are the parameter, if there is one, else the first number that a place can be had for.
    """
    left, right, operator = residual.left, residual.right, residual.operator
    sides = ((left, operator, right), (right, TURNED[operator], left))
    numbers = [each for side in (left, right) for each in _data_in(side) if _is_moderate(each)]
    parameters = [each for each in numbers if not isinstance(each, Literal)]
    if operator not in (*INEQUALITIES, "=") or len(parameters) > 1:
        return None
    for data in parameters or numbers:
        for side, compared, other in sides:
            steps = _steps_around(data, side)
            if steps is None or not 0 < len(steps) <= STEPS_MAX:
                continue
            read = [*(step.operand for step in steps), other]
            if not all(isinstance(each, Literal) or _is_computed(each) for each in read):
                continue
            terms = _terms(read, place_of)
            return [
                Test(
                    Solution(steps, compared, other, terms, is_least, is_handed_on),
                    how,
                    *_held(data),
                )
                for is_least, how in ((True, "<="), (False, ">="))
            ]
    return None


def _held(data: _Datum) -> tuple[Data] | tuple[Data, bool, DataForm]:
    """Return data as a test has them, and how it reads what a parameter is given."""
    match data:
        case Call(_, (Parameter() as given,)):
            return given, False, DataForm.XPATH_NUMBER
        case Literal(value):
            return (value,)
    assert isinstance(data, Parameter)
    return (data,)


def _is_moderate(data: _Datum) -> bool:
    """Return whether data may be solved for; of a parameter, some assignments may not."""
    return not isinstance(data, Literal) or not abs(to_double(data.value)) > LARGEST_SOLVED


def is_solved_of_times(residual: Residual) -> bool:
    """Return whether ends say of sums of times with which datum a comparison holds of them."""
    return _is_of_times(residual) and _within(residual, lambda _: SPAN) is not None


def _is_of_times(residual: Residual) -> bool:
    """Return whether a comparison adds and subtracts times of blocks and one datum, no more."""
    below = [e for side in (residual.left, residual.right) for e in operands_below(side)]
    times = [e for e in below if isinstance(e, Call) and e.function in INSTANTS]
    read = {variable for each in times for variable in each.arguments}
    others = [e for e in below if e not in times and e not in read]
    data = [e for e in others if isinstance(e, (Literal, Parameter))]
    calls = [e for e in others if isinstance(e, Call) and e.function in ("+", "-")]
    return bool(times) and len(data) == 1 and len(data) + len(calls) == len(others)


def _data_in(operand: Operand) -> list[_Datum]:
    match operand:
        case Literal() | Parameter() | Call("number of XPath 1.0"):
            return [operand]
        case Call(function, arguments) if function in ARITHMETIC:
            return [data for each in arguments for data in _data_in(each)]
    return []


def _steps_around(data: _Datum, operand: Operand) -> tuple[ArithmeticStep, ...] | None:
    """Return what is done with data in an operand, the innermost first; None if it is not so."""
    match operand:
        case Literal() | Parameter() | Call("number of XPath 1.0"):
            return () if operand is data else None
        case Call("-", (only,)):
            steps = _steps_around(data, only)
            return None if steps is None else (*steps, ArithmeticStep("-", Literal(0.0), True))
        case Call("+" | "-" | "*" | "div" as function, (left, right)):
            if (steps := _steps_around(data, left)) is not None:
                return (*steps, ArithmeticStep(function, right))
            if function != "div" and (steps := _steps_around(data, right)) is not None:
                return (*steps, ArithmeticStep(function, left, function == "-"))
    return None


def _terms(operands: Sequence[Operand], place_of: PlaceOf) -> Terms:
    """Return where all that operands read is."""
    read = dict.fromkeys(term(each) for operand in operands for each in operand_terms(operand))
    return tuple((name, place_of(name)) for name in read)
