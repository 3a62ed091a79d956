"""A message for a chat of Telegram, from a bot: HTML of at most 4,096 characters.

Telegram calls whoever is named by `@name` in a text; a word joiner, which is not seen, stands
behind each `@`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape

from broker.delivery.chats.notice import Line, Notice, TextSpan, fit
from broker.registry.destination import Destination

__all__ = ["html", "render"]

_ROOM = 4_096


def render(notice: Notice, destination: Destination) -> tuple[dict[str, str], bytes]:
    """Return headers and body."""
    message = {
        "chat_id": destination.place,
        "text": "\n".join(map(_silent, fit(notice, _ROOM, _size))),
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
    }
    return {"Content-Type": "application/json"}, json.dumps(message, ensure_ascii=False).encode()


def html(line: Line) -> str:
    """Return a line as HTML.

    >>> html((TextSpan("a < b", "https://e.example/?a=1&b", is_strong=True),))
    '<a href="https://e.example/?a=1&amp;b"><b>a &lt; b</b></a>'
    """
    return "".join(map(_span, line))


def _span(span: TextSpan) -> str:
    text = escape(span.text, quote=False)
    text = f"<b>{text}</b>" if span.is_strong else text
    return f'<a href="{escape(span.link)}">{text}</a>' if span.link else text


def _silent(line: Line) -> str:
    return html(tuple(replace(span, text=span.text.replace("@", "@\u2060")) for span in line))


def _size(line: Line) -> int:
    # Telegram counts UTF-16, behind the markup; the markup is counted here, too.
    return len(_silent(line).encode("utf-16-le")) // 2 + 1
