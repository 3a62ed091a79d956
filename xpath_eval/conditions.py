"""Conditions of steps, evaluated on one document.

This is `xscl.holding` on the document's structure.  What an
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

from xpath_eval.structure import NodeTree, Structure
from xscl import calculations, functions, solving
from xscl import xpath1numbers as numbers
from xscl.excerpttexts import NAMED, ExcerptedNode, excerpt_below, places_in
from xscl.holding import HoldingOf
from xscl.path import (
    And,
    Axis,
    Condition,
    Excerpt,
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
    Value,
    XPathFrame,
    XPathValue,
    matches_name,
)
from xscl.sharedtexts import name_of
from xscl.xpath1nodes import SELF, Namespaces, NodePlace, compile_xpath, holds_at

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


class Conditions(HoldingOf[int]):
    """Evaluates conditions on one document.

    `selected` may be shared by all documents of one structure.  Texts that values have in common
    are `shared`, by name.
    """

    __slots__ = (
        "_known_found",
        "_known_opaque",
        "_known_values",
        "_selected",
        "_structure",
        "_tree",
        "shared",
    )

    def __init__(
        self, tree: NodeTree, structure: Structure, selected: Selected | None = None
    ) -> None:
        self._tree = tree
        self._structure = structure
        self._selected = {} if selected is None else selected
        self.shared: dict[str, str] = {}
        self._known_values: dict[tuple[int, int], Sequence[functions.Atom]] = {}
        self._known_opaque: dict[tuple[str, object, int, int, int], bool] = {}
        self._known_found: dict[tuple[str, object, int], str | float] = {}

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

    def _holds_opaque(self, condition: Opaque, node: int, position: int, size: int) -> bool:
        key = (condition.expression, condition.namespaces, node, position, size)
        if key not in self._known_opaque:
            at = self._element(node), self._place(node)
            self._known_opaque[key] = holds_at(condition, *at, position, size)
        return self._known_opaque[key]

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
            case Excerpt():
                return self._excerpt(value, node)
            case Parameter() | XPathFrame():
                raise AssertionError(f"{value} has no value: parameters are put in before")
        assert_never(value)

    def value(self, node: int) -> str:
        """Return the string value of a node."""
        return self._tree.value(self._structure, node)

    def _found(self, expression: str, namespaces: Namespaces, node: int) -> str | float:
        """Return the number or the text that an expression is at a node."""
        key = (expression, namespaces, node)
        known = self._known_found.get(key)
        if known is None:
            known = self._known_found[key] = self._find(expression, namespaces, node)
        return known

    def _find(self, expression: str, namespaces: Namespaces, node: int) -> str | float:
        if self._structure.is_element(node):
            value = compile_xpath(expression, namespaces)(self._element(node))
            assert isinstance(value, (str, float))
            return value
        place, found = self._place(node), list[str | float]()

        def keep(context: object, value: str | float) -> bool:
            found.append(value)
            return True

        path = etree.XPath(
            f"{place.expression}[keep({expression})]",
            namespaces=dict(namespaces) or None,
            extensions={(None, "keep"): keep},
        )
        path(self._element(node), **place.variables)
        return found[0]

    def _element(self, node: int) -> etree._Element:
        """Return the element that is a node, or has it: in libxml2 the context is an element."""
        is_element = self._structure.is_element(node)
        return self._tree.parsed(node if is_element else self._structure.parent(node))

    def _place(self, node: int) -> NodePlace:
        """Return how to go to a node from its element."""
        structure = self._structure
        if structure.is_element(node):
            return SELF
        if structure.is_text(node):
            return NodePlace.of_text(structure.texts_of[structure.parent(node)].index(node))
        return NodePlace.of_attribute(structure.attribute_name(node))

    def place(self, excerpt: Excerpt, nodes: Iterable[int]) -> str:
        """Find what an excerpt that leads upwards is at nodes.

        Return the text that those have in common which are new, empty where none are.
        """
        new = [node for node in nodes if (id(excerpt), node) not in self._known_values]
        if not new:
            return ""
        text, places = places_in(excerpt, [self._excerpted(node) for node in new])
        name = name_of(text)
        self.shared[name] = text
        for node, place in zip(new, places, strict=True):
            self._known_values[id(excerpt), node] = (f"{place}{NAMED}{name}",)
        return text

    def _excerpt(self, excerpt: Excerpt, node: int) -> Sequence[functions.Atom]:
        if excerpt.leads_upwards:
            self.place(excerpt, (node,))
            return self._known_values[id(excerpt), node]
        return (excerpt_below(excerpt, self._excerpted(node), self.value(node)),)

    def _excerpted(self, node: int) -> ExcerptedNode:
        structure, element = self._structure, self._element(node)
        if structure.is_element(node):
            return ExcerptedNode(element)
        if structure.is_text(node):
            texts = structure.texts_of[structure.parent(node)]
            return ExcerptedNode(element, text=texts.index(node))
        return ExcerptedNode(element, attribute=structure.attribute_name(node))


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
