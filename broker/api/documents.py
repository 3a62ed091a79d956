"""`/v1/streams/{stream}/documents` and `/v1/documents`: documents given, and read back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from itertools import islice
from typing import Any

from aiohttp import web
from lxml import etree

from broker.api.access import caller_of, check_named
from broker.api.backend import BACKEND, evaluated_through, in_thread
from broker.api.body import bytes_of
from broker.api.problem import Problem
from broker.api.querystring import bounded, moment, number
from broker.documents.document import (
    CLOCK,
    DocumentError,
    DocumentLine,
    check_stream,
    parse_document_line,
    render_time,
)
from broker.documents.ingest import LOADS, IngestOutcome, Receipt
from broker.documents.late import late_data
from broker.documents.spool import Spool
from broker.documents.wellformed import parse_xml
from broker.registry.tokens import TokenScope
from feeds.dates import usable

__all__ = ["ROUTES"]

_LIMIT_MAX = 1_000
_WAIT_MAX_S = 60
_LINES = ("application/x-ndjson", "application/jsonl", "application/json")


async def post_documents(request: web.Request) -> web.Response:
    """Take one XML document, or document lines; answer when they are on the disk.

    A line that is refused does not hold up the others: the answer has a receipt for each.  One
    XML document that is refused is answered with 422.
    """
    stream, caller = request.match_info["stream"], caller_of(request)
    check_stream(stream)
    if stream.startswith(LOADS) and caller is not None and TokenScope.ADMIN not in caller.scopes:
        # Who may publish anything may not write what queries go by.
        check_named(caller, TokenScope.PUBLISH, stream, caller.streams)
    body = await bytes_of(request)
    if request.content_type in _LINES:
        return await _post_lines(request, body)
    line = DocumentLine(
        stream=request.match_info["stream"],
        xml=body,
        time_us=usable(moment(request, "time")),
        key=request.query.get("key"),
    )
    _check_xml(body)
    receipts = await _submit(request, [line])
    if receipts[0].docid is None:
        raise DocumentError(receipts[0].reason or "refused")
    return _answer(request, [(1, receipts[0])])


async def _post_lines(request: web.Request, body: bytes) -> web.Response:
    numbered = [(n, line) for n, line in enumerate(body.splitlines(), 1) if line.strip()]
    stream = request.match_info["stream"]
    parsed = await in_thread(lambda: [(n, _parse_line(line, stream)) for n, line in numbered])
    taken = [(n, line) for n, line in parsed if isinstance(line, DocumentLine)]
    receipts = await _submit(request, [line for _, line in taken])
    refused = [(n, line) for n, line in parsed if isinstance(line, Receipt)]
    answered = [(n, receipt) for (n, _), receipt in zip(taken, receipts, strict=True)]
    return _answer(request, sorted(answered + refused, key=lambda pair: pair[0]))


def _parse_line(line: bytes, stream: str) -> DocumentLine | Receipt:
    try:
        parsed = parse_document_line(line, stream)
        if parsed.stream != stream:
            raise DocumentError(f"the line is for stream {parsed.stream!r}, not {stream!r}")
        _check_xml(parsed.xml)
    except DocumentError as error:
        return Receipt(IngestOutcome.REFUSED, reason=str(error))
    return parsed


def _check_xml(xml: bytes) -> None:
    """Refuse what is not well-formed now, while its publisher is listening."""
    try:
        parse_xml(xml)
    except etree.XMLSyntaxError as error:
        raise DocumentError(f"not well-formed XML: {error.msg}") from error


async def _submit(request: web.Request, lines: Sequence[DocumentLine]) -> list[Receipt]:
    if not lines:
        return []
    return await asyncio.wrap_future(request.app[BACKEND].ingest.submit(lines))


def _answer(request: web.Request, receipts: Sequence[tuple[int, Receipt]]) -> web.Response:
    late = sum(receipt.is_late for _, receipt in receipts)
    documents: list[dict[str, Any]] = [
        {
            "line": number,
            "outcome": receipt.outcome.value,
            "docid": receipt.docid,
            "key": receipt.key,
            "reason": receipt.reason,
            "late": receipt.is_late,
            "settled": receipt.is_settled,
        }
        for number, receipt in receipts
    ]
    newest = request.app[BACKEND].ingest.late.newest
    return web.json_response({"documents": documents, "late": late_data(late, newest)})


async def list_documents(request: web.Request) -> web.Response:
    """Answer documents with docids above `?after=`, at most `?limit=`, that are still kept.

    Ticks of the clock are left out.
    """
    spool = request.app[BACKEND].spool
    after, limit = number(request, "after", 0), bounded(request, "limit", 100, _LIMIT_MAX)

    def read() -> list[dict[str, Any]]:
        kept = (row for row in _documents_after(spool, after) if row["stream"] != CLOCK)
        return list(islice(kept, limit))

    found = await in_thread(read)
    return web.json_response({"documents": found})


async def get_document(request: web.Request) -> web.Response:
    """Answer one document by its docid, or 404 where it was never accepted or is kept no more."""
    docid = request.match_info["docid"]
    spool = request.app[BACKEND].spool
    found = await in_thread(lambda: list(islice(_documents_after(spool, int(docid) - 1), 1)))
    if not found or found[0]["docid"] != int(docid):
        raise Problem(HTTPStatus.NOT_FOUND, f"no document {docid}")
    return web.json_response(found[0])


async def await_evaluation(request: web.Request) -> web.Response:
    """Answer whether a document's matches are committed; `?wait=` seconds lets the request wait.

    404 where it was never accepted.
    """
    backend, docid = request.app[BACKEND], int(request.match_info["docid"])
    wait_s = min(number(request, "wait", 0), _WAIT_MAX_S)
    if not await in_thread(_is_accepted, backend.spool, docid):
        raise Problem(HTTPStatus.NOT_FOUND, f"no document {docid}")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wait_s), backend.committed:
            while await in_thread(evaluated_through, backend) < docid:
                await backend.committed.wait()
    is_evaluated = await in_thread(evaluated_through, backend) >= docid
    return web.json_response({"docid": docid, "is_evaluated": is_evaluated})


def _is_accepted(spool: Spool, docid: int) -> bool:
    spool.refresh()
    return 0 < docid <= spool.last_docid


def _documents_after(spool: Spool, after: int) -> Iterator[dict[str, Any]]:
    spool.refresh()
    for segment in spool.all_segments():
        if segment.last_docid > after:
            start = max(0, after + 1 - segment.first_docid)
            for at, row in enumerate(spool.rows(segment).slice(start).to_pylist(), start):
                yield {
                    "docid": segment.first_docid + at,
                    "stream": row["stream"],
                    "key": row["key"],
                    "time": render_time(row["end_us"]),
                    "arrival": render_time(row["arrival_us"]),
                    "xml": row["xml"].decode("utf-8", "replace"),
                }


ROUTES = [
    web.post("/v1/streams/{stream}/documents", post_documents),
    web.get("/v1/documents", list_documents),
    web.get(r"/v1/documents/{docid:\d{1,18}}", get_document),
    web.get(r"/v1/documents/{docid:\d{1,18}}/evaluation", await_evaluation),
]
