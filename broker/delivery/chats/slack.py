"""A message for Slack's incoming webhooks, in rich text: nothing of it is read as markup.

Bounds: 3,000 characters a block, 50 blocks.  `text` is what notifications show; in it `&`, `<` and
`>` stand as entities, so that no `<!channel>` is one.
"""

from __future__ import annotations

import json
from typing import Any

from broker.delivery.chats.notice import Line, Notice, TextSpan, fit
from broker.registry.destination import Destination

__all__ = ["escape", "render"]

_BLOCK_MAX = 2_900
_ROOM = 24_000
_NEW_LINE = {"type": "text", "text": "\n"}


def render(notice: Notice, destination: Destination) -> tuple[dict[str, str], bytes]:
    """Return headers and body."""
    message = {
        "text": escape(notice.title),
        "blocks": [_block(lines) for lines in _paragraphs(fit(notice, _ROOM, _size))],
        "unfurl_links": False,
        "unfurl_media": False,
    }
    return {"Content-Type": "application/json"}, json.dumps(message, ensure_ascii=False).encode()


def escape(text: str) -> str:
    """Return text in which Slack finds no markup of its own.

    >>> escape("<!channel> & co")
    '&lt;!channel&gt; &amp; co'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _size(line: Line) -> int:
    return sum(len(span.text) + len(span.link) for span in line) + 1


def _paragraphs(lines: list[Line]) -> list[list[Line]]:
    paragraphs: list[list[Line]] = [[]]
    room = _BLOCK_MAX
    for line in lines:
        room -= _size(line)
        if room < 0:
            paragraphs.append([])
            room = _BLOCK_MAX - _size(line)
        paragraphs[-1].append(line)
    return paragraphs


def _block(lines: list[Line]) -> dict[str, Any]:
    elements: list[dict[str, Any]] = []
    for line in lines:
        elements += [_NEW_LINE] if elements else []
        elements += map(_element, line)
    return {
        "type": "rich_text",
        "elements": [{"type": "rich_text_section", "elements": elements or [_NEW_LINE]}],
    }


def _element(span: TextSpan) -> dict[str, Any]:
    style: dict[str, Any] = {"style": {"bold": True}} if span.is_strong else {}
    if span.link:
        return {"type": "link", "url": span.link, "text": span.text, **style}
    return {"type": "text", "text": span.text, **style}
