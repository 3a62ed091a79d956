"""The data by which tuples are found, where what is decided depends on them (`docs/decided.md`).

A tuple whose text has several words that somebody looks for is handed on once for each, and says
which: above, the word is a value that is equal to a datum, as others are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from functools import lru_cache

from templates.box import NONE_OF, SPARED, TAKEN, FoundBy, JointData, Test
from templates.clause import Clause
from templates.givendata import parameters_of
from templates.hadtests import had_values
from templates.saiddata import data_named
from xscl.path import Parameter
from xscl.query import operand_parameters

__all__ = [
    "AskedOf",
    "ByData",
    "as_datum",
    "asked_data",
    "by_datum",
    "data_asked",
    "data_asked_of_rights",
    "data_said",
    "finds_by_data",
    "found_by",
    "found_together",
    "parameters_read",
    "says_sets",
    "unboxed_parameters",
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
    first operand for all that anything in the decision is held against, so that it has them, and in
    the end for windows of what is absent as well.
    """

    NOTHING = 0
    ROWS = 1
    OPERAND = 2
    OPERAND_WITH_WINDOWS = 3

    @property
    def is_of_operand(self) -> bool:
        """Whether the first operand is asked."""
        return self in (AskedOf.OPERAND, AskedOf.OPERAND_WITH_WINDOWS)


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


def unheld_data(
    clause: Clause, every: Iterable[Test], had: Collection[str], by_data: ByData
) -> tuple[Test, ...]:
    """Return the data, among some, that tuples do not say as what a clause's box asks for."""
    own: Collection[Test] = _numbers(clause, had)
    if by_data is ByData.NO:
        own = [test for test in own if not (test.looks_in_texts or test.is_asked)]
    said = {as_datum(test) for test in own}
    return tuple([test for test in every if test not in said])


@lru_cache(maxsize=256)
def unboxed_parameters(clause: Clause) -> frozenset[str]:
    """Return the parameters in conditions of a clause that no box has."""
    operands = [o for residual in clause.residuals for o in (residual.left, residual.right)]
    read = (p.name for each in (*operands, *clause.tests) for p in operand_parameters(each))
    return frozenset(read)


@lru_cache(maxsize=256)
def parameters_read(clause: Clause) -> frozenset[str]:
    """Return the parameters that a tuple is asked for, or made a text of, when it is handed on."""
    made = (p.name for each in clause.made for p in operand_parameters(each.operand))
    return unboxed_parameters(clause).union(made)


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


def data_asked_of_rights(rights: Collection[Clause], had: Collection[str]) -> tuple[Test, ...]:
    """Return the data that rights which compete are held against, but for data that are `had`.

    Windows are among them, and, even if they are `had`, what decided tuples are taken away for, or
    spared: a set of those is not asked beside a value.
    """
    windows = {each.window_us.name for each in rights if isinstance(each.window_us, Parameter)}
    asked = (*data_asked(rights, had), *data_named(windows, ()))
    found = {each for each in asked if each.datum not in had}
    found |= {each for clause in rights for test in clause.box for each in _data_of_set(test)}
    return tuple(by_datum(found))


def _data_of_set(test: Test) -> Iterable[Test]:
    """Return the data that a test holds against a set of those that a decided tuple is for."""
    if test.operator not in (NONE_OF, SPARED):
        return ()
    own = test.data.tests if isinstance(test.data, JointData) else (test,)
    return [Test(TAKEN, "=", each.data, form=each.form) for each in own]


@lru_cache(maxsize=256)
def says_sets(clause: Clause) -> bool:
    """Return whether tuples say all data that a clause's box holds against sets of decided ones.

    Then who asks with the data is, or is not, in the set; else the root says.
    """
    found = {n for place in clause.tested if isinstance(place, FoundBy) for n in place.numbers}
    tests = (test for test, n in _numbers(clause, ()).items() if n in found) if found else ()
    said = {name for test in tests for name in parameters_of(test)}
    held = (test for test in clause.box if test.operator in (NONE_OF, SPARED))
    return all(said.issuperset(parameters_of(test)) for test in held)


def as_datum(test: Test) -> Test:
    """Return a test as one of the data that tuples are found by, wherever that is."""
    is_equal = not (test.looks_in_texts or test.is_asked)
    return test._replace(place=TAKEN) if is_equal else test.of_found(TAKEN)


def by_datum(tests: Iterable[Test]) -> list[Test]:
    """Return tests in the order of what their data are called."""
    return sorted(tests, key=lambda test: test.datum or "")
