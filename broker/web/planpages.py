"""The pages of plans: of one query, and of all of them."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from broker.api.asking.plans import PLANS, Plans
from broker.api.backend import BACKEND, Backend, in_thread
from broker.api.queries import present_query
from broker.web.pagedata import now_us
from broker.web.planpicture import StreamFlow, picture_of
from broker.web.rendering import page

__all__ = ["ROUTES"]

_ROWS_MAX = 50
_NAMES_MAX = 5


async def show_plan(request: web.Request) -> web.Response:
    """Show what is evaluated once for several queries, or all that is for one `?query=`."""
    backend, plans = request.app[BACKEND], request.app[PLANS]
    values = await in_thread(_values, backend, plans, request.query.get("query", ""))
    return page(request, "plan.html.j2", values)


def _values(backend: Backend, plans: Plans, query_id: str) -> dict[str, Any]:
    version, plan = plans.read(backend)
    only = present_query(backend, query_id).id if query_id else None
    if only is not None:
        plan = plan.of_query(only)
    found = backend.streams.streams(backend.registry, now_us())
    flows = {each.name: StreamFlow(each.documents, each.per_second) for each in found}
    matches = (
        {only: backend.outbox.matches.count(only)} if only else backend.outbox.matches.counts()
    )
    rows = sorted(plan.ops, key=lambda op: (op.kind != "patterns", -op.operators, op.number))
    return {
        "query": only,
        "picture": picture_of(plan, flows, matches, only) if plan.ops else None,
        "operators": sum(op.operators for op in plan.ops),
        "total": len(plan.ops),
        "rows": rows[:_ROWS_MAX],
        "rows_left": max(0, len(rows) - _ROWS_MAX),
        "names_max": _NAMES_MAX,
        "is_newest": version == backend.registry.revision(),
    }


ROUTES = [web.get("/plan", show_plan)]
