"""`/v1/tokens`: who may use the broker."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aiohttp import web

from broker.api.access import GATE
from broker.api.audit import note
from broker.api.backend import BACKEND, in_thread
from broker.api.body import json_object
from broker.api.problem import Problem
from broker.documents.document import parse_time, render_time
from broker.registry.tokens import AccessToken, TokenError, Tokens

__all__ = ["ROUTES", "rendered"]

_MEMBERS = {"name", "scopes", "subscriptions", "expires"}


async def list_tokens(request: web.Request) -> web.Response:
    """Answer all tokens by name, without their secrets."""
    found = await in_thread(_kept(request).tokens)
    return web.json_response({"tokens": [rendered(each) for each in found]})


async def post_token(request: web.Request) -> web.Response:
    """Make a token.  The answer has its secret as `token`, which is not shown again."""
    asked = await _asked(request)
    note(request, asked["name"], **{name: asked[name] for name in asked if name != "name"})
    tokens, registry = _kept(request), request.app[BACKEND].registry
    for subscription in asked["subscriptions"]:
        await in_thread(registry.subscriptions.get, subscription)
    try:
        made, secret = await in_thread(
            lambda: tokens.create(
                asked["name"],
                asked["scopes"],
                subscriptions=asked["subscriptions"],
                expires_us=_time(asked["expires"]),
            )
        )
    except ValueError as error:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
    return web.json_response({**rendered(made), "token": secret}, status=HTTPStatus.CREATED)


async def delete_token(request: web.Request) -> web.Response:
    """Make a token worthless from the next request on."""
    try:
        await in_thread(_kept(request).revoke, request.match_info["name"])
    except TokenError as error:
        raise Problem(HTTPStatus.NOT_FOUND, str(error)) from error
    return web.Response(status=HTTPStatus.NO_CONTENT)


def rendered(token: AccessToken) -> dict[str, Any]:
    """Return what is shown of a token."""
    return {
        "name": token.name,
        "scopes": token.narrowed_scopes,
        "subscriptions": sorted(token.subscriptions),
        "created": render_time(token.created_us),
        "expires": None if token.expires_us is None else render_time(token.expires_us),
        "used": None if token.used_us is None else render_time(token.used_us),
    }


def _kept(request: web.Request) -> Tokens:
    tokens = request.app[GATE].tokens
    if tokens is None:
        raise Problem(HTTPStatus.NOT_FOUND, "this broker keeps no tokens")
    return tokens


async def _asked(request: web.Request) -> dict[str, Any]:
    body = await json_object(request, _MEMBERS)
    asked = {"subscriptions": [], "expires": None, **body}
    for name, kinds in (("name", str), ("expires", str | None)):
        if name not in asked or not isinstance(asked[name], kinds):
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name!r} must be a string")
    for name in ("scopes", "subscriptions"):
        each = asked.get(name)
        if not isinstance(each, list) or not all(isinstance(one, str) for one in each):
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name!r} must be a list of strings")
    return asked


def _time(text: str | None) -> int | None:
    return None if text is None else parse_time(text)


ROUTES = [
    web.get("/v1/tokens", list_tokens),
    web.post("/v1/tokens", post_token),
    web.delete("/v1/tokens/{name}", delete_token),
]
