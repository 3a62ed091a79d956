"""`/v1/streams`, `/v1/dead-letters` and `/v1/statistics`: what there is, and what went wrong."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import Any

from aiohttp import web

from broker.api.backend import BACKEND, Backend, in_thread
from broker.api.pickup import PICKUP
from broker.api.problem import Problem
from broker.api.querystring import bounded, number
from broker.documents.document import Document, DocumentError, render_time
from broker.documents.late import late_data
from broker.documents.resubmission import resubmission
from broker.documents.stored import stored_document
from broker.pipeline.outbox import DeadLetter
from broker.registry.queries import QueryState
from broker.registry.streams import Stream
from joins import UNBOUNDED

__all__ = ["ROUTES", "rendered", "rendered_dead_letters", "statistics"]

_LIMIT_MAX = 1_000


async def list_streams(request: web.Request) -> web.Response:
    """Answer the streams that have documents, or that an active query names, by name."""
    backend = request.app[BACKEND]
    found = await in_thread(backend.streams.streams, backend.registry, _now_us())
    late = backend.ingest.late
    rows = [
        {
            **rendered(each),
            "late": late.by_stream.get(each.name, 0),
            "settled": late.settled.get(each.name, 0),
        }
        for each in found
    ]
    return web.json_response({"streams": rows})


async def list_dead_letters(request: web.Request) -> web.Response:
    """Answer documents that could not be evaluated, newest first; `?before=` a docid goes on."""
    backend = request.app[BACKEND]
    limit = bounded(request, "limit", 100, _LIMIT_MAX)
    before = number(request, "before", UNBOUNDED)
    found = await in_thread(lambda: backend.outbox.dead_letters(before=before, limit=limit))
    rows = await in_thread(rendered_dead_letters, backend, found)
    rest = found[-1].docid if len(found) == limit else None
    return web.json_response({"dead_letters": rows, "next": rest})


async def retry_dead_letter(request: web.Request) -> web.Response:
    """Give a document that could not be evaluated to ingest again; again and again is once.

    404 where there is no such dead letter, 409 where the document is kept no more.
    """
    backend, docid = request.app[BACKEND], int(request.match_info["docid"])

    def look_up() -> tuple[bool, Document | None]:
        backend.spool.refresh()
        return backend.outbox.is_dead_letter(docid), stored_document(backend.spool, docid)

    is_dead, document = await in_thread(look_up)
    if not is_dead:
        raise Problem(HTTPStatus.NOT_FOUND, f"document {docid} is no dead letter")
    if document is None:
        raise Problem(HTTPStatus.CONFLICT, f"document {docid} is kept no more")
    (receipt,) = await asyncio.wrap_future(backend.ingest.submit([resubmission(document)]))
    if receipt.docid is None:
        raise DocumentError(receipt.reason or "refused")
    return web.json_response({"outcome": receipt.outcome.value, "docid": receipt.docid})


async def get_statistics(request: web.Request) -> web.Response:
    """Answer how many there are of everything, and how fast documents come."""
    found = await in_thread(statistics, request.app[BACKEND])
    pickup = request.app.get(PICKUP)
    found["deliveries"] = await pickup.write(pickup.deliveries.counts) if pickup else {}
    return web.json_response(found)


def statistics(backend: Backend) -> dict[str, Any]:
    """Return the numbers of one moment; `figures` are those of `/metrics`."""
    reason = backend.unready()
    streams = backend.streams.streams(backend.registry, _now_us())
    counts = backend.registry.state_counts()
    late = backend.ingest.late
    return {
        "is_ready": reason is None,
        "reason": reason,
        "streams": len(streams),
        "documents": sum(each.documents for each in streams),
        "documents_per_second": sum(each.per_second for each in streams),
        "late": late_data(late.total, late.newest),
        "settled": sum(late.settled.values()),
        "queries": {
            state.value: count
            for state, count in counts.items()
            if state in (QueryState.ACTIVE, QueryState.PAUSED)
        },
        "subscriptions": sum(backend.registry.subscriptions.counts().values()),
        "matches": sum(backend.outbox.matches.counts().values()),
        "figures": dict(backend.figures()),
    }


def rendered(stream: Stream) -> dict[str, Any]:
    """Return what is shown of a stream."""
    return {
        "name": stream.name,
        "documents": stream.documents,
        "documents_per_second": stream.per_second,
        "newest": stream.newest_docid or None,
        "time": None if stream.newest_us is None else render_time(stream.newest_us),
        "arrival": None if stream.arrival_us is None else render_time(stream.arrival_us),
        "readers": stream.readers,
        "publisher": stream.publisher,
    }


def rendered_dead_letters(backend: Backend, found: list[DeadLetter]) -> list[dict[str, Any]]:
    """Return what is shown of dead letters; `xml` is None where a document is kept no more."""
    backend.spool.refresh()
    rows = []
    for letter in found:
        document = stored_document(backend.spool, letter.docid)
        rows.append(
            {
                "docid": letter.docid,
                "reason": letter.reason,
                "time": render_time(letter.committed_us),
                "stream": document and document.stream,
                "key": document and document.key,
                "xml": document and document.xml.decode("utf-8", "replace"),
            }
        )
    return rows


def _now_us() -> int:
    return time.time_ns() // 1_000


ROUTES = [
    web.get("/v1/streams", list_streams),
    web.get("/v1/dead-letters", list_dead_letters),
    web.post(r"/v1/dead-letters/{docid:\d{1,18}}/retry", retry_dead_letter),
    web.get("/v1/statistics", get_statistics),
]
