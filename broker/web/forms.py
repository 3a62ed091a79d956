"""What the forms of pages are sent to: each is done as the operation of the API it stands for.

A form becomes the request that a program would have made, and the handler of that operation answers
it, so that a page can do nothing that the API would refuse.  Whoever may not, or has no token of
the page, was turned away before (`broker.api.access`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from aiohttp import web

from broker.api import deliveries, feeds, queries, streams, subscriptions
from broker.api.access import name_of
from broker.api.admission.browsers import FORMS
from broker.api.backend import BACKEND, in_thread
from broker.api.body import FORM_BODY, form_of
from broker.api.feeds import FEED_ADMINISTRATION
from broker.api.problem import Problem
from broker.registry.registered import parsed
from broker.web.editpages import edit_page
from broker.web.rendering import BACK, HEADERS, page

__all__ = ["ROUTES", "SENT_TEXT", "not_registered"]

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SENT_TEXT = web.RequestKey("sent_text", str)
"""The text that a form wants registered."""

_RULE_OF_A_PART = r":[^/]+\}"
"""What a route says of a part of its path, as in `{docid:\\d+}`."""

_OPERATIONS: Mapping[str, _Handler] = {
    f"{route.method} {re.sub(_RULE_OF_A_PART, '}', route.path)}": route.handler
    for module in (queries, subscriptions, deliveries, streams, feeds)
    for route in module.ROUTES
}
_ANSWERED = frozenset({f"POST /v1/subscriptions/{{id}}/{verb}" for verb in ("test", "retry")})
"""Operations whose answer is shown; after others, what they changed is."""

_PARAMETER = "parameter."
"""Fields of a subscription's form that are parameters begin so."""

_OPTION = "option."
"""Fields that are options begin so."""


async def send_form(request: web.Request) -> web.StreamResponse:
    """Do what a form asks for, and lead to where it is seen."""
    fields = await form_of(request)
    operation = FORMS[name_of(request)]
    if operation == "PUT /v1/queries/{id}":
        return await _register(request, fields)
    if operation == "POST /v1/subscriptions":
        return await _subscribe(request, fields)
    if "/feeds" in operation and FEED_ADMINISTRATION not in request.app:
        raise Problem(HTTPStatus.NOT_FOUND, "this broker polls no feeds")
    answer = await _ask(request, operation, _body(operation, fields))
    if operation in _ANSWERED:
        return _said(request, json.loads(answer.text or ""))
    return _go(_place(request, operation, fields))


def _body(operation: str, fields: Mapping[str, str]) -> str:
    """Return the body that an operation on feeds takes from its form; others take none."""
    if operation == "POST /v1/feeds":
        return json.dumps({name: fields.get(name, "").strip() for name in ("url", "stream")})
    return fields.get("opml", "")


def _place(request: web.Request, operation: str, fields: Mapping[str, str]) -> str:
    """Return where what was done is seen."""
    if "/feeds" in operation:
        return "/feeds"
    if "/dead-letters" in operation:
        return "/dead-letters"
    if "/deliveries/" in operation:
        seq = fields.get("match", "")
        return f"/matches/{seq}" if seq.isdecimal() else "/"
    return "/" if operation.startswith("DELETE") else request.path.rpartition("/")[0]


async def _register(request: web.Request, fields: Mapping[str, str]) -> web.StreamResponse:
    request.match_info.setdefault("id", fields.get("id", "").strip())
    request[SENT_TEXT] = fields.get("text", "").replace("\r\n", "\n")
    await _ask(request, FORMS[name_of(request)], request[SENT_TEXT])
    return _go(f"/queries/{quote(request.match_info['id'], safe='')}")


def not_registered(request: web.Request, wrong: str) -> web.Response:
    """Return the form with the text that was sent, and why it was not registered."""
    return edit_page(request, request.match_info["id"], request[SENT_TEXT], wrong=wrong)


async def _subscribe(request: web.Request, fields: Mapping[str, str]) -> web.StreamResponse:
    query = fields.get("query", "")
    # Without what was typed: a destination may have a secret in it, and addresses are logged.
    request[BACK] = f"/queries/{quote(query, safe='')}#subscribe"
    asked: dict[str, Any] = {
        "query": query,
        "destination": fields.get("destination", "").strip(),
        "parameters": await in_thread(_parameters, request, fields),
    }
    if options := _options(fields):
        asked["options"] = options
    if fields.get("since"):
        asked["since"] = fields["since"]
    answer = await _ask(request, "POST /v1/subscriptions", json.dumps(asked))
    made = json.loads(answer.text or "")
    if made["secret"] is None and not made["reason"]:
        return _go(f"/subscriptions/{quote(made['id'], safe='')}")
    values = {"made": made, "back": f"/subscriptions/{quote(made['id'], safe='')}"}
    return page(request, "subscribed.html.j2", values, status=HTTPStatus.CREATED)


def _options(fields: Mapping[str, str]) -> dict[str, str | list[str]]:
    """Return the options that are filled in; the terms of a key have commas between them."""
    given = {name: text.strip() for name, text in _named(fields, _OPTION).items() if text.strip()}
    key = [term.strip() for term in given.pop("key", "").split(",") if term.strip()]
    return {**given, "key": key} if key else {**given}


def _parameters(request: web.Request, fields: Mapping[str, str]) -> dict[str, str | float]:
    """Return the values of a query's parameters, numbers as such."""
    given = _named(fields, _PARAMETER)
    if not given:
        return {}
    try:
        registered = queries.present_query(request.app[BACKEND], fields.get("query", ""))
    except Problem:
        return dict(given)  # whether there is such a query, the operation tells whom it may
    types = dict(parsed(registered).parameters)
    return {
        name: _number(text) if types.get(name) in ("number", "value") else text
        for name, text in given.items()
    }


def _named(fields: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the fields whose names begin with a prefix, by what follows it."""
    return {
        name.removeprefix(prefix): text for name, text in fields.items() if name.startswith(prefix)
    }


def _number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


async def _ask(request: web.Request, operation: str, body: str = "") -> web.Response:
    """Return what the API answers to the request that a form stands for."""
    request[FORM_BODY] = body.encode(errors="surrogateescape")
    answer = await _OPERATIONS[operation](request)
    assert isinstance(answer, web.Response), "no form asks for a stream"
    return answer


def _said(request: web.Request, answer: Mapping[str, Any]) -> web.Response:
    back = request.path.rpartition("/")[0]
    return page(request, "done.html.j2", {"answer": answer, "back": back})


def _go(path: str) -> web.Response:
    # What was changed is asked for again, and a reload changes nothing once more.
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={**HEADERS, "Location": path})


ROUTES = [
    web.post(name.partition(" ")[2].replace("{docid}", r"{docid:\d{1,18}}"), send_form)
    for name in FORMS
]
