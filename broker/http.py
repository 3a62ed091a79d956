"""The broker's HTTP application: the resources of `broker.api`, put together."""

from __future__ import annotations

import asyncio

from aiohttp import web

from broker.api import (
    description,
    documents,
    health,
    matches,
    queries,
    questions,
    rehearsals,
    streams,
    subscriptions,
    tokens,
)
from broker.api.access import GATE, LIMIT, LINKS_KEY, Gate, access
from broker.api.backend import BACKEND, Backend
from broker.api.limits import RateLimit
from broker.api.problem import problems

__all__ = ["MODULES", "make_application"]

MODULES = (
    documents,
    streams,
    queries,
    questions,
    rehearsals,
    subscriptions,
    matches,
    tokens,
    description,
    health,
)
"""The rooms of the API whose resources every application has, in `ROUTES`."""


def make_application(
    backend: Backend,
    *,
    body_bytes_max: int,
    gate: Gate | None = None,
    limit: RateLimit | None = None,
) -> web.Application:
    """Return the application, to which rooms with resources of their own add theirs.

    Without a gate it serves programs on this machine, and nobody else; without a limit, as fast
    as it can.
    """
    application = web.Application(middlewares=[problems, access], client_max_size=body_bytes_max)
    application[BACKEND] = backend
    application[GATE] = gate or Gate()
    application[LIMIT] = limit or RateLimit(0)
    application[rehearsals.RUNNING] = asyncio.Lock()
    application[LINKS_KEY] = backend.registry.key("links")
    for module in MODULES:
        application.add_routes(module.ROUTES)
    return application
