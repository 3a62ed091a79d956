"""Reads what stands behind FROM: operands, operators between them, absences, parentheses."""

from __future__ import annotations

from xscl.clauses import FROM_CLAUSES, STATEMENT_CLAUSES, ClauseParser
from xscl.cursor import UnreadableError
from xscl.habits import AFTER_OPERAND
from xscl.lexer import Token
from xscl.path import Span
from xscl.query import INFINITE_US
from xscl.spelling import closest
from xscl.statement import (
    AbsenceSyntax,
    BracesSyntax,
    FromSyntax,
    OperandSyntax,
    PartSyntax,
    Statement,
    UnitSyntax,
    blocks_of,
)
from xscl.syntax import DurationSyntax
from xscl.units import CLAUSES, RESERVED
from xscl.windows import NO_WINDOW_HINT

__all__ = ["CLAUSES", "RESERVED", "OperandParser"]

_FROM_END = "`FOLLOWED BY`, `JOIN`, `NEXT`, a clause, or `;`"
_FROM_HINT = (
    "two blocks are combined with `FOLLOWED BY {...}` or `JOIN {...}`, statements separated by `;`"
)
_BRACES_HINT = "the predicate and the window stand in braces: `{x2 = x5, 30 days}`"
_NEAR = 0.65
"""The least likeness of a misspelt keyword: `THEN` is no `WITHIN`, nor `news` an `UNLESS`."""

_KEYWORDS = ("FOLLOWED", "JOIN", "NEXT", "UNLESS", *FROM_CLAUSES, *STATEMENT_CLAUSES[:-1])


class OperandParser(ClauseParser):
    """Adds froms to clauses."""

    def from_(self) -> FromSyntax | None:
        """Read the parts of a from and its clauses; `None` where there is nothing to go by."""
        start = self.token.start
        parts: list[PartSyntax | AbsenceSyntax] = []
        first = self._part("", Span(start, start), None)
        if first is not None:
            parts.append(first)
        while True:
            keyword = self._operator_keyword()
            if keyword is None:
                break
            part = self._behind_keyword(*keyword)
            if isinstance(part, PartSyntax) or (part is not None and parts):
                parts.append(part)
        source = FromSyntax(parts, Span(start, start))
        self.from_clauses(source)
        source.span = self.span_from(start)
        return _spliced(source) if parts else None

    def _behind_keyword(self, keyword: str, token: Token) -> PartSyntax | AbsenceSyntax | None:
        braces = self._operator_braces(keyword, token)
        span = self.span_from(token.start)
        if keyword.startswith("NOT "):
            return self._absence(keyword, span, braces)
        part = self._part(keyword, span, braces)
        if part is None:
            return None
        part.span = self.span_from(token.start)
        return part

    def _operator_braces(self, keyword: str, token: Token) -> BracesSyntax | None:
        if self.token.kind == "name" and self.token.text == "_":
            self.advance()
        if self.token.kind == "{":
            return self.braces()
        if self._at_misplaced_predicate():
            return self._no_braces(keyword, token)
        return None

    def _part(self, keyword: str, span: Span, braces: BracesSyntax | None) -> PartSyntax | None:
        """Read an operand and the absences in between; `None` where it cannot be read."""
        start, first = self.token.start, self.index
        try:
            operand = self._operand()
        except UnreadableError:
            self._skip_from(first)
            return None
        if operand is None:
            return None
        part = PartSyntax(keyword, span, braces, operand, [], span)
        self._unless(part)
        part.span = self.span_from(start)
        if not keyword and isinstance(operand, FromSyntax) and not part.unless:
            part.span = operand.span
        return part

    def _skip_from(self, first: int) -> None:
        """Skip what is left of an operand: parentheses to their end."""
        end = self.matching(first)
        if self.tokens[first].kind == "(" and self.tokens[end].kind == ")" and end >= self.index:
            self.go_back(end)
            self.advance()
        else:
            self.skip_operand()

    def _unless(self, part: PartSyntax) -> None:
        while self.at_word("UNLESS"):
            token = self.advance()
            braces = self.braces() if self.token.kind == "{" else None
            absence = self._absence("UNLESS", self.span_from(token.start), braces)
            if absence is not None:
                part.unless.append(absence)

    def _absence(
        self, keyword: str, span: Span, braces: BracesSyntax | None
    ) -> AbsenceSyntax | None:
        try:
            unit = self._absent_unit(keyword)
        except UnreadableError:
            self.skip_operand()
            return None
        if self.token.kind == "+":
            self._refuse_absent(keyword, self.token.span, "repetition")
            self.repetition(unit)
        return AbsenceSyntax(keyword, span, braces, unit, self.span_from(span.start))

    def _absent_unit(self, keyword: str) -> UnitSyntax:
        if self.token.kind != "(" or self.at_alternatives():
            return self.unit()
        opening = self.token
        inner = self._parenthesised_from()
        self._refuse_absent(keyword, Span(opening.start, self.last.end), "from in parentheses")
        if inner is None or not isinstance(inner, UnitSyntax):
            raise UnreadableError
        return inner

    def _refuse_absent(self, keyword: str, span: Span, what: str) -> None:
        self.is_broken = True
        self.report.error(
            "XS813",
            span,
            f"a {what} cannot be absent",
            f"behind {keyword} stands a block, or `( a | b )`",
        )

    # -- operators -----------------------------------------------------------------------------

    def _no_braces(self, keyword: str, token: Token) -> BracesSyntax | None:
        """Report what is missing behind an operator; skip what stands in the place of braces."""
        self.is_broken = True
        span = Span(token.start, self.last.end)
        self.report.error(
            "XS106",
            span,
            f"`{keyword}` needs a window: `{keyword} {{..., 30 days}}`",
            NO_WINDOW_HINT if self.token.kind == "name" else _BRACES_HINT,
        )
        supposed = BracesSyntax(None, DurationSyntax(INFINITE_US, None, span), span)
        start = self.index
        while self.token.kind not in ("{", ";", "end"):
            if self.advance().kind == "}":
                return supposed
        self.go_back(start)
        if not self._skip_brackets() and self.at_comparison(self.index):
            raise UnreadableError
        return supposed

    def _skip_brackets(self) -> bool:
        """Step over `[...]` or `(...)` that was meant as braces, and say whether there was any."""
        start = self.index
        if self.token.kind not in ("[", "("):
            return False
        closing = "]" if self.advance().kind == "[" else ")"
        if self.skip_to(closing) and self.peek().kind in ("name", "*", "("):
            self.advance()
            return True
        self.go_back(start)
        return False

    def _at_misplaced_predicate(self) -> bool:
        """Whether a predicate stands here without its braces, or in other brackets."""
        if self.token.kind == "[":
            return True
        if self.token.kind == "(":
            return self.at_comparison(self.index + 1) or self.peek().kind == ","
        return self.at_comparison(self.index)

    def _operator_keyword(self) -> tuple[str, Token] | None:
        """Step over an operator's keyword; `None` where there is none."""
        token = self.token
        if token.kind != "name":
            return self._operator_without_keyword()
        word = token.text.upper()
        if word in ("JOIN", "JOIN_"):
            self.advance()
            return "JOIN", token
        if word in ("NEXT", "NEXT_"):
            self.advance()
            return "NEXT", token
        if word == "FOLLOWED":
            self._followed_by(token)
            return "FOLLOWED BY", token
        if word == "NOT":
            return self._not(token)
        if word == "UNLESS":
            raise self.fail(
                "XS814",
                token.span,
                "UNLESS stands behind an operand",
                "as in `A FOLLOWED BY {...} B UNLESS {...} C`",
            )
        if word in CLAUSES or word in FROM_CLAUSES or word in STATEMENT_CLAUSES:
            return None
        if word in RESERVED:
            raise self.reserved(token)
        return self._misspelt_operator(token)

    def _followed_by(self, token: Token) -> None:
        self.advance()
        if self.token.kind == "name" and self.token.text != "_":
            if not (self.at_word("BY") or self.at_word("BY_")):
                self.misspelt(self.token, "BY")
            self.advance()
        else:
            self.misspelt(token, "FOLLOWED BY")

    def _not(self, token: Token) -> tuple[str, Token]:
        self.advance()
        if self.at_word("JOIN"):
            self.advance()
            return "NOT JOIN", token
        if not self.at_word("FOLLOWED"):
            raise self.unexpected("`FOLLOWED BY` or `JOIN`", "as in `A NOT FOLLOWED BY {, 1 h} B`")
        self._followed_by(self.token)
        return "NOT FOLLOWED BY", token

    def _operator_without_keyword(self) -> tuple[str, Token] | None:
        if self.token.kind != "{":
            return None
        if self.peek().kind == "number" and self.peek(2).kind in (",", "}"):
            raise self.unexpected(
                _FROM_END, "a block is repeated by `+`; how often, says `WHERE count(x) >= 3`"
            )
        self.is_broken = True
        self.report.error(
            "XS101",
            self.token.span,
            "an operator's keyword is missing before `{`",
            "write `FOLLOWED BY {...}` or `JOIN {...}`",
        )
        return "JOIN", self.token

    def _misspelt_operator(self, token: Token) -> tuple[str, Token] | None:
        if token.text.upper() in AFTER_OPERAND:
            raise self.unexpected(_FROM_END, AFTER_OPERAND[token.text.upper()])
        if self.peek().kind in ("/", "//", "->"):
            raise self.unexpected(_FROM_END, _FROM_HINT)
        meant = closest(token.text.upper(), [*_KEYWORDS, *CLAUSES], _NEAR)
        if meant == "FOLLOWED" or self.peek().text.upper() == "BY":
            self.misspelt(token, "FOLLOWED BY")
            self.advance()
            if self.at_word("BY"):
                self.advance()
            return "FOLLOWED BY", token
        if meant in ("JOIN", "NEXT") or (meant is None and self.peek().kind == "{"):
            self.misspelt(token, meant or "JOIN")
            self.advance()
            return meant or "JOIN", token
        if meant:
            self.misspelt(token, meant)
            self.token = token._replace(text=meant)
            return self._operator_keyword() if meant == "UNLESS" else None
        raise self.unexpected(_FROM_END, _FROM_HINT)

    # -- operands ------------------------------------------------------------------------------

    def _operand(self) -> OperandSyntax | None:
        """Read a unit, a repetition or a from in parentheses."""
        if self.token.kind == "(" and not self.at_alternatives():
            inner = self._parenthesised_from()
            if self.token.kind == "+" and inner is not None:
                return self._repeated_from(inner)
            return inner
        unit = self.unit()
        return self.repetition(unit) if self.token.kind == "+" else unit

    def _repeated_from(self, inner: OperandSyntax) -> OperandSyntax:
        if not isinstance(inner, UnitSyntax):
            self.is_broken = True
            self.report.error(
                "XS803",
                self.token.span,
                "a from in parentheses cannot be repeated",
                "`+` stands behind a block, or behind `( a | b )`",
            )
            inner = UnitSyntax(blocks_of(inner), inner.span)
        return self.repetition(inner)

    def _parenthesised_from(self) -> OperandSyntax | None:
        """Read a from in parentheses; one that is a single operand is that operand."""
        opening = self.advance()
        nesting = self.nesting
        self.deeper()
        inner = self.from_()
        if self.token.kind == "name" and self.token.text.upper() in STATEMENT_CLAUSES:
            self.is_broken = True
            self.report.error(
                "XS118",
                self.token.span,
                f"{self.token.text.upper()} stands behind the whole from of a statement",
                "move it behind the parentheses",
            )
            self.statement_clauses(Statement([], self.token.span))
        self.close(opening, ")")
        self.nesting = nesting
        if inner is not None and inner.is_bare() and len(inner.parts) == 1:
            (part,) = inner.parts
            if isinstance(part, PartSyntax) and not part.unless:
                return part.operand
        if inner is not None:
            inner.opening_span = opening.span
        return inner

    def misspelt_or(self, word: str, wanted: str, hint: str) -> None:
        """Go on if the next token is nearly this keyword, else give up."""
        token = self.token
        if token.kind == "name" and closest(token.text.upper(), [word]):
            self.misspelt(token, word)
            return
        raise self.unexpected(wanted, hint)

    def misspelt(self, token: Token, word: str) -> None:
        """Report a word that was meant to be a keyword."""
        self.is_broken = True
        self.report.error(
            "XS109", token.span, f"`{token.text}` is no keyword", f"did you mean `{word}`?"
        )


def _spliced(source: FromSyntax) -> FromSyntax:
    """Return a from whose first operand is no bare from in parentheses.

    Operators associate to the left, so that such parentheses say nothing.  Beside MATCH they are an
    error, and behind UNLESS they say what it is asked of.
    """
    first = source.parts[0] if source.parts else None
    if source.match is not None or not isinstance(first, PartSyntax) or first.unless:
        return source
    if isinstance(first.operand, FromSyntax) and first.operand.is_bare():
        source.parts[:1] = first.operand.parts
    return source
