"""Reads statements: prolog, SELECT, FROM and clauses, PUBLISH, and CREATE TABLE.

Parsing never fails: `parse_file` gives the statements as far as they can be read, and the report
has an error for each thing that is wrong.  After an error the parser goes on behind the bracket,
at the next operator, clause or `;`, so that one mistake is reported once.
"""

from __future__ import annotations

import itertools

from xscl.clauses import FROM_CLAUSES, ORDER_HINT, STATEMENT_CLAUSES
from xscl.cursor import UnreadableError
from xscl.lexer import Comment, Token
from xscl.operands import CLAUSES, RESERVED, OperandParser
from xscl.path import Span
from xscl.report import Report
from xscl.statement import (
    ColumnSyntax,
    ConstructorSyntax,
    NamespaceDeclaration,
    PublishSyntax,
    SelectSyntax,
    Statement,
    TableSyntax,
    blocks_of,
)
from xscl.syntax import Expression
from xscl.units import is_after_block

__all__ = ["parse_file"]

_ARROW = "a variable is bound with `->`, as in `book->x1`"
_COMBINE = "two blocks are combined with `FOLLOWED BY {...}` or `JOIN {...}`, conditions with AND"
_ALTERNATIVES = "alternatives stand in parentheses: `(S//a | T//b)`"
_NAMESPACE_HINT = "as in `DECLARE NAMESPACE ex = 'http://example.org/terms';`"
_CLOSING = "no bracket is open here"
_REPEATED = "a block is repeated by `+`: `S//item->x+`"
_OPERATORS = frozenset({"FOLLOWED", "JOIN", "NEXT", "NOT", "UNLESS"})
_CLAUSES_LAST = (
    "clauses stand behind the last operand, or in parentheses with what they speak of:"
    " `(S FOLLOWED BY T WITHIN 1 h) FOLLOWED BY ...`"
)
_AFTER_STATEMENT = {"=": _ARROW, "-": _ARROW, ">": _ARROW, ",": _COMBINE}
_AFTER_STATEMENT |= {"*": _REPEATED, "|": _ALTERNATIVES}
_AFTER_STATEMENT |= {"]": _CLOSING, ")": _CLOSING, "}": _CLOSING}
"""What is probably wrong where a statement goes on with one of these marks."""

_CONSTRUCTED = frozenset({"if", "for", "some", "every"})
"""Words that begin an expression of XPath 2.0, and no item of a list."""

_ITEM_STARTS = frozenset({"name", "*", "constructor", "string", "number", "parameter"})


def parse_file(text: str, report: Report) -> tuple[list[Statement], list[Comment]]:
    """Return the statements of a text and its comments."""
    parser = _Parser(text, report)
    return parser.file(), parser.comments


def parse_side(text: str, offset: int, report: Report) -> Expression | None:
    """Return a side of a comparison that stands alone at an offset; None after an error in it."""
    parser = _Parser(" " * offset + text, report)
    try:
        side = parser.side()
        if parser.token.kind != "end":
            raise parser.unexpected("the end of the expression", "an aggregate stands alone")
    except UnreadableError:
        return None
    return side


class _Parser(OperandParser):
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
        self.statement_start = first
        self.functions, self.has_rows = set(), False
        statement = Statement([], Span(start, start))
        try:
            statement.prolog = self.prolog()
            if self.at_table():
                statement.table = self.table()
            else:
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
        statement.functions, statement.has_rows = self.functions, self.has_rows
        if statement.source is not None:
            blocks = blocks_of(statement.source)
            statement.is_lossy = any(each.loss is not None for each in blocks)
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
        word = token.text.upper() if token.kind == "name" else ""
        if word in _OPERATORS:
            raise self.unexpected("`;` or the end of the text", _CLAUSES_LAST)
        if word in FROM_CLAUSES or word in STATEMENT_CLAUSES:
            raise self.fail("XS117", token.span, f"{word} comes too late here", ORDER_HINT)
        if word in RESERVED:
            raise self.reserved(token)
        hint = _AFTER_STATEMENT.get(token.kind, "statements are separated by `;`")
        if token.kind == "->" and self.last.kind == "+":
            hint = "`+` stands behind the variable: `item->x+`"
        raise self.unexpected("`;` or the end of the text", hint)

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
            prefix = self.expect("name", "a prefix", _NAMESPACE_HINT).text
        if self.token.kind == "=":
            self.advance()
        uri = self.expect("string", "the namespace's URI, a string", _NAMESPACE_HINT).text
        span = self.span_from(start)
        if self.token.kind == ";":
            self.advance()
        else:
            failure = self.unexpected("`;`", "a declaration ends in `;`")
            if self.token.kind not in ("name", "*", "("):
                raise failure
        return NamespaceDeclaration(prefix, uri, span)

    # -- tables --------------------------------------------------------------------------------

    def at_table(self) -> bool:
        """Whether CREATE TABLE stands here, rather than a stream called `create`."""
        return self.at_word("CREATE") and self.peek().text.upper() == "TABLE"

    def table(self) -> TableSyntax:
        start = self.advance().start
        self.advance()
        name = self.expect("name", "the name of a table", "as in `CREATE TABLE t (id KEY)`")
        if ":" in name.text or name.text[-1] == "'":
            raise self._no_table_name(name)
        opening = self.expect("(", "`(` and columns", "as in `CREATE TABLE t (id KEY)`")
        columns: list[ColumnSyntax] = []
        while True:
            columns.append(self.column())
            if self.token.kind != ",":
                break
            self.advance()
        self.close(opening, ")")
        return TableSyntax(name.text, name.span, columns, self.span_from(start))

    def _no_table_name(self, name: Token) -> UnreadableError:
        message = f"`{name.text}` cannot name a table or a column"
        hint = "a name has letters, digits, `_`, `-` and `.`, neither a prefix nor primes"
        return self.fail("XS119", name.span, message, hint)

    def column(self) -> ColumnSyntax:
        name = self.expect("name", "the name of a column", "as in `(id KEY, status DEFAULT 0)`")
        if ":" in name.text or name.text[-1] == "'":
            raise self._no_table_name(name)
        if self.at_word("KEY"):
            self.advance()
            return ColumnSyntax(name.text, None, self.span_from(name.start))
        if not self.at_word("DEFAULT"):
            raise self.unexpected("`KEY`, or `DEFAULT` and a literal", "as in `n DEFAULT 0`")
        self.advance()
        default = self.literal("a literal")
        return ColumnSyntax(name.text, default, self.span_from(name.start))

    # -- clauses -------------------------------------------------------------------------------

    def clauses(self, statement: Statement) -> None:
        if self.at_clause("SELECT"):
            statement.select = self.select()
            if not self.at_word("FROM"):
                self.misspelt_or("FROM", "`FROM`", self.from_hint())
            self.advance()
            self.source(statement)
            self.publish(statement)
        elif self.at_clause("FROM"):
            self.advance()
            self.source(statement)
            if self.at_word("SELECT"):
                statement.select = self.select()
            self.publish(statement)
        else:
            self.source(statement)
            if self.token.kind == "name" and self.token.text.upper() in CLAUSES:
                word = self.token.text.upper()
                raise self.fail(
                    "XS101",
                    self.token.span,
                    f"{word} needs `FROM` before the first block",
                    "write `FROM ... SELECT ...` or `SELECT ... FROM ...`",
                )

    def from_hint(self) -> str:
        """Return what to write where FROM is missing."""
        word = self.token.text.upper()
        if word in ("DISJOINT", "COMPRESSED"):
            return f"write it first: `SELECT {word} ... FROM ...`"
        if self.last.text.upper() == "DISTINCT":
            return "of several matches `LIMIT 1 PER 1 day BY x/link` keeps one"
        return "a statement is `SELECT ... FROM ...`"

    def source(self, statement: Statement) -> None:
        statement.source = self.from_()
        self.statement_clauses(statement)

    def at_clause(self, word: str) -> bool:
        """Whether a clause begins here, rather than a stream of that name."""
        if not self.at_word(word):
            return False
        following = self.peek()
        if following.kind in ("/", "//", "->", ";", "end", "+"):
            return False
        if following.kind == "name" and following.text.upper() in RESERVED:
            return not self.is_behind_stream()
        if following.kind != "name" or following.text.upper() not in ("FOLLOWED", "JOIN", "AS"):
            return True
        behind = self.peek(2)
        if following.text.upper() == "JOIN" and behind.kind in ("*", "("):
            return self.binds(following.text)
        is_operator = behind.kind in ("name", "{")
        return not (is_operator and behind.text.upper() not in ("FOLLOWED", "JOIN"))

    def is_behind_stream(self) -> bool:
        """Whether the word behind the next token goes on as a clause or an operator does."""
        word, behind = self.peek(), self.peek(2)
        if self.binds(word.text):
            return False
        if word.text.upper() == "MATCH" and behind.text.upper() == "NEXT":
            further = self.peek(3)
            is_block = further.kind == "name" and not is_after_block(further.text)
            return further.kind not in ("{", "*", "(") and not is_block
        if behind.kind == "name":
            is_not = word.text.upper() == "NOT" and behind.text.upper() in ("FOLLOWED", "JOIN")
            return is_not or not is_after_block(behind.text)
        return behind.kind in ("{", "(", "*", "number", "parameter", "string", "-")

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
        found = SelectSyntax([], None, self.span_from(start))
        if self.at_kind():
            found.kind_span = self.token.span
            found.kind = self.advance().text.upper()
        if self.token.kind == "constructor":
            token = self.advance()
            found.constructor = ConstructorSyntax(token.text.strip(), token.span)
        elif self.token.kind == "*":
            self.advance()
        elif found.kind != "COMPRESSED":
            found.items = self.items()
        found.span = self.span_from(start)
        return found

    def at_kind(self) -> bool:
        """Whether COMPRESSED or DISJOINT stands here, and is no variable of the statement."""
        if not (self.at_word("COMPRESSED") or self.at_word("DISJOINT")):
            return False
        if self.binds(self.token.text):
            return False
        following = self.peek()
        if self.at_word("DISJOINT"):
            return following.kind in _ITEM_STARTS
        is_last = following.kind == "name" and following.text.upper() in ("FROM", "PUBLISH")
        return is_last or following.kind in (";", "end")

    def items(self) -> list[Expression]:
        items: list[Expression] = []
        while True:
            if self.at_word("FROM") and self.peek().kind in ("name", "*", "("):
                raise self.unexpected("what to select", "write `SELECT *` for all block roots")
            try:
                self.refuse_constructed()
                items.append(self.level())
            except UnreadableError:
                self.skip_select()
            if self.token.kind != ",":
                return items
            self.advance()

    def refuse_constructed(self) -> None:
        token = self.token
        if token.text in _CONSTRUCTED and self.peek().kind in ("(", "parameter"):
            raise self.fail(
                "XS101",
                token.span,
                f"`{token.text}` cannot stand in a list",
                f"build an element: `SELECT <match>{{{token.text} ...}}</match>`",
            )

    def skip_select(self) -> None:
        while self.token.kind not in (";", "end", ",") and not any(
            self.at_word(word) for word in CLAUSES
        ):
            self.advance()
