"""`/v1/plan`: what is evaluated once for several queries, as the running broker does it.

The plan is read off what is evaluated, not worked out from the registry: what was registered since
the last documents were evaluated is in it with the next ones.  It is kept until it changes.
"""

from __future__ import annotations

import threading
from http import HTTPStatus
from typing import Any

from aiohttp import web

from broker.api.backend import BACKEND, Backend, in_thread
from broker.api.problem import Problem
from broker.api.queries import present_query
from broker.explain.plan import MOp, QueryPlan, plan_in_force, render_plan

__all__ = ["PLANS", "ROUTES", "MOp", "Plans", "QueryPlan"]


class Plans:
    """The plan that was read last, with its registry version."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._kept: tuple[int, QueryPlan] | None = None

    def read(self, backend: Backend) -> tuple[int, QueryPlan]:
        """Return a registry version and its plan; 503 before the first.  To be called in a thread.

        It may be the plan before, while a batch is in hand or another thread reads the next one.
        """
        # Requests share a few threads: one of them waits for the end of a batch, and not all.
        if self._reading.acquire(blocking=self._kept is None):
            try:
                self._kept = self._newest(backend)
            finally:
                self._reading.release()
        if self._kept is None:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "the broker evaluates the first documents; ask again later",
                headers={"Retry-After": "2"},
            )
        return self._kept

    def _newest(self, backend: Backend) -> tuple[int, QueryPlan] | None:
        """Return the plan in force; the one that is kept, where it is that or none can be read."""
        kept = self._kept
        if kept is not None and kept[0] == backend.registry.revision():
            return kept
        found = backend.in_force()
        if found is None or (kept is not None and kept[0] == found[0]):
            return kept
        return found[0], plan_in_force(found[1])


PLANS = web.AppKey("plans", Plans)


async def get_plan(request: web.Request) -> web.Response:
    """Answer the m-ops of all queries, or of one with `?query=`."""
    backend, plans, query_id = request.app[BACKEND], request.app[PLANS], request.query.get("query")

    def work() -> dict[str, Any]:
        version, plan = plans.read(backend)
        if query_id is not None:
            plan = plan.of_query(present_query(backend, query_id).id)
        return {
            **plan.as_data(),
            "registry_version": version,
            "is_newest": version == backend.registry.revision(),
            "rendered": render_plan(plan),
        }

    return web.json_response(await in_thread(work))


ROUTES = [web.get("/v1/plan", get_plan)]
