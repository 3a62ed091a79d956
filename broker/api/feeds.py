"""`/v1/feeds`: the feeds that are polled, how they do, and what a feed would give.

The running poller notices within a second what is changed here.  Passwords and headers go in and
never come out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar

from aiohttp import web

from broker.api.audit import note
from broker.api.body import bytes_of, json_object
from broker.api.problem import Problem
from broker.documents.document import check_stream
from broker.operations.remedies import refusal_of
from feeds import FeedError, FeedStore, UnknownFeedError
from feeds.administration import DOCUMENTS_SHOWN, REFUSALS, FeedAdministration, KnownFeedError
from feeds.guard import Network
from feeds.parser import ITEMS_MAX

__all__ = ["FEED_ADMINISTRATION", "ROUTES", "install"]

T = TypeVar("T")
_ADDED = frozenset(("url", "stream", "options", "headers", "check"))
_CHECKED = frozenset(("url", "options", "headers", "documents"))
_LOOKS_AT_ONCE = 2

FEED_ADMINISTRATION = web.AppKey("feed_administration", FeedAdministration)
_LOOKING = web.AppKey("feeds_looking", ThreadPoolExecutor)


def install(
    application: web.Application, store: FeedStore, *, allowed: Sequence[Network] = ()
) -> None:
    """Add the resources of this module, for the feeds of `store`."""

    async def open_and_close(application: web.Application) -> AsyncIterator[None]:
        yield
        application[_LOOKING].shutdown(wait=False, cancel_futures=True)

    application[FEED_ADMINISTRATION] = FeedAdministration(store, allowed)
    application[_LOOKING] = ThreadPoolExecutor(_LOOKS_AT_ONCE, thread_name_prefix="feeds-look")
    application.cleanup_ctx.append(open_and_close)
    application.add_routes(ROUTES)


async def list_feeds(request: web.Request) -> web.Response:
    """Answer how each feed does, by URL; `?stream=` and `?status=` leave others out."""
    rows = await _asked(request, FeedAdministration.feeds)
    wanted = {name: request.query[name] for name in ("stream", "status") if name in request.query}
    found = [row for row in rows if all(row[name] == wanted[name] for name in wanted)]
    return web.json_response({"feeds": found})


async def get_feed(request: web.Request) -> web.Response:
    """Answer one feed with its options, or 404.  Its URL is one percent-encoded segment."""
    url = request.match_info["url"]
    return web.json_response(await _asked(request, lambda administration: administration.feed(url)))


async def post_feed(request: web.Request) -> web.Response:
    """Subscribe a feed, or the one that a page names; 409 where it is subscribed already.

    It is looked at first, and refused in words where it is no feed; not with `"check": false`.
    """
    body = await _body(request, _ADDED)
    if not isinstance(body.get("stream"), str) or not body["stream"]:
        raise _refused("'stream' must be the name of a stream")
    check_stream(body["stream"])
    note(request, body["url"], stream=body["stream"])
    looks = body.get("check", True)
    if not isinstance(looks, bool):
        raise _refused("'check' must be true or false")
    added = await _asked(request, lambda administration: administration.add(**body), looks=looks)
    return web.json_response(added, status=HTTPStatus.CREATED)


async def check_feed(request: web.Request) -> web.Response:
    """Answer what the broker would make of a feed, without subscribing it."""
    body = await _body(request, _CHECKED)
    documents = body.get("documents", DOCUMENTS_SHOWN)
    if type(documents) is not int or not 1 <= documents <= ITEMS_MAX:
        raise _refused(f"'documents' must be a whole number from 1 to {ITEMS_MAX}")
    return web.json_response(
        await _asked(request, lambda administration: administration.check(**body), looks=True)
    )


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
    url = request.match_info["url"]
    await _asked(request, lambda administration: administration.remove(url))
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def export_feeds(request: web.Request) -> web.Response:
    """Answer all feeds as OPML, without their secrets."""
    opml = await _asked(request, FeedAdministration.list_as_opml)
    return web.Response(body=opml, content_type="text/x-opml", charset="utf-8")


async def import_feeds(request: web.Request) -> web.Response:
    """Subscribe the feeds of an OPML document, unseen; `?stream=` is for those in no folder."""
    opml = await bytes_of(request)
    stream = request.query.get("stream") or "feeds"
    check_stream(stream)
    return web.json_response(
        await _asked(request, lambda administration: administration.take_list(opml, stream))
    )


async def _steer(request: web.Request, action: str) -> web.Response:
    url = request.match_info["url"]
    return web.json_response(
        await _asked(request, lambda administration: administration.steer(url, action))
    )


async def _body(request: web.Request, members: Collection[str]) -> dict[str, Any]:
    """Return the members of a body; `options` and `headers` are always there."""
    body: dict[str, Any] = {"options": {}, "headers": {}, **await json_object(request, members)}
    if not isinstance(body.get("url"), str):
        raise _refused("'url' must be a string")
    for name in ("options", "headers"):
        if not isinstance(body[name], dict):
            raise _refused(f"{name!r} must be an object")
    return body


async def _asked(
    request: web.Request, work: Callable[[FeedAdministration], T], *, looks: bool = False
) -> T:
    """Return what `work` makes of the feeds, in a thread; `looks` says that it asks the web."""
    threads = request.app[_LOOKING] if looks else None
    loop = asyncio.get_running_loop()
    try:
        return await loop.run_in_executor(threads, work, request.app[FEED_ADMINISTRATION])
    except REFUSALS as error:
        raise _problem(error) from error


def _problem(error: Exception) -> Problem:
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    if isinstance(error, UnknownFeedError):
        status = HTTPStatus.NOT_FOUND
    elif isinstance(error, KnownFeedError):
        status = HTTPStatus.CONFLICT
    detail, hint = refusal_of(error)
    extra = {} if hint is None else {"hint": hint}
    if isinstance(error, FeedError) and error.url:
        extra |= {"fault": error.fault.value, "url": error.url}
    return Problem(status, detail, extra=extra)


def _refused(detail: str) -> Problem:
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


ROUTES = [
    web.get("/v1/feeds", list_feeds),
    web.post("/v1/feeds", post_feed),
    web.get("/v1/feeds.opml", export_feeds),
    web.post("/v1/feeds.opml", import_feeds),
    web.post("/v1/feeds/check", check_feed),
    web.get("/v1/feeds/{url}", get_feed),
    web.delete("/v1/feeds/{url}", delete_feed),
    web.post("/v1/feeds/{url}/pause", pause_feed),
    web.post("/v1/feeds/{url}/resume", resume_feed),
    web.post("/v1/feeds/{url}/refresh", refresh_feed),
]
