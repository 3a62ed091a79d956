"""Which segments there are: the spool's directory, read without any document.

Any number of processes read it.  A compaction may put one file in the place of several while they
do, so that a file which another one contains does not count.

Spark's reader of the spool needs no more than this, so nothing of Arrow is imported here.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from broker.documents.head import SUFFIX, Segment, read_header

__all__ = ["Listing", "SpoolError", "without_replaced"]

_REFRESHES_MAX = 100


class SpoolError(RuntimeError):
    """The spool cannot be used: another writer has it, or a segment is missing or damaged."""


class Listing:
    """The segments of a directory, without their documents.  `refresh` sees what was appended."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._segments: list[Segment] = []
        self.refresh()

    def refresh(self) -> None:
        """Read the directory again."""
        for _ in range(_REFRESHES_MAX):
            # A compaction may remove a file between the listing and the reading.
            with suppress(FileNotFoundError):
                return self._list()
        raise SpoolError(f"{self.directory} changes all the time")

    def _list(self) -> None:
        known = {segment.name: segment for segment in self._segments}
        names = [name for name in sorted(os.listdir(self.directory)) if name.endswith(SUFFIX)]
        found = [known.get(name) or read_header(self.directory / name) for name in names]
        self._segments = without_replaced(found)

    @property
    def last(self) -> int:
        """The number of the newest segment, 0 if there is none."""
        return self._segments[-1].last if self._segments else 0

    @property
    def last_docid(self) -> int:
        """The number of the newest document, 0 if there is none."""
        return self._segments[-1].last_docid if self._segments else 0

    @property
    def newest(self) -> Segment | None:
        """The newest segment."""
        return self._segments[-1] if self._segments else None

    def segments(self, after: int = 0, through: int | None = None) -> list[Segment]:
        """Return the segments with numbers in `(after, through]`, in order.

        A compacted segment is returned if it holds any of them.  Raises `SpoolError` if segments
        of the range have been pruned or are missing.
        """
        through = self.last if through is None else through
        found = [s for s in self._segments if s.last > after and s.first <= through]
        if after < through and (not found or found[0].first > after + 1):
            raise SpoolError(f"segment {after + 1} is not in {self.directory}")
        return found

    def all_segments(self) -> list[Segment]:
        """Return every segment that is there, oldest first."""
        return list(self._segments)

    def check_gaps(self) -> None:
        """Raise `SpoolError` where a segment between the oldest and the newest is missing."""
        for earlier, later in pairwise(self._segments):
            if later.first != earlier.last + 1 or later.first_docid != earlier.last_docid + 1:
                raise SpoolError(
                    f"{self.directory}: nothing between {earlier.name} and {later.name}"
                )

    def segment_of(self, docid: int) -> Segment | None:
        """Return the segment that holds a document, None if it is pruned or not accepted yet."""
        at = bisect_right(self._segments, docid, key=lambda segment: segment.first_docid) - 1
        if at < 0 or docid > self._segments[at].last_docid:
            return None
        return self._segments[at]


def _order(segment: Segment) -> tuple[int, int]:
    return segment.first, -segment.last


def without_replaced(segments: list[Segment]) -> list[Segment]:
    """Return the segments that no other one contains."""
    kept: list[Segment] = []
    for segment in sorted(segments, key=_order):
        if not kept or segment.last > kept[-1].last:
            kept.append(segment)
    return kept
