"""What a query would have matched: asked of a process beside the broker, one at a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from dataclasses import asdict
from typing import Any

from aiohttp import web

import xscl
from broker.api.asking.questions import values_of
from broker.api.backend import BACKEND, Backend, in_thread
from broker.api.body import text_of
from broker.api.lines import LINE_BYTES_MAX, lines_response, take_turn, write_line
from broker.api.queries import check_id, one_query
from broker.api.querystring import number
from broker.matching.engine import RegisteredQuery
from broker.pipeline.lookback.backfill import upstream
from broker.pipeline.lookback.dryrun import DOCUMENTS_MAX, SECONDS_MAX, DryRun
from broker.registry.registered import check_among, queries_of

__all__ = ["ROUTES", "RUNNING", "dry_run_of"]

_log = logging.getLogger(__name__)

_SECONDS_MOST = 300
_DOCUMENTS_MOST = 1_000_000
_GRACE_S = 30.0
"""What a process may take besides: to start, and for the batch in hand."""

RUNNING = web.AppKey("dry_run_running", asyncio.Lock)


async def dry_run_query(request: web.Request) -> web.StreamResponse:
    """Answer what the query in the body would have matched among the documents that are kept.

    The answer is lines of JSON, written as it goes on: how many documents were looked at, and at
    last what was found.  429 where another one runs, and goes on.
    """
    backend, query_id = request.app[BACKEND], request.match_info["id"]
    await in_thread(check_id, backend, query_id)
    query = await in_thread(one_query, await text_of(request), query_id)
    asked = await in_thread(
        lambda: dry_run_of(
            backend,
            query,
            parameters=request.query.get("parameters"),
            documents_max=number(request, "documents", DOCUMENTS_MAX),
            seconds_max=number(request, "seconds", int(SECONDS_MAX)),
        )
    )
    running = request.app[RUNNING]
    await take_turn(running, "the history is being looked at for someone else", retry_after_s=30)
    try:
        return await _run(request, asked)
    finally:
        running.release()


def dry_run_of(
    backend: Backend,
    query: xscl.Query,
    *,
    parameters: str | None,
    documents_max: int,
    seconds_max: float,
) -> DryRun:
    """Return what is asked of the documents that are kept, with the publishers of its streams.

    `parameters` is a JSON object with the values of a query that has some.  What cannot be
    registered beside the others ends the request with 422.
    """
    check_among(backend.registry, query)
    values = values_of(parameters)
    present = queries_of(backend.registry, backend.registry.revision())
    behind = upstream(RegisteredQuery(query), [q for q in present if q.query.id != query.id])
    return DryRun(
        spool=str(backend.spool.directory),
        query=(query.id, query.text),
        upstream=tuple((each.query.id, each.query.text) for each in behind),
        lateness_us=backend.lateness_us,
        parameters=None if values is None else xscl.assignment(query, values),
        documents_max=max(1, min(documents_max, _DOCUMENTS_MOST)),
        seconds_max=max(1, min(seconds_max, _SECONDS_MOST)),
        budget=asdict(backend.budget),
    )


async def _run(request: web.Request, asked: DryRun) -> web.StreamResponse:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "broker.pipeline.lookback.dryrun"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LINE_BYTES_MAX,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    logging_it = asyncio.create_task(_log_lines(process.stderr))
    response = lines_response()
    try:
        process.stdin.write(json.dumps(asdict(asked)).encode())
        process.stdin.close()
        await response.prepare(request)
        failure = None
        try:
            async with asyncio.timeout(asked.seconds_max + _GRACE_S):
                async for line in process.stdout:
                    await write_line(request, response, line)
            if await process.wait() != 0:
                failure = "it failed; the broker's log says why"
        except TimeoutError:
            failure = "it took too long for the documents of one batch"
            took_s = asked.seconds_max + _GRACE_S
            _log.warning("a dry run was ended: one batch took longer than %.0f s", took_s)
        if failure is not None:
            await write_line(request, response, _failure(failure))
    except ConnectionError:
        _log.info("who asked for a dry run did not wait for the answer")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await logging_it
    return response


async def _log_lines(stderr: asyncio.StreamReader) -> None:
    async for line in stderr:
        _log.warning("the process of a dry run said: %s", line.decode(errors="replace").rstrip())


def _failure(detail: str) -> bytes:
    said: dict[str, Any] = {"error": f"the history could not be looked at: {detail}"}
    return json.dumps(said).encode() + b"\n"


ROUTES = [web.post("/v1/queries/{id}/rehearsal", dry_run_query)]
