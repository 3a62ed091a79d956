"""The clauses of the language, as one finds them in queries.

`clause_coverage` counts in how many generated cases they stand, and in how many they decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mutants.misreadings import (
    HOLDS,
    common_comparisons,
    comparisons,
    has_long_end,
    has_paths_and_alternatives,
    residuals_inside,
    variables_of,
    with_common_in_last,
    with_end_in_all,
    with_one_of_each_path,
    with_paths_asked_for,
    without_residuals_inside,
)
from support.query_parts import Part, parts, rewritten

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
from xscl.path import FunctionValue as StepCall
from xscl.query import (
    INFINITE_US,
    Block,
    Call,
    Conditional,
    Constructor,
    Disjunct,
    From,
    Operator,
    OperatorKind,
    Query,
    Residual,
    SelectAll,
    SelectNodes,
    Unit,
    ValueJoin,
    Window,
)
from xscl.signatures import STRING_TESTS

ARITHMETIC = ("+", "-", "*", "div", "mod")

__all__ = [
    "QUERY_CLAUSES",
    "QueryClause",
]


@dataclass(frozen=True, slots=True)
class QueryClause:
    """A clause of queries: how to know the part that it is, and what takes its place without it."""

    name: str
    is_it: Callable[[Part], bool]
    without: Callable[[Part], Part] | None = None


def a(kind: type, condition: Callable[[Any], bool] = lambda part: True) -> Callable[[Part], bool]:
    """Return what knows the parts of a kind that meet a condition."""
    return lambda part: isinstance(part, kind) and condition(part)


HOUR = Window(3_600_000_000)


def _is_literal(kind: type) -> Callable[[Residual], bool]:
    def condition(residual: Residual) -> bool:
        sides = (residual.left, residual.right)
        return any(isinstance(side, Literal) and isinstance(side.value, kind) for side in sides)

    return condition


def _is_nested(query: Query, *sides: str) -> bool:
    return any(
        all(isinstance(getattr(operator, side), Operator) for side in sides)
        for operator in query.operators()
    )


def _shape(block: Block) -> Part:
    """Return what a block asks for, its variables left out."""
    return rewritten(block.path, lambda p: replace(p, variable=None) if isinstance(p, Step) else p)


def _has_disjunct(condition: Callable[[Disjunct], bool]) -> Callable[[Query], bool]:
    return lambda query: any(condition(d) for o in query.operators() for d in o.disjuncts)


FUNCTIONS = {
    *("string", "normalize-space", "lower-case", "upper-case", "translate", "substring", "concat"),
    *("substring-before", "substring-after", "replace", "tokenize", "host"),
}


def _function(name: str) -> QueryClause:
    """Without it, its argument stands there; of `string`, which changes nothing, another value."""
    return QueryClause(
        f"5 {name}()",
        a(Call, lambda call: call.function == name),
        lambda call: Literal("another") if name == "string" else call.arguments[0],
    )


def _is_call(side: Part) -> bool:
    return isinstance(side, Call)


def _is_inner(argument: Part) -> bool:
    """Return whether an argument is a function of something: a time of the match is of nothing."""
    return isinstance(argument, Call) and bool(argument.arguments)


def _has_inner(call: Call) -> bool:
    return any(map(_is_inner, call.arguments))


def _without_inner(call: Call) -> Call:
    arguments = (
        each.arguments[0] if isinstance(each, Call) and each.arguments else each
        for each in call.arguments
    )
    return replace(call, arguments=tuple(arguments))


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
    QueryClause(
        "4 the bound of a window is closed",
        a(Window, lambda window: 0 < window.length_us < INFINITE_US),
        lambda window: Window(window.length_us - 1),
    ),
    QueryClause(
        "4 INF", a(Window, lambda window: window.length_us == INFINITE_US), lambda window: HOUR
    ),
    _query("4 several windows", lambda q: len({o.window for o in q.operators()}) > 1),
    _query("4 operand nested left", lambda q: _is_nested(q, "left")),
    _query("4 operand nested right", lambda q: _is_nested(q, "right")),
    _query("4 operands nested left and right", lambda q: _is_nested(q, "left", "right")),
    _query(
        "4 symmetric query", lambda q: len(q.blocks) == 2 and len(set(map(_shape, q.blocks))) == 1
    ),
    QueryClause(
        "4 value join",
        a(Disjunct, lambda d: bool(d.value_joins)),
        lambda d: replace(d, value_joins=()),
    ),
    QueryClause(
        "4 several value joins",
        a(Disjunct, lambda d: len(d.value_joins) > 1),
        lambda d: replace(d, value_joins=d.value_joins[:1]),
    ),
    _query("4 nothing compared", _has_disjunct(lambda d: not comparisons(d))),
    _query("4 residuals alone", _has_disjunct(lambda d: bool(d.residuals) and not d.value_joins)),
    _query("4 path from a variable", lambda q: any(v.is_path for v in q.variables)),
    QueryClause(
        "4 a path is fresh at each occurrence",
        a(Query, lambda q: any("#" in v.name[1:] for v in q.variables)),
        with_one_of_each_path,
    ),
    QueryClause(
        "4 OR",
        a(Operator, lambda o: len(o.disjuncts) > 1),
        lambda o: replace(o, disjuncts=o.disjuncts[:1]),
    ),
    QueryClause(
        "4 (a OR b) AND c", a(Operator, lambda o: bool(common_comparisons(o))), with_common_in_last
    ),
    QueryClause("4 a OR b AND c", a(Operator, has_long_end), with_end_in_all),
    QueryClause(
        "4 OR: a path asks nothing of other alternatives",
        a(Query, has_paths_and_alternatives),
        with_paths_asked_for,
    ),
    _residual("=", lambda r: r.operator == "="),
    _residual("!=", lambda r: r.operator == "!="),
    _residual("< <= > >=", lambda r: r.operator[0] in "<>"),
    _residual("with a string", _is_literal(str)),
    _residual("with a number", _is_literal(float)),
    _residual("with a parameter", lambda r: isinstance(r.right, Parameter)),
    _residual("of a derived value", lambda r: _is_call(r.left) or _is_call(r.right)),
    _residual(
        "function of several", lambda r: max(len(variables_of(s)) for s in (r.left, r.right)) > 1
    ),
    QueryClause(
        "4 residual: inside one operand",
        a(Query, lambda q: bool(residuals_inside(q))),
        without_residuals_inside,
    ),
    *map(_function, sorted(FUNCTIONS)),
    QueryClause(
        "5 join on a derived value",
        a(ValueJoin, lambda j: _is_call(j.left) or _is_call(j.right)),
    ),
    QueryClause("5 function of a function", a(Call, _has_inner), _without_inner),
    _query("6 SELECT *", lambda q: isinstance(q.select, SelectAll)),
    _query("6 SELECT x, y", lambda q: isinstance(q.select, SelectNodes)),
    QueryClause(
        "6 what SELECT mentions is visible",
        a(Query, lambda q: len(q.visible()) > len(q.blocks)),
        lambda q: replace(q, select=SelectAll()),
    ),
    _query("6 constructor", lambda q: isinstance(q.select, Constructor)),
    _query("6 start() end() dur()", lambda q: "start()" in q.text),
    _query("6 PUBLISH", lambda q: q.publish is not None),
    _query("6 reads what is published", lambda q: any(b.stream.startswith("P") for b in q.blocks)),
    _query(
        "6 PUBLISH of what is published",
        lambda q: q.publish is not None and any(b.stream.startswith("P") for b in q.blocks),
    ),
    _query("13.1 alternatives", lambda q: any(isinstance(part, Unit) for part in parts(q.root))),
    QueryClause("13.3 SAME", a(From, lambda f: bool(f.keys)), lambda f: replace(f, keys=())),
    QueryClause(
        "13.4 WITHIN", a(From, lambda f: f.within is not None), lambda f: replace(f, within=None)
    ),
    QueryClause(
        "13.5 arithmetic",
        a(Call, lambda call: call.function in ARITHMETIC),
        lambda call: call.arguments[0],
    ),
    QueryClause("13.5 time()", a(Call, lambda c: c.function == "time"), lambda c: Literal(0.0)),
    QueryClause(
        "13.5 revision()", a(Call, lambda c: c.function == "revision"), lambda c: Literal(0.0)
    ),
    QueryClause(
        "13.5 start() end() dur()",
        a(Call, lambda call: call.function in ("start", "end", "dur")),
        lambda call: Literal(0.0),
    ),
    QueryClause("13.5 if", a(Conditional, lambda each: True), lambda each: each.otherwise),
    QueryClause(
        "13.5 tests between variables",
        a(Disjunct, lambda d: any(test.function in STRING_TESTS for test in d.tests)),
        lambda d: replace(d, tests=()),
    ),
    QueryClause(
        "13.5 exists and empty",
        a(Disjunct, lambda d: any(test.function in ("exists", "empty") for test in d.tests)),
        lambda d: replace(d, tests=()),
    ),
    QueryClause(
        "13.6 WHERE", a(From, lambda f: f.where is not None), lambda f: replace(f, where=None)
    ),
)
