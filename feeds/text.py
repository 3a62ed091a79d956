"""Plain text out of HTML, and characters that XML can carry.

Everything here is linear in its input, because the input is whatever the web sends: no pattern
can run past the next "<", and what has no end is cut at its beginning.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache

__all__ = ["collapse", "drop_illegal", "escaped", "has_illegal", "plain", "unescaped"]

_BLOCKS = (
    {"p", "br", "hr", "div", "section", "article", "figure", "pre", "blockquote"}
    | {"ul", "ol", "li", "dd", "dt", "table", "tr", "th", "td"}
    | {"h1", "h2", "h3", "h4", "h5", "h6"}
)
_SILENT = frozenset(("script", "style"))
_TAG = re.compile(r"<([a-zA-Z/!?][^ \t\n\r\f<>/]*)[^<>]*>")
_REFERENCE = re.compile(r"&(?:#[0-9]{1,20};?|#[xX][0-9a-fA-F]{1,20};?|[^\t\n\f <&#;]{1,32};?)")
_BREAK = "\1"
"""A line break until spaces are collapsed: a control character, which no XML text can hold."""
_SILENT_START = re.compile(r"<(script|style)(?=[\s>/])", re.IGNORECASE | re.ASCII)
_SILENT_END = {name: re.compile(f"</{name}\\s*>", re.IGNORECASE | re.ASCII) for name in _SILENT}
_MARKUP = re.compile('[&<>"]')
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Places(dict[str, str | None]):
    """What stands in the place of a tag: a line break, nothing, or None for what is silent."""

    def __missing__(self, tag: str) -> str | None:
        name = tag.lower()
        is_break = name.removeprefix("/") in _BLOCKS
        place = None if name in _SILENT else _BREAK if is_break else ""
        if len(self) < _PLACES_MAX and len(tag) < _NAME_MAX:
            self[tag] = place
        return place


_PLACES_MAX = 1_000
_NAME_MAX = 20
_PLACES = _Places()


def plain(markup: str) -> str:
    r"""Return the text of an HTML fragment: entities decoded, single spaces, a line per block.

    >>> plain("<p>Fish &amp; <b>chips</b></p><p>Peas</p>")
    'Fish & chips\nPeas'
    """
    if "<" not in markup:
        return collapse(unescaped(markup))
    text = unescaped(_without_tags(_without_comments(markup)))
    return "\n".join([collapse(line) for line in map(str.strip, text.split(_BREAK)) if line])


def _without_tags(markup: str) -> str:
    """Return `markup` with a break for each tag that begins or ends a block, and no others."""
    # Pieces are the text before a tag, the tag's name, the text behind it, and so on.
    pieces = _TAG.split(markup)
    places = [_PLACES[name] for name in pieces[1::2]]
    if None in places:
        pieces = _TAG.split(_without_silent(markup))
        places = [_PLACES[name] or "" for name in pieces[1::2]]
    pieces[1::2] = places
    return "".join(pieces)


def unescaped(text: str) -> str:
    """Return `text` with its character references replaced, as HTML has it."""
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(found: re.Match[str]) -> str:
    return _character_of(found[0])


@lru_cache(maxsize=1_000)
def _character_of(reference: str) -> str:
    """The character that `html.unescape` takes a reference for; most are a dozen."""
    return html.unescape(reference)


def collapse(text: str) -> str:
    """Return `text` on one line, single spaces, trimmed: titles, names, categories.

    Most text is that already, and splitting it into words is what costs.
    """
    text = text.strip()
    if "  " not in text and text.isprintable():
        return text
    return " ".join(text.split())


def escaped(text: str) -> str:
    """Return `text` as XML character data, also usable in an attribute in double quotes.

    >>> escaped('<"&>')
    '&lt;&quot;&amp;&gt;'
    """
    if _MARKUP.search(text) is None:
        return text
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;")


def drop_illegal(text: str) -> str:
    """Return `text` without the characters that no XML document can hold."""
    return _ILLEGAL.sub("", text)


def has_illegal(text: str) -> bool:
    """Return whether `text` holds a character that no XML document can hold."""
    return _ILLEGAL.search(text) is not None


def _without_comments(markup: str) -> str:
    if "<!--" not in markup:
        return markup
    kept = []
    position = 0
    while (start := markup.find("<!--", position)) >= 0:
        kept.append(markup[position:start])
        end = markup.find("-->", start + 4)
        position = len(markup) if end < 0 else end + 3
    kept.append(markup[position:])
    return "".join(kept)


def _without_silent(markup: str) -> str:
    """Return `markup` without scripts and style sheets, whose text nobody reads."""
    kept = []
    position = 0
    while start := _SILENT_START.search(markup, position):
        kept.append(markup[position : start.start()])
        end = _SILENT_END[start[1].lower()].search(markup, start.end())
        position = end.end() if end else len(markup)
    kept.append(markup[position:])
    return "".join(kept)
