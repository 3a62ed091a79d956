"""A message for a room of Matrix: text, and HTML beside it, in an event of at most 64 KB.

Empty `m.mentions` call nobody, whatever the text names.  The delivery's id is the transaction's: a
server that got it twice shows it once.
"""

from __future__ import annotations

import json
from urllib.parse import quote, urlsplit

from broker.delivery.chats.notice import Line, Notice, fit
from broker.delivery.chats.ntfy import text
from broker.delivery.chats.telegram import html
from broker.registry.destination import Destination

__all__ = ["render", "url"]

_ROOM = 60_000


def render(notice: Notice, destination: Destination) -> tuple[dict[str, str], bytes]:
    """Return headers and body."""
    lines = fit(notice, _ROOM, _size)
    message = {
        "msgtype": "m.text",
        "body": "\n".join(map(text, lines)),
        "format": "org.matrix.custom.html",
        "formatted_body": "<br>".join(map(html, lines)),
        "m.mentions": {},
    }
    headers = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {destination.token}",
    }
    return headers, json.dumps(message, ensure_ascii=False).encode()


def url(destination: Destination, delivery_id: str) -> str:
    """Return where the room takes the message of a delivery."""
    parts = urlsplit(destination.place)
    room = quote(parts.path.removeprefix("/"), safe="")
    path = f"/_matrix/client/v3/rooms/{room}/send/m.room.message/{quote(delivery_id, safe='')}"
    return f"{parts.scheme}://{parts.netloc}{path}"


def _size(line: Line) -> int:
    # As JSON has it, where a quotation mark is two bytes: without those around both, and with
    # what ends the line in each.
    return len(json.dumps(text(line) + html(line), ensure_ascii=False).encode()) - 2 + 6
