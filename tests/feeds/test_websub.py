"""WebSub: what a hub is believed, what it learns from us, and what happens when it dies."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.feed_server import FeedServer, Page, entries, rss

from feeds import FeedStore, feed_at, websub
from feeds.push import Push

NOW = 1_767_312_000_000_000
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US


def active(**changes: object) -> websub.Lease:
    lease = websub.asked(websub.new_lease("https://hub.example/", "https://a.example/f"), NOW)
    query = {
        "hub.mode": "subscribe",
        "hub.topic": lease.topic,
        "hub.challenge": "c",
        "hub.lease_seconds": "864000",
    }
    return replace(websub.verified(lease, query, NOW).lease, **changes)  # type: ignore[arg-type]


def test_intent_is_verified_for_our_own_topic_only():
    lease = websub.asked(websub.new_lease("https://hub.example/", "https://a.example/f"), NOW)
    good = {"hub.mode": "subscribe", "hub.topic": lease.topic, "hub.challenge": "c<1>"}
    answer = websub.verified(lease, good, NOW)
    assert (answer.status, answer.body, answer.lease.state) == (200, "c<1>", "active")
    for wrong in ({"hub.topic": "https://b.example/"}, {"hub.mode": "unsubscribe"}):
        refused = websub.verified(lease, {**good, **wrong}, NOW)
        assert (refused.status, refused.lease) == (404, lease)
    unasked = websub.new_lease("https://hub.example/", lease.topic)
    assert websub.verified(unasked, good, NOW).status == 404


@pytest.mark.parametrize(
    ("given", "days"), [("864000", 10), ("99999999", 14), ("", 10), ("-5", 10), ("1e9", 10)]
)
def test_a_lease_is_clamped_and_renewed_at_half(given: str, days: int):
    lease = websub.asked(websub.new_lease("https://hub.example/", "https://a.example/f"), NOW)
    query = {
        "hub.mode": "subscribe",
        "hub.topic": lease.topic,
        "hub.challenge": "c",
        "hub.lease_seconds": given,
    }
    found = websub.verified(lease, query, NOW).lease
    assert found.expires_us - NOW == days * DAY_US
    assert websub.ask_at_us(found) == NOW + days * DAY_US // 2


def test_renewal_keeps_the_secret_the_callback_and_the_active_state():
    lease = active()
    renewing = websub.asked(lease, lease.renew_us)
    assert (renewing.token, renewing.secret, renewing.state) == (
        lease.token,
        lease.secret,
        "active",
    )
    assert websub.asked(lease, lease.expires_us + 1).state == "pending"


def test_a_hub_that_refuses_is_asked_ever_less_often():
    lease = websub.new_lease("https://hub.example/", "https://a.example/f")
    waits = []
    now = NOW
    for _ in range(8):
        lease = websub.asked(lease, now, "it answered 500")
        waits.append((websub.ask_at_us(lease) - now) / HOUR_US)
        now = websub.ask_at_us(lease)
    assert waits == [2, 4, 8, 16, 24, 24, 24, 24]


def test_a_denied_topic_is_asked_for_again_after_a_week():
    lease = websub.verified(active(), {"hub.mode": "denied", "hub.reason": "no"}, NOW).lease
    assert (lease.state, lease.error) == ("denied", "denied: no")
    assert websub.ask_at_us(lease) == NOW + 7 * DAY_US


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512", "SHA256"])
def test_a_push_is_believed_with_the_right_signature(method: str):
    lease = active()
    digest = hmac.new(lease.secret.encode(), b"body", getattr(hashlib, method.lower())).hexdigest()
    assert websub.is_signed(lease, f"{method}={digest}", b"body")
    assert not websub.is_signed(lease, f"{method}={digest}", b"other")


@pytest.mark.parametrize("signature", ["", "sha256=", "md5=00", "sha256", "=", "sha256=ünïcode"])
def test_a_push_is_not_believed_without(signature: str):
    assert not websub.is_signed(active(), signature, b"body")


def test_a_hub_works_from_its_first_push_until_it_is_caught_missing():
    lease = active()
    assert not websub.is_working(lease, NOW)
    lease = websub.pushed(lease, NOW)
    assert websub.is_working(lease, NOW)
    for _ in range(websub.MISSES_MAX):
        lease = websub.missed(lease)
    assert not websub.is_working(lease, NOW)
    assert websub.is_working(websub.pushed(lease, NOW), NOW)
    assert not websub.is_working(websub.pushed(lease, NOW), lease.expires_us)


def test_a_lease_comes_back_as_it_was_stored_and_hides_its_secret():
    lease = active()
    assert websub.parse_lease(websub.render_lease(lease)) == lease
    assert lease.secret not in repr(lease)
    assert lease.token not in repr(lease)


@dataclass
class Hub:
    """A hub on the feed server, and the broker's callbacks on a server of their own."""

    server: FeedServer
    push: Push
    callbacks: FeedServer
    session: aiohttp.ClientSession
    forms: list[dict[str, str]] = field(default_factory=list)

    async def subscribe(self, request: web.Request) -> web.Response:
        self.forms.append(dict(await request.post()))  # type: ignore[arg-type]
        return web.Response(status=202)

    async def verify(self, **changes: str) -> tuple[int, str]:
        form = self.forms[-1]
        query = {
            "hub.mode": form["hub.mode"],
            "hub.topic": form["hub.topic"],
            "hub.challenge": "ch",
            "hub.lease_seconds": form["hub.lease_seconds"],
            **changes,
        }
        async with self.session.get(form["hub.callback"], params=query) as answer:
            return answer.status, await answer.text()

    async def deliver(self, body: str, *, secret: str | None = None) -> int:
        form = self.forms[-1]
        key = (secret or form["hub.secret"]).encode()
        digest = hmac.new(key, body.encode(), hashlib.sha256).hexdigest()
        headers = {"X-Hub-Signature": f"sha256={digest}", "Content-Type": "application/rss+xml"}
        async with self.session.post(
            form["hub.callback"], data=body.encode(), headers=headers
        ) as answer:
            return answer.status


@pytest.fixture
async def hub(
    server: FeedServer, store: FeedStore, session: aiohttp.ClientSession, clock: Any
) -> AsyncIterator[Hub]:
    app = web.Application()
    runner = web.AppRunner(app)
    callbacks = FeedServer(runner)
    push = Push(store, base_url="http://127.0.0.1:0", now_us=clock.now_us)
    app.add_routes(push.routes())
    await runner.setup()
    await callbacks.listen("127.0.0.1")
    push.move_to(f"http://127.0.0.1:{callbacks.port}")
    made = Hub(server, push, callbacks, session)
    server.pages["/hub"] = made.subscribe
    yield made
    await runner.cleanup()


def feed_with_hub(server: FeedServer, numbers: list[int]) -> Page:
    links = (
        f'<a:link xmlns:a="http://www.w3.org/2005/Atom" rel="hub" href="{server.url("/hub")}"/>'
        f'<a:link xmlns:a="http://www.w3.org/2005/Atom" rel="self" href="{server.url()}"/>'
    )
    return Page(rss(entries(numbers), extra=links), etag=f'"{numbers}"')


async def test_a_feed_is_subscribed_pushed_and_still_checked(
    hub: Hub, server, store, inbox, clock, session, poller_of
):
    server.pages["/feed"] = feed_with_hub(server, [1])
    store.add(feed_at(server.url(), "news"))
    poller = poller_of(push=hub.push)
    await poller.check_due()
    assert await hub.push.ask_due(session) == 1
    assert await hub.push.ask_due(session) == 0
    assert await hub.verify(**{"hub.topic": "https://other.example/"}) == (404, "")
    assert await hub.verify() == (200, "ch")

    reports: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(poller_of(push=hub.push, on_report=reports.put_nowait).run())
    assert await hub.deliver(rss(entries([1, 2])), secret="wrong") == 202
    assert await hub.deliver("<rss") == 202
    assert await hub.deliver(rss(entries([1, 2]))) == 202
    async with asyncio.timeout(10):
        while (await reports.get()).new == 0:
            pass
    task.cancel()
    assert inbox.keys == ["urn:item:1", "urn:item:2"]

    server.pages["/feed"] = feed_with_hub(server, [1, 2])
    clock.advance(3_700)
    (report,) = await poller_of(push=hub.push).check_due()
    assert "backup" in report.why
    assert inbox.keys == ["urn:item:1", "urn:item:2"]
    assert hub.push.lease(server.url()).misses == 0


async def test_a_hub_that_dies_in_silence_is_found_out_by_the_backup_check(
    hub: Hub, server, store, inbox, clock, session, poller_of
):
    server.pages["/feed"] = feed_with_hub(server, [1])
    store.add(feed_at(server.url(), "news"))
    await poller_of(push=hub.push).check_due()
    await hub.push.ask_due(session)
    await hub.verify()
    for number in range(2, 6):
        clock.advance(2 * 86_400)
        server.pages["/feed"] = feed_with_hub(server, [1, number])
        await poller_of(push=hub.push).check_due()
    assert hub.push.lease(server.url()).misses == 4
    assert not hub.push.is_working(server.url(), clock.now_us())
    assert len(inbox.documents) == 5


async def test_an_unknown_callback_learns_nothing(hub: Hub, session):
    url = f"http://127.0.0.1:{hub.callbacks.port}/websub/guess"
    async with session.post(url, data=b"<rss/>") as answer:
        assert answer.status == 202
    async with session.get(url, params={"hub.mode": "subscribe"}) as answer:
        assert answer.status == 404


async def test_leases_survive_a_restart(hub: Hub, server, store, clock, session, poller_of):
    server.pages["/feed"] = feed_with_hub(server, [1])
    store.add(feed_at(server.url(), "news"))
    await poller_of(push=hub.push).check_due()
    await hub.push.ask_due(session)
    await hub.verify()
    again = Push(store, base_url="http://127.0.0.1:1", now_us=clock.now_us)
    assert again.lease(server.url()) == hub.push.lease(server.url())
    assert await again.ask_due(session) == 0
