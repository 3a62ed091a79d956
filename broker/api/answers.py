"""Answers of subscribers: over HTTP, and on the pages behind the links of what they were sent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from html import escape
from http import HTTPStatus
from typing import Any

from aiohttp import web

from broker.api.audit import note, recorded
from broker.api.backend import BACKEND
from broker.api.body import form_of, json_object
from broker.api.pickup import PICKUP, Pickup
from broker.api.problem import Problem
from broker.api.subscriptions import remove
from broker.delivery.alerts.answers import NotSentError
from broker.delivery.confirmation import ConfirmationQuestion, questions
from broker.delivery.deliveries import DeliveryError
from broker.delivery.links import Purpose
from broker.documents.document import parse_time, render_time
from broker.registry.file import RegistryError
from broker.registry.subscription import DestinationKind, Subscription, SubscriptionState
from xscl.durations import DurationError, read_duration

__all__ = ["ROUTES"]

_YEAR_US = 366 * 86_400_000_000

_FORM_BYTES_MAX = 10_000

_TIMES = ("1 hour", "8 hours", "1 day", "1 week")
"""What the page of a message offers."""

_HEAD = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>Subscription</title>"
    "<style>body{font:18px/1.5 sans-serif;max-width:32em;margin:0 auto;padding:2em 1em;"
    "overflow-wrap:anywhere}button{font:inherit;padding:.6em 1.2em}</style>"
)


_NO_LINK = "this link is not, or no longer, one of ours"

_UNSUBSCRIBED = "<p>You had unsubscribed already.</p>"


async def ask_to_unsubscribe(request: web.Request) -> web.Response:
    """Show a page with one button.  A GET changes nothing: link scanners send those."""
    subscription = await _subscription(request, "unsubscribe")
    if subscription.state is SubscriptionState.REMOVED:
        return _page(_UNSUBSCRIBED)
    return _page(
        f"<p>{_described(subscription)}.</p>"
        '<form method="post"><button name="List-Unsubscribe" value="One-Click">'
        "Unsubscribe</button></form>"
    )


async def unsubscribe(request: web.Request) -> web.Response:
    """End the subscription (RFC 8058: one POST, no login, no question); can be repeated."""
    try:
        found = await _subscription(request, "unsubscribe")
        if found.state is SubscriptionState.REMOVED:
            return _page(_UNSUBSCRIBED)
        note(request, found.id)
        async with recorded(request, "link:unsubscribe"):
            await remove(request.app[BACKEND], found.id, reason="unsubscribed by link")
    except RegistryError:
        return _page(_UNSUBSCRIBED)
    return _page("<p>You are unsubscribed.</p>")


async def ask_to_confirm(request: web.Request) -> web.Response:
    """Show a page with one button; a GET confirms nothing."""
    asked, _ = await _asked(request)
    return _page(
        f"<p>{escape(asked.address)} gets {escape(asked.offer)} once you confirm it.</p>"
        '<form method="post"><button>Confirm</button></form>'
    )


async def confirm(request: web.Request) -> web.Response:
    """Have the subscription's matches sent once all its addresses say so; can be repeated."""
    asked, subscription = await _asked(request)
    if subscription.state is not SubscriptionState.UNCONFIRMED:
        return _page(f"<p>There is nothing to confirm: it is {subscription.state.value}.</p>")
    note(request, subscription.id)
    async with recorded(request, "link:confirm"):
        is_last = await _say_yes(request.app[PICKUP], asked, subscription)
    if is_last:
        return _page("<p>It is confirmed: matches are sent from now on.</p>")
    return _page("<p>It is confirmed: matches are sent once another address says so, too.</p>")


async def _say_yes(pickup: Pickup, asked: ConfirmationQuestion, subscription: Subscription) -> bool:
    """Note that an address has confirmed, and ask the next; return whether it was the last."""
    subscriptions, last = pickup.registry.subscriptions, questions(subscription)[-1]
    if asked == last:
        await asyncio.to_thread(subscriptions.confirm, subscription.id)
        return True
    if not subscription.reason:
        state, reason = SubscriptionState.UNCONFIRMED, f"{last.address} has not confirmed it"
        await asyncio.to_thread(subscriptions.set_state, subscription.id, state, reason=reason)
        await pickup.ask_to_confirm(replace(subscription, reason=reason))
    return False


async def _asked(request: web.Request) -> tuple[ConfirmationQuestion, Subscription]:
    """Return the question that a link answers, and the subscription that it is about."""
    pickup, token = request.app[PICKUP], request.match_info["token"]
    for purpose in ("confirm", "confirm escalation"):
        name = pickup.named_by(purpose, token)
        if name is not None:
            subscription = await asyncio.to_thread(pickup.registry.subscriptions.get, name)
            asked = questions(subscription)
            return next(each for each in asked if each.purpose == purpose), subscription
    raise Problem(HTTPStatus.NOT_FOUND, _NO_LINK)


def _named(request: web.Request, purpose: Purpose) -> str:
    subscription_id = request.app[PICKUP].named_by(purpose, request.match_info["token"])
    if subscription_id is None:
        raise Problem(HTTPStatus.NOT_FOUND, _NO_LINK)
    return subscription_id


async def _subscription(request: web.Request, purpose: Purpose) -> Subscription:
    subscriptions = request.app[PICKUP].registry.subscriptions
    return await asyncio.to_thread(subscriptions.get, _named(request, purpose))


def _described(subscription: Subscription) -> str:
    return (
        f"{escape(subscription.destination.shown)} gets the matches of"
        f" <b>{escape(subscription.query)}</b>"
    )


def _page(body: str) -> web.Response:
    """Return a page for somebody who has followed a link from a message."""
    return web.Response(
        text=_HEAD + body,
        content_type="text/html",
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
    )


async def snooze_delivery(request: web.Request) -> web.Response:
    """Have a message come at `until`: later, where it was not begun, else again."""
    pickup, name = request.app[PICKUP], request.match_info["id"]
    asked = await json_object(request, {"until"})
    until_us = _until_us(asked.get("until"), pickup.now_us())
    comes = await _write(
        pickup, lambda: pickup.answers.snooze_message(name, until_us, pickup.now_us())
    )
    return web.json_response({"id": comes, "until": render_time(until_us)})


async def acknowledge_delivery(request: web.Request) -> web.Response:
    """Take a message as seen: it is not escalated, and does not come again."""
    pickup, name = request.app[PICKUP], request.match_info["id"]
    at_us = await _write(pickup, lambda: pickup.answers.acknowledge(name, pickup.now_us()))
    return web.json_response({"acknowledged": render_time(at_us)})


async def snooze_subscription(request: web.Request) -> web.Response:
    """Send nothing before `until`; with a `key`, suppress its messages and send the others."""
    pickup = request.app[PICKUP]
    subscription = await _sent(request)
    asked = await json_object(request, {"until", "key"})
    until_us, key = _until_us(asked.get("until"), pickup.now_us()), asked.get("key")
    if key is not None:
        if not isinstance(key, str):
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "'key' must be a string")
        _check_has_keys(subscription)
    await _snooze(pickup, subscription.id, key, until_us)
    return await _answer(pickup, subscription.id)


async def get_snooze(request: web.Request) -> web.Response:
    """Answer until when a subscription is snoozed, and which of its keys are."""
    subscription = await _sent(request)
    return await _answer(request.app[PICKUP], subscription.id)


async def end_snooze(request: web.Request) -> web.Response:
    """End the snooze of `?key=`, or of the subscription where none is named."""
    pickup = request.app[PICKUP]
    subscription, key = await _sent(request), request.query.get("key")
    await pickup.write(lambda: pickup.answers.end_snooze(subscription.id, key, pickup.now_us()))
    return await _answer(pickup, subscription.id)


async def show_message(request: web.Request) -> web.Response:
    """Show what can be said to a message; a GET says nothing: link scanners send those."""
    pickup, name = request.app[PICKUP], _named(request, "alert")
    subscription, key = await _about(pickup, name)
    seen = '<form method="post"><button name="what" value="seen">Acknowledge</button></form>'
    forms = [_form("this message", "message")]
    if key and subscription.options.key:
        forms.append(_form(f"all of <b>{escape(key)}</b>", "key"))
    forms.append(_form(f"all of <b>{escape(subscription.query)}</b>", "subscription"))
    first = seen if subscription.options.escalate else ""
    return _page(f"{first}<p>Not now? Snooze</p>{''.join(forms)}")


async def answer_message(request: web.Request) -> web.Response:
    """Do what a button of the page says; it can be pressed twice."""
    pickup, name = request.app[PICKUP], _named(request, "alert")
    form = await form_of(request, bytes_max=_FORM_BYTES_MAX)
    subscription, key = await _about(pickup, name)
    note(request, subscription.id, delivery=name, what=form.get("what", ""))
    async with recorded(request, "link:alert"):
        return await _answered(pickup, name, subscription, key, form)


async def _answered(
    pickup: Pickup, name: str, subscription: Subscription, key: str | None, form: dict[str, str]
) -> web.Response:
    what = form.get("what")
    if what == "seen":
        await _write(pickup, lambda: pickup.answers.acknowledge(name, pickup.now_us()))
        return _page("<p>It is acknowledged: nobody else is told.</p>")
    until_us = _until_us(form.get("until"), pickup.now_us())
    then = f"until {render_time(until_us)[:16].replace('T', ' ')} UTC"
    if what == "message":
        now_us = pickup.now_us()
        await _write(pickup, lambda: pickup.answers.snooze_message(name, until_us, now_us))
        return _page(f"<p>It is snoozed {then}: then it comes again.</p>")
    if what == "key" and key:
        _check_has_keys(subscription)
        await _snooze(pickup, subscription.id, key, until_us)
        return _page(f"<p>Nothing of <b>{escape(key)}</b> is sent {then}.</p>")
    if what == "subscription":
        await _snooze(pickup, subscription.id, None, until_us)
        return _page(f"<p>Nothing is sent {then}; then you get what you have missed.</p>")
    raise Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, "'what' must be 'seen', 'message', 'key' or 'subscription'"
    )


def _form(what: str, name: str) -> str:
    buttons = "".join(f'<button name="until" value="{each}">{each}</button> ' for each in _TIMES)
    hidden = f'<input type="hidden" name="what" value="{name}">'
    return f'<form method="post"><p>{what} for</p>{hidden}{buttons}</form>'


async def _about(pickup: Pickup, name: str) -> tuple[Subscription, str | None]:
    """Return the subscription and the key of a message."""
    owner = await _write(pickup, lambda: pickup.answers.subscription_of(name))
    key = await _write(pickup, lambda: pickup.answers.key_of(name))
    return await asyncio.to_thread(pickup.registry.subscriptions.get, owner), key


async def _sent(request: web.Request) -> Subscription:
    """Return the subscription that a request names, if it is one that is sent."""
    subscriptions = request.app[PICKUP].registry.subscriptions
    found = await asyncio.to_thread(subscriptions.get, request.match_info["id"])
    if found.destination.kind is DestinationKind.PULL or found.state is SubscriptionState.REMOVED:
        raise Problem(HTTPStatus.CONFLICT, f"nothing is sent of {found.id!r}")
    return found


def _check_has_keys(subscription: Subscription) -> None:
    if not subscription.options.key:
        detail = "it has no `key`: its messages are not told apart"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


async def _snooze(pickup: Pickup, subscription_id: str, key: str | None, until_us: int) -> None:
    def snooze() -> None:
        if key is None:
            pickup.answers.snooze_subscription(subscription_id, until_us)
        else:
            pickup.answers.snooze_key(subscription_id, key, until_us)

    await _write(pickup, snooze)


async def _answer(pickup: Pickup, subscription_id: str) -> web.Response:
    def look_up() -> dict[str, Any]:
        answers = pickup.answers
        until_us, keys = answers.snoozes(subscription_id, pickup.now_us())
        return {
            "until": None if until_us is None else render_time(until_us),
            "keys": [
                {
                    "key": key,
                    "until": render_time(at_us),
                    "has_messages": answers.has_had(subscription_id, key),
                }
                for key, at_us in keys.items()
            ],
        }

    return web.json_response(await pickup.write(look_up))


async def _write(pickup: Pickup, work: Any) -> Any:
    try:
        return await pickup.write(work)
    except DeliveryError as error:
        raise Problem(HTTPStatus.NOT_FOUND, str(error)) from error
    except NotSentError as error:
        raise Problem(HTTPStatus.CONFLICT, str(error)) from error


def _until_us(until: object, now_us: int) -> int:
    """Read a time, or how long from now: at most a year."""
    wrong = Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, "'until' is a time, or how long from now: `8 h`"
    )
    if not isinstance(until, str):
        raise wrong
    try:
        until_us = parse_time(until)
    except ValueError:
        try:
            until_us = now_us + read_duration(until)
        except DurationError as error:
            raise wrong from error
    if not now_us < until_us <= now_us + _YEAR_US:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "'until' is within a year from now")
    return until_us


_SUBSCRIPTION = "/v1/subscriptions/{id}/snooze"

ROUTES = [
    web.get(_SUBSCRIPTION, get_snooze),
    web.post(_SUBSCRIPTION, snooze_subscription),
    web.delete(_SUBSCRIPTION, end_snooze),
    web.post("/v1/deliveries/{id}/snooze", snooze_delivery),
    web.post("/v1/deliveries/{id}/acknowledge", acknowledge_delivery),
    web.get("/v1/alerts/{token}", show_message),
    web.post("/v1/alerts/{token}", answer_message),
    web.get("/v1/unsubscribe/{token}", ask_to_unsubscribe),
    web.post("/v1/unsubscribe/{token}", unsubscribe),
    web.get("/v1/confirm/{token}", ask_to_confirm),
    web.post("/v1/confirm/{token}", confirm),
]
