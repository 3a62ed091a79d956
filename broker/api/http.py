"""The broker's HTTP application: the resources of `broker.api`, put together."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable

from aiohttp import web

from broker.api import (
    answers,
    audit,
    consumers,
    deliveries,
    description,
    documents,
    health,
    matches,
    pull,
    queries,
    streams,
    subscriptions,
    tables,
    tokens,
)
from broker.api.access import GATE, LIMIT, LINKS_KEY, Gate, access
from broker.api.admission.connections import CONNECTIONS, Connections
from broker.api.admission.limits import RateLimit
from broker.api.asking import dryruns, plans, questions
from broker.api.audit import AUDIT, audited
from broker.api.backend import BACKEND, Backend
from broker.api.pickup import PICKUP, Pickup
from broker.api.problem import problems
from broker.api.querystring import known_parameters
from broker.api.writing import language, trials
from broker.registry.audit import AuditTrail

__all__ = [
    "DELIVERY_MODULES",
    "MODULES",
    "ListenError",
    "add_deliveries",
    "listen",
    "make_application",
]

MODULES = (
    documents,
    streams,
    tables,
    queries,
    questions,
    plans,
    dryruns,
    language,
    trials,
    subscriptions,
    matches,
    tokens,
    audit,
    description,
    health,
)
"""The modules with the resources of every application, in `ROUTES`."""

DELIVERY_MODULES = (pull, consumers, deliveries, answers)
"""The modules with the further resources of an application that delivers."""

_COMPRESSED_MIN = 1_400
"""Bytes; less goes in one packet anyway."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_BACKLOG = 1_024
"""Connections that wait to be accepted: in a burst of more, some come a second later."""


class ListenError(RuntimeError):
    """Nothing can listen at the address of the settings.  The operator can act on the message."""


def make_application(
    backend: Backend,
    *,
    body_bytes_max: int,
    gate: Gate | None = None,
    limit: RateLimit | None = None,
    trail: AuditTrail | None = None,
) -> web.Application:
    """Return the application with the resources of `MODULES`; other modules may add theirs.

    Without a gate it serves programs on this machine, and nobody else; without a limit, as fast
    as it can; without a trail, nothing is noted.
    """
    connections = Connections()
    application = web.Application(
        middlewares=[connections.note, compressed, problems, access, known_parameters, audited],
        client_max_size=body_bytes_max,
    )
    application[CONNECTIONS] = connections
    application.on_response_prepare.append(_name_server)
    application[BACKEND] = backend
    application[GATE] = gate or Gate()
    if trail is not None:
        application[AUDIT] = trail
    application[LIMIT] = limit or RateLimit(0)
    application[plans.PLANS] = plans.Plans()
    application[dryruns.RUNNING] = asyncio.Lock()
    language.install(application)
    trials.install(application)
    application[LINKS_KEY] = backend.registry.key("links")
    for module in MODULES:
        application.add_routes(module.ROUTES)
    return application


def add_deliveries(application: web.Application, pickup: Pickup) -> None:
    """Add the resources of deliveries; `pickup` is closed when the application is cleaned up."""
    application[PICKUP] = pickup
    for module in DELIVERY_MODULES:
        application.add_routes(module.ROUTES)

    async def close(application: web.Application) -> None:
        await pickup.close()

    application.on_cleanup.append(close)


@web.middleware
async def compressed(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Compress a long answer to a GET for a client that accepts that; leave a stream as it is.

    Other answers stay as they are: one to a change may hold a secret beside words of who asked.
    """
    response = await handler(request)
    body = response.body if isinstance(response, web.Response) else None
    is_long = isinstance(body, bytes) and len(body) >= _COMPRESSED_MIN
    if is_long and request.method in ("GET", "HEAD"):
        response.enable_compression()
        response.headers["Vary"] = "Accept-Encoding"
    return response


async def _name_server(request: web.Request, response: web.StreamResponse) -> None:
    # Which versions of what it is made of is nobody's business.
    response.headers["Server"] = "xscl"


async def listen(runner: web.AppRunner, host: str, port: int) -> str:
    """Have an application answer at an address, and return its URL; port 0 takes a free one."""
    try:
        await web.TCPSite(runner, host, port, backlog=_BACKLOG).start()
    except OSError as error:
        remedy = "another broker may be running, or set http.port in xscl.toml"
        if error.errno == errno.EADDRNOTAVAIL:
            remedy = "http.host in xscl.toml must be an address of this machine"
        raise ListenError(
            f"{host}:{port} cannot be listened on: {os.strerror(error.errno or 0)}; {remedy}"
        ) from error
    host, port = runner.addresses[0][:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
