"""Operators' predicates: from syntax to disjuncts of value joins and residuals.

A path from a variable becomes a fresh variable; `PredicateBuilder.fresh` says which, and
`xscl.rewriting.attach` puts them into the blocks' paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xscl.canonical import render_expression
from xscl.conditions import OutsideFragmentError, ParameterUse, PatternBuilder
from xscl.path import (
    ANY,
    Axis,
    Literal,
    NodeTest,
    Parameter,
    Path,
    Span,
    Step,
)
from xscl.positions import TURNED
from xscl.query import (
    Call,
    Disjunct,
    Operand,
    Residual,
    ValueJoin,
    Variable,
    VariableValue,
    operand_variables,
)
from xscl.signatures import (
    DERIVING_FUNCTIONS,
    STRING_TESTS,
    check_arity,
    check_pattern,
    parameter_type,
    unknown_function,
)
from xscl.spelling import did_you_mean
from xscl.syntax import (
    Binary,
    Expression,
    FunctionCall,
    Junction,
    NumberLiteral,
    ParameterRef,
    PathExpression,
    StepSyntax,
    StringLiteral,
)

__all__ = ["DISJUNCT_LIMIT", "PredicateBuilder"]

DISJUNCT_LIMIT = 64
"""Disjuncts of one operator's predicate; each is evaluated by itself."""

ALTERNATIVES_LIMIT = 4_096
"""Choices of one disjunct for each operator of a query: each is compiled and kept by itself."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """A comparison, and the blocks that each side speaks of."""

    left: Operand
    operator: str
    right: Operand
    span: Span


@dataclass(slots=True)
class _Scope:
    """The blocks of an operator's two operands."""

    left: frozenset[int]
    right: frozenset[int]


class PredicateBuilder:
    """Builds the disjuncts of a query's operators over the variables that its blocks bind."""

    def __init__(
        self, patterns: PatternBuilder, blocks: Mapping[str, int], guessed: set[str]
    ) -> None:
        self.patterns = patterns
        self.report = patterns.report
        self.blocks = dict(blocks)
        self.guessed = guessed
        self.fresh: list[tuple[str, Variable, Path]] = []
        self.labels: dict[str, int] = {}
        self.scope = _Scope(frozenset(), frozenset())
        self.alternatives = 1

    def disjuncts(
        self, predicate: Expression | None, left: frozenset[int], right: frozenset[int]
    ) -> tuple[Disjunct, ...]:
        """Return a predicate in disjunctive form, seen from operands with these blocks."""
        self.scope = _Scope(left, right)
        if predicate is None:
            return (Disjunct(),)
        tree = self._tree(predicate)
        if _count(tree) > DISJUNCT_LIMIT:
            self.report.error(
                "XS503",
                predicate.span,
                f"this predicate has {_count(tree)} alternatives, more than {DISJUNCT_LIMIT}",
                "write several queries, or compare fewer alternatives",
            )
            return (Disjunct(),)
        found = tuple(dict.fromkeys(self._disjunct(terms) for terms in _expand(tree)))
        self._multiply(len(found), predicate.span)
        return found

    def _multiply(self, disjuncts: int, span: Span) -> None:
        """Count the alternatives of the operators so far; say once that they are too many."""
        before, self.alternatives = self.alternatives, self.alternatives * disjuncts
        if before <= ALTERNATIVES_LIMIT < self.alternatives:
            self.report.error(
                "XS503",
                span,
                f"with this predicate the query has {self.alternatives:,} alternatives, one for"
                f" each choice of a disjunct in every operator, more than {ALTERNATIVES_LIMIT:,}",
                "write several queries, or compare fewer alternatives",
            )

    def _disjunct(self, terms: tuple[_Compared, ...]) -> Disjunct:
        joins: list[ValueJoin] = []
        residuals: list[Residual] = []
        for term in dict.fromkeys(terms):
            join = self._value_join(term)
            if join is not None:
                joins.append(join)
            else:
                residuals.append(_residual(term))
        return Disjunct(tuple(joins), tuple(residuals))

    def _value_join(self, term: _Compared) -> ValueJoin | None:
        left, right = term.left, term.right
        if term.operator != "=" or isinstance(left, (Literal, Parameter)):
            return None
        if isinstance(right, (Literal, Parameter)):
            return None
        first, second = operand_variables(left), operand_variables(right)
        if len(first) != 1 or len(second) != 1:
            return None
        sides = self.blocks[first[0]], self.blocks[second[0]]
        if sides[0] in self.scope.left and sides[1] in self.scope.right:
            return ValueJoin(left, right)
        if sides[0] in self.scope.right and sides[1] in self.scope.left:
            return ValueJoin(right, left)
        return None

    # -- from syntax ---------------------------------------------------------------------------

    def _tree(self, syntax: Expression) -> _Tree:
        if isinstance(syntax, Junction):
            return _Junction(syntax.word, tuple(self._tree(term) for term in syntax.terms))
        assert isinstance(syntax, Binary)  # the parser lets nothing else through
        left, right = self.operand(syntax.left), self.operand(syntax.right)
        if left is None or right is None:
            return _Junction("and", ())
        kind = "value" if syntax.operator in ("=", "!=") else "number"
        for side, origin in ((left, syntax.left), (right, syntax.right)):
            if isinstance(side, Parameter):
                self.patterns.parameters.append(ParameterUse(side.name, kind, origin.span))
        return _Compared(left, syntax.operator, right, syntax.span)

    def operand(self, syntax: Expression) -> Operand | None:
        """Return one side of a comparison; `None` after an error in it."""
        match syntax:
            case StringLiteral(value=text):
                return Literal(text)
            case NumberLiteral(value=number):
                return Literal(number)
            case ParameterRef(name=name):
                return self._parameter_or_variable(name, syntax)
            case FunctionCall():
                return self._call(syntax)
            case PathExpression():
                return self._path(syntax)
        self.report.error(
            "XS307",
            syntax.span,
            "this cannot be compared here",
            "a side is a variable, a path from one, a literal, or a function of those",
        )
        return None

    def _parameter_or_variable(self, name: str, syntax: ParameterRef) -> Operand:
        if name in self.blocks:
            self.report.error(
                "XS206",
                syntax.span,
                f"`${name}` is a parameter, and `{name}` a variable of this query",
                f"write `{name}` for the variable, or rename the parameter",
            )
        return Parameter(name)

    def _call(self, syntax: FunctionCall) -> Operand | None:
        if syntax.name in STRING_TESTS or syntax.name == "string-length":
            self.report.error(
                "XS305",
                syntax.span,
                f"`{syntax.name}` cannot stand in an operator's predicate",
                f"put it on a step: `a[{syntax.name}(...)]`",
            )
            return None
        if syntax.name not in DERIVING_FUNCTIONS:
            unknown_function(syntax, DERIVING_FUNCTIONS, self.report)
            return None
        check_arity(syntax, self.report)
        check_pattern(syntax, self.report)
        arguments: list[Operand] = []
        for index, each in enumerate(syntax.arguments):
            argument = self.operand(each)
            if argument is None:
                return None
            if isinstance(argument, Parameter):
                kind = parameter_type(syntax.name, index)
                self.patterns.parameters.append(ParameterUse(argument.name, kind, each.span))
            arguments.append(argument)
        if not arguments:
            self.report.error(
                "XS302", syntax.span, f"`{syntax.name}()` of what? There is no context node here"
            )
            return None
        return Call(syntax.name, tuple(arguments))

    def _path(self, syntax: PathExpression) -> Operand | None:
        if syntax.is_absolute or syntax.start is not None:
            return self._no_variable(syntax)
        first, rest = syntax.steps[0], syntax.steps[1:]
        test = first.test
        if first.axis != "child" or test.kind != "name" or test.prefix or test.name == "*":
            return self._no_variable(syntax)
        for step in syntax.steps:
            if step.variable is not None:
                self.report.error(
                    "XS309",
                    step.variable_span or step.span,
                    f"`{step.variable}` cannot be bound in an operator's predicate",
                    "bind it in its block; here it needs no name",
                )
                return None
        if not self._is_known(test.name, test.span):
            return None
        return self.value(syntax, test.name, rest)

    def _no_variable(self, syntax: PathExpression) -> Operand | None:
        self.report.error(
            "XS308",
            syntax.span,
            "this path begins with no variable",
            "bind a step in a block, `S//book->x1`, and write `x1/author`",
        )
        return None

    def _as_path(self, name: str) -> str | None:
        """Return a hint where a dot was written for the slash behind a variable."""
        variable, dot, rest = name.partition(".")
        return f"write `{variable}/{rest}`" if dot and rest and variable in self.blocks else None

    def _is_known(self, name: str, span: Span) -> bool:
        block = self.blocks.get(name)
        if block is None:
            if name not in self.guessed:
                self.report.error(
                    "XS201",
                    span,
                    f"no block binds the variable `{name}`",
                    self._as_path(name)
                    or did_you_mean(name, self.blocks)
                    or f"bind it in a block: `author->{name}`; a string stands in quotes",
                )
            return False
        if block not in self.scope.left and block not in self.scope.right:
            self.report.error(
                "XS204",
                span,
                f"`{name}` is bound in a block outside this operator's two operands",
                "operators group from the left; set parentheses, or move the comparison",
            )
            return False
        return True

    def value(self, syntax: PathExpression, base: str, rest: list[StepSyntax]) -> Operand | None:
        """Return the variable, or the fresh one for the path from it."""
        block = self.blocks[base]
        first = syntax.steps[0]
        bound = len(self.patterns.bindings)
        try:
            steps = list(self.patterns.path(rest, is_positive=False).steps)
            if first.predicates:
                built = [self.patterns.predicate(each, False) for each in first.predicates]
                known = tuple(each for each in built if each is not None)
                steps.insert(0, Step(Axis.SELF, NodeTest(ANY, ANY), predicates=known))
        except OutsideFragmentError as outside:
            self.report.error(
                "XS303",
                outside.span,
                f"{outside.reason} cannot stand on a path from a variable",
                "such a path has `/`, `//`, `@` and `.`, and predicates",
            )
            return None
        if len(self.patterns.bindings) > bound:
            del self.patterns.bindings[bound:]
            return None
        if not steps:
            return VariableValue(base)
        label = self._label(render_expression(syntax))
        name = label if "/" in label else f"{label}/."  # no author's variable has a slash
        steps[-1] = replace(steps[-1], variable=name)
        self.blocks[name] = block
        self.fresh.append((base, Variable(name, block, label), Path(tuple(steps))))
        return VariableValue(name)

    def _label(self, text: str) -> str:
        count = self.labels[text] = self.labels.get(text, 0) + 1
        return text if count == 1 else f"{text}#{count}"


@dataclass(frozen=True, slots=True)
class _Junction:
    word: str
    terms: tuple[_Tree, ...]


_Tree = _Compared | _Junction


def _count(tree: _Tree) -> int:
    if isinstance(tree, _Compared):
        return 1
    counts = [_count(term) for term in tree.terms]
    if tree.word == "or":
        return sum(counts)
    product = 1
    for count in counts:
        product *= count
    return product


def _expand(tree: _Tree) -> list[tuple[_Compared, ...]]:
    if isinstance(tree, _Compared):
        return [(tree,)]
    parts = [_expand(term) for term in tree.terms]
    if tree.word == "or":
        return [terms for part in parts for terms in part]
    found: list[tuple[_Compared, ...]] = [()]
    for part in parts:
        found = [before + after for before in found for after in part]
    return found


def _residual(term: _Compared) -> Residual:
    left, right, operator = term.left, term.right, term.operator
    if isinstance(left, (Literal, Parameter)) and not isinstance(right, (Literal, Parameter)):
        return Residual(right, TURNED[operator], left)
    return Residual(left, operator, right)
