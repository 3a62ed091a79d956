"""What a broker sends and takes, as values."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, cast
from xml.etree import ElementTree

__all__ = [
    "DocumentToPublish",
    "Explanation",
    "FeedInfo",
    "Match",
    "MatchDocument",
    "QueryInfo",
    "Receipt",
    "SubscriptionInfo",
    "Xml",
    "document_line",
    "read_feed",
    "read_match",
    "read_query",
    "read_receipt",
    "read_subscription",
]


class Element(Protocol):
    """An element of `lxml` or of `xml.etree`."""

    tag: Any
    tail: str | None


Xml = str | bytes | Element

_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


@dataclass(frozen=True, slots=True)
class DocumentToPublish:
    """A document for a stream.  Without a key it is never taken for another one.

    `xml` is its text, its bytes in the encoding that they declare, or an element of `lxml` or
    `xml.etree`; `time` its event time, as ISO 8601 where it is text.
    """

    xml: Xml
    key: str | None = None
    time: datetime | str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a published document; `docid` is None, with a reason, if it was refused.

    One that `is_late` is older than anything that can still be joined with it.  One that
    `is_settled` came when a query with NEXT, UNLESS or NOT may have answered without it.
    """

    outcome: str
    docid: int | None
    key: str | None
    reason: str | None
    is_late: bool = False
    is_settled: bool = False


@dataclass(frozen=True, slots=True)
class MatchDocument:
    """One document of a match.

    In a query with alternatives or a repetition `block` is its place, the same of all documents of
    a run, and `branch` which of several it stands for.
    """

    docid: int
    stream: str
    key: str
    time: datetime
    block: int | None = None
    branch: int | None = None


_LISTED = 3
"""The longest run all of whose documents are named in a line."""


@dataclass(frozen=True, slots=True)
class Match:
    """One match.  `seq` is its number in the broker, where a reader goes on.

    `line` is the whole match line as the broker wrote it.
    """

    seq: int
    id: str
    query: str
    start: datetime
    end: datetime
    documents: tuple[MatchDocument, ...]
    witnesses: tuple[Mapping[str, Any], ...]
    parameters: Mapping[str, Any]
    output: str
    line: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def apart(self) -> timedelta:
        """How long it took from its first document to its last.

        A row stands at one time: of it the listed documents count.
        """
        times = [each.time for each in self.documents]
        listed = max(times) - min(times) if times else timedelta(0)
        return max(self.end - self.start, listed)

    @property
    def joined(self) -> tuple[str, ...]:
        """The values that two documents share, each once, in the order of the witnesses.

        Others that were compared are in `witnesses`: different ones, as by `!=`.
        """
        shared = (value for witness in self.witnesses for value in _shared(witness))
        return tuple(dict.fromkeys(shared))

    def __str__(self) -> str:
        blocks = groupby(self.documents, key=attrgetter("block"))
        # All documents of a row are of no block.
        is_row = not self.line["roots"]
        places = " + ".join(
            _places(list(own), are_run=is_row or block is not None) for block, own in blocks
        )
        joined = f"{', '.join(self.joined)}; " if self.joined else ""
        return f"{self.query}: {places} ({joined}{self.apart} apart)"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{each.docid}</td><td>{escape(each.stream)}</td>"
            f"<td>{escape(each.key)}</td><td>{each.time:%Y-%m-%d %H:%M:%S}</td></tr>"
            for each in self.documents
        )
        joined = f"joined by {escape(', '.join(self.joined))}, " if self.joined else ""
        return (
            f"<p><b>{escape(self.query)}</b> {joined}{self.apart} apart</p>"
            f"<table><tr><th>docid</th><th>stream</th><th>key</th><th>time</th></tr>{rows}</table>"
            f"<details><summary>output</summary><pre>{escape(self.output)}</pre></details>"
        )


def _places(documents: Sequence[MatchDocument], *, are_run: bool) -> str:
    """Return where documents are; of a long run, or row, the first and the last."""
    places = [f"{each.stream}/{each.key}" for each in documents]
    if not are_run or len(places) <= _LISTED:
        return " + ".join(places)
    return f"{places[0]} ... {places[-1]} ({len(places)} documents)"


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A query as the broker has it; it sees documents with docids above `point`.

    `warnings` are what its author should know, such as that it joins without a value join.
    """

    id: str
    version: str
    state: str
    reason: str
    point: int
    text: str
    warnings: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        reason = f": {escape(self.reason)}" if self.reason else ""
        return (
            f"<p><b>{escape(self.id)}</b> {escape(self.state)}{reason}, "
            f"from docid {self.point + 1}</p><pre>{escape(self.text)}</pre>"
        )


class Explanation(dict[str, Any]):
    """What a broker says of a query, by name; a notebook shows it as the text that `xscl` prints.

    >>> Explanation(rendered="a < b")._repr_html_()
    '<pre>a &lt; b</pre>'
    """

    def _repr_html_(self) -> str:
        text = self.get("rendered")
        if not isinstance(text, str):
            text = json.dumps(self, indent=2, ensure_ascii=False)
        return f"<pre>{escape(text, quote=False)}</pre>"


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """A subscription as the broker has it; `secret` only where it has just been made.

    It gets matches of documents after `point` and, since its query was removed, up to `until`.
    """

    id: str
    query: str
    parameters: Mapping[str, Any]
    destination: str
    state: str
    reason: str
    point: int
    until: int | None = None
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class FeedInfo:
    """A feed that the broker polls: how it does, when it is checked next, and `why` then.

    `status` is `waiting`, `ok`, `quiet`, `failing`, `gone` or `paused`; `error` says what failed.
    `fields` is all that the broker says of it.
    """

    url: str
    stream: str
    title: str
    status: str
    error: str
    why: str
    last_check: datetime | None
    next_check: datetime | None
    items: int
    items_per_day: float
    warnings: tuple[str, ...]
    fields: Mapping[str, Any] = field(repr=False, compare=False)


def _shared(witness: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values of a witness tuple that stand in more than one document."""
    nodes = [each for each in witness.values() if isinstance(each, dict)]
    for node in nodes:
        blocks = {each["block"] for each in nodes if each["value"] == node["value"]}
        if node["value"] and len(blocks) > 1:
            yield node["value"]


def read_match(fields: Mapping[str, Any], seq: int) -> Match:
    """Read a match line."""
    documents = tuple(
        MatchDocument(
            each["docid"],
            each["stream"],
            each["key"],
            _time(each["time"]),
            each.get("block"),
            each.get("branch"),
        )
        for each in fields["documents"]
    )
    return Match(
        seq=seq,
        id=fields["id"],
        query=fields["query"],
        start=_time(fields["start"]),
        end=_time(fields["end"]),
        documents=documents,
        witnesses=tuple(fields["witnesses"]),
        parameters=fields.get("parameters", {}),
        output=fields["output"],
        line=fields,
    )


def read_query(fields: Mapping[str, Any]) -> QueryInfo:
    """Read what the API says of a query."""
    names = [name for name in QueryInfo.__slots__ if name in fields]
    values = {name: fields[name] for name in names}
    return QueryInfo(**{**values, "warnings": tuple(fields.get("warnings", ()))})


def read_subscription(fields: Mapping[str, Any]) -> SubscriptionInfo:
    """Read what the API says of a subscription."""
    names = [name for name in SubscriptionInfo.__slots__ if name in fields]
    return SubscriptionInfo(**{name: fields[name] for name in names})


def read_feed(fields: Mapping[str, Any]) -> FeedInfo:
    """Read what the API says of a feed."""
    return FeedInfo(
        url=fields["url"],
        stream=fields["stream"],
        title=fields["title"],
        status=fields["status"],
        error=fields["error"],
        why=fields["why"],
        last_check=_time(fields["last_check"]) if fields["last_check"] else None,
        next_check=_time(fields["next_check"]) if fields["next_check"] else None,
        items=fields["items"],
        items_per_day=fields["items_per_day"],
        warnings=tuple(fields["warnings"]),
        fields=fields,
    )


def read_receipt(fields: Mapping[str, Any]) -> Receipt:
    """Read what the API says of a published document."""
    return Receipt(
        fields["outcome"],
        fields["docid"],
        fields["key"],
        fields["reason"],
        fields.get("late", False),
        fields.get("settled", False),
    )


def document_line(stream: str, document: DocumentToPublish) -> str:
    """Return the document line in which a document is sent.

    >>> document_line("S", DocumentToPublish("<a/>", key="1"))
    '{"stream": "S", "xml": "<a/>", "key": "1"}'
    """
    line: dict[str, str] = {"stream": stream, "xml": _text(document.xml)}
    if document.key is not None:
        line["key"] = document.key
    if document.time is not None:
        line["time"] = _time_text(document.time)
    return json.dumps(line, ensure_ascii=False)


def _text(xml: Xml) -> str:
    """Return a document as text; raise `ValueError` where bytes are not in their encoding."""
    if isinstance(xml, str):
        return xml
    if isinstance(xml, bytes):
        return _decoded(xml)
    if not hasattr(xml, "tag"):
        raise TypeError(f"a document is text, bytes or an element, not {type(xml).__name__}")
    if type(xml).__module__.partition(".")[0] == "lxml":
        from lxml import etree

        return str(etree.tostring(cast(Any, xml), encoding="unicode", with_tail=False))
    alone = copy(cast(ElementTree.Element, xml))
    alone.tail = None
    return ElementTree.tostring(alone, encoding="unicode")


def _decoded(xml: bytes) -> str:
    if xml.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return xml.decode("utf-16")
    declared = _ENCODING.search(xml.removeprefix(codecs.BOM_UTF8))
    encoding = declared[1].decode() if declared else "utf-8"
    try:
        return xml.decode("utf-8-sig" if encoding.lower() == "utf-8" else encoding)
    except (LookupError, UnicodeDecodeError) as error:
        raise ValueError(f"the bytes of the document are not text in {encoding}") from error


def _time_text(time: datetime | str) -> str:
    if isinstance(time, str):
        return time
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone: write datetime(..., tzinfo=UTC)")
    return time.astimezone(UTC).isoformat()


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
