"""Answers of lines of JSON, each written as soon as it is known, by a process beside the broker.

That works for one caller at a time.  Another one waits for its turn, and a client that does not
read is not waited for: its connection is closed.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from aiohttp import web

from broker.api.body import BYTES_PER_S
from broker.api.problem import Problem

__all__ = ["LINE_BYTES_MAX", "lines_response", "take_turn", "write_line"]

LINE_BYTES_MAX = 1 << 24
"""The most bytes of a line that the process writes."""

_TURN_S = 5.0
"""What a request waits for its turn, before it is turned away."""

READ_S = 10.0
"""A client may read a line as slowly as it may send a body, and take so many seconds besides."""


async def take_turn(turn: asyncio.Lock, detail: str, *, retry_after_s: int) -> None:
    """Acquire a lock; 429 where another request keeps it for long."""
    try:
        async with asyncio.timeout(_TURN_S):
            await turn.acquire()
    except TimeoutError as error:
        headers = {"Retry-After": str(retry_after_s)}
        detail = f"{detail}; try again later"
        raise Problem(HTTPStatus.TOO_MANY_REQUESTS, detail, headers=headers) from error


def lines_response() -> web.StreamResponse:
    """Return an answer whose lines are written later."""
    return web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})


async def write_line(request: web.Request, response: web.StreamResponse, line: bytes) -> None:
    """Write a line, after the head of the answer; `ConnectionError` where nobody reads it."""
    try:
        async with asyncio.timeout(READ_S + len(line) / BYTES_PER_S):
            await response.prepare(request)
            await response.write(line)
    except TimeoutError as error:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionError("the client does not read the answer") from error
