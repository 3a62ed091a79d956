"""Answers of lines of JSON, each written as soon as it is known.

What makes the lines is for one caller at a time, so a client that does not read them is not waited
for: its connection is closed.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from broker.api.body import BYTES_PER_S

__all__ = ["LINE_BYTES_MAX", "lines_response", "write_line"]

LINE_BYTES_MAX = 1 << 24
"""Bytes of a line that the process which makes it may write."""

READ_S = 10.0
"""A client may read a line as slowly as it may send a body, and take so many seconds besides."""


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
