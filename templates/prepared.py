"""Which parameters of a query are data, so that it is compiled once for all its assignments.

Where joins alone are asked for, a value is tested of a tuple that is there whatever the value is;
so it is where rows, limits or tables are made, or asked, of joins.
Where something is decided, it may be tested of what is decided about: the left operand of an
operator, or WHERE behind it.  What competes must be the same for all values, or fall into groups by
what is equal to them, and serve one threshold, or window, step by step.  What takes away may be
held against one parameter in one way, and says for which values it does.  Both may be held in any
way against data that what is decided about has for values (`docs/decided.md`).  Of what runs read,
only what stands before a repetition may differ, and the unit that a chain begins with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from itertools import chain

from templates.box import Measured
from templates.chaindecision import ChainDecision, DecidedChains
from templates.clause import Alternative, Clause
from templates.conjunctions import parameters_in
from templates.decision import Conjunction, Decided, Decision, DecisionKind
from templates.exceptions import spared_by_absent, spared_by_rights
from templates.founddata import unboxed_parameters
from templates.givendata import parameters_of
from templates.helddata import ways_held
from templates.rundecision import DecidedRuns, RunDecision
from templates.saiddata import takes_constants
from xscl.counting import counts_chain, is_counted
from xscl.path import Parameter, condition_parameters
from xscl.pattern import INEQUALITIES, PatternNode, TreePattern, Values
from xscl.query import (
    Absence,
    AbsenceKind,
    From,
    Node,
    Operator,
    Query,
    Repetition,
    operand_parameters,
)
from xscl.sequence import Unit, absences_at, decides, is_chain, nodes_below

__all__ = ["decided_by_parameters", "is_decided_alone", "is_prepared", "may_be_prepared"]


def may_be_prepared(query: Query) -> bool:
    """Return whether it is of use to compile a query as it is, and to ask `is_prepared`.

    Only then parameters may stand in the place of its windows.
    """
    if query.is_plain:
        return True
    if is_counted(query):
        return all(_is_of_run(query, each) for each in nodes_below(query.root) if _is_length(each))
    if query.learns or (query.is_lossy and any(_lengths_of_factors(query))):
        return False
    return is_decided_alone(query) or not any(
        isinstance(node, From) and _is_length_of_more(query, node)
        for node in nodes_below(query.root)
    )


def is_decided_alone(query: Query) -> bool:
    """Return whether nothing competes in a query: joins, whose tuples are asked more of.

    Then assignments that begin at different documents have the same decisions.
    """
    return query.is_settled and not (
        query.has_runs
        or query.has_chains
        or counts_chain(query)
        or query.is_lossy
        or any(map(decides, nodes_below(query.root)))
    )


def _is_of_run(query: Query, node: Node) -> bool:
    """Return whether lengths of a node are read as constants where runs are counted."""
    if counts_chain(query) or isinstance(node, Repetition):
        return True
    if isinstance(node, From):
        return _are_runs(node.node)
    return isinstance(node, Operator) and isinstance(node.right, Repetition)


def _is_length(node: Node) -> bool:
    """Return whether a parameter is a length of a node."""
    match node:
        case Operator(window=length) | Repetition(gap=length) | From(within=length):
            return isinstance(length, Parameter)
    return False


def _is_length_of_more(query: Query, source: From) -> bool:
    """Return whether WITHIN is a parameter that bounds more than it is the window of."""
    if not isinstance(source.within, Parameter) or is_chain(source) or query.is_open_chain:
        return False
    if query.is_lossy:
        return True
    absences, node = absences_at(source.node)
    if _are_runs(node):
        return not all(each.kind is AbsenceKind.BETWEEN for each in absences)
    return not _is_of_operators(source.node)


def _is_of_operators(node: Node) -> bool:
    """Return whether a node is of operators alone, and what is absent between their operands."""
    if isinstance(node, (int, Unit)):
        return True
    if isinstance(node, Absence) and node.kind is AbsenceKind.BETWEEN:
        return _is_of_operators(node.operand)
    if not isinstance(node, Operator):
        return False
    return _is_of_operators(node.left) and _is_of_operators(node.right)


def _are_runs(node: Node) -> bool:
    """Return whether a node is a repetition, first or behind a block."""
    if isinstance(node, Operator):
        return isinstance(node.right, Repetition) and isinstance(node.left, (int, Unit))
    return isinstance(node, Repetition)


def _lengths_of_factors(query: Query) -> Iterator[bool]:
    """Yield of each delay and window of a query with LOSS whether a parameter is its length."""
    for block in query.blocks:
        if block.loss is not None:
            yield from (isinstance(each, Parameter) for each in block.loss.delay.lengths)
    for node in nodes_below(query.root):
        if isinstance(node, (Operator, Absence)):
            yield isinstance(node.window, Parameter)


def is_prepared(alternatives: Sequence[Alternative]) -> bool:
    """Return whether all parameters of a compiled query are data: tested in boxes, or at the root.

    Then an assignment needs no compiling: it is a row of constants and windows.
    """
    return not any(
        any(
            any(map(_has_parameter, pattern.nodes))
            for pattern in alternative.patterns
            if isinstance(pattern, TreePattern)
        )
        or any(map(_tests_parameter, alternative.clauses[:-1]))
        or any(map(_takes_by_score, alternative.clauses[:-1]))
        or any(map(_decides_by_parameter, alternative.clauses))
        for alternative in alternatives
    )


def decided_by_parameters(alternatives: Iterable[Alternative]) -> frozenset[int]:
    """Return the places of decisions that depend on parameters."""
    clauses = (clause for alternative in alternatives for clause in alternative.clauses)
    return frozenset(clause.origin for clause in clauses if _decides_by_parameter(clause))


def _takes_by_score(clause: Clause) -> bool:
    """Return whether what is absent is held against data by scores.

    Below other operators one box stands for all data.  It says the largest threshold, and rows are
    looked up by the lowest.
    """
    decided = clause.query_class.decided
    cases = [
        case
        for absent in (decided.decision.absences if isinstance(decided, Decided) else ())
        for case in absent.cases
    ]
    return any(case.score is not None for case in cases)


def _tests_parameter(clause: Clause) -> bool:
    """Return whether a condition that no box has asks for a parameter that tuples do not say."""
    said = {name for test in clause.unheld for name in parameters_of(test)}
    return not unboxed_parameters(clause) <= said


def _has_parameter(node: PatternNode) -> bool:
    """Return whether a parameter stands in what defines a node: in a filter, or in a function."""
    in_filters = (parameter for each in node.filters for parameter in condition_parameters(each))
    derivation = node.derivation
    if derivation is None or isinstance(derivation, Values):  # no parameter is in a path of values
        return any(in_filters)
    in_function = operand_parameters(derivation)
    return any(chain(in_filters, in_function))


def _decides_by_parameter(clause: Clause) -> bool:
    """Return whether what a clause's decision chooses among, or asks, depends on a parameter."""
    decided = clause.query_class.decided
    if isinstance(decided, (DecidedRuns, DecidedChains)):
        return _runs_by_parameter(decided, clause.deciding)
    if decided is None:
        return False
    decision = decided.decision
    cases = [case for absent in decision.absences for case in absent.cases]
    absent = {case.stream.name for case in cases}
    asked = [*(fit.asked for fit in decision.fits), *(case.asked for case in cases)]
    rights = {fit.right.name for fit in decision.fits if decision.kind is DecisionKind.NEXT}
    of_left, of_both = decision.had[0], {*decision.had[0], *decision.had[1]}
    held = [ways_held(each, of_left) for each in clause.deciding if each.stream in rights]
    taking = [_taking(each, of_both) for each in clause.deciding if each.stream in absent]
    windows = {each.window_us for each in decision.absences}
    by_rights = spared_by_rights(held)
    by_absent = spared_by_absent(
        [ways_held(each, of_both) for each in clause.deciding if each.stream in absent], by_rights
    )
    has_bar = decision.is_nearing or not {how for each in held for _, how in each} <= {"=", "!="}
    is_held = any(held) or any(taking)
    if decision.is_scored and not _is_scored_alone(
        decision, clause, has_bar=has_bar, is_held=is_held
    ):
        return True
    return (
        any(map(_asks_parameter, asked))
        or not (by_rights or _are_steps(held, most=0 if decision.is_nearing else 1))
        or not (by_absent or _takes_in_one_way(decision, taking, windows, has_bar=has_bar))
        or not _has_one_set(decision, by_rights, by_absent, taking)
    )


def _has_one_set(
    decision: Decision,
    by_rights: str | None,
    by_absent: str | None,
    taking: Sequence[tuple[tuple[str, str], ...]],
) -> bool:
    """Return whether a tuple has data of one kind, if any, of which rows leave some.

    Then no window is data, but for one that it is decided for.
    """
    if by_rights is by_absent is None:
        return True
    windows = [each.window_us for each in decision.absences]
    if decision.is_nearing or any(isinstance(each, Parameter) for each in windows):
        return False
    if by_absent is not None:
        return by_rights in (None, by_absent)
    return not any(how == "=" for each in taking for _, how in each)


def _is_scored_alone(decision: Decision, clause: Clause, *, has_bar: bool, is_held: bool) -> bool:
    """Return whether scores are held against one threshold, and nothing else raises bars.

    All pairs have a score, or what is absent has; `is_held` says that other values are held against
    data too, in what competes or takes away.
    """
    measured = {test[1:] for test in clause.box if isinstance(test.place, Measured)}
    thresholds = {test[1:] for test in clause.box if test.is_of_numbers}
    are_scored = {fit.score is not None for fit in decision.fits}
    cases = [case for absent in decision.absences for case in absent.cases]
    has_windows = any(isinstance(each.window_us, Parameter) for each in decision.absences)
    is_of_pairs = True in are_scored
    if has_bar or has_windows or decision.is_graded or is_held:
        return False
    if is_of_pairs:
        is_next = decision.kind is DecisionKind.NEXT
        is_one = len(measured) == 1 and len(thresholds) == is_next
        return is_one and len(are_scored) == 1 and all(case.score is None for case in cases)
    return len(thresholds) == 1


def _takes_in_one_way(
    decision: Decision,
    taking: Sequence[tuple[tuple[str, str], ...]],
    windows: Set[int | Parameter],
    *,
    has_bar: bool,
) -> bool:
    """Return whether what is absent is held against one parameter at most, in one way.

    `has_bar` says that a tuple's bar has another use, so that absences may not raise it.
    """
    ways = {each for each in taking if each}
    is_of_windows = any(isinstance(each, Parameter) for each in windows)
    if len(ways) + is_of_windows > 1:
        return False
    if is_of_windows:
        return not has_bar and sum(isinstance(w, Parameter) for w in windows) == 1
    if decision.is_nearing:
        return not ways
    hows = {how for way in ways for _, how in way}
    if hows <= {"="}:
        return True
    is_one = all(len(way) == 1 for way in ways)
    return is_one and (hows == {"!="} or (hows.issubset(INEQUALITIES) and not has_bar))


def _taking(clause: Clause, had: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return how rows of what is absent are held against data, but for those that are `had`.

    Values that they take are those of all data that are equal to any.
    """
    left = ways_held(clause, had)
    if any(how == "=" for _, how in left):
        left = sorted({*left, *(each for each in ways_held(clause, ()) if each[1] == "=")})
    return tuple(left)


def _runs_by_parameter(runs: DecidedRuns | DecidedChains, read: Sequence[Clause]) -> bool:
    """Return whether a parameter is held against more than what runs begin behind, or with.

    What runs that are counted begin with is not known of their number.
    """
    is_counted = runs.decision.counting is not None
    begins = set() if is_counted else {stream.name for stream in runs.begins()}
    # What a run carries as its key is asked behind it.
    given = {
        each.stream.name: {(datum, "=") for datum in (*each.given, *each.data)}
        for each in runs.decision.read()
    }
    if isinstance(runs, DecidedChains):
        of_units = {(datum, "=") for datum in runs.decision.data}
        streams = (step.stream.name for step in runs.steps if step.stream is not None)
        given = dict.fromkeys(streams, of_units) | given
    had = _had_beside(runs.decision)
    if not _say_the_same(runs.decision):
        return True
    named = {each.parameter for each in runs.decision.given}
    if not {*runs.decision.lengths_given()} <= named:
        return True
    asked = [operand for each in runs.conditions() for operand in each.operands()]
    return not takes_constants(asked, named) or any(
        not set(ways_held(each, had.get(each.stream, ()))) <= given.get(each.stream, set())
        for each in read
        if each.stream not in begins
    )


def _had_beside(decision: RunDecision | ChainDecision) -> dict[str, set[str]]:
    """Return the data beside which elements, and what is absent, are asked more, by stream."""
    had = decision.had if isinstance(decision, RunDecision) else ()
    of_elements = decision.elements if isinstance(decision, RunDecision) else ()
    absent = (each for unit in decision.absences for each in unit.elements)
    found = {each.stream.name: {*had} for each in of_elements}
    return found | {each.stream.name: {*had, *decision.data} for each in absent}


def _say_the_same(decision: RunDecision | ChainDecision) -> bool:
    """Return whether elements of all blocks say the same data, and what is absent none but these.

    It may say those of what stands before.  Of chains more is asked of what runs begin with alone.
    """
    had: tuple[str, ...] = ()
    of_units = [each.elements for each in decision.absences]
    if isinstance(decision, RunDecision):
        had, of_units = decision.had, [decision.elements, *of_units]
    elif any(each.had for link in decision.links for each in link.elements):
        return False
    known = {*had, *decision.data}
    return all(
        each.data == unit[0].data and known.issuperset(each.data)
        for unit in of_units
        for each in unit
    )


def _are_steps(asked: Sequence[list[tuple[str, str]]], most: int) -> bool:
    """Return whether rights compete in groups of equal data, served step by step in each.

    They have at most as many thresholds as `most`, all the same, and no other condition on data.
    """
    is_alike = all(each == asked[0] for each in asked)
    thresholds = [how for each in asked[:1] for _, how in each if how != "="]
    return is_alike and len(thresholds) <= most and set(thresholds).issubset(INEQUALITIES)


def _asks_parameter(asked: Conjunction) -> bool:
    return not parameters_in(asked.rest) <= {each.parameter for each in asked.given}
