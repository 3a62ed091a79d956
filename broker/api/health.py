"""`/healthz`, `/readyz` and `/metrics`: for watching the broker."""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web

from broker.api.backend import BACKEND, in_thread
from broker.api.problem import Problem
from broker.operations.metrics import render_metrics

__all__ = ["ROUTES"]


async def get_health(request: web.Request) -> web.Response:
    """Answer 200 as long as the process serves requests."""
    return web.json_response({"status": "ok"})


async def get_readiness(request: web.Request) -> web.Response:
    """Answer 200 when documents are taken and evaluated, else 503 with the reason."""
    reason = request.app[BACKEND].unready()
    if reason is not None:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, reason, headers={"Retry-After": "1"})
    return web.json_response({"status": "ready"})


async def get_metrics(request: web.Request) -> web.Response:
    """Answer the broker's figures in the text format of Prometheus."""
    backend = request.app[BACKEND]
    is_ready = float(backend.unready() is None)
    figures = {"ready": is_ready, **await in_thread(backend.figures)}
    text = render_metrics(figures, backend.histograms)
    return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})


ROUTES = [
    web.get("/healthz", get_health),
    web.get("/readyz", get_readiness),
    web.get("/metrics", get_metrics),
]
