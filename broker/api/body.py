"""What a request has as its body; what cannot be read ends the request with 400."""

from __future__ import annotations

import json
from collections.abc import Collection
from http import HTTPStatus
from typing import Any, NoReturn

from aiohttp import web

from broker.api.problem import Problem

__all__ = ["json_object", "text_of"]


async def text_of(request: web.Request) -> str:
    """Return the body as text."""
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
