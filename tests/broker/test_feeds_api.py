"""`/v1/feeds` of a whole broker, through the Python client, with a real feed server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from support.feed_server import FeedServer, Page, entries, rss, start_feed_server
from support.small_broker import small_broker

from feeds import FeedStore
from xscl.client import AsyncClient, RefusedError

SECRET = "open-sesame"


@pytest.fixture
async def feed_server() -> AsyncIterator[FeedServer]:
    started = await start_feed_server()
    started.pages["/feed"] = Page(rss(entries(range(20)), title="Twenty"), etag='"1"')
    link = '<link rel="alternate" type="application/rss+xml" href="/feed">'
    started.pages["/"] = Page(f"<html><head>{link}</head></html>")
    yield started
    await started.close()


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[str]:
    async with small_broker(tmp_path) as url:
        yield url


@pytest.fixture
async def client(api: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(api) as client:
        yield client


async def test_the_feed_behind_a_page_is_added_paused_resumed_and_removed(feed_server, client):
    added = await client.add_feed(feed_server.url("/"), "news")
    assert (added.url, added.stream, added.status) == (feed_server.url("/feed"), "news", "waiting")
    assert (await client.pause_feed(added.url)).status == "paused"
    assert [each.status for each in await client.feeds(status="paused")] == ["paused"]
    assert await client.feeds(stream="blogs") == []
    assert (await client.resume_feed(added.url)).status == "waiting"
    refreshed = await client.refresh_feed(added.url)
    assert (refreshed.why, refreshed.next_check) == ("asked for by hand", None)
    await client.remove_feed(added.url)
    assert await client.feeds() == []


async def test_a_feed_is_subscribed_once(feed_server, client):
    await client.add_feed(feed_server.url("/feed?a=1&b=%2F"), "news", check=False)
    with pytest.raises(RefusedError, match="subscribed already") as refused:
        await client.add_feed(feed_server.url("/feed?a=1&b=%2F"), "blogs", check=False)
    assert refused.value.status == 409
    assert (await client.feed(feed_server.url("/feed?a=1&b=%2F"))).stream == "news"


@pytest.mark.parametrize(
    "verb", ["feed", "pause_feed", "resume_feed", "refresh_feed", "remove_feed"]
)
async def test_a_feed_that_is_not_subscribed_is_not_found(client, verb: str):
    with pytest.raises(RefusedError, match=r"no feed https://.* is subscribed") as refused:
        await getattr(client, verb)("https://example.org/")
    assert refused.value.status == 404


async def test_check_shows_what_would_be_made_of_a_feed_and_subscribes_nothing(feed_server, client):
    found = await client.check_feed(feed_server.url("/"))
    assert (found["url"], found["title"]) == (feed_server.url("/feed"), "Twenty")
    assert (found["items"], found["identity"], found["step"]) == (20, "guid", "strict")
    assert found["next_check"].endswith("Z")
    assert "<title>Item 19</title>" in found["documents"][-1]
    assert len(found["documents"]) == 10
    assert await client.feeds() == []


async def test_as_many_documents_are_shown_as_are_asked_for(feed_server, client):
    found = await client.check_feed(feed_server.url("/feed"), documents=2_000)
    assert len(found["documents"]) == found["items"] == 20
    with pytest.raises(RefusedError, match="'documents' must be a whole number from 1 to 2000"):
        await client.check_feed(feed_server.url("/feed"), documents=0)


async def test_what_was_seen_of_a_feed_is_in_the_answer_to_adding_it(feed_server, client):
    added = await client.add_feed(feed_server.url("/feed"), "news")
    assert added.fields["checked"] == {"format": "rss20", "items": 20}
    unseen = await client.add_feed("https://a.example/", "news", check=False)
    assert "checked" not in unseen.fields
    assert "checked" not in (await client.feed(added.url)).fields


async def test_feeds_go_out_and_come_in_as_opml_without_their_secrets(client):
    await client.add_feed(f"https://ann:{SECRET}@a.example/", "news", check=False)
    await client.add_feed("https://b.example/", "blogs", check=False)
    opml = await client.export_feeds()
    assert SECRET not in opml.decode()
    await client.remove_feed("https://a.example/")
    taken = await client.import_feeds(opml)
    assert taken == {"added": 1, "known": 1, "problems": []}
    assert {each.url: each.stream for each in await client.feeds()} == {
        "https://a.example/": "news",
        "https://b.example/": "blogs",
    }


async def test_of_an_opml_document_is_said_what_was_left_out(client):
    outlines = b'<outline xmlUrl="ftp://a.b/"/><outline xmlUrl="https://a.example/"/>'
    opml = b"<opml><body>" + outlines + b"</body></opml>"
    taken = await client.import_feeds(opml, stream="mine")
    assert (taken["added"], taken["known"], len(taken["problems"])) == (1, 0, 1)
    assert [each.stream for each in await client.feeds()] == ["mine"]
    for other in (b"", b"<html/>", b"\xff\x00"):
        with pytest.raises(RefusedError, match="not an OPML document") as refused:
            await client.import_feeds(other)
        assert refused.value.status == 422


async def test_a_feed_that_does_not_end_is_given_up_in_time(feed_server, client, monkeypatch):
    monkeypatch.setattr("feeds.administration._LOOK_S", 0.2)

    async def hang(_: object) -> object:
        await asyncio.sleep(60)
        raise AssertionError

    feed_server.pages["/slow"] = hang
    with pytest.raises(RefusedError, match="nothing was found within"):
        await client.check_feed(feed_server.url("/slow"))


async def test_what_is_no_feed_is_refused_in_words(feed_server, client):
    feed_server.pages = {"/bare": Page("<html></html>")}
    for verb in (client.check_feed(feed_server.url("/bare")), client.add_feed("ftp://a.b/", "s")):
        with pytest.raises(RefusedError) as refused:
            await verb
        assert refused.value.status == 422
    assert "is not an http" in str(refused.value)


async def test_a_feed_inside_is_not_looked_at(client):
    with pytest.raises(RefusedError, match="private address"):
        await client.check_feed("http://10.0.0.1/feed")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": 3}, "unknown option 'interval'; there are every_s, title"),
        ({"every_s": "soon"}, "'every_s' must be a number"),
        ({"every_s": 0}, "'every_s' must be a number"),
        ({"item": "cooked"}, "'item' must be one of 'normalised', 'raw'"),
        ({"backlog": "since"}, "'since' must be set"),
        ({"backlog": "new", "since": "2026-01-01"}, "'since' cannot be set"),
        ({"since": "May"}, "'since' must be an ISO 8601 time"),
        ({"proxy": "proxy.example:3128"}, "'proxy' must be an http:// or https:// address"),
        ({"robots": 1}, "'robots' must be true or false"),
        ({"title": 1}, "'title' must be a string"),
    ],
)
async def test_an_option_that_cannot_be_is_named(client, options, message: str):
    with pytest.raises(RefusedError, match=message) as refused:
        await client.add_feed("https://example.org/", "news", options=options, check=False)
    assert refused.value.status == 422


async def test_options_are_kept_and_shown(client):
    options = {
        "every_s": 60.0,
        "title": "Mine",
        "item": "raw",
        "on_update": "new document",
        "backlog": "since",
        "since": "2026-01-01T00:00:00Z",
        "proxy": "http://proxy.example:3128",
        "robots": True,
    }
    added = await client.add_feed("https://a.example/", "news", options=options, check=False)
    assert added.fields["options"] == options
    assert added.title == "Mine"


async def test_secrets_are_sent_to_the_feed_and_shown_nowhere(
    feed_server, client, api: str, tmp_path: Path
):
    url = feed_server.url("/feed").replace("://", f"://ann:{SECRET}@")
    options = {"proxy": f"http://ann:{SECRET}@proxy.example:3128"}
    await client.add_feed(url, "news", headers={"X-Key": SECRET})
    await client.add_feed("https://b.example/", "news", options=options, check=False)
    assert feed_server.headers("X-Key") == [SECRET]
    shown = [dict(each.fields) for each in await client.feeds()]
    shown += [dict((await client.feed(each["url"])).fields) for each in shown]
    assert len(shown) == 4
    assert SECRET not in json.dumps(shown)
    assert [each.get("has_secrets") for each in shown[2:]] == [True, False]
    store = FeedStore(tmp_path / "feeds.db")
    assert store.get(feed_server.url("/feed")).feed.secrets.password == SECRET
    store.close()


@pytest.mark.parametrize("headers", [{"A B": "x"}, {"X": f"a\r\nb: {SECRET}"}, {"": "x"}])
async def test_a_header_that_cannot_be_sent_is_refused_without_its_value(client, headers):
    with pytest.raises(RefusedError, match="header") as refused:
        await client.add_feed("https://a.example/", "news", headers=headers, check=False)
    assert SECRET not in str(refused.value)


async def test_a_feed_has_one_percent_encoded_segment_of_the_path(client, api: str):
    await client.add_feed("https://a.example/f?x=1", "news", check=False)
    place = f"{api}/v1/feeds/{quote('https://a.example/f?x=1', safe='')}"
    async with aiohttp.ClientSession() as session, session.get(place) as answer:
        assert (await answer.json())["url"] == "https://a.example/f?x=1"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("[]", 400),
        ("{", 400),
        ('{"url": "https://a.example/"}', 422),
        ('{"stream": "s"}', 422),
        ('{"url": "https://a.example/", "stream": "s", "colour": 1}', 422),
        ('{"url": "https://a.example/", "stream": "s", "headers": []}', 422),
        ('{"url": "https://a.example/", "stream": "s", "check": "no"}', 422),
    ],
)
async def test_a_request_that_is_none_is_refused(api: str, body: str, status: int):
    async with aiohttp.ClientSession() as session, session.post(f"{api}/v1/feeds", data=body) as it:
        assert it.status == status
        assert it.content_type == "application/problem+json"
