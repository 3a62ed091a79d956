"""Conditions of steps, evaluated on one document.

This is XPath's meaning, node by node, on the document's structure: predicates filter one after
the other, positions count what those before left, comparisons hold for some value.  What an
index can decide (`xpath_eval.testindex`) or sets of nodes (`xpath_eval.nodesets`) does not come
here.  The values of an operand at a node, and an opaque condition at a node (and its position, if
it counts), are worked out once for a document, however many conditions ask.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, assert_never

from lxml import etree

from xpath_eval.nodesets import matches_name
from xpath_eval.structure import NodeTree, Structure
from xscl import calculations, functions, solving
from xscl import xpath1numbers as numbers
from xscl.opaque import positions_as_variables
from xscl.path import (
    And,
    Axis,
    Comparison,
    Condition,
    Exists,
    FunctionValue,
    Literal,
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
    XPathFrame,
    XPathValue,
)

__all__ = ["Conditions", "Selected", "SelectedNodes", "needs_values"]

Filters = tuple[Condition, ...]


@lru_cache(maxsize=65_536)
def needs_values(condition: Condition) -> bool:
    """Return whether a condition depends on more than the structure of a document."""
    match condition:
        case Exists(path):
            return any(needs_values(p) for step in path.steps for p in step.predicates)
        case And(conditions) | Or(conditions):
            return any(map(needs_values, conditions))
        case Not(inner):
            return needs_values(inner)
        case Position():
            return False
    return True


class SelectedNodes(NamedTuple):
    """The nodes that an operand selects at a node; None where that is not a matter of structure.

    `leaves` are the same where all of them are elements without children.
    """

    operand: Value
    nodes: Sequence[int] | None
    leaves: Sequence[int] | None


Selected = dict[tuple[int, int], SelectedNodes]
"""By the operand's identity and a node: hashing one costs more than most look-ups save.

The operand is in the answer, which keeps it alive.
"""


class Conditions:
    """Evaluates conditions on one document.

    `selected` may be shared by all documents of one structure.
    """

    __slots__ = (
        "_known_found",
        "_known_opaque",
        "_known_values",
        "_selected",
        "_structure",
        "_tree",
    )

    def __init__(
        self, tree: NodeTree, structure: Structure, selected: Selected | None = None
    ) -> None:
        self._tree = tree
        self._structure = structure
        self._selected = {} if selected is None else selected
        self._known_values: dict[tuple[int, int], Sequence[functions.Atom]] = {}
        self._known_opaque: dict[tuple[str, object, int, int, int], bool] = {}
        self._known_found: dict[tuple[str, object, int], str | float] = {}

    def survivors(self, filters: Filters, candidates: Sequence[int]) -> tuple[int, ...]:
        """Return the candidates that pass all filters, one filter after the other.

        The candidates are what one step selects from one context node, in document order.
        """
        nodes = tuple(candidates)
        for condition in filters:
            size = len(nodes)
            nodes = tuple(n for i, n in enumerate(nodes, 1) if self._holds(condition, n, i, size))
        return nodes

    def select(self, path: Path, context: int) -> list[int]:
        """Return the nodes that a relative path selects from a context node."""
        nodes = [context]
        for step in path.steps:
            nodes = list(dict.fromkeys(n for c in nodes for n in self._step(step, c)))
        return nodes

    def _step(self, step: Step, context: int) -> Iterable[int]:
        for origin in self._origins(step, context):
            yield from self.survivors(step.predicates, list(self._axis(step, origin)))

    def _origins(self, step: Step, context: int) -> Iterable[int]:
        """Yield the context, and where `//` stands before the step all nodes below it."""
        if not step.is_deep:
            return (context,)
        if not self._structure.is_element(context):
            return (context,)
        below: list[int] = list(range(context, self._structure.ends[context]))
        if step.axis is Axis.SELF:
            texts = [t for e in below for t in self._structure.texts_of[e]]
            return (*below, *texts)
        return below

    def _axis(self, step: Step, context: int) -> Iterable[int]:
        structure = self._structure
        if step.axis is Axis.SELF:
            return (context,)
        if not structure.is_element(context):
            return ()
        if step.axis is Axis.ATTRIBUTE:
            attributes = structure.attributes_of[context]
            return (a for a in attributes if matches_name(step.test, structure.attribute_name(a)))
        if step.test.is_text:
            return structure.texts_of[context]
        children = structure.children[context]
        return (c for c in children if matches_name(step.test, structure.names[c]))

    def _holds(self, condition: Condition, node: int, position: int, size: int) -> bool:
        match condition:
            case Exists(path):
                return bool(self.select(path, node))
            case Comparison(left, operator, right):
                assert isinstance(right, Literal)
                return functions.compare_literal(self.values(left, node), operator, right.value)
            case StringTest(function, value, argument, flags):
                assert isinstance(argument, Literal)
                return any(
                    functions.holds(function, each, argument.value, flags)
                    for each in self.values(value, node)
                )
            case Position():
                return _position_holds(condition, position, size)
            case And(conditions):
                return all(self._holds(c, node, position, size) for c in conditions)
            case Or(conditions):
                return any(self._holds(c, node, position, size) for c in conditions)
            case Not(inner):
                return not self._holds(inner, node, position, size)
            case Opaque():
                if not condition.is_positional:
                    position = size = 1
                key = (condition.expression, condition.namespaces, node, position, size)
                if key not in self._known_opaque:
                    holds = self._holds_opaque(condition, node, position, size)
                    self._known_opaque[key] = holds
                return self._known_opaque[key]
        assert_never(condition)

    def values(self, value: Value, node: int) -> Sequence[functions.Atom]:
        """Return the values of an operand at a node."""
        key = (id(value), node)
        known = self._selected.get(key) or self._select_operand(value, node, key)
        if known.leaves is not None:
            # Read again, which costs no more than to look up what was read.
            return _as_asked(value, self._tree.texts(known.leaves))
        found = self._known_values.get(key)
        if found is None:
            if known.nodes is not None:
                found = _as_asked(value, [self.value(n) for n in known.nodes])
            else:
                found = self._values(value, node)
            self._known_values[key] = found
        return found

    def _select_operand(self, value: Value, node: int, key: tuple[int, int]) -> SelectedNodes:
        nodes = leaves = None
        path = _path_of_texts(value)
        if path is not None and not needs_values(Exists(path)):
            nodes = self.select(path, node)
            structure = self._structure
            if all(structure.is_element(n) and not structure.counts[n] for n in nodes):
                leaves = nodes
        known = self._selected[key] = SelectedNodes(value, nodes, leaves)
        return known

    def _values(self, value: Value, node: int) -> Sequence[functions.Atom]:
        match value:
            case PathValue(path):
                return [self.value(n) for n in self.select(path, node)]
            case Literal(constant):
                return (constant,)
            case FunctionValue(solving.BESIDE, (*operands, other)):
                firsts = (next(iter(self.values(each, node)), math.nan) for each in operands)
                return [*firsts, *self.values(other, node)]
            case FunctionValue(calculations.ALL_VALUES, operands):
                return (json.dumps([[*self.values(each, node)] for each in operands]),)
            case FunctionValue(function, arguments):
                return functions.apply(function, [self._values(a, node) for a in arguments])
            case XPathValue(path, expression, namespaces):
                return [self._found(expression, namespaces, n) for n in self.select(path, node)]
            case Parameter() | XPathFrame():
                raise AssertionError(f"{value} has no value: parameters are put in before")
        assert_never(value)

    def value(self, node: int) -> str:
        """Return the string value of a node."""
        return self._tree.value(self._structure, node)

    def _holds_opaque(self, condition: Opaque, node: int, position: int, size: int) -> bool:
        expression = condition.expression
        variables: dict[str, str | float] = {}
        if condition.is_positional:
            expression = positions_as_variables(expression)
            variables = {"position": float(position), "last": float(size)}
        if not self._structure.is_element(node):
            expression = f"{self._place(node, variables)}[{expression}]"
        holds = _compile(f"boolean({expression})", condition.namespaces)
        return bool(holds(self._element(node), **variables))

    def _found(self, expression: str, namespaces: _Namespaces, node: int) -> str | float:
        """Return the number or the text that an expression is at a node."""
        key = (expression, namespaces, node)
        known = self._known_found.get(key)
        if known is None:
            known = self._known_found[key] = self._find(expression, namespaces, node)
        return known

    def _find(self, expression: str, namespaces: _Namespaces, node: int) -> str | float:
        if self._structure.is_element(node):
            value = _compile(expression, namespaces)(self._element(node))
            assert isinstance(value, (str, float))
            return value
        variables: dict[str, str | float] = {}
        found: list[str | float] = []

        def keep(context: object, value: str | float) -> bool:
            found.append(value)
            return True

        path = etree.XPath(
            f"{self._place(node, variables)}[keep({expression})]",
            namespaces=dict(namespaces) or None,
            extensions={(None, "keep"): keep},
        )
        path(self._element(node), **variables)
        return found[0]

    def _element(self, node: int) -> etree._Element:
        """Return the element that is a node, or has it: in libxml2 the context is an element."""
        is_element = self._structure.is_element(node)
        return self._tree.parsed(node if is_element else self._structure.parent(node))

    def _place(self, node: int, variables: dict[str, str | float]) -> str:
        """Return how to go to an attribute or a text from its element, with variables for it."""
        structure = self._structure
        if structure.is_text(node):
            texts = structure.texts_of[structure.parent(node)]
            variables["number"] = texts.index(node) + 1.0
            return _TEXT
        namespace, _, variables["name"] = structure.attribute_name(node).rpartition("}")
        variables["namespace"] = namespace[1:]
        return _ATTRIBUTE


def _path_of_texts(value: Value) -> Path | None:
    """Return the path of an operand that is a matter of the texts of what it selects."""
    match value:
        case PathValue(path):
            return path
        case XPathValue(path, numbers.NUMBER_OF_TEXT | numbers.TEXT_OF_NODE):
            return path
    return None


def _as_asked(value: Value, texts: Sequence[str]) -> Sequence[functions.Atom]:
    """Return the values of such an operand."""
    is_number = isinstance(value, XPathValue) and not value.is_text
    return [*map(numbers.number_of_text, texts)] if is_number else texts


_Namespaces = tuple[tuple[str, str], ...]

_TEXT = "(text()[$number])"
_ATTRIBUTE = "(@*[local-name() = $name and namespace-uri() = $namespace])"
"""One node below an element.  What documents hold is given by variables: it may have quotes."""


@lru_cache(maxsize=4_096)
def _compile(expression: str, namespaces: _Namespaces) -> etree.XPath:
    names = dict(namespaces) or None
    # A smart string would hold on to its document.
    return etree.XPath(expression, namespaces=names, regexp=False, smart_strings=False)


def _position_holds(condition: Position, position: int, size: int) -> bool:
    left: float = size if condition.is_size else position
    number = condition.number
    assert not isinstance(number, Parameter)  # they are put in before
    right = size - number if condition.of_last else number
    return functions.compare((float(left),), condition.operator, (float(right),))
