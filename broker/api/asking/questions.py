"""What a query becomes, what it would cost, and why documents do not match it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from aiohttp import web

import xscl
from broker.api.backend import BACKEND, Backend, in_thread
from broker.api.body import text_of
from broker.api.problem import Problem
from broker.api.queries import check_id, one_query, present_query
from broker.documents.document import Document
from broker.documents.stored import (
    documents_between,
    newest_documents,
    stored_document,
    stream_at,
)
from broker.estimate import estimate, render_estimate
from broker.explain.data import as_data
from broker.explain.sharing import render_sharing, sharing
from broker.explain.survey import survey
from broker.registry.registered import check_among, queries_of, tables_of
from broker.whynot import SURROUNDINGS_MAX, KnownRows, Reason, Surroundings, why_not
from broker.whynot.text import render_reason

__all__ = ["ROUTES", "SAMPLE_MAX", "reason_why_not", "values_of"]

SAMPLE_MAX = 5_000
"""Documents from which costs are estimated; joined by title they take 0.2 s of a processor."""

SHARING_MAX = 300
"""Registered queries that are looked at for a common template: compiling one takes 1.3 ms."""

_DOCUMENTS_MAX = 8


async def explain_query(request: web.Request) -> web.Response:
    """Answer what a query becomes by itself: variables, patterns, join graph, template, SQL."""
    backend, query_id = request.app[BACKEND], request.match_info["id"]

    def work() -> dict[str, Any]:
        queries = [_registered(backend, query_id)[0]]
        return as_data(survey(queries, lateness_us=backend.lateness_us))

    return web.json_response(await in_thread(work))


async def explain_why_not(request: web.Request) -> web.Response:
    """Answer whether `?documents=` match a query, one for each block, and what keeps them apart.

    A query with parameters needs their values, as a JSON object in `?parameters=`.
    """
    backend, query_id = request.app[BACKEND], request.match_info["id"]
    documents, parameters = request.query.get("documents", ""), request.query.get("parameters")
    reason = await in_thread(reason_why_not, backend, query_id, documents, parameters)
    return web.json_response({**reason.as_data(), "rendered": render_reason(reason)})


def reason_why_not(backend: Backend, query_id: str, numbers: str, parameters: str | None) -> Reason:
    """Return why documents, numbers with commas between them, do not match a registered query."""
    docids, values = _docids(numbers), values_of(parameters)
    query, point = _registered(backend, query_id)
    documents = [_stored(backend, docid) for docid in docids]
    return why_not(
        query,
        documents,
        lateness_us=backend.lateness_us,
        parameters=None if values is None else xscl.assignment(query, values),
        registration_point=point,
        stream_at=lambda end_us: stream_at(backend.spool, end_us),
        around=_around(backend, docids) if query.is_ordered else None,
        known=_known_rows(backend),
    )


async def estimate_query(request: web.Request) -> web.Response:
    """Answer what the query in the body would cost and match, and register nothing.

    What is said rests on the newest documents that are kept.  422 with diagnostics where it could
    not be registered.
    """
    backend, query_id = request.app[BACKEND], request.match_info["id"]
    text = await text_of(request)

    def work() -> dict[str, Any]:
        check_id(backend, query_id)
        query = one_query(text, query_id)
        check_among(backend.registry, query)
        backend.spool.refresh()
        sample = newest_documents(backend.spool, SAMPLE_MAX)
        (found,) = estimate([query], sample, lateness_us=backend.lateness_us, budget=backend.budget)
        present = queries_of(backend.registry, backend.registry.revision())
        shared = sharing(query, [each.query for each in present[:SHARING_MAX]])
        return {
            **found.as_data(),
            "templates": [each.as_data() for each in shared],
            "rendered": render_estimate(found) + render_sharing(shared),
        }

    return web.json_response(await in_thread(work))


def _registered(backend: Backend, query_id: str) -> tuple[xscl.Query, int]:
    present = present_query(backend, query_id)
    return one_query(present.text, query_id), present.point


def _stored(backend: Backend, docid: int) -> Document:
    backend.spool.refresh()
    found = stored_document(backend.spool, docid)
    if found is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"no document {docid}")
    return found


def _around(backend: Backend, docids: Sequence[int]) -> Surroundings:
    """Return the documents among which some were decided."""
    spare = max(0, SURROUNDINGS_MAX - (max(docids) - min(docids))) // 2
    last = max(docids) + spare
    found = documents_between(backend.spool, min(docids) - spare, last)
    return Surroundings(found, is_cut=last < backend.spool.last_docid)


def _known_rows(backend: Backend) -> KnownRows:
    tables = [table for table, _ in tables_of(backend.registry)]
    return KnownRows(tables, backend.outbox.row_of)


def _docids(text: str) -> list[int]:
    names = text.split(",")
    if not all(name.isdecimal() and len(name) <= 18 for name in names):
        detail = "'documents' must be document numbers with commas between them, as 3,17"
        raise Problem(HTTPStatus.BAD_REQUEST, detail)
    if len(names) > _DOCUMENTS_MAX:
        raise Problem(HTTPStatus.BAD_REQUEST, f"at most {_DOCUMENTS_MAX} documents are compared")
    return [int(name) for name in names]


def values_of(text: str | None) -> dict[str, Any] | None:
    """Return the values of `?parameters=`, a JSON object, or None where there are none."""
    if text is None:
        return None
    try:
        values = json.loads(text)
    except ValueError as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"'parameters' is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise Problem(HTTPStatus.BAD_REQUEST, "'parameters' is a JSON object")
    return values


ROUTES = [
    web.get("/v1/queries/{id}/explain", explain_query),
    web.get("/v1/queries/{id}/why-not", explain_why_not),
    web.post("/v1/queries/{id}/estimate", estimate_query),
]
