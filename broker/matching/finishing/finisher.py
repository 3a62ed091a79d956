"""Tuples of a shard, made into matches where they are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from broker.matching.boxes.points import Points
from broker.matching.collector import Collector
from broker.matching.finishing.bill import Bill, SummedCharges
from broker.matching.finishing.knownuses import KnownUses
from broker.matching.finishing.readers import Readers
from broker.matching.match import FoundMatch
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.matches import MatchBuilder
from broker.matching.rendering.trees import Trees
from broker.matching.uncertain import Uncertain
from joins import TupleTable
from joins.shards.orders import Rows

__all__ = ["FinishedMatches", "MatchFinisher"]

_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("query", pa.string()),
        ("id", pa.string()),
        ("parameters", pa.string()),
        ("oldest", pa.int64()),
        ("line", pa.large_string()),
    ]
)


@dataclass(frozen=True, slots=True)
class FinishedMatches:
    """Matches as rows (`FoundMatch`), and what their queries are charged with."""

    rows: pa.RecordBatch
    charges: SummedCharges

    @classmethod
    def of(cls, matches: Sequence[FoundMatch], bill: Bill) -> FinishedMatches:
        """Return matches."""
        columns: Iterable[Sequence[object]] = zip(*matches, strict=True) if matches else [()] * 6
        arrays = [pa.array(c, each.type) for c, each in zip(columns, _SCHEMA, strict=True)]
        rows = pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
        return cls(rows, SummedCharges.of(bill.charges))

    def matches(self) -> Iterable[FoundMatch]:
        """Yield the matches."""
        return map(FoundMatch, *(column.to_pylist() for column in self.rows.columns))


class MatchFinisher:
    """Makes matches of the tuples of a shard; `documents` returns texts by docid.

    They are at most so many bytes of lines.
    """

    def __init__(
        self, documents: Callable[[Iterable[int]], Mapping[int, bytes]], bytes_max: int
    ) -> None:
        self._documents = documents
        self._bytes_max = bytes_max
        self._readers: Readers | None = None
        self._known = KnownUses()

    def learn(self, readers: Readers, read: Callable[[str], Any]) -> None:
        """Take over for whom tuples are finished; `read` returns chunks by name."""
        self._known.learn(readers, read)
        self._readers = readers

    def finish(self, tuples: TupleTable, rows: Rows) -> tuple[TupleTable, FinishedMatches | None]:
        """Return the tuples of classes that others use, and the matches of these readers.

        They are None where they are too much, or of documents that were published.
        """
        readers = self._readers
        assert readers is not None
        are_own = np.isin(tuples.classes, [*readers.classes])
        others = tuples.take(np.flatnonzero(~are_own)).compact()
        bill = Bill(readers.bytes_max)
        matches = self._matches(readers, tuples.take(np.flatnonzero(are_own)), rows, bill)
        return others, None if matches is None else FinishedMatches.of(matches, bill)

    def _matches(
        self, readers: Readers, tuples: TupleTable, rows: Rows, bill: Bill
    ) -> list[FoundMatch] | None:
        limits = readers.limits
        collector = Collector(
            bill,
            _no_shapes,
            None,
            None,
            long=limits.shared_characters,
            held_pairs=limits.held_pairs,
            plain_tuples=limits.plain_tuples,
        )
        uncertain = Uncertain(limits.published)
        for part in tuples.slices(limits.tuples):
            points = Points.of(part, rows, uncertain)
            if points.operands.column("depth").any():
                return None  # Published documents are the driver's.
            for hits in self._known.fan_out.expand(points):
                collector.take(hits)
        found, trees = collector.matches, Trees(self._texts, limits.trees)
        builder = MatchBuilder(collector.leaves, trees, _is_wanted, limits.made_bytes)
        matches: list[FoundMatch] = []
        size = 0
        for some in found.rows(bill.limit_of):
            made = builder.build([some], found.readers, bill).rows
            size += sum([len(match.line) for match in made])
            if size > self._bytes_max:
                return None
            matches += made
        return matches

    def _texts(self, leaves: Sequence[Leaf]) -> Sequence[bytes]:
        found = self._documents([leaf.docid for leaf in leaves])
        return [found[leaf.docid] for leaf in leaves]


def _no_shapes(streams: Sequence[str], variables: Sequence[tuple[int, ...]]) -> list[int]:
    raise AssertionError(f"tuples of {streams[0]!r} are not handed on here")


def _is_wanted(stream: str, match_id: str) -> bool:
    return True
