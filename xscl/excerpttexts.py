"""The texts of excerpts of one document (`xscl.excerpts`).

Where nothing leads upwards, the excerpt of an element is its tree, as XML, without what is not
read; else it is the tree of the document, behind the place of the node:

    <entry><author>Ann</author></entry>
    /0.2<feed><entry><author>Ann</author><author>Bob</author><author>Ann</author></entry></feed>

A place has the numbers of children, from the root down, then `@` and the number of an attribute in
the order of the semantics, or `'` and that of a text.  What nodes with one parent have in common is
written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from lxml import etree

from xscl.nodes import attributes_of
from xscl.path import ANY, Axis, Excerpt, NodeTest, Path, Step, matches_name
from xscl.qualifiednames import PREFIXES, Prefixes, declarations, qualified_name
from xscl.writing import attribute_text, tagged, text_content

__all__ = ["OF_ATTRIBUTE", "OF_PLACE", "OF_TEXT", "ExcerptTexts"]

OF_PLACE = "/"
"""What a place in the tree of the document begins with."""

OF_ATTRIBUTE = "@"
"""What stands before the number of an attribute."""

OF_TEXT = "'"
"""What stands before the number of a text; alone, before a text that is an excerpt itself."""


class _Leaf(NamedTuple):
    """A text or an attribute of an element."""

    owner: etree._Element


_Node = etree._Element | _Leaf | None
"""None is the document node."""


class ExcerptTexts:
    """The texts that an excerpt is at nodes of one document.

    >>> from lxml import etree
    >>> entry, author = (Step(Axis.CHILD, NodeTest(each)) for each in ("entry", "author"))
    >>> of_authors = Excerpt((Path((entry,)),), (Path((entry, author)),))
    >>> feed = etree.XML("<feed>a<entry><t/><author>Ann</author>b</entry></feed>")
    >>> ExcerptTexts(of_authors).of(feed)
    '<feed><entry><author>Ann</author></entry></feed>'
    """

    def __init__(self, excerpt: Excerpt) -> None:
        self._leads_upwards = excerpt.leads_upwards
        # By how many parents they lead to first: what is read from there is gathered once.
        self._paths: dict[int, list[tuple[Path, bool]]] = {}
        for paths, is_text in ((excerpt.paths, False), (excerpt.texts, True)):
            for path in paths:
                height, behind = _from_above(path)
                self._paths.setdefault(height, []).append((behind, is_text))
        self._known: dict[tuple[int, _Node], _KeptNodes] = {}

    def of(self, element: etree._Element) -> str:
        """Return the excerpt of an element."""
        kept = self._kept(element, _root_of(element))
        if not self._leads_upwards:
            return kept.xml(element)
        if element not in kept.elements:
            kept = kept.copy()
            kept.keep(element)
        return self._placed(kept, element, "")

    def of_attribute(self, element: etree._Element, name: str) -> str:
        """Return the excerpt of an attribute, by its expanded name."""
        kept = self._kept(_Leaf(element), _root_of(element)).copy()
        kept.keep(element)
        own = kept.attributes.setdefault(element, set())
        own.add(name)
        names = [each.name for each in attributes_of(element) if each.name in own]
        return self._placed(kept, element, f"{OF_ATTRIBUTE}{names.index(name)}")

    def of_text(self, element: etree._Element, index: int, text: str) -> str:
        """Return the excerpt of a text, by its place among those of its element."""
        if not self._leads_upwards:
            return OF_TEXT + text
        kept = self._kept(_Leaf(element), _root_of(element))
        if element not in kept.texts:
            kept = kept.copy()
            kept.keep(element)
            kept.texts.add(element)
        return self._placed(kept, element, f"{OF_TEXT}{index}")

    def _placed(self, kept: _KeptNodes, element: etree._Element, leaf: str) -> str:
        if not self._leads_upwards:
            return leaf + kept.xml(element)
        xml = kept.xml(kept.root)
        return f"{OF_PLACE}{kept.place(element)}{leaf}{xml}"

    def _kept(self, node: etree._Element | _Leaf, root: etree._Element) -> _KeptNodes:
        """Return what is kept of the document for a node."""
        parts: list[_KeptNodes] = []
        for height, paths in self._paths.items():
            start = _above(node, height)
            kept = self._known.get((height, start)) if height else None
            if kept is None:
                kept = _KeptNodes(root)
                for path, is_text in paths:
                    kept.add(path, start, is_text=is_text)
                if height:
                    self._known[height, start] = kept
            parts.append(kept)
        if len(parts) == 1:
            return parts[0]
        merged = _KeptNodes(root)
        for each in parts:
            merged.update(each)
        return merged


_WHOLE_DOCUMENT = -1
"""In the place of a height, for paths from the document node."""


def _from_above(path: Path) -> tuple[int, Path]:
    """Return with how many steps to parents a path begins, and what follows."""
    if path.steps and path.steps[0].axis is Axis.DOCUMENT:
        return _WHOLE_DOCUMENT, path
    height = 0
    while height < len(path.steps) and path.steps[height].axis is Axis.PARENT:
        height += 1
    return height, Path(path.steps[height:])


def _above(node: _Node, height: int) -> _Node:
    if height == _WHOLE_DOCUMENT:
        return None
    for _ in range(height):
        node = _parent(node)
    return node


def _parent(node: _Node) -> etree._Element | None:
    if isinstance(node, _Leaf):
        return node.owner
    return None if node is None else node.getparent()


def _root_of(element: etree._Element) -> etree._Element:
    return element.getroottree().getroot()


@dataclass(slots=True)
class _KeptNodes:
    """What is kept of the document that has a root.

    `below` has the kept children of each element.  Where texts of an element are kept, all its
    children stay between them: `a<b/>c` has two.
    """

    root: etree._Element
    elements: set[etree._Element] = field(default_factory=set)
    below: dict[etree._Element, list[etree._Element]] = field(default_factory=dict)
    attributes: dict[etree._Element, set[str]] = field(default_factory=dict)
    texts: set[etree._Element] = field(default_factory=set)
    whole: set[etree._Element] = field(default_factory=set)
    numbers: dict[etree._Element, int] = field(default_factory=dict)
    written: str | None = None

    def copy(self) -> _KeptNodes:
        """Return what is kept, to keep more."""
        found = _KeptNodes(self.root)
        found.update(self)
        return found

    def update(self, other: _KeptNodes) -> None:
        """Keep all that another one does."""
        for each in other.elements - self.elements:
            self.keep(each)
        for element, names in other.attributes.items():
            self.attributes.setdefault(element, set()).update(names)
        self.texts |= other.texts
        self.whole |= other.whole

    def keep(self, node: _Node) -> None:
        """Keep an element, and all above it; a document has its root."""
        element = self.root if node is None else None if isinstance(node, _Leaf) else node
        while element is not None and element not in self.elements:
            self.elements.add(element)
            parent = element.getparent()
            if parent is not None:
                self.below.setdefault(parent, []).append(element)
            element = parent

    def add(self, path: Path, start: _Node, *, is_text: bool) -> None:
        """Keep all nodes on a path, and what is within those that it selects, if texts are read."""
        found: Iterable[_Node] = (start,)
        for step in path.steps:
            found = dict.fromkeys(self._step(step, found))
        for each in found if is_text else ():
            if not isinstance(each, _Leaf):
                self.whole.add(self.root if each is None else each)

    def _step(self, step: Step, found: Iterable[_Node]) -> Iterator[_Node]:
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

    def _each_kept(self, nodes: Iterable[_Node]) -> Iterator[_Node]:
        for each in nodes:
            self.keep(each)
            yield each

    def _origins(self, step: Step, found: Iterable[_Node]) -> Iterator[_Node]:
        for each in found:
            yield each
            if step.is_deep and not isinstance(each, _Leaf):
                yield from self.root.iter() if each is None else each.iterdescendants()

    def _elements(self, step: Step, origin: _Node) -> Iterable[etree._Element]:
        tag = f"{{{step.test.namespace or ''}}}{step.test.name}"
        if origin is None:
            is_called = matches_name(step.test, str(self.root.tag))
            return self.root.iter(tag) if step.is_deep else (self.root,) if is_called else ()
        if isinstance(origin, _Leaf):
            return ()
        return origin.iterdescendants(tag) if step.is_deep else origin.iterchildren(tag)

    def _texts(self, origins: Iterable[_Node]) -> Iterator[_Leaf]:
        for each in origins:
            if each is not None and not isinstance(each, _Leaf):
                self.keep(each)
                self.texts.add(each)
                yield _Leaf(each)

    def _attributes(self, test: NodeTest, origins: Iterable[_Node]) -> Iterator[_Leaf]:
        for each in origins:
            if each is None or isinstance(each, _Leaf):
                continue
            if names := [str(e) for e in each.attrib if matches_name(test, str(e))]:
                self.keep(each)
                self.attributes.setdefault(each, set()).update(names)
                yield _Leaf(each)

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
        if self.written is None:
            self.written = self._tagged(top, PREFIXES, is_whole=False)
        return self.written

    def _tagged(self, element: etree._Element, known: Prefixes, *, is_whole: bool) -> str:
        """Return what is kept of an element as XML, behind declarations of what is known."""
        is_whole = is_whole or element in self.whole
        has_texts = is_whole or element in self.texts
        own = self.attributes.get(element, ())
        attributes = [e for e in attributes_of(element) if e.name in own] if own else []
        name, names = qualified_name(element), [*map(qualified_name, attributes)]
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


def _with_ancestors(node: _Node) -> Iterator[_Node]:
    yield node
    while node is not None:
        node = _parent(node)
        yield node


def _is_called(test: NodeTest, node: _Node) -> bool:
    """Return whether a name test, or that of any node, may select a node."""
    if node is None or isinstance(node, _Leaf):
        return test.name == test.namespace == ANY
    return matches_name(test, str(node.tag))
