"""Documents as decisions read their blocks: from columns to columns, all streams together.

Most elements of runs are a block's: one way in which a document fits it, with nothing asked beside
the pattern and constants.  Such a tuple has no other one to be equal to.  So the rows of its stream
are the columns of its documents, with the nodes and values that are carried; of constants the boxes
say which documents these are.

What is not so goes the way of all tuples (`collector`); `docs/common-streams.md` says what, and why
both ways come to the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from broker.documents.sub_batches import in_sub_batches
from broker.matching.boxes.columns import Flags, Ints
from broker.matching.boxes.points import Points
from broker.matching.costs.accounting import Accounting
from broker.matching.costs.commoncounts import Counted
from broker.matching.hits import Hits
from broker.matching.instances import UNNUMBERED, TupleShapes
from broker.matching.usegroups import UseGroup, group_of
from broker.matching.uses import Use
from joins import ranges
from templates.clause import Clause

__all__ = ["BlockRows", "BlockTuples", "BlocksByData", "PlainClasses"]

_WHOLE = ("docid", "depth", "docid_min", "docid_max", "start_us", "end_us", "watermark_us")
"""The columns of whole numbers that a row has from its document."""


Readers = tuple[str, ...]
"""The statements of a group."""

Expand = Callable[[Points], Iterator[Hits]]
"""Gives tuples with the groups whose boxes have them."""


def _is_plain(clause: Clause) -> bool:
    """Return whether a clause hands on a block whose pattern and box say all that is asked."""
    return (
        bool(clause.stream)
        and not clause.is_common
        and not clause.deciding
        and len(clause.sources) == 1
        and clause.sources[0].below is None
        and not clause.sources[0].instants
        and not (clause.residuals or clause.tests or clause.similar or clause.tested)
    )


class PlainClasses:
    """The classes that are read as plain blocks alone, each with the groups that read it."""

    def __init__(self) -> None:
        self._groups: dict[int, Counter[UseGroup]] = {}
        self._others: dict[int, int] = defaultdict(int)

    def add(self, use: Use, group: UseGroup | None, times: int = 1) -> None:
        """Add a use of a class, and its group if it has one; without one, so many alike."""
        if group is None or not _is_plain(use.clause):
            self._others[use.query_class] += times
        else:
            self._groups.setdefault(use.query_class, Counter())[group] += 1

    def remove(self, use: Use, group: UseGroup | None, times: int = 1) -> None:
        """Undo so many of what `add` did."""
        number = use.query_class
        if group is None or not _is_plain(use.clause):
            self._others[number] -= times
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


def _is_block_by_data(clause: Clause) -> bool:
    """Return whether a clause hands on a block once for each of the data that it is found by."""
    return len(clause.sources) == 1 and clause.sources[0].below is None and clause.is_by_data


class BlocksByData:
    """The classes of blocks that are handed on by data, each with how many ask.

    `changes` grows where a class comes or goes.
    """

    def __init__(self) -> None:
        self.changes = 0
        self.clauses: dict[int, Clause] = {}
        self._uses: Counter[int] = Counter()

    def add(self, uses: Sequence[Use]) -> None:
        """Add uses of one clause."""
        if not _is_block_by_data(uses[0].clause):
            return
        number = uses[0].query_class
        if number not in self.clauses:
            self.clauses[number] = uses[0].clause
            self.changes += 1
        self._uses[number] += len(uses)

    def remove(self, uses: Sequence[Use]) -> None:
        """Undo one `add` for each of some uses, of any clauses."""
        own = (each for each in uses if each.query_class in self.clauses)
        for number in [each.query_class for each in own if _is_block_by_data(each.clause)]:
            self._uses[number] -= 1
            if not self._uses[number]:
                del self._uses[number], self.clauses[number]
                self.changes += 1

    def __len__(self) -> int:
        return self._uses.total()


@dataclass(frozen=True)
class BlockTuples:
    """Tuples of plain blocks: rows of `points`, which of some clauses each is of, and its values.

    `at` says where the nodes of all terms are, of one tuple behind the other; those of a tuple
    begin at `starts`, the carried ones first.  `are_valued` tells whose values are asked for.
    """

    points: Points
    rows: Ints
    clauses: Sequence[Clause]
    of: Ints
    starts: Ints
    at: Ints
    are_valued: Flags

    @classmethod
    def made(cls, points: Points, rows: Ints, clauses: Sequence[Clause], of: Ints) -> BlockTuples:
        """Return some tuples of clauses."""
        terms = [dict.fromkeys((*each.carried, *each.places)) for each in clauses]
        metas = [
            each.places[term] for each, own in zip(clauses, terms, strict=True) for term in own
        ]
        sizes = np.array([len(own) for own in terms], np.int64)
        table, counts = points.tuples, sizes[of]
        # The places of a clause's terms stand behind those of the clauses before.
        which = ranges((np.cumsum(sizes) - sizes)[of], counts)
        asked = np.array(metas, np.int64)[which]
        has_value = [
            term in each.valued for each, own in zip(clauses, terms, strict=True) for term in own
        ]
        first = np.repeat(table.starts[table.patterns[rows]], counts)
        operands = np.repeat(points.operands.starts[points.left[rows]], counts)
        at = operands + table.flat_nodes[first + asked]
        starts = np.cumsum(counts) - counts
        return cls(points, rows, clauses, of, starts, at, np.array(has_value, np.bool_)[which])

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, some: Ints) -> BlockTuples:
        """Return some of the tuples."""
        if len(some) == len(self):
            return self
        return BlockTuples.made(self.points, self.rows[some], self.clauses, self.of[some])

    @cached_property
    def nbytes(self) -> Ints:
        """The bytes of the values that are asked for of each."""
        before = np.zeros(len(self.at) + 1, np.int64)
        np.cumsum(self.points.operands.sizes[self.at] * self.are_valued, out=before[1:])
        return np.diff(before[self.starts], append=before[-1])

    def table(self, shapes: Ints) -> pa.Table:
        """Return the rows of `UNNUMBERED`, with the shape of each clause."""
        operands = self.points.operands
        places, size = self.points.left[self.rows], len(self)
        carried = np.array([len(each.carried) for each in self.clauses], np.int64)[self.of]
        lists = np.zeros(size + 1, np.int32)
        np.cumsum(1 + carried, out=lists[1:])
        # The root stands first: node 0, without a value.
        is_root = np.zeros(lists[-1], np.bool_)
        is_root[lists[:-1]] = True
        at = np.zeros(lists[-1], np.int64)
        own = ranges(self.starts, carried)
        at[~is_root] = self.at[own]
        has_value = ~is_root
        has_value[~is_root] = self.are_valued[own]
        nodes = np.where(is_root, 0, operands.nodes[at]) if len(operands.nodes) else at
        values = operands.values.take(pa.array(at, mask=~has_value))
        leaves = operands.leaves[operands.leaf_starts[places]]
        streams = pa.array([each.stream for each in self.clauses], pa.string())
        columns = {
            **{name: operands.column(name)[places] for name in _WHOLE},
            "stream": streams.take(pa.array(self.of)),
            "key": pa.repeat(pa.scalar(""), size),
            "match_id": operands.rows.column("match_id").take(pa.array(places)).combine_chunks(),
            "shape": shapes[self.of],
            "leaves": pa.ListArray.from_arrays(np.arange(size + 1, dtype=np.int32), leaves),
            "nodes": pa.ListArray.from_arrays(lists, nodes.astype(np.int32)),
            "vals": pa.ListArray.from_arrays(lists, values),
        }
        arrays = [pa.array(columns[field.name], field.type) for field in UNNUMBERED]
        return pa.Table.from_arrays(arrays, schema=UNNUMBERED)


class _PlainClass:
    """The tuples of a class, and the groups that read it; `readers` are the statements of each."""

    def __init__(self, rows: Ints, groups: Sequence[UseGroup]) -> None:
        self.rows = rows
        self.groups = groups
        self.readers: list[Readers] = [tuple(group.columns.queries) for group in groups]

    @property
    def has_boxes(self) -> bool:
        """Whether groups may have some of the tuples alone."""
        return any(group.first.clause.box for group in self.groups)

    def is_worth(self, least: int) -> bool:
        """Return whether it has so many tuples for each group, if these have only some of them."""
        return len(self.rows) >= least * len(self.groups) or not self.has_boxes


class BlockRows:
    """The tuples of plain blocks of one stratum in a batch; `shapes_of` gives their shapes.

    Taken are those of classes whose statements have `least` or more at once, and so many for each
    group where boxes tell whose they are: of fewer they cost less together with all others.
    """

    def __init__(self, accounts: Accounting, shapes_of: TupleShapes, *, least: int) -> None:
        self._accounts = accounts
        self._shapes_of = shapes_of
        self._least = least
        self._found: BlockTuples | None = None

    def take(self, points: Points, plain: PlainClasses, expand: Expand) -> Points:
        """Take the tuples of classes that are plain blocks, once; return the others.

        The points are all of the stratum: then a document has one tuple of a stream, or more that
        stand among them.
        """
        order = points.classes.argsort(kind="stable")
        numbers, starts, sizes = np.unique(
            points.classes[order], return_index=True, return_counts=True
        )
        several = _with_several(points.tuples.left[order], starts)
        found = [
            _PlainClass(order[start : start + size], plain.groups(number))
            for number, start, size, has_several in zip(
                *(each.tolist() for each in (numbers, starts, sizes, several)), strict=True
            )
            if not has_several
        ]
        taken = self._taken([each for each in found if each.groups])
        if not taken:
            return points
        are_others = np.ones(len(points), np.bool_)
        for each in taken:
            are_others[each.rows] = False
        self._add(points, [*_in_boxes(points, taken, expand)])
        return points.take(np.flatnonzero(are_others))

    def _taken(self, found: Sequence[_PlainClass]) -> Sequence[_PlainClass]:
        """Return the classes of which all statements have enough tuples."""
        sizes: Counter[Readers] = Counter()
        for each in found:
            for own in each.readers:
                sizes[own] += len(each.rows)
        least = self._least
        worth = (each for each in found if each.is_worth(least))
        return [each for each in worth if all(sizes[own] >= least for own in each.readers)]

    def _add(self, points: Points, taken: Sequence[_PlainClass]) -> None:
        """Add tuples of classes, each counted for whoever is not stopped before it."""
        if not taken:
            return
        groups = [group for each in taken for group in each.groups]
        # Streams that the same statements read are counted together.
        names = [readers for each in taken for readers in each.readers]
        readers: dict[Readers, UseGroup] = {}
        for name, group in zip(names, groups, strict=True):
            readers.setdefault(name, group)
        numbers = {each: i for i, each in enumerate(readers)}
        sizes = [len(each.rows) for each in taken for _ in each.groups]
        rows = np.concatenate([each.rows for each in taken for _ in each.groups])
        of = np.repeat(np.arange(len(groups)), sizes)
        after = np.array([group.first.asked.point for group in groups], np.int64)
        is_taken = points.docids_min[rows] > after[of]
        read_by = np.repeat([numbers[each] for each in names], sizes)
        if stopped := self._accounts.stopped():
            for i, group in enumerate(readers.values()):
                own = np.flatnonzero(read_by == i)
                nothing, docids = np.zeros((len(own), 0), np.int64), points.docids[rows[own]]
                is_taken[own] &= group.columns.are_open(stopped, nothing, docids)
        rows, of, read_by = rows[is_taken], of[is_taken], read_by[is_taken]
        if not len(rows):
            return
        clauses = [group.first.clause for group in groups]
        self._found = BlockTuples.made(points, rows, clauses, of)
        for i, group in enumerate(readers.values()):
            if len(own := np.flatnonzero(read_by == i)):
                self._count(self._found, group, own)

    def _count(self, found: BlockTuples, group: UseGroup, own: Ints) -> None:
        """Count some tuples for a group, and others with the same statements."""
        rows = found.rows[own]
        # A document is not handed on by a decision that reads it: it costs its bytes alone.
        weights = np.zeros((len(rows), 3), np.int64)
        weights[:, 0], weights[:, 2] = 1, found.nbytes[own]
        nothing = np.zeros((len(rows), 0), np.int64)
        where = found.points.docids[rows], found.points.docids_max[rows], weights
        step = self._accounts.step
        self._accounts.hand_on(Counted(group.stream, group.columns, nothing, *where, step))

    def tables(self, characters_max: int) -> Iterator[pa.Table]:
        """Yield rows of `UNNUMBERED`; a table has so many characters."""
        if (found := self._found) is None:
            return
        handed_on = [(each.stream, each.tuple_variables) for each in found.clauses]
        shapes = np.array(self._shapes_of(*zip(*handed_on, strict=True)), np.int64)
        for part in _in_parts(found.nbytes, characters_max):
            yield found.take(part).table(shapes)


def _in_boxes(
    points: Points, taken: Sequence[_PlainClass], expand: Expand
) -> Iterator[_PlainClass]:
    """Yield classes as they are, or with the tuples that are in the box of a group, by group."""
    yield from (each for each in taken if not each.has_boxes)
    boxed = [each.rows for each in taken if each.has_boxes]
    if not boxed:
        return
    rows = np.concatenate(boxed)
    for hits in expand(points.take(rows)):
        are_true = hits.are_true()
        for number, use in enumerate(hits.uses):
            own = np.flatnonzero(are_true & (hits.which == number))
            if len(own):
                yield _PlainClass(rows[hits.rows[own]], [group_of(use)])


def _with_several(documents: Ints, starts: Ints) -> Flags:
    """Return which of some ranges, which begin at `starts`, have a document twice."""
    is_again = np.zeros(len(documents), np.bool_)
    is_again[1:] = np.diff(documents) <= 0
    is_again[starts] = False
    return np.logical_or.reduceat(is_again, starts)


def _in_parts(sizes: Ints, most: int) -> Iterator[Ints]:
    """Yield the places of sizes in order, each part with so much."""
    if sizes.sum() <= most:
        yield np.arange(len(sizes))
        return
    for part in in_sub_batches(range(len(sizes)), sizes.__getitem__, most):
        yield np.array(part)
