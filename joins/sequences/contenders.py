"""Contenders: tuples of operands, as rows of numbers.

A contender is a choice of documents and of nodes for the variables that are looked at.  It has a
row for each way to choose the nodes of paths, in each stream of its operand.  Its rows stand one
behind the other, and its number is that of the first.  Rows that are of no use any more are left
out when as many have come as there were (`sweep`); then all others get new numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.memory.durations import UNBOUNDED
from joins.memory.instancetable import Hashes, hash_values
from joins.memory.ordering import order_by
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags
from joins.sequences.columns import Columns
from joins.sequences.planning.plan import Plan
from templates.rule import numbers_of

__all__ = ["DONE", "Contenders", "StreamRows"]

T = TypeVar("T")

DONE = -1
"""The grade of a contender that has been decided about for good."""

_TIMES = ("docid", "start_us", "end_us", "watermark_us")
_COLUMNS = {
    **dict.fromkeys(_TIMES, np.int64),
    "depth": np.int16,
    "seat": np.int32,
    "contender": np.int32,
    "rows": np.int32,
    "instance": np.int64,
    "slot": np.int32,
    "slots": np.int16,
    "counts_from": np.int64,
    "grade": np.int32,
}
_SLOTS = {"first": np.uint64, "other": np.uint64}
_READ: dict[str, tuple[npt.DTypeLike, object]] = {
    "number": (np.float64, np.nan),
    "text": (np.object_, None),
}
"""What is kept of values where some rule reads it, and what stands there elsewhere."""


@dataclass(frozen=True, slots=True)
class StreamRows:
    """Rows of `INSTANCE_SCHEMA`, and the numbers that they have in the join."""

    table: pa.Table
    numbers: Ints

    @classmethod
    def together(cls, parts: Sequence[StreamRows], nbytes_max: int) -> Iterator[StreamRows]:
        """Yield the rows of all parts in some of about so many bytes.

        The rows of a contender, which have the same leaves, are in one.
        """
        if len(parts) < 2:
            yield from parts
            return
        table = pa.concat_tables([part.table for part in parts])
        numbers = np.concatenate([part.numbers for part in parts])
        count = 1 + table.nbytes // nbytes_max
        if count == 1:
            yield cls(table, numbers)
            return
        of_row = pc.list_element(table.column("leaves"), 0).to_numpy() % count
        for piece in np.unique(of_row).tolist():
            own = of_row == piece
            yield cls(table.filter(pa.array(own)), numbers[own])


class Contenders:
    """The rows of all contenders; a column of theirs is had by its name."""

    def __init__(self, plan: Plan, lateness_us: int) -> None:
        self._plan = plan
        self._lateness_us = lateness_us
        self._columns = Columns(_COLUMNS)
        self._values = Columns(_SLOTS)
        self._read: dict[str, Columns] = {}
        self._leaf: Columns | None = None
        self._match_ids: dict[int, str] = {}
        self._leaves: dict[int, frozenset[int]] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]

    @property
    def lateness_us(self) -> int:
        """The allowed lateness."""
        return self._lateness_us

    @property
    def hashes(self) -> tuple[Hashes, Hashes]:
        """The hashes of values, by slot."""
        return self._values["first"], self._values["other"]

    def numbers(self, slots: Ints) -> npt.NDArray[np.float64]:
        """Return values as numbers, NaN where no rule compares them as such."""
        if "number" not in self._read:
            return np.full(len(slots), np.nan)
        return self._read["number"]["number"][slots]

    @property
    def texts(self) -> npt.NDArray[np.object_]:
        """Values, by slot, where a rule reads them."""
        return self._read["text"]["text"]

    # -- rows that come ------------------------------------------------------------------------

    def add(self, rows: StreamRows, stratum: int) -> Ints:
        """Add rows to the seats of their streams in a stratum; return their numbers here."""
        [came] = rows.table.combine_chunks().to_batches()
        streams = came.column("stream").dictionary_encode()
        names = self._plan.seats.streams_of(streams.dictionary)
        seats, starts, counts = self._plan.seats_of(names, stratum)
        codes = streams.indices.to_numpy()
        which = np.repeat(np.arange(came.num_rows), counts[codes])
        sits = seats[ranges(starts[codes], counts[codes])]
        if not len(which):
            return which
        vectors = _Vectors.of(came)
        order, firsts, sizes = self._grouped(vectors, which, sits)
        which, sits = which[order], sits[order]
        slots = self._keep_values(vectors, which, sits)
        first = len(self)
        self._keep_leaves(vectors.leaves[vectors.leaf_starts[which]], came, which)
        numbers = first + np.arange(len(which))
        lead = np.repeat(first + firsts, sizes)
        self._columns.append(
            len(which),
            **{name: came.column(name).to_numpy()[which] for name in (*_TIMES, "depth")},
            seat=sits,
            contender=lead,
            rows=np.repeat(sizes, sizes),
            instance=rows.numbers[which],
            slot=slots[which],
            slots=vectors.value_counts[which],
            counts_from=UNBOUNDED,
            grade=0,
        )
        self._remember_rare(came, vectors, which, numbers)
        return numbers

    def _grouped(self, vectors: _Vectors, which: Ints, seats: Ints) -> tuple[Ints, Ints, Ints]:
        """Return an order in which the rows of contenders stand together.

        With it comes where each contender begins, and how many rows it has.
        """
        columns = [self._plan.seats[name][seats] for name in ("operand", "blocks")]
        width = int(vectors.leaf_counts.max())
        for k in range(width):
            has = vectors.leaf_counts[which] > k
            at = np.where(has, vectors.leaf_starts[which] + k, 0)
            columns.append(np.where(has, vectors.leaves[at], -1))
        for own, places in self._plan.seats.chosen_of(seats):
            column = np.full(len(which), -1)
            column[own] = vectors.nodes[vectors.node_starts[which[own]] + 1 + places]
            columns.append(column)
        for own, places in self._plan.seats.keys_of(seats):
            at = vectors.value_starts[which[own]] + places
            for hashes in vectors.hashes:
                column = np.zeros(len(which), np.int64)
                column[own] = hashes.view(np.int64)[at]
                columns.append(column)
        order = order_by(*columns, which)
        is_first = np.zeros(len(which), np.bool_)
        is_first[0] = True
        for column in columns:
            ordered = column[order]
            is_first[1:] |= ordered[1:] != ordered[:-1]
        firsts = np.flatnonzero(is_first)
        sizes = np.diff(firsts, append=len(which))
        return order, firsts, sizes

    def _keep_values(self, vectors: _Vectors, which: Ints, seats: Ints) -> Ints:
        """Remember the values of rows, each once; return where those of each begin."""
        texts = vectors.values
        first, other = vectors.hashes
        wanted = self._plan.reads(seats)
        numbers: npt.NDArray[np.float64] | None = None
        if wanted.numbers:
            encoded = texts.dictionary_encode()
            known = numbers_of(encoded.dictionary.to_pylist())
            codes = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
            numbers = np.array([*known, np.nan])[codes]
        own = texts.to_numpy(zero_copy_only=False) if wanted.texts else None
        begin = self._values.append(len(texts), first=first, other=other)
        self._keep_read("number", begin, numbers)
        self._keep_read("text", begin, own)
        return begin + vectors.value_starts

    def _keep_read(self, name: str, begin: int, values: npt.NDArray[Any] | None) -> None:
        """Keep what is read of the values from a slot on, once there is a rule that reads it."""
        dtype, nothing = _READ[name]
        if values is not None and name not in self._read:
            self._read[name] = Columns({name: dtype})
            self._read[name].append(begin, **{name: nothing})
        if name in self._read:
            count = len(self._values) - begin
            self._read[name].append(count, **{name: nothing if values is None else values})

    def _keep_leaves(self, leaves: Ints, came: pa.RecordBatch, which: Ints) -> None:
        """Keep the first documents of new rows, once one of all rows is not its newest."""
        docids = came.column("docid").to_numpy()[which]
        if self._leaf is None and (leaves != docids).any():
            self._leaf = Columns({"leaf": np.int64})
            self._leaf.append(len(self), leaf=self["docid"])
        if self._leaf is not None:
            self._leaf.append(len(leaves), leaf=leaves)

    def _remember_rare(
        self, came: pa.RecordBatch, vectors: _Vectors, which: Ints, numbers: Ints
    ) -> None:
        """Remember what few rows have: ids of matches, and more than one document."""
        deep = np.flatnonzero(self["depth"][numbers] > 0)
        if len(deep):
            ids = came.column("match_id").take(pa.array(which[deep])).to_pylist()
            for number, match_id in zip(numbers[deep].tolist(), ids, strict=True):
                if match_id:
                    self._match_ids[number] = match_id
        wide = np.flatnonzero(vectors.leaf_counts[which] > 1)
        for row, number in zip(which[wide].tolist(), numbers[wide].tolist(), strict=True):
            start = vectors.leaf_starts[row]
            leaves = vectors.leaves[start : start + vectors.leaf_counts[row]]
            self._leaves[number] = frozenset(leaves.tolist())

    # -- what is asked of contenders -----------------------------------------------------------

    def rows_of(self, contenders: Ints) -> tuple[Ints, Ints]:
        """Return, for each of some contenders, its rows: which contender it is, and the row."""
        counts = self["rows"][contenders].astype(np.int64)
        return np.repeat(np.arange(len(contenders)), counts), ranges(contenders, counts)

    def share(self, one: Ints, other: Ints) -> Flags:
        """Return which pairs of rows have a document in common."""
        leaf = self["docid"] if self._leaf is None else self._leaf["leaf"]
        shared: Flags = leaf[one] == leaf[other]
        if self._leaves:
            for i in np.flatnonzero(~shared).tolist():
                a, b = int(one[i]), int(other[i])
                if a in self._leaves or b in self._leaves:
                    shared[i] = not self._leaves_of(a).isdisjoint(self._leaves_of(b))
        return shared

    def _leaves_of(self, row: int) -> frozenset[int]:
        leaf = self["docid"] if self._leaf is None else self._leaf["leaf"]
        return self._leaves.get(row) or frozenset([int(leaf[row])])

    def meet(self, one: Ints, other: Ints, window_us: Ints) -> Flags:
        """Section 1.1: the earlier was still remembered when the later came."""
        is_later, is_equal = self._compared(one, other)
        earlier, later = np.where(is_later, other, one), np.where(is_later, one, other)
        from_us = self["watermark_us"][later] - window_us - self._lateness_us
        holds: Flags = (self["end_us"][earlier] >= from_us) | (window_us >= UNBOUNDED) | is_equal
        return holds

    def needed_us(self, left: Ints, right: Ints, are_whole: Flags | bool = False) -> Ints:
        """Return the shortest windows that pairs of rows need, section 1.1 included.

        Windows of whole pairs reach from the start of the left row.
        """
        from_us = np.where(are_whole, self["start_us"][left], self["end_us"][left])
        apart_us = self["end_us"][right] - from_us
        needed_us: Ints = np.maximum(apart_us, self.late_us(left, right))
        return needed_us

    def late_us(self, one: Ints, other: Ints) -> Ints:
        """Return the shortest windows under which section 1.1 lets pairs of rows meet."""
        is_later, is_equal = self._compared(one, other)
        earlier, later = np.where(is_later, other, one), np.where(is_later, one, other)
        late_us = self["watermark_us"][later] - self._lateness_us - self["end_us"][earlier]
        return np.where(is_equal, -UNBOUNDED, late_us)

    def _compared(self, one: Ints, other: Ints) -> tuple[Flags, Flags]:
        """Return where the position of one row is above that of another, and where equal."""
        docid, depth = self["docid"], self["depth"]
        is_later = docid[one] > docid[other]
        is_equal = docid[one] == docid[other]
        ties = np.flatnonzero(is_equal)
        if len(ties):
            a, b = depth[one[ties]], depth[other[ties]]
            is_later[ties], is_equal[ties] = a > b, a == b
            for i in ties[(a == b) & (a > 0)].tolist():
                ids = [self._match_ids.get(int(each[i]), "") for each in (one, other)]
                is_later[i], is_equal[i] = ids[0] > ids[1], ids[0] == ids[1]
        return is_later, is_equal

    # -- rows that go --------------------------------------------------------------------------

    def keep(self, kept: Flags, numbers: Ints) -> None:
        """Leave out all rows but some, which get new numbers; those of the others are negative."""
        held = np.zeros(len(self._values), np.bool_)
        held[ranges(self["slot"][kept], self["slots"][kept].astype(np.int64))] = True
        slots = np.cumsum(held) - 1
        self._columns.keep(kept)
        if self._leaf is not None:
            self._leaf.keep(kept)
        for values in (self._values, *self._read.values()):
            values.keep(held)
        self["contender"][:] = numbers[self["contender"]]
        self["slot"][:] = slots[np.minimum(self["slot"], max(0, len(slots) - 1))]
        self._match_ids = _renumbered(self._match_ids, numbers)
        self._leaves = _renumbered(self._leaves, numbers)


def _renumbered(rare: Mapping[int, T], numbers: Ints) -> dict[int, T]:
    return {int(numbers[number]): each for number, each in rare.items() if numbers[number] >= 0}


@dataclass(frozen=True, slots=True)
class _Vectors:
    """The lists of rows: all behind one another, and where each begins."""

    leaves: Ints
    leaf_starts: Ints
    leaf_counts: Ints
    nodes: Ints
    node_starts: Ints
    values: pa.Array
    value_starts: Ints
    value_counts: Ints
    hashes: tuple[Hashes, Hashes]

    @classmethod
    def of(cls, rows: pa.RecordBatch) -> _Vectors:
        """Return the lists of rows; the first value is left out, which the root has."""
        leaves, leaf_starts, leaf_counts = _flat(rows.column("leaves"))
        nodes, node_starts, _ = _flat(rows.column("nodes"))
        values, starts, counts = _flat(rows.column("vals"))
        own = np.ones(len(values), np.bool_)
        own[starts] = False
        counts = counts - 1
        texts = values.filter(pa.array(own))
        return cls(
            leaves.to_numpy(),
            leaf_starts,
            leaf_counts,
            nodes.to_numpy().astype(np.int64),
            node_starts,
            texts,
            np.cumsum(counts) - counts,
            counts,
            hash_values(texts.fill_null("")),
        )


def _flat(lists: pa.ListArray) -> tuple[pa.Array, Ints, Ints]:
    """Return the elements of lists, and where each list begins, and how many it has."""
    counts = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    return lists.flatten(), counts.cumsum() - counts, counts
