"""Bodies: packed, endless, cut short, mislabelled, or no feed."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import brotli
from aiohttp import web
from backports import zstd
from support.feed_server import Page, entries, entry, rss

from feeds import (
    Limits,
)
from tricks.stage import HOUR, Play, faults


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


async def broken_compression_is_an_error_in_words(play: Play) -> list[str]:
    body = gzip.compress(rss(entries(range(50))).encode())
    headers = {"Content-Encoding": "gzip"}
    play.server.pages["/feed"] = Page(body[:40] + b"rubbish" + body[47:], headers=headers)
    await play.add()
    (report,) = await play.poll()
    return faults(words="broken encoding" in report.error, nothing=not play.inbox.documents)


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


async def a_web_page_and_an_empty_answer_are_told_apart(play: Play) -> list[str]:
    play.server.pages["/page"] = Page("<!DOCTYPE html><html><head></head></html>")
    play.server.pages["/empty"] = Page("")
    for path in ("/page", "/empty"):
        await play.add(path)
    reports = {r.url.rpartition("/")[2]: r.error for r in await play.poll()}
    return faults(page="web page" in reports["page"], empty="empty" in reports["empty"])


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
