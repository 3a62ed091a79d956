"""Which grace documents of a sample ask for: how late they came, and what would have heard most."""

from __future__ import annotations

from collections.abc import Sequence

from broker.documents.document import Document
from xscl.durations import render_duration
from xscl.query import Query

__all__ = ["GRACES_US", "proposed_grace"]

_MINUTE_US = 60_000_000
_HOUR_US = 60 * _MINUTE_US
GRACES_US = (
    *(0, _MINUTE_US, 10 * _MINUTE_US, _HOUR_US),
    *(3 * _HOUR_US, 6 * _HOUR_US, 12 * _HOUR_US),
)
"""The graces that are proposed."""

HEARD = 0.95
"""The share of documents that a proposed grace hears; the last ones would make it days."""


def proposed_grace(query: Query, documents: Sequence[Document], lateness_us: int) -> str | None:
    """Return a warning of a query without GRACE: how long it waits, and which grace would do.

    Late are documents of the streams that it reads, by how far they came behind the newest event
    time.
    """
    if not query.is_ordered or query.grace is not None:
        return None
    waits = f"it says no GRACE, so that each answer waits {render_duration(lateness_us)}"
    streams = {block.stream for block in query.blocks}
    behind_us = sorted(
        document.watermark_us - document.end_us
        for document in documents
        if "*" in streams or document.stream in streams
    )
    if not behind_us:
        return f"{waits} for late documents"
    needed_us = behind_us[int(HEARD * (len(behind_us) - 1))]
    grace_us = next((each for each in GRACES_US if each >= needed_us), lateness_us)
    if grace_us >= lateness_us:
        return f"{waits}; of its documents so many came late that nothing shorter hears {HEARD:.0%}"
    heard = sum(each <= grace_us for each in behind_us) / len(behind_us)
    return (
        f"{waits}; `GRACE {render_duration(grace_us)}` would hear {heard:.1%} of the"
        f" {len(behind_us):,} documents in time"
    )
