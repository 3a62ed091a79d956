"""Documents that came too late to be joined with anything: how many, and what made them late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from broker.documents.document import CLOCK, render_time

__all__ = [
    "LateDocuments",
    "Newest",
    "TooLate",
    "late_data",
    "never",
    "spell_late",
    "spell_settled",
]


class TooLate(Protocol):
    """Says of a document on a stream whether it comes too late; `Lateness.is_too_late` does."""

    def __call__(self, stream: str, end_us: int, watermark_us: int) -> bool:
        """Return whether nothing can join it; `watermark_us` is the newest event time before."""


def never(stream: str, end_us: int, watermark_us: int) -> bool:
    """Return that nothing is too late: for who does not know the queries."""
    return False


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest event time so far; `stream` is that of its document, None if that is unknown."""

    end_us: int
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class LateDocuments:
    """The documents since the broker's start that were too late, by stream.

    Those in `settled` were not: their time was settled before they came, for a query that decides.
    """

    by_stream: Mapping[str, int] = field(default_factory=dict)
    newest: Newest | None = None
    settled: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many they are."""
        return sum(self.by_stream.values())


def spell_settled(count: int, of: str = "of these") -> str:
    """Return how many documents came when answers may have been given without them.

    >>> spell_settled(1)
    '1 of these came after its time was settled: it is judged by what was known then'
    """
    whose, verb = ("its", "it is") if count == 1 else ("their", "they are")
    return (
        f"{count:,} {of} came after {whose} time was settled: {verb} judged by what was known then"
    )


def late_data(count: int, newest: Newest | None) -> dict[str, Any] | None:
    """Return what is told of late documents as plain values, None where there are none."""
    if not count or newest is None:
        return None
    return {
        "documents": count,
        "newest": render_time(newest.end_us),
        "stream": newest.stream,
    }


def spell_late(late: Mapping[str, Any], of: str = "of these") -> str:
    """Return `late_data` as a sentence.

    >>> late = {"documents": 70105, "newest": "2026-11-22T00:00:00Z", "stream": "other"}
    >>> spell_late(late)[:62]
    '70,105 of these are older than anything that can still be join'
    """
    count = late["documents"]
    verb = "is" if count == 1 else "are"
    where = f", from stream `{late['stream']}`" if late["stream"] else ""
    if late["stream"] == CLOCK:
        where = ", which is the time of the broker's clock"
    return (
        f"{count:,} {of} {verb} older than anything that can still be joined:"
        f" the newest event time is {late['newest']}{where}"
    )
