"""Conditions with parameters in the form in which an index finds the data that fulfil them.

A bound is one test of a number, however many data there are.  Where a node is handed on once for
each of the data that find it, a bound is asked for as a combination of one condition is: each
distinct datum is looked for (`docs/decided.md`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xscl.constants import tested_parameter
from xscl.disjunctions import OTHER_NUMBER
from xscl.path import (
    And,
    Comparison,
    Condition,
    Or,
    Parameter,
    Path,
    Step,
    condition_parameters,
    conjuncts,
    counts_positions,
)
from xscl.pattern import INEQUALITIES
from xscl.prefilters import CHAINED
from xscl.rewriting import strip_variables

__all__ = ["as_sought"]


def as_sought(path: Path, texts: Collection[str], had: Collection[str]) -> Path:
    """Return a path of the same nodes whose conditions with parameters find data, where they can.

    `texts` are the parameters that stand for strings.  What is asked of parameters that are `had`,
    or that values of the node are equal to, stays as it is.
    """
    equal = {name for step in path.steps for name in _equal(step.predicates)}
    known = {*had, *equal}
    return Path(tuple(_sought_step(step, texts, known) for step in path.steps))


def _equal(predicates: Collection[Condition]) -> Iterator[str]:
    for each in conjuncts(predicates):
        match each:
            case Comparison(_, "=", Parameter(name)):
                yield name


def _sought_step(step: Step, texts: Collection[str], known: Collection[str]) -> Step:
    if not step.predicates:
        return step
    predicates = tuple(_sought(each, texts, known) for each in step.predicates)
    return Step(step.axis, step.test, step.is_deep, step.variable, predicates, step.span)


def _sought(asked: Condition, texts: Collection[str], known: Collection[str]) -> Condition:
    if isinstance(asked, And) and not counts_positions(asked):
        return And(tuple(_sought(each, texts, known) for each in asked.conditions))
    names = {parameter.name for parameter in condition_parameters(asked)}
    if not names or names & set(known) or strip_variables(asked) != asked:
        return asked
    given = tested_parameter(asked, texts)
    if given is None or given[0].operator not in _BROAD:
        return asked
    alone = Or((asked,))
    found = tested_parameter(alone, texts)
    return asked if found is None or found[0].is_negated else alone


_BROAD = (*INEQUALITIES, "!=", OTHER_NUMBER, CHAINED)
"""How values are compared that many data fulfil."""
