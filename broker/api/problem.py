"""Problem details (RFC 9457): every error of the API has this form."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

from aiohttp import web

from broker.documents.document import DocumentError
from broker.documents.ingest_thread import Busy
from broker.pipeline.lookback.backfill import LookBackError
from broker.registry.file import RegistryError
from broker.registry.subscription import SubscriptionError
from xscl import Diagnostic, XsclError
from xscl.diagnostics import locate

__all__ = ["Problem", "problems", "status_of"]

_log = logging.getLogger(__name__)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_EXPECTED = (XsclError, DocumentError, SubscriptionError, LookBackError, RegistryError, Busy)
"""What the callers of the API can act on, besides `Problem`."""


class Problem(Exception):  # noqa: N818 - RFC 9457's word
    """Ends a request with problem details; `extra` are further members of them."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.extra = extra or {}
        self.headers = headers or {}

    def response(self) -> web.Response:
        """Return the response that says so."""
        body = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": int(self.status),
            "detail": self.detail,
            **self.extra,
        }
        return web.json_response(
            body,
            status=self.status,
            content_type="application/problem+json",
            headers=self.headers,
        )


@web.middleware
async def problems(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Answer whatever goes wrong below with problem details."""
    try:
        return await handler(request)
    except Problem as problem:
        return problem.response()
    except web.HTTPException as error:
        if error.status < HTTPStatus.BAD_REQUEST:
            raise
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        return Problem(HTTPStatus(error.status), error.text or "", headers=headers).response()
    except _EXPECTED as error:
        return _expected(error).response()
    except Exception as error:
        if _is_full(error):
            _log.warning("%s %s: %s", request.method, request.path, error)
            return Problem(
                HTTPStatus.INSUFFICIENT_STORAGE, "the broker's disk is full; nothing has changed"
            ).response()
        _log.exception("%s %s failed", request.method, request.path)
        return Problem(
            HTTPStatus.INTERNAL_SERVER_ERROR, "the broker failed; its log says why"
        ).response()


def status_of(error: Exception) -> int:
    """Return the status with which `problems` answers an exception."""
    if isinstance(error, Problem | web.HTTPException):
        return int(error.status)
    if isinstance(error, _EXPECTED):
        return int(_expected(error).status)
    if _is_full(error):
        return int(HTTPStatus.INSUFFICIENT_STORAGE)
    return int(HTTPStatus.INTERNAL_SERVER_ERROR)


def _is_full(error: Exception) -> bool:
    return (
        isinstance(error, sqlite3.OperationalError)
        and error.sqlite_errorcode == sqlite3.SQLITE_FULL
    )


def _expected(error: Exception) -> Problem:
    if isinstance(error, XsclError):
        return _query_problem(error)
    if isinstance(error, RegistryError):
        return Problem(HTTPStatus.NOT_FOUND, str(error))
    if isinstance(error, Busy):
        retry_after = {"Retry-After": str(max(1, round(error.retry_after_s)))}
        return Problem(HTTPStatus.TOO_MANY_REQUESTS, str(error), headers=retry_after)
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))


def _query_problem(error: XsclError) -> Problem:
    findings = [_finding(diagnostic) for diagnostic in error.diagnostics]
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        error.diagnostics[0].message if error.diagnostics else "not a query",
        extra={"diagnostics": findings, "rendered": str(error)},
    )


def _finding(diagnostic: Diagnostic) -> dict[str, Any]:
    start = locate(diagnostic.source, diagnostic.span.start)
    end = locate(diagnostic.source, diagnostic.span.end)
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        "start": {"line": start.line, "column": start.column},
        "end": {"line": end.line, "column": end.column},
    }
