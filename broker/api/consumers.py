"""`/v1/subscriptions/{id}/consumers`: durable consumers over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from http import HTTPStatus
from typing import Any

from aiohttp import web

from broker.api.body import json_object
from broker.api.pickup import PICKUP, Pickup
from broker.api.problem import Problem
from broker.delivery.consumers import ConsumerError, ConsumerSettings, DurableConsumer, Fetched
from broker.documents.document import parse_time, render_time
from broker.registry.subscription import Subscription
from joins import UNBOUNDED

__all__ = ["ROUTES"]

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_FETCH_MAX = 500
_WAIT_MAX_S = 60.0
_S = 1_000_000

_BOUNDS: dict[str, tuple[float, float]] = {
    "ack_wait_s": (0.1, 86_400),
    "max_deliver": (1, 1_000),
    "max_pending": (1, 100_000),
    "limit": (1, _FETCH_MAX),
    "wait_s": (0, _WAIT_MAX_S),
    "delay_s": (0, 7 * 86_400),
}


async def put_consumer(request: web.Request) -> web.Response:
    """Make a durable consumer; one of that name is left as it is, so this can be repeated.

    `start` is `new` (default), `all`, a docid, or a time.
    """
    pickup, subscription, name = await _named(request)
    asked = await json_object(request, {"start", "ack_wait_s", "max_deliver", "max_pending"})
    settings = ConsumerSettings(
        start=await asyncio.to_thread(_start, pickup, subscription, asked.get("start", "new")),
        ack_wait_us=round(_number(asked, "ack_wait_s", 30) * _S),
        deliver_max=int(_number(asked, "max_deliver", 20)),
        pending_max=int(_number(asked, "max_pending", 1_000)),
    )
    consumer = await pickup.write(
        lambda: pickup.consumers.create(subscription, name, settings, pickup.now_us())
    )
    return web.json_response(_rendered(consumer))


async def get_consumer(request: web.Request) -> web.Response:
    """Answer where a consumer stands."""
    pickup, subscription, name = await _named(request)
    consumer = await _known(pickup, subscription, name)
    return web.json_response(_rendered(consumer))


async def list_consumers(request: web.Request) -> web.Response:
    """Answer the subscription's consumers."""
    pickup = request.app[PICKUP]
    subscription = await pickup.subscription(request)
    found = await pickup.write(lambda: pickup.consumers.consumers(subscription.id))
    return web.json_response({"consumers": [_rendered(each) for each in found]})


async def delete_consumer(request: web.Request) -> web.Response:
    """Forget a consumer."""
    pickup, subscription, name = await _named(request)
    await _known(pickup, subscription, name)
    await pickup.write(lambda: pickup.consumers.remove(subscription.id, name))
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def fetch(request: web.Request) -> web.Response:
    """Answer at most `limit` matches, each pending from now on; waits `wait_s` for the first."""
    pickup, subscription, name = await _named(request)
    asked = await json_object(request, {"limit", "wait_s"})
    limit, wait_s = int(_number(asked, "limit", 100)), _number(asked, "wait_s", 0)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    while True:
        consumer = await _known(pickup, subscription, name)
        fetched = await pickup.write(
            lambda: pickup.consumers.fetch(subscription, name, limit=limit, now_us=pickup.now_us())
        )
        rest_s = deadline - loop.time()
        if fetched or rest_s <= 0:
            return web.json_response({"matches": [_fetched(each) for each in fetched]})
        await _wait(pickup, subscription, consumer, rest_s)


async def answer(request: web.Request) -> web.Response:
    """Take answers: `ack`, `nak` (fetched again after `delay_s`), `extend`, `term`.

    Each is a list of match numbers.  An answer for what is not pending changes nothing.
    """
    pickup, subscription, name = await _named(request)
    asked = await json_object(request, {"ack", "nak", "extend", "term", "delay_s", "reason"})
    consumer = await _known(pickup, subscription, name)
    delay_us = round(_number(asked, "delay_s", 0) * _S)
    reason = str(asked.get("reason", "the consumer gave it up"))[:200]
    numbers = {kind: _seqs(asked, kind) for kind in ("ack", "nak", "extend", "term")}

    def work() -> dict[str, int]:
        consumers, now_us = pickup.consumers, pickup.now_us()
        put_off = consumers.put_off
        again_us, extended_us = now_us + delay_us, now_us + consumer.ack_wait_us
        return {
            "ack": consumers.acknowledge(subscription.id, name, numbers["ack"]),
            "nak": put_off(subscription.id, name, numbers["nak"], until_us=again_us),
            "extend": put_off(subscription.id, name, numbers["extend"], until_us=extended_us),
            "term": consumers.terminate(
                subscription.id, name, numbers["term"], reason=reason, now_us=now_us
            ),
        }

    return web.json_response(await pickup.write(work))


async def _wait(
    pickup: Pickup, subscription: Subscription, consumer: DurableConsumer, rest_s: float
) -> None:
    """Wait until there may be something to fetch: a match, or a pending one that is due again."""
    due_us = await pickup.write(
        lambda: pickup.consumers.next_due_us(subscription.id, consumer.name)
    )
    if due_us is not None:
        rest_s = min(rest_s, max(0.01, (due_us - pickup.now_us()) / _S))
    if consumer.pending >= consumer.pending_max:
        # Answers come over other requests; nothing announces them.
        await asyncio.sleep(min(rest_s, 0.2))
        return
    await pickup.hub.next(subscription, after=consumer.seq, wait_s=rest_s)


async def _named(request: web.Request) -> tuple[Pickup, Subscription, str]:
    pickup, name = request.app[PICKUP], request.match_info["name"]
    if not _NAME.fullmatch(name):
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY, "a consumer's name is letters, digits, '.', '_', '-'"
        )
    return pickup, await pickup.subscription(request), name


async def _known(pickup: Pickup, subscription: Subscription, name: str) -> DurableConsumer:
    try:
        return await pickup.write(lambda: pickup.consumers.consumer(subscription.id, name))
    except ConsumerError as error:
        raise Problem(HTTPStatus.NOT_FOUND, str(error)) from error


def _number(asked: dict[str, Any], name: str, default: float) -> float:
    value = asked.get(name, default)
    low, high = _BOUNDS[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"{name!r} must be a number from {low:g} to {high:g}"
        )
    return value


def _seqs(asked: dict[str, Any], name: str) -> list[int]:
    value = asked.get(name, [])
    if not isinstance(value, list) or not all(type(each) is int for each in value):
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name!r} must be a list of match numbers")
    return value


def _start(pickup: Pickup, subscription: Subscription, start: object) -> int:
    if start == "new":
        return pickup.outbox.matches.last_seq()
    if start == "all":
        return 0
    if type(start) is int and 0 <= start < UNBOUNDED:
        return pickup.outbox.matches.topic_start(*subscription.topic, position=start)
    try:
        return pickup.outbox.matches.seq_since(parse_time(str(start)))
    except ValueError as error:
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY, "'start' must be 'new', 'all', a docid or a time"
        ) from error


def _rendered(consumer: DurableConsumer) -> dict[str, Any]:
    return {
        "name": consumer.name,
        "cursor": consumer.seq,
        "pending": consumer.pending,
        "ack_wait_s": consumer.ack_wait_us / _S,
        "max_deliver": consumer.deliver_max,
        "max_pending": consumer.pending_max,
        "created": render_time(consumer.created_us),
    }


def _fetched(fetched: Fetched) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(fetched.match.line)
    return {"seq": fetched.match.seq, "attempt": fetched.attempt, "match": line}


_CONSUMER = "/v1/subscriptions/{id}/consumers/{name}"

ROUTES = [
    web.get("/v1/subscriptions/{id}/consumers", list_consumers),
    web.put(_CONSUMER, put_consumer),
    web.get(_CONSUMER, get_consumer),
    web.delete(_CONSUMER, delete_consumer),
    web.post(_CONSUMER + "/fetch", fetch),
    web.post(_CONSUMER + "/answer", answer),
]
