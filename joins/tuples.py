"""Tuples in columns: pairs expanded by their entries, filtered pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from joins.classes import ClassRegistry, ClassTuple
from joins.remembered import Hashes, HashValues, Remembered
from joins.signatureview import Entry
from joins.slots import Ints, ranges
from joins.times import Flags, Pairs
from templates.template import Template

__all__ = ["ClassLimits", "Residuals", "TupleColumns"]


@dataclass(frozen=True, slots=True)
class ClassLimits:
    """What a stratum's classes ask of time, by class number.

    The widest window of a class, -1 for one that is not in the stratum or not in use any more,
    whether its operator is symmetric, and whether it has residuals.  `has_singles` says whether
    any class is of one block.
    """

    window: Ints
    is_symmetric: Flags
    has_residuals: Flags
    has_singles: bool

    @classmethod
    def of(cls, classes: ClassRegistry, stratum: int) -> ClassLimits:
        """Return the limits of the classes in use now."""
        window = np.full(classes.last_number + 1, -1, np.int64)
        is_symmetric, has_residuals = np.zeros((2, classes.last_number + 1), np.bool_)
        has_singles = False
        for number, query_class in classes.by_number.items():
            if query_class.stratum == stratum:
                window[number] = classes.window_us(number)
                is_symmetric[number] = query_class.is_symmetric
                has_residuals[number] = bool(query_class.template.residuals)
                has_singles |= not query_class.template.has_right
        return cls(window, is_symmetric, has_residuals, has_singles)


@dataclass(frozen=True, slots=True)
class TupleColumns:
    """Rows of R_outT in columns.

    Row `i` stands for pair `pairs[i]` (into `left`, `right`) and for tuple `which[i]` of the
    entries in hand, taken one after the other; `classes[i]` is its class, `span[i]` the smallest
    window that holds it.
    """

    left: Ints
    right: Ints | None
    pairs: Ints
    which: Ints
    classes: Ints
    span: Ints
    entries: list[Entry]

    @classmethod
    def of_singles(
        cls, instances: Ints, entries: list[Entry], inverse: Ints, limits: ClassLimits
    ) -> TupleColumns:
        """Give every instance one row for each tuple of its entry."""
        rows, which, classes = _expand(entries, inverse)
        held = limits.window[classes] >= 0
        rows, which, classes = rows[held], which[held], classes[held]
        return cls(instances, None, rows, which, classes, np.zeros_like(rows), entries)

    @classmethod
    def of_pairs(
        cls, pairs: Pairs, entries: list[Entry], inverse: Ints, limits: ClassLimits
    ) -> TupleColumns:
        """Give every pair one row for each tuple of its entry that time allows."""
        rows, which, classes = _expand(entries, inverse)
        span = pairs.span[rows]
        held = span <= limits.window[classes]
        held &= limits.is_symmetric[classes] | pairs.follows[rows]
        if not held.all():
            rows, which, classes, span = rows[held], which[held], classes[held], span[held]
        return cls(pairs.left, pairs.right, rows, which, classes, span, entries)

    def __len__(self) -> int:
        return len(self.pairs)

    def keep(self, rows: Flags) -> TupleColumns:
        """Return some of the rows."""
        return replace(
            self,
            pairs=self.pairs[rows],
            which=self.which[rows],
            classes=self.classes[rows],
            span=self.span[rows],
        )

    def tuples(self) -> list[tuple[Entry, tuple[int, ...]]]:
        """Return the tuples that `which` points to: an entry, and nodes that hold in it."""
        return [(entry, nodes) for entry in self.entries for nodes in entry.nodes]

    def rows(self) -> Iterator[ClassTuple]:
        """Yield the rows one by one."""
        lefts = self.left[self.pairs].tolist()
        rights = [None] * len(self) if self.right is None else self.right[self.pairs].tolist()
        tuples = self.tuples() if len(self) else []
        for c, left, right, span, i in zip(
            self.classes.tolist(),
            lefts,
            rights,
            self.span.tolist(),
            self.which.tolist(),
            strict=True,
        ):
            yield ClassTuple(c, left, right, span, tuples[i][1])


def _expand(entries: list[Entry], inverse: Ints) -> tuple[Ints, Ints, Ints]:
    """Give every place in `inverse` a row for each tuple of its entry: place, tuple, class."""
    sizes = np.array([len(entry.classes) for entry in entries], np.int64)
    starts = np.cumsum(sizes) - sizes
    counts = sizes[inverse]
    which = ranges(starts[inverse], counts)
    classes = np.concatenate([np.zeros(0, np.int64), *(entry.classes for entry in entries)])
    return np.repeat(np.arange(len(inverse)), counts), which, classes[which]


class Residuals:
    """Tests the residuals that classes share, on hashes: equal strings have equal ones.

    An instance that came before any class compared a value has no hash of it.  No query with that
    residual sees the instance, so none holds there.
    """

    def __init__(self, classes: ClassRegistry, hashing: HashValues) -> None:
        self._classes = classes
        self._hashing = hashing

    def filter(
        self, columns: TupleColumns, limits: ClassLimits, remembered: Remembered
    ) -> TupleColumns:
        """Keep the rows on which every residual of their class holds."""
        tested = limits.has_residuals[columns.classes]
        if not tested.any():
            return columns
        held = ~tested
        for query_class in np.unique(columns.classes[tested]).tolist():
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
            known, *first = _hashes(left, template, columns, rows, remembered)
            held &= known
            if right is None:
                hashes = self._hashing(pa.array([next(constants)]))
                other = [np.repeat(each, len(rows)) for each in hashes]
            else:
                known, *other = _hashes(right, template, columns, rows, remembered)
                held &= known
            equal = (first[0] == other[0]) & (first[1] == other[1])
            held &= equal if operator == "=" else ~equal
        return held


def _hashes(
    meta: int, template: Template, columns: TupleColumns, rows: Ints, remembered: Remembered
) -> tuple[Flags, Hashes, Hashes]:
    """Return in which rows a meta-variable's value has hashes, and both of them."""
    is_left = meta < template.left_size
    which, inverse = np.unique(columns.which[rows], return_inverse=True)
    tuples = columns.tuples()
    slots = np.array([_slot(tuples[i], meta, is_left=is_left) for i in which.tolist()], np.int64)
    known = (slots >= 0)[inverse]
    side = columns.left if is_left or columns.right is None else columns.right
    places = remembered.slots(side[columns.pairs[rows[known]]]) + slots[inverse[known]]
    first, other = np.zeros((2, len(rows)), np.uint64)
    for hashes, column in zip((first, other), remembered.hashes, strict=True):
        hashes[known] = column[places]
    return known, first, other


def _slot(held: tuple[Entry, tuple[int, ...]], meta: int, *, is_left: bool) -> int:
    """Return the slot of a meta-variable's node, -1 where the layout has none for it."""
    entry, nodes = held
    left, right, _ = entry.signature
    layout = left if is_left or right is None else right
    return layout.nodes.index(nodes[meta]) if nodes[meta] in layout.nodes else -1
