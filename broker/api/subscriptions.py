"""`/v1/subscriptions`: who gets which matches, and where."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from aiohttp import web

import xscl
from broker.api.access import GATE, caller_of, check_named
from broker.api.audit import note
from broker.api.backend import BACKEND, Backend, in_thread
from broker.api.body import json_object
from broker.api.pickup import PICKUP
from broker.api.problem import Problem
from broker.api.queries import point_since, present_query
from broker.api.querystring import bounded
from broker.delivery.attempt import OutcomeKind
from broker.documents.document import render_time
from broker.matching.match import parameters_key
from broker.matching.queries.registration import NOTHING
from broker.pipeline.lookback.backfill import check_unread
from broker.registry.keys import check_key
from broker.registry.registered import assigned_back, parsed
from broker.registry.subscription import (
    Destination,
    DestinationKind,
    Options,
    Subscription,
    SubscriptionState,
)
from broker.registry.tokens import AccessToken, Tokens, TokenScope

__all__ = ["ROUTES", "remove"]

_LIMIT_MAX = 1_000
_OWN_MAX = 100
"""Subscriptions of a token that subscribes by itself: those of a person, not of a service."""

_OWN_KINDS = frozenset({DestinationKind.PULL, DestinationKind.WEBHOOK, DestinationKind.EMAIL})

_MEMBERS = {"query", "destination", "parameters", "options", "since"}


async def list_subscriptions(request: web.Request) -> web.Response:
    """Answer the subscriptions, of one query with `?query=`, by id; `?after=` goes on from `next`.

    Who has only a token for some subscriptions gets these.
    """
    registry, caller = request.app[BACKEND].registry, caller_of(request)
    query, after = request.query.get("query"), request.query.get("after", "")
    limit = bounded(request, "limit", _LIMIT_MAX, _LIMIT_MAX)
    if caller is None or TokenScope.ADMIN in caller.scopes:
        found = await in_thread(
            lambda: registry.subscriptions.find(query=query, after=after, limit=limit)
        )
    else:
        own = await in_thread(registry.subscriptions.by_id, sorted(caller.subscriptions))
        found = [
            each
            for each in own.values()
            if each.id > after
            and query in (None, each.query)
            and each.state is not SubscriptionState.REMOVED
        ]
        found = sorted(found, key=lambda each: each.id)[:limit]
    rest = found[-1].id if len(found) == limit else None
    return web.json_response({"subscriptions": await _rendered(request, found), "next": rest})


async def post_subscription(request: web.Request) -> web.Response:
    """Add a subscription.  It gets the matches of documents accepted after it, or after `since`.

    The answer to a webhook's has its signing key, which is not shown again.  Where addresses are
    asked to confirm, one that is mailed or escalated to one is unconfirmed, and the mail has been
    sent; if that failed, `reason` says why.
    """
    backend = request.app[BACKEND]
    asked = await _asked(request)
    destination = Destination.parse(asked["destination"])
    note(request, query=asked["query"], destination=destination.shown)
    options = Options.parse(json.dumps(asked.get("options", {})))
    caller = caller_of(request)
    serves_itself = caller is not None and TokenScope.ADMIN not in caller.scopes
    if caller is not None and serves_itself:
        check_named(caller, TokenScope.SUBSCRIBE, asked["query"], caller.queries)
        _check_own(request, destination, options)
    parameters = await in_thread(_assignment, backend, asked, options)
    await _check_ways(request, destination, options)

    pickup = request.app.get(PICKUP)
    kinds = {destination.kind}
    if options.escalate:
        kinds.add(Destination.parse(options.escalate).kind)
    is_asked = pickup is not None and pickup.confirms_addresses and DestinationKind.EMAIL in kinds

    query = await in_thread(present_query, backend, asked["query"])
    since = await in_thread(point_since, backend, asked.get("since"))
    ahead = NOTHING
    if since is not None and parameters:
        ahead = assigned_back(parsed(query), parameters, max(since, query.point))

    def subscribe(newest_docid: int) -> Subscription:
        query = present_query(backend, asked["query"])  # it may have been removed meanwhile
        if since is not None and backend.registry.must_look_back(
            query.id, parameters, max(since, query.point), newest_docid
        ):
            check_unread(backend.registry, parsed(query))
        own = _own(request, caller) if caller is not None and serves_itself else None
        made = backend.registry.subscribe(
            query.id,
            destination,
            point=newest_docid,
            since=since,
            parameters=parameters,
            options=options,
            state=SubscriptionState.UNCONFIRMED if is_asked else SubscriptionState.ACTIVE,
        )
        if caller is not None and own is not None:
            _tokens(request).assign(caller.name, [*own, made.id])
        return made

    made = await backend.change(subscribe, replan=bool(parameters), ahead=ahead)
    note(request, made.id)
    [rendered] = await _rendered(request, [made])
    answer = {**rendered, "secret": made.secrets[0].value if made.secrets else None}
    if pickup is not None and is_asked:
        outcome = await pickup.ask_to_confirm(made)
        if outcome.kind is not OutcomeKind.DELIVERED:
            answer["reason"] = f"it could not be asked to confirm: {outcome.detail}"
    return web.json_response(answer, status=HTTPStatus.CREATED)


async def get_subscription(request: web.Request) -> web.Response:
    """Answer one subscription, or 404."""
    backend = request.app[BACKEND]
    found = await in_thread(backend.registry.subscriptions.get, request.match_info["id"])
    [rendered] = await _rendered(request, [found])
    return web.json_response(rendered)


async def delete_subscription(request: web.Request) -> web.Response:
    """Remove a subscription; what is being sent may still arrive."""
    await remove(request.app[BACKEND], request.match_info["id"])
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def remove(backend: Backend, subscription_id: str, *, reason: str = "") -> None:
    """Remove a subscription; raise `RegistryError` where there is none.

    Nothing more is sent.  Documents accepted before it still match under its parameters.
    """
    subscriptions = backend.registry.subscriptions
    found = await in_thread(subscriptions.get, subscription_id)

    def change(newest_docid: int) -> None:
        subscriptions.remove(subscription_id, until=newest_docid, reason=reason)

    await backend.change(change, replan=found.parameters != parameters_key({}))


def _check_own(request: web.Request, destination: Destination, options: Options) -> None:
    """Refuse what would let a caller who subscribes by itself write to others."""
    pickup = request.app.get(PICKUP)
    reason = None
    if destination.kind not in _OWN_KINDS:
        kinds = ", ".join(sorted(kind.value for kind in _OWN_KINDS))
        reason = f"with this token a destination is one of {kinds}"
    elif destination.kind is DestinationKind.EMAIL and not (pickup and pickup.confirms_addresses):
        reason = "with this token addresses are mailed to only where `smtp.confirm` is on"
    elif options.owner and options.owner != destination.address:
        reason = "with this token the owner is the address that is subscribed"
    elif options.escalate:
        reason = "with this token nobody else is told"
    if reason is not None:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, reason)


def _own(request: web.Request, caller: AccessToken) -> list[str]:
    """Return what a token has subscribed and not ended, while nobody else subscribes."""
    token = _tokens(request).named(caller.name)
    if token is None:
        raise Problem(HTTPStatus.FORBIDDEN, f"the token {caller.name!r} was revoked meanwhile")
    found = request.app[BACKEND].registry.subscriptions.by_id(sorted(token.subscriptions))
    own = [each.id for each in found.values() if each.state is not SubscriptionState.REMOVED]
    if len(own) >= _OWN_MAX:
        detail = f"the token {caller.name!r} has {_OWN_MAX} subscriptions, as many as it may"
        raise Problem(HTTPStatus.CONFLICT, detail)
    return own


def _tokens(request: web.Request) -> Tokens:
    tokens = request.app[GATE].tokens
    assert tokens is not None, "a caller has a token"
    return tokens


async def _check_ways(request: web.Request, destination: Destination, options: Options) -> None:
    """Refuse a destination that this broker can never reach, while its subscriber listens."""
    pickup = request.app.get(PICKUP)
    reason = await pickup.refusal(destination, options.owner) if pickup else None
    if pickup and options.escalate and reason is None:
        reason = await pickup.refusal(Destination.parse(options.escalate), "")
    if reason is not None:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, reason)


async def _asked(request: web.Request) -> dict[str, Any]:
    asked = await json_object(request, _MEMBERS)
    for name in ("query", "destination"):
        if not isinstance(asked.get(name), str):
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name!r} must be a string")
    return asked


def _assignment(backend: Backend, asked: dict[str, Any], options: Options) -> dict[str, Any]:
    registered = present_query(backend, asked["query"])
    (query,) = xscl.parse(registered.text, id=registered.id)
    check_key(query, options.key)
    return xscl.assignment(query, asked.get("parameters", {}))


async def _rendered(
    request: web.Request, subscriptions: Sequence[Subscription]
) -> list[dict[str, Any]]:
    pickup = request.app.get(PICKUP)
    quiet_us = {} if pickup is None else await pickup.quiet_until_us(subscriptions)
    return [
        {
            "id": each.id,
            "query": each.query,
            "parameters": json.loads(each.parameters),
            "destination": each.destination.shown,
            "state": each.state.value,
            "reason": each.reason,
            "quiet_until": render_time(quiet_us[each.id]) if each.id in quiet_us else None,
            "point": each.point,
            "until": each.until,
            "options": each.options.shown,
            "created": render_time(each.created_us),
        }
        for each in subscriptions
    ]


ROUTES = [
    web.get("/v1/subscriptions", list_subscriptions),
    web.post("/v1/subscriptions", post_subscription),
    web.get("/v1/subscriptions/{id}", get_subscription),
    web.delete("/v1/subscriptions/{id}", delete_subscription),
]
