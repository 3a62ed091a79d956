"""The syntax of statements as they were written: what the parser makes and `fmt` prints.

A **from** is a list of parts.  The first part is an operand; each other one is an operand behind
its operator, or an absence: `NOT FOLLOWED BY {...} unit`.  Parts associate to the left.  An operand
is a **unit** (a block, or the alternatives `( a | b )`), a **repetition** of one, or a from in
parentheses.  Behind an operand stand its absences in between, `UNLESS {...} unit`; behind all parts
stand WITHIN, SAME, MATCH and WHERE.  The clauses of a statement (WINDOW, LIMIT, CONFIDENCE, GRACE,
ON MATCH) stand behind its from.

Parentheses that group nothing are not kept: `(A JOIN {...} B) JOIN {...} C` is a list of three
parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xscl.path import Span
from xscl.syntax import (
    BlockSyntax,
    DurationSyntax,
    Expression,
    NumberLiteral,
    ParameterRef,
    RowSyntax,
    StepSyntax,
    StringLiteral,
)

__all__ = [
    "AbsenceSyntax",
    "ActionSyntax",
    "BracesSyntax",
    "ColumnSyntax",
    "ConstructorSyntax",
    "FoldSyntax",
    "FromSyntax",
    "KeySyntax",
    "LimitSyntax",
    "MatchSyntax",
    "NamespaceDeclaration",
    "OperandSyntax",
    "PartSyntax",
    "PublishSyntax",
    "RepetitionSyntax",
    "SelectSyntax",
    "Statement",
    "TableSyntax",
    "UnitSyntax",
    "WindowSyntax",
    "blocks_of",
    "units_of",
]


@dataclass(slots=True)
class BracesSyntax:
    """`{predicate, window}`; either may be left out."""

    predicate: Expression | None
    window: DurationSyntax | None
    span: Span


@dataclass(slots=True)
class UnitSyntax:
    """A block, or alternatives, `( a | b )`."""

    blocks: list[BlockSyntax]
    span: Span


@dataclass(slots=True)
class FoldSyntax:
    """`name = first THEN next`, a value that is carried along a run."""

    name: str
    name_span: Span
    first: Expression
    next: Expression
    span: Span


@dataclass(slots=True)
class RepetitionSyntax:
    """`unit+ {condition, gap} WHILE {condition} FOLD {...}`."""

    unit: UnitSyntax
    braces: BracesSyntax | None
    condition: Expression | None
    folds: list[FoldSyntax]
    plus_span: Span
    condition_span: Span | None
    fold_span: Span | None
    span: Span


@dataclass(slots=True)
class AbsenceSyntax:
    """`UNLESS {...} unit`, `NOT FOLLOWED BY {...} unit` or `NOT JOIN {...} unit`."""

    keyword: str
    keyword_span: Span
    braces: BracesSyntax | None
    unit: UnitSyntax
    span: Span


@dataclass(slots=True)
class PartSyntax:
    """An operand, behind its operator where it is not the first; `keyword` is `""` of the first."""

    keyword: str
    keyword_span: Span
    braces: BracesSyntax | None
    operand: OperandSyntax
    unless: list[AbsenceSyntax]
    span: Span


@dataclass(slots=True)
class KeySyntax:
    """`//@id`, or `//type = 'a'`, between the parentheses of SAME."""

    steps: list[StepSyntax]
    literal: StringLiteral | NumberLiteral | ParameterRef | None
    span: Span


@dataclass(slots=True)
class MatchSyntax:
    """`MATCH NEXT`; the strategy is in capitals."""

    strategy: str
    span: Span


@dataclass(slots=True)
class FromSyntax:
    """A from: its parts, and what stands behind them.  Spans are those of the clauses' keywords.

    `opening_span` is the parenthesis that it stands in, if it stands in one.
    """

    parts: list[PartSyntax | AbsenceSyntax]
    span: Span
    within: DurationSyntax | None = None
    same: list[KeySyntax] = field(default_factory=list)
    match: MatchSyntax | None = None
    where: Expression | None = None
    within_span: Span | None = None
    same_span: Span | None = None
    where_span: Span | None = None
    opening_span: Span | None = None

    def is_bare(self) -> bool:
        """Whether nothing stands behind the parts."""
        is_bound = self.within is not None or self.match is not None
        return not is_bound and not self.same and self.where is None


OperandSyntax = UnitSyntax | RepetitionSyntax | FromSyntax


def blocks_of(syntax: OperandSyntax) -> list[BlockSyntax]:
    """Return the blocks of an operand, absent ones too, in the order of the text."""
    if isinstance(syntax, UnitSyntax):
        return syntax.blocks
    found: list[BlockSyntax] = []
    for unit in units_of(syntax):
        found += unit.blocks if isinstance(unit, UnitSyntax) else unit.unit.blocks
    return found


def units_of(
    syntax: OperandSyntax | PartSyntax | AbsenceSyntax,
) -> list[UnitSyntax | RepetitionSyntax]:
    """Return the units of a part of a statement, absent and repeated ones too, as they stand."""
    if isinstance(syntax, FromSyntax):
        return [unit for part in syntax.parts for unit in units_of(part)]
    if isinstance(syntax, PartSyntax):
        operand = syntax.operand
        found = units_of(operand) if isinstance(operand, FromSyntax) else [operand]
        found += [absence.unit for absence in syntax.unless]
        return found
    return [syntax.unit] if isinstance(syntax, AbsenceSyntax) else [syntax]


@dataclass(slots=True)
class WindowSyntax:
    """`WINDOW 1 day BY x/author HAVING count() > 3`: rows instead of matches."""

    length: DurationSyntax
    keys: list[Expression]
    having: Expression | None
    span: Span
    having_span: Span | None = None


@dataclass(slots=True)
class LimitSyntax:
    """`LIMIT 3 PER 1 day BY x/author`."""

    count: NumberLiteral | ParameterRef
    length: DurationSyntax
    keys: list[Expression]
    span: Span


@dataclass(slots=True)
class ActionSyntax:
    """`SET worker[id].status = 'safe'`, or without a value `DELETE worker[id]`."""

    target: RowSyntax
    value: Expression | None
    span: Span


@dataclass(slots=True)
class ColumnSyntax:
    """`id KEY`, or `status DEFAULT 'safe'`."""

    name: str
    default: StringLiteral | NumberLiteral | ParameterRef | None
    span: Span


@dataclass(slots=True)
class TableSyntax:
    """`CREATE TABLE worker (id KEY, status DEFAULT 'safe')`."""

    name: str
    name_span: Span
    columns: list[ColumnSyntax]
    span: Span


@dataclass(slots=True)
class ConstructorSyntax:
    """An element constructor as written."""

    text: str
    span: Span


@dataclass(slots=True)
class SelectSyntax:
    """A SELECT clause: `*` when it has neither items nor a constructor.

    `kind` is `COMPRESSED`, `DISJOINT` or `""`.
    """

    items: list[Expression]
    constructor: ConstructorSyntax | None
    span: Span
    kind: str = ""
    kind_span: Span | None = None


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

    It has a `source`, or it is a `table`.  `is_broken` says that a syntax error left a part of it
    out, and `mentioned` has the names that an unreadable part seems to bind: they count as known.
    `functions` are called outside of steps' predicates, in SELECT too; `has_rows` says that rows of
    tables are mentioned, `is_lossy` that LOSS stands somewhere: what there is to look for in it.
    """

    prolog: list[NamespaceDeclaration]
    span: Span
    select: SelectSyntax | None = None
    source: FromSyntax | None = None
    table: TableSyntax | None = None
    window: WindowSyntax | None = None
    limit: LimitSyntax | None = None
    confidence: NumberLiteral | ParameterRef | None = None
    grace: DurationSyntax | None = None
    actions: list[ActionSyntax] = field(default_factory=list)
    publish: PublishSyntax | None = None
    confidence_span: Span | None = None
    grace_span: Span | None = None
    actions_span: Span | None = None
    end: int = 0
    is_broken: bool = False
    mentioned: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    has_rows: bool = False
    is_lossy: bool = False
