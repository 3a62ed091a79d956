"""What a running broker says on standard error: lines for people, or JSON lines for programs.

A record says what it is about in fields, given as `extra={"query": ..., "docid": ...}`; which
there are is `FIELDS`.  Secrets are taken out of every line, whoever wrote them there, and so is
what would steer a terminal or begin another line (`printable`).
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from textwrap import indent
from typing import TYPE_CHECKING

from broker.operations.printable import one_line, printable
from broker.settings.config import LogSettings

if TYPE_CHECKING:
    from broker.delivery.worker import DeliveryEvent
    from broker.pipeline.steps import StepSummary

__all__ = [
    "FIELDS",
    "JsonLines",
    "TextLines",
    "log_delivery",
    "log_step",
    "without_secrets",
    "write_log",
]

_log = logging.getLogger(__name__)

FIELDS = (
    "stage",
    "query",
    "version",
    "docid",
    "segment",
    "stream",
    "subscription",
    "delivery",
    "documents",
    "matches",
    "seconds",
    "url",
)
"""What records can be about, besides their message."""

_OURS = ("broker", "feeds", "joins", "templates", "xpath_eval", "xscl")

_SECRETS = (
    (re.compile(r"\b(xscl_[0-9a-f]{12})_[A-Za-z0-9_-]{20,}"), r"\1_***"),
    (re.compile(r"\bwhsec_[A-Za-z0-9+/=_-]+"), "whsec_***"),
    (re.compile(r"(://)[^/\s@]+@"), r"\1***@"),
    (re.compile(r"(?i)\b(bearer|basic) [A-Za-z0-9._~+/=-]{8,}"), r"\1 ***"),
    (re.compile(r"(?i)((?:password|secret|token|api_?key)=)[^&\s\"']+"), r"\1***"),
)


_TROUBLE = {
    "failed": (logging.INFO, "a delivery has failed and is tried again"),
    "dead": (logging.WARNING, "a delivery is a dead letter"),
    "disabled": (logging.WARNING, "a subscription is disabled"),
}
"""What there is to say of the events of a delivery that are not as they should be."""


class TextLines(logging.Formatter):
    """A line for people: the time, how grave it is, who says it, and its fields behind it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and below it where an error arose."""
        text = f"{_time(record)} {record.levelname.lower()} {record.name}: {record.getMessage()}"
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        # What is quoted in an error must not look like a line of the log.
        error = indent(printable(_error(record)), "  ")
        return without_secrets("\n".join(filter(None, (one_line(text + fields), error))))


class JsonLines(logging.Formatter):
    """A JSON object on one line: `time`, `level`, `logger`, `message`, fields, `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        error = _error(record)
        if error:
            line["error"] = error
        cleaned = {
            name: without_secrets(value) if isinstance(value, str) else value
            for name, value in line.items()
        }
        return printable(json.dumps(cleaned, ensure_ascii=False, default=str))


def write_log(settings: LogSettings, *, is_verbose: bool = False) -> None:
    """Have this process log to standard error from now on.  Of other libraries, warnings only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.format == "json" else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    level = logging.DEBUG if is_verbose else logging.getLevelNamesMapping()[settings.level.upper()]
    for name in _OURS:
        logging.getLogger(name).setLevel(level)


def log_step(step: StepSummary) -> None:
    """Log that a step of the pipeline was committed."""
    _log.debug(
        "committed",
        extra={
            "stage": "commit",
            "segment": step.through,
            "documents": step.documents,
            "matches": step.matches,
            "seconds": round(step.process_s + step.commit_s, 4),
        },
    )


def log_delivery(event: DeliveryEvent) -> None:
    """Log what went wrong with a delivery."""
    if event.kind not in _TROUBLE:
        return
    level, words = _TROUBLE[event.kind]
    _log.log(
        level,
        "%s: %s",
        words,
        event.reason or _answered(event),
        extra={
            "stage": "delivery",
            "query": event.subscription.query,
            "subscription": event.subscription.id,
            "delivery": event.delivery_id,
        },
    )


def _answered(event: DeliveryEvent) -> str:
    if event.outcome is None:
        return ""
    status = "" if event.outcome.status is None else f"answered {event.outcome.status}"
    return ": ".join(filter(None, (status, event.outcome.detail)))


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}


def _error(record: logging.LogRecord) -> str:
    return logging.Formatter().formatException(record.exc_info) if record.exc_info else ""


def without_secrets(text: str) -> str:
    """Return a text in which tokens, keys and passwords are stars."""
    for secret, replacement in _SECRETS:
        text = secret.sub(replacement, text)
    return text
