"""The clauses of sections 12 to 18: absence, NEXT, runs, chains, rows and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from mutants.wrong_rules import Rule
from oracle import chains, runs
from oracle.decided import Decisions
from support.query_parts import Part, parts, rewritten

from broker.matching.match import Match
from generators.case_clauses import CaseClause
from generators.clauses import QueryClause, a
from xscl.path import Literal
from xscl.query import (
    Absence,
    AbsenceKind,
    Call,
    Conditional,
    Disjunct,
    From,
    Limit,
    Operator,
    OperatorKind,
    Query,
    Repetition,
    Rows,
    SelectAll,
    SelectKind,
    Strategy,
    Window,
)
from xscl.sequence import nodes_below

__all__ = ["SEQUENCE_CLAUSES"]

ALWAYS = (Disjunct(),)

AGGREGATES = ("first", "last", "count", "count distinct", "sum", "avg", "min", "max")
ARGUMENTS = ("argmax", "argmin", "collect", "collect distinct")


# -- 14 to 16: absence and repetition -------------------------------------------------------------


def _repeats(query: Query, kind: OperatorKind | None) -> bool:
    """Return whether a repetition stands behind an operator of a kind, or, of none, is first."""
    behind = {
        id(each.right): each.kind
        for each in nodes_below(query.root)
        if isinstance(each, Operator) and isinstance(each.right, Repetition)
    }
    found = (each for each in nodes_below(query.root) if isinstance(each, Repetition))
    return any(behind.get(id(each)) is kind for each in found)


def _asked(repetition: Repetition) -> Iterator[Call]:
    """Yield the functions that a repetition asks its elements by."""
    asked = (repetition.disjuncts, repetition.condition, repetition.folds)
    return (each for each in parts(asked) if isinstance(each, Call))


def _of_elements(function: str, *, arguments: int) -> Callable[[Call], bool]:
    return lambda call: call.function == function and len(call.arguments) == arguments


def _in_runs(name: str, is_it: Callable[[Call], bool]) -> QueryClause:
    """Without it the element itself is asked; of a number of elements none."""

    def other(call: Part) -> Part:
        if not isinstance(call, Call) or not is_it(call):
            return call
        return call.arguments[0] if call.arguments else Literal(0.0)

    def without(repetition: Repetition) -> Repetition:
        return replace(
            repetition,
            disjuncts=rewritten(repetition.disjuncts, other),
            condition=rewritten(repetition.condition, other),
            folds=rewritten(repetition.folds, other),
        )

    return QueryClause(
        f"16 {name} of the elements before",
        a(Repetition, lambda repetition: any(map(is_it, _asked(repetition)))),
        without,
    )


def _of_run(name: str) -> QueryClause:
    """Without it, some element is asked."""

    def is_it(call: Part) -> bool:
        return isinstance(call, Call) and call.function == name and bool(call.arguments)

    def other(part: Part) -> Part:
        return part.arguments[0] if is_it(part) else part

    return QueryClause(
        f"16 {name}(e) of a run, behind it",
        a(Operator, lambda operator: any(map(is_it, parts(operator.disjuncts)))),
        lambda operator: replace(operator, disjuncts=rewritten(operator.disjuncts, other)),
    )


def _absence(name: str, kind: AbsenceKind) -> QueryClause:
    return QueryClause(f"14 {name}", a(Absence, lambda each: each.kind is kind), _operand)


def _operand(absence: Absence) -> Part:
    return absence.operand


ABSENCE = (
    _absence("UNLESS between", AbsenceKind.BETWEEN),
    _absence("UNLESS before the first", AbsenceKind.BEFORE),
    _absence("NOT FOLLOWED BY", AbsenceKind.AFTER),
    _absence("NOT JOIN", AbsenceKind.AROUND),
    QueryClause(
        "14 the window of UNLESS",
        a(Absence, lambda e: e.kind is AbsenceKind.BETWEEN and e.window is not None),
        lambda absence: replace(absence, window=None),
    ),
    QueryClause(
        "14 what is asked of what is absent",
        a(Absence, lambda absence: absence.disjuncts != ALWAYS),
        lambda absence: replace(absence, disjuncts=ALWAYS),
    ),
    QueryClause(
        "15 NEXT",
        a(Operator, lambda operator: operator.kind is OperatorKind.NEXT),
        lambda operator: replace(operator, kind=OperatorKind.FOLLOWED_BY),
    ),
)

REPETITION = (
    QueryClause(
        "16 + behind FOLLOWED BY", a(Query, lambda q: _repeats(q, OperatorKind.FOLLOWED_BY))
    ),
    QueryClause("16 + behind NEXT", a(Query, lambda q: _repeats(q, OperatorKind.NEXT))),
    QueryClause("16 + first", a(Query, lambda q: _repeats(q, None))),
    QueryClause(
        "16 what is asked of each element",
        a(Repetition, lambda each: each.disjuncts != ALWAYS),
        lambda each: replace(each, disjuncts=ALWAYS),
    ),
    QueryClause(
        "16 how far apart neighbours end",
        a(Repetition, lambda each: each.gap is not None),
        lambda each: replace(each, gap=None),
    ),
    QueryClause(
        "16 WHILE",
        a(Repetition, lambda each: each.condition is not None),
        lambda each: replace(each, condition=None),
    ),
    QueryClause(
        "16 FOLD",
        a(Repetition, lambda each: bool(each.folds)),
        lambda each: replace(
            each, folds=tuple(replace(fold, following=fold.first) for fold in each.folds)
        ),
    ),
    QueryClause(
        "16 if in what is asked of elements",
        a(Repetition, lambda e: any(isinstance(p, Conditional) for p in parts(e.folds))),
    ),
    _in_runs("prev(e)", _of_elements("prev", arguments=1)),
    _in_runs("prev(e, i)", _of_elements("prev", arguments=2)),
    _in_runs("count()", _of_elements("count", arguments=0)),
    *(
        _in_runs(f"{name}(e)", _of_elements(name, arguments=1))
        for name in ("first", "sum", "avg", "min", "max")
    ),
    *map(_of_run, ("first", "last")),
)


# -- 17 and 18: chains, rows, limits --------------------------------------------------------------


def _match(strategy: Strategy, other: Strategy | None) -> QueryClause:
    return QueryClause(
        f"17 MATCH {strategy.value}",
        a(From, lambda source: source.strategy is strategy),
        None if other is None else lambda source: replace(source, strategy=other),
    )


def _aggregate(function: str) -> QueryClause:
    name = "count(distinct e)" if function == "count distinct" else f"{function}(e)"
    name = "collect(distinct e)" if function == "collect distinct" else name
    return QueryClause(
        f"18 {name} of a row",
        a(Rows, lambda rows: any(_is_of(call, function) for call in rows.aggregates)),
    )


def _is_of(call: Call, function: str) -> bool:
    return call.function == function and bool(call.arguments)


OUTCOMES = (
    _match(Strategy.ANY, None),
    _match(Strategy.NEXT, Strategy.ANY),
    _match(Strategy.PARTITION, Strategy.NEXT),
    _match(Strategy.STRICT, Strategy.NEXT),
    QueryClause("18 a repeated variable in SELECT", a(Query, lambda q: _shows_runs(q))),
    QueryClause(
        "18 WINDOW",
        a(Query, lambda query: query.rows is not None),
        lambda query: replace(query, rows=None, select=SelectAll()),
    ),
    QueryClause(
        "18 WINDOW of more than one time",
        a(Rows, lambda rows: rows.length != Window(0)),
        lambda rows: replace(rows, length=Window(0)),
    ),
    QueryClause(
        "18 BY of rows",
        a(Rows, lambda rows: bool(rows.keys)),
        lambda rows: replace(rows, keys=tuple(Literal("x") for _ in rows.keys)),
    ),
    QueryClause(
        "18 HAVING",
        a(Rows, lambda rows: rows.having is not None),
        lambda rows: replace(rows, having=None),
    ),
    QueryClause(
        "18 count() of a row",
        a(Rows, lambda rows: any(not call.arguments for call in rows.aggregates)),
    ),
    *map(_aggregate, (*AGGREGATES, *ARGUMENTS)),
    QueryClause(
        "18 LIMIT",
        a(Query, lambda query: query.limit is not None),
        lambda query: replace(query, limit=None),
    ),
    QueryClause(
        "18 BY of LIMIT",
        a(Limit, lambda limit: bool(limit.keys)),
        lambda limit: replace(limit, keys=()),
    ),
    QueryClause(
        "18 SELECT DISJOINT",
        a(Query, lambda query: query.kind is SelectKind.DISJOINT),
        lambda query: replace(query, kind=SelectKind.ALL),
    ),
    QueryClause(
        "18 SELECT COMPRESSED",
        a(Query, lambda query: query.kind is SelectKind.COMPRESSED),
        lambda query: replace(query, kind=SelectKind.ALL),
    ),
    QueryClause(
        "12.2 GRACE",
        a(Query, lambda query: query.grace is not None),
        lambda query: replace(query, grace=None),
    ),
)


def _shows_runs(query: Query) -> bool:
    repeated = {
        block
        for node in nodes_below(query.root)
        if isinstance(node, Repetition)
        for block in nodes_below(node)
    }
    of = {variable.name: variable.block for variable in query.variables}
    return not isinstance(query.select, SelectAll) and any(
        of.get(name) in repeated for name in query.select.variables
    )


# -- what no text of a query shows ----------------------------------------------------------------


def _has_run(match: Match, least: int) -> bool:
    """Return whether a match has so many documents of one unit: of a row nothing says it."""
    of_block: dict[int, int] = {}
    for document in match.documents:
        if document.block is not None:
            of_block[document.block] = of_block.get(document.block, 0) + 1
    return bool(match.witnesses) and max(of_block.values(), default=0) >= least


CASES = (
    *(
        CaseClause(
            f"16 a run of {least} or more",
            shows=lambda case, found, least=least: any(_has_run(each, least) for each in found),
        )
        for least in (2, 4)
    ),
    CaseClause(
        "12.2 decided behind its documents",
        shows=lambda case, found: any(
            match.decided is not None
            and match.documents
            and match.decided > max(document.docid for document in match.documents)
            for match in found
        ),
    ),
    CaseClause(
        "12.2 decided by a late document",
        shows=lambda case, found: any(
            match.decided is not None
            and len(match.documents) > 1
            and match.decided == max(document.docid for document in match.documents)
            for match in found
        ),
    ),
)

_nexts = chains._Chain._nexts


def _least_end(self: Any, those: Any, last: Any) -> list[Any]:
    """Read *the next* as the first by time, whenever it counts."""
    known = [one for one in those if self.decisions.clock.settled(one.end_us) is not None]
    least = min((one.end_us for one in known), default=None)
    return [one for one in known if one.end_us == least]


def _follows_ties(later: Any, earlier: Any) -> bool:
    """Read what comes later as what follows, where both are of one time."""
    if earlier.end_us == later.start_us:
        return bool(earlier.position < later.position)
    return bool(earlier.end_us < later.start_us)


def _only_found(self: Any, state: Any) -> list[Any]:
    """Read contiguity as of documents in which something is found."""
    found = {id(document) for units in self.units for one in units for document in one.documents}
    documents = self.documents
    self.documents = [each for each in documents if id(each[0]) in found]
    try:
        return _nexts(self, state)
    finally:
        self.documents = documents


def _needs_runs(query: Query) -> bool:
    return any(isinstance(each, Repetition) for each in nodes_below(query.root))


def _needs_chain(*strategies: Strategy) -> Callable[[Query], bool]:
    return lambda query: any(
        isinstance(each, From) and each.strategy in strategies for each in nodes_below(query.root)
    )


def _decides_something(query: Query) -> bool:
    return query.is_ordered or _needs_runs(query)


RULES = (
    Rule("12.3 the next is the first that counts", runs.Runs, "first", _least_end, _needs_runs),
    Rule("16 no element follows one of its time", runs, "follows", _follows_ties, _needs_runs),
    Rule(
        "17 contiguity counts every document",
        chains._Chain,
        "_nexts",
        _only_found,
        _needs_chain(Strategy.PARTITION, Strategy.STRICT),
    ),
    Rule(
        "17 NEXT: nothing that is there stands between",
        chains._Chain,
        "_is_there",
        lambda self, one, state: False,
        _needs_chain(Strategy.NEXT),
    ),
    Rule(
        "1.1 of what an ordered operator holds",
        Decisions,
        "meet",
        lambda self, window_us, one, other: True,
        _decides_something,
    ),
)

SEQUENCE_CLAUSES = (*ABSENCE, *REPETITION, *OUTCOMES, *CASES, *RULES)
"""Clauses that the cases of ordered queries, of runs and of rows are to try."""
