"""Looking after deliveries over HTTP: what was sent, sending again, keys, unsubscribing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from aiohttp import web

from broker.api.pickup import PICKUP, Pickup
from broker.api.problem import Problem
from broker.api.querystring import bounded, number
from broker.delivery.confirmation import waiting_for
from broker.delivery.deliveries import Delivery, DeliveryError
from broker.delivery.sample import sample_attempt
from broker.delivery.store import DeliveryState
from broker.documents.document import parse_time, render_time
from broker.registry.subscription import (
    Destination,
    DestinationKind,
    Subscription,
    SubscriptionState,
)
from joins import UNBOUNDED

__all__ = ["ROUTES"]

_PAGE_MAX = 1_000
_OVERLAP_MAX_S = 30 * 86_400
_ENDED = (DeliveryState.DEAD, DeliveryState.SUPPRESSED, DeliveryState.COLLECTED)


async def list_deliveries(request: web.Request) -> web.Response:
    """Answer deliveries, newest first, of one `?subscription=` or `?state=`; `next` goes on."""
    pickup = request.app[PICKUP]
    try:
        state = DeliveryState(request.query["state"]) if "state" in request.query else None
    except ValueError as error:
        raise Problem(HTTPStatus.BAD_REQUEST, str(error)) from error
    limit = bounded(request, "limit", 100, _PAGE_MAX)
    before = number(request, "before", UNBOUNDED)
    found = await pickup.write(
        lambda: pickup.deliveries.find(
            subscription=request.query.get("subscription"), state=state, before=before, limit=limit
        )
    )
    rest = found[-1].row if len(found) == limit else None
    rows = await asyncio.to_thread(_rendered, pickup, found)
    return web.json_response({"deliveries": rows, "next": rest})


async def get_delivery(request: web.Request) -> web.Response:
    """Answer one delivery with its attempts and the ids of its matches."""
    pickup, name = request.app[PICKUP], request.match_info["id"]
    try:
        delivery, attempts = await pickup.write(lambda: pickup.deliveries.show(name))
    except DeliveryError as error:
        raise Problem(HTTPStatus.NOT_FOUND, str(error)) from error
    matches = await asyncio.to_thread(_match_ids, pickup, delivery)
    made = [
        {
            "number": attempt.number,
            "time": render_time(attempt.at_us),
            "outcome": attempt.outcome,
            "status": attempt.status,
            "detail": attempt.detail,
            "seconds": attempt.elapsed_us / 1e6,
        }
        for attempt in attempts
    ]
    [rendered] = await asyncio.to_thread(_rendered, pickup, [delivery])
    link = pickup.alert_url(delivery.id) or None
    return web.json_response({**rendered, "matches": matches, "made": made, "alert": link})


async def retry_delivery(request: web.Request) -> web.Response:
    """Try a delivery again now, whatever its state; its schedule begins anew."""
    pickup, name = request.app[PICKUP], request.match_info["id"]
    count = await pickup.write(lambda: pickup.deliveries.retry([name], pickup.now_us()))
    if not count:
        raise Problem(HTTPStatus.NOT_FOUND, f"no delivery {name!r} that can be tried again")
    return web.json_response({"retried": count})


async def retry_all(request: web.Request) -> web.Response:
    """Try all of a subscription's deliveries in `?state=` now; dead letters, if it names none."""
    pickup, name = request.app[PICKUP], request.match_info["id"]
    states = {state.value: state for state in _ENDED}
    state = states.get(request.query.get("state", DeliveryState.DEAD.value))
    if state is None:
        raise Problem(HTTPStatus.BAD_REQUEST, f"'state' must be one of {', '.join(states)}")
    count = await pickup.write(lambda: pickup.deliveries.retry_all(name, state, pickup.now_us()))
    return web.json_response({"retried": count})


async def replay(request: web.Request) -> web.Response:
    """Send a subscription's matches since `?since=` (a time, a docid or `all`) again."""
    pickup, name = request.app[PICKUP], request.match_info["id"]
    subscription = await asyncio.to_thread(pickup.registry.subscriptions.get, name)
    if subscription.destination.kind is DestinationKind.PULL:
        raise Problem(
            HTTPStatus.CONFLICT, "who pulls reads again from an earlier match number by itself"
        )
    after = await asyncio.to_thread(_place, pickup, subscription, request.query.get("since", ""))
    await pickup.write(lambda: pickup.deliveries.replay(name, after=after, now_us=pickup.now_us()))
    return web.json_response({"after": after})


async def send_sample(request: web.Request) -> web.Response:
    """Send a signed sample to the destination now, and answer what came of it.

    An address that has not confirmed its subscription is asked to once more instead.
    """
    pickup, name = request.app[PICKUP], request.match_info["id"]
    subscription = await asyncio.to_thread(pickup.registry.subscriptions.get, name)
    channel = pickup.channels.get(subscription.destination.kind)
    if channel is None:
        kind = subscription.destination.kind.value
        raise Problem(HTTPStatus.CONFLICT, f"this broker does not send by {kind}")
    if subscription.state is SubscriptionState.UNCONFIRMED:
        outcome = await pickup.ask_to_confirm(subscription)
    else:
        now_us = pickup.now_us()
        attempt = await asyncio.to_thread(sample_attempt, subscription, pickup.outbox, now_us)
        outcome = await channel.send(attempt)
    return web.json_response(
        {
            "outcome": outcome.kind.value,
            "status": outcome.status,
            "detail": outcome.detail,
            "seconds": outcome.elapsed_us / 1e6,
        }
    )


async def rotate_secret(request: web.Request) -> web.Response:
    """Answer a new signing key; the old ones sign too for `?overlap=` seconds (a day)."""
    pickup, name = request.app[PICKUP], request.match_info["id"]
    overlap_s = min(number(request, "overlap", 86_400), _OVERLAP_MAX_S)
    secret = await asyncio.to_thread(
        pickup.registry.subscriptions.rotate_secret, name, overlap=timedelta(seconds=overlap_s)
    )
    return web.json_response({"secret": secret})


async def pause(request: web.Request) -> web.Response:
    """Deliver nothing until the subscription is resumed."""
    return await _set_state(request, SubscriptionState.PAUSED)


async def resume(request: web.Request) -> web.Response:
    """Deliver again, beginning with what was missed."""
    return await _set_state(request, SubscriptionState.ACTIVE)


async def get_token(request: web.Request) -> web.Response:
    """Answer the token and the addresses with which a subscription is read, and only it."""
    pickup, name = request.app[PICKUP], request.match_info["id"]
    await asyncio.to_thread(pickup.registry.subscriptions.get, name)
    token = pickup.read_token(name)
    base = f"{pickup.base_url}/v1/subscriptions/{name}"
    return web.json_response(
        {
            "token": token,
            "feed": f"{base}/feed.atom?token={token}",
            "stream": f"{base}/stream?token={token}",
        }
    )


async def list_suppressed(request: web.Request) -> web.Response:
    """Answer the addresses that are not written to, and why."""
    rows = await asyncio.to_thread(request.app[PICKUP].registry.suppressed.entries)
    found = [{"address": a, "reason": why, "since": render_time(at)} for a, why, at in rows]
    return web.json_response({"suppressed": found})


async def allow_address(request: web.Request) -> web.Response:
    """Take an address off the suppression list."""
    address = request.match_info["address"]
    if not await asyncio.to_thread(request.app[PICKUP].registry.suppressed.remove, address):
        raise Problem(HTTPStatus.NOT_FOUND, f"{address!r} is not on the suppression list")
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def _set_state(request: web.Request, state: SubscriptionState) -> web.Response:
    pickup, name = request.app[PICKUP], request.match_info["id"]
    subscription = await asyncio.to_thread(pickup.registry.subscriptions.get, name)
    if subscription.state is SubscriptionState.UNCONFIRMED:
        address = waiting_for(subscription).address
        detail = f"{address} has not confirmed it; `xscl deliveries test` asks again"
        raise Problem(HTTPStatus.CONFLICT, detail)
    await asyncio.to_thread(pickup.registry.subscriptions.set_state, name, state)
    return web.json_response({"id": name, "state": state.value})


def _place(pickup: Pickup, subscription: Subscription, since: str) -> int:
    if since == "all":
        return 0
    if since.isdecimal() and len(since) <= 18:
        return pickup.outbox.matches.topic_start(*subscription.topic, position=int(since))
    try:
        return pickup.outbox.matches.seq_since(parse_time(since))
    except ValueError as error:
        raise Problem(HTTPStatus.BAD_REQUEST, "'since' must be a time, a docid or 'all'") from error


def _match_ids(pickup: Pickup, delivery: Delivery) -> list[str]:
    if delivery.seqs is not None:
        return [match.id for match in pickup.outbox.matches.numbered(delivery.seqs)]
    subscription = pickup.registry.subscriptions.get(delivery.subscription)
    matches = pickup.outbox.matches.of_topic(
        *subscription.topic,
        after=delivery.first_seq - 1,
        through=delivery.seq,
        point=subscription.point,
        until=subscription.until,
    )
    return [match.id for match in matches]


def _rendered(pickup: Pickup, deliveries: Sequence[Delivery]) -> list[dict[str, Any]]:
    owners = pickup.registry.subscriptions.by_id(sorted({each.subscription for each in deliveries}))
    return [_fields(each, owners.get(each.subscription)) for each in deliveries]


def _fields(delivery: Delivery, owner: Subscription | None) -> dict[str, Any]:
    held = _held(delivery, owner)
    return {
        "id": delivery.id,
        "subscription": delivery.subscription,
        "query": owner and owner.query,
        "destination": owner and _destination(delivery, owner),
        "state": delivery.state.value,
        "attempts": delivery.attempts,
        "first_match": delivery.first_seq,
        "last_match": delivery.seq,
        "created": render_time(delivery.created_us),
        "changed": render_time(delivery.changed_us),
        "next": _time(None if held else delivery.next_us),
        "held": held,
        "outcome": delivery.last_outcome,
        "status": delivery.last_status,
        "detail": delivery.reason or delivery.last_detail,
        "key": delivery.key,
        "origin": delivery.origin,
        "acknowledged": _time(delivery.acknowledged_us),
    }


def _held(delivery: Delivery, owner: Subscription | None) -> str | None:
    """Return why a due delivery is not tried: its subscription is paused or disabled."""
    still = (SubscriptionState.PAUSED, SubscriptionState.DISABLED)
    if owner is None or owner.state not in still or delivery.state is not DeliveryState.DUE:
        return None
    return f"the subscription is {owner.state.value}"


def _destination(delivery: Delivery, owner: Subscription) -> str:
    """Return where a delivery goes, without what is a secret."""
    second = delivery.is_escalation and owner.options.escalate
    return (Destination.parse(second) if second else owner.destination).shown


def _time(at_us: int | None) -> str | None:
    return None if at_us is None else render_time(at_us)


_SUBSCRIPTION = "/v1/subscriptions/{id}"

ROUTES = [
    web.get("/v1/deliveries", list_deliveries),
    web.get("/v1/deliveries/{id}", get_delivery),
    web.post("/v1/deliveries/{id}/retry", retry_delivery),
    web.post(_SUBSCRIPTION + "/retry", retry_all),
    web.post(_SUBSCRIPTION + "/replay", replay),
    web.post(_SUBSCRIPTION + "/test", send_sample),
    web.post(_SUBSCRIPTION + "/rotate-secret", rotate_secret),
    web.post(_SUBSCRIPTION + "/pause", pause),
    web.post(_SUBSCRIPTION + "/resume", resume),
    web.get(_SUBSCRIPTION + "/token", get_token),
    web.get("/v1/suppressed", list_suppressed),
    web.delete("/v1/suppressed/{address}", allow_address),
]
