"""A probe: the pairs that one instance makes by one value join, and how many they are.

The instance may be remembered where its partners are.  Or it is a **probe row** from elsewhere: the
driver of shards asks each shard for its part of the pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from joins.classes import UseKind
from joins.memory.slots import Ints
from joins.memory.times import Flags, Pairs, Times
from templates.queryclass import QueryClass

__all__ = ["TIME_COLUMNS", "Partners", "Probe", "ProbeRow", "TimeColumns", "ValueJoin"]

TIME_COLUMNS = ("docid", "depth", "start_us", "end_us", "watermark_us")
"""The columns of an instance that say when it came, and what of."""

ValueJoin = tuple[int, int]
"""Two variables whose values are equal: the left one, the right one."""

Partners = list[tuple[Ints, bool]]
"""Instances, each once, and whether what they are held against is the right one of the pair."""


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """An instance as others are held against it, with its position and its interval.

    `values` are its values, never the empty string, by variable of a value join; `bound` are all
    variables that its shape binds.
    """

    instance: int
    docid: int
    depth: int
    match_id: str
    start_us: int
    end_us: int
    watermark_us: int
    values: Mapping[int, tuple[str, ...]]
    bound: frozenset[int]

    def fits(self, query_class: QueryClass, *, is_right: bool) -> bool:
        """Return whether the instance can stand on a side of a class."""
        has = self.values.keys() if query_class.template.value_joins else self.bound
        return query_class.asked()[is_right] <= has


class TimeColumns:
    """The positions and intervals of a few instances, numbered from 0; a probe row comes last."""

    is_ordered = False

    def __init__(
        self, probe_row: ProbeRow, columns: Mapping[str, Ints], ids: Mapping[int, str]
    ) -> None:
        self._columns = {
            name: np.append(column, getattr(probe_row, name)) for name, column in columns.items()
        }
        self.published_ids = {**ids, len(self._columns["docid"]) - 1: probe_row.match_id}

    def take(self, name: str, instances: Ints) -> Ints:
        """Return a column's values of some instances."""
        return self._columns[name][instances]


@dataclass(frozen=True, slots=True)
class Probe:
    """The pairs of one instance, the owner, with partners that have the docids `docids`.

    A pair counts against the owner's budget if the partner's docid is not larger (`is_counted`).
    The owner lists a pair if the partner came before it (`is_own`).  The two differ only for tuples
    of operators, which come after all documents of their batch.
    """

    met: Pairs
    docids: Ints
    is_counted: Flags
    is_own: Flags

    @classmethod
    def of(cls, times: Times, owner: int, found: Partners, lateness_us: int) -> Probe:
        """Return the probe of an instance with partners."""
        lefts, rights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for partners, is_right in found:
            partners = partners[partners != owner]
            owners = np.full(len(partners), owner)
            lefts.append(partners if is_right else owners)
            rights.append(owners if is_right else partners)
        left, right = np.concatenate(lefts), np.concatenate(rights)
        partner = left + right - owner
        docids = times.take("docid", partner)
        is_counted = docids <= times.take("docid", np.array([owner]))
        met = Pairs.of(times, left, right, lateness_us)
        return cls(met, docids, is_counted, partner < owner)

    @classmethod
    def visited(
        cls,
        probe_row: ProbeRow,
        found: Partners,
        columns: Mapping[str, Ints],
        ids: Mapping[int, str],
        lateness_us: int,
    ) -> Probe:
        """Return the probe of a probe row; `columns` are its partners', in the order of `found`."""
        ends = np.cumsum([0, *(len(partners) for partners, _ in found)])
        places = [
            (np.arange(start, end), is_right)
            for start, end, (_, is_right) in zip(ends[:-1], ends[1:], found, strict=True)
        ]
        return cls.of(TimeColumns(probe_row, columns, ids), int(ends[-1]), places, lateness_us)

    @classmethod
    def of_parts(cls, parts: Sequence[Probe]) -> Probe:
        """Return the probe with the pairs of several, of which there is one at least."""
        met = [part.met for part in parts]
        return cls(
            Pairs(
                np.concatenate([each.left for each in met]),
                np.concatenate([each.right for each in met]),
                np.concatenate([each.span for each in met]),
                np.concatenate([each.follows for each in met]),
            ),
            np.concatenate([part.docids for part in parts]),
            np.concatenate([part.is_counted for part in parts]),
            np.concatenate([part.is_own for part in parts]),
        )

    def named(self, numbers: Ints) -> Probe:
        """Return the probe with other numbers of its instances, given in their order."""
        left, right = numbers[self.met.left], numbers[self.met.right]
        met = Pairs(left, right, self.met.span, self.met.follows)
        return Probe(met, self.docids, self.is_counted, self.is_own)

    def some(self, held: Flags) -> Probe:
        """Return the probe with some of the pairs."""
        met = self.met.keep(np.flatnonzero(held))
        return Probe(met, self.docids[held], self.is_counted[held], self.is_own[held])

    def partners(self, window_us: int, *, is_symmetric: bool) -> int:
        """Return how many pairs a window holds."""
        (count,) = self.count([UseKind(window_us, -1)], is_symmetric=is_symmetric)
        return int(count)

    def count(self, kinds: Sequence[UseKind], *, is_symmetric: bool) -> Ints:
        """Return how many pairs each use sees."""
        counted = self.is_counted & (self.met.follows | is_symmetric)
        spans, docids = self.met.span[counted], self.docids[counted]
        order = spans.argsort()
        spans, docids = spans[order], docids[order]
        windows, points, _ = (np.array(column, np.int64) for column in zip(*kinds, strict=True))
        seen: Ints = spans.searchsorted(windows, "right")
        hiding = points >= docids.min(initial=np.iinfo(np.int64).max)
        ends = seen.copy()
        for end in np.unique(ends[hiding]).tolist():
            rows = np.flatnonzero(hiding & (ends == end))
            seen[rows] -= np.searchsorted(np.sort(docids[:end]), points[rows], "right")
        return seen

    def pairs(self, kinds: Sequence[UseKind], *, is_symmetric: bool) -> Pairs:
        """Return the pairs that are the owner's to list and that any of some uses sees."""
        held = np.zeros(len(self.met), np.bool_)
        point = np.iinfo(np.int64).max
        for kind in sorted(kinds, key=lambda kind: (-kind.window_us, kind.point)):
            if kind.point < point:
                point = kind.point
                held |= (self.met.span <= kind.window_us) & (self.docids > point)
        held &= self.is_own & (self.met.follows | is_symmetric)
        return self.met.keep(held.nonzero()[0])
