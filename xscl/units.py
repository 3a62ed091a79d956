"""Reads units: blocks, alternatives, how documents are lost, and repetitions."""

from __future__ import annotations

from xscl.cursor import RESERVED, UnreadableError, describe
from xscl.habits import WORD_PLACES
from xscl.lexer import Token
from xscl.path import Span
from xscl.predicates import PredicateParser
from xscl.statement import BracesSyntax, FoldSyntax, RepetitionSyntax, UnitSyntax
from xscl.syntax import (
    BlockSyntax,
    DurationSyntax,
    Expression,
    LossSyntax,
    NumberLiteral,
    ParameterRef,
    StepSyntax,
    StringLiteral,
)

__all__ = ["BLOCK_LIMIT", "CLAUSES", "RESERVED", "UnitParser", "is_after_block"]

BLOCK_LIMIT = 100
"""Blocks of one statement, absent ones and alternatives too."""

CLAUSES = ("SELECT", "FROM", "PUBLISH")
"""The words that begin a clause of output."""

_AFTER_BLOCK = RESERVED | {"FOLLOWED", "JOIN", "SELECT", "PUBLISH", "FROM", "AS"}
_DELAYS = ("uniform", "exp", "cdf", "learned")


def is_after_block(word: str) -> bool:
    """Whether a word may stand behind a block."""
    return word.upper() in _AFTER_BLOCK


class UnitParser(PredicateParser):
    """Adds blocks, units and repetitions to predicates."""

    blocks = 0

    def unit(self) -> UnitSyntax:
        """Read a block, or alternatives in parentheses."""
        if self.token.kind == "(":
            return self.alternatives()
        block = self._lossy()
        return UnitSyntax([block], block.span)

    def at_alternatives(self) -> bool:
        """Whether the parentheses that open here have `|` in them, outside of other brackets."""
        depth = 0
        for place in range(self.index, self.matching(self.index)):
            kind = self.tokens[place].kind
            depth += (kind in ("(", "[", "{")) - (kind in (")", "]", "}"))
            if kind == "|" and depth == 1:
                return True
        return False

    def alternatives(self) -> UnitSyntax:
        """Read `( a | b ... )`."""
        end = self.matching(self.index)
        opening = self.advance()
        nesting = self.nesting
        self.deeper()
        blocks = [self._lossy()]
        while self.token.kind == "|":
            self.advance()
            blocks.append(self._lossy())
        if self.token.kind != ")" and self.token.kind != "bad" and self.at_operator():
            self.is_broken = True
            self.report.error(
                "XS812",
                self.token.span,
                "alternatives are single blocks",
                "write one query for each alternative, or `( a | b )` on one side of the operator",
            )
            self.go_back(end)
        self.close(opening, ")")
        self.nesting = nesting
        return UnitSyntax(blocks, self.span_from(opening.start))

    def _lossy(self) -> BlockSyntax:
        block = self.block()
        if self.at_word("LOSS"):
            block.loss = self._loss()
            block.span = Span(block.span.start, self.last.end)
        return block

    # -- blocks --------------------------------------------------------------------------------

    def block(self) -> BlockSyntax:
        """Read a stream with its path or its variable."""
        token, word = self.token, self.token.text.upper()
        if word in ("FOLLOWED", "JOIN") and self.at_operator():
            raise self.unexpected("a block before the operator", "as in `S FOLLOWED BY {...} T`")
        if word in RESERVED and token.kind == "name" and not self._at_stream():
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
            raise self.fail(
                "XS112",
                token.span,
                f"more than {BLOCK_LIMIT} blocks in one query",
                "PUBLISH a part of it, and read that stream",
            )
        span = token.span
        block = BlockSyntax(token.text, span, [], span)
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

    def reserved(self, token: Token) -> UnreadableError:
        """Report a word that cannot stand here; the caller raises the result."""
        return self.fail(
            "XS108",
            token.span,
            f"`{token.text}` is a word of the language, and cannot stand here",
            WORD_PLACES.get(token.text.upper())
            or f"a stream of this name has a path behind it: `{token.text}//item`",
        )

    def _at_stream(self) -> bool:
        """Whether a reserved word is a stream's name here: an operator or a path follows it."""
        following = self.peek()
        if following.kind == "name":
            return following.text.upper() in _AFTER_BLOCK
        return following.kind not in ("(", "{", "*", "number")

    def _block_steps(self) -> list[StepSyntax]:
        """Read the steps; an error in one leaves out the rest of the path only."""
        steps: list[StepSyntax] = []
        try:
            self.steps(steps)
        except UnreadableError:
            self.skip_operand()
        return steps

    def skip_operand(self) -> None:
        """Skip to where an operator or a clause can stand."""
        depth = 0
        while self.token.kind not in (";", "end") and not self.at_operator():
            if any(self.at_word(word) for word in CLAUSES) or (
                depth == 0 and self.token.kind == ")"
            ):
                return
            depth += (self.token.kind == "(") - (self.token.kind == ")")
            self.advance()

    # -- loss ----------------------------------------------------------------------------------

    def _loss(self) -> LossSyntax:
        start = self.advance().start
        probability = self.number_or_parameter("how often it is lost, as in `LOSS 0.1`")
        if not self.at_word("DELAY"):
            raise self.unexpected("`DELAY`", "write `LOSS 0.1 DELAY uniform(0 s, 45 s)`")
        self.advance()
        word = self.token.text.lower() if self.token.kind == "name" else ""
        if word not in _DELAYS:
            raise self.unexpected(
                "a delay", "`uniform(0 s, 9 s)`, `exp(9 s)`, `cdf(1 s: 0.5, 9 s: 1)` or `learned`"
            )
        self.advance()
        lengths: list[DurationSyntax] = []
        numbers: list[NumberLiteral] = []
        if word != "learned":
            self._delay_arguments(word, lengths, numbers)
        return LossSyntax(probability, word, lengths, numbers, self.span_from(start))

    def _delay_arguments(
        self, word: str, lengths: list[DurationSyntax], numbers: list[NumberLiteral]
    ) -> None:
        opening = self.expect("(", f"`(` behind `{word}`")
        while True:
            lengths.append(self.duration(may_be_zero=True))
            if word == "cdf":
                self.expect(":", "`:` and a number", "as in `cdf(1 s: 0.5, 9 s: 1)`")
                token = self.expect("number", "how many have come by then, as in `0.5`")
                numbers.append(NumberLiteral(float(token.text), token.span))
            if self.token.kind != ",":
                break
            self.advance()
        self.close(opening, ")")

    def number_or_parameter(self, wanted: str) -> NumberLiteral | ParameterRef:
        """Read a number, or a parameter in its place."""
        if self.token.kind == "parameter":
            token = self.advance()
            return ParameterRef(token.text, token.span)
        token = self.expect("number", wanted)
        return NumberLiteral(float(token.text), token.span)

    def literal(self, wanted: str) -> StringLiteral | NumberLiteral | ParameterRef:
        """Read a string, a number or a parameter."""
        if self.token.kind == "string":
            token = self.advance()
            return StringLiteral(token.text, token.span)
        if self.token.kind == "-":
            sign = self.advance()
            token = self.expect("number", wanted)
            return NumberLiteral(-float(token.text), self.span_from(sign.start))
        if self.token.kind not in ("number", "parameter"):
            is_word = self.token.kind == "name"
            hint = f"a string stands in quotes: '{self.token.text}'" if is_word else None
            raise self.unexpected(wanted, hint)
        return self.number_or_parameter(wanted)

    # -- repetitions ---------------------------------------------------------------------------

    def repetition(self, unit: UnitSyntax) -> RepetitionSyntax:
        """Read what stands behind a unit from its `+` on."""
        plus = self.advance()
        braces: BracesSyntax | None = None
        condition: Expression | None = None
        folds: list[FoldSyntax] = []
        condition_span = fold_span = None
        if self.token.kind == "{":
            braces = self.braces()
        if self.at_word("WHILE"):
            condition_span = self.advance().span
            condition = self._condition()
        if self.at_word("FOLD"):
            fold_span = self.advance().span
            folds = self._folds()
        span = self.span_from(unit.span.start)
        return RepetitionSyntax(
            unit, braces, condition, folds, plus.span, condition_span, fold_span, span
        )

    def _condition(self) -> Expression | None:
        opening = self.expect("{", "`{` and a condition", "as in `WHILE {p < prev(p)}`")
        try:
            condition = self.disjunction()
            self.close(opening, "}")
        except UnreadableError:
            if self.skip_to("}"):
                self.advance()
            return None
        return condition

    def _folds(self) -> list[FoldSyntax]:
        opening = self.expect("{", "`{` and values", "as in `FOLD {n = 0 THEN n + 1}`")
        folds: list[FoldSyntax] = []
        try:
            while True:
                folds.append(self._fold())
                if self.token.kind != ",":
                    break
                self.advance()
            self.close(opening, "}")
        except UnreadableError:
            if self.skip_to("}"):
                self.advance()
        return folds

    def _fold(self) -> FoldSyntax:
        name = self.expect("name", "the name of a value", "as in `FOLD {n = 0 THEN n + 1}`")
        if ":" in name.text:
            message = f"a variable's name has no prefix: `{name.text}`"
            hint = f"write `{name.text.rpartition(':')[2]}`"
            raise self.fail("XS209", name.span, message, hint)
        self.expect("=", "`=`", "as in `FOLD {n = 0 THEN n + 1}`")
        first = self.side()
        if not self.at_word("THEN"):
            raise self.unexpected("`THEN`", "as in `FOLD {n = 0 THEN n + 1}`")
        self.advance()
        following = self.side()
        return FoldSyntax(name.text, name.span, first, following, self.span_from(name.start))


def _block_hint(token: Token) -> str | None:
    if token.kind in ("/", "//"):
        return f"a path begins with its stream: `S{token.text}...`, or `*{token.text}...` for any"
    if token.kind == "string":
        return f"{describe(token)} cannot begin one"
    return "as in `S//item->x`: all `item` elements of the stream `S`"
