"""What the demonstration shows: documents as they arrive, matches with all that explains them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lxml import etree
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from broker.demo.receivers import ReceivedDelivery

from broker.matching.rendering.matchlines import compared_in, likenesses_of, spell_likeness

__all__ = ["Item", "document_line", "match_block", "read_item", "spoken"]


@dataclass(frozen=True, slots=True)
class Item:
    """What a person wants to see of a document."""

    stream: str
    kind: str
    title: str
    authors: str
    source: str
    time: datetime


def read_item(document: Mapping[str, Any]) -> Item:
    """Return the item of a document as the API gives it."""
    root = etree.fromstring(document["xml"].encode())
    title = root.findtext("title") or ""
    return Item(
        stream=document["stream"],
        kind=str(root.tag),
        title=title,
        authors=", ".join(author.text or "" for author in root.findall("author")),
        source=root.findtext("source") or f"a {root.tag}",
        time=datetime.fromisoformat(document["time"]),
    )


def document_line(item: Item) -> RenderableType:
    """Return the line of a document that has arrived."""
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append("+ ", "green")
    line.append(f"{item.stream:<14}", "cyan")
    line.append(f"{item.source:<17}", "dim")
    line.append(item.title)
    line.append(f"  {item.authors}", "dim")
    return line


def match_block(
    match: Mapping[str, Any], items: Sequence[Item], deliveries: Iterable[ReceivedDelivery]
) -> RenderableType:
    """Return a match: its query, the documents, the joined values, the time between, the ways.

    A match of one document is of what did not come behind it.
    """
    start, end = (datetime.fromisoformat(match[name]) for name in ("start", "end"))
    heading = Text.assemble(("= ", "bold yellow"), (match["query"], "bold yellow"))
    is_pair = len(items) > 1
    heading.append(f"  {spoken(end - start)} {'apart' if is_pair else 'of silence'}", "magenta")
    body = Table.grid(padding=(0, 1))
    body.add_column(width=8, style="dim")
    body.add_column()
    names = ("earlier", "later") if is_pair else ("last",)
    for name, item in zip(names, sorted(items, key=lambda i: i.time), strict=False):
        origin = f"  {item.source}, {item.time:%a %H:%M}"
        body.add_row(name, Text.assemble(item.title, (origin, "dim")))
    for label, value in joined_values(match):
        body.add_row("joined", Text.assemble((f"{label}  ", "cyan"), value))
    if ways := [_delivery(received) for received in deliveries]:
        body.add_row("sent to", Text(" and ").join(ways))
    return Group(heading, Padding(body, (0, 0, 0, 2)))


def joined_values(match: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the witnesses of a match have in common, once: `left = right` and the value.

    Of what is similar it is the score, and the words that are shared.
    """
    seen = set()
    for witness in match["witnesses"]:
        for left, node in compared_in(witness):
            for right, other in compared_in(witness):
                if node["block"] < other["block"] and node["value"] == other["value"]:
                    pair = (f"{left} = {right}", node["value"])
                    if pair not in seen:
                        seen.add(pair)
                        yield pair
        for score, shared in likenesses_of(witness):
            label, _, words = spell_likeness(score, shared).partition(": ")
            if (label, words) not in seen:
                seen.add((label, words))
                yield label, words


def _delivery(received: ReceivedDelivery) -> Text:
    text = Text(received.way, "green")
    if received.refusals:
        text.append(f" (attempt {received.refusals + 1}; the first was answered with 500)", "dim")
    return text


def spoken(length: timedelta) -> str:
    """Return a length of time in its two largest units.

    >>> spoken(timedelta(hours=27, minutes=5))
    '1 d 3 h'
    >>> spoken(timedelta(minutes=40))
    '40 min'
    """
    seconds = int(length.total_seconds())
    units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)]
    parts: list[str] = []
    for name, size in units:
        count, seconds = divmod(seconds, size)
        if count or parts:
            parts.append(f"{count} {name}" if count else "")
    return " ".join(part for part in parts[:2] if part) or "0 s"


def heading(console: Console, text: str) -> None:
    """Print a heading."""
    console.print()
    console.rule(Text(text, "bold"), align="left", style="dim")
