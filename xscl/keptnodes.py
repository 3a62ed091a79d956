"""What is kept of a document for an excerpt (`xscl.excerpts`), and written as XML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from lxml import etree

from xscl.nodes import attributes_of
from xscl.path import ANY, DECLARATIONS, Axis, Excerpt, NodeTest, Step, matches_name
from xscl.qualifiednames import (
    PREFIXES,
    Prefixes,
    all_declarations,
    declarations,
    qualified_name,
)
from xscl.writing import attribute_text, tagged, text_content

__all__ = ["KeptNodes", "Node", "OwnedNode"]


class OwnedNode(NamedTuple):
    """A text or an attribute of an element."""

    owner: etree._Element


Node = etree._Element | OwnedNode | None
"""None is the document node."""


@dataclass(slots=True)
class KeptNodes:
    """What is kept of the document that has a root.

    `below` has the kept children of each element.  Where texts of an element are kept, all its
    children stay between them: `a<b/>c` has two.  Of some that are `declaring` all prefixes are.
    """

    root: etree._Element
    elements: set[etree._Element] = field(default_factory=set)
    below: dict[etree._Element, list[etree._Element]] = field(default_factory=dict)
    attributes: dict[etree._Element, set[str]] = field(default_factory=dict)
    declaring: set[etree._Element] = field(default_factory=set)
    texts: set[etree._Element] = field(default_factory=set)
    whole: set[etree._Element] = field(default_factory=set)
    numbers: dict[etree._Element, int] = field(default_factory=dict)

    def keep(self, node: Node) -> None:
        """Keep an element, and all above it; a document has its root."""
        element = self.root if node is None else None if isinstance(node, OwnedNode) else node
        while element is not None and element not in self.elements:
            self.elements.add(element)
            parent = element.getparent()
            if parent is not None:
                self.below.setdefault(parent, []).append(element)
            element = parent

    def add(self, excerpt: Excerpt, starts: Iterable[Node]) -> None:
        """Keep all nodes on the paths of an excerpt, and what is within those whose texts it has.

        All starts go together: what several of them lead to is gone on from once.
        """
        for paths, is_text in ((excerpt.paths, False), (excerpt.texts, True)):
            for path in paths:
                found = starts
                for step in path.steps:
                    found = dict.fromkeys(self._step(step, found))
                for each in found if is_text else ():
                    if not isinstance(each, OwnedNode):
                        self.keep(each)
                        self.whole.add(self.root if each is None else each)

    def has_all_children(self, element: etree._Element) -> bool:
        """Return whether all children of an element stay, read or not."""
        if element in self.texts:
            return True
        return not self.whole.isdisjoint((element, *element.iterancestors()))

    def _step(self, step: Step, found: Iterable[Node]) -> Iterator[Node]:
        match step.axis:
            case Axis.CHILD if not step.test.is_text:
                selected = (self._elements(step, each) for each in found)
                yield from self._each_kept(chain.from_iterable(selected))
            case Axis.CHILD:
                yield from self._texts(self._origins(step, found))
            case Axis.ATTRIBUTE:
                yield from self._attributes(step.test, self._origins(step, found))
            case Axis.SELF if step.is_deep:
                origins = [*self._origins(step, found)]
                yield from self._each_kept(origins)
                yield from self._texts(origins)
            case Axis.SELF:
                yield from found
            case Axis.PARENT:
                yield from self._each_kept(_parent(each) for each in found if each is not None)
            case Axis.ANCESTOR:
                above = chain.from_iterable(map(_with_ancestors, found))
                yield from self._each_kept(e for e in above if _is_called(step.test, e))
            case Axis.DOCUMENT:
                yield None

    def _each_kept(self, nodes: Iterable[Node]) -> Iterator[Node]:
        for each in nodes:
            self.keep(each)
            yield each

    def _origins(self, step: Step, found: Iterable[Node]) -> Iterator[Node]:
        for each in found:
            yield each
            if step.is_deep and not isinstance(each, OwnedNode):
                yield from self.root.iter() if each is None else each.iterdescendants()

    def _elements(self, step: Step, origin: Node) -> Iterable[etree._Element]:
        tag = f"{{{step.test.namespace or ''}}}{step.test.name}"
        if origin is None:
            is_called = matches_name(step.test, str(self.root.tag))
            return self.root.iter(tag) if step.is_deep else (self.root,) if is_called else ()
        if isinstance(origin, OwnedNode):
            return ()
        return origin.iterdescendants(tag) if step.is_deep else origin.iterchildren(tag)

    def _texts(self, origins: Iterable[Node]) -> Iterator[OwnedNode]:
        for each in origins:
            if each is not None and not isinstance(each, OwnedNode):
                self.keep(each)
                self.texts.add(each)
                yield OwnedNode(each)

    def _attributes(self, test: NodeTest, origins: Iterable[Node]) -> Iterator[OwnedNode]:
        for each in origins:
            if each is None or isinstance(each, OwnedNode):
                continue
            if test == DECLARATIONS:
                self.keep(each)
                self.declaring.add(each)
                yield OwnedNode(each)
            elif names := [str(e) for e in each.attrib if matches_name(test, str(e))]:
                self.keep(each)
                self.attributes.setdefault(each, set()).update(names)
                yield OwnedNode(each)

    def place(self, element: etree._Element) -> str:
        """Return the place of an element in what has been written."""
        numbers: list[str] = []
        above: etree._Element | None = element
        while above is not None and (number := self.numbers.get(above)) is not None:
            numbers.append(str(number))
            above = above.getparent()
        return ".".join(reversed(numbers))

    def xml(self, top: etree._Element) -> str:
        """Return what is kept of the tree of an element as XML."""
        return self._tagged(top, PREFIXES, is_whole=False)

    def _tagged(self, element: etree._Element, known: Prefixes, *, is_whole: bool) -> str:
        """Return what is kept of an element as XML, behind declarations of what is known."""
        is_whole = is_whole or element in self.whole
        has_texts = is_whole or element in self.texts
        own = self.attributes.get(element, ())
        attributes = [e for e in attributes_of(element) if e.name in own] if own else []
        name, names = qualified_name(element), [*map(qualified_name, attributes)]
        if element in self.declaring:
            known, start = all_declarations(element)
        else:
            known, start = declarations(name, names, known)
        for each, attribute in zip(names, attributes, strict=True):  # XPath 1.0 reads the first
            start.append(f' {each.written}="{attribute_text(attribute.value)}"')
        content = [text_content(element.text)] if has_texts and element.text else []
        for number, child in enumerate(element if has_texts else self._children(element)):
            self.numbers[child] = number
            content.append(self._tagged(child, known, is_whole=is_whole))
            if has_texts and child.tail:
                content.append(text_content(child.tail))
        return tagged(name.written, start, content)

    def _children(self, element: etree._Element) -> Sequence[etree._Element]:
        """Return the kept children, in the order of the document."""
        below = self.below.get(element, ())
        return below if len(below) < 2 else [each for each in element if each in self.elements]


def _with_ancestors(node: Node) -> Iterator[Node]:
    yield node
    while node is not None:
        node = _parent(node)
        yield node


def _is_called(test: NodeTest, node: Node) -> bool:
    """Return whether a name test, or that of any node, may select a node."""
    if node is None or isinstance(node, OwnedNode):
        return test.name == test.namespace == ANY
    return matches_name(test, str(node.tag))


def _parent(node: Node) -> etree._Element | None:
    if isinstance(node, OwnedNode):
        return node.owner
    return None if node is None else node.getparent()
