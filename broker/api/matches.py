"""`/v1/matches`: the matches, page by page, and the newest as they are found."""

from __future__ import annotations

import asyncio
import json

from aiohttp import web

from broker.api.backend import BACKEND, Backend, in_thread
from broker.api.querystring import number
from broker.outbox import CommittedMatch

__all__ = ["ROUTES"]

_LIMIT_MAX = 1_000
_WAIT_MAX_S = 60.0


async def list_matches(request: web.Request) -> web.Response:
    """Answer matches numbered above `?after=`, and the number to go on from as `next`.

    Without `after` the answer begins with what comes next.  `?wait=` seconds lets the request
    wait for a match where there is none yet.
    """
    backend = request.app[BACKEND]
    query = request.query.get("query")
    limit = min(number(request, "limit", 100), _LIMIT_MAX)
    wait_s = min(float(number(request, "wait", 0)), _WAIT_MAX_S)
    newest = await in_thread(backend.outbox.last_seq)
    after = number(request, "after", newest)
    found, through = await in_thread(_page, backend, query, after, limit)
    if not found and wait_s:
        await _wait(backend, through, wait_s)
        found, through = await in_thread(_page, backend, query, after, limit)
    lines = [{"seq": match.seq, **json.loads(match.line)} for match in found]
    return web.json_response({"matches": lines, "next": through})


def _page(
    backend: Backend, query: str | None, after: int, limit: int
) -> tuple[list[CommittedMatch], int]:
    """Return the next matches, and the number behind which to go on."""
    newest = backend.outbox.last_seq()
    found = backend.outbox.matches(after, query=query, limit=limit)
    if len(found) == limit:
        return found, found[-1].seq
    return found, max([after, newest, *(match.seq for match in found)])


async def _wait(backend: Backend, through: int, wait_s: float) -> None:
    async with backend.committed:
        if backend.outbox.last_seq() > through:
            return
        try:
            await asyncio.wait_for(backend.committed.wait(), wait_s)
        except TimeoutError:
            return


ROUTES = [web.get("/v1/matches", list_matches)]
