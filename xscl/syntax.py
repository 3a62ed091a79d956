"""The syntax of expressions and blocks as they were written.

Expressions are those of XPath 1.0 with variable bindings on steps; `xscl.conditions` decides
which expressions are in the fragment.  Predicates of operators and clauses also have durations,
rows of tables and `if`.  All of this is for the reader alone: mutable, with spans.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xscl.path import Span

__all__ = [
    "ARITHMETIC",
    "COMPARISONS",
    "TURNED",
    "Binary",
    "BlockSyntax",
    "DurationSyntax",
    "Expression",
    "Filter",
    "FunctionCall",
    "IfExpression",
    "Junction",
    "LengthLiteral",
    "LossSyntax",
    "Negative",
    "NumberLiteral",
    "ParameterRef",
    "PathExpression",
    "RowSyntax",
    "StepSyntax",
    "StringLiteral",
    "TestSyntax",
]

ARITHMETIC = frozenset({"+", "-", "*", "div", "mod"})
"""The operators of `Binary` that make a number of two."""

COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
"""The operators of `Binary` that hold or not."""

TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What each of these is with its sides exchanged."""


@dataclass(slots=True)
class StringLiteral:
    """`'Ann'`."""

    value: str
    span: Span


@dataclass(slots=True)
class NumberLiteral:
    """`3.5`."""

    value: float
    span: Span


@dataclass(slots=True)
class ParameterRef:
    """`$who`."""

    name: str
    span: Span


@dataclass(slots=True)
class LengthLiteral:
    """`30 min` as a value: in comparisons a duration is a number, of microseconds."""

    length_us: int
    span: Span


@dataclass(slots=True)
class FunctionCall:
    """`contains(category, 'b')`; `count(distinct x)` where `is_distinct`."""

    name: str
    arguments: list[Expression]
    span: Span
    name_span: Span
    is_distinct: bool = False


@dataclass(slots=True)
class IfExpression:
    """`if (condition) then a else b`, in operators' predicates and clauses."""

    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span


@dataclass(slots=True)
class RowSyntax:
    """`worker[id]`, a row of a table; with a column, `worker[id].status`, a cell of it."""

    table: str
    key: Expression
    column: str | None
    span: Span


@dataclass(slots=True)
class Junction:
    """`term and term ...` or `term or term ...`; `word` is `and` or `or`."""

    word: str
    terms: list[Expression]
    span: Span


@dataclass(slots=True)
class Binary:
    """`left operator right`: `= != < <= > >= + - * div mod |`."""

    operator: str
    left: Expression
    right: Expression
    span: Span


@dataclass(slots=True)
class Negative:
    """`-operand`."""

    operand: Expression
    span: Span


@dataclass(slots=True)
class TestSyntax:
    """A node test.  `kind` is `name`, `text`, `node`, `comment` or `processing-instruction`.

    Of a name test, `prefix` is `None` where there is none, and either part may be `*`;
    `name` of a processing instruction is its target or empty.
    """

    kind: str
    prefix: str | None
    name: str
    span: Span


@dataclass(slots=True)
class StepSyntax:
    """One step; `is_deep` says that `//` stands before it."""

    axis: str
    test: TestSyntax
    is_deep: bool
    span: Span
    variable: str | None = None
    variable_span: Span | None = None
    predicates: list[Expression] = field(default_factory=list)


@dataclass(slots=True)
class PathExpression:
    """Steps from the context node, from the document where `is_absolute`, or from `start`."""

    steps: list[StepSyntax]
    span: Span
    is_absolute: bool = False
    start: Expression | None = None


@dataclass(slots=True)
class Filter:
    """`(expression)[predicate]`."""

    primary: Expression
    predicates: list[Expression]
    span: Span


Expression = (
    StringLiteral
    | NumberLiteral
    | ParameterRef
    | LengthLiteral
    | FunctionCall
    | IfExpression
    | RowSyntax
    | Junction
    | Binary
    | Negative
    | PathExpression
    | Filter
)


@dataclass(slots=True)
class BlockSyntax:
    """`S//book->x1[author]`; without steps, `variable` may bind the root element."""

    stream: str
    stream_span: Span
    steps: list[StepSyntax]
    span: Span
    variable: str | None = None
    variable_span: Span | None = None
    loss: LossSyntax | None = None


@dataclass(slots=True)
class LossSyntax:
    """`LOSS 0.1 DELAY uniform(0 s, 45 s)`: how often a document is lost, and how late it comes.

    `delay` is `uniform`, `exp`, `cdf` or `learned`; `lengths` are its durations, and `numbers`
    those of `cdf`, one for each length.
    """

    probability: NumberLiteral | ParameterRef
    delay: str
    lengths: list[DurationSyntax]
    numbers: list[NumberLiteral]
    span: Span


@dataclass(slots=True)
class DurationSyntax:
    """A window: microseconds, or the name of a parameter."""

    length_us: int | None
    parameter: str | None
    span: Span
