"""Data for which a tuple does not hold: those that it must differ from, and does not.

A tuple that must differ from a datum holds for all data but its own values, one that must equal it
for its value alone, and one that is not held against it for all.  So whom it serves, or takes away
from, is a set of data, and so is whom it leaves (`docs/decided.md`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from templates.box import OTHER_NUMBER, SPARED, TAKEN, JointData, Test
from xscl.evaluation import values_of_optional
from xscl.functions import to_double
from xscl.prefilters import spell_number
from xscl.texttests import NEGATED

__all__ = [
    "ALL_DATA",
    "NO_DATA",
    "DataSet",
    "HeldFor",
    "Ways",
    "compared_name",
    "is_excepting",
    "spared",
    "spared_by_absent",
    "spared_by_rights",
]

_NONE_EQUAL = f"{NEGATED}equals"

Ways = Sequence[Collection[tuple[str, str]]]
"""What tuples of several streams are held against: what each datum is called, and how."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """Some data, or all but some, by the texts that boxes have of them."""

    some: frozenset[str] = frozenset()
    is_all_but: bool = False

    def __bool__(self) -> bool:
        return self.is_all_but or bool(self.some)

    def __and__(self, other: DataSet) -> DataSet:
        if self.is_all_but and other.is_all_but:
            return DataSet(self.some | other.some, is_all_but=True)
        if self.is_all_but or other.is_all_but:
            whole, rest = (other, self) if self.is_all_but else (self, other)
            return DataSet(whole.some - rest.some)
        return DataSet(self.some & other.some)

    def __invert__(self) -> DataSet:
        return DataSet(self.some, not self.is_all_but)


NO_DATA, ALL_DATA = DataSet(), DataSet(is_all_but=True)


@dataclass(frozen=True, slots=True)
class HeldFor:
    """For which data a value of a tuple holds: how it is compared with them."""

    operator: str
    is_of_several: bool

    def refused(self, text: str | None) -> DataSet:
        """Return the data for which it does not hold."""
        if text is None:
            return NO_DATA
        if self.operator == OTHER_NUMBER:
            values = {spell_number(to_double(text))}
        else:
            values = {*map(str, values_of_optional(text or "[]"))} if self.is_of_several else {text}
            if self.operator == "!=" and len(values) > 1:
                values = set()
        own = frozenset([json.dumps([value]) for value in values])
        return DataSet(own, is_all_but=self.operator == "=")


def is_excepting(test: Test) -> bool:
    """Return whether a test holds for all data but the value that it is of, or its values."""
    return test.is_given and (test.excludes or test.operator == _NONE_EQUAL)


def compared_name(test: Test) -> str | None:
    """Return what the datum is called that a value equals, or differs from; None if none does."""
    if not is_excepting(test):
        return test.datum
    return _as_one(test).datum or f"{test.data!r} as a number"


def spared(test: Test) -> Test:
    """Return the test that the datum of another is one for which a decided tuple is."""
    return Test(TAKEN, SPARED, JointData((_as_one(test),)))


def _as_one(test: Test) -> Test:
    if test.operator == OTHER_NUMBER:
        return test._replace(place=TAKEN, is_of_several=False)
    return Test(TAKEN, "=", test.data, form=test.form)


def spared_by_rights(ways: Ways) -> str | None:
    """Return the datum from which some rights of NEXT must differ, or that some must not equal.

    All are held against it at most, and against the same equal data, by which they compete.
    """
    names = {name for way in ways for name, how in way if how == "!="}
    if not names and not all(ways):
        names = {name for way in ways for name, how in way if how == "="}
    if len(names) != 1 or any(len(way) - len({name for name, _ in way}) for way in ways):
        return None
    rests = {frozenset(each for each in way if each[0] not in names) for way in ways}
    hows = {how for way in ways for _, how in way}
    return names.pop() if len(rests) == 1 and hows <= {"=", "!="} else None


def spared_by_absent(ways: Ways, by_rights: str | None) -> str | None:
    """Return the datum from which absent rows must differ, or which they equal `by_rights`, too."""
    names = {name for way in ways for name, _ in way}
    hows = {how for way in ways for _, how in way}
    is_one = len(names) == 1 and hows <= {"=", "!="} and all(len(way) < 2 for way in ways)
    return names.pop() if is_one and ("!=" in hows or by_rights in names) else None
