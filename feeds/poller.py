"""Check every feed when it is due, for ever, with courtesy towards hosts.

The poller holds no decisions: when a feed is due is `schedule`'s, what a check does is
`Checker`'s.  It keeps the queue, takes turns at hosts, and survives what goes wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import random as random_module
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol
from weakref import WeakValueDictionary

import aiohttp

from feeds import schedule
from feeds.checker import Checker, PollReport, Sink
from feeds.commits import StoreCommits
from feeds.fetcher import Limits, user_agent
from feeds.guard import Network, guarded_connector
from feeds.hosts import Hosts, Pauses, host_of
from feeds.push import Push, Pushed
from feeds.robots import Robots
from feeds.schedule import PollPolicy
from feeds.state import STEERING, FeedState
from feeds.store import FeedStore, Subscribed, UnknownFeedError

__all__ = ["Clock", "PollReport", "Poller", "SystemClock", "open_session"]

logger = logging.getLogger(__name__)

_IDLE_MAX_S = 30.0
"""The longest sleep: a clock that was set is noticed, and so is a feed added elsewhere."""
_LOOK_ROUND_S = 1.0
"""How often the store is asked whether another process has changed it."""
_SINK_RETRY_S = 5.0
_START_AT_ONCE = 50
_FORGET_EVERY_US = 86_400_000_000


class Clock(Protocol):
    """Where the time comes from."""

    def now_us(self) -> int:
        """Return the microseconds since 1970 in UTC."""


class SystemClock:
    """The clock of this machine."""

    def now_us(self) -> int:
        """Return the microseconds since 1970 in UTC."""
        return time.time_ns() // 1_000


def open_session(allowed: Sequence[Network] = (), *, limit: int = 100) -> aiohttp.ClientSession:
    """Return a session for feeds: guarded against private addresses, without cookies.

    Environment proxies are not used: a feed that needs one names it.
    """
    return aiohttp.ClientSession(
        connector=guarded_connector(allowed, limit=limit),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
    )


class Poller:
    """Polls the feeds of one store into one sink.

    `on_report` is called after each check, in the event loop.  `session` stays the caller's;
    without one the poller opens its own, in which only `allowed` private networks are dialled.
    With `push` feeds are subscribed at their hubs; its routes must then be reachable.
    """

    def __init__(
        self,
        store: FeedStore,
        sink: Sink,
        *,
        clock: Clock | None = None,
        session: aiohttp.ClientSession | None = None,
        allowed: Sequence[Network] = (),
        policy: PollPolicy | None = None,
        limits: Limits | None = None,
        hosts: Hosts | None = None,
        concurrency: int = 32,
        push: Push | None = None,
        contact: str = "https://pypi.org/project/xscl-broker/",
        random: Callable[[], float] = random_module.random,
        on_report: Callable[[PollReport], None] | None = None,
    ) -> None:
        self._store = store
        self._sink = sink
        self._clock = clock or SystemClock()
        self._session = session
        self._allowed = allowed
        self._policy = policy or PollPolicy()
        self._limits = limits or Limits()
        self._hosts = hosts or Hosts(ours=tuple(allowed))
        self._slots = asyncio.Semaphore(concurrency)
        self._concurrency = concurrency
        self._user_agent = user_agent(contact)
        self._random = random
        self._on_report = on_report or (lambda report: None)
        self._due: dict[str, int] = {}
        self._queue: list[tuple[int, str]] = []
        self._running: dict[str, asyncio.Task[None]] = {}
        self._pauses = Pauses(store)
        self._push = push
        # Apart from each other: a feed that takes long to read holds up no commit.
        self._reading = ThreadPoolExecutor(2, thread_name_prefix="feeds-read")
        self._committing = ThreadPoolExecutor(1, thread_name_prefix="feeds-commit")
        self._forgot_us = self._clock.now_us()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._version = store.version()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Poll until cancelled.  What is being checked then is dropped and checked again."""
        async with self._own_session() as session:
            checker = self._checker(session)
            await self._schedule_all()
            pushes = asyncio.create_task(self._take_pushes(session, checker))
            try:
                while True:
                    await self._notice_changes()
                    self._start_due(checker)
                    await self._forget()
                    await self._pause()
            finally:
                await self._stop(pushes)

    async def _forget(self) -> None:
        """Once a day, drop the keys of entries that their feeds have not shown for long."""
        now_us = self._clock.now_us()
        if now_us - self._forgot_us > _FORGET_EVERY_US:
            self._forgot_us = now_us
            await asyncio.to_thread(self._store.forget_old_entries, now_us)

    async def check_due(self) -> list[PollReport]:
        """Check every feed that is due now, once, and return how it went, by URL."""
        now_us = self._clock.now_us()
        due = [each for each in self._store.all() if _is_due(each.state, now_us)]
        async with self._own_session() as session:
            checker = self._checker(session)
            reports = await asyncio.gather(*(self._polite_check(checker, each) for each in due))
        return [report for report in reports if report is not None]

    def refresh(self, url: str) -> None:
        """Check the feed at `url` as soon as its host allows; raise `UnknownFeedError`."""
        self._store.change(url, **STEERING["refresh"])
        self._plan(url, self._clock.now_us())

    def _own_session(self) -> _Lent:
        if self._session is not None:
            return _Lent(self._session, is_ours=False)
        return _Lent(open_session(self._allowed, limit=self._concurrency), is_ours=True)

    def _checker(self, session: aiohttp.ClientSession) -> Checker:
        return Checker(
            store=self._store,
            sink=self._sink,
            session=session,
            now_us=self._clock.now_us,
            random=self._random,
            policy=self._policy,
            limits=self._limits,
            user_agent=self._user_agent,
            pauses=self._pauses,
            robots=Robots(session, self._clock.now_us),
            worker=self._reading,
            commits=StoreCommits(self._store, self._committing),
            **self._push_options(),
        )

    def _push_options(self) -> dict[str, Any]:
        if self._push is None:
            return {}
        return {
            "is_pushed": self._push.is_working,
            "on_polled_news": self._push.note_polled_news,
        }

    async def _schedule_all(self) -> None:
        self._version = self._store.version()
        # Thousands of feeds take a while to read: beside the event loop, which goes on.
        known = await asyncio.to_thread(self._store.all)
        waiting = [each for each in known if _is_wanted(each.state)]
        now_us = self._clock.now_us()
        randoms = [self._random() for _ in waiting]
        checks = schedule.on_start([w.state for w in waiting], now_us, randoms, self._policy)
        for each, check in zip(waiting, checks, strict=True):
            self._plan(each.feed.url, check.at_us)

    async def _notice_changes(self) -> None:
        """Take in feeds that another process has added, refreshed, paused or removed."""
        version = self._store.version()
        if version == self._version:
            return
        self._version = version
        known = await asyncio.to_thread(self._store.all)
        wanted = {each.feed.url: each.state for each in known if _is_wanted(each.state)}
        for url in set(self._due) - set(wanted):
            del self._due[url]
        for url, state in wanted.items():
            if url not in self._running and not self._has_plan_before(url, state):
                self._plan(url, state.next_check_us)

    def _has_plan_before(self, url: str, state: FeedState) -> bool:
        return url in self._due and self._due[url] <= max(state.next_check_us, 1)

    def _plan(self, url: str, at_us: int) -> None:
        self._due[url] = at_us
        heapq.heappush(self._queue, (at_us, url))
        self._changed.set()

    def _start_due(self, checker: Checker) -> None:
        """Start what is due, some at a time: ten thousand tasks at once would stop the loop."""
        now_us = self._clock.now_us()
        for _ in range(_START_AT_ONCE):
            if not self._queue or self._queue[0][0] > now_us:
                return
            at_us, url = heapq.heappop(self._queue)
            if self._due.get(url) != at_us or url in self._running:
                continue
            del self._due[url]
            task = asyncio.create_task(self._check(checker, url))
            self._running[url] = task

    async def _check(self, checker: Checker, url: str) -> None:
        next_us = self._clock.now_us() + int(_SINK_RETRY_S * 1e6)
        try:
            subscribed = self._store.get(url)
            report = await self._polite_check(checker, subscribed)
            next_us = report.next_check_us
        except UnknownFeedError:
            next_us = 0
        except Exception:
            # The sink refused, or we have a bug: nothing was remembered, so nothing is lost.
            logger.exception("the check of %s failed; it is tried again", url)
        finally:
            self._running.pop(url, None)
        self._plan_again(url, next_us)

    def _plan_again(self, url: str, next_us: int) -> None:
        if not next_us:
            return
        try:
            state = self._store.get(url).state
        except UnknownFeedError:
            return
        if _is_wanted(state):
            self._plan(url, next_us)

    async def _polite_check(self, checker: Checker, subscribed: Subscribed) -> PollReport:
        """Wait for the host's turn, then check the feed as it stands by then."""
        url = subscribed.feed.url
        host = host_of(subscribed.state.moved_to or url)
        async with self._hosts.turn(host), self._slots, self._lock(url):
            report = await checker.check(self._store.get(url))
        self._on_report(report)
        return report

    async def _pause(self) -> None:
        """Sleep until the next feed is due, or until somebody changes something."""
        timeout_s = min(_IDLE_MAX_S, _LOOK_ROUND_S)
        if self._queue:
            timeout_s = min(timeout_s, (self._queue[0][0] - self._clock.now_us()) / 1e6)
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, timeout_s)):
                await self._changed.wait()

    async def _take_pushes(self, session: aiohttp.ClientSession, checker: Checker) -> None:
        if self._push is not None:
            await self._push.run(session, partial(self._take_push, checker))

    async def _take_push(self, checker: Checker, pushed: Pushed) -> None:
        async with self._lock(pushed.url):
            subscribed = self._store.get(pushed.url)
            if _is_wanted(subscribed.state):
                report = await checker.push(subscribed, pushed.body, pushed.content_type)
                self._on_report(report)

    def _lock(self, url: str) -> asyncio.Lock:
        """A push and a check of one feed do not run side by side: they tell news by one memory."""
        return self._locks.setdefault(url, asyncio.Lock())

    async def _stop(self, *others: asyncio.Task[None]) -> None:
        tasks = [*others, *self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Lent:
    """A session for the time of a `with`, closed after it only where it is ours."""

    def __init__(self, session: aiohttp.ClientSession, *, is_ours: bool) -> None:
        self._session = session
        self._is_ours = is_ours

    async def __aenter__(self) -> aiohttp.ClientSession:
        return self._session

    async def __aexit__(self, *error: object) -> None:
        if self._is_ours:
            await self._session.close()


def _is_wanted(state: FeedState) -> bool:
    return not state.paused and not state.gone


def _is_due(state: FeedState, now_us: int) -> bool:
    return _is_wanted(state) and state.next_check_us <= now_us
