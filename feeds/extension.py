"""Elements of foreign namespaces, written out again as they are, with only what they need.

lxml's own serialisation declares every namespace in scope on each element; here an element
declares only the ones that it uses, with the feed's own prefixes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from lxml import etree

from feeds.namespaces import XML
from feeds.text import escaped

__all__ = ["render_element"]


def render_element(element: etree._Element) -> bytes:
    """Return `element`, without its tail, as an XML fragment that stands on its own.

    >>> feed = etree.fromstring('<a xmlns:s="urn:s" xmlns:t="urn:t"><s:b c="1">x<d/></s:b></a>')
    >>> render_element(feed[0])
    b'<s:b xmlns:s="urn:s" c="1">x<d/></s:b>'
    """
    if len(element) or element.attrib:
        return _render(element, {}).encode()
    start, end = _tags(str(element.tag), element.prefix or "")
    return f"{start}{escaped(element.text or '')}{end}".encode()


@lru_cache(maxsize=1_000)
def _tags(tag: str, prefix: str) -> tuple[str, str]:
    """The start and end tags of an element without attributes: most extensions are a value."""
    uri, _, local = tag.rpartition("}")
    name = f"{prefix}:{local}" if prefix else local
    return f"<{name}{_attribute('xmlns', prefix, uri[1:])}>", f"</{name}>"


def _render(element: etree._Element, declared: dict[str, str]) -> str:
    needed = dict(declared)
    name = _name(element, needed)
    attributes = "".join(_attributes(element, needed))
    new = "".join(
        _attribute("xmlns", prefix, uri)
        for prefix, uri in needed.items()
        if declared.get(prefix, None if prefix else "") != uri
    )
    inside = escaped(element.text or "") + "".join(
        _render(child, needed) + escaped(child.tail or "")
        for child in element.iterchildren(etree.Element)
    )
    end = f">{inside}</{name}>" if inside else "/>"
    return f"<{name}{new}{attributes}{end}"


def _name(element: etree._Element, needed: dict[str, str]) -> str:
    uri, _, local = str(element.tag).rpartition("}")
    prefix = element.prefix or ""
    needed[prefix] = uri[1:]
    return f"{prefix}:{local}" if prefix else local


def _attributes(element: etree._Element, needed: dict[str, str]) -> Iterator[str]:
    for name, value in element.attrib.items():
        uri, _, local = str(name).rpartition("}")
        prefix = _prefix_of(uri[1:], element, needed) if uri else ""
        yield _attribute(prefix, local, str(value))


def _attribute(prefix: str, local: str, value: str) -> str:
    colon = ":" if prefix and local else ""
    return f' {prefix}{colon}{local}="{escaped(value)}"'


def _prefix_of(uri: str, element: etree._Element, needed: dict[str, str]) -> str:
    if uri == XML:
        return "xml"
    for prefix, other in needed.items():
        if other == uri and prefix:
            return prefix
    usual = [p for p, other in element.nsmap.items() if other == uri and p]
    prefix = usual[0] if usual and usual[0] not in needed else f"n{len(needed)}"
    needed[prefix] = uri
    return prefix
