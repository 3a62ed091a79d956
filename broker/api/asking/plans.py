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
    """The plan that was asked for last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = -1
        self._plan: QueryPlan | None = None

    def read(self, backend: Backend) -> tuple[int, QueryPlan]:
        """Return a registry version and its plan; 503 before the first.  To be called in a thread.

        While a batch is in hand it may be the plan before.
        """
        with self._lock:
            found = backend.in_force()
            if found is not None and found[0] != self._version:
                self._version, self._plan = found[0], plan_in_force(found[1])
            if self._plan is None:
                raise Problem(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    "the broker evaluates the first documents; ask again later",
                    headers={"Retry-After": "2"},
                )
            return self._version, self._plan


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
