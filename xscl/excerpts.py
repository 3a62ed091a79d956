"""Texts that spell those parts of a node's tree that a condition reads, whatever data it has.

`[not(entry[author = $x][price < $y])]` asks of each entry its authors and its prices, together.  So
an **excerpt** is the tree of the node without all else: it has the nodes that the paths of a
condition select without their predicates, what is above them, and all that is within those whose
texts are compared.  Of it the condition says what it says of the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xscl.nodes import copy_of
from xscl.path import (
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
    matches_name,
)

if TYPE_CHECKING:
    from lxml import etree

__all__ = [
    "OF_ATTRIBUTE",
    "OF_TEXT",
    "excerpt_of",
    "excerpt_of_attribute",
    "excerpt_of_text",
    "excerpt_read_by",
]

Steps = tuple[Step, ...]


class _UnknownReadingError(Exception):
    """A condition reads more than what is below its node, or nobody knows what."""


def excerpt_read_by(condition: Condition) -> Excerpt | None:
    """Return what a condition reads of the tree of its node; None if that is not all it reads."""
    reading = _ReadByCondition()
    try:
        reading.condition(condition, ())
    except _UnknownReadingError:
        return None
    return reading.excerpt()


@dataclass(slots=True)
class _ReadByCondition:
    """What is gathered while a condition is looked through: paths of names."""

    paths: set[Path] = field(default_factory=set)
    texts: set[Path] = field(default_factory=set)

    def excerpt(self) -> Excerpt:
        """Return all that has been gathered; what a longer path leads through is in that."""
        longer = {
            path.steps[:i] for path in self.paths | self.texts for i in range(len(path.steps))
        }
        alone = (each for each in self.paths - self.texts if each.steps not in longer)
        paths, texts = (tuple(sorted(each, key=repr)) for each in (alone, self.texts))
        return Excerpt(paths, texts)

    def condition(self, condition: Condition, above: Steps) -> None:
        match condition:
            case Exists(path):
                self.paths.add(self.path(path, above))
            case Comparison(left=left, right=right):
                self.value(left, above)
                self.value(right, above)
            case StringTest(value=value, argument=argument):
                self.value(value, above)
                self.value(argument, above)
            case And(conditions) | Or(conditions):
                for each in conditions:
                    self.condition(each, above)
            case Not(inner):
                self.condition(inner, above)
            case Opaque(reads=Excerpt(paths, texts)):
                self.paths.update(Path((*above, *each.steps)) for each in paths)
                self.texts.update(Path((*above, *each.steps)) for each in texts)
            case Position():
                pass
            case _:
                raise _UnknownReadingError

    def value(self, value: Value, above: Steps) -> None:
        match value:
            case PathValue(path):
                self.texts.add(self.path(path, above))
            case FunctionValue(arguments=arguments):
                for each in arguments:
                    self.value(each, above)
            case Literal() | Parameter():
                pass
            case _:
                raise _UnknownReadingError

    def path(self, path: Path, above: Steps) -> Path:
        """Return a path without predicates, behind what is above, when those are gathered."""
        for step in path.steps:
            above = (*above, Step(step.axis, step.test, step.is_deep))
            for each in step.predicates:
                self.condition(each, above)
        return Path(above)


OF_ATTRIBUTE = "@"
"""What the excerpt of an attribute begins with, before an element that has no other."""

OF_TEXT = "'"
"""What the excerpt of a text begins with."""


def excerpt_of_text(text: str) -> str:
    """Return the excerpt of a text."""
    return OF_TEXT + text


def excerpt_of_attribute(element: etree._Element, name: str) -> str:
    """Return the excerpt of an attribute, by its expanded name."""
    namespace, _, local = name.rpartition("}")
    step = Step(Axis.ATTRIBUTE, NodeTest(local, namespace[1:] or None))
    return OF_ATTRIBUTE + excerpt_of(element, Excerpt((Path((step,)),), ()))


def excerpt_of(element: etree._Element, excerpt: Excerpt) -> str:
    """Return the excerpt of an element, as XML.

    >>> from lxml import etree
    >>> entry, author = (Step(Axis.CHILD, NodeTest(each)) for each in ("entry", "author"))
    >>> of_authors = Excerpt((Path((entry,)),), (Path((entry, author)),))
    >>> excerpt_of(etree.XML("<feed>a<entry><t/><author>Ann</author>b</entry></feed>"), of_authors)
    '<feed><entry><author>Ann</author></entry></feed>'
    """
    from lxml import etree  # parsing does without it

    root = copy_of(element)
    kept = _Pruning()
    for path in excerpt.paths:
        kept.add(root, path)
    for path in excerpt.texts:
        kept.whole.update(kept.add(root, path))
    kept.prune(root)
    etree.cleanup_namespaces(root)
    return etree.tostring(root, encoding="unicode")


@dataclass(slots=True)
class _Pruning:
    """What is kept of a tree.

    Where texts of an element are, its children stay between them: `a<b/>c` has two.
    """

    elements: set[etree._Element] = field(default_factory=set)
    attributes: dict[etree._Element, set[str]] = field(default_factory=dict)
    texts: set[etree._Element] = field(default_factory=set)
    whole: set[etree._Element] = field(default_factory=set)

    def add(self, root: etree._Element, path: Path) -> Sequence[etree._Element]:
        """Keep all nodes on a path; return the elements that it selects."""
        found = [root]
        for step in path.steps:
            origins = [n for o in found for n in o.iter()] if step.is_deep else found
            found = []
            if step.axis is Axis.ATTRIBUTE:
                for each in origins:
                    names = [str(e) for e in each.attrib if matches_name(step.test, str(e))]
                    self._keep(each)
                    self.attributes.setdefault(each, set()).update(names)
            elif step.test.is_text or (step.axis is Axis.SELF and step.is_deep):
                self._keep_all(origins)
                self.texts.update(origins)
            if step.axis is Axis.SELF:
                found = origins
            elif step.axis is Axis.CHILD and not step.test.is_text:
                found = list(_children(step.test, origins))
                self._keep_all(found)
        return found

    def _keep_all(self, elements: Iterable[etree._Element]) -> None:
        for each in elements:
            self._keep(each)

    def _keep(self, element: etree._Element) -> None:
        """Keep an element, and all above it."""
        above: etree._Element | None = element
        while above is not None and above not in self.elements:
            self.elements.add(above)
            above = above.getparent()

    def prune(self, root: etree._Element) -> None:
        """Take all else away."""
        waiting = [(root, False)]
        while waiting:
            element, is_whole = waiting.pop()
            is_whole = is_whole or element in self.whole
            has_texts = is_whole or element in self.texts
            own = self.attributes.get(element, ())
            for name in [*element.attrib]:
                if name not in own:
                    del element.attrib[name]
            if not has_texts:
                element.text = None
            for child in [*element]:
                if not has_texts:
                    child.tail = None
                if has_texts or child in self.elements:
                    waiting.append((child, is_whole))
                else:
                    element.remove(child)


def _children(test: NodeTest, origins: Iterable[etree._Element]) -> Iterator[etree._Element]:
    found = dict.fromkeys(child for origin in origins for child in origin)
    return (child for child in found if matches_name(test, str(child.tag)))
