"""Conditions that are asked of excerpts of a node's tree, with what parameters are given.

What is asked is a text, as the excerpt is: the condition as JSON, so that it has one form wherever
it is kept.  Those of the fragment are evaluated here, XPath 1.0 by libxml2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

from lxml import etree

from xscl import functions
from xscl.excerpts import excerpt_read_by
from xscl.excerpttexts import NAMED, OF_ATTRIBUTE, OF_PLACE, OF_TEXT
from xscl.holding import HoldingOf
from xscl.nodes import attributes_of, text_within, texts_of
from xscl.path import (
    ANY,
    And,
    Axis,
    Comparison,
    Condition,
    Excerpt,
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
    condition_parameters,
    matches_name,
)
from xscl.sharedtexts import shared_text
from xscl.substitution import with_values
from xscl.xpath1nodes import SELF, NodePlace, holds_at
from xscl.xpath1sets import TreeSets

__all__ = [
    "Excerpted",
    "excerpted",
    "is_asked_of_excerpt",
    "passes_excerpt",
    "read_excerpted",
    "selected_in_excerpt",
]


class Excerpted(NamedTuple):
    """What is asked of an excerpt: whether its node is among those that a step selects."""

    step: Step

    @property
    def leads_upwards(self) -> bool:
        """Whether the excerpt has more than what is below its node."""
        read = excerpt_read_by(self.step)
        return read is not None and read.leads_upwards

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters."""
        return condition_parameters(Exists(Path((self.step,))))

    def text(self, values: Mapping[str, Any]) -> str:
        """Return it with the values of parameters, as JSON."""
        return json.dumps(_written(with_values(self.step, values)))

    def written(self) -> str:
        """Return it as it is, as JSON."""
        return json.dumps(_written(self.step))


def excerpted(condition: Condition) -> tuple[Excerpt, Excerpted] | None:
    """Return a condition as what is asked of an excerpt; None if it is not one of that alone.

    It binds nothing, and positions of its node do not count.
    """
    return selected_in_excerpt(Step(Axis.SELF, NodeTest(ANY, ANY), predicates=(condition,)))


def selected_in_excerpt(step: Step) -> tuple[Excerpt, Excerpted] | None:
    """Return that a node passes the predicates of its step as what is asked of an excerpt.

    None if it is not one of that alone.  They bind nothing.
    """
    excerpt = excerpt_read_by(step)
    asked = Step(step.axis, step.test, predicates=step.predicates)
    return None if excerpt is None else (excerpt, Excerpted(asked))


_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (And, Axis, Comparison, Exists, FunctionValue, Literal, NodeTest, Not, Opaque, Or)
} | {kind.__name__: kind for kind in (Parameter, Path, PathValue, Position, Step, StringTest)}


def _written(value: Any) -> Any:
    match value:
        case tuple():
            return [*map(_written, value)]
        case Axis():
            return {"Axis": [value.value]}
    if not is_dataclass(value):
        return value
    own = [_written(getattr(value, each.name)) for each in fields(value) if each.compare]
    return {type(value).__name__: own}


def _read(value: Any) -> Any:
    match value:
        case dict():
            ((kind, own),) = value.items()
            return _KINDS[kind](*map(_read, own))
        case list():
            return tuple(map(_read, value))
    return value


def read_excerpted(written: str) -> Excerpted:
    """Return what is asked of an excerpt, as it was written."""
    return Excerpted(_step(written))


def is_asked_of_excerpt(wanted: str) -> bool:
    """Return whether what is asked, as a text, is asked of an excerpt."""
    return wanted.startswith("{")


def passes_excerpt(text: str, wanted: str) -> bool:
    """Return whether the node of an excerpt is among those of a step, both as texts."""
    step = _step(wanted)
    if text.startswith(OF_TEXT):
        return bool(_EXCERPTS.survivors(step.predicates, (_text(text.removeprefix(OF_TEXT)),)))
    if text.startswith(OF_PLACE):
        place, name = text.split(NAMED)
        tree = _shared_tree(name)
    else:
        start = text.index("<")
        place, tree = text[:start], _tree(text[start:])
    if step.axis is Axis.SELF:
        return bool(_EXCERPTS.survivors(step.predicates, (tree.at(place),)))
    return tree.is_selected(place, wanted, step)


@lru_cache(maxsize=4_096)
def _step(wanted: str) -> Step:
    found: Step = _read(json.loads(wanted))
    return found


class _ExcerptNode:
    """A node of an excerpt; XPath 1.0 finds it at a place of an element."""

    __slots__ = (
        "_selected",
        "_text",
        "asked",
        "attributes",
        "children",
        "element",
        "name",
        "place",
        "texts",
    )

    def __init__(
        self,
        element: etree._Element,
        place: NodePlace,
        name: str,
        text: str | None = None,
        asked: _OftenAsked | None = None,
    ) -> None:
        self.element, self.place, self.name, self._text = element, place, name, text
        self.asked = asked
        self.children: list[_ExcerptNode] = []
        self.attributes: list[_ExcerptNode] = []
        self.texts: list[_ExcerptNode] = []
        self._selected: dict[tuple[Axis, NodeTest], list[_ExcerptNode]] = {}

    @property
    def text(self) -> str:
        """The string value."""
        if self._text is None:
            self._text = text_within(self.element)
        return self._text

    def below(self) -> Iterator[_ExcerptNode]:
        """Yield the node, and all elements below it in the order of the document."""
        yield self
        for child in self.children:
            yield from child.below()

    def selected(self, axis: Axis, test: NodeTest) -> list[_ExcerptNode]:
        """Return what an axis and a node test select from the node."""
        if test.is_text:
            return self.texts
        found = self._selected.get((axis, test))
        if found is None:
            own = self.attributes if axis is Axis.ATTRIBUTE else self.children
            found = [each for each in own if matches_name(test, each.name)]
            self._selected[axis, test] = found
        return found


class _OftenAsked:
    """Conditions of XPath 1.0 at elements of one tree; often asked, they are found for all."""

    def __init__(self, root: etree._Element) -> None:
        self._root = root
        self._counts: dict[str, int] = {}
        self._sets: TreeSets | None = None

    def holds(self, condition: Opaque, element: etree._Element) -> bool | None:
        """Return whether a condition holds at an element, None where it must be asked there."""
        expression = condition.expression
        count = self._counts.get(expression, 0)
        if count < _ONE_BY_ONE:
            if count or len(self._counts) < _COUNTED_MAX:
                self._counts[expression] = count + 1
            return None
        if self._sets is None:
            self._sets = TreeSets(self._root)
        return self._sets.has(expression, condition.namespaces, element)


_ONE_BY_ONE = 16
"""At so many elements a condition is asked by itself: of few that takes less time."""

_COUNTED_MAX = 65_536
"""Of so many conditions it is counted how often they are asked of one tree."""


def _node(element: etree._Element, asked: _OftenAsked | None = None) -> _ExcerptNode:
    found = _ExcerptNode(element, SELF, str(element.tag), asked=asked)
    for name, value in ((each.name, each.value) for each in attributes_of(element)):
        found.attributes.append(_ExcerptNode(element, NodePlace.of_attribute(name), name, value))
    for each in texts_of(element):
        found.texts.append(_ExcerptNode(element, NodePlace.of_text(each.index), "", each.value))
    found.children += map(_node, element, repeat(asked))
    return found


def _text(text: str) -> _ExcerptNode:
    element = etree.Element("anywhere")
    element.text = text
    return _node(element).texts[0]


class _Tree:
    """The tree of an excerpt, and which nodes steps have selected from some of its elements."""

    def __init__(self, root: _ExcerptNode) -> None:
        self._root = root
        self._selected: dict[tuple[str | None, str], frozenset[_ExcerptNode]] = {}
        self._kept = 0

    def at(self, place: str) -> _ExcerptNode:
        """Return the node at a place."""
        above, kind, number = _apart(place)
        if not number:
            return self._root
        own = self.at(above)
        siblings = {OF_ATTRIBUTE: own.attributes, OF_TEXT: own.texts}.get(kind, own.children)
        return siblings[int(number)]

    def is_selected(self, place: str, wanted: str, step: Step) -> bool:
        """Return whether the node at a place is among those that a step selects from its parent."""
        above, _, number = _apart(place)
        key = (above if number else None, wanted)
        found = self._selected.get(key)
        if found is None:
            candidates = self.at(above).selected(step.axis, step.test) if number else [self._root]
            found = frozenset(_EXCERPTS.survivors(step.predicates, candidates))
            self._kept += 1 + len(found)
            if self._kept > _SELECTED_MAX:
                self._selected.clear()
                self._kept = 1 + len(found)
            self._selected[key] = found
        return self.at(place) in found


_SELECTED_MAX = 1 << 17
"""So many answers of one tree, and nodes in them, are kept: those of all who ask of its nodes."""


def _apart(place: str) -> tuple[str, str, str]:
    """Return the place of a parent, and of what kind and of which number a node below it is.

    >>> _apart("/0.2"), _apart("/0@1"), _apart("/")
    (('/0', '.', '2'), ('/0', '@', '1'), ('', '/', ''))
    """
    for kind in (OF_ATTRIBUTE, OF_TEXT, ".", OF_PLACE):
        above, found, number = place.rpartition(kind)
        if found:
            return above, kind, number
    return "", "", ""


@lru_cache(maxsize=16)
def _shared_tree(name: str) -> _Tree:
    return _read_tree(shared_text(name))


@lru_cache(maxsize=64)
def _tree(xml: str) -> _Tree:
    return _read_tree(xml)


def _read_tree(xml: str) -> _Tree:
    # It is of a document that was read, and so are its depth and its sizes.
    parser = etree.XMLParser(
        huge_tree=True, resolve_entities=False, no_network=True, collect_ids=False
    )
    root = etree.fromstring(xml, parser)
    return _Tree(_node(root, _OftenAsked(root)))


class _Excerpts(HoldingOf[_ExcerptNode]):
    """Evaluates conditions at nodes of excerpts."""

    __slots__ = ()

    def values(self, value: Value, node: _ExcerptNode) -> Sequence[functions.Atom]:
        match value:
            case PathValue(path):
                return [each.text for each in self.select(path, node)]
            case FunctionValue(function, arguments):
                return functions.apply(function, [self.values(each, node) for each in arguments])
            case Literal(constant):
                return (constant,)
        raise AssertionError(f"{value} is in no excerpt")

    def _origins(self, step: Step, context: _ExcerptNode) -> Iterable[_ExcerptNode]:
        if not step.is_deep:
            return (context,)
        below = [*context.below()]
        if step.axis is Axis.SELF:
            below += [text for each in below for text in each.texts]
        return below

    def _axis(self, step: Step, context: _ExcerptNode) -> Iterable[_ExcerptNode]:
        return (context,) if step.axis is Axis.SELF else context.selected(step.axis, step.test)

    def _holds_opaque(
        self, condition: Opaque, node: _ExcerptNode, position: int, size: int
    ) -> bool:
        if node.asked is not None and not condition.is_positional:
            found = node.asked.holds(condition, node.element)
            if found is not None:
                return found
        return holds_at(condition, node.element, node.place, position, size)


_EXCERPTS = _Excerpts()
