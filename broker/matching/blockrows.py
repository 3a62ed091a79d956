"""Documents as decisions read their blocks: from columns to columns, a stream at a time.

Most elements of runs are a block's: one way in which a document fits it, with nothing asked beside
the pattern.  Such a tuple has no box to be looked up, no string to be held against another, and no
other tuple to be equal to.  So the rows of its stream are the columns of its documents, with the
nodes and values that are carried.

What is not so goes the way of all tuples (`collector`); `docs/tuples.md` says what, and why both
ways come to the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from broker.documents.sub_batches import in_sub_batches
from broker.matching.boxes.columns import Ints
from broker.matching.boxes.points import Points
from broker.matching.costs.accounting import Accounting
from broker.matching.costs.commoncounts import Counted
from broker.matching.instances import UNNUMBERED
from broker.matching.usegroups import UseGroup
from broker.matching.uses import Use
from templates.clause import Clause

__all__ = ["BlockRows", "PlainClasses", "StreamTuples"]

_WHOLE = ("docid", "depth", "docid_min", "docid_max", "start_us", "end_us", "watermark_us")
"""The columns of whole numbers that a row has from its document."""


def _is_plain(clause: Clause) -> bool:
    """Return whether a clause hands on a block whose pattern says all that is asked."""
    return (
        bool(clause.stream)
        and not clause.is_common
        and not clause.deciding
        and len(clause.sources) == 1
        and clause.sources[0].below is None
        and not clause.sources[0].instants
        and not (clause.box or clause.residuals or clause.tests or clause.similar or clause.tested)
    )


class PlainClasses:
    """The classes that are read as plain blocks alone, each with the groups that read it."""

    def __init__(self) -> None:
        self._groups: dict[int, Counter[UseGroup]] = {}
        self._others: Counter[int] = Counter()

    def add(self, use: Use, group: UseGroup | None) -> None:
        """Add a use of a class, and its group if it has one."""
        if group is None or not _is_plain(use.clause):
            self._others[use.query_class] += 1
        else:
            self._groups.setdefault(use.query_class, Counter())[group] += 1

    def remove(self, use: Use, group: UseGroup | None) -> None:
        """Undo one `add`."""
        number = use.query_class
        if group is None or not _is_plain(use.clause):
            self._others[number] -= 1
            if not self._others[number]:
                del self._others[number]
            return
        groups = self._groups[number]
        groups[group] -= 1
        if not groups[group]:
            del groups[group]
            if not groups:
                del self._groups[number]

    def __len__(self) -> int:
        return len(self._groups)

    def groups(self, number: int) -> Sequence[UseGroup]:
        """Return the groups that read a class, each under a stream of its own; none if others do.

        Else a tuple might be in a stream already.
        """
        groups = self._groups.get(number, ())
        are_apart = len({group.stream for group in groups}) == len(groups)
        return [] if number in self._others or not are_apart else [*groups]


@dataclass(frozen=True)
class StreamTuples:
    """Tuples of a stream, each of another document: rows of `points`, and where their values are.

    `at` has a column for each term of the clause, the carried ones first.
    """

    points: Points
    rows: Ints
    clause: Clause
    at: Ints

    @classmethod
    def of(cls, points: Points, rows: Ints, clause: Clause) -> StreamTuples:
        """Return some tuples of a clause."""
        terms = dict.fromkeys((*clause.carried, *clause.places))
        metas = np.array([clause.places[term] for term in terms], np.int64)
        table = points.tuples
        first = table.starts[table.patterns[rows]]
        nodes = table.flat_nodes[first[:, None] + metas]
        at = points.operands.starts[points.left[rows]][:, None] + nodes
        return cls(points, rows, clause, at)

    def take(self, some: Ints) -> StreamTuples:
        """Return some of the tuples."""
        return StreamTuples(self.points, self.rows[some], self.clause, self.at[some])

    @cached_property
    def nbytes(self) -> Ints:
        """The bytes of the values of all terms of each."""
        sizes: Ints = self.points.operands.sizes[self.at].sum(axis=1)
        return sizes

    def table(self, shape: int) -> pa.Table:
        """Return the rows of `UNNUMBERED`, with a shape."""
        operands = self.points.operands
        places, size = self.points.left[self.rows], len(self.rows)
        width = 1 + len(self.clause.carried)
        # The root stands first: node 0, without a value.
        at = np.zeros((size, width), np.int64)
        at[:, 1:] = self.at[:, : width - 1]
        is_root = np.zeros((size, width), np.bool_)
        is_root[:, 0] = True
        nodes = np.where(is_root, 0, operands.nodes[at]) if len(operands.nodes) else at
        values = operands.values.take(pa.array(at.ravel(), mask=is_root.ravel()))
        lists = pa.array(np.arange(size + 1) * width, pa.int32())
        leaves = operands.leaves[operands.leaf_starts[places]]
        columns = {
            **{name: operands.column(name)[places] for name in _WHOLE},
            "stream": pa.repeat(pa.scalar(self.clause.stream), size),
            "key": pa.repeat(pa.scalar(""), size),
            "match_id": operands.rows.column("match_id").take(pa.array(places)).combine_chunks(),
            "shape": np.full(size, shape),
            "leaves": pa.ListArray.from_arrays(np.arange(size + 1, dtype=np.int32), leaves),
            "nodes": pa.ListArray.from_arrays(lists, nodes.ravel().astype(np.int32)),
            "vals": pa.ListArray.from_arrays(lists, values),
        }
        arrays = [pa.array(columns[field.name], field.type) for field in UNNUMBERED]
        return pa.Table.from_arrays(arrays, schema=UNNUMBERED)


class BlockRows:
    """The tuples of plain blocks of one stratum in a batch; `shape_of` is as in `InnerTuples`.

    Taken are those of a class that has `least` or more at once: of fewer they cost less together
    with all others.
    """

    def __init__(
        self, accounts: Accounting, shape_of: Callable[[Clause], int], *, least: int
    ) -> None:
        self._accounts = accounts
        self._shape_of = shape_of
        self._least = least
        self._found: list[StreamTuples] = []

    def take(self, points: Points, plain: PlainClasses) -> Points:
        """Take the tuples of classes that are plain blocks; return the others.

        The points are all of the stratum: then a document has one tuple of a stream, or more that
        stand among them.
        """
        order = np.argsort(points.classes, kind="stable")
        numbers, starts = np.unique(points.classes[order], return_index=True)
        others: list[Ints] = []
        for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            groups = plain.groups(number) if len(rows) >= self._least else ()
            if not groups or not (np.diff(points.tuples.left[rows]) > 0).all():
                others.append(rows)
                continue
            for group in groups:
                self._take(points, rows, group)
        if len(others) == len(numbers):
            return points
        return points.take(np.sort(np.concatenate([np.zeros(0, np.int64), *others])))

    def _take(self, points: Points, rows: Ints, group: UseGroup) -> None:
        """Take tuples that a group has, each counted for whoever is not stopped before it."""
        use, uses = group.first, group.columns
        rows = rows[points.docids_min[rows] > use.asked.point]
        nothing = np.zeros((len(rows), 0), np.int64)
        if stopped := self._accounts.stopped():
            are_open = uses.are_open(stopped, nothing, points.docids[rows])
            rows, nothing = rows[are_open], nothing[are_open]
        if not len(rows):
            return
        tuples = StreamTuples.of(points, rows, use.clause)
        # A document is not handed on by a decision that reads it: it costs its bytes alone.
        weights = np.zeros((len(rows), 3), np.int64)
        weights[:, 0], weights[:, 2] = 1, tuples.nbytes
        where = points.docids[rows], points.docids_max[rows]
        self._accounts.hand_on(Counted(group.stream, uses, nothing, *where, weights))
        self._found.append(tuples)

    def tables(self, characters_max: int) -> Iterator[pa.Table]:
        """Yield rows of `UNNUMBERED`; a table has so many characters."""
        tables: list[pa.Table] = []
        size = 0
        for tuples in self._found:
            shape, sizes = self._shape_of(tuples.clause), tuples.nbytes
            for part in _in_parts(sizes, characters_max):
                size += int(sizes[part].sum())
                if size > characters_max and tables:
                    yield pa.concat_tables(tables)
                    tables, size = [], int(sizes[part].sum())
                tables.append(tuples.take(part).table(shape))
        if tables:
            yield pa.concat_tables(tables)


def _in_parts(sizes: Ints, most: int) -> Iterator[Ints]:
    """Yield the places of sizes in order, each part with so much."""
    if sizes.sum() <= most:
        yield np.arange(len(sizes))
        return
    for part in in_sub_batches(range(len(sizes)), sizes.__getitem__, most):
        yield np.array(part)
