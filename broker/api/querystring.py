"""What a request asks for behind the question mark."""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web

from broker.api.problem import Problem
from broker.documents.document import parse_time

__all__ = ["moment", "number"]


def number(request: web.Request, name: str, default: int) -> int:
    """Return a whole number of the query string; end the request with 400 if it is none."""
    text = request.query.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 18:
        raise Problem(HTTPStatus.BAD_REQUEST, f"{name!r} must be a whole number, not {text!r}")
    return int(text)


def moment(request: web.Request, name: str) -> int | None:
    """Return a time of the query string in microseconds; end the request with 400 if it is none."""
    text = request.query.get(name)
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        detail = f"{name!r} is not an ISO 8601 time: {text!r}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail) from error
