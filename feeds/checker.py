"""Check one feed: fetch, parse, find the news, hand it over, and only then remember.

    fetch     one conditional GET                                -> answer or FeedError
    parse     the body, unless it is the one that we know        -> items
    identify  keys by the feed's policy                          -> entries
    compare   with what was accepted before                      -> new, revised
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
from feeds.commits import Commits
from feeds.document import item_document
from feeds.errors import Fault, FeedError
from feeds.feed import Feed
from feeds.fetcher import Limits, Request, Response, fetch
from feeds.freshness import fresh_s
from feeds.hints import linked
from feeds.hosts import Pauses
from feeds.identity import Entry, News, choose_policy, entries, news
from feeds.item import ParsedFeed
from feeds.parser import parse
from feeds.robots import Robots
from feeds.schedule import Check, Policy
from feeds.state import FeedState
from feeds.store import FeedStore, Seen, Subscribed

__all__ = ["Checker", "PollReport", "Sink", "learnt"]

Sink = Callable[[str, str, int | None, bytes], Awaitable[object]]
"""`sink(stream, key, event_time_us, xml)` returns when the document is durably accepted."""

_IN_THREAD_BYTES = 32_768
"""A larger body is parsed beside the event loop, which must not stop for milliseconds."""
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
    policy: Policy
    limits: Limits
    user_agent: str
    pauses: Pauses
    robots: Robots
    commits: Commits
    worker: Executor
    """Where commits and long parses run: not where slow DNS look-ups pile up."""
    is_pushed: Callable[[str, int], bool] = lambda url, now_us: False
    on_polled_news: Callable[[str, int], None] = lambda url, now_us: None

    async def check(self, subscribed: Subscribed) -> PollReport:
        """Check one feed and store what came of it.  An error of the sink is raised."""
        feed, state = subscribed.feed, subscribed.state
        request = self._request(feed, state)
        held = self.pauses.holding(request.url, self.now_us())
        if held:
            state = await self._store(feed, state, schedule.during_pause(held, self.random()))
            return _report(feed, state, "postponed")
        answer = await self._fetch(feed, request)
        now_us = self.now_us()
        state = replace(state, checks=state.checks + 1, last_check_us=now_us)
        if isinstance(answer, FeedError):
            return await self._failed(feed, state, answer)
        state = schedule.after_redirect(state, answer.moved_to, now_us, self.policy)
        if answer.is_not_modified or answer.body_hash == state.body_hash:
            return await self._unchanged(feed, state, answer)
        found = await self._parse(answer, raw=_raw(feed))
        if isinstance(found, FeedError):
            return await self._failed(feed, state, found)
        return await self._read(feed, state, answer, found)

    async def push(self, subscribed: Subscribed, body: bytes, content_type: str) -> PollReport:
        """Take in a feed document that the feed's hub has pushed.

        Validators and schedule stay as they are: the backup check finds out whether the hub
        pushes everything.
        """
        feed, state = subscribed.feed, subscribed.state
        found = parse(body, url=state.topic or feed.url, content_type=content_type, raw=_raw(feed))
        if isinstance(found, FeedError):
            return _report(feed, state, "failed", error=f"pushed {found}")
        policy = state.identity or choose_policy(found.items)
        fresh = self._compare(feed, state, found, policy)
        due = _documents_due(feed, state, fresh)
        await self._hand_over(feed, state, found, due)
        state = replace(state, identity=policy, items=state.items + len(due))
        state = await self._store(feed, state, Check(state.next_check_us, state.why), fresh.memory)
        return _report(feed, state, "pushed", items=len(found.items), new=len(due))

    async def _fetch(self, feed: Feed, request: Request) -> Response | FeedError:
        if feed.options.robots and not await self.robots.allows(request):
            return FeedError(Fault.ROBOTS, request.url, "its robots.txt asks us to stay away")
        return await fetch(self.session, request, self.limits)

    async def _parse(self, answer: Response, *, raw: bool) -> ParsedFeed | FeedError:
        kind = answer.headers.get("content-type", "")
        read = partial(parse, answer.body, url=answer.url, content_type=kind, raw=raw)
        if len(answer.body) < _IN_THREAD_BYTES:
            return read()
        return await asyncio.get_running_loop().run_in_executor(self.worker, read)

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

    async def _read(
        self, feed: Feed, state: FeedState, answer: Response, found: ParsedFeed
    ) -> PollReport:
        policy = choose_policy(found.items, state.identity)
        fresh = self._compare(feed, state, found, policy)
        due = _documents_due(feed, state, fresh)
        await self._hand_over(feed, state, found, due)
        first_us = state.first_item_us or (state.last_check_us if due else 0)
        state = replace(
            self._succeeded(learnt(state, found, answer), answer),
            identity=policy,
            items=state.items + len(due),
            revisions=state.revisions + len(fresh.revised),
            first_item_us=first_us,
            last_new_us=state.last_check_us if fresh.new else state.last_new_us,
        )
        if fresh.new and state.checks > 1:
            self.on_polled_news(feed.url, state.last_check_us)
        check = self._next(feed, state, answer)
        state = await self._store(feed, state, check, fresh.memory)
        return _report(
            feed,
            state,
            "new items" if due else "no new items",
            status=answer.status,
            elapsed_s=answer.elapsed_s,
            items=len(found.items),
            new=len(due),
            revised=len(fresh.revised),
        )

    def _compare(self, feed: Feed, state: FeedState, found: ParsedFeed, policy: str) -> News:
        current = entries(found.items, policy)
        seen = self.store.seen(feed.url, (entry.key for entry in current))
        if policy == state.identity or not state.identity:
            return news(current, seen)
        # On another rung of the ladder every key is new: known entries show by their content.
        known = self.store.known_content(feed.url, (entry.content for entry in current))
        return news(current, seen, known)

    async def _hand_over(
        self, feed: Feed, state: FeedState, found: ParsedFeed, due: Sequence[Entry]
    ) -> None:
        title = feed.options.title or found.title or state.title
        for start in range(0, len(due), _AT_ONCE):
            await asyncio.gather(
                *(
                    self.sink(
                        feed.stream,
                        f"{feed.url} {entry.key}",
                        entry.item.event_time_us,
                        _document(feed, title, entry),
                    )
                    for entry in due[start : start + _AT_ONCE]
                )
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


def _raw(feed: Feed) -> bool:
    return feed.options.item == "raw"


def _documents_due(feed: Feed, state: FeedState, fresh: News) -> list[Entry]:
    """Return the entries that become documents, by the feed's backlog and revision options."""
    new = list(fresh.new)
    if not state.is_backlog_read and feed.options.backlog == "new":
        new = []
    if not state.is_backlog_read and feed.options.backlog == "since":
        since_us = feed.options.since_us or 0
        new = [entry for entry in new if (entry.item.event_time_us or since_us) >= since_us]
    if feed.options.on_update == "new document":
        new += fresh.revised
    return new


def _document(feed: Feed, title: str, entry: Entry) -> bytes:
    if _raw(feed) and entry.item.raw:
        return entry.item.raw
    return item_document(entry.item, feed=feed.url, source=title, entry_id=entry.key)


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
