"""Feeds that move or go, and places that a poller must not go to or tell of."""

from __future__ import annotations

from support.feed_server import Page, entries, rss

from feeds import (
    FeedOptions,
    feed_at,
    networks,
)
from feeds.feed import with_headers
from tricks.stage import DAY, HOUR, Play, faults


async def gone_means_gone(play: Play) -> list[str]:
    play.server.pages["/feed"] = Page("", status=410)
    await play.add()
    await play.poll()
    await play.days(3, step=DAY)
    return faults(once=len(play.server.requests) == 1, said=play.state().gone)


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


async def a_proxy_is_used_where_the_feed_names_one(play: Play) -> list[str]:
    play.server.pages["/feed"] = Page(rss(entries([1])))
    options = FeedOptions(proxy=play.server.url("/"))
    play.store.add(feed_at("http://feed.example/feed", "news", options))
    (report,) = await play.poll()
    return faults(read=report.new == 1, host=play.server.requests[0].host == "feed.example")


async def endless_redirects_end(play: Play) -> list[str]:
    play.server.pages["/feed"] = Page("", status=302, headers={"Location": "/feed"})
    await play.add()
    (report,) = await play.poll()
    return faults(few=len(play.server.requests) <= 6, words="redirects" in report.error)


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
