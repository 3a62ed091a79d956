"""Reads paths and the expressions in their predicates: XPath 1.0, with `->variable` on steps."""

from __future__ import annotations

from xscl.cursor import STEP_LIMIT, Cursor, UnreadableError
from xscl.lexer import Token
from xscl.path import Span
from xscl.spelling import did_you_mean
from xscl.syntax import (
    COMPARISONS,
    Binary,
    Expression,
    Filter,
    FunctionCall,
    Junction,
    Negative,
    NumberLiteral,
    ParameterRef,
    PathExpression,
    StepSyntax,
    StringLiteral,
    TestSyntax,
)

__all__ = ["ExpressionParser"]

CHAIN_LIMIT = 100
"""Operands of one chain of `+`, `*`, `|` or comparisons: each is a level of the tree."""

AXES = frozenset(
    (
        "ancestor",
        "ancestor-or-self",
        "attribute",
        "child",
        "descendant",
        "descendant-or-self",
        "following",
        "following-sibling",
        "namespace",
        "parent",
        "preceding",
        "preceding-sibling",
        "self",
    )
)
_NODE_TYPES = frozenset({"text", "node", "comment", "processing-instruction"})
_STEP_STARTS = frozenset({"name", "*", "@", ".", ".."})
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("=", "!="),
    ("<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "div", "mod"),
)
_LEVEL_OF = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}


class ExpressionParser(Cursor):
    """Recursive descent over XPath 1.0's grammar.

    `predicates_deep` counts the brackets of steps that are open: outside of them the parsers built
    on this one read more than XPath.
    """

    predicates_deep = 0

    # -- paths ---------------------------------------------------------------------------------

    def steps(self, found: list[StepSyntax]) -> list[StepSyntax]:
        """Read `/step//step...` behind the steps `found`, for as long as a `/` follows."""
        outside = self.steps_deep
        self.steps_deep += len(found)
        try:
            while self.token.kind in ("/", "//"):
                self.steps_deep += 1
                if self.steps_deep > STEP_LIMIT:
                    raise self._too_deep()
                found.append(self.step(self.advance().kind == "//"))
        finally:
            self.steps_deep = outside
        return found

    def _too_deep(self) -> UnreadableError:
        return self.fail(
            "XS112",
            self.here(),
            f"more than {STEP_LIMIT} steps behind one another",
            f"no document is nested deeper than {STEP_LIMIT} levels",
        )

    def step(self, is_deep: bool) -> StepSyntax:
        """Read one step with its predicates and its variable, in either order."""
        start = self.token.start
        axis, test = self._axis_and_test()
        step = StepSyntax(axis, test, is_deep, test.span)
        while True:
            kind = self.token.kind
            if kind == "[":
                self.predicate(step)
            elif kind == "->" or (kind == "name" and self.at_binding_word()):
                self._binding(step)
            else:
                break
        end = self.last.end
        if step.span != (start, end):
            step.span = Span(start, end)
        return step

    def _axis_and_test(self) -> tuple[str, TestSyntax]:
        token = self.token
        if token.kind == "name" and self.tokens[self.index + 1].kind not in ("::", "("):
            self.advance()
            return "child", _named(token)
        if token.kind in (".", ".."):
            self.advance()
            axis = "self" if token.kind == "." else "parent"
            return axis, TestSyntax("node", None, "", token.span)
        axis = "child"
        if token.kind == "@":
            self.advance()
            axis = "attribute"
        elif token.kind == "name" and self.tokens[self.index + 1].kind == "::":
            axis = token.text
            if axis not in AXES:
                hint = did_you_mean(axis, AXES) or "as in `ancestor::section`"
                raise self.fail("XS303", token.span, f"there is no axis `{axis}`", hint)
            self.advance()
            self.advance()
        return axis, self._node_test()

    def _node_test(self) -> TestSyntax:
        token = self.token
        if token.kind == "*":
            self.advance()
            return TestSyntax("name", None, "*", token.span)
        if token.kind != "name":
            raise self.unexpected("a step", _step_hint(token.kind))
        self.advance()
        if self.token.kind == "(" and token.text in _NODE_TYPES:
            return self._node_type(token.text, token.start)
        return _named(token)

    def _node_type(self, kind: str, start: int) -> TestSyntax:
        opening = self.advance()
        target = ""
        if kind == "processing-instruction" and self.token.kind == "string":
            target = self.advance().text
        self.close(opening, ")")
        return TestSyntax(kind, None, target, self.span_from(start))

    def at_binding_word(self) -> bool:
        """Whether `AS x` stands here."""
        return self.token.text.upper() == "AS" and self.peek().kind == "name"

    def variable_name(self) -> tuple[str, Span]:
        """Read `->x` or `AS x`."""
        self.advance()
        hint = "a variable is bound as `book->x1`"
        if self.token.kind == "parameter":
            hint = f"its name stands without `$`: `->{self.token.text}`"
        token = self.expect("name", "a variable's name", hint)
        if ":" in token.text:
            message = f"a variable's name has no prefix: `{token.text}`"
            hint = f"write `{token.text.rpartition(':')[2]}`"
            raise self.fail("XS209", token.span, message, hint)
        return token.text, token.span

    def _binding(self, step: StepSyntax) -> None:
        name, span = self.variable_name()
        if step.variable is not None:
            self.is_broken = True
            self.report.error(
                "XS210",
                span,
                f"this step binds two variables, `{step.variable}` and `{name}`",
                "one variable is enough: use it wherever the other stands",
                step.variable_span,
            )
            return
        step.variable, step.variable_span = name, span

    def predicate(self, step: StepSyntax) -> None:
        """Read `[...]`; on an error inside, go on behind the closing bracket."""
        opening = self.advance()
        nesting, deep = self.nesting, self.predicates_deep
        self.predicates_deep += 1
        try:
            self.deeper()
            step.predicates.append(self.expression())
            self.close(opening, "]")
        except UnreadableError:
            if not self.skip_to("]"):
                raise
            self.advance()
        finally:
            self.predicates_deep = deep
        self.nesting = nesting

    # -- expressions ---------------------------------------------------------------------------

    def expression(self) -> Expression:
        """Read `a or b and c ...`."""
        return self._junction("or")

    def _junction(self, word: str) -> Expression:
        read = self._conjunction if word == "or" else self.level
        first = read()
        if not (self.token.kind == "name" and self.token.text.lower() == word):
            return first
        terms = [first]
        while self.token.kind == "name" and self.token.text.lower() == word:
            self.advance()
            terms.append(read())
        return Junction(word, terms, self.span_from(first.span.start))

    def _conjunction(self) -> Expression:
        return self._junction("and")

    def level(self, number: int = 0) -> Expression:
        """Read a chain of binary operators, by precedence; unary minus binds closer."""
        left = self._unary()
        return self._chain(left, number)

    def _chain(self, left: Expression, lowest: int) -> Expression:
        count = 0
        while True:
            operator, number = self._binary_operator()
            if number < lowest:
                return left
            count += 1
            if count > CHAIN_LIMIT:
                raise self.fail("XS112", self.here(), f"more than {CHAIN_LIMIT} operators in a row")
            self.advance()
            right = self._chain(self._unary(), number + 1)
            left = Binary(operator, left, right, self.span_from(left.span.start))

    def _binary_operator(self) -> tuple[str, int]:
        token = self.token
        word = token.text.lower() if token.kind == "name" else token.kind
        return word, _LEVEL_OF.get(word, -1)

    def _unary(self) -> Expression:
        if self.token.kind != "-":
            return self._union()
        sign = self.advance()
        self.deeper()
        operand = self._unary()
        self.nesting -= 1
        span = self.span_from(sign.start)
        if isinstance(operand, NumberLiteral):
            return NumberLiteral(-operand.value, span)
        return Negative(operand, span)

    def _union(self) -> Expression:
        left = self.path_expression()
        count = 0
        while self.token.kind == "|":
            self.advance()
            count += 1
            if count > CHAIN_LIMIT:
                raise self.fail("XS112", self.here(), f"more than {CHAIN_LIMIT} operators in a row")
            right = self.path_expression()
            left = Binary("|", left, right, self.span_from(left.span.start))
        return left

    def path_expression(self) -> Expression:
        """Read a path, or a primary expression with what may follow it."""
        token = self.token
        kind = token.kind
        if kind in ("/", "//"):
            return self._absolute()
        if kind in _STEP_STARTS and not self.at_call():
            steps = [self.step(is_deep=False)]
            if self.token.kind in ("/", "//"):
                self.steps(steps)
            return PathExpression(steps, Span(token.start, self.last.end))
        return self.filtered(self.primary())

    def _absolute(self) -> Expression:
        start = self.token.start
        if self.token.kind == "/" and self.peek().kind not in _STEP_STARTS:
            self.advance()
            return PathExpression([], self.span_from(start), is_absolute=True)
        return PathExpression(self.steps([]), self.span_from(start), is_absolute=True)

    def at_call(self) -> bool:
        """Whether a function stands here."""
        token = self.token
        return (
            token.kind == "name"
            and self.tokens[self.index + 1].kind == "("
            and token.text not in _NODE_TYPES
        )

    def primary(self) -> Expression:
        """Read a literal, a parameter, parentheses or a call."""
        token = self.token
        if token.kind == "string":
            self.advance()
            return StringLiteral(token.text, token.span)
        if token.kind == "number":
            self.advance()
            return NumberLiteral(float(token.text), token.span)
        if token.kind == "parameter":
            self.advance()
            return ParameterRef(token.text, token.span)
        if token.kind == "(":
            return self._parenthesised()
        if token.kind == "name":
            return self.call()
        raise self.unexpected(
            "a path, a value or a function", _value_hint(self.last.kind, token.kind)
        )

    def _parenthesised(self) -> Expression:
        opening = self.advance()
        self.deeper()
        inner = self.expression()
        self.close(opening, ")")
        self.nesting -= 1
        return inner

    def call(self) -> Expression:
        """Read a function and its arguments."""
        name = self.advance()
        opening = self.advance()
        is_distinct = self.skip_distinct(name.text)
        self.deeper()
        arguments: list[Expression] = []
        if self.token.kind != ")":
            arguments.append(self.expression())
            while self.token.kind == ",":
                self.advance()
                arguments.append(self.expression())
        self.close(opening, ")")
        self.nesting -= 1
        span = Span(name.start, self.last.end)
        return FunctionCall(name.text, arguments, span, name.span, is_distinct)

    def skip_distinct(self, function: str) -> bool:
        """Step over `distinct` behind the opening bracket of a function that takes it."""
        return False

    def filtered(self, primary: Expression) -> Expression:
        """Read what may follow a primary expression: predicates and steps."""
        if self.token.kind not in ("[", "/", "//"):
            return primary
        start = primary.span.start
        holder = StepSyntax("self", TestSyntax("node", None, "", primary.span), False, primary.span)
        while self.token.kind == "[":
            self.predicate(holder)
        if holder.predicates:
            primary = Filter(primary, holder.predicates, self.span_from(start))
        if self.token.kind not in ("/", "//"):
            return primary
        return PathExpression(self.steps([]), self.span_from(start), start=primary)


def _named(token: Token) -> TestSyntax:
    prefix, colon, name = token.text.rpartition(":")
    return TestSyntax("name", prefix if colon else None, name, token.span)


def _step_hint(kind: str) -> str:
    if kind in ("/", "//"):
        return "a path has one `/` or `//` between two steps"
    if kind == "[":
        return "a predicate stands behind a step; for any element write `*[...]`"
    if kind == "number":
        return "`/` begins a step; to divide, write `div`"
    if kind == "parameter":
        return "a name cannot be given; to compare what one has, write `*[name() = $name]`"
    return "a step is a name, `@name`, `*` or `text()`, as in `x/author`"


def _value_hint(before: str, kind: str) -> str:
    if (before, kind) == ("[", "]"):
        return "an empty predicate says nothing; remove the brackets"
    if (before, kind) == ("<", ">"):
        return "unequal is written `!=`"
    if (before, kind) == (",", "<"):
        return "an element stands alone behind SELECT, with all that is shown: `<o>{x1/title}</o>`"
    if (before, kind) == ("|", "|"):
        return "write `or`"
    if kind == "+":
        return "leave the `+` out: a number without a sign is positive"
    if kind in COMPARISONS:
        return "`==` is written `=`, and each comparison has a value on both sides"
    return "as in `x/author`, `'Ann'` or `3`"
