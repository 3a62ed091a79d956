"""Reads what stands behind the parts of a from, and behind a statement's from."""

from __future__ import annotations

from collections.abc import Callable

from xscl.cursor import UnreadableError
from xscl.statement import (
    ActionSyntax,
    FromSyntax,
    KeySyntax,
    LimitSyntax,
    MatchSyntax,
    Statement,
    WindowSyntax,
)
from xscl.syntax import Expression, RowSyntax
from xscl.units import UnitParser

__all__ = ["FROM_CLAUSES", "ORDER_HINT", "STATEMENT_CLAUSES", "ClauseParser"]

FROM_CLAUSES = ("WITHIN", "SAME", "MATCH", "WHERE")
"""What may stand behind the parts of a from, in this order."""

STATEMENT_CLAUSES = ("WINDOW", "LIMIT", "CONFIDENCE", "GRACE", "ON")
"""What may stand behind the from of a statement, in this order."""

ORDER_HINT = f"the order is {', '.join((*FROM_CLAUSES, *STATEMENT_CLAUSES))} MATCH"
_STRATEGIES = ("ANY", "NEXT", "PARTITION", "STRICT")


class ClauseParser(UnitParser):
    """Adds clauses to units."""

    def from_clauses(self, source: FromSyntax) -> None:
        """Read WITHIN, SAME, MATCH and WHERE, each at most once."""
        if self.token.kind != "name":
            return
        readers = {
            "WITHIN": self._within,
            "SAME": self._same,
            "MATCH": self._match,
            "WHERE": self._where,
        }
        self._ordered(FROM_CLAUSES, lambda word: readers[word](source))

    def statement_clauses(self, statement: Statement) -> None:
        """Read WINDOW, LIMIT, CONFIDENCE, GRACE and ON MATCH, each at most once."""
        if self.token.kind != "name":
            return
        readers = {
            "WINDOW": self._window_by,
            "LIMIT": self._limit,
            "CONFIDENCE": self._confidence,
            "GRACE": self._grace,
            "ON": self._on_match,
        }
        self._ordered(STATEMENT_CLAUSES, lambda word: readers[word](statement))

    def _ordered(self, words: tuple[str, ...], read: Callable[[str], None]) -> None:
        """Read clauses for as long as one stands here; report one that comes too late or again."""
        last = -1
        while self.token.kind == "name" and self.token.text.upper() in words:
            token = self.token
            word = token.text.upper()
            place = words.index(word)
            if place <= last:
                self.is_broken = True
                twice = place == last
                self.report.error(
                    "XS117",
                    token.span,
                    f"{word} stands here a second time" if twice else f"{word} comes too late here",
                    "a clause stands once" if twice else ORDER_HINT,
                )
            last = max(last, place)
            read(word)

    # -- of a from -----------------------------------------------------------------------------

    def _within(self, source: FromSyntax) -> None:
        source.within_span = self.advance().span
        source.within = self.duration()

    def _same(self, source: FromSyntax) -> None:
        source.same_span = self.advance().span
        opening = self.expect("(", "`(` and a path", "as in `SAME (//@id)`")
        while True:
            source.same.append(self._key())
            self._no_and()
            if self.token.kind != ",":
                break
            self.advance()
        self.close(opening, ")")
        self._no_and()

    def _no_and(self) -> None:
        if self.at_word("AND"):
            raise self.unexpected("`,` or `)`", "as in `SAME (//author, //category)`")

    def _key(self) -> KeySyntax:
        start = self.token.start
        if self.token.kind not in ("/", "//"):
            raise self.unexpected("a path that begins at the document", "as in `SAME (//@id)`")
        steps = self.steps([])
        literal = None
        if self.token.kind == "=":
            self.advance()
            literal = self.literal("a literal")
        return KeySyntax(steps, literal, self.span_from(start))

    def _match(self, source: FromSyntax) -> None:
        start = self.advance().start
        word = self.token.text.upper() if self.token.kind == "name" else ""
        if word not in _STRATEGIES:
            raise self.unexpected("a strategy", "MATCH ANY, NEXT, PARTITION or STRICT")
        self.advance()
        source.match = MatchSyntax(word, self.span_from(start))

    def _where(self, source: FromSyntax) -> None:
        source.where_span = self.advance().span
        source.where = self.disjunction()

    # -- of a statement ------------------------------------------------------------------------

    def _window_by(self, statement: Statement) -> None:
        start = self.advance().start
        length = self.duration(may_be_zero=True)
        keys = self._by()
        having: Expression | None = None
        having_span = None
        if self.at_word("HAVING"):
            having_span = self.advance().span
            having = self.disjunction()
        statement.window = WindowSyntax(length, keys, having, self.span_from(start), having_span)

    def _by(self) -> list[Expression]:
        keys: list[Expression] = []
        if self.token.text.upper() in ("GROUP", "PARTITION") and self.peek().text.upper() == "BY":
            self.unexpected("`BY`", "write `BY` alone, as in `WINDOW 6 h BY x/author`")
            self.advance()
        if not self.at_word("BY"):
            return keys
        self.advance()
        while True:
            if self.token.kind != "name" or self.at_call():
                raise self.unexpected("a variable, or a path from one", "as in `BY x/author`")
            keys.append(super().path_expression())
            if self.token.kind != ",":
                return keys
            self.advance()

    def _limit(self, statement: Statement) -> None:
        start = self.advance().start
        count = self.number_or_parameter("how many, as in `LIMIT 3 PER 1 day`")
        if not self.at_word("PER"):
            raise self.unexpected("`PER` and a duration", "write `LIMIT 3 PER 1 day`")
        self.advance()
        length = self.duration()
        statement.limit = LimitSyntax(count, length, self._by(), self.span_from(start))

    def _confidence(self, statement: Statement) -> None:
        statement.confidence_span = self.advance().span
        statement.confidence = self.number_or_parameter("a number, as in `CONFIDENCE 0.8`")

    def _grace(self, statement: Statement) -> None:
        statement.grace_span = self.advance().span
        statement.grace = self.duration(may_be_zero=True)

    def _on_match(self, statement: Statement) -> None:
        start = self.advance().start
        if not self.at_word("MATCH"):
            hint = "write `ON MATCH SET worker[x].status = 'safe'`"
            if self.at_comparison(self.index):
                hint = "what joins stands in the operator's braces: `JOIN {x = y, 30 days}`"
            raise self.unexpected("`MATCH`", hint)
        self.advance()
        while True:
            statement.actions.append(self._action())
            if self.token.kind != ",":
                break
            self.advance()
        statement.actions_span = self.span_from(start)

    def _action(self) -> ActionSyntax:
        start = self.token.start
        is_set = self.at_word("SET")
        if not is_set and not self.at_word("DELETE"):
            is_further = self.last.kind == ","
            hint = "each action has its own SET or DELETE, " if is_further else ""
            raise self.unexpected("`SET` or `DELETE`", hint + "as in `SET worker[x].n = 1`")
        self.advance()
        target = self.row()
        if is_set is (target.column is None):
            raise self._wrong_target(target, is_set)
        value: Expression | None = None
        if is_set:
            self.expect("=", "`=` and a value", "as in `SET worker[x].status = 'safe'`")
            value = self.side()
        return ActionSyntax(target, value, self.span_from(start))

    def _wrong_target(self, target: RowSyntax, is_set: bool) -> UnreadableError:
        if is_set:
            wanted = "SET needs a column, as in `SET worker[x].status = 'safe'`"
            return self.fail("XS101", target.span, "a row, where a cell is set", wanted)
        return self.fail("XS101", target.span, "a cell, where a row is deleted", "leave it out")
