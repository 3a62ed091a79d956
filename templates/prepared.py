"""Which parameters of a query are data, so that it is compiled once for all its assignments.

Where joins alone are asked for, a value is tested of a tuple that is there whatever the value is.
Where something is decided, it may be tested of what is decided about: the left operand of an
operator, or WHERE behind it.  What competes, and what takes away, must be the same for all values,
or fall into groups by what is equal to them, and serve one threshold, or window, step by step
(`docs/decided.md`).  Of what a repetition reads, only what stands before it may differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from templates.clause import Alternative, Clause
from templates.decision import Conjunction, Decided, DecisionKind
from templates.rundecision import DecidedRuns
from xscl.path import Parameter, condition_parameters
from xscl.pattern import INEQUALITIES, PatternNode
from xscl.query import (
    Absence,
    AbsenceKind,
    From,
    Node,
    Operand,
    Operator,
    Query,
    Repetition,
    SelectKind,
    operand_parameters,
)
from xscl.sequence import children, decides, nodes_below

__all__ = ["is_prepared", "may_be_prepared"]


def may_be_prepared(query: Query) -> bool:
    """Return whether it is of use to compile a query as it is, and to ask `is_prepared`.

    Only then parameters may stand in the place of its windows.
    """
    if query.is_plain:
        return True
    is_asked_more = bool(query.tables) or query.rows is not None or query.limit is not None
    if query.learns or (query.is_lossy and any(_lengths_of_factors(query))):
        return False
    return not (
        is_asked_more
        or query.kind is not SelectKind.ALL
        or any(
            isinstance(node, From) and (node.strategy or isinstance(node.within, Parameter))
            for node in nodes_below(query.root)
        )
        or any(_lengths_decided(query.root))
    )


def _lengths_of_factors(query: Query) -> Iterator[bool]:
    """Yield of each delay and window of a query with LOSS whether a parameter is its length."""
    for block in query.blocks:
        if block.loss is not None:
            yield from (isinstance(each, Parameter) for each in block.loss.delay.lengths)
    for node in nodes_below(query.root):
        if isinstance(node, (Operator, Absence)):
            yield isinstance(node.window, Parameter)


def _lengths_decided(node: Node, *, is_below: bool = False) -> Iterator[bool]:
    """Yield of each window and gap whether it is a parameter, where that has to be known."""
    is_of_runs = isinstance(node, Operator) and isinstance(node.right, Repetition)
    if isinstance(node, Repetition):
        yield isinstance(node.gap, Parameter)
    elif isinstance(node, (Operator, Absence)):
        at_end = isinstance(node, Absence) and node.kind in (AbsenceKind.AFTER, AbsenceKind.AROUND)
        is_data = at_end or (isinstance(node, Operator) and not is_of_runs)
        yield (is_below or not is_data) and isinstance(node.window, Parameter)
    is_below = is_below or is_of_runs or decides(node)
    for child in children(node):
        yield from _lengths_decided(child, is_below=is_below)


def is_prepared(alternatives: Sequence[Alternative]) -> bool:
    """Return whether all parameters of a compiled query are data: tested in boxes, or at the root.

    Then an assignment needs no compiling: it is a row of constants and windows.
    """
    return not any(
        any(map(_has_parameter, (n for p in alternative.patterns for n in p.nodes)))
        or any(map(_tests_parameter, alternative.clauses[:-1]))
        or any(map(_decides_by_parameter, alternative.clauses))
        for alternative in alternatives
    )


def _tests_parameter(clause: Clause) -> bool:
    """Return whether a parameter stands in a condition that no box has."""
    operands = [o for residual in clause.residuals for o in (residual.left, residual.right)]
    return _have_parameters([*operands, *clause.tests])


def _have_parameters(operands: Iterable[Operand]) -> bool:
    return any(any(operand_parameters(each)) for each in operands)


def _has_parameter(node: PatternNode) -> bool:
    """Return whether a parameter stands in what defines a node: in a filter, or in a function."""
    in_filters = (parameter for each in node.filters for parameter in condition_parameters(each))
    in_function = operand_parameters(node.derivation) if node.derivation else ()
    return any(chain(in_filters, in_function))


def _decides_by_parameter(clause: Clause) -> bool:
    """Return whether what a clause's decision chooses among, or asks, depends on a parameter."""
    decided = clause.query_class.decided
    if isinstance(decided, DecidedRuns):
        return _runs_by_parameter(decided, clause.deciding)
    if not isinstance(decided, Decided):
        return decided is not None
    decision = decided.decision
    cases = [case for absent in decision.absences for case in absent.cases]
    absent = {case.stream.name for case in cases}
    asked = [*(fit.asked for fit in decision.fits), *(case.asked for case in cases)]
    rights = {fit.right.name for fit in decision.fits if decision.kind is DecisionKind.NEXT}
    return (
        any(map(_asks_parameter, asked))
        or any(_data(each) for each in clause.deciding if each.stream in absent)
        or not _are_steps(
            [_data(each) for each in clause.deciding if each.stream in rights],
            most=0 if isinstance(decision.window_us, Parameter) else 1,
        )
    )


def _runs_by_parameter(runs: DecidedRuns, read: Sequence[Clause]) -> bool:
    """Return whether a parameter is held against more than what stands before runs."""
    decision = runs.decision
    behind = [runs.left, *(begin.left for begin in decision.begins)]
    lefts = {left.name for left in behind if left is not None}
    return any(_have_parameters(each.operands()) for each in decision.conditions()) or any(
        _data(each) for each in read if each.stream not in lefts
    )


def _data(clause: Clause) -> list[tuple[str, str]]:
    """Return the parameters that the tuples of a clause are held against, each with how."""
    tests = ((test.data, test.operator) for test in clause.box)
    return sorted((data.name, how) for data, how in tests if isinstance(data, Parameter))


def _are_steps(asked: Sequence[list[tuple[str, str]]], most: int) -> bool:
    """Return whether rights compete in groups of equal data, served step by step in each.

    They have at most as many thresholds as `most`, all the same, and no other condition on data.
    """
    is_alike = all(each == asked[0] for each in asked)
    thresholds = [how for each in asked[:1] for _, how in each if how != "="]
    return is_alike and len(thresholds) <= most and set(thresholds).issubset(INEQUALITIES)


def _asks_parameter(asked: Conjunction) -> bool:
    return _have_parameters(asked.rest.operands())
