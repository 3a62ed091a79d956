"""Tuples in columns: pairs expanded by their entries, filtered pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from joins.classes import ClassRegistry, ClassTuple
from joins.remembered import Hashes, HashValues, Remembered
from joins.signatureview import Entry
from joins.slots import Ints, ranges
from joins.times import Flags
from templates.template import Template

__all__ = ["Residuals", "TupleColumns"]


@dataclass(frozen=True, slots=True)
class TupleColumns:
    """Rows of R_outT in columns.

    Row `i` stands for pair `pairs[i]` (into `left`, `right`, `span`) and for tuple `which[i]` of
    the entries in hand, whose nodes are `nodes[which[i]]` and which `owners[which[i]]` holds;
    `classes[i]` is its class.
    """

    left: Ints
    right: Ints | None
    span: Ints
    pairs: Ints
    which: Ints
    classes: Ints
    nodes: list[tuple[int, ...]]
    owners: list[Entry]

    @classmethod
    def expand(
        cls, left: Ints, right: Ints | None, span: Ints, entries: list[Entry], inverse: Ints
    ) -> TupleColumns:
        """Give every pair one row for each tuple of its entry."""
        sizes = np.array([len(entry.classes) for entry in entries], np.int64)
        counts = sizes[inverse] if len(sizes) else np.zeros(0, np.int64)
        which = ranges((np.cumsum(sizes) - sizes)[inverse], counts) if len(sizes) else counts
        classes = np.array([c for entry in entries for c in entry.classes], np.int64)
        nodes = [n for entry in entries for n in entry.nodes]
        owners = [entry for entry in entries for _ in entry.classes]
        pairs = np.repeat(np.arange(len(left)), counts)
        return cls(left, right, span, pairs, which, classes[which], nodes, owners)

    def __len__(self) -> int:
        return len(self.pairs)

    def keep(self, rows: Flags) -> TupleColumns:
        """Return some of the rows."""
        return replace(
            self, pairs=self.pairs[rows], which=self.which[rows], classes=self.classes[rows]
        )

    def within(self, limits: Mapping[int, tuple[int, bool]], follows: Flags) -> TupleColumns:
        """Keep the rows of classes in `limits` that their (window, is symmetric) allows."""
        if not limits:
            return self.keep(np.zeros(len(self), np.bool_))
        numbers = np.array(sorted(limits), np.int64)
        windows = np.array([limits[c][0] for c in numbers.tolist()], np.int64)
        symmetric = np.array([limits[c][1] for c in numbers.tolist()], np.bool_)
        at = np.minimum(np.searchsorted(numbers, self.classes), len(numbers) - 1)
        held = numbers[at] == self.classes
        held &= self.span[self.pairs] <= windows[at]
        held &= symmetric[at] | follows[self.pairs]
        return self.keep(held)

    def rows(self) -> Iterator[ClassTuple]:
        """Yield the rows one by one."""
        lefts = self.left[self.pairs].tolist()
        rights = [None] * len(self) if self.right is None else self.right[self.pairs].tolist()
        spans = self.span[self.pairs].tolist()
        numbers = self.classes.tolist()
        for c, left, right, span, i in zip(
            numbers, lefts, rights, spans, self.which.tolist(), strict=True
        ):
            yield ClassTuple(c, left, right, span, self.nodes[i])


class Residuals:
    """Tests the residuals that classes share, on hashes: equal strings have equal ones."""

    def __init__(self, classes: ClassRegistry, hashing: HashValues) -> None:
        self._classes = classes
        self._hashing = hashing

    def filter(self, columns: TupleColumns, remembered: Remembered) -> TupleColumns:
        """Keep the rows on which every residual of their class holds."""
        classes = np.unique(columns.classes).tolist()
        tested = [c for c in classes if self._classes.by_number[c].template.residuals]
        if not tested:
            return columns
        held = np.ones(len(columns), np.bool_)
        for query_class in tested:
            rows = np.flatnonzero(columns.classes == query_class)
            held[rows] = self._holds(query_class, columns, rows, remembered)
        return columns.keep(held)

    def _holds(
        self, number: int, columns: TupleColumns, rows: Ints, remembered: Remembered
    ) -> Flags:
        query_class = self._classes.by_number[number]
        template, constants = query_class.template, iter(query_class.row.constants)
        held = np.ones(len(rows), np.bool_)
        for left, operator, right in template.residuals:
            first = _hashes(left, template, columns, rows, remembered)
            if right is None:
                hashes = self._hashing(pa.array([next(constants)]))
                other = tuple(np.repeat(each, len(rows)) for each in hashes)
            else:
                other = _hashes(right, template, columns, rows, remembered)
            equal = (first[0] == other[0]) & (first[1] == other[1])
            held &= equal if operator == "=" else ~equal
        return held


def _hashes(
    meta: int, template: Template, columns: TupleColumns, rows: Ints, remembered: Remembered
) -> tuple[Hashes, ...]:
    """Return the hashes of a meta-variable's values in some rows."""
    is_left = meta < template.left_size
    which, inverse = np.unique(columns.which[rows], return_inverse=True)
    slots = np.array([_slot(columns, i, meta, is_left=is_left) for i in which.tolist()], np.int64)
    side = columns.left if is_left or columns.right is None else columns.right
    places = remembered.slots(side[columns.pairs[rows]]) + slots[inverse]
    return tuple(hashes[places] for hashes in remembered.hashes)


def _slot(columns: TupleColumns, i: int, meta: int, *, is_left: bool) -> int:
    left, right, _ = columns.owners[i].signature
    layout = left if is_left or right is None else right
    return layout.nodes.index(columns.nodes[i][meta])
