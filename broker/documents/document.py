"""Documents as the broker keeps them, and the lines in which people exchange them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

from xscl.lexer import is_name

__all__ = [
    "CLOCK",
    "FIRST_WATERMARK_US",
    "LAST_US",
    "NAME_CHARACTERS_MAX",
    "NAME_RULE",
    "Document",
    "DocumentError",
    "DocumentLine",
    "check_stream",
    "parse_document_line",
    "parse_recorded_line",
    "parse_time",
    "render_time",
    "tick",
]

CLOCK = "CLOCK"
"""The stream of ticks: documents without content, which move `W` while nothing else comes."""

FIRST_WATERMARK_US = -(1 << 63)
"""`W(1)`: no document is older than the first one."""

NAME_CHARACTERS_MAX = 200
"""Names of streams and ids of queries are held in memory, stand in every match and on the page;
the longest that people use are ten."""

NAME_RULE = "a letter or `_`, then letters, digits, `_`, `.` and `-`"

_ENCODING = re.compile(r"^(\s*<\?xml[^>]*?)\s+encoding\s*=\s*(?:'[^']*'|\"[^\"]*\")")
"""The declared encoding of XML that came as text: it spoke of bytes that no longer exist."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class DocumentError(ValueError):
    """A document, or the line that carries it, cannot be taken.  The publisher can act on it."""


@lru_cache(maxsize=10_000)
def check_stream(name: str) -> None:
    """Raise `DocumentError` for what no query could name a stream."""
    if len(name) > NAME_CHARACTERS_MAX:
        raise DocumentError(
            f"a stream's name has at most {NAME_CHARACTERS_MAX} characters, this one {len(name)}"
        )
    if not is_name(name):
        raise DocumentError(
            f"{name!r} cannot be the name of a stream, because no query could write it: {NAME_RULE}"
        )


@dataclass(frozen=True, slots=True)
class Document:
    """One accepted document, as the spool holds it.

    `end_us` is the event time used by every query, `claimed_us` what the publisher said where
    that was later than the arrival.  `start_us` differs from `end_us` only in documents that a
    query publishes; those have `depth > 0`, a `match_id`, and the largest docid from outside behind
    them as `docid_max`, 0 where that is `docid`.  `confidence` is below 1 where its match is not
    certain.  `revision` says how many documents it revises: those before it with its publisher's
    key, and other content.
    """

    docid: int
    stream: str
    key: str
    start_us: int
    end_us: int
    arrival_us: int
    watermark_us: int
    xml: bytes
    depth: int = 0
    match_id: str = ""
    claimed_us: int | None = None
    docid_max: int = 0
    confidence: Fraction = Fraction(1)
    revision: int = 0


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """One document from outside before it has a number.  Times are microseconds or unknown."""

    stream: str
    xml: bytes
    time_us: int | None = None
    arrival_us: int | None = None
    key: str | None = None

    @property
    def is_tick(self) -> bool:
        """Whether this is a tick of the clock, and no document of anybody's."""
        return self.stream == CLOCK and not self.xml


_FIELDS = frozenset({"stream", "key", "time", "arrival", "xml", "docid"})
"""What a document line may say.  `docid` is of the broker that it comes from, and passed over."""

_SPELT_FIELDS = "stream, key, time, arrival and xml"


def tick(time_us: int | None = None) -> DocumentLine:
    """Return the line of a tick, at its arrival where no time is given."""
    return DocumentLine(stream=CLOCK, xml=b"", time_us=time_us)


def parse_recorded_line(line: str | bytes) -> DocumentLine:
    """Read a line of a recorded stream: a document line, or a tick, `{"tick": TIME}`."""
    fields = _fields(line)
    if fields.keys() != {"tick"}:
        return _document_line(fields)
    time_us = _optional_time(fields, "tick")
    if time_us is None:
        raise DocumentError("'tick' must be a time")
    return tick(time_us)


def parse_document_line(line: str | bytes, stream: str | None = None) -> DocumentLine:
    """Read one JSON document line; raise `DocumentError` where it is not one.

    A line that names no stream is one of `stream`, where that is given.  A time before 1980 says
    nothing, as if it were left out.
    """
    fields = _fields(line)
    if stream is not None:
        fields.setdefault("stream", stream)
    return _document_line(fields)


def _fields(line: str | bytes) -> dict[str, Any]:
    try:
        fields: Any = json.loads(line)
    except ValueError as error:
        raise DocumentError(f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise DocumentError("a document line is a JSON object")
    return fields


def _document_line(fields: dict[str, Any]) -> DocumentLine:
    if unknown := fields.keys() - _FIELDS:
        names = ", ".join(map(repr, sorted(unknown)))
        raise DocumentError(f"a document line has no {names}: its fields are {_SPELT_FIELDS}")
    for name in ("stream", "xml"):
        if not isinstance(fields.get(name), str) or not fields[name]:
            raise DocumentError(f"a document line needs {name!r}, a string that is not empty")
    key = fields.get("key")
    if key is not None and not isinstance(key, str):
        raise DocumentError("'key' must be a string")
    return DocumentLine(
        stream=fields["stream"],
        xml=_ENCODING.sub(r"\1", fields["xml"], count=1).encode(),
        time_us=_optional_time(fields, "time"),
        arrival_us=_optional_time(fields, "arrival"),
        key=key,
    )


def _optional_time(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise DocumentError(f"{name!r} must be an ISO 8601 string")
    try:
        return _usable()(parse_time(value))
    except ValueError as error:
        raise DocumentError(f"{name!r} is not an ISO 8601 time: {value!r}") from error


@cache
def _usable() -> Callable[[int], int | None]:
    # Every verb reads this module, and all of feeds comes with that one.
    from feeds.dates import usable

    return usable


def parse_time(text: str) -> int:
    """Return the microseconds since 1970 of an ISO 8601 time; without an offset it is UTC.

    >>> parse_time("1970-01-01T00:00:01.5Z")
    1500000
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


@lru_cache(maxsize=10_000)
def render_time(time_us: int) -> str:
    """Return an ISO 8601 time in UTC, with a fraction only where there is one.

    >>> render_time(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    >>> render_time(1_000_000)
    '1970-01-01T00:00:01Z'
    """
    minutes, rest = divmod(time_us, 60_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    behind = f".{fraction:06}" if fraction else ""
    return f"{_render_minute(minutes)}:{seconds:02}{behind}Z"


@lru_cache(maxsize=4_096)
def _render_minute(minutes: int) -> str:
    # Documents of one batch are of few minutes.
    return (_EPOCH + timedelta(minutes=minutes)).isoformat(timespec="minutes")[:16]


LAST_US = parse_time("9999-12-31T23:59:59Z")
"""Later than everything: what the last tick of a replay says."""
