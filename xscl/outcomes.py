"""What a statement makes of its matches: rows, limits, confidence and actions on tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from xscl.canonical import render_expression
from xscl.comparison import Call, Cell, Operand, Row
from xscl.conditions import ParameterUse
from xscl.operators import PredicateBuilder
from xscl.parser import parse_side
from xscl.path import Parameter
from xscl.query import Limit, Rows
from xscl.scopes import Scope
from xscl.selects import Selectable
from xscl.sequence import Window
from xscl.sequences import Source
from xscl.statement import ActionSyntax, Statement
from xscl.syntax import DurationSyntax, Expression, NumberLiteral, ParameterRef
from xscl.table import Action, DeleteRow, SetCell
from xscl.windows import window_of

__all__ = ["OutcomeBuilder"]


class OutcomeBuilder:
    """Builds the clauses of a statement over what its source gives."""

    def __init__(self, predicates: PredicateBuilder, source: Source, statement: Statement) -> None:
        self.predicates = predicates
        self.names = predicates.names
        self.report = predicates.report
        self.source = source
        self.statement = statement

    @cached_property
    def matches(self) -> Scope:
        """What may be mentioned of matches."""
        return Scope(self.source.blocks, repeated=self.source.repeated, is_optional=True)

    @cached_property
    def rows_scope(self) -> Scope:
        """What may be mentioned of rows; of matches, where there is no WINDOW."""
        keys = frozenset(self._key_texts()) if self.statement.window else None
        return replace(self.matches, keys=keys, has_tables=True)

    def rows(self) -> Rows | None:
        """Return what WINDOW says."""
        syntax = self.statement.window
        if syntax is None:
            return None
        having = None
        if syntax.having is not None:
            having = self.predicates.disjuncts(syntax.having, self.rows_scope)
        return Rows(self._window(syntax.length), self._keys(syntax.keys), having)

    def limit(self) -> Limit | None:
        """Return what LIMIT says."""
        syntax = self.statement.limit
        if syntax is None:
            return None
        scope = replace(self.rows_scope, has_tables=False)
        keys = self._keys(syntax.keys, scope)
        count = self._number(syntax.count)
        if isinstance(count, float) and (count != int(count) or count < 1):
            self.report.error(
                "XS907",
                syntax.count.span,
                "LIMIT counts matches: a whole number from 1",
                "as in `LIMIT 3 PER 1 day`",
            )
        return Limit(count, self._window(syntax.length), keys)

    def confidence(self) -> float | Parameter | None:
        """Return what CONFIDENCE says."""
        syntax = self.statement.confidence
        if syntax is None:
            return None
        least = self._number(syntax)
        if isinstance(least, float) and least > 1:
            self.report.error(
                "XS908", syntax.span, "confidence is at most 1", "as in `CONFIDENCE 0.8`"
            )
        return least

    def actions(self) -> tuple[Action, ...]:
        """Return what ON MATCH does."""
        built = [self._action(each) for each in self.statement.actions]
        return tuple(each for each in built if each is not None)

    def selectable(self) -> Selectable:
        """Return what the SELECT clause may mention."""
        keys = self.statement.window.keys if self.statement.window else None
        if keys is None:
            return Selectable(self.names, self.matches)
        return Selectable(self.names, self.matches, self._key_texts(), self._aggregate)

    def counted(self, rows: Rows | None) -> Rows | None:
        """Return rows with all that the statement, which has been read, asks of them."""
        if rows is None:
            return None
        aggregates = self.predicates.aggregates
        names = (*self._key_texts(), *aggregates.values())
        return replace(rows, aggregates=tuple(aggregates), names=names)

    def _key_texts(self) -> tuple[str, ...]:
        window = self.statement.window
        return tuple(render_expression(each) for each in window.keys) if window else ()

    def _aggregate(self, text: str, offset: int) -> int | None:
        """Return the number of an aggregate that stands in SELECT among the values of a row."""
        syntax = parse_side(text, offset, self.report)
        found = None if syntax is None else self.predicates.operand(syntax, self.rows_scope)
        if not isinstance(found, Call) or found not in self.predicates.aggregates:
            return None
        return len(self._key_texts()) + list(self.predicates.aggregates).index(found)

    def _action(self, syntax: ActionSyntax) -> Action | None:
        target = self.predicates.row(syntax.target, self.rows_scope, is_written=True)
        if syntax.value is None:
            return DeleteRow(target) if isinstance(target, Row) else None
        value = self.predicates.operand(syntax.value, self.rows_scope)
        self.predicates.use_parameter(syntax.value, value, "value")
        if not isinstance(target, Cell) or value is None:
            return None
        return SetCell(target, value)

    def _window(self, syntax: DurationSyntax) -> Window | Parameter:
        return window_of(syntax, self.predicates.patterns.parameters)

    def _keys(self, keys: Sequence[Expression], scope: Scope | None = None) -> tuple[Operand, ...]:
        built = [self.predicates.operand(each, scope or self.matches) for each in keys]
        return tuple(each for each in built if each is not None)

    def _number(self, syntax: NumberLiteral | ParameterRef) -> float | Parameter:
        if isinstance(syntax, NumberLiteral):
            return syntax.value
        uses = self.predicates.patterns.parameters
        uses.append(ParameterUse(syntax.name, "number", syntax.span))
        return Parameter(syntax.name)
