"""The broker's HTTP application: the resources of `broker.api`, put together."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from broker.api import documents, health, matches, queries, subscriptions
from broker.api.backend import BACKEND, Backend
from broker.api.problem import problems

__all__ = ["make_application"]


def make_application(
    backend: Backend, *, body_bytes_max: int, further: Iterable[web.AbstractRouteDef] = ()
) -> web.Application:
    """Return the application; `further` are routes of rooms that bring their own."""
    application = web.Application(middlewares=[problems], client_max_size=body_bytes_max)
    application[BACKEND] = backend
    for module in (documents, queries, subscriptions, matches, health):
        application.add_routes(module.ROUTES)
    application.add_routes(further)
    return application
