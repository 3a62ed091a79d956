"""Which documents have been accepted before: by the publisher's key, within a horizon.

A document with the key and the content of an earlier one is that document again; with the key and
other content it is the next revision (semantics, section 1).  Nothing is kept here that the spool
has: 28 bytes a document say where to look, and who asks compares with the stored document, so that
two keys whose hashes are alike are never taken for one another.

    period   documents of one eighth of the horizon, by arrival time; forgotten as a whole
    run      rows of a period, sorted by hash; two runs of like size become one, so there are few

Invariants: a document is remembered for at least the horizon; what is forgotten depends only on
arrival times; documents without a publisher's key are never here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DEDUP_HORIZON_US",
    "DEDUP_KEPT_US",
    "DedupIndex",
    "KnownDocuments",
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


@dataclass(frozen=True, slots=True)
class _KeyRows:
    """Documents in columns: the first 8 bytes of their hashes, their numbers and revisions.

    A structured array would be copied by each search.
    """

    identities: NDArray[np.uint64]
    contents: NDArray[np.uint64]
    docids: NDArray[np.int64]
    revisions: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.docids)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns)

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        return (self.identities, self.contents, self.docids, self.revisions)

    def take(self, places: NDArray[np.int64] | slice) -> _KeyRows:
        return _KeyRows(*(column[places] for column in self.columns))

    def sorted(self) -> _KeyRows:
        return self.take(np.argsort(self.identities, kind="stable"))


def _together(parts: Sequence[_KeyRows]) -> _KeyRows:
    columns = zip(*(part.columns for part in parts), strict=True)
    return _KeyRows(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True, slots=True)
class KnownDocuments:
    """Documents whose key may be the one that was asked for: the hashes of the keys are alike."""

    rows: _KeyRows

    def newest_first(self) -> Iterator[tuple[int, int]]:
        """Yield their docids and revisions."""
        order = np.argsort(-self.rows.docids)
        return _found(self.rows.take(order))

    def with_content(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Yield the docids and revisions of all whose content has this hash."""
        return _found(self.rows.take(np.flatnonzero(self.rows.contents == _numbers(content))))


def _found(rows: _KeyRows) -> Iterator[tuple[int, int]]:
    return (
        (int(docid), int(revision))
        for docid, revision in zip(rows.docids, rows.revisions, strict=True)
    )


@dataclass(slots=True)
class _Period:
    start_us: int
    runs: list[_KeyRows] = field(default_factory=list)

    def add(self, run: _KeyRows) -> None:
        """Add a sorted run.  Runs shrink towards the end, at least by half."""
        self.runs.append(run)
        while len(self.runs) > 1 and len(self.runs[-2]) < 2 * len(self.runs[-1]):
            self._merge(2)

    def close(self) -> None:
        """Make one run of all: the period is over."""
        if len(self.runs) > 1:
            self._merge(len(self.runs))

    def _merge(self, count: int) -> None:
        self.runs[-count:] = [_together(self.runs[-count:]).sorted()]


class DedupIndex:
    """Keys that were accepted less than `horizon_us` of arrival time ago; None never forgets."""

    def __init__(self, horizon_us: int | None = DEDUP_HORIZON_US) -> None:
        self._period_us = max(1, (horizon_us or 0) // _PERIODS)
        self._horizon_us = horizon_us
        self._periods: list[_Period] = []

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs())

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return sum(run.nbytes for run in self._runs())

    def find(self, identities: Sequence[bytes]) -> dict[bytes, KnownDocuments]:
        """Return the documents that may have these keys; most keys have none and are left out.

        At the cost of one search of each run for all keys together.
        """
        identities = sorted(set(identities))
        wanted = _numbers(b"".join(identities))
        found: dict[bytes, list[_KeyRows]] = {}
        for run in self._runs():
            lows = np.searchsorted(run.identities, wanted, "left")
            highs = np.searchsorted(run.identities, wanted, "right")
            for at in np.flatnonzero(lows < highs).tolist():
                found.setdefault(identities[at], []).append(run.take(slice(lows[at], highs[at])))
        return {identity: KnownDocuments(_together(rows)) for identity, rows in found.items()}

    def add(
        self,
        identities: bytes,
        contents: bytes,
        revisions: NDArray[np.int32],
        docids: NDArray[np.int64],
        arrivals_us: NDArray[np.int64],
    ) -> None:
        """Remember accepted documents; `identities` and `contents` are their hashes in a row.

        Arrival times do not decrease if there is a horizon.
        """
        rows = _KeyRows(_numbers(identities), _numbers(contents), docids, revisions)
        starts_us = arrivals_us - arrivals_us % self._period_us
        if self._horizon_us is None:
            starts_us[:] = 0
        cuts = np.flatnonzero(np.diff(starts_us)) + 1
        for start, stop in pairwise([0, *cuts.tolist(), len(rows)]):
            part = rows.take(slice(start, stop))
            self._period_at(int(starts_us[start])).add(part.sorted())

    def advance(self, arrival_us: int) -> None:
        """Forget what is behind the horizon at an arrival time."""
        if self._horizon_us is None:
            return
        before_us = arrival_us - self._horizon_us
        self._periods = [p for p in self._periods if p.start_us + self._period_us > before_us]

    def _period_at(self, start_us: int) -> _Period:
        if not self._periods or start_us > self._periods[-1].start_us:
            if self._periods:
                self._periods[-1].close()
            self._periods.append(_Period(start_us))
        return self._periods[-1]

    def _runs(self) -> Iterator[_KeyRows]:
        for period in self._periods:
            yield from period.runs


def _numbers(hashes: bytes) -> NDArray[np.uint64]:
    """Return the first half of each of the 16-byte hashes."""
    return np.frombuffer(hashes, np.uint64)[::2]
