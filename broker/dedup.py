"""Which documents have been accepted before: by the publisher's key, within a horizon.

A document with the key and the content of an earlier one is that document again; with the key and
other content it is the next revision (semantics, section 1).  What was accepted is remembered in
one table per period of arrival time, and whole tables are forgotten, so the answer depends only on
the documents and their arrival times, never on restarts.

Invariants: a document is remembered for at least the horizon; what is forgotten depends only on
arrival times; documents without a publisher's key are never here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

__all__ = [
    "DEDUP_HORIZON_US",
    "DEDUP_KEPT_US",
    "DedupIndex",
    "Known",
    "content_hash",
    "identity_hash",
]

DEDUP_HORIZON_US = 7 * 24 * 3600 * 1_000_000
"""How long a live broker recognises a document: longer than feeds commonly repeat their items."""

_PERIODS = 8

DEDUP_KEPT_US = DEDUP_HORIZON_US + DEDUP_HORIZON_US // _PERIODS
"""How long documents stay in the spool, so that a restart recognises what it must."""


def identity_hash(stream: str, key: str) -> bytes:
    """Return 16 bytes that stand for a publisher's key in its stream."""
    return blake2b(f"{stream}\0{key}".encode(), digest_size=16).digest()


def content_hash(xml: bytes) -> bytes:
    """Return 16 bytes that stand for a document's content."""
    return blake2b(xml, digest_size=16).digest()


@dataclass(slots=True)
class Known:
    """What is known of one key: its contents with their document numbers, its revision count."""

    revision: int
    docids: dict[bytes, int]


@dataclass(slots=True)
class _Period:
    start_us: int
    entries: dict[bytes, Known] = field(default_factory=dict)


class DedupIndex:
    """Keys that were accepted less than `horizon_us` of arrival time ago; None never forgets."""

    def __init__(self, horizon_us: int | None = DEDUP_HORIZON_US) -> None:
        self._period_us = max(1, (horizon_us or 0) // _PERIODS)
        self._horizon_us = horizon_us
        self._periods: list[_Period] = []

    def __len__(self) -> int:
        return sum(len(period.entries) for period in self._periods)

    def earlier(self, identity: bytes, content: bytes) -> int | None:
        """Return the number of the document with this key and content, None if it is new."""
        for period in reversed(self._periods):
            known = period.entries.get(identity)
            if known is not None and content in known.docids:
                return known.docids[content]
        return None

    def next_revision(self, identity: bytes) -> int:
        """Return the revision of a new document with this key: 0 if the key is new."""
        for period in reversed(self._periods):
            if identity in period.entries:
                return period.entries[identity].revision + 1
        return 0

    def add(
        self, identity: bytes, content: bytes, revision: int, docid: int, arrival_us: int
    ) -> None:
        """Remember an accepted document; arrival times do not decrease if there is a horizon."""
        entries = self._period_at(arrival_us).entries
        known = entries.get(identity)
        if known is None:
            entries[identity] = Known(revision, {content: docid})
        else:
            known.revision = revision
            known.docids[content] = docid

    def restore(self, documents: Iterable[tuple[bytes | None, bytes, int, int, int]]) -> None:
        """Add documents as the spool holds them; those without a key are passed over."""
        for identity, content, revision, docid, arrival_us in documents:
            if identity is not None:
                self.add(identity, content, revision, docid, arrival_us)

    def advance(self, arrival_us: int) -> None:
        """Forget what is behind the horizon at an arrival time."""
        if self._horizon_us is None:
            return
        before_us = arrival_us - self._horizon_us
        self._periods = [p for p in self._periods if p.start_us + self._period_us > before_us]

    def _period_at(self, arrival_us: int) -> _Period:
        start_us = 0 if self._horizon_us is None else arrival_us - arrival_us % self._period_us
        if not self._periods or start_us > self._periods[-1].start_us:
            self._periods.append(_Period(start_us))
        return self._periods[-1]
