"""Queries and XML as markup with the classes of Pygments; what others wrote is escaped by it."""

from __future__ import annotations

from typing import Any

from lxml import etree
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers.html import XmlLexer

from xscl.highlight import XsclLexer

__all__ = ["coloured_query", "coloured_xml"]

_XML_MAX = 20_000
"""Characters of XML that are shown; a browser has them on ten matches at once."""


def coloured_query(text: str) -> Markup:
    """Return a query as markup."""
    return _coloured(text, XsclLexer())


def coloured_xml(xml: bytes) -> Markup:
    """Return XML as markup, indented where it is well-formed."""
    return _coloured(_indented(xml), XmlLexer())


def _indented(xml: bytes) -> str:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_blank_text=True
    )
    try:
        root = etree.fromstring(xml, parser)
    except etree.XMLSyntaxError:
        return xml.decode("utf-8", "replace")[:_XML_MAX]
    text = etree.tostring(root, encoding="unicode", pretty_print=True)
    return text if len(text) <= _XML_MAX else text[:_XML_MAX] + "\n…"


def _coloured(text: str, lexer: Any) -> Markup:
    # The formatter escapes what it colours.
    return Markup(highlight(text, lexer, HtmlFormatter(nowrap=True)))
