"""Plain text out of HTML, and characters that XML can carry.

Everything here is linear in its input, because the input is whatever the web sends: no pattern
can run past the next "<", and what has no end is cut at its beginning.
"""

from __future__ import annotations

import html
import re

__all__ = ["collapse", "drop_illegal", "escaped", "has_illegal", "plain"]

_BLOCK = re.compile(
    r"</?(?:[pP]|br|BR|div|DIV|li|LI|[uo]l|[UO]L|h[1-6r]|H[1-6R]|t[rd]|T[RD]|table|TABLE"
    r"|blockquote|BLOCKQUOTE|pre|PRE|section|article|d[dt]|D[DT]|figure)(?:\s[^<>]*)?/?>"
)
"""Tags that begin a line.  Both cases are spelled: a pattern that ignores case is slower."""
_TAG = re.compile(r"<[a-zA-Z/!?][^<>]*>")
_BREAK = "\1"
"""A line break until spaces are collapsed: a control character, which no XML text can hold."""
_SILENT_START = re.compile(r"<([sS][cC][rR][iI][pP][tT]|[sS][tT][yY][lL][eE])(?=[\s>/])")
_SILENT_END = {name: re.compile(f"</{name}\\s*>", re.IGNORECASE) for name in ("script", "style")}
_MARKUP = re.compile('[&<>"]')
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def plain(markup: str) -> str:
    r"""Return the text of an HTML fragment: entities decoded, single spaces, a line per block.

    >>> plain("<p>Fish &amp; <b>chips</b></p><p>Peas</p>")
    'Fish & chips\nPeas'
    """
    if "<" not in markup:
        return collapse(html.unescape(markup) if "&" in markup else markup)
    markup = _BLOCK.sub(_BREAK, _without_silent(_without_comments(markup)))
    text = html.unescape(_TAG.sub("", markup))
    return "\n".join(filter(None, map(collapse, text.split(_BREAK))))


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
