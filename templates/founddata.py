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

__all__ = ["ByData", "as_datum", "by_datum", "found_by", "found_together"]


class ByData(Enum):
    """Whether tuples are handed on once for each of the data that find them, and with which.

    With each by itself, or with all of them as one as well.
    """

    NO = 0
    EACH = 1
    TOGETHER = 2


def found_by(clause: Clause, had: Collection[str] = ()) -> dict[Test, FoundBy]:
    """Return the tests of a clause's box that find tuples, each with what it finds them by.

    Those are left out that are asked beside data that are `had`, unless these find tuples as well.
    """
    if not any(test.looks_in_texts for test in clause.box):  # as mostly
        return {}
    numbers = _numbers(clause, had)
    return {test: FoundBy((numbers[test],)) for test in numbers if test.looks_in_texts}


def _numbers(clause: Clause, had: Collection[str]) -> dict[Test, int]:
    """Return what is given of the strings that a clause's box asks for, with their numbers."""
    equal = [test for test in clause.box if test.operator == "=" and not test.is_of_several]
    looking = [test for test in clause.box if test.looks_in_texts]
    numbers = {test: n for n, test in enumerate([*equal, *looking]) if test.is_given}
    if not had:
        return numbers
    known = dict.fromkeys(had, "")
    return {
        test: number
        for test, number in numbers.items()
        if as_datum(test).datum in had or had_values(test, known) is None
    }


def found_together(clause: Clause, had: Collection[str]) -> FoundBy | None:
    """Return what a clause's tuples are found by, where it is more than one datum."""
    numbers = {as_datum(test): number for test, number in _numbers(clause, had).items()}
    in_order = by_datum(numbers)
    return FoundBy(tuple([numbers[test] for test in in_order])) if len(in_order) > 1 else None


def as_datum(test: Test) -> Test:
    """Return a test as one of the data that tuples are found by, wherever that is."""
    return test.of_found(TAKEN) if test.looks_in_texts else test._replace(place=TAKEN)


def by_datum(tests: Iterable[Test]) -> list[Test]:
    """Return tests in the order of what their data are called."""
    return sorted(tests, key=lambda test: test.datum or "")
