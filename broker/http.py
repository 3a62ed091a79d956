"""The broker's HTTP application: the resources of `broker.api`, put together."""

from __future__ import annotations

from aiohttp import web

from broker.api import documents, health, matches, queries, subscriptions
from broker.api.backend import BACKEND, Backend
from broker.api.problem import problems

__all__ = ["make_application"]


def make_application(backend: Backend, *, body_bytes_max: int) -> web.Application:
    """Return the application, to which rooms with resources of their own add theirs."""
    application = web.Application(middlewares=[problems], client_max_size=body_bytes_max)
    application[BACKEND] = backend
    for module in (documents, queries, subscriptions, matches, health):
        application.add_routes(module.ROUTES)
    return application
