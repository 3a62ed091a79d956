"""The behaviour scorer: a server that plays the web's tricks, and a mark for each.

After the rules of the Feed Reader Behavior Project and the complaints of feed publishers.  Each
trick is a function that lets a poller loose on the server and returns what it did wrong.  The
clock is moved by hand, so that days pass in milliseconds.
"""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate
from itertools import pairwise
from typing import Any

import brotli
import pytest
from aiohttp import web
from backports import zstd
from feed_server import FeedServer, Page, entries, entry, rss

from feeds import (
    FeedOptions,
    FeedStore,
    Hosts,
    Limits,
    Poller,
    PollReport,
    Secrets,
    feed_at,
    networks,
)
from feeds.feed import with_headers

HOUR = 3_600
DAY = 24 * HOUR


@dataclass
class Play:
    """One trick on stage: a server, a store, and a poller that can be restarted."""

    server: FeedServer
    store: FeedStore
    inbox: Any
    clock: Any
    make: Callable[..., Poller]

    async def add(self, path: str = "/feed", *, host: str = "127.0.0.1", **options: Any) -> str:
        await self.server.listen(host)
        url = self.server.url(path, host)
        self.store.add(feed_at(url, "news", FeedOptions(**options)))
        return url

    async def poll(self, **options: Any) -> list[PollReport]:
        """Check what is due, by a poller that knows only what the store remembers."""
        return await self.make(**options).check_due()

    async def days(self, count: float, *, step: float = 0.25 * HOUR) -> None:
        """Let time pass; check whatever falls due on the way."""
        for _ in range(int(count * DAY / step)):
            self.clock.advance(step)
            await self.poll()

    def state(self, path: str = "/feed", host: str = "127.0.0.1") -> Any:
        return self.store.get(self.server.url(path, host)).state


Trick = Callable[[Play], Awaitable[list[str]]]
TRICKS: list[Trick] = []


def trick(function: Trick) -> Trick:
    TRICKS.append(function)
    return function


def faults(**checks: bool) -> list[str]:
    return [name for name, is_right in checks.items() if not is_right]


@trick
async def odd_validators_come_back_unchanged(play: Play) -> list[str]:
    etags = ['"plain"', "unquoted", 'W/"weak"', '"a"b"c"', "'single'", '"ünïcode"', '""']
    wrong = []
    for number, etag in enumerate(etags):
        play.server.pages[f"/{number}"] = Page(rss(entries([1])), etag=etag)
        await play.add(f"/{number}")
    await play.poll()
    play.clock.advance(2 * DAY)
    before = len(play.server.requests)
    await play.poll()
    for request in play.server.requests[before:]:
        sent = request.headers.get("If-None-Match")
        if sent != etags[int(request.path[1:])]:
            wrong.append(f"{request.path}: {sent!r}")
    return wrong


@trick
async def a_validator_that_cannot_be_sent_back_is_not_sent(play: Play) -> list[str]:
    async def latin1(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        body = rss(entries([1])).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        writer.write(head.encode() + b'ETag: "caf\xe9"\r\n\r\n' + body)
        await writer.drain()
        writer.close()

    seen: list[bytes] = []
    server = await asyncio.start_server(latin1, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    play.store.add(feed_at(f"http://127.0.0.1:{port}/", "news"))
    await play.poll()
    play.clock.advance(2 * DAY)
    await play.poll()
    server.close()
    return faults(asked_twice=len(seen) == 2, made_up=b"if-none-match" not in seen[1].lower())


@trick
async def nothing_is_made_up(play: Play) -> list[str]:
    play.server.pages["/feed"] = Page(rss(entries([1])), headers={"Set-Cookie": "a=b"})
    await play.add()
    await play.poll()
    play.clock.advance(2 * DAY)
    await play.poll()
    last = play.server.requests[-1]
    return faults(
        if_modified_since="If-Modified-Since" not in last.headers,
        if_none_match="If-None-Match" not in last.headers,
        cookie="Cookie" not in last.headers,
        referer="Referer" not in last.headers,
        query=not last.query_string,
        user_agent="+http" in last.headers["User-Agent"] and "xscl" in last.headers["User-Agent"],
        accepts={"gzip", "deflate", "br", "zstd"}
        <= set(last.headers["Accept-Encoding"].replace(" ", "").split(",")),
    )


@trick
async def a_304_refreshes_validators_and_costs_no_parse(play: Play) -> list[str]:
    async def answer(request: web.Request) -> web.Response:
        number = len(play.server.requests)
        if number == 1:
            return web.Response(body=rss(entries([1])).encode(), headers={"ETag": '"1"'})
        return web.Response(status=304, headers={"ETag": f'"{number}"'})

    play.server.pages["/feed"] = answer
    await play.add()
    for _ in range(3):
        await play.poll()
        play.clock.advance(2 * DAY)
    sent = play.server.headers("If-None-Match")
    return faults(refreshed=sent == [None, '"1"', '"2"'], once=len(play.inbox.documents) == 1)


@trick
async def conditional_hourly_at_most(play: Play) -> list[str]:
    play.server.pages["/feed"] = Page(rss(entries(range(20))), etag='"1"')
    await play.add()
    await play.days(1)
    return faults(at_most_27=len(play.server.requests) <= 27)


@trick
async def unconditional_daily_where_nothing_is_missed(play: Play) -> list[str]:
    weekly = [entry(n * 7 * 24 * 60) for n in range(10)]
    play.server.pages["/feed"] = Page(rss(*weekly))
    play.clock.advance(70 * DAY)
    await play.add()
    await play.days(3)
    return faults(daily=len(play.server.requests) <= 4, at_all=len(play.server.requests) >= 3)


@trick
async def cache_lifetimes_are_waited_for(play: Play) -> list[str]:
    expires = formatdate(play.clock.now_us() / 1e6 + 5 * HOUR, usegmt=True)
    date = formatdate(play.clock.now_us() / 1e6, usegmt=True)
    pages = {
        "/max-age": {"Cache-Control": "public, max-age=18000"},
        "/expires": {"Expires": expires, "Date": date},
    }
    for path, headers in pages.items():
        play.server.pages[path] = Page(rss(entries([1])), headers=headers, etag='"1"')
        await play.add(path)
    await play.poll()
    now = play.clock.now_us()
    return [
        path for path in pages if play.state(path).next_check_us < now + 5 * HOUR * 1_000_000 - 2e6
    ]


@trick
async def too_many_requests_silence_the_whole_domain(play: Play) -> list[str]:
    server = play.server
    server.pages["/a"] = Page("", status=429, headers={"Retry-After": "7200"})
    server.pages["/b"] = Page(rss(entries([1])))
    await play.add("/a", host="127.0.0.3")
    await play.poll()
    await play.add("/b", host="127.0.0.3")
    await play.add("/b", host="127.0.0.4")
    before = len(server.requests)
    await play.poll()
    early = [r.host for r in server.requests[before:]]
    play.clock.advance(2 * HOUR - 60)
    await play.poll()
    restarted = [r.host for r in server.requests[before:] if "127.0.0.3" in r.host]
    server.pages["/a"] = Page(rss(entries([1])))
    play.clock.advance(2 * HOUR)
    await play.poll()
    later = [r.path for r in server.requests[before:] if "127.0.0.3" in r.host]
    return faults(
        others_go_on=len(early) == 1 and "127.0.0.4" in early[0],
        silence_survives_restarts=not restarted,
        both_after=sorted(later) == ["/a", "/b"],
    )


@trick
async def retry_after_is_heeded_with_503_and_as_a_date(play: Play) -> list[str]:
    now_s = play.clock.now_us() / 1e6
    until = formatdate(now_s + 3 * HOUR, usegmt=True)
    headers = {"Retry-After": until, "Date": formatdate(now_s, usegmt=True)}
    play.server.pages["/feed"] = Page("", status=503, headers=headers)
    await play.add()
    await play.poll()
    state = play.state()
    return faults(
        waits=state.next_check_us >= (now_s + 3 * HOUR) * 1e6 - 1e6,
        says_why="the server asked" in state.why,
    )


@trick
async def a_used_up_rate_limit_with_403_counts_as_429(play: Play) -> list[str]:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "3600"}
    play.server.pages["/feed"] = Page("", status=403, headers=headers)
    await play.add()
    (report,) = await play.poll()
    return faults(
        words="rate limit" in report.error,
        waits=report.next_check_us - report.at_us >= HOUR * 1e6,
        domain=len(play.store.pauses()) == 1,
    )


@trick
async def gone_means_gone(play: Play) -> list[str]:
    play.server.pages["/feed"] = Page("", status=410)
    await play.add()
    await play.poll()
    await play.days(3, step=DAY)
    return faults(once=len(play.server.requests) == 1, said=play.state().gone)


@trick
async def errors_back_off_and_success_forgets_them(play: Play) -> list[str]:
    play.server.pages["/feed"] = Page("", status=500)
    await play.add()
    await play.poll()
    await play.days(2)
    asked = len(play.server.requests)
    play.server.pages["/feed"] = Page(rss(entries([1])))
    await play.days(2, step=HOUR)
    return faults(
        few=asked <= 11,
        recovers=play.state().failures == 0 and not play.state().error,
        item=len(play.inbox.documents) == 1,
    )


@trick
async def a_permanent_move_is_adopted_slowly_and_a_temporary_one_never(play: Play) -> list[str]:
    for path, status in (("/old", 301), ("/now", 302)):
        play.server.pages[path] = Page("", status=status, headers={"Location": "/new"})
        await play.add(path)
    play.server.pages["/new"] = Page(rss(entries([1])), etag='"1"')
    await play.poll()
    early = play.state("/old").moved_to
    await play.days(5, step=HOUR)
    return faults(
        not_at_once=not early,
        adopted=play.state("/old").moved_to.endswith("/new"),
        not_302=not play.state("/now").moved_to,
        same_items=len(play.inbox.documents) == 2,
    )


@trick
async def a_move_that_turns_out_badly_is_taken_back(play: Play) -> list[str]:
    play.server.pages["/old"] = Page("", status=301, headers={"Location": "/new"})
    play.server.pages["/new"] = Page(rss(entries([1])))
    await play.add("/old")
    await play.poll()
    await play.days(6, step=6 * HOUR)
    adopted = play.state("/old").moved_to
    play.server.pages["/new"] = Page("", status=410)
    play.server.pages["/old"] = Page(rss(entries([1, 2])))
    await play.days(4, step=6 * HOUR)
    state = play.state("/old")
    return faults(
        adopted=bool(adopted),
        back=not state.moved_to and not state.gone,
        read=play.inbox.keys == ["urn:item:1", "urn:item:2"],
    )


@trick
async def a_proxy_is_used_where_the_feed_names_one(play: Play) -> list[str]:
    play.server.pages["/feed"] = Page(rss(entries([1])))
    options = FeedOptions(proxy=play.server.url("/"))
    play.store.add(feed_at("http://feed.example/feed", "news", options))
    (report,) = await play.poll()
    return faults(read=report.new == 1, host=play.server.requests[0].host == "feed.example")


@trick
async def endless_redirects_end(play: Play) -> list[str]:
    play.server.pages["/feed"] = Page("", status=302, headers={"Location": "/feed"})
    await play.add()
    (report,) = await play.poll()
    return faults(few=len(play.server.requests) <= 6, words="redirects" in report.error)


@trick
async def secrets_stay_at_their_origin(play: Play) -> list[str]:
    await play.server.listen("127.0.0.5")
    other = play.server.url("/new", "127.0.0.5")
    play.server.pages["/feed"] = Page("", status=302, headers={"Location": other})
    play.server.pages["/new"] = Page(rss(entries([1])))
    feed = feed_at(play.server.url().replace("//", "//ann:pw@"), "news")
    play.store.add(with_headers(feed, (("X-Key", "k"),)))
    await play.poll()
    first, second = play.server.requests
    return faults(
        sent=first.headers.get("Authorization", "").startswith("Basic ")
        and first.headers.get("X-Key") == "k",
        kept="Authorization" not in second.headers and "X-Key" not in second.headers,
    )


@trick
async def bombs_of_every_encoding_are_cut_off(play: Play) -> list[str]:
    raw = b"<rss><channel>" + b" " * 60_000_000
    deflate = zlib.compress(raw, 9)
    bodies = {
        "gzip": gzip.compress(raw, 9),
        "deflate": deflate,
        "br": brotli.compress(raw, quality=5),
        "zstd": zstd.compress(raw),
    }
    for name, body in bodies.items():
        play.server.pages[f"/{name}"] = Page(body, headers={"Content-Encoding": name})
        await play.add(f"/{name}")
    reports = await play.poll(limits=Limits(body_bytes_max=1_000_000))
    return [report.error for report in reports if "more than 1 MB" not in report.error]


@trick
async def every_content_encoding_is_read(play: Play) -> list[str]:
    raw = rss(entries([1])).encode()
    bodies = {
        "gzip": gzip.compress(raw),
        "deflate": zlib.compress(raw),
        "br": brotli.compress(raw),
        "zstd": zstd.compress(raw),
    }
    for name, body in bodies.items():
        play.server.pages[f"/{name}"] = Page(body, headers={"Content-Encoding": name})
        await play.add(f"/{name}")
    reports = await play.poll()
    return [f"{report.url}: {report.error}" for report in reports if report.new != 1]


@trick
async def broken_compression_is_an_error_in_words(play: Play) -> list[str]:
    body = gzip.compress(rss(entries(range(50))).encode())
    headers = {"Content-Encoding": "gzip"}
    play.server.pages["/feed"] = Page(body[:40] + b"rubbish" + body[47:], headers=headers)
    await play.add()
    (report,) = await play.poll()
    return faults(words="broken encoding" in report.error, nothing=not play.inbox.documents)


@trick
async def an_endless_body_and_a_slow_drip_are_cut_off(play: Play) -> list[str]:
    async def drip(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(200):
            await answer.write(b" ")
            await asyncio.sleep(0.02)
        return answer

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b" " * 65_536)

    play.server.pages.update({"/drip": drip, "/endless": endless})
    await play.add("/drip", host="127.0.0.6")
    await play.add("/endless", host="127.0.0.7")
    limits = Limits(body_bytes_max=1_000_000, total_s=0.5)
    reports = {r.url.rpartition("/")[2]: r.error for r in await play.poll(limits=limits)}
    return faults(drip="timeout" in reports["drip"], endless="more than 1 MB" in reports["endless"])


@trick
async def broken_charsets_are_read(play: Play) -> list[str]:
    text = rss(entry(1, title="naïve café"))
    bodies = {
        "/liar": text.encode("cp1252"),
        "/mark": text.encode("utf-8-sig"),
        "/wide": text.encode("utf-16"),
    }
    for path, body in bodies.items():
        play.server.pages[path] = Page(body, headers={"Content-Type": "text/xml; charset=utf-8"})
        await play.add(path)
    await play.poll()
    read = [xml for _, _, _, xml in play.inbox.documents if "naïve café".encode() in xml]
    return faults(all_read=len(read) == len(bodies))


@trick
async def a_restart_brings_no_burst(play: Play) -> list[str]:
    for number in range(30):
        path = f"/{number}"
        play.server.pages[path] = Page(rss(entries([1])), etag='"1"')
        await play.add(path, host=f"127.0.1.{number + 1}")
    await play.poll()
    before = len(play.server.requests)
    for _ in range(5):
        await play.poll()
    at_once = len(play.server.requests) - before
    play.clock.advance(3 * DAY)
    task = asyncio.create_task(play.make().run())
    await asyncio.sleep(0.3)
    task.cancel()
    burst = len(play.server.requests) - before
    return faults(not_due_not_asked=at_once == 0, spread=burst <= 6)


@trick
async def hosts_get_one_request_at_a_time_with_a_gap(play: Play) -> list[str]:
    times: list[float] = []

    async def answer(request: web.Request) -> web.Response:
        times.append(asyncio.get_running_loop().time())
        return Page(rss(entries([1]))).response(request)

    for number in range(4):
        play.server.pages[f"/{number}"] = answer
        await play.add(f"/{number}")
    await play.poll(hosts=Hosts(gap_s=0.1))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return faults(all=len(times) == 4, gaps=min(gaps) >= 0.09)


@trick
async def a_web_page_and_an_empty_answer_are_told_apart(play: Play) -> list[str]:
    play.server.pages["/page"] = Page("<!DOCTYPE html><html><head></head></html>")
    play.server.pages["/empty"] = Page("")
    for path in ("/page", "/empty"):
        await play.add(path)
    reports = {r.url.rpartition("/")[2]: r.error for r in await play.poll()}
    return faults(page="web page" in reports["page"], empty="empty" in reports["empty"])


@trick
async def a_feed_that_is_cut_short_loses_no_entry(play: Play) -> list[str]:
    whole = rss(entries([1, 2, 3]))
    play.server.pages["/feed"] = [
        Page(whole[: whole.rindex("<item>") + 30]),
        Page(""),
        Page(whole),
    ]
    await play.add()
    await play.poll()
    await play.days(2, step=HOUR)
    known = sorted(set(play.inbox.keys))
    return faults(
        all=known == ["urn:item:1", "urn:item:2", "urn:item:3"],
        once=len(play.inbox.keys) <= 4,
    )


@trick
async def robots_txt_is_heeded_where_asked_for(play: Play) -> list[str]:
    play.server.pages["/robots.txt"] = Page("User-agent: *\nDisallow: /private")
    for path in ("/private/a", "/private/b", "/public"):
        play.server.pages[path] = Page(rss(entries([1])))
    await play.add("/private/a", robots=True)
    await play.add("/private/b")
    await play.add("/public", robots=True)
    await play.poll()
    asked = {request.path for request in play.server.requests}
    return faults(
        heeded="/private/a" not in asked,
        option="/private/b" in asked,
        allowed="/public" in asked,
    )


@trick
async def private_addresses_are_not_dialled_by_redirect(play: Play) -> list[str]:
    await play.server.listen("127.0.0.9")
    other = play.server.url("/secret", "127.0.0.9")
    play.server.pages["/feed"] = Page("", status=302, headers={"Location": other})
    await play.add(host="127.0.0.1")
    (report,) = await play.poll(session=None, allowed=networks(["127.0.0.1"]))
    return faults(
        words="private or reserved" in report.error,
        not_asked=[r.path for r in play.server.requests] == ["/feed"],
    )


SCORES: dict[str, list[str]] = {}


@pytest.mark.parametrize("function", TRICKS, ids=lambda function: function.__name__)
async def test_the_poller_behaves(function: Trick, server, store, inbox, clock, poller_of) -> None:
    SCORES[function.__name__] = ["it did not finish"]
    SCORES[function.__name__] = await function(Play(server, store, inbox, clock, poller_of))
    assert not SCORES[function.__name__]


def test_the_score_is_full(record_property) -> None:
    right = sum(1 for found in SCORES.values() if not found)
    score = f"feed reader behaviour: {right} of {len(SCORES)} tricks without a fault"
    record_property("figure", score)
    assert right == len(SCORES)


def test_secrets_do_not_show() -> None:
    assert "pw" not in repr(Secrets("ann", "pw", (("X-Key", "pw"),)))
