"""The poller against a real server: each entry once, whatever happens in between."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest
from lxml import etree
from support.feed_server import Page, entries, entry, rss

from feeds import FeedOptions, FeedStore, Hosts, PollPolicy, feed_at


async def test_each_new_entry_becomes_a_document_once(server, store, inbox, clock, poller_of):
    server.pages["/feed"] = [Page(rss(entries([1, 2]))), Page(rss(entries([1, 2, 3])))]
    store.add(feed_at(server.url(), "news"))
    poller = poller_of()
    (first,) = await poller.check_due()
    clock.advance(86_400)
    (second,) = await poller.check_due()
    assert inbox.keys == ["urn:item:1", "urn:item:2", "urn:item:3"]
    assert (first.outcome, first.new, second.new) == ("new items", 2, 1)
    assert {stream for stream, _, _, _ in inbox.documents} == {"news"}


async def test_the_document_is_the_normalised_item(server, store, inbox, poller_of):
    server.pages["/feed"] = Page(
        rss(entry(1, description="<p>Fish &amp; chips</p>", author="Ann"), title="A & B")
    )
    store.add(feed_at(server.url(), "news"))
    await poller_of().check_due()
    ((_, key, time_us, xml),) = inbox.documents
    root = etree.fromstring(xml)
    assert [(child.tag, child.text) for child in root] == [
        ("id", "urn:item:1"),
        ("title", "Item 1"),
        ("link", "https://example.org/1"),
        ("author", "Ann"),
        ("published", "2026-01-01T00:01:00Z"),
        ("summary", "Fish & chips"),
        ("source", "A & B"),
        ("feed", server.url()),
    ]
    assert key == f"{server.url()} urn:item:1"
    assert time_us == 1_767_225_660_000_000


async def test_validators_are_echoed_byte_for_byte(server, store, clock, poller_of):
    etag = 'W/"a,b;c \\ odd"'
    modified = "yesterday, about noon"
    page = Page(rss(entries([1])), etag=etag, headers={"Last-Modified": modified})
    server.pages["/feed"] = page
    store.add(feed_at(server.url(), "news"))
    poller = poller_of()
    await poller.check_due()
    clock.advance(86_400)
    (report,) = await poller.check_due()
    assert report.outcome == "not modified"
    assert server.headers("If-None-Match") == [None, etag]
    assert server.headers("If-Modified-Since") == [None, modified]


async def test_a_sink_that_refuses_loses_nothing(server, store, inbox, clock, poller_of):
    server.pages["/feed"] = Page(rss(entries([1, 2])), etag='"1"')
    store.add(feed_at(server.url(), "news"))
    inbox.refuses = True
    with pytest.raises(RuntimeError):
        await poller_of().check_due()
    assert store.get(server.url()).state.etag is None
    inbox.refuses = False
    await poller_of().check_due()
    assert inbox.keys == ["urn:item:1", "urn:item:2"]
    assert server.headers("If-None-Match") == [None, None]


async def test_a_feed_that_shrinks_reorders_and_repeats_gives_each_entry_once(
    server, store, inbox, clock, poller_of
):
    server.pages["/feed"] = [
        Page(rss(entry(3), entry(2), entry(1))),
        Page(rss(entry(2))),
        Page(rss(entry(1), entry(3), entry(3), entry(2))),
    ]
    store.add(feed_at(server.url(), "news"))
    for _ in range(3):
        await poller_of().check_due()
        clock.advance(2 * 86_400)
    assert inbox.keys == ["urn:item:1", "urn:item:2", "urn:item:3"]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (Page(status=404), "nothing at this address (404)"),
        (Page(status=500), "the server failed (500)"),
        (Page("<html><body>Hello</body></html>"), "a web page came back instead of a feed"),
        (Page(""), "the answer is empty"),
    ],
)
async def test_a_failure_is_told_in_words_and_backs_off(
    server, store, poller_of, page: Page, words: str
):
    server.pages["/feed"] = page
    store.add(feed_at(server.url(), "news"))
    (report,) = await poller_of().check_due()
    assert report.outcome == "failed"
    assert words in report.error
    assert report.next_check_us - report.at_us == 300_000_000
    assert words in store.get(server.url()).state.error


async def test_one_bad_feed_does_not_hold_up_the_others(server, store, inbox, poller_of):
    server.pages["/good"] = Page(rss(entries([1])))
    for path in ("/bad", "/good"):
        store.add(feed_at(server.url(path), "news"))
    reports = await poller_of().check_due()
    assert {report.outcome for report in reports} == {"failed", "new items"}
    assert inbox.keys == ["urn:item:1"]


async def test_run_polls_at_sub_second_intervals_until_cancelled(
    server, store, inbox, session, poller_of
):
    server.pages["/feed"] = [Page(rss(entries(range(n)))) for n in range(1, 6)]
    store.add(feed_at(server.url(), "news", FeedOptions(interval_s=0.02)))
    reports: asyncio.Queue[object] = asyncio.Queue()
    poller = poller_of(clock=None, on_report=reports.put_nowait)
    task = asyncio.create_task(poller.run())
    async with asyncio.timeout(10):
        while len(inbox.documents) < 5:
            await reports.get()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(set(inbox.keys)) == 5


async def test_run_takes_in_a_feed_that_is_added_while_it_runs(server, store, inbox, poller_of):
    server.pages["/feed"] = Page(rss(entries([1])))
    reports: asyncio.Queue[object] = asyncio.Queue()
    task = asyncio.create_task(poller_of(clock=None, on_report=reports.put_nowait).run())
    await asyncio.sleep(0)
    store.add(feed_at(server.url(), "news"))
    async with asyncio.timeout(10):
        await reports.get()
    task.cancel()
    assert inbox.keys == ["urn:item:1"]


async def test_a_private_address_is_refused_unless_allowed(server, store, poller_of):
    server.pages["/feed"] = Page(rss(entries([1])))
    store.add(feed_at(server.url(host="localhost"), "news"))
    (report,) = await poller_of(session=None).check_due()
    assert "private or reserved address" in report.error
    assert server.requests == []


async def test_two_feeds_of_one_host_take_turns(server, store, poller_of):
    flying = 0
    most = 0

    async def slow(request):
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0.01)
        flying -= 1
        return Page(rss(entries([1]))).response(request)

    for number in range(4):
        server.pages[f"/{number}"] = slow
        store.add(feed_at(server.url(f"/{number}"), "news"))
    await poller_of(hosts=Hosts(gap_s=0)).check_due()
    assert most == 1


async def test_a_backlog_can_be_left_out(server, store, inbox, clock, poller_of):
    server.pages["/feed"] = [Page(rss(entries([1, 2]))), Page(rss(entries([1, 2, 3])))]
    store.add(feed_at(server.url(), "news", FeedOptions(backlog="new")))
    await poller_of().check_due()
    clock.advance(2 * 86_400)
    await poller_of().check_due()
    assert inbox.keys == ["urn:item:3"]


async def test_an_edit_fires_again_only_where_the_feed_says_so(
    server, store, inbox, clock, poller_of
):
    pages = [Page(rss(entry(1))), Page(rss(entry(1, title="Item one")))]
    for path, option in (("/quiet", "ignore"), ("/loud", "new document")):
        server.pages[path] = list(pages)
        store.add(feed_at(server.url(path), path[1:], FeedOptions(on_update=option)))
    await poller_of().check_due()
    clock.advance(2 * 86_400)
    reports = await poller_of().check_due()
    assert sorted(stream for stream, _, _, _ in inbox.documents) == ["loud", "loud", "quiet"]
    assert {report.revised for report in reports} == {1}


def test_credentials_are_kept_from_other_users_and_from_every_listing(store: FeedStore, tmp_path):
    store.add(feed_at("https://ann:s3cret@example.org/feed", "news"))
    assert "s3cret" not in repr(store.all())
    assert (tmp_path / "feeds.db").stat().st_mode & 0o077 == 0
    assert store.get("https://example.org/feed").feed.secrets.password == "s3cret"


def test_forgetting_old_entries_keeps_the_recent_ones(store: FeedStore, tmp_path):
    store.add(feed_at("https://example.org/feed", "news"))
    assert store.forget_old_entries(PollPolicy().backoff_max_s) == 0
    assert sqlite3.connect(tmp_path / "feeds.db").execute("SELECT count(*) FROM seen").fetchone()
