"""From the syntax of paths and predicates to the fragment that `xscl.path` defines.

What the fragment does not have becomes an opaque condition, where XPath 1.0 has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xscl.namespaces import Namespaces
from xscl.opaque import in_xpath1, make_opaque, subexpressions
from xscl.path import (
    ANY,
    And,
    Axis,
    Comparison,
    Condition,
    Exists,
    FunctionValue,
    Literal,
    NodeTest,
    Not,
    Opaque,
    Or,
    Parameter,
    Path,
    PathValue,
    Position,
    Span,
    Step,
    StringTest,
    Value,
    counts_positions,
    node_test,
)
from xscl.positions import as_position, is_at, speaks_of_position
from xscl.report import Report
from xscl.signatures import (
    NODE_FUNCTIONS,
    STRING_TESTS,
    VALUE_FUNCTIONS,
    check_arity,
    check_pattern,
    parameter_type,
)
from xscl.syntax import (
    TURNED,
    Binary,
    Expression,
    FunctionCall,
    Junction,
    NumberLiteral,
    ParameterRef,
    PathExpression,
    StepSyntax,
    StringLiteral,
    TestSyntax,
)
from xscl.xpath1 import check_call, check_types, is_numeric
from xscl.xpath1arithmetic import calculated_comparison, written_comparison
from xscl.xpath1frames import framed, held_against_data
from xscl.xpath1reads import excerpt_read_by_xpath

__all__ = ["Binding", "ParameterUse", "PatternBuilder"]

_BEYOND_XPATH1 = frozenset({"lower-case", "upper-case", "ends-with", "matches"}) | {
    "replace",
    "tokenize",
    "host",
}
_AXES = {"child": Axis.CHILD, "attribute": Axis.ATTRIBUTE, "self": Axis.SELF}
_SELF = node_test(ANY, ANY)


class OutsideFragmentError(Exception):
    """The fragment has no value for this syntax; `span` says which part."""

    def __init__(self, span: Span, reason: str) -> None:
        super().__init__(reason)
        self.span = span
        self.reason = reason


@dataclass(slots=True)
class Binding:
    """A variable and where the author bound it."""

    name: str
    span: Span
    block: int


@dataclass(slots=True)
class ParameterUse:
    """A parameter and its type by its place: `string`, `number`, `duration`, `value` or `any`."""

    name: str
    type: str
    span: Span


class PatternBuilder:
    """Builds the paths of one query, and gathers what they bind and which parameters they use."""

    def __init__(self, namespaces: Namespaces, report: Report) -> None:
        self.namespaces = namespaces
        self.report = report
        self.bindings: list[Binding] = []
        self.parameters: list[ParameterUse] = []
        self.block = 0
        self._says_xpath1 = False

    # -- paths ---------------------------------------------------------------------------------

    def main_path(self, steps: list[StepSyntax]) -> Path:
        """Return a block's path; what cannot stand on it is an error."""
        try:
            return self.path(steps, is_positive=True, at_document=True)
        except OutsideFragmentError as outside:
            self.report.error(
                "XS303",
                outside.span,
                f"{outside.reason} cannot stand on a block's path",
                "the path of a block has `/`, `//`, `@` and `.`; other XPath goes into predicates",
            )
            return Path(())

    def path(self, steps: list[StepSyntax], is_positive: bool, at_document: bool = False) -> Path:
        """Return the steps with plain self steps merged into the step before them."""
        built: list[Step] = []
        is_deep = False
        for syntax in steps:
            if syntax.axis == "descendant-or-self" and _is_any_node(syntax):
                is_deep = True
                continue
            step = self._step(syntax, is_positive)
            if is_deep:
                step = replace(step, is_deep=True)
                is_deep = False
            if step.axis is not Axis.SELF or step.is_deep:
                built.append(step)
            else:
                self._append_self(built, step, syntax, at_document)
        if is_deep:
            raise OutsideFragmentError(steps[-1].span, "`descendant-or-self::node()`")
        return Path(tuple(built))

    def _append_self(
        self, built: list[Step], step: Step, syntax: StepSyntax, at_document: bool
    ) -> None:
        if step.variable is None and not step.predicates:
            return
        if not built and at_document:
            raise OutsideFragmentError(syntax.span, "the document node `.`")
        if not built or not _can_merge(built[-1], step):
            built.append(step)
            return
        last = built[-1]
        built[-1] = replace(
            last,
            variable=last.variable or step.variable,
            predicates=last.predicates + step.predicates,
        )

    def _step(self, syntax: StepSyntax, is_positive: bool) -> Step:
        axis, is_deep = syntax.axis, syntax.is_deep
        if axis == "descendant":
            axis, is_deep = "child", True
        test = self._node_test(axis, syntax)
        variable = syntax.variable
        if variable is not None:
            variable = self._bind(variable, syntax, is_positive)
        predicates: tuple[Condition, ...] = ()
        if syntax.predicates:
            built = [self.predicate(each, is_positive) for each in syntax.predicates]
            predicates = tuple(each for each in built if each is not None)
            if syntax.axis == "descendant" and any(map(counts_positions, predicates)):
                raise OutsideFragmentError(syntax.span, "`descendant::` with a position")
        return Step(_AXES[axis], test, is_deep, variable, predicates, syntax.span)

    def _bind(self, name: str, syntax: StepSyntax, is_positive: bool) -> str | None:
        span = syntax.variable_span or syntax.span
        self.bindings.append(Binding(name, span, self.block))
        if not is_positive:
            self.report.error(
                "XS203",
                span,
                f"`{name}` is bound where the pattern need not hold",
                "bind variables outside of `or`, `not` and conditions beyond the fragment",
            )
            return None
        return name

    def _node_test(self, axis: str, syntax: StepSyntax) -> NodeTest:
        test = syntax.test
        if axis == "self" and test.kind == "node":
            return _SELF
        if axis not in ("child", "attribute") or (axis == "attribute" and test.kind != "name"):
            raise OutsideFragmentError(syntax.span, _step_name(syntax))
        if test.kind == "text":
            return node_test("", None, True)
        if test.kind != "name":
            raise OutsideFragmentError(test.span, f"`{test.kind}()`")
        if test.name[-1] == "'":
            self._primed(test)
        if test.prefix is None:
            if test.name == "*":
                return _SELF
            return node_test(test.name, self.namespaces.default if axis == "child" else None)
        if test.prefix == "*":
            return node_test(test.name, ANY)
        return node_test(test.name, self.namespaces.uri(test.prefix, test.span))

    def _primed(self, test: TestSyntax) -> None:
        plain = test.name.rstrip("'")
        self.report.error(
            "XS208",
            test.span,
            f"`{test.name}` is not an element name: only variables end in primes",
            f"bind it with an arrow: `{plain}->{test.name}`",
        )

    # -- predicates ----------------------------------------------------------------------------

    def predicate(self, syntax: Expression, is_positive: bool) -> Condition | None:
        """Return the condition between two brackets; `None` after an error in it."""
        if not is_numeric(syntax):
            return self._condition(syntax, is_positive)
        position = self._position(syntax)
        if position is not None:
            return position
        return self._opaque(is_at(syntax))

    def _position(self, syntax: Expression) -> Position | None:
        found = as_position(syntax)
        if found is not None and isinstance(found.number, Parameter):
            self.parameters += [
                ParameterUse(each.name, "number", each.span)
                for each in subexpressions(syntax)
                if isinstance(each, ParameterRef)
            ]
        return found

    def _condition(self, syntax: Expression, is_positive: bool) -> Condition | None:
        if isinstance(syntax, Junction):
            return self._junction(syntax, is_positive)
        if isinstance(syntax, FunctionCall) and syntax.name == "not":
            check_arity(syntax, self.report)
            inner = self._condition(syntax.arguments[0], False) if syntax.arguments else None
            return None if inner is None else Not(inner)
        if isinstance(syntax, Binary) and syntax.operator in TURNED:
            position = self._position(syntax)
            if position is not None:
                return position
        bound, used = len(self.bindings), len(self.parameters)
        try:
            leaf = self._leaf(syntax, is_positive)
            if self._says_xpath1 and not _is_of_xpath1(leaf):
                raise OutsideFragmentError(syntax.span, "this condition")
            return leaf
        except OutsideFragmentError:
            del self.bindings[bound:], self.parameters[used:]
            return self._opaque(syntax)

    def _junction(self, syntax: Junction, is_positive: bool) -> Condition | None:
        is_and = syntax.word == "and"
        terms = [self._condition(term, is_positive and is_and) for term in syntax.terms]
        known = tuple(term for term in terms if term is not None)
        if not known:
            return None
        flat: list[Condition] = []
        for term in known:
            if isinstance(term, And if is_and else Or):
                flat += term.conditions
            else:
                flat.append(term)
        return And(tuple(flat)) if is_and else Or(tuple(flat))

    def _leaf(self, syntax: Expression, is_positive: bool) -> Condition:
        if isinstance(syntax, PathExpression):
            return Exists(self._relative(syntax, is_positive))
        if isinstance(syntax, Binary) and syntax.operator in TURNED:
            return self._comparison(syntax, is_positive)
        if isinstance(syntax, FunctionCall) and syntax.name in STRING_TESTS:
            return self._string_test(syntax, is_positive)
        raise OutsideFragmentError(syntax.span, "this expression")

    def _relative(self, syntax: PathExpression, is_positive: bool) -> Path:
        if syntax.is_absolute or syntax.start is not None:
            raise OutsideFragmentError(syntax.span, "this path")
        return self.path(syntax.steps, is_positive)

    def _comparison(self, syntax: Binary, is_positive: bool) -> Comparison:
        allowed = self.allowed_functions(syntax)
        left, right = syntax.left, syntax.right
        operator = syntax.operator
        if _is_constant(left):
            left, right, operator = right, left, TURNED[operator]
        if not _is_constant(right) or _is_constant(left):
            raise OutsideFragmentError(syntax.span, "this comparison")
        kind = "value" if operator in ("=", "!=") else "number"
        return Comparison(
            self._value(left, is_positive, allowed),
            operator,
            self._value(right, is_positive, allowed, kind),
        )

    def _string_test(self, syntax: FunctionCall, is_positive: bool) -> StringTest:
        check_arity(syntax, self.report)
        flagged = syntax.name == "matches" and len(syntax.arguments) == 3
        if len(syntax.arguments) != 2 and not flagged:
            raise OutsideFragmentError(syntax.span, "this call")
        subject, argument = syntax.arguments[:2]
        flags = syntax.arguments[2] if flagged else None
        if not isinstance(argument, (StringLiteral, ParameterRef)) or _is_constant(subject):
            raise OutsideFragmentError(syntax.span, f"`{syntax.name}` of these arguments")
        if flags is not None and not isinstance(flags, StringLiteral):
            raise OutsideFragmentError(flags.span, "flags that are no string")
        check_pattern(syntax, self.report)
        value = self._value(subject, is_positive, self.allowed_functions(syntax))
        wanted = self._value(argument, is_positive, VALUE_FUNCTIONS, "string")
        assert isinstance(wanted, (Literal, Parameter))
        return StringTest(syntax.name, value, wanted, flags.value if flags else "")

    def _value(
        self, syntax: Expression, is_positive: bool, allowed: frozenset[str], kind: str = "value"
    ) -> Value:
        match syntax:
            case PathExpression():
                return PathValue(self._relative(syntax, is_positive))
            case StringLiteral(value=text):
                return Literal(text)
            case NumberLiteral(value=number):
                return Literal(number)
            case ParameterRef(name=name):
                self.parameters.append(ParameterUse(name, kind, syntax.span))
                return Parameter(name)
            case FunctionCall(name=name) if name in allowed:
                return self._call(syntax, is_positive, allowed)
        raise OutsideFragmentError(syntax.span, "this value")

    def _call(
        self, syntax: FunctionCall, is_positive: bool, allowed: frozenset[str]
    ) -> FunctionValue:
        check_arity(syntax, self.report)
        check_pattern(syntax, self.report)
        arguments = tuple(
            self._value(each, is_positive, allowed, parameter_type(syntax.name, index))
            for index, each in enumerate(syntax.arguments)
        )
        return FunctionValue(syntax.name, arguments or (PathValue(Path(())),))

    def allowed_functions(self, syntax: Expression) -> frozenset[str]:
        """Return the functions that the fragment has here.

        Functions of XPath 1.0 that section 3 does not list make a condition opaque; beside one
        that only XPath 2.0 has they are those of section 5.
        """
        for each in subexpressions(syntax):
            if isinstance(each, FunctionCall) and each.name in _BEYOND_XPATH1:
                return VALUE_FUNCTIONS
        return NODE_FUNCTIONS

    # -- beyond the fragment -------------------------------------------------------------------

    def _opaque(self, syntax: Expression) -> Opaque | None:
        errors = self.report.errors
        for each in subexpressions(syntax):
            if isinstance(each, StepSyntax):
                self._check_opaque_step(each)
            elif isinstance(each, FunctionCall) and self.report.errors == errors:
                check_call(each, self.report)
            elif isinstance(each, ParameterRef):
                self.parameters.append(ParameterUse(each.name, "value", each.span))
        if self.report.errors == errors:
            for each in subexpressions(syntax):
                check_types(each, self.report)
        if self.report.errors > errors:
            return None
        reads = excerpt_read_by_xpath(syntax, self.namespaces)
        opaque = replace(make_opaque(syntax, self.namespaces), reads=reads)

        def text_of(each: Expression) -> tuple[str, tuple[tuple[str, str], ...]]:
            return in_xpath1(each, self.namespaces)

        if speaks_of_position(syntax):
            calculated = calculated_comparison(syntax, text_of, self._data_free_path)
            return replace(opaque, is_positional=True, calculated=calculated)
        compared = held_against_data(syntax, text_of, self._data_free_path)
        calculated = frame = None
        if compared is None:
            compare = calculated_comparison if opaque.parameters else written_comparison
            calculated = compare(syntax, text_of, self._data_free_path)
        if opaque.parameters and calculated is None:
            frame = framed(syntax, text_of, self._data_free_path)
        return replace(opaque, compared=compared, calculated=calculated, frame=frame)

    def _data_free_path(self, syntax: PathExpression) -> Path | None:
        """Return a path of an opaque condition as one of the fragment, if it is one.

        Its conditions say what they do in XPath 1.0.
        """
        before = len(self.bindings), len(self.parameters)
        outside, self._says_xpath1 = self._says_xpath1, True
        try:
            path = self._relative(syntax, False)
        except OutsideFragmentError:
            path = None
        self._says_xpath1 = outside
        has_parameters = len(self.parameters) > before[1]
        del self.bindings[before[0] :], self.parameters[before[1] :]
        return None if has_parameters else path

    def _check_opaque_step(self, step: StepSyntax) -> None:
        if step.variable is not None:
            self._bind(step.variable, step, is_positive=False)
        if step.test.kind == "name" and step.test.name[-1] == "'":
            self._primed(step.test)


def _is_constant(syntax: Expression) -> bool:
    return isinstance(syntax, (StringLiteral, NumberLiteral, ParameterRef))


def _is_of_xpath1(leaf: Condition) -> bool:
    """Whether a condition of the fragment says what it does in XPath 1.0.

    There other texts are numbers, `!=` holds of what is none, and functions take the first node.
    """
    match leaf:
        case Exists() | Comparison(PathValue(), "=" | "!=", Literal(str())):
            return True
    return False


def _is_any_node(syntax: StepSyntax) -> bool:
    """Whether a step says no more than its axis."""
    return syntax.test.kind == "node" and syntax.variable is None and not syntax.predicates


def _can_merge(last: Step, step: Step) -> bool:
    if last.variable is not None and step.variable is not None:
        return False
    return not any(map(counts_positions, step.predicates))


def _step_name(syntax: StepSyntax) -> str:
    return "`..`" if syntax.axis == "parent" else f"the axis `{syntax.axis}`"
