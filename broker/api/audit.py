"""`/v1/audit`: who changed what; and the middleware that has every change noted.

What a request changes is noted under the name that its operation has in the description of the
API.  Whatever is not read by GET is a change, unless `UNAUDITED` says otherwise, so that a new
resource is in the trail until someone decides that it need not be.

A change that cannot be noted is not made.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from http import HTTPStatus
from typing import Any

from aiohttp import web

from broker.api.access import RULES, AccessRule, caller_of, operation_of
from broker.api.backend import in_thread
from broker.api.description import description
from broker.api.problem import Problem, status_of
from broker.api.querystring import bounded, number
from broker.documents.document import render_time
from broker.operations.log import without_secrets
from broker.registry.audit import AuditEntry, AuditOutcome, AuditTrail
from joins import UNBOUNDED

__all__ = [
    "AUDIT",
    "AUDITED_READS",
    "ROUTES",
    "UNAUDITED",
    "audited",
    "note",
    "recorded",
    "rendered",
]

AUDIT = web.AppKey("audit", AuditTrail)

UNAUDITED = frozenset(
    {
        # What flows through the broker, and how far its readers are.
        "POST /v1/streams/{stream}/documents",
        "PUT /v1/subscriptions/{id}/consumers/{name}",
        "DELETE /v1/subscriptions/{id}/consumers/{name}",
        "POST /v1/subscriptions/{id}/consumers/{name}/fetch",
        "POST /v1/subscriptions/{id}/consumers/{name}/answer",
        # Questions that are too long for an address.
        "POST /v1/queries/{id}/estimate",
        "POST /v1/queries/{id}/rehearsal",
        "POST /v1/feeds/check",
        "POST /v1/language/check",
        "POST /v1/language/completions",
        "POST /v1/language/hover",
        "POST /v1/language/format",
        "POST /v1/language/trial",
    }
)
"""Requests that are no GET, and change nothing that an operator has set."""

AUDITED_READS = frozenset({"GET /v1/subscriptions/{id}/token"})
"""Who is given a secret is noted as well."""

_PAGE_MAX = 1_000
_NOTED = web.RequestKey("noted", dict[str, Any])
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)


def note(request: web.Request, subject: str | None = None, **detail: Any) -> None:
    """Say what a request is about, where its address does not, and what else is worth keeping."""
    noted = request.setdefault(_NOTED, {})
    noted.update(detail)
    if subject is not None:
        noted["subject"] = subject


@web.middleware
async def audited(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Note a change before it is tried, and what came of it.

    What anyone may ask for is noted by its handler, once the secret in the address is a good one:
    otherwise anyone could fill the trail.
    """
    if not _is_audited(request):
        return await handler(request)
    caller = caller_of(request)
    async with recorded(request, caller.name if caller else "open:"):
        return await handler(request)


@contextlib.asynccontextmanager
async def recorded(request: web.Request, who: str) -> AsyncIterator[None]:
    """Keep an entry for what the body does; an exception that comes out of it is its outcome."""
    trail = request.app.get(AUDIT)
    if trail is None:  # an application that is tried without one
        yield
        return
    action = _operations().get(operation_of(request), operation_of(request))
    subject = without_secrets(_subject(request))
    request.setdefault(_NOTED, {})
    kept = await in_thread(lambda: trail.begin(who, action, subject, address=request.remote))
    try:
        yield  # of a request that is given up meanwhile nothing more is known
    except Exception as error:
        is_ours = status_of(error) >= HTTPStatus.INTERNAL_SERVER_ERROR
        outcome = AuditOutcome.FAILED if is_ours else AuditOutcome.REFUSED
        await in_thread(_complete, trail, kept, request, outcome)
        raise
    await in_thread(_complete, trail, kept, request, AuditOutcome.DONE)


def _complete(trail: AuditTrail, kept: int, request: web.Request, outcome: AuditOutcome) -> None:
    noted = {**_query(request), **request.get(_NOTED, {})}
    subject = without_secrets(noted.pop("subject", None) or _subject(request))
    detail = {
        name: without_secrets(value) if isinstance(value, str) else value
        for name, value in noted.items()
    }
    try:
        trail.complete(kept, outcome, subject, detail)
    except sqlite3.OperationalError as error:
        # What is done is done, and its caller is told so.
        _log.warning("what came of entry %d of the audit trail is not kept: %s", kept, error)


def _is_audited(request: web.Request) -> bool:
    name = operation_of(request)
    if name in AUDITED_READS:
        return True
    if not name or RULES.get(name) is AccessRule.PUBLIC:
        return False
    return request.method not in ("GET", "HEAD") and name not in UNAUDITED


def _subject(request: web.Request) -> str:
    """Return what the address names; a token in it is no name, but a secret."""
    parts = request.match_info.items()
    return "/".join(value for name, value in parts if name != "token")


def _query(request: web.Request) -> dict[str, str]:
    return {name: value for name, value in request.query.items() if name != "token"}


@cache
def _operations() -> dict[str, str]:
    return {
        f"{method.upper()} {path}": operation["operationId"]
        for path, item in description()["paths"].items()
        for method, operation in item.items()
    }


async def list_entries(request: web.Request) -> web.Response:
    """Answer changes, newest first, `?by=` someone or of one `?subject=`; `next` goes on."""
    trail = request.app.get(AUDIT)
    if trail is None:
        raise Problem(HTTPStatus.NOT_FOUND, "this broker keeps no audit trail")
    limit, before = bounded(request, "limit", 100, _PAGE_MAX), number(request, "before", UNBOUNDED)
    by, subject = request.query.get("by"), request.query.get("subject")
    found = await in_thread(
        lambda: trail.entries(before=before, who=by, subject=subject, limit=limit)
    )
    rest = found[-1].number if len(found) == limit else None
    return web.json_response({"audit": [rendered(each) for each in found], "next": rest})


def rendered(entry: AuditEntry) -> dict[str, Any]:
    """Return what is shown of an entry."""
    return {
        "number": entry.number,
        "time": render_time(entry.time_us),
        "by": entry.who,
        "address": entry.address,
        "action": entry.action,
        "subject": entry.subject,
        "detail": dict(entry.detail),
        "outcome": None if entry.outcome is None else entry.outcome.value,
    }


ROUTES = [web.get("/v1/audit", list_entries)]
