"""Tuples in columns: pairs expanded by their entries, filtered pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from joins.memory.durations import CLOSED
from joins.memory.ordering import numbered
from joins.memory.remembered import Hashes, Remembered
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags, Pairs
from joins.memory.tupletable import TupleTable
from joins.signature.view import ViewEntry
from templates.queryclass import QueryClass
from templates.template import Template

__all__ = ["ClassLimits", "TupleColumns", "without_failed"]


class ClassLimits:
    """The windows and residuals of a stratum's classes, by class number.

    `window` is the widest one of a class, `CLOSED` where the number is not in use in the stratum.
    `is_symmetric` is the operator's.  `form` is the place of the class's template in `forms`, the
    templates with residuals, or -1.
    """

    def __init__(self) -> None:
        self.window: Ints = np.full(0, CLOSED, np.int64)
        self.is_symmetric: Flags = np.zeros(0, np.bool_)
        self.form: Ints = np.full(0, -1, np.int64)
        self.forms: list[Template] = []
        self._singles: set[int] = set()

    @property
    def has_singles(self) -> bool:
        """Whether any class is of one block."""
        return bool(self._singles)

    def make_room(self, last: int) -> None:
        """Have a place for all numbers up to the last one, and spare ones."""
        if last >= len(self.window):
            more = max(64, 2 * (last + 1) - len(self.window))
            self.window = np.append(self.window, np.full(more, CLOSED))
            self.is_symmetric = np.append(self.is_symmetric, np.zeros(more, np.bool_))
            self.form = np.append(self.form, np.full(more, -1))

    def put(self, number: int, query_class: QueryClass, window_us: int) -> None:
        """Add a class, or give one that is there another window."""
        template = query_class.template
        self.window[number] = window_us
        self.is_symmetric[number] = query_class.is_symmetric
        if not template.has_right:
            self._singles.add(number)
        if template.residuals:
            if template not in self.forms:
                self.forms.append(template)
            self.form[number] = self.forms.index(template)

    def drop(self, number: int) -> None:
        """Take away a class."""
        self.window[number] = CLOSED
        self._singles.discard(number)


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
    entries: list[ViewEntry]

    @classmethod
    def of_singles(
        cls, instances: Ints, entries: list[ViewEntry], inverse: Ints, limits: ClassLimits
    ) -> TupleColumns:
        """Give every instance one row for each tuple of its entry."""
        rows, which, classes = _expand(entries, inverse)
        held = limits.window[classes] != CLOSED
        rows, which, classes = rows[held], which[held], classes[held]
        return cls(instances, None, rows, which, classes, np.zeros_like(rows), entries)

    @classmethod
    def of_pairs(
        cls, pairs: Pairs, entries: list[ViewEntry], inverse: Ints, limits: ClassLimits
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

    def keep(self, rows: Flags | Ints) -> TupleColumns:
        """Return some of the rows."""
        return replace(
            self,
            pairs=self.pairs[rows],
            which=self.which[rows],
            classes=self.classes[rows],
            span=self.span[rows],
        )

    def tuples(self) -> list[tuple[ViewEntry, tuple[int, ...]]]:
        """Return the tuples that `which` points to: an entry, and nodes that hold in it.

        Where there is no row, none are listed: an entry may have a hundred thousand.
        """
        if not len(self):
            return []
        return [(entry, nodes) for entry in self.entries for nodes in entry.nodes]

    def table(self) -> TupleTable:
        """Return the rows as what follows the join reads them."""
        left = self.left[self.pairs]
        right = np.zeros_like(left) if self.right is None else self.right[self.pairs]
        used, patterns = numbered(self.which)
        return TupleTable.of(
            self.classes, left, right, self.span, patterns, self._nodes(used.tolist())
        )

    def _nodes(self, which: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the nodes of some tuples of the entries, in ascending order."""
        found: list[tuple[int, ...]] = []
        entries, first = iter(self.entries), 0
        nodes: list[tuple[int, ...]] = []
        for i in which:
            while i >= first + len(nodes):
                first += len(nodes)
                nodes = next(entries).nodes
            found.append(nodes[i - first])
        return found


def _expand(entries: list[ViewEntry], inverse: Ints) -> tuple[Ints, Ints, Ints]:
    """Give every place in `inverse` a row for each tuple of its entry: place, tuple, class."""
    sizes = np.array([len(entry.classes) for entry in entries], np.int64)
    starts = sizes.cumsum() - sizes
    counts = sizes[inverse]
    which = ranges(starts[inverse], counts)
    classes = np.concatenate([np.zeros(0, np.int64), *(entry.classes for entry in entries)])
    return np.arange(len(inverse)).repeat(counts), which, classes[which]


def without_failed(
    columns: TupleColumns, limits: ClassLimits, remembered: Remembered
) -> TupleColumns:
    """Keep the rows on which every residual of their class holds.

    Residuals are tested on hashes: equal strings have equal ones.  Classes of one template are
    tested together.  An instance that came before any class compared a value has no hash of it.  No
    query with that residual sees the instance, so none holds there.
    """
    forms = limits.form[columns.classes]
    if (forms < 0).all():
        return columns
    held = forms < 0
    tuples = columns.tuples()
    for form in np.unique(forms[~held]).tolist():
        rows = np.flatnonzero(forms == form)
        held[rows] = _Values(columns.keep(rows), limits.forms[form], tuples, remembered).hold()
    return columns.keep(held)


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of meta-variables in rows of one template; `tuples` belong to `columns`."""

    columns: TupleColumns
    template: Template
    tuples: list[tuple[ViewEntry, tuple[int, ...]]]
    remembered: Remembered

    def hold(self) -> Flags:
        """Return in which rows every residual holds."""
        held = np.ones(len(self.columns), np.bool_)
        for left, operator, right in self.template.residuals:
            (known1, *first), (known2, *other) = self.hashes(left), self.hashes(right)
            equal = (first[0] == other[0]) & (first[1] == other[1])
            held &= known1 & known2 & (equal if operator == "=" else ~equal)
        return held

    def hashes(self, meta: int) -> tuple[Flags, Hashes, Hashes]:
        """Return in which rows a meta-variable's value has hashes, and both of them."""
        columns, is_left = self.columns, meta < self.template.left_size
        which, inverse = np.unique(columns.which, return_inverse=True)
        found = [_slot(self.tuples[i], meta, is_left=is_left) for i in which.tolist()]
        slots = np.array(found, np.int64)
        known = (slots >= 0)[inverse]
        side = columns.left if is_left or columns.right is None else columns.right
        instances = side[columns.pairs[known]]
        places = self.remembered.slots(instances) + slots[inverse[known]]
        first, other = np.zeros((2, len(columns)), np.uint64)
        for hashes, column in zip((first, other), self.remembered.hashes, strict=True):
            hashes[known] = column[places]
        return known, first, other


def _slot(held: tuple[ViewEntry, tuple[int, ...]], meta: int, *, is_left: bool) -> int:
    """Return the slot of a meta-variable's node, -1 where the layout has none for it."""
    entry, nodes = held
    left, right, _ = entry.signature
    layout = left if is_left or right is None else right
    return layout.nodes.index(nodes[meta]) if nodes[meta] in layout.nodes else -1
