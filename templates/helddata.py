"""How values of tuples that are handed on are held against data above, by `=` or by a bound."""

from __future__ import annotations

from collections.abc import Iterator

from templates.box import SPAN, Place, Test
from templates.clause import Clause
from templates.decision import Threshold
from templates.founddata import as_datum, by_datum
from templates.tuplestreams import tested_below
from xscl.pattern import INEQUALITIES

__all__ = ["equal_terms", "held_equal", "threshold_of"]


def equal_terms(clause: Clause) -> list[tuple[str, str]]:
    """Return the data that values of a clause's tuples are equal to, each once with a term."""
    above = _tested_above(clause)
    return sorted({test.datum: name for test, name in above if test.datum is not None}.items())


def held_equal(clause: Clause) -> list[Test]:
    """Return how values of a clause's tuples are held equal to data, wherever they are."""
    tests = (test for test in tested_below(clause, 0) if test.datum is not None)
    return by_datum({as_datum(test) for test in tests})


def threshold_of(clause: Clause) -> Threshold | None:
    """Return the value of a clause's tuples that is held against a bound, if it is one.

    With several of them it is not decided for all data together (`prepared`).
    """
    above = [(test, name) for test, name in _tested_above(clause) if test.is_given]
    given = [Threshold(name, t.operator) for t, name in above if t.operator in INEQUALITIES]
    return given[0] if len(given) == 1 else None


def _tested_above(clause: Clause) -> Iterator[tuple[Test, str]]:
    """Yield what a clause's tuples are held against above, each with the term of the value."""
    first = 1 + len(clause.carried)
    for test in tested_below(clause, 0):
        if isinstance(test.place, Place) and clause.tested[test.place.position - first] != SPAN:
            yield test, clause.tested_terms[test.place.position - first]
