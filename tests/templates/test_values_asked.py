"""Whatever reads a value has asked for it: others may not, and of what is not asked for is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest
from generators.kinds import KINDS
from support.examples import examples
from support.kit import CASES, cases, parse_case

from templates.clause import Alternative, Clause
from templates.compiler import compile_query
from templates.decision import Conjunction, TupleStream
from templates.derived import as_derived
from templates.rundecision import Begin, ElementStream
from xpath_eval.catalog import PatternCatalog
from xscl.comparison import INSTANTS, REVISION, Call, Elements, PathFrom, ValuesFrom, VariableValue
from xscl.query import term

NO_VALUES = {*INSTANTS, REVISION, "exists", "empty", "end", "dur"}
"""Functions that read no value of the variable in them."""


def read_in(each: object) -> Iterator[str]:
    """Yield the terms whose values something reads of tuples, or of elements."""
    match each:
        case VariableValue(name):
            yield name
        case PathFrom() | ValuesFrom():
            yield term(each)
        case Call(function, arguments):
            if function not in NO_VALUES:
                derived = as_derived(each)
                yield from () if derived is None else (term(derived),)
                yield from read_in(arguments)
        case Conjunction(joins, rest):
            yield from (name for pair in joins for name in pair)
            yield from read_in(rest)
        case ElementStream(keys=keys):
            yield from keys
        case TupleStream() | Elements(function="count") | str():
            pass
        case tuple() | list() | frozenset():
            for one in each:
                yield from read_in(one)
        case _ if is_dataclass(each):
            if isinstance(each, Begin):
                yield from each.left_keys
            for one in fields(each):
                yield from read_in(getattr(each, one.name))


def read_by(clause: Clause) -> set[str]:
    """Return the terms whose values a clause reads, and those that its matches show."""
    guard = clause.guard
    asked = (clause.residuals, clause.tests, clause.similar, clause.actions, clause.outcome)
    behind = () if guard is None else (guard.residuals, guard.tests)
    shown = () if clause.stream else clause.compared
    return {*shown, *read_in((asked, behind, clause.query_class.decided))}


def below(clause: Clause) -> Iterator[Clause]:
    """Yield a clause, and all whose tuples it reads."""
    yield clause
    for source in clause.sources:
        if source.below is not None:
            yield from below(source.below)
    for each in clause.deciding:
        yield from below(each)


def unasked(alternative: Alternative) -> set[str]:
    """Return the terms of blocks whose values a clause reads and does not ask for."""
    return {
        name
        for clause in alternative.clauses
        for name in read_by(clause)
        for each in below(clause)
        if name in each.places and name not in each.valued
    }


def check(text: str) -> None:
    for query in parse_case(text).queries:
        if not query.is_lossy:  # a loss may be given: it is compiled for each assignment
            for each in compile_query(query, 0, PatternCatalog(), {}, 1):
                assert unasked(each) == set()


@pytest.mark.parametrize("directory", [".", "ordered", "runs"])
def test_what_is_read_has_been_asked_for_in_cases_by_hand(directory: str) -> None:
    for _, text in cases(CASES / directory):
        check(text)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "lossy"])
def test_what_is_read_has_been_asked_for(kind: str) -> None:
    for seed in range(examples(4)):
        check(KINDS[kind].case(seed))
