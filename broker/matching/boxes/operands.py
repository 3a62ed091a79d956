"""The instances that tuples consist of, in columns: what fan-out reads of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.matching.boxes.columns import Doubles, Flags, Hashes, Ints
from joins import Instance, hash_values, read_instances
from xscl.functions import to_double
from xscl.measures import WordSet, sets_of
from xscl.query import Call

__all__ = ["Operands"]


@dataclass(frozen=True, slots=True)
class Operands:
    """Instances in the order of their numbers.

    The values of instance `i` are `values[starts[i]]` and those behind it, its leaves are
    `leaves[leaf_starts[i]]` up to `leaves[leaf_starts[i + 1]]`.
    """

    numbers: Ints
    docids: Ints
    docids_min: Ints
    docids_max: Ints
    starts: Ints
    values: pa.Array
    leaf_starts: Ints
    leaves: Ints
    parts: Sequence[pa.RecordBatch]

    @classmethod
    def of(cls, parts: Iterable[tuple[Sequence[int], pa.RecordBatch]]) -> Operands:
        """Return instances given as numbers, ascending, with rows of `INSTANCE_SCHEMA`."""
        found = list(parts)
        rows = [part for _, part in found]
        nothing = np.zeros(0, np.int64)
        docids, docids_min, docids_max = (
            np.concatenate([nothing, *(part.column(name).to_numpy() for part in rows)])
            for name in ("docid", "docid_min", "docid_max")
        )
        values, starts = _flat([part.column("vals") for part in rows], pa.string())
        leaves, leaf_starts = _flat([part.column("leaves") for part in rows], pa.int64())
        numbers = np.array([number for some, _ in found for number in some], np.int64)
        return cls(
            numbers,
            docids,
            docids_min,
            docids_max,
            starts[:-1],
            values,
            leaf_starts,
            leaves.to_numpy(),
            rows,
        )

    def at(self, instances: Ints) -> Ints:
        """Return the places of instances, which are there."""
        return np.searchsorted(self.numbers, instances)

    def instances(self, places: Iterable[int]) -> dict[int, Instance]:
        """Return the instances at some places, by place."""
        wanted = np.array(sorted(places), np.int64)
        found: dict[int, Instance] = {}
        first = 0
        for part in self.parts:
            own = wanted[(wanted >= first) & (wanted < first + part.num_rows)]
            if len(own):
                rows = part.take(pa.array(own - first))
                instances = read_instances(rows, self.numbers[own].tolist())
                found.update(zip(own.tolist(), instances, strict=True))
            first += part.num_rows
        return found

    def texts(self, places: Ints) -> list[str | None]:
        """Return values at some places."""
        texts: list[str | None] = self.values.take(pa.array(places)).to_pylist()
        return texts

    def hashes(self, places: Ints) -> tuple[Flags, Hashes, Hashes]:
        """Return whether the values at some places are known, and both hashes of each."""
        distinct, inverse = np.unique(places, return_inverse=True)
        strings = self.values.take(pa.array(distinct))
        known = strings.is_valid().to_numpy(zero_copy_only=False)
        first, other = hash_values(strings.fill_null(""))
        return known[inverse], first[inverse], other[inverse]

    def doubles(self, places: Ints) -> Doubles:
        """Return values at some places as `xs:double`; what is none, or not known, is NaN."""
        distinct, inverse = np.unique(places, return_inverse=True)
        strings = self.values.take(pa.array(distinct)).to_pylist()
        found = np.array([np.nan if s is None else to_double(s) for s in strings], np.float64)
        return found[inverse]

    def sets(self, call: Call, places: Ints) -> dict[int, list[WordSet]]:
        """Return the sets that `words` and the like make of the values at some places, by place.

        What is not known has none.
        """
        distinct = np.unique(places)
        return {
            place: [] if text is None else sets_of(call, text)
            for place, text in zip(distinct.tolist(), self.texts(distinct), strict=True)
        }

    def overlap(self, left: Ints, right: Ints) -> Flags:
        """Return where two instances, by their places, have a leaf in common."""
        # A tuple may be of one document as well, which is then another instance than that.
        first = self.leaves[self.leaf_starts[:-1]]
        shared: Flags = first[left] == first[right]
        is_wide = np.diff(self.leaf_starts) > 1
        rows = np.flatnonzero(~shared & (is_wide[left] | is_wide[right]))
        leaves: dict[int, frozenset[int]] = {}
        for row, one, other in zip(
            rows.tolist(), left[rows].tolist(), right[rows].tolist(), strict=True
        ):
            for place in (one, other):
                if place not in leaves:
                    start, stop = self.leaf_starts[place : place + 2].tolist()
                    leaves[place] = frozenset(self.leaves[start:stop].tolist())
            shared[row] = not leaves[one].isdisjoint(leaves[other])
        return shared


def _flat(lists: Sequence[pa.ListArray], kind: pa.DataType) -> tuple[pa.Array, Ints]:
    """Return lists as their values, one after the other, and where each list begins, and ends."""
    flat = pa.concat_arrays([pa.array([], kind), *(each.flatten() for each in lists)])
    sizes = [pc.list_value_length(each).to_numpy(zero_copy_only=False) for each in lists]
    counts = np.concatenate([np.zeros(1, np.int64), *sizes]).astype(np.int64)
    return flat, np.cumsum(counts)
