"""What a request has as its body; what cannot be read ends the request with 400."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from http import HTTPStatus
from typing import Any, NoReturn

from aiohttp import web

from broker.api.problem import Problem

__all__ = ["FORM_BODY", "bytes_of", "json_object", "text_of"]

FORM_BODY = web.RequestKey("form_body", str)
"""What a form of a page stands for: the body that a program would have sent instead."""


WAIT_S = 30.0
BYTES_PER_S = 20_000
"""A body may take as long as it would at this pace, and `WAIT_S` besides."""


async def bytes_of(request: web.Request) -> bytes:
    """Return the body; one that comes too slowly ends the request with 408."""
    if FORM_BODY in request:
        return request[FORM_BODY].encode()
    length = request.content_length
    most = request.client_max_size if length is None else min(length, request.client_max_size)
    try:
        async with asyncio.timeout(WAIT_S + most / BYTES_PER_S):
            return await request.read()
    except TimeoutError as error:
        detail = "the body of the request has not come in time"
        raise Problem(
            HTTPStatus.REQUEST_TIMEOUT, detail, headers={"Connection": "close"}
        ) from error


async def text_of(request: web.Request) -> str:
    """Return the body as text."""
    if FORM_BODY in request:
        return request[FORM_BODY]
    await bytes_of(request)  # which keeps it
    try:
        return await request.text()
    except (UnicodeDecodeError, LookupError) as error:
        detail = f"the body is not text in {request.charset or 'UTF-8'}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail) from error


async def json_object(request: web.Request, members: Collection[str]) -> dict[str, Any]:
    """Return the JSON object that the body is; 422 where it has a member of another name.

    A body that is empty is an empty object.
    """
    text = await text_of(request)
    try:
        asked = json.loads(text, parse_constant=_refuse_constant) if text else {}
        # Half of a surrogate pair is JSON, and no text that could be stored or sent on.
        text.encode()
        json.dumps(asked, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise Problem(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {reason}") from error
    if not isinstance(asked, dict):
        raise Problem(HTTPStatus.BAD_REQUEST, "the body is a JSON object")
    if unknown := sorted(set(asked) - set(members)):
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"unknown member {unknown[0]!r}")
    return asked


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
