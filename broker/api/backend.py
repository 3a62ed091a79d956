"""What the HTTP API stands on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from aiohttp import web

from broker.ingest_thread import IngestThread
from broker.outbox import Outbox
from broker.registry import Registry

__all__ = ["BACKEND", "Backend", "in_thread"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backend:
    """The parts of a running broker that requests reach.

    `unready` returns why the broker cannot do its work now, or None; `figures` are the counters
    and gauges that `/metrics` shows.  `committed` is set and cleared again after each commit.
    """

    registry: Registry
    outbox: Outbox
    ingest: IngestThread
    unready: Callable[[], str | None]
    figures: Callable[[], Mapping[str, float]]
    committed: asyncio.Condition


BACKEND = web.AppKey("backend", Backend)


async def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Run work that waits for the disk without holding up other requests."""
    return await asyncio.to_thread(work, *arguments)
