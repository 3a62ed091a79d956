"""Which documents `xscl explain --why-not` and `xscl witnesses` are about."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from broker.cli.terminal import Failure

if TYPE_CHECKING:
    from broker.documents.document import Document
    from xscl.query import Query

__all__ = ["all_of", "from_files", "from_record", "with_tick"]

_SECOND_US = 1_000_000


def from_record(path: Path, names: Sequence[str]) -> list[Document]:
    """Return documents of a file of document lines, by document number or key.

    A key that is on several streams is written `stream/key`.
    """
    from broker.documents.recorded import RecordedError, number_lines, read_document_lines

    found: dict[str, list[Document]] = {name: [] for name in names}
    try:
        for document in number_lines(read_document_lines([path])):
            own = (str(document.docid), document.key, f"{document.stream}/{document.key}")
            for name in set(own) & found.keys():
                found[name].append(document)
    except (RecordedError, OSError) as error:
        raise Failure(str(error)) from error
    return [_only(name, found[name], path) for name in names]


def all_of(path: Path, until_us: int | None) -> list[Document]:
    """Return all documents of a file of document lines, ticks among them.

    The last tick is at a time, by default later than everything, as in a replay.
    """
    from broker.documents.document import LAST_US, tick
    from broker.documents.recorded import RecordedError, number_lines, read_document_lines

    last = "", tick(LAST_US if until_us is None else until_us)
    try:
        return list(number_lines(chain(read_document_lines([path]), [last])))
    except (RecordedError, OSError) as error:
        raise Failure(str(error)) from error


def _only(name: str, documents: Sequence[Document], path: Path) -> Document:
    numbered = [document for document in documents if str(document.docid) == name]
    if len(documents) == 1 or numbered:
        return (numbered or list(documents))[0]
    if not documents:
        raise Failure(
            f"{path} has no document {name!r}",
            hint="name documents by their number (the first line is 1) or by their key",
        )
    places = ", ".join(f"{document.stream}/{document.key}" for document in documents)
    raise Failure(f"{name!r} is on several streams", hint=f"write one of {places}")


def with_tick(documents: Sequence[Document], until_us: int | None) -> list[Document]:
    """Return documents that come in order with a tick behind them, as `all_of` has one."""
    from broker.documents.document import CLOCK, LAST_US, Document

    time_us = LAST_US if until_us is None else until_us
    newest_us = max((document.end_us for document in documents), default=0)
    times = (time_us, time_us, time_us, newest_us)
    return [*documents, Document(1 + len(documents), CLOCK, "", *times, b"")]


def from_files(
    query: Query | None, names: Sequence[str], times: Sequence[str], stream: str | None = None
) -> list[Document]:
    """Return the documents in XML files; the i-th is on the stream that block i reads.

    They arrive in the order given, at `times` where these are given, else a second apart.
    """
    from broker.documents.document import FIRST_WATERMARK_US, Document

    documents: list[Document] = []
    watermark = FIRST_WATERMARK_US
    for i, name in enumerate(names):
        time_us = _time(times[i]) if i < len(times) else (i + 1) * _SECOND_US
        read = stream or _stream(query, i)
        xml = _read(name)
        documents.append(Document(i + 1, read, name, time_us, time_us, time_us, watermark, xml))
        watermark = max(watermark, time_us)
    return documents


def _stream(query: Query | None, index: int) -> str:
    if query is None or index >= len(query.blocks) or query.blocks[index].stream == "*":
        return "S"
    return query.blocks[index].stream


def _time(text: str) -> int:
    from broker.documents.document import parse_time

    try:
        return parse_time(text)
    except ValueError as error:
        raise Failure(f"--time {text!r} is not an ISO 8601 time", exit_code=2) from error


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise Failure(
            f"cannot read {name}: {error.strerror}",
            hint="name XML files, or with --documents FILE the numbers or keys of its documents",
        ) from error
