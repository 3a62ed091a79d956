"""Documents whose root is written as it was read: for a copy of it no tree is needed.

A serialiser has one way to write each thing, and a text that uses no other is its own
serialisation.  `is_verbatim` asks for little more than what feeds have: names without colons and
namespaces, attributes of ASCII in double quotes behind one space each, elements without content as
`<a/>`, the three references that a serialiser writes, and nothing but elements and text.

Invariant: of a well-formed document for which it holds, `lxml.etree.tostring` of the root is the
document's text, and its elements are its start tags and empty tags.
"""

from __future__ import annotations

import re

__all__ = ["element_count", "is_verbatim"]

_NAME = rb"[A-Za-z_][A-Za-z0-9_.-]*+"
_REFERENCE = rb"&(?:amp|lt|gt);"
_ATTRIBUTE = rb" (?!xmlns)" + _NAME + rb'="(?:[ !#-%\'-;=?-~]++|' + _REFERENCE + rb')*+"'
_TAG = rb"<" + _NAME + rb"(?:" + _ATTRIBUTE + rb")*+(?:/>|>(?!</))|</" + _NAME + rb">"
_VERBATIM = re.compile(rb"(?:" + _TAG + rb"|[^<>&\r]++|" + _REFERENCE + rb")*+")


def is_verbatim(xml: bytes) -> bool:
    """Return whether a well-formed document is sure to be written as it was read.

    >>> is_verbatim(b'<a b="c">d<e/></a>'), is_verbatim(b"<a b='c'>d<e></e></a>")
    (True, False)
    """
    return xml[:1] == b"<" and xml[-1:] == b">" and _VERBATIM.fullmatch(xml) is not None


def element_count(xml: bytes) -> int:
    """Return how many elements a document has that is written as it was read."""
    return xml.count(b"<") - xml.count(b"</")
