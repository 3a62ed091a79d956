"""How values of tuples that are handed on are held against data above, by `=` or otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from templates.box import NONE_OF, SPAN, SPARED, Place, Test
from templates.clause import Clause
from templates.decision import Conjunction, Threshold
from templates.exceptions import HeldFor, compared_name, is_excepting
from templates.founddata import as_datum, by_datum, says_sets
from templates.hadtests import HadTest, had_values
from templates.tuplestreams import tested_below
from xscl.pattern import INEQUALITIES

__all__ = [
    "asked_of_had",
    "equal_terms",
    "held_equal",
    "left_over",
    "named_terms",
    "threshold_of",
    "ways_held",
]


def named_terms(clause: Clause) -> tuple[str, ...]:
    """Return what the values at tested places are called beside those of other operands.

    One that is equal to a datum is called by it, in all streams of an operand.
    """
    return _named(clause)[0]


def equal_terms(clause: Clause) -> Mapping[str, str]:
    """Return the data that values of a clause's tuples are equal to, each once with a term."""
    return _named(clause)[1]


@lru_cache(maxsize=64)
def _named(clause: Clause) -> tuple[tuple[str, ...], Mapping[str, str]]:
    own = f"@{clause.blocks[0]}"
    names = [term + own for term in clause.tested_terms]
    places: dict[str, int] = {}
    for test, place in _tested_above(clause):
        if test.datum is not None:
            places.setdefault(test.datum, place)
    for datum, place in sorted(places.items()):
        names[place] = f"${datum}{own}"
    return tuple(names), {datum: names[place] for datum, place in sorted(places.items())}


def asked_of_had(clause: Clause, terms: Mapping[str, str]) -> Conjunction:
    """Return what is asked of a clause's tuples beside terms of an operand that data are equal to.

    What is held against a datum that their own values are equal to is asked of them alone.
    """
    names, equal = _named(clause)
    had: list[HadTest] = []
    for test, place in _tested_above(clause):
        given = None if test.datum is not None else had_values(test, {**equal, **terms})
        if given is not None:
            had.append(HadTest(names[place], test._replace(place=SPAN), given))
    same = ((terms[datum], name) for datum, name in equal.items() if datum in terms)
    return Conjunction(same=tuple(same), had=tuple(had))


def left_over(clause: Clause, had: Collection[str]) -> Iterator[Test]:
    """Yield how a clause's tuples are held against data above, but for what is asked beside others.

    Values of an operand are equal to data that are `had`.
    """
    known = dict.fromkeys([*equal_terms(clause), *had], "")
    sets = (NONE_OF, SPARED) if says_sets(clause) else ()
    for test in tested_below(clause, 0):
        if test.datum is not None:
            is_asked = test.datum in had
        else:
            is_asked = had_values(test, known) is not None or test.operator in sets
        if test.is_given and not is_asked:
            yield test


def held_equal(clause: Clause) -> list[Test]:
    """Return how values of a clause's tuples are held equal to data, wherever they are."""
    tests = (test for test in tested_below(clause, 0) if test.datum is not None)
    return by_datum({as_datum(test) for test in tests})


def ways_held(clause: Clause, had: Collection[str]) -> list[tuple[str, str]]:
    """Return the data that a clause's tuples are held against above, each with how.

    It is `=` where a value is equal to a datum, of several such values the datum stands once; and
    `!=` where the datum must differ.  What is held against data that are `had` alone is asked
    beside the operand that has them.
    """
    tests = list(left_over(clause, had))
    equal = {test.datum for test in tests if test.datum is not None}
    others = [_how(test) for test in tests if test.datum is None]
    return sorted([*((datum, "=") for datum in equal), *others])


def _how(test: Test) -> tuple[str, str]:
    if is_excepting(test):
        return str(compared_name(test)), "!="
    return repr(test.data), "some " * test.is_of_several + test.operator


def threshold_of(
    clause: Clause, had: Collection[str], spared: str | None = None
) -> Threshold | None:
    """Return the value of a clause's tuples that is `left_over` with a bound, if it is one.

    With several bounds it is not decided for all data together (`prepared`).  Where there are sets
    of a datum, what it is called is given, and the value is one that is held against it.
    """
    names, left = named_terms(clause), [*left_over(clause, had)]
    tested = [(test, names[place]) for test, place in _tested_above(clause) if test in left]
    if spared is not None:
        for test, name in tested:
            if compared_name(test) == spared:
                how = "!=" if is_excepting(test) else "="
                return Threshold(
                    name, how, HeldFor(how if how == "=" else test.operator, test.is_of_several)
                )
        return None
    given = [
        Threshold(name, test.operator) for test, name in tested if test.operator in INEQUALITIES
    ]
    return given[0] if len(given) == 1 else None


def _tested_above(clause: Clause) -> Iterator[tuple[Test, int]]:
    """Yield what a clause's tuples are held against above, each with the number of its place."""
    first = 1 + len(clause.carried)
    for test in tested_below(clause, 0):
        if isinstance(test.place, Place):
            place = test.place.position - first
            if clause.tested[place] != SPAN or test.is_given:
                yield test, place
