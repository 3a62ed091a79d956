"""A message for a workflow of Microsoft Teams: an Adaptive Card of at most 28 KB.

Its text is in RichTextBlocks, in which no Markdown is read; without `msteams.entities` nobody is
mentioned.
"""

from __future__ import annotations

import json
from typing import Any

from broker.delivery.chats.notice import Line, Notice, TextSpan, fit
from broker.registry.destination import Destination

__all__ = ["render"]

_ROOM = 26_000
"""In bytes; the frame around it takes some 300."""


def render(notice: Notice, destination: Destination) -> tuple[dict[str, str], bytes]:
    """Return headers and body."""
    lines = [line for line in fit(notice, _ROOM, _size) if line]
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [_block(line) for line in lines],
    }
    content_type = "application/vnd.microsoft.card.adaptive"
    message = {
        "type": "message",
        "attachments": [{"contentType": content_type, "content": card}],
    }
    return {"Content-Type": "application/json"}, _encoded(message)


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _size(line: Line) -> int:
    return len(_encoded(_block(line))) + 2


def _block(line: Line) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [_run(span) for span in line]}


def _run(span: TextSpan) -> dict[str, Any]:
    run: dict[str, Any] = {"type": "TextRun", "text": span.text}
    if span.is_strong:
        run["weight"] = "Bolder"
    if span.link:
        run["selectAction"] = {"type": "Action.OpenUrl", "url": span.link}
    return run
