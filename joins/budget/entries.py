"""The entries of instances: which values they have under which variables."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from joins.memory.remembered import EMPTY, Hashes, HashValues
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints, Layouts, ranges

__all__ = ["Entries", "EntryReader"]


@dataclass(frozen=True, slots=True)
class Entries:
    """Row `owners[i]` has a value that hashes to `hashes[i]` under `variables[i]`.

    Owners ascend.  The empty string, which joins nothing, is left out.
    """

    owners: Ints
    variables: Ints
    hashes: Hashes

    def under(self, variables: Collection[int]) -> Entries:
        """Return the entries under some variables."""
        kept = np.isin(self.variables, list(variables))
        return Entries(self.owners[kept], self.variables[kept], self.hashes[kept])


class EntryReader:
    """Reads the entries of instances under the variables that are wanted."""

    def __init__(self, shapes: Shapes, hashing: HashValues) -> None:
        self._layouts = Layouts(shapes)
        self._hashing = hashing

    def want(self, variables: Set[int]) -> None:
        """Say under which variables values are read from now on."""
        self._layouts.compare(variables)

    def read(self, rows: pa.Table) -> Entries:
        """Return the entries of rows of `INSTANCE_SCHEMA`."""
        rows = rows.combine_chunks()
        layouts = self._layouts.current(rows.column("shape").to_numpy().astype(np.int64))
        arrays = self._layouts.arrays
        slot_counts = arrays.slot_counts[layouts]
        nodes = arrays.slot_nodes[ranges(arrays.slot_starts[layouts], slot_counts)]
        hashes = self._hash(rows, nodes, slot_counts)
        counts = arrays.binding_counts[layouts]
        bindings = ranges(arrays.binding_starts[layouts], counts)
        owners = np.repeat(np.arange(rows.num_rows), counts)
        slots = np.cumsum(slot_counts) - slot_counts
        found = hashes[slots[owners] + arrays.binding_slots[bindings]]
        filled = found != EMPTY
        variables = arrays.binding_variables[bindings]
        return Entries(owners[filled], variables[filled], found[filled])

    def _hash(self, rows: pa.Table, nodes: Ints, counts: Ints) -> Hashes:
        """Return the hashes of `counts[i]` nodes of each row `i`."""
        values = pa.concat_arrays(rows.column("vals").chunks or [pa.array([], _VALS)])
        starts = values.offsets.to_numpy().astype(np.int64)[:-1]
        places = pa.array(np.repeat(starts, counts) + nodes)
        return self._hashing(values.values.take(places).fill_null(""))[0]


_VALS = pa.list_(pa.string())
