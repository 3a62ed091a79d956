"""The demonstration from start to end: what happens, in which order, and what must have come of it.

start      the world and the broker; the feeds hold their answers back
prepare    register the example queries, subscribe a webhook or an address to each
rounds     let the feeds publish, and show what arrives, what matches and where it goes
judge      every expected match and every delivery must be there
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import aiohttp
from rich.console import Console
from rich.status import Status
from rich.text import Text

from broker.delivery.store import delivery_id
from broker.demo.feed_server import ROUNDS, moved
from broker.demo.receivers import ReceivedDelivery
from broker.demo.screen import Item, document_line, heading, match_block, read_item
from broker.demo.world import World

__all__ = ["EXPECTED", "Play", "PlayError"]

EXPECTED = {
    "announcement-then-article": 2,
    "book-and-blog": 2,
    "book-and-blog-by-category": 2,
    "burst": 0,
    "cascade": 0,
    "cross-posting": 1,
    "daily-digest": 0,
    "growing-thread": 0,
    "quiet-gauge": 1,
    "same-author-other-feed": 2,
    "same-story": 4,
    "same-story-reworded": 3,
    "standing-correction": 1,
}
"""The matches that the example documents have, by query."""

_PUBLISH_IN = 2
_PUBLISHED = 3
"""Documents that are given over HTTP, and the round in which."""

_BY_MAIL = ("announcement-then-article", "same-author-other-feed")
_READER = "reader@demo.example"
_START_WAIT_S = 180.0
_PLAY_WAIT_S = 180.0
"""For slow and busy machines: an idle one needs a fifth of it."""
_LOOK_EVERY_S = 0.15


class PlayError(RuntimeError):
    """The demonstration did not end as it must; the message says what is missing."""


@dataclass
class _Progress:
    """What has been seen so far."""

    items: dict[int, Item] = field(default_factory=dict)
    after_docid: int = 0
    after_seq: int = 0
    matches: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)


class Play:
    """One showing.  `subscriptions` are the ids of the subscriptions of each query."""

    def __init__(self, world: World, console: Console) -> None:
        self._world = world
        self._console = console
        self._progress = _Progress()
        self._subscriptions: dict[str, list[str]] = {}
        self._session: aiohttp.ClientSession | None = None
        self._url = ""

    async def show(self, *, keep: asyncio.Event | None) -> None:
        """Play to the end; then go on until `keep` is set, if one is given.

        Raises `PlayError` or `WorldError`.
        """
        started = time.monotonic()
        async with (
            self._world,
            aiohttp.ClientSession(headers=self._world.headers()) as self._session,
        ):
            with self._console.status("starting the broker: Java, Spark, DuckDB") as status:
                self._url = await self._world.start_broker(_START_WAIT_S)
                await self._prepare(status)
            self._introduce()
            await self._play()
            self._summarise(time.monotonic() - started)
            if keep is not None:
                await self._go_on(keep)

    async def _prepare(self, status: Status) -> None:
        for path in sorted((self._world.examples / "queries").glob("*.xscl")):
            await self._call("PUT", f"queries/{path.stem}", data=path.read_bytes())
            await self._subscribe(path.stem)
        self._world.remember()
        status.update("waiting for Spark")
        await self._until_ready()
        self._world.feeds.open()

    async def _subscribe(self, query: str) -> None:
        """Subscribe to a query, unless an earlier showing in this directory has done so."""
        answer = await self._call("GET", f"subscriptions?query={query}")
        present = [row["id"] for row in answer["subscriptions"]]
        destinations = [] if present else [self._world.webhook_url(query)]
        if query in _BY_MAIL and not present:
            destinations.append(_READER)
        for destination in destinations:
            body = {"query": query, "destination": destination}
            made = await self._call("POST", "subscriptions", json=body)
            present.append(made["id"])
            if made["secret"]:
                self._world.webhooks.keys[query] = made["secret"]
        self._subscriptions[query] = present

    async def _until_ready(self) -> None:
        assert self._session is not None
        async with asyncio.timeout(_START_WAIT_S):
            while True:
                async with self._session.get(f"{self._url}/readyz") as answer:
                    if answer.status == HTTPStatus.OK:
                        return
                self._world.check_broker()
                await asyncio.sleep(_LOOK_EVERY_S)

    def _introduce(self) -> None:
        feeds = ", ".join(self._world.feeds.feeds)
        self._console.print(
            f"[bold]XSCL[/]  broker at {self._url}, data in {self._world.directory}"
        )
        self._console.print(f"  feeds    {feeds} [dim](RSS 2.0, RSS 1.0, Atom)[/]", highlight=False)
        for query in sorted(self._subscriptions):
            ways = "webhook, e-mail" if query in _BY_MAIL else "webhook"
            self._console.print(f"  query    {query} [dim]→ {ways}[/]", highlight=False)

    async def _play(self) -> None:
        deadline = time.monotonic() + _PLAY_WAIT_S
        heading(self._console, "round 1")
        with self._console.status("") as status:
            while not self._is_over():
                if time.monotonic() > deadline:
                    raise PlayError(f"not everything came in {_PLAY_WAIT_S:g} s: {self._missing()}")
                await self._look()
                await self._turn_round()
                status.update(self._state())
                await asyncio.sleep(_LOOK_EVERY_S)
        self._judge()

    async def _look(self) -> None:
        """Show what is new: documents, then matches whose deliveries have all arrived."""
        self._world.check_broker()
        progress = self._progress
        answer = await self._call("GET", f"documents?after={progress.after_docid}")
        for document in answer["documents"]:
            item = progress.items[document["docid"]] = read_item(document)
            progress.after_docid = document["docid"]
            self._console.print(document_line(item), no_wrap=True, overflow="ellipsis")
        answer = await self._call("GET", f"matches?after={progress.after_seq}")
        progress.after_seq = answer["next"]
        progress.matches += answer["matches"]
        progress.waiting += answer["matches"]
        for match in list(progress.waiting):
            deliveries = self._deliveries(match)
            if len(deliveries) == len(self._subscriptions.get(match["query"], [])):
                progress.waiting.remove(match)
                self._show_match(match, deliveries)

    def _show_match(self, match: dict[str, Any], deliveries: list[ReceivedDelivery]) -> None:
        items = [self._progress.items[document["docid"]] for document in match["documents"]]
        self._console.print(match_block(match, items, deliveries))

    def _deliveries(self, match: dict[str, Any]) -> list[ReceivedDelivery]:
        ids = [delivery_id(name, match["id"]) for name in self._subscriptions[match["query"]]]
        return [self._world.receipts.by_id[id_] for id_ in ids if id_ in self._world.receipts.by_id]

    async def _turn_round(self) -> None:
        """Go on to the next round when all of this one has arrived, matched and been delivered."""
        feeds = self._world.feeds
        if feeds.round == ROUNDS or not await self._is_round_over():
            return
        feeds.round += 1
        heading(self._console, f"round {feeds.round}")
        if feeds.round == _PUBLISH_IN:
            await self._publish()

    async def _is_round_over(self) -> bool:
        feeds = self._world.feeds
        published = _PUBLISHED if feeds.round >= _PUBLISH_IN else 0
        if self._progress.waiting or len(self._progress.items) < feeds.item_count() + published:
            return False
        figures = await self._figures()
        if figures["xscl_segments_committed"] < figures["xscl_segments_accepted"]:
            return False
        # What was committed a moment ago is still to be seen.
        await self._look()
        return not self._progress.waiting

    async def _figures(self) -> dict[str, float]:
        assert self._session is not None
        async with self._session.get(f"{self._url}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        pairs = (line.split() for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    async def _publish(self) -> None:
        """Give the book and its blog articles to the broker over HTTP, as a program would."""
        path = self._world.examples / "documents" / "books-and-blogs.jsonl"
        lines = moved(path.read_text(), self._world.feeds.shift)
        headers = {"Content-Type": "application/x-ndjson"}
        await self._call("POST", "streams/S/documents", data=lines.encode(), headers=headers)

    def _is_over(self) -> bool:
        return (
            self._world.feeds.round == ROUNDS
            and len(self._progress.items) >= self._documents()
            and not self._counts_missing()
            and not self._progress.waiting
        )

    def _documents(self) -> int:
        """Return how many documents there are when all rounds are over."""
        return self._world.feeds.item_count() + _PUBLISHED

    def _counts_missing(self) -> Counter[str]:
        found = Counter(match["query"] for match in self._progress.matches)
        return Counter(EXPECTED) - found

    def _missing(self) -> str:
        missing = [f"{count} of {query}" for query, count in self._counts_missing().items()]
        undelivered = [f"{match['query']} {match['id']}" for match in self._progress.waiting]
        said = [f"documents {len(self._progress.items)} of {self._documents()}"]
        if missing:
            said.append("matches missing: " + ", ".join(missing))
        if undelivered:
            said.append("not delivered everywhere: " + ", ".join(undelivered))
        return "; ".join(said) + f"; the broker's log is {self._world.directory}/broker.log"

    def _judge(self) -> None:
        surplus = Counter(m["query"] for m in self._progress.matches) - Counter(EXPECTED)
        if surplus:
            raise PlayError(f"there are matches that should not be: {dict(surplus)}")
        if self._world.webhooks.forged:
            raise PlayError(f"{self._world.webhooks.forged} webhooks had no valid signature")

    def _state(self) -> Text:
        progress, receipts = self._progress, self._world.receipts
        return Text.assemble(
            (f"round {self._world.feeds.round}", "bold"),
            f"  documents {len(progress.items)}  matches {len(progress.matches)}",
            f"  deliveries {len(receipts.by_id)}",
        )

    def _summarise(self, seconds: float) -> None:
        by_way = Counter(received.way for received in self._world.receipts.by_id.values())
        heading(self._console, "summary")
        print_ = self._console.print
        print_(
            f"  {len(self._progress.items)} documents from {len(self._world.feeds.feeds)} feeds"
            " and over HTTP"
        )
        for query, count in sorted(Counter(m["query"] for m in self._progress.matches).items()):
            print_(f"  {count} × {query}", highlight=False)
        ways = ", ".join(f"{count} by {way}" for way, count in sorted(by_way.items()))
        print_(f"  {len(self._world.receipts.by_id)} deliveries: {ways}", highlight=False)
        print_(f"  {seconds:.0f} s", style="dim")

    async def _go_on(self, keep: asyncio.Event) -> None:
        self._console.print(
            f"\nThe broker goes on at [bold]{self._url}[/]; Ctrl-C ends it. In another terminal:\n"
            f"  xscl --config {self._world.directory}/xscl.toml list\n"
            f"  xscl --config {self._world.directory}/xscl.toml tail --after 0\n"
            f"The page at that address asks for the token in {self._world.token_file}",
            highlight=False,
        )
        while not keep.is_set():
            await self._look()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _call(self, method: str, path: str, **arguments: Any) -> Any:
        assert self._session is not None
        url = f"{self._url}/v1/{path}"
        try:
            async with self._session.request(method, url, **arguments) as answer:
                if answer.status >= HTTPStatus.BAD_REQUEST:
                    raise PlayError(f"{method} {url}: {answer.status} {await answer.text()}")
                return await answer.json()
        except aiohttp.ClientConnectionError as error:
            await self._world.await_end_of_broker()
            raise PlayError(f"{method} {url}: {error}") from error
