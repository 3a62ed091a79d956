"""A feed server on loopback that behaves as a test tells it to, and keeps the requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from email.utils import formatdate
from html import escape

from aiohttp import web

Answer = web.StreamResponse | Callable[[web.Request], Awaitable[web.StreamResponse]]
LOOPBACK = ("127.0.0.0/8", "::1")


@dataclass(slots=True)
class FeedServer:
    """Serves `pages[path]`: a page, a list of pages (the last stays), or a handler."""

    runner: web.AppRunner
    port: int = 0
    pages: dict[str, object] = field(default_factory=dict)
    requests: list[web.Request] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    async def listen(self, host: str) -> None:
        """Serve at another loopback address too: to a client it is another host."""
        if host not in self.hosts:
            self.hosts.add(host)
            await web.TCPSite(self.runner, host, self.port).start()
            self.port = self.port or self.runner.addresses[0][1]

    async def close(self) -> None:
        await self.runner.cleanup()

    def url(self, path: str = "/feed", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def headers(self, name: str) -> list[str | None]:
        """What each request so far said in the header `name`."""
        return [request.headers.get(name) for request in self.requests]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        page = self.pages.get(request.path)
        if page is None:
            return web.Response(status=404, text="nothing here")
        if isinstance(page, list):
            page = page.pop(0) if len(page) > 1 else page[0]
        if callable(page):
            return await page(request)
        assert isinstance(page, Page)
        return page.response(request)


@dataclass(frozen=True, slots=True)
class Page:
    """A response that can be given many times; with `etag` it knows conditional requests."""

    body: str | bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    etag: str | None = None

    def response(self, request: web.Request) -> web.Response:
        headers = {"Content-Type": "application/rss+xml", **self.headers}
        if self.etag is not None:
            headers["ETag"] = self.etag
            if request.headers.get("If-None-Match") == self.etag:
                return web.Response(status=304, headers={"ETag": self.etag, **self.headers})
        body = self.body.encode() if isinstance(self.body, str) else self.body
        return web.Response(status=self.status, body=body, headers=headers)


@dataclass
class ManualClock:
    """A clock that stands still until it is moved."""

    time_us: int = 1_767_312_000_000_000

    def now_us(self) -> int:
        return self.time_us

    def advance(self, seconds: float) -> None:
        self.time_us += int(seconds * 1e6)


async def start_feed_server() -> FeedServer:
    """Start a server on a free port of 127.0.0.1; `await server.close()` when done."""
    app = web.Application()
    started = FeedServer(web.AppRunner(app, shutdown_timeout=0.1))
    app.router.add_route("*", "/{tail:.*}", started.answer)
    await started.runner.setup()
    await started.listen("127.0.0.1")
    return started


def rss(*entries: str, title: str = "A feed", extra: str = "") -> str:
    """Return an RSS 2.0 document; `extra` goes into its channel."""
    body = "".join(entries)
    return (
        '<?xml version="1.0"?><rss version="2.0"><channel>'
        f"<title>{escape(title)}</title><link>https://example.org/</link>{extra}{body}"
        "</channel></rss>"
    )


def entry(number: int, **fields: str) -> str:
    """Return an RSS item, dated `number` minutes after the year 2026 began."""
    values = {
        "guid": f"urn:item:{number}",
        "title": f"Item {number}",
        "link": f"https://example.org/{number}",
        "pubDate": formatdate(1_767_225_600 + 60 * number, usegmt=True),
        **fields,
    }
    return "<item>" + "".join(f"<{k}>{escape(v)}</{k}>" for k, v in values.items()) + "</item>"


def entries(numbers: Iterable[int]) -> str:
    """Return items, newest first as feeds have them."""
    return "".join(entry(number) for number in sorted(numbers, reverse=True))
