"""What a request asks for behind the question mark."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from http import HTTPStatus
from typing import Any

from aiohttp import web

from broker.api.access import name_of
from broker.api.description import description
from broker.api.problem import Problem
from broker.documents.document import parse_time
from xscl.spelling import did_you_mean

__all__ = ["bounded", "known_parameters", "moment", "number"]

_FOLLOWED = ("/unsubscribe/{token}", "/feed.atom")
"""Links that people and feed readers follow; mail programs add parameters of their own to them."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def known_parameters(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Answer 400 where a parameter is asked for that a resource of the API does not have.

    What is misspelt would change the answer, and nobody would be told.
    """
    known = _parameters().get(name_of(request))
    if known is not None:
        for name in request.query:
            if name not in known:
                near = did_you_mean(name, known)
                extra = {"hint": near} if near else {}
                detail = f"there is no parameter {name!r} here"
                raise Problem(HTTPStatus.BAD_REQUEST, detail, extra=extra)
    return await handler(request)


@cache
def _parameters() -> dict[str, frozenset[str]]:
    """Return the parameters of each operation, by method and path, as the description has them."""
    described = description()
    shared = described["components"]["parameters"]

    def names(operation: dict[str, Any]) -> Iterator[str]:
        for each in operation.get("parameters", ()):
            found = shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each
            if found["in"] == "query":
                yield found["name"]
        # The token of one subscription, where it may be read with it.
        if any("subscription_token" in each for each in operation["security"]):
            yield "token"

    return {
        f"{method.upper()} {path}": frozenset(names(operation))
        for path, item in described["paths"].items()
        for method, operation in item.items()
        if path.startswith("/v1/") and not path.endswith(_FOLLOWED)
    }


def number(request: web.Request, name: str, default: int) -> int:
    """Return a whole number of the query string; end the request with 400 if it is none."""
    text = request.query.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 18:
        raise Problem(HTTPStatus.BAD_REQUEST, f"{name!r} must be a whole number, not {text!r}")
    return int(text)


def bounded(request: web.Request, name: str, default: int, most: int) -> int:
    """Return a whole number of the query string from 1 to `most`; end the request with 400 else.

    What is cut silently would be taken for all there is.
    """
    value = number(request, name, default)
    if not 1 <= value <= most:
        raise Problem(HTTPStatus.BAD_REQUEST, f"{name!r} must be from 1 to {most}, not {value}")
    return value


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
