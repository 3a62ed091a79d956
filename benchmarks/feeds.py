"""Feeds: how fast they are parsed, and how 5,000 of them are polled.

    python benchmarks/feeds.py parse            items per second, beside feedparser's
    python benchmarks/feeds.py poll             5,000 feeds on a loopback server

`poll` runs the days of real feeds at 180 times their speed: an hour is 20 seconds, and so are
the numbers of the policy.  The server, a process of its own, plays 5 % errors, slow answers, 429s
and lifetimes, and counts what breaks the rules: a request too early, two at a time at one host, a
validator that it never gave.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

import aiohttp
import feedparser
from aiohttp import web

if __name__ == "__main__":
    # This file stands first on the path of a script, and has the name of the package.
    sys.path[0] = str(Path(__file__).parents[1])

from feeds import (
    FeedStore,
    Hosts,
    ParsedFeed,
    Poller,
    PollPolicy,
    item_document,
    networks,
    parse,
)
from feeds.dates import parse_date
from feeds.feed import feed_at
from feeds.poller import PollReport

SPEED = 180
WINDOW = 20
HOSTS = 500
PORT_LINE = "listening on "


def parsing(directory: Path) -> None:
    bodies = [file.read_bytes() for file in sorted(directory.iterdir())]

    def ours() -> int:
        found = [parse(body, url="https://example.org/f") for body in bodies]
        return sum(len(each.items) for each in found if isinstance(each, ParsedFeed))

    def documents() -> int:
        count = 0
        for body in bodies:
            found = parse(body, url="https://example.org/f")
            assert isinstance(found, ParsedFeed)
            for item in found.items:
                item_document(item, feed="https://example.org/f", source=found.title)
                count += 1
        return count

    def theirs() -> int:
        return sum(len(feedparser.parse(body).entries) for body in bodies)

    print(f"{len(bodies)} real files, {sum(map(len, bodies)) / 1e6:.1f} MB, one core, best of 7")
    for name, work, rounds in (
        ("parse", ours, 7),
        ("parse and write <item>", documents, 7),
        ("feedparser", theirs, 2),
    ):
        print(f"  {name:<24}{best(work, rounds):>10,.0f} items/s")


def best(work: Any, rounds: int) -> float:
    """Items per second of CPU time: other load on the machine shows less than in wall time."""
    rates = []
    for _ in range(rounds):
        parse_date.cache_clear()
        started = time.process_time()
        rates.append(work() / (time.process_time() - started))
    return max(rates)


@dataclass(slots=True)
class Published:
    """One feed on the server: its entries come `gap_s` apart, numbered from the epoch on."""

    number: int
    gap_s: float
    has_etag: bool
    max_age_s: int
    earliest: float = 0.0
    last_etag: str | None = None

    def newest(self, now: float) -> int:
        return int(now / self.gap_s)


@dataclass
class Web:
    """The server's feeds, its moods, and the rules that it watches."""

    feeds: list[Published]
    random: random.Random
    broken: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    flying: Counter[str] = field(default_factory=Counter)

    async def answer(self, request: web.Request) -> web.Response:
        if request.path == "/report":
            return web.json_response({"broken": self.broken, "answers": self.answers})
        self.flying[request.host] += 1
        if self.flying[request.host] > 1:
            self.broken["two requests at a time at one host"] += 1
        try:
            return await self._answer(request)
        finally:
            self.flying[request.host] -= 1

    async def _answer(self, request: web.Request) -> web.Response:
        feed = self.feeds[int(request.path.rpartition("/")[2])]
        now = time.time()
        self._watch(request, feed, now)
        mood = self.random.random()
        if mood < 0.04:
            self.answers["500"] += 1
            return web.Response(status=500)
        if mood < 0.05:
            self.answers["429"] += 1
            feed.earliest = now + 10
            return web.Response(status=429, headers={"Retry-After": "10"})
        if mood < 0.07:
            self.answers["slow"] += 1
            await asyncio.sleep(2)
        return self._feed(request, feed, now)

    def _watch(self, request: web.Request, feed: Published, now: float) -> None:
        if now < feed.earliest - 0.05:
            self.broken["before the time that was named"] += 1
        sent = request.headers.get("If-None-Match")
        if sent != feed.last_etag:
            self.broken[f"validator {sent!r} for {feed.last_etag!r}"] += 1

    def _feed(self, request: web.Request, feed: Published, now: float) -> web.Response:
        newest = feed.newest(now)
        headers = {"Content-Type": "application/rss+xml"}
        if feed.max_age_s:
            headers["Cache-Control"] = f"max-age={feed.max_age_s}"
            feed.earliest = now + feed.max_age_s
        if feed.has_etag:
            headers["ETag"] = feed.last_etag = f'W/"{newest}"'
            if request.headers.get("If-None-Match") == feed.last_etag:
                self.answers["304"] += 1
                return web.Response(status=304, headers=headers)
        self.answers["200"] += 1
        items = "".join(_entry(feed, number) for number in range(newest, newest - WINDOW, -1))
        title = f"<title>Feed {feed.number}</title>"
        text = f"<rss version='2.0'><channel>{title}{items}</channel></rss>"
        return web.Response(text=text, headers=headers)


def _entry(feed: Published, number: int) -> str:
    date = formatdate(number * feed.gap_s, usegmt=True)
    return (
        f"<item><guid>{feed.number}-{number}</guid><title>Entry {number} of {feed.number}</title>"
        f"<link>https://example.org/{feed.number}/{number}</link><pubDate>{date}</pubDate>"
        f"<description>{'Words and words. ' * 20}</description></item>"
    )


def published(count: int) -> list[Published]:
    """Feeds between an entry in 10 minutes and one in a week, at the benchmark's speed."""
    chance = random.Random(7)
    return [
        Published(
            number,
            gap_s=600 * 1_000 ** chance.random() / SPEED,
            has_etag=chance.random() < 0.9,
            max_age_s=chance.choice((0, 0, 0, 5, 30)),
        )
        for number in range(count)
    ]


def address(number: int) -> str:
    host = number % HOSTS
    return f"127.7.{host // 250}.{host % 250 + 1}"


async def serve(count: int) -> None:
    state = Web(published(count), random.Random(11))
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", state.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    first = web.TCPSite(runner, "127.0.0.1", 0)
    await first.start()
    port = runner.addresses[0][1]
    for number in range(min(count, HOSTS)):
        await web.TCPSite(runner, address(number), port).start()
    print(f"{PORT_LINE}{port}", flush=True)
    await asyncio.Event().wait()


def scaled_policy() -> PollPolicy:
    """The default policy, with all lengths of time at the benchmark's speed."""
    policy = PollPolicy()
    lengths = {
        name: getattr(policy, name) / SPEED
        for name in PollPolicy.__dataclass_fields__
        if name.endswith("_s")
    }
    return PollPolicy(**{**lengths, "start_spread_s": 10.0})


class Taken:
    """The sink: which entries of each feed came, and how often."""

    def __init__(self) -> None:
        self.entries: dict[int, list[int]] = defaultdict(list)

    async def __call__(self, stream: str, key: str, time_us: int | None, xml: bytes) -> None:
        feed, number = key.rpartition(" ")[2].split("-")
        self.entries[int(feed)].append(int(number))
        await asyncio.sleep(0)

    def missed(self) -> int:
        spans = ((max(n) - min(n) + 1, len(set(n))) for n in self.entries.values())
        return sum(span - got for span, got in spans)

    def doubled(self) -> int:
        return sum(len(n) - len(set(n)) for n in self.entries.values())


async def watch_lag(lags: list[float], seconds: float = float("inf")) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        started = time.perf_counter()
        await asyncio.sleep(0.05)
        lags.append(time.perf_counter() - started - 0.05)


def idle(seconds: float) -> None:
    """A loop with nothing to do: its lag is that of the machine."""
    lags: list[float] = []
    asyncio.run(watch_lag(lags, seconds))
    print(in_words(lags))


def in_words(lags: list[float]) -> str:
    ordered = sorted(lags)
    highest = ordered[int(len(ordered) * 0.99)]
    return f"99 % under {highest * 1e3:.0f} ms, highest {ordered[-1] * 1e3:.0f} ms"


def polling(count: int, seconds: float) -> None:
    command = [sys.executable, __file__, "serve", "--feeds", str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().removeprefix(PORT_LINE))
            with tempfile.TemporaryDirectory() as directory:
                asyncio.run(poll(count, seconds, port, Path(directory) / "feeds.db"))
        finally:
            server.terminate()


async def control_lag(seconds: float) -> str:
    """Let the seconds pass, and return the lag of a process that does nothing meanwhile."""
    command = [sys.executable, __file__, "idle", "--seconds", str(seconds)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return output.decode().strip()


async def poll(count: int, seconds: float, port: int, path: Path) -> None:
    store, taken = FeedStore(path), Taken()
    for number in range(count):
        store.add(feed_at(f"http://{address(number)}:{port}/{number}", "news"))
    outcomes: Counter[str] = Counter()
    failures: Counter[str] = Counter()

    def note(report: PollReport) -> None:
        outcomes[report.outcome] += 1
        failures[report.error] += bool(report.error)

    poller = Poller(
        store,
        taken,
        allowed=networks(["127.0.0.0/8"]),
        policy=scaled_policy(),
        hosts=Hosts(gap_s=0.05),
        on_report=note,
    )
    lags: list[float] = []
    tasks = [asyncio.create_task(poller.run()), asyncio.create_task(watch_lag(lags))]
    started = time.process_time()
    control = await control_lag(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    used = time.process_time() - started
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/report") as answer,
    ):
        report = json.loads(await answer.text())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count} feeds on {min(count, HOSTS)} hosts, {seconds:.0f} s ({SPEED} times as fast)")
    print(f"  checks                {sum(outcomes.values()):,}: {dict(outcomes)}")
    print(f"  the server's answers  {report['answers']}")
    print(f"  rules broken          {report['broken'] or 'none'}")
    print(
        f"  items                 {sum(map(len, taken.entries.values())):,}, "
        f"missed {taken.missed()}, twice {taken.doubled()}"
    )
    print(f"  memory, highest       {memory:.0f} MB")
    print(f"  loop lag              {in_words(lags)}")
    print(f"  of an idle loop       {control}")
    print(f"  processor             {used / seconds:.0%} of one core")
    for words, number in failures.most_common(4):
        print(f"  failed                {number} times: {words}")
    store.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("what", choices=["parse", "poll", "serve", "idle"])
    options.add_argument("--feeds", type=int, default=5_000)
    options.add_argument("--seconds", type=float, default=120)
    chosen = options.parse_args()
    if chosen.what == "serve":
        asyncio.run(serve(chosen.feeds))
    elif chosen.what == "idle":
        idle(chosen.seconds)
    elif chosen.what == "poll":
        polling(chosen.feeds, chosen.seconds)
    else:
        shared = os.environ.get("XSCL_SHARED", Path(__file__).parents[2] / "shared")
        parsing(Path(shared) / "data" / "feeds")


if __name__ == "__main__":
    main()
