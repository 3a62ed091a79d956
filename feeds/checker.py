"""Check one feed: fetch, parse, find the news, hand it over, and only then remember.

    fetch     one conditional GET                                -> answer or FeedError
    read      the body, unless it is the one that we know        -> new and revised items
    hand over each as a document, oldest first                   -> accepted durably
    remember  validators, keys and the next check, in one transaction

Invariant: nothing is remembered of a feed document before the sink has accepted all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import aiohttp

from feeds import schedule
from feeds.commits import StoreCommits
from feeds.errors import Fault, FeedError
from feeds.feed import Feed
from feeds.fetcher import Limits, Request, Response, fetch
from feeds.freshness import fresh_s
from feeds.hints import linked
from feeds.hosts import Pauses
from feeds.item import ParsedFeed
from feeds.missing import missing
from feeds.reading import FeedReading, ItemDocument, Received, read
from feeds.robots import Robots
from feeds.schedule import Check, PollPolicy
from feeds.state import FeedState
from feeds.store import FeedStore, Seen, Subscribed

__all__ = ["Checker", "PollReport", "Sink", "learnt"]

Sink = Callable[[str, str, int | None, bytes], Awaitable[object]]
"""`sink(stream, key, event_time_us, xml)` returns when the document is durably accepted."""

_AT_ONCE = 100
"""Documents handed to the sink together, so that it can make them durable together."""


@dataclass(frozen=True, slots=True)
class PollReport:
    """What one check of a feed came to.

    `outcome` is "new items", "no new items", "not modified" (304), "same bytes", "pushed",
    "postponed" (its domain is left alone), or "failed".
    """

    url: str
    stream: str
    at_us: int
    outcome: str
    next_check_us: int
    why: str
    status: int | None = None
    items: int = 0
    new: int = 0
    revised: int = 0
    step: str = ""
    elapsed_s: float = 0.0
    error: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks feeds one at a time; all that it needs to do so comes in here."""

    store: FeedStore
    sink: Sink
    session: aiohttp.ClientSession
    now_us: Callable[[], int]
    random: Callable[[], float]
    policy: PollPolicy
    limits: Limits
    user_agent: str
    pauses: Pauses
    robots: Robots
    commits: StoreCommits
    worker: Executor
    """Where feed documents are read: not where slow name look-ups pile up."""
    is_pushed: Callable[[str, int], bool] = lambda url, now_us: False
    on_polled_news: Callable[[str, int], None] = lambda url, now_us: None

    async def check(self, subscribed: Subscribed) -> PollReport:
        """Check one feed and store what came of it.  An error of the sink is raised."""
        feed, state = subscribed.feed, subscribed.state
        request = self._request(feed, state)
        held = self.pauses.holding(request.url, self.now_us())
        if held:
            check = schedule.during_pause(held, self.random(), self.policy)
            state = await self._store(feed, state, check)
            return _report(feed, state, "postponed")
        answer = await self._fetch(feed, request)
        now_us = self.now_us()
        state = replace(state, checks=state.checks + 1, last_check_us=now_us)
        if isinstance(answer, FeedError):
            return await self._failed(feed, state, answer)
        state = schedule.after_redirect(state, answer.moved_to, now_us, self.policy)
        if answer.is_not_modified or answer.body_hash == state.body_hash:
            return await self._unchanged(feed, state, answer)
        kind = answer.headers.get("content-type", "")
        reading = await self._read(feed, state, Received(answer.body, answer.url, kind))
        if isinstance(reading, FeedError):
            return await self._failed(feed, state, reading)
        return await self._take_in(feed, state, answer, reading)

    async def push(self, subscribed: Subscribed, body: bytes, content_type: str) -> PollReport:
        """Take in a feed document that the feed's hub has pushed.

        Validators and schedule stay as they are: the backup check finds out whether the hub
        pushes everything.
        """
        feed, state = subscribed.feed, subscribed.state
        received = Received(body, state.topic or feed.url, content_type, is_pushed=True)
        reading = await self._read(feed, state, received)
        if isinstance(reading, FeedError):
            return _report(feed, state, "failed", error=f"pushed {reading}")
        await self._hand_over(feed, reading.documents)
        new = len(reading.documents)
        state = replace(state, identity=reading.identity, items=state.items + new)
        check = Check(state.next_check_us, state.why)
        state = await self._store(feed, state, check, reading.news.memory)
        return _report(feed, state, "pushed", items=len(reading.found.items), new=new)

    async def _fetch(self, feed: Feed, request: Request) -> Response | FeedError:
        if feed.options.robots and not await self.robots.allows(request):
            return FeedError(Fault.ROBOTS, request.url, "its robots.txt asks us to stay away")
        return await fetch(self.session, request, self.limits)

    async def _read(
        self, feed: Feed, state: FeedState, received: Received
    ) -> FeedReading | FeedError:
        work = partial(read, self.store, feed, state, received)
        return await asyncio.get_running_loop().run_in_executor(self.worker, work)

    def _request(self, feed: Feed, state: FeedState) -> Request:
        return Request(
            url=state.moved_to or feed.url,
            validators=state.validators,
            secrets=feed.secrets,
            user_agent=self.user_agent,
            proxy=feed.options.proxy,
        )

    async def _failed(self, feed: Feed, state: FeedState, error: FeedError) -> PollReport:
        now_us = state.last_check_us
        state = replace(
            state,
            failures=state.failures + 1,
            failing_since_us=state.failing_since_us or now_us,
            fault=error.fault.value,
            error=str(error),
        )
        if schedule.is_gone(state, error, now_us, self.policy):
            state = replace(state, gone=True)
        state = schedule.after_failed_move(state)
        check = schedule.after_failure(state, error, now_us, self.random(), self.policy)
        pause_s = schedule.domain_pause_s(error, self.policy)
        if pause_s:
            self.pauses.pause(error.url, now_us + int(pause_s * 1e6), error.detail)
        state = await self._store(feed, state, check)
        return _report(feed, state, "failed", status=error.status, error=str(error))

    async def _unchanged(self, feed: Feed, state: FeedState, answer: Response) -> PollReport:
        state = self._succeeded(state, answer)
        state = await self._store(feed, state, self._next(feed, state, answer))
        outcome = "not modified" if answer.is_not_modified else "same bytes"
        return _report(feed, state, outcome, status=answer.status, elapsed_s=answer.elapsed_s)

    async def _take_in(
        self, feed: Feed, state: FeedState, answer: Response, reading: FeedReading
    ) -> PollReport:
        fresh, new = reading.news, len(reading.documents)
        await self._hand_over(feed, reading.documents)
        is_broken, missed = missing(state, reading)
        state = replace(
            self._succeeded(learnt(state, reading.found, answer), answer),
            breaks=state.breaks + is_broken,
            missed=state.missed + missed,
            identity=reading.identity,
            items=state.items + new,
            revisions=state.revisions + len(fresh.revised),
            first_item_us=state.first_item_us or (state.last_check_us if new else 0),
            last_new_us=state.last_check_us if fresh.new else state.last_new_us,
        )
        if fresh.new and state.checks > 1:
            self.on_polled_news(feed.url, state.last_check_us)
        state = await self._store(feed, state, self._next(feed, state, answer), fresh.memory)
        return _report(
            feed,
            state,
            "new items" if new else "no new items",
            status=answer.status,
            elapsed_s=answer.elapsed_s,
            items=len(reading.found.items),
            new=new,
            revised=len(fresh.revised),
        )

    async def _hand_over(self, feed: Feed, documents: Sequence[ItemDocument]) -> None:
        for start in range(0, len(documents), _AT_ONCE):
            chunk = documents[start : start + _AT_ONCE]
            await asyncio.gather(
                *(self.sink(feed.stream, each.key, each.time_us, each.xml) for each in chunk)
            )

    def _succeeded(self, state: FeedState, answer: Response) -> FeedState:
        return replace(
            state,
            etag=answer.validators.etag,
            last_modified=answer.validators.last_modified,
            body_hash=state.body_hash if answer.is_not_modified else answer.body_hash,
            last_success_us=state.last_check_us,
            failures=0,
            failing_since_us=0,
            fault="",
            error="",
        )

    def _next(self, feed: Feed, state: FeedState, answer: Response) -> Check:
        return schedule.after_success(
            state,
            state.last_check_us,
            self.random(),
            self.policy,
            fresh_s=fresh_s(answer.headers, state.last_check_us / 1e6),
            interval_s=feed.options.interval_s,
            is_pushed=self.is_pushed(feed.url, state.last_check_us),
        )

    async def _store(
        self, feed: Feed, state: FeedState, check: Check, memory: Mapping[str, Seen] | None = None
    ) -> FeedState:
        state = replace(state, next_check_us=check.at_us, why=check.why)
        await self.commits.commit(feed.url, state, memory)
        return state


def learnt(state: FeedState, found: ParsedFeed, answer: Response) -> FeedState:
    """Return the state with what the feed document says of the feed itself."""
    times = sorted(item.event_time_us for item in found.items if item.event_time_us is not None)
    gap_s, span_s = schedule.publishing_rate(times)
    links = answer.headers.get("link", "")
    return replace(
        state,
        format=found.format,
        title=found.title,
        step=found.step.value,
        warnings=found.warnings,
        gap_s=gap_s,
        span_s=span_s,
        newest_us=times[-1] if times else 0,
        ttl_s=found.hints.ttl_s or 0.0,
        skip_hours=tuple(sorted(found.hints.skip_hours)),
        skip_days=tuple(sorted(found.hints.skip_days)),
        hub=linked(links, "hub", answer.url) or next(iter(found.hints.hubs), ""),
        topic=linked(links, "self", answer.url) or found.hints.self_url or answer.url,
    )


def _report(feed: Feed, state: FeedState, outcome: str, **facts: object) -> PollReport:
    report = PollReport(
        url=feed.url,
        stream=feed.stream,
        at_us=state.last_check_us,
        outcome=outcome,
        next_check_us=state.next_check_us,
        why=state.why,
        step=state.step,
        warnings=state.warnings,
    )
    return replace(report, **facts)  # type: ignore[arg-type]
