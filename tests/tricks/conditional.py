"""Validators and answers that say nothing has changed."""

from __future__ import annotations

import asyncio

from aiohttp import web
from support.feed_server import Page, entries, rss

from feeds import (
    feed_at,
)
from tricks.stage import DAY, Play, faults


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
