"""What a request has as its body; what cannot be read ends the request with 400.

The encodings that a body may say it is in are few: decoding some that Python has takes time in the
square of the length, or makes what is no text.
"""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import Collection, Iterator
from email.parser import BytesParser
from http import HTTPStatus
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from aiohttp import web

from broker.api.problem import Problem

__all__ = ["FORM_BODY", "bytes_of", "form_of", "json_object", "text_of"]

FORM_BODY = web.RequestKey("form_body", bytes)
"""What a form of a page stands for: the body that a program would have sent instead."""

_FORM = web.RequestKey("form", dict[str, str])
_FIELDS_MAX = 1_000
_CHARSETS = frozenset({"ascii", "iso8859-1", "utf-8", "utf-16"})

WAIT_S = 30.0
BYTES_PER_S = 20_000
"""A body may take as long as it would at this pace, and `WAIT_S` besides."""


async def bytes_of(request: web.Request) -> bytes:
    """Return the body; one that comes too slowly ends the request with 408."""
    if FORM_BODY in request:
        return request[FORM_BODY]
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
    body = await bytes_of(request)
    charset = "utf-8" if FORM_BODY in request else request.charset or "utf-8"
    try:
        if codecs.lookup(charset).name in _CHARSETS:
            return body.decode(charset)
    except (ValueError, LookupError):
        pass
    detail = f"the body is not text in {charset}"
    raise Problem(HTTPStatus.BAD_REQUEST, detail, extra={"hint": "send it in UTF-8"})


async def form_of(request: web.Request, *, bytes_max: int | None = None) -> dict[str, str]:
    """Return the fields of a form by name, none of a body that is of another kind.

    Bytes of a file that are not UTF-8 become what `surrogateescape` makes of them.
    """
    if _FORM not in request:
        body = await bytes_of(request)
        if bytes_max is not None and len(body) > bytes_max:
            detail = f"this form has at most {bytes_max:,} bytes"
            raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
        kind = request.headers.get("Content-Type", "")
        try:
            request[_FORM] = await asyncio.to_thread(_fields, request.content_type, kind, body)
        except (ValueError, LookupError, RecursionError) as error:
            raise Problem(HTTPStatus.BAD_REQUEST, "the body is no form in UTF-8") from error
    return request[_FORM]


def _fields(content_type: str, kind: str, body: bytes) -> dict[str, str]:
    if content_type == "application/x-www-form-urlencoded":
        text = body.decode().strip()
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX)
        return dict(pairs)
    return dict(_parts(kind, body)) if content_type == "multipart/form-data" else {}


def _parts(kind: str, body: bytes) -> Iterator[tuple[str, str]]:
    head = f"Content-Type: {kind}\r\n\r\n".encode()
    message = BytesParser().parsebytes(head + body)
    if not message.is_multipart() or message.defects:
        raise ValueError("the boundary is not in the body, or the end is not")
    _, *parts = message.walk()
    for part in parts:
        name = part.get_param("name", header="Content-Disposition")
        content = part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(content, bytes):
            raise ValueError("a part is no field")
        yield name, content.decode(errors="surrogateescape" if part.get_filename() else "strict")


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
