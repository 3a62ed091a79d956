"""What subscribers fetch themselves: event streams, pages, and Atom feeds."""

from __future__ import annotations

import asyncio
import json
from functools import lru_cache
from http import HTTPStatus

from aiohttp import web

from broker.api.backend import BACKEND, evaluated_through, in_thread
from broker.api.pickup import PICKUP
from broker.api.problem import Problem
from broker.api.querystring import bounded, number
from broker.delivery import atom
from broker.pipeline.matchlog import CommittedMatch
from broker.registry.file import RegistryError
from broker.registry.subscription import Subscription

__all__ = ["ROUTES"]

_HEARTBEAT_S = 15.0
_CHECK_S = 5.0
"""How long a stream may outlast its subscription."""

_WAIT_MAX_S = 60
_FEED_MAX = 100
_LIMIT_MAX = 1_000


async def stream(request: web.Request) -> web.StreamResponse:
    """Send the subscription's matches as server-sent events, as they are committed, without end.

    An event's id is its match number; `Last-Event-ID`, or `?after=`, goes on behind it.  Without
    either the stream begins with what comes next.  Where the query has been removed, and all that
    it found has been sent, the stream ends, and who comes back is answered with 204.
    """
    pickup = request.app[PICKUP]
    subscription = await pickup.subscription(request)
    cursor = await _cursor(request)
    if await _is_over(request, subscription) and not await pickup.hub.next(
        subscription, after=cursor, wait_s=0
    ):
        # By which clients of event streams know that they need not come back.
        return web.Response(status=HTTPStatus.NO_CONTENT)
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    )
    await response.prepare(request)
    try:
        # An id without data: who is cut off before the first match comes back to this place.
        await response.write(f"retry: 2000\nid: {cursor}\n\n".encode())
        await _send_matches(request, response, cursor)
    except (ConnectionResetError, Problem, RegistryError):
        # The client has left, or may read no more; it is told when it comes back.
        pass
    return response


async def _send_matches(request: web.Request, response: web.StreamResponse, cursor: int) -> None:
    pickup, loop = request.app[PICKUP], asyncio.get_running_loop()
    subscription, checked_at = await pickup.subscription(request), loop.time()
    while True:
        if loop.time() - checked_at > _CHECK_S:
            subscription, checked_at = await pickup.subscription(request), loop.time()
        is_over = await _is_over(request, subscription)
        wait_s = 0 if is_over else _HEARTBEAT_S
        found = await pickup.hub.next(subscription, after=cursor, wait_s=wait_s)
        if found:
            cursor = found[-1].seq
            await response.write(b"".join(map(_event, found)))
        elif is_over:
            return
        else:
            # A line that is no event: it tells both sides that the other is there.
            await response.write(b":\n\n")


async def _is_over(request: web.Request, subscription: Subscription) -> bool:
    """Return whether all that a subscription will ever get is committed."""
    until, backend = subscription.until, request.app[BACKEND]
    if until is None:
        return False

    def work() -> bool:
        waiting = (each.query for each in backend.registry.backfills())
        return evaluated_through(backend) >= until and subscription.query not in waiting

    return await in_thread(work)


async def matches(request: web.Request) -> web.Response:
    """Answer the subscription's matches behind `?after=`, and the number to go on from as `next`.

    `?wait=` seconds lets the request wait for a match where there is none yet.
    """
    pickup = request.app[PICKUP]
    subscription = await pickup.subscription(request)
    cursor = await _cursor(request)
    found = await pickup.hub.next(
        subscription, after=cursor, wait_s=min(number(request, "wait", 0), _WAIT_MAX_S)
    )
    found = found[: bounded(request, "limit", _LIMIT_MAX, _LIMIT_MAX)]
    lines = [{"seq": match.seq, **json.loads(match.line)} for match in found]
    return web.json_response({"matches": lines, "next": found[-1].seq if found else cursor})


async def subscription_feed(request: web.Request) -> web.Response:
    """Answer the subscription's newest matches as an Atom feed."""
    pickup = request.app[PICKUP]
    subscription = await pickup.subscription(request)
    newest = await asyncio.to_thread(
        pickup.outbox.matches.newest_of_topic,
        *subscription.topic,
        point=subscription.point,
        until=subscription.until,
        limit=_FEED_MAX,
    )
    url = f"{pickup.base_url}/v1/subscriptions/{subscription.id}/feed.atom"
    body = await asyncio.to_thread(atom.matches_feed, subscription.query, url, newest)
    return _feed(request, body)


async def stream_feed(request: web.Request) -> web.Response:
    """Answer the newest documents of a stream that a query publishes as an Atom feed."""
    pickup, name = request.app[PICKUP], request.match_info["stream"]
    newest = await asyncio.to_thread(pickup.outbox.latest_published, name, limit=_FEED_MAX)
    if not newest:
        raise Problem(HTTPStatus.NOT_FOUND, f"no query has published to {name!r} yet")
    url = f"{pickup.base_url}/v1/streams/{name}/feed.atom"
    return _feed(request, await asyncio.to_thread(atom.stream_feed, name, url, newest))


async def _cursor(request: web.Request) -> int:
    last = request.headers.get("Last-Event-ID", "").strip()
    if last.isdecimal() and len(last) <= 18:
        return int(last)
    if "after" in request.query:
        return number(request, "after", 0)
    return await asyncio.to_thread(request.app[PICKUP].outbox.matches.last_seq)


@lru_cache(maxsize=1_024)
def _event(match: CommittedMatch) -> bytes:
    # A match line has no line end in it, so it is one line of data.
    return f"id: {match.seq}\nevent: match\ndata: {match.line}\n\n".encode()


def _feed(request: web.Request, body: bytes) -> web.Response:
    tag = atom.etag(body)
    known = {each.value for each in request.if_none_match or ()}
    headers = {"ETag": f'"{tag}"', "Cache-Control": "private, max-age=60"}
    if tag in known or "*" in known:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    return web.Response(
        body=body, content_type="application/atom+xml", charset="utf-8", headers=headers
    )


ROUTES = [
    web.get("/v1/subscriptions/{id}/stream", stream, allow_head=False),
    web.get("/v1/subscriptions/{id}/matches", matches),
    web.get("/v1/subscriptions/{id}/feed.atom", subscription_feed),
    web.get("/v1/streams/{stream}/feed.atom", stream_feed),
]
