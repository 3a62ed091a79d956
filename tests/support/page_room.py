"""The pages of a broker whose pipeline does not run, and a match that an enemy has written."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp.test_utils import TestClient, TestServer

from broker.api.access import Gate
from broker.api.http import add_deliveries, make_application
from broker.api.pickup import Pickup
from broker.matching.match import Match, MatchDocument, MatchNode
from broker.web import pages
from support.api_room import Room

__all__ = ["HOSTILE", "hostile_match", "open_pages"]

HOSTILE = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"


def hostile_match(number: int, query: str = "same") -> Match:
    """A match of two items, everything in which has been written by an enemy."""
    text = HOSTILE.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    item = (
        f"<item><title>{text}</title><link>javascript:alert(1)</link><author>{text}</author>"
        f"<source>{text}</source><summary>{text}</summary></item>"
    )
    return Match(
        id=f"h{number}",
        query=query,
        start_us=0,
        end_us=3_600_000_000,
        documents=tuple(
            MatchDocument(docid, "news", HOSTILE, docid * 1_000_000)
            for docid in (number, number + 1)
        ),
        roots=(0, 0),
        nodes={},
        witnesses=({"a/title": MatchNode(0, 1, HOSTILE), "b/title": MatchNode(1, 1, HOSTILE)},),
        output=f"<match>{item}{item}</match>",
    )


@contextlib.asynccontextmanager
async def open_pages(directory: Path) -> AsyncIterator[tuple[TestClient, Room]]:
    """Serve the pages as before the first token was made."""
    room = Room(directory)
    room.ingest.start()
    application = make_application(room.backend, body_bytes_max=10_000, gate=Gate())
    add_deliveries(application, Pickup(room.outbox, room.registry))
    pages.install(application)
    async with TestClient(TestServer(application)) as client:
        yield client, room
    room.close()
