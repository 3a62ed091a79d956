"""Sides of comparisons: from syntax to operands, with every rule about what may stand where."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from xscl.canonical import render_expression
from xscl.comparison import (
    Call,
    Cell,
    Conditional,
    Disjunct,
    Operand,
    Row,
    operand_variables,
)
from xscl.conditions import ParameterUse, PatternBuilder
from xscl.elements import aggregate_below, not_repeated
from xscl.kinds import kind_in_arithmetic
from xscl.path import Literal, Parameter
from xscl.scopes import Names, Scope
from xscl.signatures import (
    AGGREGATES,
    DERIVING_FUNCTIONS,
    MEASURES,
    ROW_AGGREGATES,
    SEQUENCE_FUNCTIONS,
    SETS,
    STRING_TESTS,
    check_pattern,
    check_sequence_arity,
    parameter_type,
    unknown_function,
)
from xscl.syntax import (
    ARITHMETIC,
    Binary,
    Expression,
    FunctionCall,
    IfExpression,
    LengthLiteral,
    Negative,
    NumberLiteral,
    ParameterRef,
    PathExpression,
    RowSyntax,
    StringLiteral,
)
from xscl.table import TableUse
from xscl.variablepaths import VariablePathBuilder

__all__ = ["SideBuilder"]

_SHINGLES_MAX = 5


class SideBuilder(VariablePathBuilder, ABC):
    """Builds operands over the variables of a query, and gathers uses of tables."""

    def __init__(self, patterns: PatternBuilder, names: Names) -> None:
        super().__init__(patterns, names)
        self.tables: list[TableUse] = []
        self.aggregates: dict[Call, str] = {}

    @abstractmethod
    def disjuncts(self, predicate: Expression | None, scope: Scope) -> tuple[Disjunct, ...]:
        """Return a predicate in disjunctive form."""

    def operand(self, syntax: Expression, scope: Scope) -> Operand | None:
        """Return one side of a comparison; `None` after an error in it."""
        match syntax:
            case StringLiteral(value=text):
                return Literal(text)
            case NumberLiteral(value=number):
                return Literal(number)
            case LengthLiteral(length_us=length_us):
                return Literal(float(length_us))
            case ParameterRef(name=name):
                return self._parameter(name, syntax)
            case FunctionCall():
                return self._call(syntax, scope)
            case PathExpression():
                return self.path(syntax, scope)
            case Binary(operator=operator) if operator in ARITHMETIC:
                return self._arithmetic(syntax, scope)
            case Negative(operand=inner):
                operand = self._argument(inner, scope, "number")
                return None if operand is None else Call("-", (operand,))
            case IfExpression():
                return self._if(syntax, scope)
            case RowSyntax():
                return self.row(syntax, scope, is_written=False)
        self.report.error(
            "XS307",
            syntax.span,
            "this cannot be compared here",
            "a side is a variable, a path from one, a literal, or arithmetic or functions of those",
        )
        return None

    def use_parameter(self, syntax: Expression, operand: Operand | None, kind: str) -> None:
        """Note the type of a parameter by its place, if that is what an operand is."""
        if isinstance(operand, Parameter):
            self.patterns.parameters.append(ParameterUse(operand.name, kind, syntax.span))

    def _argument(self, syntax: Expression, scope: Scope, kind: str) -> Operand | None:
        operand = self.operand(syntax, scope)
        self.use_parameter(syntax, operand, kind)
        return operand

    def _parameter(self, name: str, syntax: ParameterRef) -> Operand:
        if name in self.names.blocks:
            self.report.error(
                "XS206",
                syntax.span,
                f"`${name}` is a parameter, and `{name}` a variable of this query",
                f"write `{name}` for the variable, or rename the parameter",
            )
        return Parameter(name)

    def _arithmetic(self, syntax: Binary, scope: Scope) -> Operand | None:
        left, right = self.operand(syntax.left, scope), self.operand(syntax.right, scope)
        for side, own, other in (
            (left, syntax.left, syntax.right),
            (right, syntax.right, syntax.left),
        ):
            self.use_parameter(own, side, kind_in_arithmetic(syntax, other))
        if left is None or right is None:
            return None
        return Call(syntax.operator, (left, right))

    def _if(self, syntax: IfExpression, scope: Scope) -> Operand | None:
        inner = replace(scope, is_optional=True)
        condition = self.disjuncts(syntax.condition, inner)
        then = self._argument(syntax.then, inner, "value")
        otherwise = self._argument(syntax.otherwise, inner, "value")
        if then is None or otherwise is None:
            return None
        return Conditional(condition, then, otherwise)

    def row(self, syntax: RowSyntax, scope: Scope, *, is_written: bool) -> Row | Cell | None:
        """Return a row or a cell of a table."""
        if not scope.has_tables:
            self.report.error(
                "XS901",
                syntax.span,
                "a table cannot be read here",
                "tables are read behind WHERE and HAVING, and in SET",
            )
            return None
        self.tables.append(TableUse(syntax.table, syntax.column, is_written, syntax.span))
        key = self._argument(syntax.key, replace(scope, is_optional=True), "value")
        if key is None:
            return None
        row = Row(syntax.table, key)
        return row if syntax.column is None else Cell(row, syntax.column)

    # -- functions -----------------------------------------------------------------------------

    def _call(self, syntax: FunctionCall, scope: Scope) -> Operand | None:
        name = syntax.name
        if name in STRING_TESTS or name in ("exists", "empty", "string-length"):
            message = f"`{name}` holds or does not, and is no value to compare"
            hint = f"it stands alone, joined to others by AND and OR: `{name}(...) AND x = y`"
            if name == "string-length":
                message = f"`{name}` stands in predicates of steps only"
                hint = f"put it on a step: `a[{name}(...)]`"
            self.report.error("XS305", syntax.span, message, hint)
            return None
        if name not in DERIVING_FUNCTIONS and name not in SEQUENCE_FUNCTIONS:
            unknown_function(syntax, DERIVING_FUNCTIONS | SEQUENCE_FUNCTIONS, self.report)
            return None
        errors = self.report.errors
        check_sequence_arity(syntax, self.report)
        if name in ROW_AGGREGATES or name == "prev":
            return self._aggregate(syntax, scope) if self.report.errors == errors else None
        if name in MEASURES:
            return self._measure(syntax, scope) if self.report.errors == errors else None
        if name in ("words", "shingles"):
            self.report.error(
                "XS305",
                syntax.span,
                f"`{name}` stands for a set only within a measure",
                f"as in `jaccard({name}(...), {name}(...)) >= 0.6`",
            )
            return None
        if name in ("time", "revision"):
            self._check_variable(syntax, scope)
        if name in SEQUENCE_FUNCTIONS:
            return self._of_arguments(syntax, scope) if self.report.errors == errors else None
        return self._derived(syntax, scope)

    def _derived(self, syntax: FunctionCall, scope: Scope) -> Operand | None:
        check_pattern(syntax, self.report)
        found = self._of_arguments(syntax, scope)
        if found is not None and not found.arguments:
            self.report.error(
                "XS302", syntax.span, f"`{syntax.name}()` of what? There is no context node here"
            )
            return None
        return found

    def _of_arguments(self, syntax: FunctionCall, scope: Scope) -> Call | None:
        arguments: list[Operand] = []
        for index, each in enumerate(syntax.arguments):
            argument = self._argument(each, scope, parameter_type(syntax.name, index))
            if argument is None:
                return None
            arguments.append(argument)
        return Call(syntax.name, tuple(arguments))

    def test(self, syntax: FunctionCall, scope: Scope) -> Call | None:
        """Return `exists`, `empty`, `contains` and the like, which are no side of a comparison."""
        errors = self.report.errors
        check_sequence_arity(syntax, self.report)
        check_pattern(syntax, self.report)
        if self.report.errors > errors:
            return None
        inner = replace(scope, is_optional=True) if syntax.name in ("exists", "empty") else scope
        return self._of_arguments(syntax, inner)

    def _check_variable(self, syntax: FunctionCall, scope: Scope) -> None:
        argument = syntax.arguments[0] if syntax.arguments else None
        if argument is None:
            return
        if _is_name(argument) and render_expression(argument) not in self.names.folds:
            return
        self.report.error(
            "XS312",
            argument.span,
            f"`{syntax.name}` is of a variable",
            f"write the variable alone: `{syntax.name}(x)` is of its document",
        )

    # -- sets of words -------------------------------------------------------------------------

    def _measure(self, syntax: FunctionCall, scope: Scope) -> Operand | None:
        if syntax.name == "similar":
            arguments = [self._argument(each, scope, "string") for each in syntax.arguments]
            if any(each is None for each in arguments):
                return None
            sets = tuple(Call("words", (each,)) for each in arguments if each is not None)
            return Call("jaccard", sets)
        found = [self._set(each, scope) for each in syntax.arguments]
        known = tuple(each for each in found if each is not None)
        return Call(syntax.name, known) if len(known) == len(found) else None

    def _set(self, syntax: Expression, scope: Scope) -> Operand | None:
        if not isinstance(syntax, FunctionCall) or syntax.name not in SETS:
            text = render_expression(syntax)
            self.report.error(
                "XS313",
                syntax.span,
                "this is no set",
                f"write `words({text})`, `shingles({text}, 2)` or `tokenize({text}, ',')`",
            )
            return None
        errors = self.report.errors
        check_sequence_arity(syntax, self.report)
        if syntax.name == "shingles" and len(syntax.arguments) == 2:
            self._check_shingles(syntax.arguments[1])
        check_pattern(syntax, self.report)
        return self._of_arguments(syntax, scope) if self.report.errors == errors else None

    def _check_shingles(self, length: Expression) -> None:
        number = length.value if isinstance(length, NumberLiteral) else 0.0
        if number != int(number) or not 1 <= number <= _SHINGLES_MAX:
            self.report.error(
                "XS314",
                length.span,
                f"shingles have 1 to {_SHINGLES_MAX} words",
                "write a whole number, as in `shingles(x/title, 2)`",
            )

    # -- repetitions and rows ------------------------------------------------------------------

    def _aggregate(self, syntax: FunctionCall, scope: Scope) -> Operand | None:
        if not self._may_aggregate(syntax, scope):
            return None
        for argument in syntax.arguments:
            nested = aggregate_below(argument)
            if nested is not None:
                self.report.error(
                    "XS806",
                    nested.span,
                    f"`{nested.name}` stands within `{syntax.name}`",
                    "aggregates are of values, not of aggregates; keep one with FOLD",
                )
                return None
        inner = replace(scope, is_optional=True, keys=None)
        found = self._of_arguments(syntax, inner)
        if found is None or not self._is_of_elements(syntax, found, scope):
            return None
        if syntax.is_distinct:
            found = replace(found, function=f"{syntax.name} distinct")
        if scope.keys is not None:
            self.aggregates.setdefault(found, render_expression(syntax))
        return found

    def _may_aggregate(self, syntax: FunctionCall, scope: Scope) -> bool:
        name = syntax.name
        if name == "prev" and not scope.elements:
            self.report.error(
                "XS804",
                syntax.span,
                "`prev` speaks of the element before, and nothing is repeated here",
                "it stands in the braces before and behind a `+`, in WHILE and in FOLD",
            )
            return False
        if scope.keys is not None or name in AGGREGATES | {"prev"}:
            if scope.keys is None and syntax.is_distinct:
                return self._only_of_rows(syntax, "distinct")
            return True
        return self._only_of_rows(syntax, f"`{name}`")

    def _only_of_rows(self, syntax: FunctionCall, what: str) -> bool:
        self.report.error(
            "XS807",
            syntax.span,
            f"{what} speaks of the rows of WINDOW",
            "it stands in HAVING, SELECT and SET of a statement with WINDOW",
        )
        return False

    def _is_of_elements(self, syntax: FunctionCall, found: Call, scope: Scope) -> bool:
        """Whether what is aggregated is repeated; all is, where rows are spoken of."""
        name = syntax.name
        if scope.keys is not None:
            return True
        aggregated = found.arguments[:1]
        variables = [v for each in aggregated for v in operand_variables(each)]
        blocks = [self.names.blocks.get(each, frozenset()) & scope.blocks for each in variables]
        if scope.elements and name in ("prev", "first", "count", "sum", "avg", "min", "max"):
            if name == "count" and not aggregated:
                return True
            if name != "count" and blocks and all(each <= scope.elements for each in blocks):
                return True
        if name != "prev" and blocks and all(each and each <= scope.repeated for each in blocks):
            return True
        self.report.error("XS805", syntax.span, *not_repeated(name, scope, bool(aggregated)))
        return False


def _is_name(syntax: Expression) -> bool:
    """Whether an expression is a name alone."""
    if not isinstance(syntax, PathExpression) or syntax.is_absolute or syntax.start is not None:
        return False
    return len(syntax.steps) == 1 and not syntax.steps[0].predicates
