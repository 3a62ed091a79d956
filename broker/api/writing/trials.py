"""`/v1/language/trial`: what a text would match and just miss, told while documents are looked at.

One process beside the broker looks (`broker.pipeline.hindsight.trial`), for one text at a time.
It is started when it is first asked, and ended when nobody has asked for a while.  A client that
goes away, or does not read, ends its question; that is noticed with the next line.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import AsyncGenerator
from dataclasses import asdict
from typing import Any

from aiohttp import web

from broker.api.asking.dryruns import dry_run_of
from broker.api.backend import BACKEND, in_thread
from broker.api.lines import LINE_BYTES_MAX, lines_response, take_turn, write_line
from broker.api.queries import check_id, one_query
from broker.api.querystring import bounded
from broker.api.writing.language import written_text
from broker.pipeline.hindsight.trial import DOCUMENTS_MAX, SECONDS_MAX

__all__ = ["ROUTES", "TRIALS", "Trials", "install"]

_log = logging.getLogger(__name__)

_IDLE_S = 600.0
_GRACE_S = 20.0


class _TrialError(RuntimeError):
    """A question is not answered.  The message is for whoever asked."""


class Trials:
    """The process that tries texts, and whose turn it is."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._ending: asyncio.TimerHandle | None = None

    async def tried(self, question: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        """Yield the lines that are told of a question; closing the iterator ends the question.

        Where another question takes long, this one ends with 429.
        """
        await take_turn(self._turn, "another text is being tried", retry_after_s=5)
        try:
            process = await self._started()
            _write(process, question)
            async for line in _lines(process):
                yield line
        except GeneratorExit:
            await self._interrupt()
            raise
        except _TrialError as error:
            await self.close()
            yield json.dumps({"error": str(error), "is_done": True}).encode() + b"\n"
        except BaseException:
            await self.close()
            raise
        finally:
            self._end_later()
            self._turn.release()

    async def _interrupt(self) -> None:
        """End the question in hand, and keep the process for the next one."""
        assert self._process is not None
        try:
            _write(self._process, None)
            for _ in range(2):  # the question that is interrupted, and the one that does so
                async for _ in _lines(self._process):
                    pass
        except _TrialError:
            await self.close()
        except BaseException:  # what it still says would be taken for the next answer
            await self.close()
            raise

    async def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._ending is not None:
            self._ending.cancel()

    async def _started(self) -> asyncio.subprocess.Process:
        if self._ending is not None:
            self._ending.cancel()
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "broker.pipeline.hindsight.trial"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=LINE_BYTES_MAX,
            )
        return self._process

    def _end_later(self) -> None:
        loop = asyncio.get_running_loop()
        if self._ending is not None:
            self._ending.cancel()
        self._ending = loop.call_later(_IDLE_S, self._end)

    def _end(self) -> None:
        if self._process is not None and not self._turn.locked():
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process = None


def _write(process: asyncio.subprocess.Process, question: dict[str, Any] | None) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(question).encode() + b"\n")


async def _lines(process: asyncio.subprocess.Process) -> AsyncGenerator[bytes, None]:
    """Yield what is told of one question."""
    assert process.stdout is not None
    while True:
        try:
            async with asyncio.timeout(SECONDS_MAX + _GRACE_S):
                line = await process.stdout.readline()
        except TimeoutError as error:
            raise _TrialError("it took too long") from error
        if not line:
            _log.error("the process that tries texts has ended while it looked for one")
            raise _TrialError("it failed; the broker's log says why")
        if line.startswith(b'{"is_ready"'):
            return
        yield line


TRIALS = web.AppKey("trials", Trials)


def install(application: web.Application) -> None:
    """Give an application the process that tries texts; it ends with the application."""
    application[TRIALS] = Trials()

    async def close(application: web.Application) -> None:
        await application[TRIALS].close()

    application.on_cleanup.append(close)


async def try_text(request: web.Request) -> web.StreamResponse:
    """Answer what the text in the body would match among the newest documents, and just misses.

    The answer is lines of JSON, each with all that is known by then; the last one has `is_done`.
    429 where another text takes long.  While there is no text yet, the documents are read for it.
    """
    backend, query_id = request.app[BACKEND], request.query.get("id") or "query"
    documents = bounded(request, "documents", DOCUMENTS_MAX, DOCUMENTS_MAX)
    source = await written_text(request)
    await in_thread(check_id, backend, query_id)
    if not source.strip():
        spool = str(backend.spool.directory)
        return await _told(request, {"spool": spool, "documents_max": documents})
    query = await in_thread(one_query, source, query_id)
    asked = await in_thread(
        lambda: dry_run_of(
            backend,
            query,
            parameters=request.query.get("parameters"),
            documents_max=documents,
            seconds_max=SECONDS_MAX,
        )
    )
    return await _told(request, {**asdict(asked), "source": source})


async def _told(request: web.Request, question: dict[str, Any]) -> web.StreamResponse:
    response = lines_response()
    lines = request.app[TRIALS].tried(question)
    async with contextlib.aclosing(lines):
        try:
            async for line in lines:
                await write_line(request, response, line)
        except ConnectionError:
            _log.debug("who tried a text did not wait for the answer")
    return response


ROUTES = [web.post("/v1/language/trial", try_text)]
