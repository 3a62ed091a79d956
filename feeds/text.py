"""Plain text out of HTML, and characters that XML can carry.

Everything here is linear in its input, because the input is whatever the web sends: no pattern
can run past the next "<", and what has no end is cut at its beginning.
"""

from __future__ import annotations

import html
import re

__all__ = ["collapse", "drop_illegal", "has_illegal", "plain"]

_BLOCK = re.compile(
    r"</?(?:p|div|br|li|ul|ol|h[1-6]|tr|table|blockquote|pre|section|article|hr|dd|dt|figure)"
    r"(?:[\s/][^<>]*)?>",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<![^<>]*>|<\?[^<>]*>")
_SILENT_START = re.compile(r"<(script|style)(?=[\s>/])", re.IGNORECASE)
_SILENT_END = {name: re.compile(f"</{name}\\s*>", re.IGNORECASE) for name in ("script", "style")}
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def plain(markup: str) -> str:
    r"""Return the text of an HTML fragment: entities decoded, blocks on lines of their own.

    >>> plain("<p>Fish &amp; <b>chips</b></p><p>Peas</p>")
    'Fish & chips\nPeas'
    """
    if "<" in markup:
        markup = _BLOCK.sub("\n", _without_silent(_without_comments(markup)))
        markup = _TAG.sub("", markup)
    elif "&" not in markup:
        return collapse(markup) if "\n" not in markup else _lines(markup)
    return _lines(html.unescape(markup))


def collapse(text: str) -> str:
    """Return `text` on one line, single spaces, trimmed: titles, names, categories."""
    return " ".join(text.split())


def drop_illegal(text: str) -> str:
    """Return `text` without the characters that no XML document can hold."""
    return _ILLEGAL.sub("", text)


def has_illegal(text: str) -> bool:
    """Return whether `text` holds a character that no XML document can hold."""
    return _ILLEGAL.search(text) is not None


def _lines(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


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
