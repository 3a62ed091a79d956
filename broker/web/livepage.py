"""Server-sent events that tell a page to ask for itself again, after commits and now and then.

An event says only that there may be something new.  The page says what, and only to a token that
is good for it, so any token may follow.  Where nobody looks, nothing runs.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from aiohttp import web

from broker.api.access import is_still_admitted
from broker.api.backend import BACKEND, Backend
from broker.api.problem import Problem
from broker.web.rendering import HEADERS

__all__ = ["LOOKING_MAX", "ROUTES", "install"]

LOOKING_MAX = 50
"""Pages that are told at a time; others ask every few seconds, as the script does then."""

_LEAST_S = 2.0
_MOST_S = 5.0
"""A page is told after so long all the same, for what no commit changes, as the state of feeds."""

_CHANGE = b"event: change\ndata: now\n\n"

_LOOKING = web.AppKey("looking", set[asyncio.Task[object]])


def install(application: web.Application) -> None:
    """Have streams end before the application does."""
    application[_LOOKING] = set()

    async def end(application: web.Application) -> None:
        for task in application[_LOOKING]:
            task.cancel()

    application.on_shutdown.append(end)


async def tell_changes(request: web.Request) -> web.StreamResponse:
    """Send an event whenever a page may have changed, until its token is revoked."""
    looking, task = request.app[_LOOKING], asyncio.current_task()
    assert task is not None
    if len(looking) >= LOOKING_MAX:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open; this one asks")
    response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
    looking.add(task)
    try:
        await response.prepare(request)
        await response.write(b"retry: 2000\n\n")
        while True:
            # Both begin now: a commit within the shortest time is told at its end.
            await asyncio.gather(
                asyncio.sleep(_LEAST_S), _next_commit(request.app[BACKEND], _MOST_S)
            )
            if not is_still_admitted(request):
                return response
            await response.write(_CHANGE)
    except ConnectionResetError:
        return response
    finally:
        looking.discard(task)


async def _next_commit(backend: Backend, wait_s: float) -> None:
    """Wait for a commit, but no longer than so many seconds."""
    try:
        async with asyncio.timeout(wait_s), backend.committed:
            await backend.committed.wait()
    except TimeoutError:
        pass


ROUTES = [web.get("/live", tell_changes, allow_head=False)]
