"""`/v1/matches`: the matches, page by page, and the newest as they are found."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from aiohttp import web

from broker.api.backend import BACKEND, Backend, in_thread
from broker.api.querystring import bounded, moment, number
from broker.pipeline.matchlog import CommittedMatch

__all__ = ["ROUTES"]

_LIMIT_MAX = 1_000
_WAIT_MAX_S = 60.0


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a request wants of the matches; times are when they were found."""

    query: str | None
    document: int | None
    since_us: int | None
    until_us: int | None
    limit: int


async def list_matches(request: web.Request) -> web.Response:
    """Answer matches numbered above `?after=`, and the number to go on from as `next`.

    `?query=`, `?document=`, `?since=` and `?until=` (when they were found) leave others out.
    Without `after` and `since` the answer begins with what comes next.  `?wait=` seconds lets the
    request wait for a match where there is none yet.
    """
    backend = request.app[BACKEND]
    wanted = _Wanted(
        query=request.query.get("query"),
        document=number(request, "document", 0) if "document" in request.query else None,
        since_us=moment(request, "since"),
        until_us=moment(request, "until"),
        limit=bounded(request, "limit", 100, _LIMIT_MAX),
    )
    wait_s = min(float(number(request, "wait", 0)), _WAIT_MAX_S)
    newest = await in_thread(backend.outbox.matches.last_seq)
    after = number(request, "after", newest if wanted.since_us is None else 0)
    found, through = await in_thread(_page, backend, wanted, after)
    if not found and wait_s:
        await _wait(backend, through, wait_s)
        found, through = await in_thread(_page, backend, wanted, after)
    lines = [{"seq": match.seq, **json.loads(match.line)} for match in found]
    return web.json_response({"matches": lines, "next": through})


def _page(backend: Backend, wanted: _Wanted, after: int) -> tuple[list[CommittedMatch], int]:
    """Return the next matches, and the number behind which to go on."""
    outbox = backend.outbox
    newest = outbox.matches.last_seq()
    if wanted.since_us is not None:
        after = max(after, outbox.matches.seq_since(wanted.since_us))
    found = outbox.matches.find(
        after,
        query=wanted.query,
        document=wanted.document,
        through=None if wanted.until_us is None else outbox.matches.seq_since(wanted.until_us),
        limit=wanted.limit,
    )
    if len(found) == wanted.limit:
        return found, found[-1].seq
    return found, max([after, newest, *(match.seq for match in found)])


async def _wait(backend: Backend, through: int, wait_s: float) -> None:
    async with backend.committed:
        if backend.outbox.matches.last_seq() > through:
            return
        try:
            async with asyncio.timeout(wait_s):
                await backend.committed.wait()
        except TimeoutError:
            return


ROUTES = [web.get("/v1/matches", list_matches)]
