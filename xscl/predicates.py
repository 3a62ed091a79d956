"""Reads predicates of operators and clauses, and braces: `{predicate, window}`.

A side of a comparison is arithmetic over paths from variables, literals, durations, functions,
cells of tables and `if`; a term is a comparison, or a test: `exists(x)`, `contains(x, y)`.
"""

from __future__ import annotations

import re

from xscl.cursor import RESERVED, UnreadableError, describe
from xscl.habits import COMPARISON_WORDS, LIST_HINT
from xscl.lexer import Token
from xscl.path import Span
from xscl.query import INFINITE_US
from xscl.report import Report
from xscl.signatures import TERM_FUNCTIONS
from xscl.statement import BracesSyntax
from xscl.syntax import (
    COMPARISONS,
    Binary,
    DurationSyntax,
    Expression,
    FunctionCall,
    IfExpression,
    Junction,
    LengthLiteral,
    RowSyntax,
)
from xscl.windows import NO_WINDOW_HINT, WindowParser

__all__ = ["PredicateParser"]

_GOES_ON = COMPARISONS | {"+", "-", "*", "|", "[", "/", "//"}
_DISTINCT = frozenset({"count", "collect"})
_NEGATED_TEST = re.compile(
    r"not[\s(]*\b(exists|empty|contains|starts-with|ends-with|matches)\s*\(", re.IGNORECASE
)
SIDE = 2
"""The level of precedence of a side: sums, and what binds closer."""


class PredicateParser(WindowParser):
    """Adds operators' predicates, with their values, to windows and expressions.

    `functions` are those that the statement at hand calls outside of steps' predicates, `has_rows`
    says that it mentions rows of tables.
    """

    def __init__(self, text: str, report: Report) -> None:
        super().__init__(text, report)
        self.functions: set[str] = set()
        self.has_rows = False

    def braces(self) -> BracesSyntax:
        """Read `{predicate, window}`; what cannot be read is left out."""
        opening = self.advance()
        predicate: Expression | None = None
        window: DurationSyntax | None = None
        try:
            if self.token.kind not in (",", "}") and not self._at_lone_window():
                predicate = self.disjunction()
            window = self._window()
            self.close(opening, "}")
        except UnreadableError:
            window = self._recovered_window(opening, window)
        return BracesSyntax(predicate, window, Span(opening.start, self.last.end))

    def _recovered_window(
        self, opening: Token, window: DurationSyntax | None
    ) -> DurationSyntax | None:
        """Go on behind braces with an error in them; a window is supposed where none is read."""
        if self.token.kind == "," or (window is None and self.skip_to(",", "}")):
            window = window or self._window_after_failure()
        failure = self.index
        if self.skip_to("}"):
            self.advance()
        elif window is not None:  # only the brace is missing: the right operand stands here
            self.go_back(failure)
        return window or DurationSyntax(INFINITE_US, None, opening.span)

    def _window_after_failure(self) -> DurationSyntax | None:
        if self.token.kind != ",":
            return None
        self.advance()
        try:
            return self.duration()
        except UnreadableError:
            return None

    def _at_lone_window(self) -> bool:
        return self.at_length() and self.peek(2).kind == "}"

    def _window(self) -> DurationSyntax | None:
        if self.token.kind == "," and not self._at_within(self.index + 1):
            self.advance()
            if self.at_comparison(self.index):
                raise self.unexpected(
                    "a window", "comparisons are joined by AND; the window stands last"
                )
            return self.duration()
        if self.at_length() or self.token.kind == "," or self._at_within(self.index):
            return self._window_without_comma()
        if self.token.kind != "}":
            raise self.unexpected("`AND`, `OR`, or `,` and a window", NO_WINDOW_HINT)
        return None

    def _window_without_comma(self) -> DurationSyntax:
        """Read a window behind something else than a comma alone: nothing, WITHIN, AND WITHIN."""
        self.is_broken = True
        start = self.token.start
        while not (self.at_length() or self.token.kind == "parameter"):
            self.advance()
        length = self.token.start
        window = self.duration()
        hint = f"write `{{..., {self.text[length : self.last.end]}}}`"
        self.report.error("XS107", self.span_from(start), "a window stands behind a comma", hint)
        return window

    def _at_within(self, index: int) -> bool:
        """Whether WITHIN and a window stand at an index, between braces."""
        word, length = self.tokens[index], self.tokens[min(index + 1, len(self.tokens) - 1)]
        is_within = word.kind == "name" and word.text.upper() == "WITHIN"
        return is_within and length.kind in ("number", "parameter")

    def at_comparison(self, behind: int) -> bool:
        """Whether a comparison stands at an index, or a function, rather than a block."""
        if self.tokens[behind].kind == "name" and self.tokens[behind + 1].kind == "(":
            return True
        first = behind
        while self.tokens[behind].kind in ("name", "/", "//", "@", "string", "parameter", "number"):
            if behind > first and self._at_clause_word(behind):
                return False
            behind += 1
        return self.tokens[behind].kind in ("=", "!=", "<", "<=", ">", ">=")

    def _at_clause_word(self, index: int) -> bool:
        """Whether a word of the language stands at an index, and is no step of a path."""
        is_step = self.tokens[index - 1].kind in ("/", "//", "@")
        word = self.tokens[index]
        return word.kind == "name" and not is_step and word.text.upper() in RESERVED

    # -- predicates ----------------------------------------------------------------------------

    def disjunction(self) -> Expression | None:
        """Read comparisons and tests, with AND, OR and parentheses; `None` after an error."""
        return self._terms("or")

    def _terms(self, word: str) -> Expression | None:
        """Read terms joined by one word; those with an error in them are left out."""
        found: list[Expression] = []
        start = self.token.start
        while True:
            term = self._terms("and") if word == "or" else self._term_or_nothing()
            if term is not None:
                found.append(term)
            if not (self.token.kind == "name" and self.token.text.lower() == word):
                break
            self.advance()
            if self._at_within(self.index):
                break
        if len(found) < 2:
            return found[0] if found else None
        return Junction(word, found, self.span_from(start))

    def _term_or_nothing(self) -> Expression | None:
        try:
            return self._term()
        except UnreadableError:
            if not self._skip_to_next_term():
                raise
            return None

    def _skip_to_next_term(self) -> bool:
        """Skip to AND, OR, `,`, `)` or `}` outside brackets; say whether one was found."""
        depth = 0
        while self.token.kind not in ("end", ";") and not self.at_operator():
            kind = self.token.kind
            word = self.token.text.lower() if kind == "name" else ""
            if depth == 0 and (kind in (",", "}", ")") or word in ("and", "or")):
                return True
            depth += (kind in ("(", "[", "{")) - (kind in (")", "]", "}"))
            self.advance()
        return False

    def _term(self) -> Expression | None:
        if self.token.kind == "(" and not self._at_parenthesised_side():
            opening = self.advance()
            self.deeper()
            inner = self.disjunction()
            self.close(opening, ")")
            self.nesting -= 1
            return inner
        return self._comparison()

    def _at_parenthesised_side(self) -> bool:
        """Whether a value goes on behind the parentheses that open here."""
        behind = self.tokens[min(self.matching(self.index) + 1, len(self.tokens) - 1)]
        return behind.kind in _GOES_ON or (
            behind.kind == "name" and behind.text.lower() in ("div", "mod")
        )

    def _comparison(self) -> Expression:
        left = self.side()
        token = self.token
        if token.kind not in COMPARISONS:
            if isinstance(left, FunctionCall) and left.name in TERM_FUNCTIONS:
                return left
            raise self._no_comparison(left)
        self.advance()
        if self.token.kind == "=" and token.kind == "=":
            raise self.fail("XS101", Span(token.start, self.token.end), "`==` is written `=`")
        right = self.side()
        if self.token.kind in COMPARISONS:
            raise self.fail(
                "XS101",
                self.token.span,
                f"a second comparison `{self.token.kind}` in a row",
                "join two comparisons with AND",
            )
        return Binary(token.kind, left, right, Span(left.span.start, self.last.end))

    def _no_comparison(self, left: Expression) -> UnreadableError:
        if self.token.kind == "bad":
            return self.unexpected("a comparison")
        negation = isinstance(left, FunctionCall) and left.name.lower() == "not"
        if negation or self.text[left.span.start : left.span.end].upper() == "NOT":
            hint = (
                "turn the comparison around, `!=` or `>=`; `not(...)` stands in predicates of steps"
            )
            asked = _NEGATED_TEST.match(self.text, left.span.start)
            if asked is not None:
                hint = _negated(asked[1].lower())
            return self.fail("XS108", left.span, "nothing can be negated here", hint)
        hint = _comparison_hint(self.text[left.span.start : left.span.end], self.token)
        word = self.token.text.upper() if self.token.kind == "name" else ""
        failure = self.fail(
            "XS101",
            self.here(),
            f"expected a comparison, found {describe(self.token)}",
            LIST_HINT if self.at_list() else COMPARISON_WORDS.get(word, hint),
        )
        if word == "BETWEEN":
            self.advance()
            self.side()
            if self.at_word("AND"):
                self.advance()
        return failure

    # -- sides ---------------------------------------------------------------------------------

    def side(self) -> Expression:
        """Read one side of a comparison."""
        return self.level(SIDE)

    def primary(self) -> Expression:
        """Read a literal, a duration, a parameter, parentheses or a call."""
        if self.predicates_deep or not self.at_length():
            return super().primary()
        window = self.duration(may_be_zero=True)
        assert window.length_us is not None
        return LengthLiteral(window.length_us, window.span)

    def call(self) -> Expression:
        """Read a function, or `if`."""
        if self.predicates_deep:
            return super().call()
        if self.token.text == "if":
            return self._if()
        if self.token.text.lower() == "count" and self.peek(2).kind == "*":
            span = Span(self.token.start, self.peek(3).end)
            raise self.fail("XS101", span, "nothing counts with `*`", "write `count()`")
        self.functions.add(self.token.text)
        return super().call()

    def skip_distinct(self, function: str) -> bool:
        """Step over `distinct` in `count(distinct x)`, where it is no variable."""
        if self.predicates_deep or function not in _DISTINCT or not self.at_word("DISTINCT"):
            return False
        if self.peek().kind in (")", ",", "/", "//", "[") or self.binds(self.token.text):
            return False
        self.advance()
        return True

    def _if(self) -> IfExpression:
        start = self.advance().start
        opening = self.advance()
        self.deeper()
        condition = self.disjunction()
        self.close(opening, ")")
        then = self._branch("then")
        otherwise = self._branch("else")
        self.nesting -= 1
        if condition is None:
            raise UnreadableError
        return IfExpression(condition, then, otherwise, self.span_from(start))

    def _branch(self, word: str) -> Expression:
        if not self.at_word(word.upper()):
            hint = "write `if (x > 3) then x else 3`"
            if self.token.kind in COMPARISONS:
                hint = "branches are values; the whole is compared: `if (x > 3) then x else 3 = y`"
            raise self.unexpected(f"`{word}`", hint)
        self.advance()
        return self.side()

    def path_expression(self) -> Expression:
        """Read a path, a row or a cell of a table, or a primary expression."""
        if not self.predicates_deep and self._at_row():
            return self.row()
        return super().path_expression()

    def _at_row(self) -> bool:
        """Whether `t[...].c` stands here, or `t[...]` as all that `exists` or `empty` asks for."""
        if self.token.kind != "name" or self.peek().kind != "[":
            return False
        end = self.matching(self.index + 1)
        behind = [self.tokens[min(end + each, len(self.tokens) - 1)] for each in (1, 2)]
        if behind[0].kind == "." and behind[1].kind == "name":
            return True
        is_asked = self.last.kind == "(" and self.tokens[self.index - 2].text in ("exists", "empty")
        return is_asked and behind[0].kind == ")" and not self.binds(self.token.text)

    def row(self) -> RowSyntax:
        """Read `t[key]` or `t[key].column`."""
        self.has_rows = True
        table = self.expect("name", "the name of a table", "as in `worker[x/id].status`")
        opening = self.expect("[", "`[` and the key of a row", "as in `worker[x/id]`")
        self.deeper()
        key = self.side()
        self.close(opening, "]")
        self.nesting -= 1
        column: Token | None = None
        if self.token.kind == ".":
            self.advance()
            column = self.expect("name", "the name of a column", "as in `worker[x/id].status`")
        return RowSyntax(
            table.text,
            key,
            column.text if column else None,
            self.span_from(table.start),
        )


def _comparison_hint(left: str, behind: Token) -> str:
    """Return what to write where no comparison stands behind a side."""
    if behind.kind == "@":
        return f"write `{left}/@...`"
    if behind.kind == "name" and left.lower() in ("exists", "empty"):
        return f"write `{left.lower()}({behind.text})`"
    if behind.kind == "name" and left.lower() == "if":
        return "its condition has parentheses: `if (x > 3) then x else 3`"
    return f"compare `{left}` with something: `= != < <= > >=`"


def _negated(test: str) -> str:
    """Return what to write where a test is not to hold."""
    if test in ("exists", "empty"):
        other = "empty" if test == "exists" else "exists"
        return f"write `{other}(...)` where `{test}(...)` is not to hold"
    return f"write `[not({test}(...))]` on a step, or `if ({test}(x, y)) then 0 else 1 = 1`"
