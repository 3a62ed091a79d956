"""Names as a document writes them, with the prefixes that stand for their namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lxml import etree

from xscl.nodes import AttributeNode
from xscl.writing import attribute_text
from xscl.xpath1nodes import NodePlace, compile_xpath

__all__ = [
    "PREFIXES",
    "Prefixes",
    "QualifiedName",
    "all_declarations",
    "declarations",
    "qualified_name",
]

Prefixes = Mapping[str, str]
"""The namespace that each prefix stands for; the empty one stands for that of elements."""

PREFIXES: Prefixes = {"": "", "xml": "http://www.w3.org/XML/1998/namespace"}
"""What is so without a declaration."""


class QualifiedName(NamedTuple):
    """A name as it is written, and what its prefix stands for."""

    written: str
    prefix: str
    namespace: str


def qualified_name(node: etree._Element | AttributeNode) -> QualifiedName:
    """Return the name of an element or an attribute.

    >>> qualified_name(etree.XML("<a:b xmlns:a='urn:c'/>"))
    QualifiedName(written='a:b', prefix='a', namespace='urn:c')
    """
    if isinstance(node, AttributeNode):
        expanded, prefix = node.name, _prefix_of(node) if node.name.startswith("{") else ""
    else:
        expanded, prefix = str(node.tag), node.prefix or ""
    namespace, _, local = expanded.rpartition("}")
    return QualifiedName(f"{prefix}:{local}" if prefix else local, prefix, namespace[1:])


def _prefix_of(node: AttributeNode) -> str:
    """Return a prefix that lxml does not tell."""
    place = NodePlace.of_attribute(node.name)
    written = compile_xpath(f"name({place.expression})", ())
    return str(written(node.owner, **place.variables)).partition(":")[0]


def declarations(
    element: QualifiedName, attributes: Sequence[QualifiedName], known: Prefixes
) -> tuple[Prefixes, list[str]]:
    """Return the prefixes within an element, and what declares there those that are not known."""
    needed = {each.prefix: each.namespace for each in attributes if each.prefix}
    needed[element.prefix] = element.namespace
    added = {prefix: each for prefix, each in needed.items() if known.get(prefix) != each}
    return {**known, **added} if added else known, _declared(added)


def all_declarations(element: etree._Element) -> tuple[Prefixes, list[str]]:
    """Return all prefixes within an element, and what declares them there.

    XPath 1.0 goes through them in an order that is the same where all are declared in that of lxml.

    >>> all_declarations(etree.XML("<a xmlns='urn:b'><c xmlns='' xmlns:d='urn:d'/></a>")[0])[1]
    [' xmlns=""', ' xmlns:d="urn:d"']
    """
    found = {prefix or "": namespace or "" for prefix, namespace in element.nsmap.items()}
    return {**PREFIXES, **found}, _declared(found)


def _declared(prefixes: Prefixes) -> list[str]:
    return [
        f' xmlns{f":{prefix}" if prefix else ""}="{attribute_text(each)}"'
        for prefix, each in prefixes.items()
    ]
