"""The clauses of the language, as one finds them in queries, documents and registrations.

`clause_coverage` counts in how many generated cases they stand, and in how many they decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

from kit import Case
from oracle import number_documents
from oracle.tree import is_well_formed

from broker.document import Document, DocumentLine
from broker.match import Match
from xscl.path import (
    ANY,
    And,
    Axis,
    Comparison,
    Exists,
    Literal,
    Not,
    Opaque,
    Or,
    Parameter,
    Position,
    Step,
    StringTest,
    binding_paths,
)
from xscl.path import Call as StepCall
from xscl.query import (
    INFINITE_US,
    Block,
    Call,
    Constructor,
    Operator,
    OperatorKind,
    Query,
    Residual,
    SelectAll,
    SelectNodes,
    ValueJoin,
    VariableValue,
    Window,
)

__all__ = [
    "CASE_CLAUSES",
    "QUERY_CLAUSES",
    "CaseClause",
    "Part",
    "QueryClause",
    "parts",
    "rewritten",
]

Part = Any
"""One of the values that a query in normal form is made of, or the query."""


@dataclass(frozen=True, slots=True)
class QueryClause:
    """A clause of queries: how to know the part that it is, and what takes its place without it."""

    name: str
    is_it: Callable[[Part], bool]
    without: Callable[[Part], Part] | None = None


@dataclass(frozen=True, slots=True)
class CaseClause:
    """A clause of documents and registration: the case without it, the very same if it has none.

    Where it cannot be taken out, `shows` tells from the matches whether it decides.
    """

    name: str
    without: Callable[[Case], Case] | None = None
    shows: Callable[[Case, Sequence[Match]], bool] = lambda case, matches: False


def parts(value: Part) -> Iterator[Part]:
    """Yield all that a value is made of, itself first."""
    yield value
    if is_dataclass(value):
        for each in fields(value):
            yield from parts(getattr(value, each.name))
    elif isinstance(value, tuple):
        for each in value:
            yield from parts(each)


def rewritten(value: Part, change: Callable[[Part], Part]) -> Part:
    """Return a value with each of its parts changed, inner ones first."""
    if isinstance(value, tuple):
        return tuple(rewritten(each, change) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    inner = {f.name: rewritten(getattr(value, f.name), change) for f in fields(value)}
    return change(replace(value, **inner))


def a(kind: type, condition: Callable[[Any], bool] = lambda part: True) -> Callable[[Part], bool]:
    """Return what knows the parts of a kind that meet a condition."""
    return lambda part: isinstance(part, kind) and condition(part)


# Queries

HOLDS = Residual(Literal("x"), "=", Literal("x"))


def _variables(side: Part) -> set[str]:
    return {part.variable for part in parts(side) if isinstance(part, VariableValue)}


def _is_literal(kind: type) -> Callable[[Residual], bool]:
    def condition(residual: Residual) -> bool:
        sides = (residual.left, residual.right)
        return any(isinstance(side, Literal) and isinstance(side.value, kind) for side in sides)

    return condition


def _residuals_inside(query: Query) -> set[Residual]:
    """Return the residuals that compare several variables of one of their operator's operands."""
    block_of = {variable.name: variable.block for variable in query.variables}
    found = set()
    for operator in query.operators():
        lefts = (
            list(operator.left.blocks()) if isinstance(operator.left, Operator) else [operator.left]
        )
        for residual in (r for d in operator.disjuncts for r in d.residuals):
            names = _variables(residual)
            if len(names) > 1 and len({block_of[name] in lefts for name in names}) == 1:
                found.add(residual)
    return found


def _without_residuals_inside(query: Query) -> Query:
    inside = _residuals_inside(query)
    changed = rewritten(query, lambda part: HOLDS if part in inside else part) if inside else query
    assert isinstance(changed, Query)
    return changed


def _is_nested(query: Query, *sides: str) -> bool:
    return any(
        all(isinstance(getattr(operator, side), Operator) for side in sides)
        for operator in query.operators()
    )


def _shape(block: Block) -> Part:
    """Return what a block asks for, its variables left out."""
    return rewritten(block.path, lambda p: replace(p, variable=None) if isinstance(p, Step) else p)


def _value_joins(query: Query) -> int:
    return max((len(d.value_joins) for o in query.operators() for d in o.disjuncts), default=0)


def _compares_nothing(query: Query) -> bool:
    return any(not d.value_joins for o in query.operators() for d in o.disjuncts)


FUNCTIONS = {
    *("string", "normalize-space", "lower-case", "upper-case", "translate", "substring", "concat"),
    *("substring-before", "substring-after", "replace", "tokenize", "host"),
}


def _function(name: str) -> QueryClause:
    """Without it, its argument stands there."""
    return QueryClause(
        f"5 {name}()",
        a(Call, lambda call: call.function == name),
        lambda call: call.arguments[0],
    )


def _condition(name: str, is_it: Callable[[Part], bool]) -> QueryClause:
    return QueryClause(f"3 {name}", is_it, _existence)


def _existence(condition: Part) -> Part:
    """Return a condition that asks only that there is what the condition binds variables to."""
    return And(tuple(map(Exists, binding_paths(condition))))


def _residual(name: str, condition: Callable[[Residual], bool]) -> QueryClause:
    return QueryClause(f"4 residual: {name}", a(Residual, condition), lambda residual: HOLDS)


def _query(name: str, condition: Callable[[Query], bool]) -> QueryClause:
    return QueryClause(name, a(Query, condition))


def _step(name: str, condition: Callable[[Step], bool]) -> QueryClause:
    return QueryClause(f"3 {name}", a(Step, condition))


def _constant(comparison: Comparison, kind: type) -> bool:
    right = comparison.right
    return isinstance(right, Literal) and isinstance(right.value, kind)


QUERY_CLAUSES = (
    _query("2 one block alone", lambda q: not isinstance(q.root, Operator)),
    _query("2 several streams", lambda q: len({block.stream for block in q.blocks}) > 1),
    QueryClause(
        "2 stream *", a(Block, lambda b: b.stream == "*"), lambda b: replace(b, stream="S")
    ),
    *(
        _query(f"2.1 parameter: {kind}", lambda q, kind=kind: kind in dict(q.parameters).values())
        for kind in ("string", "number", "value", "duration")
    ),
    QueryClause("3 //", a(Step, lambda s: s.is_deep), lambda s: replace(s, is_deep=False)),
    _step("@attribute", lambda s: s.axis is Axis.ATTRIBUTE),
    _step(".", lambda s: s.axis is Axis.SELF),
    _step("text()", lambda s: s.test.is_text),
    _step("*", lambda s: s.axis is not Axis.SELF and s.test.name == ANY),
    _step("*:name", lambda s: s.test.namespace == ANY and s.test.name != ANY),
    _step("prefix:name", lambda s: s.test.namespace not in (None, ANY)),
    _step("inner variable", lambda s: s.variable is not None and "/" not in s.variable),
    _condition("position", a(Position, lambda p: not p.of_last and not p.is_size)),
    _condition("last()", a(Position, lambda p: p.of_last or p.is_size)),
    _condition("or", a(Or)),
    _condition("not", a(Not)),
    _condition("comparison with a string", a(Comparison, lambda c: _constant(c, str))),
    _condition("comparison with a number", a(Comparison, lambda c: _constant(c, float))),
    _condition(
        "comparison with a parameter", a(Comparison, lambda c: isinstance(c.right, Parameter))
    ),
    _condition("function in a comparison", a(Comparison, lambda c: isinstance(c.left, StepCall))),
    *(
        _condition(f"{name}()", a(StringTest, lambda test, name=name: test.function == name))
        for name in ("contains", "starts-with", "ends-with", "matches")
    ),
    _condition("opaque condition", a(Opaque)),
    QueryClause(
        "4 FOLLOWED BY",
        a(Operator, lambda o: o.kind is OperatorKind.FOLLOWED_BY),
        lambda o: replace(o, kind=OperatorKind.JOIN),
    ),
    QueryClause(
        "4 JOIN",
        a(Operator, lambda o: o.kind is OperatorKind.JOIN),
        lambda o: replace(o, kind=OperatorKind.FOLLOWED_BY),
    ),
    QueryClause(
        "4 window",
        a(Window, lambda window: window.length_us < INFINITE_US),
        lambda window: Window(INFINITE_US),
    ),
    _query("4 INF", lambda q: any(p == Window(INFINITE_US) for p in parts(q.root))),
    _query("4 several windows", lambda q: len({o.window for o in q.operators()}) > 1),
    _query("4 operand nested left", lambda q: _is_nested(q, "left")),
    _query("4 operand nested right", lambda q: _is_nested(q, "right")),
    _query("4 operands nested left and right", lambda q: _is_nested(q, "left", "right")),
    _query(
        "4 symmetric query", lambda q: len(q.blocks) == 2 and len(set(map(_shape, q.blocks))) == 1
    ),
    _query("4 several value joins", lambda q: _value_joins(q) > 1),
    _query("4 no value join", _compares_nothing),
    QueryClause(
        "4 OR",
        a(Operator, lambda o: len(o.disjuncts) > 1),
        lambda o: replace(o, disjuncts=o.disjuncts[:1]),
    ),
    _residual("=", lambda r: r.operator == "="),
    _residual("!=", lambda r: r.operator == "!="),
    _residual("< <= > >=", lambda r: r.operator[0] in "<>"),
    _residual("with a string", _is_literal(str)),
    _residual("with a number", _is_literal(float)),
    _residual("with a parameter", lambda r: isinstance(r.right, Parameter)),
    _residual(
        "function of several", lambda r: max(len(_variables(s)) for s in (r.left, r.right)) > 1
    ),
    QueryClause(
        "4 residual: inside one operand",
        a(Query, lambda q: bool(_residuals_inside(q))),
        _without_residuals_inside,
    ),
    *map(_function, sorted(FUNCTIONS)),
    QueryClause(
        "5 join on a derived value",
        a(ValueJoin, lambda j: isinstance(j.left, Call) or isinstance(j.right, Call)),
    ),
    _query("6 SELECT *", lambda q: isinstance(q.select, SelectAll)),
    _query("6 SELECT x, y", lambda q: isinstance(q.select, SelectNodes)),
    _query("6 constructor", lambda q: isinstance(q.select, Constructor)),
    _query("6 start() end() dur()", lambda q: "start()" in q.text),
    _query("6 PUBLISH", lambda q: q.publish is not None),
    _query("6 reads what is published", lambda q: any(b.stream.startswith("P") for b in q.blocks)),
    _query(
        "6 PUBLISH of what is published",
        lambda q: q.publish is not None and any(b.stream.startswith("P") for b in q.blocks),
    ),
)


# Documents and registration


def _with_lines(case: Case, change: Callable[[DocumentLine], DocumentLine]) -> Case:
    return replace(case, lines=[change(line) for line in case.lines])


def _apart(case: Case) -> Case:
    """Return a case in which no two documents have equal times, nor times a window apart."""
    lines = [
        line if line.time_us is None else replace(line, time_us=line.time_us + 1_000_003 * i)
        for i, line in enumerate(case.lines)
    ]
    return replace(case, lines=lines)


def _filled(xml: bytes) -> bytes:
    """Return a document in which all that is empty has one and the same value."""
    return re.sub(rb'=""', b'="E"', re.sub(rb"(<[\w:]+[^<>]*>)(</)", rb"\1E\2", xml))


def _in_match(condition: Callable[[Document], bool]) -> Callable[[Case, Sequence[Match]], bool]:
    """Return what tells whether a document that meets a condition is part of a match."""

    def shows(case: Case, matches: Sequence[Match]) -> bool:
        wanted = {each.docid for each in number_documents(case.lines) if condition(each)}
        return any(each.docid in wanted for match in matches for each in match.documents)

    return shows


def _beside_rubbish(case: Case, matches: Sequence[Match]) -> bool:
    return bool(matches) and not all(is_well_formed(line.xml) for line in case.lines)


def _against_arrival(case: Case, matches: Sequence[Match]) -> bool:
    return any(
        earlier.docid > later.docid
        for match in matches
        for earlier, later in pairwise(sorted(match.documents, key=lambda each: each.time_us))
    )


CASE_CLAUSES = (
    CaseClause(
        "1 the same document again",
        shows=lambda case, found: (
            len(number_documents(case.lines)) < len(case.lines) and bool(found)
        ),
    ),
    CaseClause("1 revision of a document", shows=_in_match(lambda d: "#" in d.key)),
    CaseClause("1 document that is not XML", shows=_beside_rubbish),
    CaseClause(
        "1.1 claimed time after arrival", shows=_in_match(lambda d: d.claimed_us is not None)
    ),
    CaseClause("1.1 found against the order of arrival", shows=_against_arrival),
    CaseClause("1.1 later than A", lambda case: replace(case, lateness_us=INFINITE_US // 4)),
    CaseClause("4 equal times, or times exactly a window apart", _apart),
    CaseClause(
        "4 empty string", lambda case: _with_lines(case, lambda d: replace(d, xml=_filled(d.xml)))
    ),
    CaseClause(
        "6 several witness tuples",
        shows=lambda case, found: any(len(m.witnesses) > 1 for m in found),
    ),
    CaseClause(
        "6 more than 1,000 witness tuples",
        shows=lambda case, found: any(m.witnesses_omitted for m in found),
    ),
    CaseClause(
        "6 constructor that fails", shows=lambda case, found: any(m.output_error for m in found)
    ),
    CaseClause("7 registration point", lambda case: replace(case, registered={})),
)
