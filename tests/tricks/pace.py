"""How often a poller asks, and when a server asks for peace."""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from itertools import pairwise

from aiohttp import web
from support.feed_server import Page, entries, entry, rss

from feeds import (
    Hosts,
)
from tricks.stage import DAY, HOUR, Play, faults


async def conditional_hourly_at_most(play: Play) -> list[str]:
    play.server.pages["/feed"] = Page(rss(entries(range(20))), etag='"1"')
    await play.add()
    await play.days(1)
    return faults(at_most_27=len(play.server.requests) <= 27)


async def unconditional_daily_where_nothing_is_missed(play: Play) -> list[str]:
    weekly = [entry(n * 7 * 24 * 60) for n in range(10)]
    play.server.pages["/feed"] = Page(rss(*weekly))
    play.clock.advance(70 * DAY)
    await play.add()
    await play.days(3)
    return faults(daily=len(play.server.requests) <= 4, at_all=len(play.server.requests) >= 3)


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
