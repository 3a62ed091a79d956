"""The texts of excerpts of one document (`xscl.excerpts`).

Where nothing leads upwards, the excerpt of an element is its tree, as XML, without what is not
read.  Else all nodes that are asked have one text, the tree of the document, and the excerpt of
each is its place in that, with the name of the text (`xscl.sharedtexts`):

    <entry><author>Ann</author></entry>
    /0.2#5xQ... of <feed><entry><author>Ann</author><author>Bob</author><author/></entry></feed>

A place has the numbers of children, from the root down, then `@` and the number of an attribute in
the order of the semantics, or `'` and that of a text.  Nodes of which a condition must say the same
have one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lxml import etree

from xscl.keptnodes import KeptNodes, Node, OwnedNode
from xscl.nodes import attributes_of
from xscl.path import Excerpt

__all__ = [
    "NAMED",
    "OF_ATTRIBUTE",
    "OF_PLACE",
    "OF_TEXT",
    "ExcerptedNode",
    "excerpt_below",
    "places_in",
]

OF_PLACE = "/"
"""What a place in the tree of the document begins with."""

OF_ATTRIBUTE = "@"
"""What stands before the number of an attribute."""

OF_TEXT = "'"
"""What stands before the number of a text; alone, before a text that is an excerpt itself."""

NAMED = "#"
"""What stands behind a place, before the name of the text."""

_Alike = dict[etree._Element, etree._Element]
"""What stands for elements, each of which may stand for itself."""


class ExcerptedNode(NamedTuple):
    """An element, or an attribute of it by its expanded name, or one of its texts by its number."""

    element: etree._Element
    attribute: str | None = None
    text: int | None = None

    @property
    def is_element(self) -> bool:
        """Whether it is an element itself."""
        return self.attribute is None and self.text is None

    @property
    def start(self) -> Node:
        """Where paths begin."""
        return self.element if self.is_element else OwnedNode(self.element)


def excerpt_below(excerpt: Excerpt, node: ExcerptedNode, value: str) -> str:
    """Return the excerpt of a node that has a string value, where nothing leads upwards.

    >>> from xscl.path import Axis, NodeTest, Path, Step
    >>> entry, author = (Step(Axis.CHILD, NodeTest(each)) for each in ("entry", "author"))
    >>> of_authors = Excerpt((Path((entry,)),), (Path((entry, author)),))
    >>> feed = etree.XML("<feed>a<entry><t/><author>Ann</author>b</entry></feed>")
    >>> excerpt_below(of_authors, ExcerptedNode(feed), "aAnnb")
    '<feed><entry><author>Ann</author></entry></feed>'
    """
    if node.text is not None:
        return OF_TEXT + value
    kept = KeptNodes(_root_of(node.element))
    kept.add(excerpt, (node.start,))
    _keep_leaf(kept, node)
    return _leaf(kept, node) + kept.xml(node.element)


def places_in(excerpt: Excerpt, nodes: Sequence[ExcerptedNode]) -> tuple[str, list[str]]:
    """Return the text that an excerpt is for nodes of one document, and their places in it."""
    kept = KeptNodes(_root_of(nodes[0].element))
    kept.add(excerpt, dict.fromkeys(node.start for node in nodes))
    elements = [node.element for node in nodes if node.is_element]
    alike = (_between_read if excerpt.leads_down_again else _by_tree)(kept, elements)
    at = [alike[node.element] if node.is_element else node.element for node in nodes]
    for each, node in zip(at, nodes, strict=True):
        kept.keep(each)
        _keep_leaf(kept, node)
    text = kept.xml(kept.root)
    places = [
        f"{OF_PLACE}{kept.place(each)}{_leaf(kept, node)}"
        for each, node in zip(at, nodes, strict=True)
    ]
    return text, places


def _by_tree(kept: KeptNodes, elements: Sequence[etree._Element]) -> _Alike:
    """Return for each element the first child of its parent with the same tree.

    No step leads from a parent down again, so whatever else a condition reads is the same.
    """
    first: dict[tuple[etree._Element | None, str], etree._Element] = {}
    return {e: first.setdefault((e.getparent(), kept.xml(e)), e) for e in elements}


def _between_read(kept: KeptNodes, elements: Sequence[etree._Element]) -> _Alike:
    """Return for each element the first of its name, as that is written, between the same siblings.

    Those are the next ones that are read.  An element that is read stands for itself.
    """
    alike = {each: each for each in elements}
    parents = dict.fromkeys(e.getparent() for e in elements if e not in kept.elements)
    for parent in parents:
        if parent is None or kept.has_all_children(parent):
            continue
        first: dict[object, etree._Element] = {}
        for child in parent:
            if child in kept.elements:
                first.clear()
            elif child in alike:
                alike[child] = first.setdefault((child.tag, child.prefix), child)
    return alike


def _keep_leaf(kept: KeptNodes, node: ExcerptedNode) -> None:
    if node.attribute is not None:
        kept.attributes.setdefault(node.element, set()).add(node.attribute)
    elif node.text is not None:
        kept.texts.add(node.element)


def _leaf(kept: KeptNodes, node: ExcerptedNode) -> str:
    """Return what the place of a node has behind that of its element."""
    if node.attribute is not None:
        own = kept.attributes[node.element]
        names = [each.name for each in attributes_of(node.element) if each.name in own]
        return f"{OF_ATTRIBUTE}{names.index(node.attribute)}"
    return "" if node.text is None else f"{OF_TEXT}{node.text}"


def _root_of(element: etree._Element) -> etree._Element:
    return element.getroottree().getroot()
