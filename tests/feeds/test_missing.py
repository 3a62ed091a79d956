"""What a feed has lost between two checks, told by what they have in common."""

from __future__ import annotations

from support.feed_server import Page, entries, rss

from feeds import feed_at
from feeds.health import healths


async def test_entries_that_came_and_went_between_two_checks_are_counted(
    server, store, clock, poller_of
):
    shown = (range(10), range(5, 15), range(25, 35), range(30, 40))
    server.pages["/feed"] = [Page(rss(entries(numbers))) for numbers in shown]
    store.add(feed_at(server.url(), "news"))
    found = []
    for _ in shown:
        await poller_of().check_due()
        clock.advance(2 * 86_400)
        [health] = healths(store, clock.now_us())
        found.append((health.breaks, health.missed, health.items))
    # Entries are a minute apart, and those from 15 to 24 were never seen.
    assert found == [(0, 0, 10), (0, 0, 15), (1, 10, 25), (1, 10, 30)]
    assert health.loss == 0.25


async def test_a_feed_of_one_entry_loses_nothing_that_could_be_counted(
    server, store, clock, poller_of
):
    server.pages["/feed"] = [Page(rss(entries([number]))) for number in (1, 2)]
    store.add(feed_at(server.url(), "news"))
    for _ in range(2):
        await poller_of().check_due()
        clock.advance(2 * 86_400)
    [health] = healths(store, clock.now_us())
    assert (health.breaks, health.missed, health.loss) == (1, 0, 0.0)
