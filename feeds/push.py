"""The subscriber side of WebSub, doing: ask hubs, answer their questions, take their pushes.

`Push.routes` are mounted by whoever runs the HTTP server; `base_url` is where hubs reach them.
A push is answered at once, always with 2xx, and taken in afterwards: a hub must learn nothing
from our answer, and must not wait for our disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from feeds import websub
from feeds.state import FeedState
from feeds.store import FeedStore
from feeds.websub import Lease

__all__ = ["Push", "Pushed"]

logger = logging.getLogger(__name__)

_QUEUE_MAX = 100
_BODY_BYTES_MAX = 10_000_000
_BODY_TIMEOUT_S = 120.0
_ASK_TIMEOUT_S = 30.0
_ROUND_S = 30.0


@dataclass(frozen=True, slots=True)
class Pushed:
    """A feed document that a hub has pushed and signed."""

    url: str
    body: bytes
    content_type: str


class Push:
    """The push subscriptions of one store.

    `path` is where the callbacks live under `base_url`, for instance
    `https://broker.example.org` and `/websub`.
    """

    def __init__(
        self,
        store: FeedStore,
        *,
        base_url: str,
        now_us: Callable[[], int],
        path: str = "/websub",
    ) -> None:
        self._store = store
        self._path = path
        self.move_to(base_url)
        self._now_us = now_us
        self._leases = {url: websub.parse_lease(t) for url, t in store.leases().items()}
        self._queue: asyncio.Queue[Pushed] = asyncio.Queue(_QUEUE_MAX)

    def move_to(self, base_url: str) -> None:
        """Say under which URL hubs reach the callbacks from now on; leases follow when renewed."""
        self._base = base_url.rstrip("/") + self._path

    def routes(self) -> list[web.RouteDef]:
        """Return what the broker's HTTP server mounts."""
        return [
            web.get(self._path + "/{token}", self._verify, allow_head=False),
            web.post(self._path + "/{token}", self._take),
        ]

    def lease(self, url: str) -> Lease | None:
        """Return what is agreed with the hub of a feed."""
        return self._leases.get(url)

    def is_working(self, url: str, now_us: int) -> bool:
        """Return whether the feed's hub pushes, so that polling may become a backup."""
        lease = self._leases.get(url)
        return lease is not None and websub.is_working(lease, now_us)

    def note_polled_news(self, url: str, now_us: int) -> None:
        """Count against the hub that a poll found entries which it had not pushed."""
        lease = self._leases.get(url)
        if lease is not None and lease.state == "active" and now_us < lease.expires_us:
            self._keep(url, websub.missed(lease))

    async def run(
        self, session: aiohttp.ClientSession, take: Callable[[Pushed], Awaitable[object]]
    ) -> None:
        """Ask hubs when leases fall due and hand pushes to `take`, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ask_for_ever(session))
            tasks.create_task(self._hand_on_for_ever(take))

    async def ask_due(self, session: aiohttp.ClientSession) -> int:
        """Ask each hub whose feed wants a lease now; return how many were asked."""
        now_us = self._now_us()
        due = [
            (each.feed.url, lease)
            for each in await asyncio.to_thread(self._store.all)
            if (lease := self._wanted(each.feed.url, each.state)) is not None
            and websub.ask_at_us(lease) <= now_us
        ]
        for url, lease in due:
            await self._ask(session, url, lease)
        return len(due)

    def _wanted(self, url: str, state: FeedState) -> Lease | None:
        """The lease that the feed should have: a new one where it has changed hub or topic."""
        if not state.hub or not state.topic or state.paused or state.gone:
            return None
        lease = self._leases.get(url)
        if lease is None or (lease.hub, lease.topic) != (state.hub, state.topic):
            return websub.new_lease(state.hub, state.topic)
        return lease

    async def _ask(self, session: aiohttp.ClientSession, url: str, lease: Lease) -> None:
        # Stored before asking: the hub may verify while its answer is still on the way.
        self._keep(url, websub.asked(lease, self._now_us()))
        form = websub.subscription_form(lease, f"{self._base}/{lease.token}")
        error = await _post(session, lease.hub, form)
        current = self._leases[url]
        if error and current.token == lease.token:
            logger.info("the hub of %s did not take our request: %s", url, error)
            self._keep(url, websub.asked(current, self._now_us(), error))

    def _keep(self, url: str, lease: Lease) -> None:
        self._leases[url] = lease
        self._store.set_lease(url, lease.token, websub.render_lease(lease))

    def _by_token(self, request: web.Request) -> tuple[str, Lease] | None:
        url = self._store.url_of_token(request.match_info["token"])
        lease = self._leases.get(url) if url is not None else None
        return None if url is None or lease is None else (url, lease)

    async def _verify(self, request: web.Request) -> web.Response:
        found = self._by_token(request)
        if found is None:
            return web.Response(status=404)
        url, lease = found
        answer = websub.verified(lease, request.query, self._now_us())
        if answer.lease is not lease:
            self._keep(url, answer.lease)
        return web.Response(status=answer.status, text=answer.body)

    async def _take(self, request: web.Request) -> web.Response:
        found = self._by_token(request)
        body = await _bounded_body(request)
        if found is not None and body is not None:
            self._queue_if_signed(*found, body, request)
        return web.Response(status=202)

    def _queue_if_signed(self, url: str, lease: Lease, body: bytes, request: web.Request) -> None:
        signature = request.headers.get("X-Hub-Signature", "")
        if not websub.is_signed(lease, signature, body):
            logger.warning("a push for %s had no right signature; it was dropped", url)
            return
        self._keep(url, websub.pushed(lease, self._now_us()))
        try:
            self._queue.put_nowait(Pushed(url, body, request.headers.get("Content-Type", "")))
        except asyncio.QueueFull:
            # Nothing is lost: the backup check finds what this push would have brought.
            logger.warning("too many pushes at once; one for %s was left to the next check", url)

    async def _ask_for_ever(self, session: aiohttp.ClientSession) -> None:
        while True:
            try:
                await self.ask_due(session)
            except Exception:
                logger.exception("hubs could not be asked; it is tried again")
            await asyncio.sleep(_ROUND_S)

    async def _hand_on_for_ever(self, take: Callable[[Pushed], Awaitable[object]]) -> None:
        while True:
            pushed = await self._queue.get()
            try:
                await take(pushed)
            except Exception:
                logger.exception("a push for %s was left to the next check", pushed.url)


async def _post(session: aiohttp.ClientSession, hub: str, form: dict[str, str]) -> str:
    """Return "" where the hub took the request, else why not."""
    timeout = aiohttp.ClientTimeout(total=_ASK_TIMEOUT_S)
    try:
        async with session.post(hub, data=form, timeout=timeout, allow_redirects=False) as answer:
            return "" if answer.status // 100 == 2 else f"it answered {answer.status}"
    except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
        return str(error) or type(error).__name__


async def _bounded_body(request: web.Request) -> bytes | None:
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            async for chunk in request.content.iter_chunked(65_536):
                body += chunk
                if len(body) > _BODY_BYTES_MAX:
                    return None
    except TimeoutError:
        return None
    return bytes(body)
