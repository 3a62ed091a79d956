"""The pages behind the links of mails: to confirm a subscription, and to end it."""

from __future__ import annotations

import asyncio
from html import escape
from http import HTTPStatus

from aiohttp import web

from broker.api.audit import note, recorded
from broker.api.backend import BACKEND
from broker.api.pickup import PICKUP
from broker.api.problem import Problem
from broker.api.subscriptions import remove
from broker.delivery.links import Purpose
from broker.registry.file import RegistryError
from broker.registry.subscription import Subscription, SubscriptionState

__all__ = ["ROUTES"]

_HEAD = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>Subscription</title>"
    "<style>body{font:18px/1.5 sans-serif;max-width:32em;margin:0 auto;padding:2em 1em;"
    "overflow-wrap:anywhere}button{font:inherit;padding:.6em 1.2em}</style>"
)


_UNSUBSCRIBED = "<p>You had unsubscribed already.</p>"


async def ask_to_unsubscribe(request: web.Request) -> web.Response:
    """Show a page with one button.  A GET changes nothing: link scanners send those."""
    subscription = await _subscription(request, "unsubscribe")
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
    subscription = await _subscription(request, "confirm")
    return _page(
        f"<p>{_described(subscription)} once you confirm it.</p>"
        '<form method="post"><button>Confirm</button></form>'
    )


async def confirm(request: web.Request) -> web.Response:
    """Have the subscription's matches sent from now on; can be repeated."""
    subscription = await _subscription(request, "confirm")
    subscriptions = request.app[PICKUP].registry.subscriptions
    if subscription.state is SubscriptionState.UNCONFIRMED:
        note(request, subscription.id)
        async with recorded(request, "link:confirm"):
            await asyncio.to_thread(subscriptions.confirm, subscription.id)
        return _page("<p>It is confirmed: matches are sent to you from now on.</p>")
    return _page(f"<p>There is nothing to confirm: it is {subscription.state.value}.</p>")


def _named(request: web.Request, purpose: Purpose) -> str:
    subscription_id = request.app[PICKUP].named_by(purpose, request.match_info["token"])
    if subscription_id is None:
        raise Problem(HTTPStatus.NOT_FOUND, "this link is not, or no longer, one of ours")
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
    return web.Response(
        text=_HEAD + body,
        content_type="text/html",
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
    )


ROUTES = [
    web.get("/v1/unsubscribe/{token}", ask_to_unsubscribe),
    web.post("/v1/unsubscribe/{token}", unsubscribe),
    web.get("/v1/confirm/{token}", ask_to_confirm),
    web.post("/v1/confirm/{token}", confirm),
]
