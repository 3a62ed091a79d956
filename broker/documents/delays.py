"""How late documents come, by where they come from: behind their own times, and behind the newest.

The first is what a reader waits for, the second what a window or a grace has to bear.  Items of
feeds are told apart by their feed, which their key begins with; other documents by their stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.document import CLOCK
from broker.documents.spool import Spool

__all__ = ["Delays", "delays"]

_FEED = r"^(?P<feed>https?://[^\s]+) "
_COLUMNS = ("stream", "key", "end_us", "arrival_us", "watermark_us")


@dataclass(frozen=True, slots=True)
class Delays:
    """The documents of a stream that are of one feed, or of none (empty), and how late they came.

    `after_us` is from a document's time to its arrival: of half of them, of 95 of 100 and of all no
    more.  `behind_us` is how far 95 of 100 came behind the newest time before them, and `beyond`
    are those that came farther behind than it was asked about.
    """

    stream: str
    feed: str
    documents: int
    after_us: tuple[int, int, int]
    behind_us: int
    beyond: int


def delays(
    spool: Spool,
    lateness_us: int,
    *,
    documents_max: int = 50_000,
    seconds: float = 0.3,
    now_s: Callable[[], float] = time.monotonic,
) -> tuple[list[Delays], int]:
    """Return the delays of the newest documents, the longest first, and how many these are."""
    ends_s = now_s() + seconds
    parts: list[pa.Table] = []
    left = documents_max
    for segment in reversed(spool.all_segments()):
        rows = spool.rows(segment)
        some = rows.slice(max(0, rows.num_rows - left)).select(_COLUMNS)
        left -= some.num_rows
        parts.append(pa.Table.from_batches([some.filter(pc.not_equal(some["stream"], CLOCK))]))
        if left <= 0 or now_s() > ends_s:
            break
    if not parts:
        return [], 0
    table = pa.concat_tables(parts)
    found = sorted(_by_source(table, lateness_us), key=lambda each: -each.after_us[1])
    return found, table.num_rows


def _by_source(table: pa.Table, lateness_us: int) -> Iterator[Delays]:
    feeds = pc.struct_field(pc.extract_regex(table["key"], _FEED), "feed").fill_null("")
    sources = pc.binary_join_element_wise(table["stream"], feeds, "\n").combine_chunks()
    encoded = sources.dictionary_encode()
    of = encoded.indices.to_numpy()
    ends, arrivals, newest = (table[name].to_numpy() for name in _COLUMNS[2:])
    # Before the first document the newest time is the least number there is.
    after, behind = np.maximum(arrivals, ends) - ends, np.maximum(newest, ends) - ends
    order = np.argsort(of, kind="stable")
    bounds = np.searchsorted(of[order], np.arange(len(encoded.dictionary) + 1))
    for source, name in enumerate(encoded.dictionary.to_pylist()):
        stream, _, feed = name.partition("\n")
        own = order[bounds[source] : bounds[source + 1]]
        late = np.sort(after[own])
        yield Delays(
            stream,
            feed,
            len(own),
            (_share(late, 0.5), _share(late, 0.95), int(late[-1])),
            _share(np.sort(behind[own]), 0.95),
            int((behind[own] > lateness_us).sum()),
        )


def _share(ordered: np.ndarray[tuple[int], np.dtype[np.int64]], share: float) -> int:
    """Return the value that such a share of some is not above."""
    return int(ordered[max(0, int(np.ceil(share * len(ordered))) - 1)])
