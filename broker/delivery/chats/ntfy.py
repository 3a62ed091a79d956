"""A message for a topic of ntfy: plain text of at most 4,096 bytes, published as JSON.

A longer one would arrive as a file.  A tap opens the first link; the page on which it is answered
has a button.
"""

from __future__ import annotations

import json
from typing import Any

from broker.delivery.chats.notice import Line, Notice, fit
from broker.registry.destination import Destination

__all__ = ["render", "text", "url"]

_ROOM = 4_000


def render(notice: Notice, destination: Destination) -> tuple[dict[str, str], bytes]:
    """Return headers and body."""
    lines = fit(notice, _ROOM, _size, has_title=False)
    message: dict[str, Any] = {
        "topic": destination.place.rpartition("/")[2],
        "title": notice.title,
        "message": "\n".join(map(text, lines)).strip(),
    }
    link = next((span.link for line in lines for span in line if span.link), "")
    if link:
        message["click"] = link
    if notice.answer is not None:
        message["actions"] = [
            {"action": "view", "label": notice.answer.text, "url": notice.answer.link}
        ]
    headers = {"Content-Type": "application/json"}
    if destination.token:
        headers["Authorization"] = f"Bearer {destination.token}"
    return headers, json.dumps(message, ensure_ascii=False).encode()


def url(destination: Destination, delivery_id: str) -> str:
    """Return the server's own address: to that of a topic JSON would be text."""
    return destination.place.rpartition("/")[0] + "/"


def text(line: Line) -> str:
    """Return a line as text, with the links behind what leads there."""
    return "".join(span.text + (f" {span.link}" if span.link else "") for span in line)


def _size(line: Line) -> int:
    return len(text(line).encode()) + 1
