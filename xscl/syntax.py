"""The syntax of a statement as it was written: what the parser makes and `fmt` prints.

Expressions are those of XPath 1.0 with variable bindings on steps; `xscl.conditions` decides
which of them are in the fragment.  These are working values of the reader: mutable, with spans.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xscl.path import Span

__all__ = [
    "Binary",
    "BlockSyntax",
    "ConstructorSyntax",
    "DurationSyntax",
    "Expression",
    "Filter",
    "FunctionCall",
    "JoinSyntax",
    "Junction",
    "NamespaceDeclaration",
    "Negative",
    "NumberLiteral",
    "Operand",
    "ParameterRef",
    "PathExpression",
    "PublishSyntax",
    "SelectSyntax",
    "Statement",
    "StepSyntax",
    "StringLiteral",
    "TestSyntax",
]


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
class FunctionCall:
    """`contains(category, 'b')`."""

    name: str
    arguments: list[Expression]
    span: Span
    name_span: Span


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
    | FunctionCall
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


@dataclass(slots=True)
class DurationSyntax:
    """A window: microseconds, or the name of a parameter."""

    length_us: int | None
    parameter: str | None
    span: Span


@dataclass(slots=True)
class JoinSyntax:
    """`left FOLLOWED BY {predicate, window} right`; `keyword` is the operator's canonical name."""

    keyword: str
    left: Operand
    right: Operand
    predicate: Expression | None
    window: DurationSyntax
    operator_span: Span
    span: Span


Operand = BlockSyntax | JoinSyntax


@dataclass(slots=True)
class ConstructorSyntax:
    """An element constructor as written."""

    text: str
    span: Span


@dataclass(slots=True)
class SelectSyntax:
    """A SELECT clause: `*` when it has neither items nor a constructor."""

    items: list[Expression]
    constructor: ConstructorSyntax | None
    span: Span


@dataclass(slots=True)
class PublishSyntax:
    """`PUBLISH name`."""

    name: str
    span: Span


@dataclass(slots=True)
class NamespaceDeclaration:
    """`DECLARE NAMESPACE prefix = 'uri';`, the default element namespace under `""`."""

    prefix: str
    uri: str
    span: Span


@dataclass(slots=True)
class Statement:
    """One statement; `end` is where its `;` stands.

    `is_broken` says that a syntax error left a part of it out, and `mentioned` has the names that
    an unreadable part seems to bind: they count as known.
    """

    prolog: list[NamespaceDeclaration]
    select: SelectSyntax | None
    source: Operand | None
    publish: PublishSyntax | None
    span: Span
    end: int = 0
    is_broken: bool = False
    mentioned: set[str] = field(default_factory=set)
