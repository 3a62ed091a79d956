"""Lists and discovery: OPML there and back, and the feed behind a page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.feed_server import Page, entries, rss

from feeds import FeedError, Request, Secrets, feed_at
from feeds.discovery import FoundFeed, discover, links_in_page
from feeds.opml import parse_opml, render_opml, stream_name

OPML = b"""<?xml version="1.0" encoding="utf-8"?>
<opml version="2.0"><head><title>Mine</title></head><body>
 <outline text="World news"><outline type="rss" text="One" xmlUrl="https://one.example/f"/>
  <outline text="Science"><outline type="rss" title="Two" xmlUrl="https://two.example/f"/></outline>
 </outline>
 <outline type="rss" text="Loose" xmlurl="https://three.example/f"/>
 <outline type="rss" text="Again" xmlUrl="https://one.example/f"/>
 <outline type="rss" text="Path" category="/a/Sport" xmlUrl="https://four.example/f"/>
 <outline type="rss" text="Bad" xmlUrl="ftp://five.example/f"/>
</body></opml>"""


def test_folders_become_streams():
    found = parse_opml(OPML, stream="rest")
    assert [(feed.url, feed.stream, feed.options.title) for feed in found.feeds] == [
        ("https://one.example/f", "World-news", "One"),
        ("https://two.example/f", "Science", "Two"),
        ("https://three.example/f", "rest", "Loose"),
        ("https://four.example/f", "Sport", "Path"),
    ]
    assert len(found.problems) == 1
    assert "ftp://five.example/f" in found.problems[0]


def test_what_is_exported_can_be_imported_and_holds_no_secret():
    feeds = [
        feed_at("https://ann:pw@one.example/f?a=1&b=2", "news"),
        feed_at("https://two.example/", "blogs"),
    ]
    text = render_opml(feeds, {"https://two.example/": "<Two>"})
    assert b"pw" not in text
    again = parse_opml(text)
    assert {(f.url, f.stream) for f in again.feeds} == {(f.url, f.stream) for f in feeds}
    assert "<Two>" in {feed.options.title for feed in again.feeds}


@pytest.mark.parametrize("body", [b"", b"<html/>", b"not xml", b"<rss/>"])
def test_what_is_no_list_is_refused(body: bytes):
    with pytest.raises(FeedError, match="not an OPML"):
        parse_opml(body)


@given(st.text())
def test_every_folder_name_makes_a_stream_name_or_the_default(name: str):
    found = stream_name(name, "feeds")
    assert found
    assert found[0].isalpha() or found[0] in "_s"


def test_a_page_names_its_feeds_comments_last():
    page = b"""<html><head><base href="/blog/"><link rel="stylesheet" href="x.css">
    <link rel="alternate" type="application/rss+xml" title="Comments" href="comments/feed">
    <LINK REL="Alternate" TYPE="application/atom+xml; charset=utf-8" HREF="atom.xml">
    <link rel="alternate" hreflang="de" href="/de"></head>"""
    assert [each.url for each in links_in_page(page, "https://a.example/x")] == [
        "https://a.example/blog/atom.xml",
        "https://a.example/blog/comments/feed",
    ]


async def test_the_feed_behind_a_page_is_found(server, session):
    link = '<link rel="alternate" type="application/rss+xml" href="/{}">'
    server.pages["/"] = Page(f"<html><head>{link.format('dead')}{link.format('rss')}</head></html>")
    server.pages["/rss"] = Page(rss(entries([1])))
    found = await discover(session, Request(server.url("/")))
    assert isinstance(found, FoundFeed)
    assert found.url == server.url("/rss")


async def test_the_usual_places_are_tried_where_a_page_names_none(server, session):
    server.pages["/"] = Page("<html><body>Hello</body></html>")
    server.pages["/atom.xml"] = Page(rss(entries([1])))
    found = await discover(session, Request(server.url("/")))
    assert isinstance(found, FoundFeed)
    assert found.url == server.url("/atom.xml")


async def test_a_page_without_a_feed_says_so(server, session):
    server.pages["/"] = Page("<html><body>Hello</body></html>")
    found = await discover(session, Request(server.url("/")))
    assert isinstance(found, FeedError)
    assert "names no feed" in str(found)


async def test_secrets_are_not_told_to_a_server_that_a_page_names(server, session):
    await server.listen("127.0.0.2")
    other = server.url("/rss", "127.0.0.2")
    server.pages["/"] = Page(f'<link rel="alternate" type="application/rss+xml" href="{other}">')
    server.pages["/rss"] = Page(rss(entries([1])))
    secrets = Secrets("ann", "pw", (("X-Key", "k"),))
    found = await discover(session, Request(server.url("/"), secrets=secrets))
    assert isinstance(found, FoundFeed)
    assert server.headers("X-Key") == ["k", None]
    assert server.headers("Authorization")[1] is None


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("feed://example.org/rss", "http://example.org/rss"),
        ("feed:https://example.org/rss", "https://example.org/rss"),
        ("feed:http://example.org/rss", "http://example.org/rss"),
    ],
)
def test_what_buttons_of_feeds_link_to_is_a_feed(given: str, meant: str) -> None:
    assert feed_at(given, "news").url == meant


@pytest.mark.parametrize(
    "given", ["feed:file:///etc/passwd", "feed:feed://x/", "feed:", "file://x/"]
)
def test_what_is_no_address_of_the_web_is_refused(given: str) -> None:
    with pytest.raises(FeedError, match="is not an http"):
        feed_at(given, "news")
