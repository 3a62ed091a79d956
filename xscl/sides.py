"""Sides of comparisons: from syntax to operands, with every rule about what may stand where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xscl.canonical import render_expression
from xscl.comparison import (
    Call,
    Cell,
    Conditional,
    Disjunct,
    Operand,
    PathFrom,
    Row,
    VariableValue,
    operand_variables,
)
from xscl.conditions import OutsideFragmentError, ParameterUse, PatternBuilder
from xscl.kinds import kind_in_arithmetic
from xscl.path import ANY, Axis, Literal, NodeTest, Parameter, Path, Step
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
    StepSyntax,
    StringLiteral,
)
from xscl.table import TableUse

__all__ = ["SideBuilder"]

_ARITHMETIC = frozenset({"+", "-", "*", "div", "mod"})
_SHINGLES_MAX = 5


class SideBuilder:
    """Builds operands over the variables of a query, and gathers fresh variables and table uses."""

    def __init__(self, patterns: PatternBuilder, names: Names) -> None:
        self.patterns = patterns
        self.report = patterns.report
        self.names = names
        self.fresh: list[tuple[str, str, str, frozenset[int], Path]] = []
        self.tables: list[TableUse] = []
        self.labels: dict[str, int] = {}

    def disjuncts(self, predicate: Expression | None, scope: Scope) -> tuple[Disjunct, ...]:
        """Return a predicate in disjunctive form."""
        raise NotImplementedError

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
                return self._path(syntax, scope)
            case Binary(operator=operator) if operator in _ARITHMETIC:
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
            hint = f"put it on a step: `a[{name}(...)]`"
            if name != "string-length":
                hint = f"it stands alone, joined to others by AND and OR: `{name}(...) AND x = y`"
            self.report.error(
                "XS305", syntax.span, f"`{name}` cannot stand in an operator's predicate", hint
            )
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
            f"write the variable alone: `{syntax.name}(x)`; its document has the time",
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
            nested = _aggregate_below(argument)
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
        return replace(found, function=f"{syntax.name} distinct") if syntax.is_distinct else found

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
        self.report.error("XS805", syntax.span, *_not_repeated(name, scope, bool(aggregated)))
        return False

    # -- paths ---------------------------------------------------------------------------------

    def _path(self, syntax: PathExpression, scope: Scope) -> Operand | None:
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
        blocks = self.names.find(test.name, test.span, scope)
        if not blocks or not self._is_grouped(syntax, scope):
            return None
        return self._value(syntax, test.name, rest, blocks, scope)

    def _is_grouped(self, syntax: PathExpression, scope: Scope) -> bool:
        """Whether a path may stand where rows are spoken of: one of their keys may."""
        if scope.keys is None or render_expression(syntax) in scope.keys:
            return True
        self.report.error(
            "XS902",
            syntax.span,
            "a row is made of many matches, and this is of one",
            f"group by it, or write `max({render_expression(syntax)})`, `collect(...)`, ...",
        )
        return False

    def _no_variable(self, syntax: PathExpression) -> Operand | None:
        self.report.error(
            "XS308",
            syntax.span,
            "this path begins with no variable",
            "bind a step in a block, `S//book->x1`, and write `x1/author`",
        )
        return None

    def _value(
        self,
        syntax: PathExpression,
        base: str,
        rest: list[StepSyntax],
        blocks: frozenset[int],
        scope: Scope,
    ) -> Operand | None:
        """Return the variable, a path from it, or the fresh variable for that."""
        steps = self._steps(syntax.steps[0], rest)
        if steps is None:
            return None
        if not steps:
            return VariableValue(base)
        if base in self.names.folds:
            self.report.error(
                "XS315", syntax.span, f"`{base}` is a value and no node: no path leads from it"
            )
            return None
        if scope.is_optional:
            return PathFrom(base, Path(tuple(steps)))
        label = self._label(render_expression(syntax))
        name = label if "/" in label else f"{label}/."  # no author's variable has a slash
        steps[-1] = replace(steps[-1], variable=name)
        self.names.blocks[name] = blocks
        self.fresh.append((base, name, label, blocks, Path(tuple(steps))))
        return VariableValue(name)

    def _steps(self, first: StepSyntax, rest: Sequence[StepSyntax]) -> list[Step] | None:
        bound = len(self.patterns.bindings)
        try:
            steps = list(self.patterns.path([*rest], is_positive=False).steps)
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
        return steps

    def _label(self, text: str) -> str:
        count = self.labels[text] = self.labels.get(text, 0) + 1
        return text if count == 1 else f"{text}#{count}"


def _is_name(syntax: Expression) -> bool:
    """Whether an expression is a name alone."""
    if not isinstance(syntax, PathExpression) or syntax.is_absolute or syntax.start is not None:
        return False
    return len(syntax.steps) == 1 and not syntax.steps[0].predicates


def _aggregate_below(syntax: Expression) -> FunctionCall | None:
    """Return an aggregate that an expression is made of, if there is one."""
    match syntax:
        case FunctionCall(name=name) if name in ROW_AGGREGATES or name == "prev":
            return syntax
        case FunctionCall(arguments=below):
            pass
        case Binary(left=left, right=right):
            below = [left, right]
        case Negative(operand=operand):
            below = [operand]
        case IfExpression(then=then, otherwise=otherwise):
            below = [then, otherwise]
        case _:
            return None
    found = (_aggregate_below(each) for each in below)
    return next((each for each in found if each is not None), None)


def _not_repeated(name: str, scope: Scope, has_argument: bool) -> tuple[str, str]:
    if name == "last" and scope.elements:
        return "a run has no last element before it ends", "the one before is `prev(...)`"
    if name == "count" and scope.elements and has_argument:
        return "`count` of a run that goes on has nothing between its brackets", "write `count()`"
    if not has_argument:
        return "`count()` of what?", "write `count(x)`, with `x` bound in a block with a `+`"
    return (
        f"`{name}` is of what a repetition has taken, and this is not repeated",
        "a `+` stands behind the block that binds it",
    )
