"""Boxes of assignments, read of their values by what the tests of a clause ask.

Of a clause with parameters a million boxes are made, so its tests are looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from broker.matching.boxes.index import LOOSE, Box
from templates.box import NONE_OF, SPARED, Place, Solution, Test, place_at
from templates.chaindecision import DecidedChains
from templates.clause import Clause
from templates.founddata import as_datum, asked_data
from templates.givendata import given_by, text_by, text_of
from templates.rundecision import DecidedRuns
from xscl.functions import to_double
from xscl.pattern import INEQUALITIES
from xscl.solving import LARGEST_SOLVED
from xscl.texttests import NEGATED

__all__ = ["box_of", "said_in", "strings_of"]

_Values = Mapping[str, Any]
_Read = Callable[[_Values], Any]


def box_of(clause: Clause, values: Mapping[str, Any], window_us: int, point: int) -> Box:
    """Return the box of a clause under an assignment."""
    # Where statements differ, a box mostly has nothing but windows of operators below.
    if not values and (bounds := _upper_bounds(clause.box)) is not None:
        return Box((), (), bounds, window_us, point)
    return _reader_of(clause).box(values, window_us, point)


def said_in(clause: Clause, equal: Sequence[str]) -> tuple[str, ...]:
    """Return the vector of data that what is decided of a clause has for constants.

    It is among the strings that a box asks for.
    """
    decided = clause.query_class.decided
    if not isinstance(decided, (DecidedRuns, DecidedChains)) or not decided.given:
        return ()
    return tuple([equal[place] for place in _reader_of(clause).said])


def strings_of(clause: Clause, values: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the strings of a box, None where it has more than these, a window and a point."""
    return _reader_of(clause).strings(values)


def _upper_bounds(tests: Sequence[Test]) -> tuple[float, ...] | None:
    """Return the bounds of tests, None unless all are upper ones that are written out."""
    bounds: list[float] = []
    for place, operator, data, *_ in tests:
        if operator != "<=" or not isinstance(data, (float, int)) or not isinstance(place, Place):
            return None
        bounds.append(to_double(data))
    return tuple(bounds)


class _BoxReader:
    """The tests of a clause, in the order of the columns of a box.

    Words stand behind what must be equal, unwanted ones behind what must not be taken; what must be
    spared stands before that.
    """

    __slots__ = ("_equal", "_others", "_rest", "said")

    def __init__(self, clause: Clause) -> None:
        equal: list[Test] = []
        words: list[Test] = []
        excluded: list[Test] = []
        bounds: list[Test] = []
        spared: list[Test] = []
        taken: list[Test] = []
        unwanted: list[Test] = []
        for test in clause.box:
            if test.operator in INEQUALITIES:
                bounds.append(test)
            elif test.excludes:
                excluded.append(test)
            elif test.operator == SPARED:
                spared.append(test)
            elif test.operator == NONE_OF:
                taken.append(test)
            elif test.operator.startswith(NEGATED):
                unwanted.append(test)
            else:
                (words if test.looks_in_texts else equal).append(test)
        data = [as_datum(test) for test in asked_data(clause)]
        self._equal = _row([*equal, *words])
        self.said = _said(clause, equal)
        others = excluded, bounds, [*spared, *taken, *unwanted], data
        self._others = [_row(tests) for tests in others]
        # What is not strings is mostly the same under all assignments.
        is_given = any(test.is_given for tests in others for test in tests)
        self._rest = None if is_given else [read({}) for read in self._others]

    def box(self, values: _Values, window_us: int, point: int) -> Box:
        """Return the box of an assignment."""
        rest = self._rest
        if rest is None:
            rest = [read(values) for read in self._others]
        excluded, bounds, taken, data = rest
        return Box(self._equal(values), excluded, bounds, window_us, point, taken, data)

    def strings(self, values: _Values) -> tuple[str, ...] | None:
        """Return the strings that an assignment asks for, None where it asks for anything else."""
        return None if self._rest is None or any(self._rest) else self._equal(values)


def _said(clause: Clause, equal: Sequence[Test]) -> list[int]:
    """Return where a vector of constants is among tests of what must be equal."""
    decided = clause.query_class.decided
    if not isinstance(decided, (DecidedRuns, DecidedChains)):
        return []
    places = [place_at(0, -1, 1 + decided.terms.index(term)) for term in decided.given]
    at = {test.place: i for i, test in enumerate(equal)}
    return [at[place] for place in places]


_reader_of: Callable[[Clause], _BoxReader] = lru_cache(maxsize=256)(_BoxReader)


def _row(tests: Sequence[Test]) -> Callable[[_Values], tuple[Any, ...]]:
    """Return what reads the data of some tests."""
    if not tests:
        return _nothing
    if not any(test.is_given for test in tests):
        row = tuple([_spelling(test)(test.data) for test in tests])
        return lambda _: row
    reads = [_read(test) for test in tests]
    if len(reads) == 1:
        [only] = reads
        return lambda values: (only(values),)
    return lambda values: tuple([read(values) for read in reads])


def _nothing(_: _Values) -> tuple[()]:
    return ()


def _read(test: Test) -> _Read:
    """Return what reads the datum of a test as boxes have it."""
    if test.operator not in INEQUALITIES:
        return text_by(test)
    given, bound = given_by(test), _bound(test)
    return lambda values: bound(given(values))


def _spelling(test: Test) -> Callable[[Any], str | float]:
    """Return what makes of a datum that is given what boxes have of it."""
    return _bound(test) if test.operator in INEQUALITIES else text_of(test)


def _bound(test: Test) -> Callable[[Any], float]:
    """Return what makes an upper bound of a datum that is given."""
    bound = _negated if test.operator[0] == ">" else to_double
    return _within_solved(bound) if isinstance(test.place, Solution) else bound


def _negated(given: str | float) -> float:
    return -to_double(given)


def _within_solved(bound: Callable[[Any], float]) -> Callable[[Any], float]:
    """Return what leaves bounds out that are beyond all numbers for which steps are solved."""

    def within(given: str | float) -> float:
        found = bound(given)
        return LOOSE if abs(found) > LARGEST_SOLVED else found

    return within
