"""Connections to the API: as many as there are files for, and none that waits for ever.

Each connection holds a file, and whoever opens one has shown no token yet.  So what a client may
keep waiting is bounded before anything is known of it:

    silent    no whole head of a request within `IDLE_S`, at first or after an answer: closed
    a body    that comes more slowly than `broker.api.body` allows: answered with 408
    too many  for each one more, one with no request in hand is closed, the oldest that never had
              one, else the oldest that has; where all are at work, the new one is

Invariant: whoever sends a request soon after it has connected is answered, however many wait.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.http import HttpProcessingError

__all__ = ["CONNECTIONS", "Connections", "Runner", "raise_file_limit"]

_log = logging.getLogger(__name__)

IDLE_S = 75.0
"""Longer than proxies keep a connection for the next request, so that they close it, not we."""

_CONNECTIONS_MAX = 8_192
_RESERVED_FILES = 512
"""Files left for the rest of the broker, Java and its workers, and a burst of new connections."""

_CONNECTIONS_MIN = 32
_FILES_WANTED = 65_536
_SAID_AGAIN_S = 60.0


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Return whether a record is about a request: anybody can send bytes that are none."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


_requests_log = logging.getLogger(f"{__name__}.requests")
_requests_log.addFilter(_is_worth_a_line)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def raise_file_limit() -> int:
    """Have this process, and its children, open as many files as they may; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, _FILES_WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


def _most() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _CONNECTIONS_MAX
    return max(_CONNECTIONS_MIN, min(files - _RESERVED_FILES, _CONNECTIONS_MAX))


class Connections:
    """Knows which connections have a request in hand, and makes room for others."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most or _most()
        self._busy: set[asyncio.BaseProtocol] = set()
        self._served: set[asyncio.BaseProtocol] = set()
        self._said_at_s = -_SAID_AGAIN_S

    @web.middleware
    async def note(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Count a connection as busy while a request of it is answered."""
        connection = request.protocol
        self._busy.add(connection)
        self._served.add(connection)
        try:
            return await handler(request)
        finally:
            self._busy.discard(connection)

    def accept(self, server: web.Server) -> asyncio.BaseProtocol:
        """Return the protocol of a new connection; an idle connection may be closed for it."""
        present = [each for each in server.connections if each.transport is not None]
        if len(self._served) > 2 * len(present) + _CONNECTIONS_MIN:
            self._served.intersection_update(present)
        if len(present) < self._most:
            return server()
        waiting = [each for each in present if each not in self._busy]
        self._say(len(present))
        if not waiting:
            return _Refused()
        next((each for each in waiting if each not in self._served), waiting[0]).force_close()
        return server()

    def _say(self, present: int) -> None:
        now_s = time.monotonic()
        if now_s - self._said_at_s < _SAID_AGAIN_S:
            return
        self._said_at_s = now_s
        _log.warning(
            "%d connections are open, and no more are kept: those that send nothing are closed"
            " for new ones; raise the limit of open files if they are wanted",
            present,
        )


CONNECTIONS = web.AppKey("connections", Connections)


class _Refused(asyncio.Protocol):
    """A connection that there is no room for."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class Runner(web.AppRunner):
    """Runs the application of the API on however many addresses, with bounded connections."""

    def __init__(self, application: web.Application, *, shutdown_timeout: float) -> None:
        super().__init__(
            application,
            access_log=None,
            shutdown_timeout=shutdown_timeout,
            keepalive_timeout=IDLE_S,
            logger=_requests_log,
        )

    @property
    def server(self) -> Callable[[], asyncio.BaseProtocol] | None:  # type: ignore[override]
        """What makes the protocol of each connection that is accepted."""
        server = super().server
        if server is None:
            return None
        connections = self.app[CONNECTIONS]
        return lambda: connections.accept(server)
