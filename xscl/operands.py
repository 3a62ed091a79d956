"""Reads what stands behind FROM: blocks, operators between them, parentheses."""

from __future__ import annotations

from xscl.cursor import UnreadableError, describe
from xscl.lexer import Token
from xscl.path import Span
from xscl.predicates import NO_WINDOW_HINT, PredicateParser
from xscl.query import INFINITE_US
from xscl.spelling import closest
from xscl.syntax import BlockSyntax, DurationSyntax, JoinSyntax, Operand, StepSyntax

__all__ = ["BLOCK_LIMIT", "CLAUSES", "RESERVED", "OperandParser"]

RESERVED = frozenset(
    [
        "NOT",
        "UNLESS",
        "NEXT",
        "FOLD",
        "WHILE",
        "WITHIN",
        "SAME",
        "MATCH",
        "ON",
        "CONFIDENCE",
        "LOSS",
        "WINDOW",
    ]
)
"""Words kept for later, at the places where an operator or a clause can stand."""

BLOCK_LIMIT = 100
"""Blocks of one query.  Each operator is a level of the tree of operators."""

CLAUSES = ("SELECT", "FROM", "PUBLISH")
"""The words that begin a clause."""

_AFTER_BLOCK = frozenset({"FOLLOWED", "JOIN", "SELECT", "PUBLISH", "FROM", "AS"})
_FROM_END = "`FOLLOWED BY`, `JOIN`, a clause, or `;`"


class OperandParser(PredicateParser):
    """Adds blocks and operators to predicates."""

    blocks = 0

    def from_(self) -> Operand | None:
        """Read operands joined by operators; `None` where there is nothing to go by."""
        left = self._operand()
        while True:
            keyword = self._operator_keyword()
            if keyword is None:
                return left
            left = self._join(left, *keyword)

    def _join(self, left: Operand | None, keyword: str, token: Token) -> Operand | None:
        start = left.span.start if left else token.start
        predicate, window = None, DurationSyntax(INFINITE_US, None, token.span)
        if self.token.kind == "name" and self.token.text == "_":
            self.advance()
        if self.token.kind == "{":
            predicate, window = self.braces()
        else:
            self._no_braces(keyword, token)
        operator_span = self.span_from(token.start)
        right = self._operand()
        if left is None or right is None:
            return left or right
        return JoinSyntax(
            keyword, left, right, predicate, window, operator_span, self.span_from(start)
        )

    def _no_braces(self, keyword: str, token: Token) -> None:
        """Report what is missing behind an operator; skip what stands in the place of braces."""
        self.is_broken = True
        self.report.error(
            "XS106",
            Span(token.start, self.last.end),
            f"`{keyword}` needs a window: `{keyword} {{..., 30 days}}`",
            NO_WINDOW_HINT,
        )
        start = self.index
        while self.token.kind not in ("{", ";", "end"):
            if self.advance().kind == "}":
                return
        self.go_back(start)
        if not self._skip_brackets() and self._at_comparison():
            raise UnreadableError

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

    def _at_comparison(self) -> bool:
        """Whether a comparison stands here, or a function, rather than a block."""
        behind = self.index
        if self.token.kind == "name" and self.peek().kind == "(":
            return True
        while self.tokens[behind].kind in ("name", "/", "//", "@", "string", "parameter", "number"):
            behind += 1
        return self.tokens[behind].kind in ("=", "!=", "<", "<=", ">", ">=")

    def _operator_keyword(self) -> tuple[str, Token] | None:
        """Step over an operator's keyword, `_` behind it included; `None` where there is none."""
        token = self.token
        if token.kind == "+":
            raise self.reserved(token)
        if token.kind != "name":
            return self._operator_without_keyword()
        word = token.text.upper()
        if word in ("JOIN", "JOIN_"):
            self.advance()
            return "JOIN", token
        if word == "FOLLOWED":
            self.advance()
            if self.token.kind == "name" and self.token.text != "_":
                if not (self.at_word("BY") or self.at_word("BY_")):
                    self.misspelt(self.token, "BY")
                self.advance()
            else:
                self.misspelt(token, "FOLLOWED BY")
            return "FOLLOWED BY", token
        if word in CLAUSES:
            return None
        if word in RESERVED:
            raise self.reserved(token)
        return self._misspelt_operator(token)

    def _operator_without_keyword(self) -> tuple[str, Token] | None:
        if self.token.kind != "{":
            return None
        self.is_broken = True
        self.report.error(
            "XS101",
            self.token.span,
            "an operator's keyword is missing before `{`",
            "write `FOLLOWED BY {...}` or `JOIN {...}`",
        )
        return "JOIN", self.token

    def _misspelt_operator(self, token: Token) -> tuple[str, Token] | None:
        if token.text.upper() in _SQL_HINTS:
            raise self.unexpected(_FROM_END, _SQL_HINTS[token.text.upper()])
        meant = closest(token.text.upper(), ["FOLLOWED", "JOIN", *CLAUSES])
        if meant == "FOLLOWED" or self.peek().text.upper() == "BY":
            self.misspelt(token, "FOLLOWED BY")
            self.advance()
            if self.at_word("BY"):
                self.advance()
            return "FOLLOWED BY", token
        if meant == "JOIN" or self.peek().kind == "{":
            self.misspelt(token, meant or "JOIN")
            self.advance()
            return "JOIN", token
        if meant:
            self.misspelt(token, meant)
            self.token = token._replace(text=meant)
            return None
        hint = "two blocks are combined with `FOLLOWED BY {...}` or `JOIN {...}`"
        raise self.unexpected(_FROM_END, hint)

    def reserved(self, token: Token) -> UnreadableError:
        """Report a reserved word; the caller raises the result."""
        return self.fail(
            "XS108",
            token.span,
            f"`{token.text}` is reserved for a later version of XSCL",
            "operators are `FOLLOWED BY` and `JOIN`; clauses are SELECT, FROM and PUBLISH",
        )

    def _operand(self) -> Operand | None:
        """Read a block or a parenthesised from; `None` where it cannot be read."""
        try:
            return self._parenthesised_from() if self.token.kind == "(" else self._block()
        except UnreadableError:
            self._skip_operand()
            return None

    def _parenthesised_from(self) -> Operand | None:
        opening = self.advance()
        nesting = self.nesting
        self.deeper()
        inner = self.from_()
        self.close(opening, ")")
        self.nesting = nesting
        return inner

    def _skip_operand(self) -> None:
        """Skip to where an operator or a clause can stand."""
        while self.token.kind not in (";", "end", ")") and not self.at_operator():
            if any(self.at_word(word) for word in ("FROM", "SELECT", "PUBLISH")):
                return
            self.advance()

    def _block(self) -> BlockSyntax:
        token = self.token
        if self.at_operator() and token.text.upper() in ("FOLLOWED", "JOIN"):
            raise self.unexpected("a block before the operator", "as in `S FOLLOWED BY {...} T`")
        if token.kind == "name" and token.text.upper() in RESERVED and not self._at_stream():
            raise self.reserved(token)
        if token.kind not in ("name", "*") or token.text.endswith("*") is not (token.kind == "*"):
            raise self.unexpected("a block: a stream and a path", _block_hint(token))
        if token.text[-1] == "'" or ":" in token.text:
            raise self.fail(
                "XS113", token.span, f"`{token.text}` is not a stream name", "as in `S//book`"
            )
        self.advance()
        self.blocks += 1
        if self.blocks > BLOCK_LIMIT + 1:
            raise UnreadableError
        if self.blocks > BLOCK_LIMIT:
            raise self.fail("XS112", token.span, f"more than {BLOCK_LIMIT} blocks in one query")
        block = BlockSyntax(token.text, token.span, [], token.span)
        if self.token.kind in ("/", "//"):
            block.steps = self._block_steps()
        elif self.token.kind == "->" or (self.token.kind == "name" and self.at_binding_word()):
            block.variable, block.variable_span = self.variable_name()
        elif self.token.kind == "[":
            raise self.fail(
                "XS114",
                self.token.span,
                "a predicate needs a step before it",
                f"write `{token.text}/*[...]` for the root element",
            )
        block.span = Span(token.start, self.last.end)
        return block

    def _at_stream(self) -> bool:
        """Whether a reserved word is a stream's name here: an operator or a path follows it."""
        following = self.peek()
        if following.kind == "name":
            return following.text.upper() in _AFTER_BLOCK
        return following.kind not in ("(", "{", "*")

    def _block_steps(self) -> list[StepSyntax]:
        """Read the steps; an error in one leaves out the rest of the path only."""
        steps: list[StepSyntax] = []
        try:
            self.steps(steps)
        except UnreadableError:
            self._skip_operand()
        return steps

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


_CONDITIONS = "conditions stand on steps, `S//book[price < 20]`, or in an operator's braces"

_SQL_HINTS = {
    "WHERE": _CONDITIONS,
    "HAVING": _CONDITIONS,
    "GROUP": "nothing is grouped or counted: each match comes as soon as it is found",
    "ORDER": "nothing is sorted: each match comes as soon as it is found",
    "LIMIT": "a query has no end: each match comes as soon as it is found",
}
"""What to do instead of clauses that other languages have."""


def _block_hint(token: Token) -> str | None:
    if token.kind in ("/", "//"):
        return f"a path begins with its stream: `S{token.text}...`, or `*{token.text}...` for any"
    return f"{describe(token)} cannot begin one" if token.kind == "string" else None
