"""`/v1/feeds`: the feeds that are polled, how they do, and what a feed would give.

The running poller notices within a second what is changed here.  Passwords and headers go in and
never come out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from aiohttp import web

from broker.api.backend import in_thread
from broker.api.body import json_object
from broker.api.problem import Problem
from broker.remedies import remedy_of
from feeds import Feed, FeedError, FeedStore, UnknownFeedError, feed_at
from feeds.feed import moved, with_headers
from feeds.fetcher import same_origin
from feeds.guard import Network
from feeds.health import health, healths, render_health
from feeds.options import parse_headers, parse_options, render_options
from feeds.poller import open_session
from feeds.preview import Preview, preview, render_preview
from feeds.state import STEERING
from feeds.websub import parse_lease

__all__ = ["ROUTES", "install"]

_MEMBERS = frozenset(("url", "stream", "options", "headers", "check"))
_CHECKS_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class FeedDesk:
    """The feeds, the private networks that they may be in, and the threads that look at one."""

    store: FeedStore
    allowed: Sequence[Network]
    checking: ThreadPoolExecutor


DESK = web.AppKey("feed_desk", FeedDesk)


def install(
    application: web.Application, store: FeedStore, *, allowed: Sequence[Network] = ()
) -> None:
    """Add the resources of this module, for the feeds of `store`."""

    async def open_and_close(application: web.Application) -> AsyncIterator[None]:
        yield
        application[DESK].checking.shutdown(wait=False, cancel_futures=True)

    checking = ThreadPoolExecutor(_CHECKS_AT_ONCE, thread_name_prefix="feeds-check")
    application[DESK] = FeedDesk(store, allowed, checking)
    application.cleanup_ctx.append(open_and_close)
    application.add_routes(ROUTES)


async def list_feeds(request: web.Request) -> web.Response:
    """Answer how each feed does, by URL; `?stream=` and `?status=` leave others out."""
    rows = await in_thread(_rows, request.app[DESK].store)
    wanted = {name: request.query[name] for name in ("stream", "status") if name in request.query}
    found = [row for row in rows if all(row[name] == wanted[name] for name in wanted)]
    return web.json_response({"feeds": found})


async def get_feed(request: web.Request) -> web.Response:
    """Answer one feed with its options, or 404.  Its URL is one percent-encoded segment."""
    return await _answer(request, request.match_info["url"])


async def post_feed(request: web.Request) -> web.Response:
    """Subscribe a feed, or the one that a page names; 409 where it is subscribed already.

    It is looked at first, and refused in words where it is no feed; not with `"check": false`.
    """
    desk, asked = request.app[DESK], await _asked(request)
    stream = asked.get("stream")
    if not isinstance(stream, str) or not stream:
        raise _refused("'stream' must be a string")
    feed = _feed(asked, stream)
    if asked.get("check", True):
        found = await _looked_at(desk, feed)
        feed = moved(feed, found.url, keeps_secrets=same_origin(feed.url, found.url))
    if not await in_thread(desk.store.add, feed):
        raise Problem(HTTPStatus.CONFLICT, f"{feed.url} is subscribed already")
    return await _answer(request, feed.url, status=HTTPStatus.CREATED)


async def check_feed(request: web.Request) -> web.Response:
    """Answer what the broker would make of a feed, without subscribing it."""
    found = await _looked_at(request.app[DESK], _feed(await _asked(request), ""))
    return web.json_response(await in_thread(render_preview, found))


async def pause_feed(request: web.Request) -> web.Response:
    """Stop checking a feed until it is resumed."""
    return await _steer(request, "pause")


async def resume_feed(request: web.Request) -> web.Response:
    """Check a paused feed again."""
    return await _steer(request, "resume")


async def refresh_feed(request: web.Request) -> web.Response:
    """Have a feed checked as soon as its host allows, also one that is gone."""
    return await _steer(request, "refresh")


async def delete_feed(request: web.Request) -> web.Response:
    """Unsubscribe a feed and forget which of its entries were seen."""
    store, url = request.app[DESK].store, request.match_info["url"]
    try:
        await in_thread(store.remove, url)
    except UnknownFeedError as error:
        raise Problem(HTTPStatus.NOT_FOUND, str(error)) from error
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def _steer(request: web.Request, action: str) -> web.Response:
    store, url = request.app[DESK].store, request.match_info["url"]
    try:
        await in_thread(lambda: store.change(url, **STEERING[action]))
    except UnknownFeedError as error:
        raise Problem(HTTPStatus.NOT_FOUND, str(error)) from error
    return await _answer(request, url)


async def _asked(request: web.Request) -> dict[str, Any]:
    asked = await json_object(request, _MEMBERS)
    for name in ("options", "headers"):
        if not isinstance(asked.get(name, {}), dict):
            raise _refused(f"{name!r} must be an object")
    return asked


def _feed(asked: dict[str, Any], stream: str) -> Feed:
    if not isinstance(asked.get("url"), str):
        raise _refused("'url' must be a string")
    try:
        feed = feed_at(asked["url"], stream)
        feed = replace(feed, options=parse_options(asked.get("options", {})))
        headers = parse_headers(asked.get("headers", {}))
    except FeedError as error:
        raise _refused(error.detail) from error
    except ValueError as error:
        raise _refused(str(error)) from error
    return with_headers(feed, headers) if headers else feed


async def _looked_at(desk: FeedDesk, feed: Feed) -> Preview:
    def look() -> Preview | FeedError:
        # In a loop of its own: reading a large feed must not hold up other requests.
        return asyncio.run(_preview(desk.allowed, feed))

    found = await asyncio.get_running_loop().run_in_executor(desk.checking, look)
    if isinstance(found, FeedError):
        extra = {"fault": found.fault.value, "url": found.url, "hint": remedy_of(found.fault)}
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(found), extra=extra)
    return found


async def _preview(allowed: Sequence[Network], feed: Feed) -> Preview | FeedError:
    async with open_session(allowed) as session:
        return await preview(session, feed, _now_us())


async def _answer(
    request: web.Request, url: str, status: HTTPStatus = HTTPStatus.OK
) -> web.Response:
    return web.json_response(await in_thread(_shown, request.app[DESK].store, url), status=status)


def _shown(store: FeedStore, url: str) -> dict[str, Any]:
    try:
        subscribed = store.get(url)
    except UnknownFeedError as error:
        raise Problem(HTTPStatus.NOT_FOUND, str(error)) from error
    lease = store.leases().get(url)
    found = health(subscribed, _now_us(), None if lease is None else parse_lease(lease))
    return {
        **render_health(found),
        "options": render_options(subscribed.feed.options),
        "has_secrets": bool(subscribed.feed.secrets),
    }


def _rows(store: FeedStore) -> list[dict[str, Any]]:
    return [render_health(found) for found in healths(store, _now_us())]


def _now_us() -> int:
    return time.time_ns() // 1_000


def _refused(detail: str) -> Problem:
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


ROUTES = [
    web.get("/v1/feeds", list_feeds),
    web.post("/v1/feeds", post_feed),
    web.post("/v1/feeds/check", check_feed),
    web.get("/v1/feeds/{url}", get_feed),
    web.delete("/v1/feeds/{url}", delete_feed),
    web.post("/v1/feeds/{url}/pause", pause_feed),
    web.post("/v1/feeds/{url}/resume", resume_feed),
    web.post("/v1/feeds/{url}/refresh", refresh_feed),
]
