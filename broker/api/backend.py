"""What the HTTP API stands on, and how requests reach it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from aiohttp import web

from broker.documents.ingest_thread import IngestThread
from broker.documents.spool import Spool
from broker.matching.costs.budget import DEFAULT_BUDGET, Budget
from broker.matching.queries.queryset import InForce
from broker.matching.queries.registration import NOTHING, SetChange
from broker.operations.metrics import Histogram
from broker.pipeline.outbox import Outbox
from broker.registry.queries import Registry
from broker.registry.streams import Streams

__all__ = ["BACKEND", "Backend", "Change", "evaluated_through", "in_thread"]

T = TypeVar("T")


class Change(Protocol):
    """Changes the registry between two documents."""

    def __call__(
        self, action: Callable[[int], T], /, *, replan: bool = True, ahead: SetChange = NOTHING
    ) -> Awaitable[T]:
        """Run `action` with the newest docid; what it changes holds for later documents.

        Without `replan` the queries are evaluated as before: only subscribers have changed.  What
        `action` will have the queries see of earlier documents is `ahead`: the state for it is made
        first, beside the stream, which may take a minute for a million documents.
        """


@dataclass(frozen=True, slots=True)
class Backend:
    """The parts of a running broker that requests reach.

    `unready` returns why the broker cannot do its work now, or None; `figures` are the numbers
    that `/metrics` shows, asked for beside the event loop.  `committed` is notified after each
    commit.  `histograms` are shown beside the figures.  `in_force` returns a registry version and
    what is evaluated of it, None where a batch goes on for more than a second, for which it waits;
    it is called beside the event loop.
    """

    registry: Registry
    outbox: Outbox
    ingest: IngestThread
    spool: Spool
    streams: Streams
    change: Change
    unready: Callable[[], str | None]
    figures: Callable[[], Mapping[str, float]]
    committed: asyncio.Condition
    lateness_us: int = 86_400_000_000
    budget: Budget = DEFAULT_BUDGET
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    in_force: Callable[[], tuple[int, InForce] | None] = lambda: None


BACKEND = web.AppKey("backend", Backend)


def evaluated_through(backend: Backend) -> int:
    """Return the number of the last document whose matches are committed, with all before it."""
    through = backend.outbox.through()
    backend.spool.refresh()
    waiting = backend.spool.segments(through)
    if waiting:
        return waiting[0].first_docid - 1
    return backend.spool.last_docid


async def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Run work that waits for the disk without holding up other requests."""
    return await asyncio.to_thread(work, *arguments)
