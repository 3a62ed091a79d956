"""Expressions of a constructor that are a variable, and names of nodes below it.

Most that stand between braces are: `a`, `a/title`, `b//author/text()`, `a/@id`, `start()`.  They
are looked up in the documents as they are, without the nodes and contexts of an XPath 2.0 engine,
which are a hundred times the work.  What is found is the same, node by node: where it might not be,
as below elements of one name within one another, nothing is said, and the engine is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from xscl.lexer import NAME
from xscl.meter import STEP_BYTES, Meter
from xscl.nodes import AttributeNode, Node, TextNode

__all__ = ["PlainPath", "own_texts", "plain_path"]

_STEP = re.compile(rf"(//?)(?:(@?)({NAME})|(\*)|(text)\(\))(?=/|$)")
_VARIABLE = re.compile(rf"\$({NAME})(?=/|$)")

_Elements = Sequence[Any]


class _NodeStep(NamedTuple):
    """A step to nodes of a `kind`, `element`, `attribute` or `text`, below or `is_deep` below."""

    kind: str
    name: str
    is_deep: bool


class PlainPath(NamedTuple):
    """A variable, by its XPath name, and the steps below its nodes."""

    variable: str
    steps: tuple[_NodeStep, ...]

    def below(self, nodes: Iterable[Node], meter: Meter) -> list[Node] | None:
        """Return what the steps find below nodes, in document order; None where it cannot be said.

        The nodes are of as many documents, in their order.
        """
        found: list[Node] = []
        for node in nodes:
            # An attribute and a text have nothing below them.
            below: list[Node] = [] if isinstance(node, (AttributeNode, TextNode)) else [node]
            may_nest = False
            for step in self.steps:
                if may_nest and _are_nested(below, meter):
                    return None
                below = list(_FOUND[step.kind](below, step, meter))
                may_nest = step.is_deep
            found += below
        return found


def plain_path(expression: str) -> PlainPath | None:
    """Return an XPath 2.0 expression as such a path; None where it is none.

    >>> [step.kind for step in plain_path("$a//author/text()").steps]
    ['element', 'text']
    >>> plain_path("count($a/author)"), plain_path("$a/text()/b"), plain_path("$a/x:b")
    (None, None, None)
    """
    variable = _VARIABLE.match(expression)
    if variable is None:
        return None
    steps: list[_NodeStep] = []
    position = variable.end()
    while position < len(expression):
        found = _STEP.match(expression, position)
        if found is None or (steps and steps[-1].kind != "element"):
            return None
        slashes, at, name, star, text = found.groups()
        kind = "text" if text else "attribute" if at else "element"
        steps.append(_NodeStep(kind, star or name or "", slashes == "//"))
        position = found.end()
    return PlainPath(variable[1], tuple(steps))


def _are_nested(elements: _Elements, meter: Meter) -> bool:
    """Whether one of some elements, in document order, is within another."""
    for above, below in pairwise(elements):
        for each in below.iterancestors():
            meter.spend(STEP_BYTES)
            if each is above:
                return True
    return False


def _elements(above: _Elements, step: _NodeStep, meter: Meter) -> Iterator[Any]:
    name = step.name
    for element in above:
        if not step.is_deep:
            meter.spend(STEP_BYTES * len(element))
            yield from element if name == "*" else element.iterchildren(name)
            continue
        for each in element.iterdescendants("*"):
            meter.spend(STEP_BYTES)
            if name in ("*", each.tag):
                yield each


def _attributes(above: _Elements, step: _NodeStep, meter: Meter) -> Iterator[AttributeNode]:
    for element in above:
        for each in element.iter("*") if step.is_deep else (element,):
            meter.spend(STEP_BYTES)
            value = each.get(step.name)
            if value is not None:
                yield AttributeNode(each, step.name, value)


def _texts(above: _Elements, step: _NodeStep, meter: Meter) -> Iterator[TextNode]:
    for element in above:
        texts = element.itertext() if step.is_deep else own_texts(element)
        for index, text in enumerate(texts):
            meter.spend(STEP_BYTES)
            yield TextNode(element, index, text)


def own_texts(element: Any) -> Iterator[str]:
    """Yield the texts of an element that are in no element within it."""
    if element.text:
        yield element.text
    for each in element:
        if each.tail:
            yield each.tail


_FOUND: Mapping[str, Callable[[_Elements, _NodeStep, Meter], Iterator[Any]]] = {
    "element": _elements,
    "attribute": _attributes,
    "text": _texts,
}
