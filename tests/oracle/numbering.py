"""How documents from outside get their numbers, keys and times: sections 1 and 1.1."""

from __future__ import annotations

from collections.abc import Iterable

from broker.documents.document import FIRST_WATERMARK_US, Document, DocumentError, DocumentLine

__all__ = ["number_documents"]


def number_documents(lines: Iterable[DocumentLine]) -> list[Document]:
    """Return the documents of a recorded stream; raise `DocumentError` for one without a time."""
    documents: list[Document] = []
    keys = _Keys()
    latest_us: int | None = None
    watermark_us = FIRST_WATERMARK_US
    for line in lines:
        latest_us = max((t for t in (latest_us, line.time_us) if t is not None), default=None)
        key = keys.of(line, len(documents) + 1)
        if key is not None:
            document = _document(line, len(documents) + 1, *key, latest_us, watermark_us)
            documents.append(document)
            watermark_us = max(watermark_us, document.end_us)
    return documents


class _Keys:
    """The keys of the documents so far, by stream."""

    def __init__(self) -> None:
        self._contents: dict[tuple[str, str], list[bytes]] = {}
        self._ordinals: dict[tuple[str, str], int] = {}
        self._taken: set[tuple[str, str]] = set()

    def of(self, line: DocumentLine, docid: int) -> tuple[str, int] | None:
        """Return the key that a document gets, and its revision; None for one that came before."""
        if line.key is None:
            return self._first_free(line.stream, str(docid), 1)[0], 0
        publisher = line.stream, line.key
        contents = self._contents.setdefault(publisher, [])
        if line.xml in contents:
            return None
        contents.append(line.xml)
        ordinal = self._ordinals.get(publisher, 0) + 1
        key, self._ordinals[publisher] = self._first_free(*publisher, ordinal)
        return key, self._ordinals[publisher] - 1

    def _first_free(self, stream: str, key: str, ordinal: int) -> tuple[str, int]:
        named = key if ordinal == 1 else f"{key}#{ordinal}"
        if (stream, named) in self._taken:
            return self._first_free(stream, key, ordinal + 1)
        self._taken.add((stream, named))
        return named, ordinal


def _document(
    line: DocumentLine,
    docid: int,
    key: str,
    revision: int,
    latest_us: int | None,
    watermark_us: int,
) -> Document:
    arrival_us = latest_us if line.arrival_us is None else line.arrival_us
    if arrival_us is None:
        raise DocumentError("neither 'time' nor 'arrival', and no 'time' before")
    claimed_us = arrival_us if line.time_us is None else line.time_us
    event_us = min(claimed_us, arrival_us)
    return Document(
        docid=docid,
        stream=line.stream,
        key=key,
        start_us=event_us,
        end_us=event_us,
        arrival_us=arrival_us,
        watermark_us=watermark_us,
        xml=line.xml,
        claimed_us=claimed_us if claimed_us > arrival_us else None,
        revision=revision,
    )
