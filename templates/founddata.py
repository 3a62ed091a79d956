"""The data by which tuples are found, where what is decided depends on them (`docs/decided.md`).

A tuple whose text has several words that somebody looks for is handed on once for each, and says
which: above, the word is a value that is equal to a datum, as others are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

from templates.box import TAKEN, FoundBy, Test
from templates.clause import Clause
from templates.hadtests import had_values

__all__ = [
    "AskedOf",
    "ByData",
    "as_datum",
    "asked_data",
    "by_datum",
    "data_asked",
    "data_said",
    "finds_by_data",
    "found_by",
    "found_together",
    "unheld_data",
]


class ByData(Enum):
    """Whether tuples are handed on once for each of the data that find them, and with which.

    With each by itself, or with all of them as one as well; of those of which an index finds none,
    each may be asked, too.
    """

    NO = 0
    EACH = 1
    TOGETHER = 2
    EACH_ASKED = 3
    TOGETHER_ASKED = 4

    @property
    def asks_each(self) -> bool:
        """Whether data are asked that no index finds."""
        return self in (ByData.EACH_ASKED, ByData.TOGETHER_ASKED)

    @property
    def is_together(self) -> bool:
        """Whether all data are one as well."""
        return self in (ByData.TOGETHER, ByData.TOGETHER_ASKED)


class AskedOf(Enum):
    """What is asked for all data, where nothing else says whom a row is for.

    Rows that compete, or are absent, are asked for each datum that they are held against; or the
    first operand for all that anything in the decision is held against, so that it has them.
    """

    NOTHING = 0
    ROWS = 1
    OPERAND = 2


def found_by(clause: Clause, had: Collection[str] = ()) -> dict[Test, FoundBy]:
    """Return the tests of a clause's box that find tuples, each with what it finds them by.

    Those are left out that are asked beside data that are `had`, unless these find tuples as well.
    """
    is_found = any(test.looks_in_texts or test.is_asked for test in clause.box)
    if not (is_found or clause.unheld):  # as mostly
        return {}
    numbers = _numbers(clause, had)
    found = [test for test in numbers if test.looks_in_texts or test.is_asked]
    return {test: FoundBy((numbers[test],)) for test in (*found, *clause.unheld)}


def finds_by_data(clause: Clause) -> bool:
    """Return whether data find a clause's tuples, so that each is for a few of them."""
    equal = (test.operator == "=" or test.looks_in_texts for test in clause.box if test.is_given)
    return any(equal)


def asked_data(clause: Clause) -> list[Test]:
    """Return the tests of a clause's box whose data are asked one by one, and handed on."""
    places = (place for place in clause.tested if isinstance(place, FoundBy))
    found = {number for place in places for number in place.numbers}
    asked, numbers = _asked_in_box(clause), _numbers(clause, ()) if found else {}
    is_found = any(numbers.get(test) in found for test in asked)
    return [*clause.unheld, *(asked if is_found else ())]


def _asked_in_box(clause: Clause) -> list[Test]:
    return [test for test in clause.box if test.is_given and test.is_asked]


def _numbers(clause: Clause, had: Collection[str]) -> dict[Test, int]:
    """Return what is given of the strings that a clause's box asks for, with their numbers."""
    equal = [test for test in clause.box if test.operator == "=" and not test.is_of_several]
    looking = [test for test in clause.box if test.looks_in_texts]
    every = [*equal, *looking, *clause.unheld, *_asked_in_box(clause)]
    numbers = {test: n for n, test in enumerate(every) if test.is_given}
    if not had:
        return numbers
    known = dict.fromkeys(had, "")
    return {
        test: number
        for test, number in numbers.items()
        if as_datum(test).datum in had or test in clause.unheld or had_values(test, known) is None
    }


def found_together(clause: Clause, had: Collection[str], *, asks_each: bool) -> FoundBy | None:
    """Return what a clause's tuples are found by, where it is more than one datum."""
    found = _numbers(clause, had).items()
    numbers = {as_datum(test): n for test, n in found if asks_each or not test.is_asked}
    in_order = by_datum(numbers)
    return FoundBy(tuple([numbers[test] for test in in_order])) if len(in_order) > 1 else None


def unheld_data(clause: Clause, every: Iterable[Test], had: Collection[str]) -> tuple[Test, ...]:
    """Return the data, among some, that nothing in a clause's box is held against."""
    own = {as_datum(test) for test in _numbers(clause, had)}
    return tuple([test for test in every if test not in own])


def data_said(clause: Clause, had: Collection[str], by_data: ByData) -> tuple[Test, ...]:
    """Return what a clause's tuples say of data when they are handed on by them."""
    found = {} if by_data is ByData.NO else found_by(clause, had)
    said = (
        test
        for test in clause.box
        if test.datum is not None or (test in found and (by_data.asks_each or not test.is_asked))
    )
    return tuple(by_datum(dict.fromkeys(map(as_datum, said))))


def data_asked(clauses: Iterable[Clause], had: Collection[str]) -> tuple[Test, ...]:
    """Return the data that boxes of clauses are held against, but for those beside data `had`."""
    found = {as_datum(test) for clause in clauses for test in _numbers(clause, had)}
    return tuple(by_datum(found))


def as_datum(test: Test) -> Test:
    """Return a test as one of the data that tuples are found by, wherever that is."""
    is_equal = not (test.looks_in_texts or test.is_asked)
    return test._replace(place=TAKEN) if is_equal else test.of_found(TAKEN)


def by_datum(tests: Iterable[Test]) -> list[Test]:
    """Return tests in the order of what their data are called."""
    return sorted(tests, key=lambda test: test.datum or "")
