"""A message for Discord's webhooks: Markdown of at most 2,000 characters, which calls nobody.

`allowed_mentions` without anything in it has `@everyone` and `<@1>` be text; flag 4 keeps pictures
of the links away.
"""

from __future__ import annotations

import json
import re

from broker.delivery.chats.notice import Line, Notice, TextSpan, fit
from broker.registry.destination import Destination

__all__ = ["escape", "render", "url"]

_ROOM = 2_000
_MARKS = re.compile(r"([\\*_~`|<>\[\]()#])")


def render(notice: Notice, destination: Destination) -> tuple[dict[str, str], bytes]:
    """Return headers and body."""
    message = {
        "content": "\n".join(map(_render, fit(notice, _ROOM, _size))),
        "allowed_mentions": {"parse": []},
        "flags": 4,
    }
    return {"Content-Type": "application/json"}, json.dumps(message, ensure_ascii=False).encode()


def url(destination: Destination, delivery_id: str) -> str:
    """Return the address that answers once the message is kept, and says why if it is not."""
    place = destination.place
    return f"{place}{'&' if '?' in place else '?'}wait=true"


def escape(text: str) -> str:
    r"""Return text in which Discord finds no Markdown.

    >>> print(escape("**now** [x](https://e.example) <@1>"))
    \*\*now\*\* \[x\]\(https://e.example\) \<@1\>
    """
    return _MARKS.sub(r"\\\1", text)


def _size(line: Line) -> int:
    # Characters beyond the basic plane may count as two.
    return len(_render(line).encode("utf-16-le")) // 2 + 1


def _render(line: Line) -> str:
    return "".join(map(_span, line))


def _span(span: TextSpan) -> str:
    text = f"**{escape(span.text)}**" if span.is_strong else escape(span.text)
    if not span.link:
        return text
    link = span.link.replace("(", "%28").replace(")", "%29")
    return f"[{text}](<{link}>)"
