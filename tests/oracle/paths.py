"""The bindings of a block on a document, by walking the tree as section 3 reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import product

from oracle.tree import Node
from oracle.values import OPERATORS, Atom, apply, compare_with_constant, passes
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
    Step,
    StringTest,
    Value,
)

__all__ = ["Assignment", "bindings", "select"]

Assignment = frozenset[tuple[str, Node]]
"""A node for each of some variables."""

Parameters = Mapping[str, Atom]

_NOTHING: Assignment = frozenset()


def bindings(path: Path, document: Node, parameters: Parameters) -> set[Assignment]:
    """Return the bindings of a block's path on a document (given by its document node)."""
    return {assignment for _, assignment in select(path, document, parameters)}


def select(path: Path, context: Node, parameters: Parameters) -> set[tuple[Node, Assignment]]:
    """Return the nodes that a path selects from a context node, each with what it binds."""
    selected = {(context, _NOTHING)}
    for step in path.steps:
        selected = {
            (node, before | bound)
            for start, before in selected
            for node, bound in _select_step(step, start, parameters)
        }
    return selected


def _select_step(
    step: Step, context: Node, parameters: Parameters
) -> Iterable[tuple[Node, Assignment]]:
    starts = context.descendants_or_self() if step.is_deep else [context]
    for start in starts:
        for node, assignments in _filter(step, start, parameters):
            for assignment in assignments:
                yield node, _bind(step.variable, node, assignment)


def _bind(variable: str | None, node: Node, assignment: Assignment) -> Assignment:
    return assignment if variable is None else assignment | {(variable, node)}


def _filter(step: Step, start: Node, parameters: Parameters) -> list[tuple[Node, set[Assignment]]]:
    """Keep the nodes of the axis that pass the predicates, one predicate after the other."""
    left = [(node, {_NOTHING}) for node in _axis(step, start)]
    for predicate in step.predicates:
        passed = []
        for position, (node, before) in enumerate(left, start=1):
            beside = [other for other, _ in left]
            found = _Context(node, position, beside, parameters).solve(predicate)
            if found:
                passed.append((node, {a | b for a in before for b in found}))
        left = passed
    return left


def _axis(step: Step, start: Node) -> list[Node]:
    """Return the nodes of the axis that pass the node test, in document order."""
    if step.axis is Axis.SELF:
        return [start]
    nodes = start.attributes if step.axis is Axis.ATTRIBUTE else start.children
    return [node for node in nodes if _passes(step.test, node)]


def _passes(test: NodeTest, node: Node) -> bool:
    if test.is_text or node.kind == "text":
        return test.is_text and node.kind == "text"
    return test.name in (ANY, node.name) and test.namespace in (ANY, node.namespace)


class _Context:
    """A node at which a predicate is asked, and its position among those that are left."""

    def __init__(self, node: Node, position: int, left: list[Node], parameters: Parameters) -> None:
        self.node = node
        self.position = position
        self.left = left
        self.size = len(left)
        self.parameters = parameters

    def solve(self, condition: Condition) -> set[Assignment]:
        """Return the ways in which a condition holds: none, or assignments of what it binds."""
        match condition:
            case Exists(path):
                return {bound for _, bound in select(path, self.node, self.parameters)}
            case And(conditions):
                ways = product(*(self.solve(each) for each in conditions))
                return {_NOTHING.union(*way) for way in ways}
            case Comparison(left, operator, right):
                constant = self._constant(right)
                return {
                    bound
                    for value, bound in self._values(left)
                    if compare_with_constant(value, operator, constant)
                }
            case StringTest(function, value, argument, flags):
                text = self._constant(argument)
                return {
                    bound
                    for value, bound in self._values(value)
                    if passes(function, value, text, flags)
                }
        return {_NOTHING} if self._holds(condition) else set()

    def _holds(self, condition: Condition) -> bool:
        """Return whether a condition that binds nothing holds."""
        match condition:
            case Or(conditions):
                return any(self.solve(each) for each in conditions)
            case Not(inner):
                return not self.solve(inner)
            case Position():
                return self._is_at(condition)
            case Opaque():
                return _holds_opaque(condition, self.node, self.left, self.parameters)
        raise AssertionError(condition)

    def _is_at(self, condition: Position) -> bool:
        compare, number = OPERATORS[condition.operator], condition.number
        if isinstance(number, Parameter):
            given = self.parameters[number.name]
            assert isinstance(given, float)
            number = given
        if condition.is_size:
            return bool(compare(self.size, number))
        wanted = self.size - number if condition.of_last else number
        return bool(compare(self.position, wanted))

    def _values(self, value: Value) -> set[tuple[Atom, Assignment]]:
        """Return the values of one side of a comparison, each with what it binds."""
        match value:
            case PathValue(path):
                return {(n.value, bound) for n, bound in select(path, self.node, self.parameters)}
            case FunctionValue(function, arguments):
                return {
                    (result, _NOTHING.union(*(bound for _, bound in chosen)))
                    for chosen in product(*(self._values(each) for each in arguments))
                    for result in apply(function, [[argument] for argument, _ in chosen])
                }
        return {(self._constant(value), _NOTHING)}

    def _constant(self, value: Value) -> Atom:
        match value:
            case Literal(constant):
                return constant
            case Parameter(name):
                return self.parameters[name]
        raise AssertionError(value)


def _holds_opaque(condition: Opaque, node: Node, left: list[Node], parameters: Parameters) -> bool:
    """Ask lxml which of the nodes that are left pass, with the condition as their predicate."""
    predicate, variables = _with_variables(condition.expression, parameters)
    places = [_place(each, variables) for each in left]
    passed = f"({' | '.join(places)})[{predicate}]"
    return bool(
        node.element.xpath(
            f"count({passed} | {places[left.index(node)]}) = count({passed})",
            namespaces=dict(condition.namespaces) or None,
            **variables,
        )
    )


def _place(node: Node, variables: dict[str, object]) -> str:
    """Return a path that selects one node from anywhere; its element is a variable."""
    element = f"place{len(variables)}"
    variables[element] = [node.element]
    if node.kind == "element":
        return f"${element}"
    if node.kind == "attribute":
        variables |= {f"{element}name": node.name, f"{element}uri": node.namespace or ""}
        name = f"local-name() = ${element}name and namespace-uri() = ${element}uri"
        return f"${element}/@*[{name}]"
    assert node.parent is not None
    texts = [child for child in node.parent.children if child.kind == "text"]
    return f"${element}/text()[{texts.index(node) + 1}]"


_IN_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _with_variables(text: str, parameters: Parameters) -> tuple[str, dict[str, object]]:
    """Return a condition with XPath variables for its parameters, whose names may have primes."""
    variables: dict[str, object] = {}

    def variable(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        value = parameters[found[1]]
        if not isinstance(value, str):
            # XPath 1.0 reads the digits, as of a number that is written.
            return f"({Decimal(repr(float(value))):f})"
        name = f"parameter{len(variables)}"
        variables[name] = _IN_NO_XML.sub("\U0010fffd", value)
        return f"${name}"

    pattern = r"'[^']*'|\"[^\"]*\"|\$([^\W\d][\w.\u00b7-]*'*)"
    return re.sub(pattern, variable, text), variables
