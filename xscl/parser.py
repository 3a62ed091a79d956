"""Reads statements: prolog, SELECT, FROM, PUBLISH, operands and their operators.

Parsing never fails: `parse_file` gives the statements as far as they can be read, and the report
has an error for each thing that is wrong.  After an error the parser goes on behind the bracket,
at the next operator, clause or `;`, so that one mistake is reported once.
"""

from __future__ import annotations

import itertools

from xscl.cursor import UnreadableError, describe
from xscl.lexer import Comment, Token
from xscl.path import Span
from xscl.predicates import NO_WINDOW_HINT, PredicateParser
from xscl.query import INFINITE_US
from xscl.report import Report
from xscl.spelling import closest
from xscl.syntax import (
    BlockSyntax,
    ConstructorSyntax,
    DurationSyntax,
    Expression,
    JoinSyntax,
    NamespaceDeclaration,
    Operand,
    PublishSyntax,
    SelectSyntax,
    Statement,
    StepSyntax,
)

__all__ = ["BLOCK_LIMIT", "RESERVED", "parse_file"]

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

_PATH_STARTS = frozenset({"/", "//", "->"})
_SYNCHRONISING = ("SELECT", "FROM", "PUBLISH")
_AFTER_BLOCK = frozenset({"FOLLOWED", "JOIN", "SELECT", "PUBLISH", "FROM", "AS"})
_FROM_END = "`FOLLOWED BY`, `JOIN`, a clause, or `;`"


def parse_file(text: str, report: Report) -> tuple[list[Statement], list[Comment]]:
    """Return the statements of a text and its comments."""
    parser = _Parser(text, report)
    return parser.file(), parser.comments


class _Parser(PredicateParser):
    blocks = 0

    def file(self) -> list[Statement]:
        statements: list[Statement] = []
        while True:
            while self.token.kind == ";":
                self.advance()
            if self.token.kind == "end":
                return statements
            statements.append(self.statement())

    def statement(self) -> Statement:
        start, first = self.token.start, self.index
        self.is_broken, self.nesting, self.blocks = False, 0, 0
        statement = Statement([], None, None, None, Span(start, start))
        try:
            statement.prolog = self.prolog()
            self.clauses(statement)
            if self.token.kind not in (";", "end"):
                self.after_statement()
        except UnreadableError:
            while self.token.kind not in (";", "end"):
                self.skip_to(";")
                if self.token.kind not in (";", "end"):
                    self.advance()
        statement.span = self.span_from(start)
        statement.end = self.token.start
        statement.is_broken = self.is_broken
        if self.is_broken:
            statement.mentioned = self.seemingly_bound(first)
        return statement

    def seemingly_bound(self, first: int) -> set[str]:
        """Return the names behind arrows and AS, read or not, since a token."""
        tokens = self.tokens[first : self.index + 1]
        return {
            name.text
            for mark, name in itertools.pairwise(tokens)
            if mark.kind == "->" or mark.text.upper() == "AS"
        }

    def after_statement(self) -> None:
        token = self.token
        if token.kind == "name" and token.text.upper() in RESERVED:
            raise self.reserved(token)
        raise self.unexpected("`;` or the end of the text", "statements are separated by `;`")

    # -- prolog --------------------------------------------------------------------------------

    def prolog(self) -> list[NamespaceDeclaration]:
        declarations: list[NamespaceDeclaration] = []
        while self.at_word("DECLARE") and self.peek().text.upper() in ("NAMESPACE", "DEFAULT"):
            try:
                declarations.append(self.declaration())
            except UnreadableError:
                while self.token.kind not in (";", "end"):
                    self.advance()
                if self.token.kind == ";":
                    self.advance()
        return declarations

    def declaration(self) -> NamespaceDeclaration:
        start = self.advance().start
        prefix = ""
        if self.advance().text.upper() == "DEFAULT":
            for word in ("ELEMENT", "NAMESPACE"):
                if not self.at_word(word):
                    raise self.unexpected(
                        f"`{word}`", "write `DECLARE DEFAULT ELEMENT NAMESPACE = '...';`"
                    )
                self.advance()
        else:
            prefix = self.expect("name", "a prefix").text
        if self.token.kind == "=":
            self.advance()
        uri = self.expect("string", "the namespace's URI, a string").text
        span = self.span_from(start)
        if self.token.kind != ";":
            raise self.unexpected("`;`", "a declaration ends in `;`")
        self.advance()
        return NamespaceDeclaration(prefix, uri, span)

    # -- clauses -------------------------------------------------------------------------------

    def clauses(self, statement: Statement) -> None:
        if self.at_clause("SELECT"):
            statement.select = self.select()
            if not self.at_word("FROM"):
                self.misspelt_or("FROM", "`FROM`", "a statement is `SELECT ... FROM ...`")
            self.advance()
            statement.source = self.from_()
            self.publish(statement)
        elif self.at_clause("FROM"):
            self.advance()
            statement.source = self.from_()
            if self.at_word("SELECT"):
                statement.select = self.select()
            self.publish(statement)
        else:
            statement.source = self.from_()
            if any(self.at_word(word) for word in _SYNCHRONISING):
                word = self.token.text.upper()
                raise self.fail(
                    "XS101",
                    self.token.span,
                    f"{word} needs `FROM` before the first block",
                    "write `FROM ... SELECT ...` or `SELECT ... FROM ...`",
                )

    def at_clause(self, word: str) -> bool:
        """Whether a clause begins here, rather than a stream of that name."""
        if not self.at_word(word):
            return False
        following = self.peek()
        if following.kind in ("/", "//", "->", ";", "end"):
            return False
        return not (
            following.kind == "name"
            and following.text.upper() in ("FOLLOWED", "JOIN", "AS")
            and self.peek(2).kind in ("name", "{")
            and self.peek(2).text.upper() not in ("FOLLOWED", "JOIN")
        )

    def misspelt_or(self, word: str, wanted: str, hint: str) -> None:
        """Go on if the next token is nearly this keyword, else give up."""
        token = self.token
        if token.kind == "name" and closest(token.text.upper(), [word]):
            self.misspelt(token, word)
            return
        raise self.unexpected(wanted, hint)

    def misspelt(self, token: Token, word: str) -> None:
        self.is_broken = True
        self.report.error(
            "XS109", token.span, f"`{token.text}` is no keyword", f"did you mean `{word}`?"
        )

    def publish(self, statement: Statement) -> None:
        if not self.at_word("PUBLISH"):
            return
        start = self.advance().start
        name = self.expect("name", "the name of the stream to publish", "write `PUBLISH alerts`")
        if ":" in name.text or name.text[-1] == "'":
            raise self.fail("XS113", name.span, f"`{name.text}` is not a stream name")
        statement.publish = PublishSyntax(name.text, self.span_from(start))

    def select(self) -> SelectSyntax:
        start = self.advance().start
        if self.token.kind == "constructor":
            token = self.advance()
            constructor = ConstructorSyntax(token.text.strip(), token.span)
            return SelectSyntax([], constructor, self.span_from(start))
        if self.token.kind == "*":
            self.advance()
            return SelectSyntax([], None, self.span_from(start))
        items: list[Expression] = []
        while True:
            if self.at_word("FROM") and self.peek().kind in ("name", "*", "("):
                raise self.unexpected("what to select", "write `SELECT *` for all block roots")
            try:
                items.append(self.level())
            except UnreadableError:
                self.skip_select()
            if self.token.kind != ",":
                return SelectSyntax(items, None, self.span_from(start))
            self.advance()

    def skip_select(self) -> None:
        while self.token.kind not in (";", "end", ",") and not any(
            self.at_word(word) for word in _SYNCHRONISING
        ):
            self.advance()

    # -- operands and operators ----------------------------------------------------------------

    def from_(self) -> Operand | None:
        left = self.operand()
        while True:
            keyword = self.operator_keyword()
            if keyword is None:
                return left
            left = self.join(left, *keyword)

    def join(self, left: Operand | None, keyword: str, token: Token) -> Operand | None:
        start = left.span.start if left else token.start
        predicate, window = None, DurationSyntax(INFINITE_US, None, token.span)
        if self.token.kind == "name" and self.token.text == "_":
            self.advance()
        if self.token.kind == "{":
            predicate, window = self.braces()
        else:
            self.no_braces(keyword, token)
        operator_span = self.span_from(token.start)
        right = self.operand()
        if left is None or right is None:
            return left or right
        return JoinSyntax(
            keyword, left, right, predicate, window, operator_span, self.span_from(start)
        )

    def no_braces(self, keyword: str, token: Token) -> None:
        """Report what is missing behind an operator; skip to a `}` if only the `{` is."""
        self.is_broken = True
        self.report.error(
            "XS106",
            Span(token.start, self.last.end),
            f"`{keyword}` needs a window: `{keyword} {{..., 30 days}}`",
            NO_WINDOW_HINT,
        )
        for behind in range(self.index, len(self.tokens)):
            kind = self.tokens[behind].kind
            if kind in ("{", ";"):
                return
            if kind == "}":
                while self.advance().kind != "}":
                    pass
                return

    def operator_keyword(self) -> tuple[str, Token] | None:
        """Step over an operator's keyword, `_` behind it included; `None` where there is none."""
        token = self.token
        if token.kind == "+":
            raise self.reserved(token)
        if token.kind != "name":
            return self.operator_without_keyword()
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
        if word in _SYNCHRONISING:
            return None
        if word in RESERVED:
            raise self.reserved(token)
        return self.misspelt_operator(token)

    def operator_without_keyword(self) -> tuple[str, Token] | None:
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

    def misspelt_operator(self, token: Token) -> tuple[str, Token] | None:
        meant = closest(token.text.upper(), ["FOLLOWED", "JOIN", *_SYNCHRONISING])
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
        raise self.unexpected(
            _FROM_END, "two blocks are combined with `FOLLOWED BY {...}` or `JOIN {...}`"
        )

    def reserved(self, token: Token) -> UnreadableError:
        return self.fail(
            "XS108",
            token.span,
            f"`{token.text}` is reserved for a later version of XSCL",
            "operators are `FOLLOWED BY` and `JOIN`; clauses are SELECT, FROM and PUBLISH",
        )

    def operand(self) -> Operand | None:
        """Read a block or a parenthesised from; `None` where it cannot be read."""
        try:
            return self.parenthesised_from() if self.token.kind == "(" else self.block()
        except UnreadableError:
            self.skip_operand()
            return None

    def parenthesised_from(self) -> Operand | None:
        opening = self.advance()
        nesting = self.nesting
        self.deeper()
        inner = self.from_()
        self.close(opening, ")")
        self.nesting = nesting
        return inner

    def skip_operand(self) -> None:
        """Skip to where an operator or a clause can stand."""
        while self.token.kind not in (";", "end", ")") and not self.at_operator():
            if any(self.at_word(word) for word in ("FROM", "SELECT", "PUBLISH")):
                return
            self.advance()

    def block(self) -> BlockSyntax:
        token = self.token
        if self.at_operator() and token.text.upper() in ("FOLLOWED", "JOIN"):
            raise self.unexpected("a block before the operator", "as in `S FOLLOWED BY {...} T`")
        if token.kind == "name" and token.text.upper() in RESERVED and not self.at_stream():
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
            block.steps = self.block_steps()
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

    def at_stream(self) -> bool:
        """Whether a reserved word is a stream's name here: an operator or a path follows it."""
        following = self.peek()
        if following.kind == "name":
            return following.text.upper() in _AFTER_BLOCK
        return following.kind not in ("(", "{", "*")

    def block_steps(self) -> list[StepSyntax]:
        """Read the steps; an error in one leaves out the rest of the path only."""
        steps: list[StepSyntax] = []
        try:
            while self.token.kind in ("/", "//"):
                steps.append(self.step(self.advance().kind == "//"))
        except UnreadableError:
            self.skip_operand()
        return steps


def _block_hint(token: Token) -> str | None:
    if token.kind in ("/", "//"):
        return f"a path begins with its stream: `S{token.text}...`, or `*{token.text}...` for any"
    return f"{describe(token)} cannot begin one" if token.kind == "string" else None
