"""The keys of accepted documents: which lines repeat a document, and what a new one is called.

A line has the publisher's key, or none.  What it becomes depends on the documents that are called
alike, which are remembered as hashes (`dedup`), read in the spool to be sure, or stand in the
segment in hand:

    repetition    the key and the content of a document: the line is that document again
    revision      the key of a document with other content: `key#2`, `key#3`, ...
    new           a key that no document has, or no key: then the docid is the key

Invariant: in a stream no two remembered documents have one key (`keys` says how they could).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.dedup import DedupIndex, KnownDocuments, content_hash, identity_hash
from broker.documents.document import DocumentLine
from broker.documents.head import Segment
from broker.documents.keys import LIKE_DOCID, docid_of, document_key, is_like_another, readings
from broker.documents.spool import Spool

__all__ = ["AcceptedKeys", "DocumentKey", "HashedLine", "Hashes", "RepeatedDocument", "SegmentKeys"]


_REMEMBERED = "key", "identity", "content", "revision", "arrival_us"


@dataclass(frozen=True, slots=True)
class Hashes:
    """What stands for a publisher's key in its stream, and for a document's content."""

    identity: bytes
    content: bytes


@dataclass(frozen=True, slots=True)
class HashedLine:
    """A line with its hashes; without a publisher's key it has none, and nothing repeats it."""

    line: DocumentLine
    hashes: Hashes | None

    @classmethod
    def of(cls, line: DocumentLine) -> HashedLine:
        """Return a line with its hashes."""
        if line.key is None:
            return cls(line, None)
        return cls(line, Hashes(identity_hash(line.stream, line.key), content_hash(line.xml)))


@dataclass(frozen=True, slots=True)
class RepeatedDocument:
    """A line repeats a document: its number."""

    docid: int


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """The key of a new document; `revision` counts the earlier ones with its publisher's key."""

    text: str
    revision: int


class AcceptedKeys:
    """The keys of the documents in a spool that arrived within a horizon; None is without end.

    The spool is the memory: a restart reads there what it must recognise.
    """

    def __init__(self, spool: Spool, horizon_us: int | None) -> None:
        self._spool = spool
        self._index = DedupIndex(horizon_us)
        self._docids_are_keys = False  # some publisher's key could be a docid
        self._restore(horizon_us)

    @property
    def remembered(self) -> tuple[int, int]:
        """How many documents are remembered, and the bytes that they take."""
        return len(self._index), self._index.nbytes

    def begin(self, lines: Sequence[HashedLine], *, arrival_us: int | None) -> SegmentKeys:
        """Return the keys as a segment of these lines sees them, at an arrival time if given."""
        if arrival_us is not None:
            self._index.advance(arrival_us)
        identities = [each.hashes.identity for each in lines if each.hashes is not None]
        found: dict[bytes, KnownDocuments | None] = dict.fromkeys(identities)
        found.update(self._index.find(identities))
        return SegmentKeys(self, found)

    def remember(self, segment: Segment, rows: pa.RecordBatch) -> None:
        """Remember the documents of a segment that have a publisher's key."""
        columns = {name: rows.column(name) for name in _REMEMBERED}
        docids = pa.arange(segment.first_docid, segment.last_docid + 1)
        keyed = pa.table({"docid": docids, **columns})
        if rows.column("identity").null_count:
            keyed = keyed.filter(pc.is_valid(keyed.column("identity")))
        if keyed.num_rows:
            like_docids = pc.match_substring_regex(keyed.column("key"), LIKE_DOCID)
            self._docids_are_keys |= pc.any(like_docids).as_py()
            self._index.add(
                _in_a_row(keyed.column("identity")),
                _in_a_row(keyed.column("content")),
                *(keyed.column(name).to_numpy() for name in ("revision", "docid", "arrival_us")),
            )

    def note(self, publisher_key: str) -> None:
        """Hear of a key that a document is about to have."""
        self._docids_are_keys |= docid_of(publisher_key.partition("#")[0]) is not None

    def may_be_taken(self, publisher_key: str | None, revision: int) -> bool:
        """Return whether the key of a new document may be another one's."""
        if publisher_key is None:
            return self._docids_are_keys
        return revision > 0 or is_like_another(publisher_key)

    def has(self, stream: str, key: str, past: Mapping[bytes, KnownDocuments | None]) -> bool:
        """Return whether a document in the spool has a key.

        `past` are documents by the hashes of publisher's keys, as far as they were looked up.
        """
        may_have = (
            docid for reading in readings(key) for docid in self._called(stream, *reading, past)
        )
        return any(self.is_called(docid, stream, key) for docid in may_have)

    def is_called(self, docid: int, stream: str, key: str) -> bool:
        """Return whether a document in the spool has a stream and a key."""
        return self._stored(docid, "stream") == stream and self._stored(docid, "key") == key

    def has_content(self, docid: int, xml: bytes) -> bool:
        """Return whether a document in the spool has this text."""
        return self._stored(docid, "xml") == xml

    def _called(
        self,
        stream: str,
        name: str,
        revision: int,
        past: Mapping[bytes, KnownDocuments | None],
    ) -> Iterator[int]:
        """Yield the documents that may have this publisher's key, or docid, and this revision."""
        docid = docid_of(name)
        if docid is not None:
            yield docid
        identity = identity_hash(stream, name)
        if identity in past:
            found = past[identity]
        else:
            found = self._index.find([identity]).get(identity)
        if found is not None:
            yield from (number for number, its in found.newest_first() if its == revision)

    def _stored(self, docid: int, column: str) -> object:
        segment = self._spool.segment_of(docid)
        if segment is None:
            return None
        return self._spool.rows(segment).column(column)[docid - segment.first_docid].as_py()

    def _restore(self, horizon_us: int | None) -> None:
        newest = self._spool.newest
        if newest is None:
            return
        since_us = None if horizon_us is None else newest.arrival_us - 2 * horizon_us
        for segment in self._spool.all_segments():
            if since_us is None or segment.arrival_us >= since_us:
                self.remember(segment, self._spool.rows(segment))


def _in_a_row(hashes: pa.ChunkedArray) -> bytes:
    """Return hashes, of which none is missing, one behind the other."""
    width = hashes.type.byte_width
    return b"".join(
        chunk.buffers()[1].slice(chunk.offset * width, len(chunk) * width)
        for chunk in hashes.chunks
        if len(chunk)
    )


@dataclass(slots=True)
class _KnownDocuments:
    """The documents of one publisher's key in the segment in hand: numbers by content."""

    revision: int = 0
    docids: dict[bytes, int] = field(default_factory=dict)


class SegmentKeys:
    """The keys of accepted documents, and of those in the segment that is put together.

    `past` are the documents that may have the publisher's keys of its lines, by hash; None where
    there are none.
    """

    def __init__(self, accepted: AcceptedKeys, past: Mapping[bytes, KnownDocuments | None]) -> None:
        self._accepted = accepted
        self._past = past
        self._known: dict[tuple[str, str], _KnownDocuments] = {}
        self._keys: set[tuple[str, str]] = set()

    def take(self, hashed: HashedLine, docid: int) -> DocumentKey | RepeatedDocument:
        """Return the document that a line repeats, else the key that it has from now on."""
        line, hashes = hashed.line, hashed.hashes
        if line.key is None or hashes is None:
            return self._free(line, docid, 0)
        known = self._known.setdefault((line.stream, line.key), _KnownDocuments())
        past = self._past.get(hashes.identity)
        if (earlier := self._earlier(line, hashes.content, known, past)) is not None:
            return RepeatedDocument(earlier)
        self._accepted.note(line.key)
        key = self._free(line, docid, self._next_revision(line, known, past))
        known.docids[line.xml], known.revision = docid, key.revision
        return key

    def _earlier(
        self,
        line: DocumentLine,
        content: bytes,
        known: _KnownDocuments,
        past: KnownDocuments | None,
    ) -> int | None:
        """Return the number of the document that a line repeats, None if it is new."""
        if line.xml in known.docids:
            return known.docids[line.xml]
        for docid, revision in past.with_content(content) if past else ():
            if self._has_key(docid, line, revision) and self._accepted.has_content(docid, line.xml):
                return docid
        return None

    def _next_revision(
        self, line: DocumentLine, known: _KnownDocuments, past: KnownDocuments | None
    ) -> int:
        if known.docids:
            return known.revision + 1
        for docid, revision in past.newest_first() if past else ():
            if self._has_key(docid, line, revision):
                return revision + 1
        return 0

    def _has_key(self, docid: int, line: DocumentLine, revision: int) -> bool:
        """Return whether a stored document has the stream and the key of a line."""
        return self._accepted.is_called(docid, line.stream, document_key(line.key, docid, revision))

    def _free(self, line: DocumentLine, docid: int, revision: int) -> DocumentKey:
        """Return the first key from a revision on that no other document has; it is taken now."""
        text = document_key(line.key, docid, revision)
        if self._accepted.may_be_taken(line.key, revision):
            while self._is_taken(line.stream, text):
                revision += 1
                text = document_key(line.key, docid, revision)
        self._keys.add((line.stream, text))
        return DocumentKey(text, revision)

    def _is_taken(self, stream: str, text: str) -> bool:
        """Return whether another document has a key, in the segment in hand or in the spool."""
        return (stream, text) in self._keys or self._accepted.has(stream, text, self._past)
