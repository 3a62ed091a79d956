"""One watch over the outbox for all who wait for matches: streams, long polls, consumers.

However many wait, the outbox is looked at once for a commit, and readers of one topic who stand
at the same match share what was read.  Nothing is kept for a reader but its cursor, so that one
who is slow holds nothing up and loses nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Sequence

from broker.pipeline.commits import commits_of
from broker.pipeline.matchlog import CommittedMatch
from broker.pipeline.outbox import Outbox
from broker.registry.subscription import Subscription

__all__ = ["Hub", "Topic"]

Topic = tuple[str, str]
Place = tuple[Topic, int, int, int | None]
"""A topic, the match behind which it is read, and of which documents: point and end."""

_READ_MAX = 256
_PAGES_MAX = 512


class Hub:
    """Reads for many.  All of it in one event loop."""

    def __init__(self, outbox: Outbox, *, poll_s: float = 0.1) -> None:
        self._outbox = outbox
        self._poll_s = poll_s
        self._waiting: defaultdict[Topic, set[asyncio.Future[None]]] = defaultdict(set)
        self._pages: OrderedDict[Place, asyncio.Future[Sequence[CommittedMatch]]] = OrderedDict()
        self._watch: asyncio.Task[None] | None = None

    async def next(
        self, subscription: Subscription, *, after: int, wait_s: float = 0.0
    ) -> Sequence[CommittedMatch]:
        """Return a subscription's matches above `after`, in order; waits for one if it has none.

        Empty if none came in time.
        """
        topic = subscription.topic
        place = (topic, after, subscription.point, subscription.until)
        deadline = asyncio.get_running_loop().time() + wait_s
        while True:
            # Registered before reading: a commit in between is not missed.
            committed = self._register(topic)
            try:
                found = await self._read(place)
                rest_s = deadline - asyncio.get_running_loop().time()
                if found or rest_s <= 0:
                    return found
                await asyncio.wait([committed], timeout=rest_s)
            finally:
                self._unregister(topic, committed)

    async def close(self) -> None:
        """End the watch.  Who waits gets nothing."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    def _register(self, topic: Topic) -> asyncio.Future[None]:
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._run())
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[topic].add(committed)
        return committed

    def _unregister(self, topic: Topic, committed: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(topic)
        if waiting is not None:
            waiting.discard(committed)
            if not waiting:
                del self._waiting[topic]

    async def _read(self, place: Place) -> Sequence[CommittedMatch]:
        page = self._pages.get(place)
        if page is None:
            page = asyncio.ensure_future(asyncio.to_thread(self._page, *place))
            self._pages[place] = page
            if len(self._pages) > _PAGES_MAX:
                self._pages.popitem(last=False)
        found: Sequence[CommittedMatch] = ()
        try:
            # One reader who leaves does not take the page from the others.
            found = await asyncio.shield(page)
        finally:
            if not found and page.done() and self._pages.get(place) is page:
                del self._pages[place]
        return found

    def _page(
        self, topic: Topic, after: int, point: int, until: int | None
    ) -> Sequence[CommittedMatch]:
        return self._outbox.matches.of_topic(
            *topic, after=after, point=point, until=until, limit=_READ_MAX
        )

    async def _run(self) -> None:
        with commits_of(self._outbox) as commits:
            seq = await asyncio.to_thread(self._outbox.matches.last_seq)
            self._wake(list(self._waiting))
            while True:
                commits.forget()
                heads, seq = await asyncio.to_thread(self._outbox.matches.topics, seq, limit=1_000)
                if heads:
                    self._wake(list(heads))
                else:
                    await commits.wait(self._poll_s)

    def _wake(self, topics: Sequence[Topic]) -> None:
        # A page that was read to the end of its topic has grown.
        woken = set(topics)
        for key in [key for key in self._pages if key[0] in woken]:
            del self._pages[key]
        for topic in topics:
            for committed in self._waiting.pop(topic, ()):
                if not committed.done():
                    committed.set_result(None)
