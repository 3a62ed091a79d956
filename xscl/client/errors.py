"""What can go wrong between a program and a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "BrokerUnreachableError",
    "BusyError",
    "ClientError",
    "ClosedError",
    "Finding",
    "QueryRefusedError",
    "RefusedError",
    "WebhookError",
    "refusal",
]


class ClientError(Exception):
    """Whatever goes wrong with a broker."""


class ClosedError(ClientError):
    """The client has been closed."""


class BrokerUnreachableError(ClientError):
    """No broker answers at the address."""


class WebhookError(ClientError):
    """A message does not come from the broker, or is too old."""


class RefusedError(ClientError):
    """The broker answered that it will not; `status` is that of HTTP, `hint` says what helps."""

    def __init__(self, status: int, detail: str, hint: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.hint = hint


class BusyError(RefusedError):
    """The broker takes no more for now; `retry_after_s` says how long to wait."""

    def __init__(self, detail: str, retry_after_s: float) -> None:
        super().__init__(429, detail)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic; `start` and `end` are (line, column) in the text, from 1."""

    code: str
    severity: str
    message: str
    hint: str | None
    start: tuple[int, int]
    end: tuple[int, int]


class QueryRefusedError(RefusedError):
    """A text is not a query; `findings` say where and why, `str` shows them with carets."""

    def __init__(self, status: int, detail: str, findings: Sequence[Finding], text: str) -> None:
        super().__init__(status, detail)
        self.findings = tuple(findings)
        self._text = text

    def __str__(self) -> str:
        return self._text


def refusal(status: int, problem: Mapping[str, Any]) -> RefusedError:
    """Return the exception for problem details (RFC 9457)."""
    detail = str(problem.get("detail") or problem.get("title") or f"status {status}")
    if "diagnostics" in problem:
        findings = [_finding(each) for each in problem["diagnostics"]]
        return QueryRefusedError(status, detail, findings, str(problem.get("rendered", detail)))
    return RefusedError(status, detail, problem.get("hint"))


def _finding(fields: Mapping[str, Any]) -> Finding:
    start, end = fields["start"], fields["end"]
    return Finding(
        code=fields["code"],
        severity=fields["severity"],
        message=fields["message"],
        hint=fields.get("hint"),
        start=(start["line"], start["column"]),
        end=(end["line"], end["column"]),
    )
