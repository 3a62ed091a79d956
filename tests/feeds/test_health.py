"""How a feed is doing, in words that a person can act on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.feed_server import Page, entries, rss

from feeds import FeedOptions, FeedState, Subscribed, feed_at
from feeds.health import figures, health, healths, render_health

NOW = 1_767_312_000_000_000
DAY_US = 86_400_000_000
READ = FeedState(
    checks=3, last_check_us=NOW - 5, last_success_us=NOW - 5, gap_s=43_200, newest_us=NOW - 10
)


def status(state: FeedState) -> str:
    return health(Subscribed(feed_at("https://example.org/f", "S"), state), NOW).status


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (FeedState(), "waiting"),
        (READ, "ok"),
        (replace(READ, failures=1, error="no"), "failing"),
        (replace(READ, gone=True, failures=1), "gone"),
        (replace(READ, paused=True, gone=True), "paused"),
        (replace(READ, newest_us=NOW - 30 * DAY_US), "quiet"),
    ],
)
def test_the_status_says_the_worst_first(state: FeedState, expected: str):
    assert status(state) == expected


async def test_every_feed_shows_its_next_check_and_why(server, store, clock, poller_of):
    server.pages["/good"] = Page(rss(entries(range(10)), title="Good"), etag='"1"')
    for path in ("/good", "/bad"):
        store.add(feed_at(server.url(path), "news"))
    store.add(feed_at("https://paused.example/", "news", FeedOptions(title="Mine")))
    store.change("https://paused.example/", paused=True)
    await poller_of().check_due()
    bad, good, paused = healths(store, clock.now_us())
    assert (good.title, good.status, good.step, good.items) == ("Good", "ok", "strict", 10)
    assert good.items_per_day == 1_440
    assert good.why
    assert good.next_check_us > clock.now_us()
    assert (bad.status, bad.failures) == ("failing", 1)
    assert "nothing at this address" in bad.error
    assert (paused.status, paused.next_check_us, paused.title) == ("paused", 0, "Mine")
    assert figures([bad, good, paused]) == {
        "feeds_waiting": 0,
        "feeds_ok": 1,
        "feeds_failing": 1,
        "feeds_gone": 0,
        "feeds_paused": 1,
        "feeds_quiet": 0,
        "feed_items_total": 10,
        "feed_revisions_total": 0,
    }
    rendered = json.loads(json.dumps([render_health(each) for each in (bad, good, paused)]))
    assert rendered[2]["next_check"] is None
    assert rendered[1]["last_check"].endswith("Z")
