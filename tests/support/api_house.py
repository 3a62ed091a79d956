"""A broker's whole HTTP API, closed, with a token of each scope and two subscribers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from lxml import html

from broker.api import feeds as feeds_api
from broker.api.access import Gate
from broker.api.http import add_deliveries, make_application
from broker.api.pickup import Pickup
from broker.registry.audit import AuditTrail
from broker.registry.subscription import Destination
from broker.registry.tokens import Tokens, TokenScope
from broker.web import pages
from feeds import FeedStore, networks
from feeds.push import Push
from support.api_room import Room, match

SAME = "news//item->a FOLLOWED BY {a/title = b/title, 2 days} news//item->b"
BODY_BYTES_MAX = 10_000

Route = tuple[str, str]


def routes_of(application: web.Application) -> list[Route]:
    """Every method and pattern that an application serves."""
    return [
        (route.method, route.resource.canonical)
        for route in application.router.routes()
        if route.resource is not None
    ]


@dataclass
class House:
    """A broker's whole API with a token of each scope and two subscribers' subscriptions."""

    client: TestClient
    room: Room
    tokens: Tokens
    pickup: Pickup
    secrets: dict[str, str]
    mine: str
    theirs: str

    @property
    def url(self) -> str:
        """Where it is served."""
        return str(self.client.make_url("")).rstrip("/")

    async def publish(self, xml: str, time: str) -> None:
        """Publish a document of the stream `news`, as somebody else's program does."""
        headers = {"Authorization": f"Bearer {self.secrets['admin']}"}
        url = f"/v1/streams/news/documents?time={time}"
        async with self.client.post(url, data=xml.encode(), headers=headers) as answer:
            assert answer.status == 200

    def routes(self) -> list[Route]:
        """Every method and pattern that the application serves."""
        return routes_of(self.client.app)

    async def ask(
        self, route: Route, token: str | None = None, *, subscription: str = "", **headers: str
    ) -> tuple[int, str]:
        """Make a request that would work if it were allowed; return status and text."""
        method, pattern = route
        if token is not None:
            headers["Authorization"] = f"Bearer {self.secrets.get(token, token)}"
        kept = subscription or self.theirs
        path = pattern.format(
            id=kept if "/subscriptions/" in pattern else "other",
            stream="news",
            docid="1",
            seq="1",
            name="reader",
            token="t",
            address="a@example.org",
            url="u",
        )
        body = self._body(route)
        async with self.client.request(method, path, headers=headers, **body) as answer:
            is_endless = pattern.endswith(("/stream", "/live")) and answer.status == 200
            return answer.status, "" if is_endless else await answer.text()

    async def log_in(self, token: str) -> str:
        """Log in as a browser does, and return what forms of this session say."""
        form = {"token": self.secrets.get(token, token)}
        async with self.client.post("/login", data=form, allow_redirects=False) as answer:
            assert answer.status == 303
        async with self.client.get("/") as answer:
            tree = html.fromstring(await answer.text())
        (found,) = tree.xpath("//meta[@name='xscl-form']/@content")
        return str(found)

    def _body(self, route: Route) -> dict[str, Any]:
        method, pattern = route
        if pattern.endswith("/documents"):
            return {"data": b"<item/>"} if method == "POST" else {}
        if method == "PUT" and pattern.startswith("/v1/queries"):
            return {"data": SAME.encode()}
        if method == "POST" and pattern == "/v1/subscriptions":
            return {"json": {"query": "other", "destination": "pull"}}
        if method == "POST" and pattern == "/v1/tokens":
            return {"json": {"name": "mallory", "scopes": ["admin"]}}
        if pattern.endswith("/replay"):
            return {"params": {"since": "all"}}
        return {"json": {}} if "/consumers/{name}" in pattern and method != "GET" else {}

    def state(self) -> tuple[object, ...]:
        """All that a request could change."""
        return (
            self.room.registry.revision(),
            self.room.spool.next_docid,
            self.room.outbox.matches.last_seq(),
            [token.name for token in self.tokens.tokens()],
            self.room.registry.suppressed.entries(),
            [self.pickup.consumers.consumers(each) for each in (self.mine, self.theirs)],
        )


@contextlib.asynccontextmanager
async def open_house(directory: Path) -> AsyncIterator[House]:
    room = Room(directory)
    room.ingest.start()
    tokens = Tokens(directory / "tokens.db")
    trail = AuditTrail(directory / "audit.db")
    feed_store = FeedStore(directory / "feeds.db")
    for name in ("same", "other"):
        room.registry.register(name, SAME, version="1", point=0)
    mine, theirs = (
        room.registry.subscribe(name, Destination.parse("pull"), point=0).id
        for name in ("same", "other")
    )
    await room.commit(match(1), match(2, "other"))
    secrets = {}
    for scope in TokenScope:
        own = [mine] if scope is TokenScope.SUBSCRIBE else []
        secrets[scope.value] = tokens.create(scope.value, [scope], subscriptions=own)[1]
    pickup = Pickup(room.outbox, room.registry)
    application = make_application(
        room.backend, body_bytes_max=BODY_BYTES_MAX, gate=Gate(tokens), trail=trail
    )
    add_deliveries(application, pickup)
    pages.install(application)
    push = Push(feed_store, base_url="https://broker.example", now_us=lambda: 0)
    application.add_routes(push.routes())
    feeds_api.install(application, feed_store, allowed=networks(["127.0.0.0/8"]))
    try:
        async with TestClient(TestServer(application)) as client:
            yield House(client, room, tokens, pickup, secrets, mine, theirs)
    finally:
        room.close()
        for file in (tokens, trail, feed_store):
            file.close()
