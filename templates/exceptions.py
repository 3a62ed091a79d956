"""Data for which a tuple does not hold: those that it must differ from, and does not.

A tuple that must differ from a datum holds for all data but its own values, its **exceptions**; so
whom it serves, or takes away from, is told by them (`docs/decided.md`).
"""

from __future__ import annotations

import json
from typing import NamedTuple

from templates.box import OTHER_NUMBER, SPARED, TAKEN, JointData, Test
from xscl.evaluation import values_of_optional
from xscl.functions import to_double
from xscl.prefilters import spell_number
from xscl.texttests import NEGATED

__all__ = ["Differing", "excepted_name", "is_excepting", "spared"]

_NONE_EQUAL = f"{NEGATED}equals"


class Differing(NamedTuple):
    """How the values of a term must differ from a datum: a test without its place and data."""

    operator: str
    is_of_several: bool

    def exceptions(self, text: str | None) -> frozenset[str]:
        """Return the data for which it does not hold of a value, as boxes have those spared."""
        if text is None:
            return frozenset()
        if self.operator == OTHER_NUMBER:
            number = to_double(text)
            values = set[str]() if number != number else {spell_number(number)}
        else:
            values = {*map(str, values_of_optional(text or "[]"))} if self.is_of_several else {text}
            if self.operator == "!=" and len(values) > 1:
                values = set()
        return frozenset(json.dumps([value]) for value in values)


def is_excepting(test: Test) -> bool:
    """Return whether a test holds for all data but the value that it is of, or its values."""
    return test.is_given and (test.excludes or test.operator == _NONE_EQUAL)


def excepted_name(test: Test) -> str:
    """Return what tells the data of such a test from those of others."""
    return repr(spared(test).data)


def spared(test: Test) -> Test:
    """Return the test that the datum of another is among those that a decided tuple spares."""
    operator = "!=" if test.operator == _NONE_EQUAL else test.operator
    as_one = test._replace(place=TAKEN, operator=operator, is_of_several=False)
    return Test(TAKEN, SPARED, JointData((as_one,)))
