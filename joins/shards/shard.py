"""One shard of a join: a processor on the instances that go to it, and the tuples whose home it is.

A shard's state is a function of its latest order.  It keeps its instances from order to order and
reads only the missing ones; where it is ahead of an order, as when a task is repeated, it begins
anew.  So any process may carry out any order, any number of times.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.budget.pairs import Bounds, SkewedPair
from joins.budget.probe import Probe, ProbeRow, ValueJoin
from joins.memory.durations import UNBOUNDED
from joins.memory.instance import INSTANCE_SCHEMA, rows_in_sub_batches
from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.memory.tupletable import TupleTable
from joins.shards.homes import Homes
from joins.shards.orders import (
    Answer,
    ClassCatalog,
    ClassLimit,
    Finisher,
    LeftOut,
    Order,
    Piece,
    Question,
    Store,
)
from joins.shards.routing import is_product, shard_of_class
from joins.signature.engine import SignatureProcessor
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits
from templates.queryclass import QueryClass
from xpath_eval.shape import Edge

__all__ = ["Shard"]


class _AskedFor(NamedTuple):
    """How a class is asked for; `holder` is 1 where the driver knows whose instances are."""

    window_us: int
    retention_us: int | None
    least: tuple[float, ...]
    holder: int


class Shard:
    """Shard `number` of `shards`; its pieces are in `store`, and `finisher` finishes tuples."""

    def __init__(
        self,
        number: int,
        shards: int,
        store: Store,
        *,
        lateness_us: int,
        pairs_max: int = UNBOUNDED,
        limits: SignatureLimits = DEFAULT_LIMITS,
        finisher: Finisher | None = None,
    ) -> None:
        self._limits = limits
        self._finisher = finisher
        self._readers_name = ""
        self._number = number
        self._shards = shards
        self._store = store
        self._bounds = Bounds(lateness_us, pairs_max, is_part=True)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._processor = SignatureProcessor(self._bounds, limits=self._limits)
        self._homes = Homes(self._number, self._shards, self._processor)
        # What the driver calls the shapes that the processor knows.
        self._named_shapes: dict[int, int] = {}
        self._processor.shapes.watch(partial(_forget, self._named_shapes))
        self._shapes_name = self._catalog_name = ""
        self._shapes: dict[int, list[Edge]] = {}
        self._catalog: ClassCatalog
        # What the driver calls a class, and the processor; and how it is asked for.
        self._classes: dict[int, tuple[int, _AskedFor]] = {}
        self._last = 0
        self._first_new = 0

    def answer(self, order: Order) -> Answer:
        """Carry out an order."""
        if self._last > order.last or self._first_new > order.first_new:
            self._begin_anew()
        if self._shapes_name != order.shapes:
            shapes = self._store.get(order.shapes).to_pylist()
            self._shapes = {row["shape"]: [*map(tuple, row["edges"])] for row in shapes}
            self._shapes_name = order.shapes
        if self._catalog_name != order.catalog:
            self._learn(self._store.get_value(order.catalog))
            self._catalog_name = order.catalog
        is_behind = not self._take_on(order)
        counts = [self._count(each) for each in order.questions if not each.is_listed]
        probes = [self._listed(each) for each in order.questions if each.is_listed]
        self._limit(order.limits)
        tuples = self._probe(order)
        tuples = replace(tuples, left=self._named(tuples.left), right=self._named(tuples.right))
        tuples = _without(tuples, order.left_out)
        tuples, finished = self._finished(tuples, order.readers)
        instances = self._instances(tuples, order)
        piece = self._merge(order) if order.merged else None
        return Answer(
            self._number,
            tuples,
            instances,
            self._processor.figures(),
            counts=counts,
            probes=probes,
            skewed=self._skewed(),
            piece=piece,
            finished=finished,
            is_behind=is_behind,
        )

    def _finished(self, tuples: TupleTable, readers: str) -> tuple[TupleTable, object | None]:
        """Return the tuples that are left to the driver, and what the others come to."""
        if not readers:
            return tuples, None
        assert self._finisher is not None
        if self._readers_name != readers:
            self._finisher.learn(self._store.get_value(readers), self._store.get_value)
            self._readers_name = readers
        return self._finisher.finish(tuples, self._rows)

    def _rows(self, numbers: Iterable[int]) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield rows of instances, with the driver's numbers."""
        own = self._processor.numbered(np.unique(np.array([*numbers], np.int64)))
        for some, rows in self._processor.rows(own.tolist()):
            yield self._processor.numbers(np.array(some, np.int64)).tolist(), rows

    def _named(self, instances: Ints) -> Ints:
        """Return the driver's numbers of instances; 0, which is none, stays 0."""
        numbers = np.zeros(len(instances), np.int64)
        there = instances > 0
        numbers[there] = self._processor.numbers(instances[there])
        return numbers

    def _learn(self, catalog: ClassCatalog) -> None:
        self._catalog = catalog
        classes = {number: query_class for number, (query_class, _) in catalog.classes.items()}
        self._homes.follow(classes, catalog.epochs)
        before, self._classes = self._classes, {}
        for number, (query_class, window_us) in catalog.classes.items():
            if is_product(query_class) and not self._is_here(query_class):
                continue
            asked = _AskedFor(
                window_us,
                catalog.retention.get(number),
                catalog.thresholds.get(number, ()),
                int(number in catalog.held),
            )
            # A window changes by adding the new one first: the class and its number stay.
            if number in before and before[number][1] == asked:
                self._classes[number] = before.pop(number)
            else:
                own = self._processor.add(
                    query_class, window_us, least=asked.least, holder=asked.holder
                )
                if asked.retention_us is not None:
                    self._processor.retain(own, asked.retention_us)
                self._classes[number] = own, asked
        for own, asked in before.values():
            if asked.retention_us is not None:
                self._processor.release(own, asked.retention_us)
            self._processor.remove(own, asked.window_us, least=asked.least, holder=asked.holder)

    def _is_here(self, product: QueryClass) -> bool:
        return shard_of_class(product, self._shards) == self._number

    def _take_on(self, order: Order) -> bool:
        """Take on the missing instances: first those of earlier batches, then the new ones.

        Return False where the order has them taken on in parts, and some are left.
        """
        left = order.rows_max
        for old in self._missing(order, self._last + 1, order.first_new):
            some = old if left is None else old.slice(0, left)
            if len(some):
                self._processor.begin_batch()
                self._absorb(some)
                self._last = some["instance"][-1].as_py()
            if len(some) < len(old):
                return False
            left = None if left is None else left - len(some)
        if self._first_new != order.first_new:
            # Before the new ones come: late as they may be, they are still to be paired.
            self._processor.evict(order.horizon_us)
            self._processor.begin_batch()
            self._first_new = order.first_new
        for new in self._missing(order, max(self._last + 1, order.first_new), order.last + 1):
            self._absorb(new)
        self._last = order.last
        return True

    def _missing(self, order: Order, first: int, stop: int) -> Iterator[pa.Table]:
        """Yield the instances from `first` on and before `stop`: all at once may be too many."""
        for piece in order.pieces:
            if piece.last >= first and piece.first < stop:
                rows = self._store.get(piece.name)
                numbers = rows.column("instance")
                is_missing = pc.and_(pc.greater_equal(numbers, first), pc.less(numbers, stop))
                if pc.any(is_missing).as_py():
                    yield rows.filter(is_missing)

    def _absorb(self, rows: pa.Table) -> None:
        for part in rows_in_sub_batches(rows, self._limits.memory.sub_batch_bytes):
            self._absorb_part(part)

    def _absorb_part(self, rows: pa.Table) -> None:
        shapes = rows.column("shape").combine_chunks().dictionary_encode()
        own = pa.array(map(self._own_shape, shapes.dictionary.to_pylist()), pa.int32())
        at = rows.schema.get_field_index("shape")
        rows = rows.set_column(at, INSTANCE_SCHEMA.field("shape"), own.take(shapes.indices))
        self._processor.absorb(rows)

    def _own_shape(self, shape: int) -> int:
        """Return the processor's number of a shape, which it may have forgotten meanwhile."""
        self._processor.add_shapes({str(shape): self._shapes[shape]})
        number = self._processor.shape_number(str(shape))
        assert number is not None
        self._named_shapes[number] = shape
        return number

    def _count(self, question: Question) -> list[Ints]:
        """Return how many pairs with instances that are counted here a probe row makes."""
        (query_class, _) = self._catalog.classes[question.query_class]
        is_symmetric = query_class.is_symmetric
        probes = (probe for probe, _ in self._probes(question))
        return [probe.count(question.kinds, is_symmetric=is_symmetric) for probe in probes]

    def _listed(self, question: Question) -> list[Probe]:
        """Return these pairs, of which some use may count them, with the driver's numbers."""
        window_us = max(kind.window_us for kind in question.kinds)
        listed = []
        for probe, partners in self._probes(question):
            named = np.append(self._processor.numbers(partners), question.probe_row.instance)
            are_near = probe.is_counted & (probe.met.span <= window_us)
            listed.append(probe.some(are_near).named(named))
        return listed

    def _probes(self, question: Question) -> Iterator[tuple[Probe, Ints]]:
        """Yield what a probe row makes by each value join, and its partners in their order."""
        probe_row, number = question.probe_row, question.query_class
        (query_class, _) = self._catalog.classes[number]
        joins: list[ValueJoin | None] = [*query_class.value_pairs()] or [None]
        for value_join in joins:
            found = [
                (partners[self._are_counted(probe_row, number, partners, not is_right)], is_right)
                for partners, is_right in self._processor.partners(
                    probe_row, query_class, value_join
                )
            ]
            partners = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in found)])
            yield self._processor.probe_of(probe_row, found), partners

    def _are_counted(
        self, probe_row: ProbeRow, number: int, partners: Ints, is_right: bool
    ) -> Flags:
        are_others: Flags = self._processor.numbers(partners) != probe_row.instance
        return are_others & self._homes.counted(number, partners, is_right=is_right)

    def _limit(self, limits: Iterable[ClassLimit]) -> None:
        """Tell the processor within which windows classes are still asked for."""
        for number, docid, window_us in limits:
            if number in self._classes:
                self._processor.limit(self._classes[number][0], docid, window_us)

    def _skewed(self) -> list[SkewedPair]:
        """Return the skewed pairs of this batch, with classes as the driver numbers them."""
        names = {own: number for number, (own, _) in self._classes.items()}
        found = []
        for pair in sorted(self._processor.skewed_pairs()):
            left, right = self._named(np.array(pair.sides)).tolist()
            number = names[pair.query_class]
            found.append(pair._replace(query_class=number, sides=(left, right)))
        return found

    def _probe(self, order: Order) -> TupleTable:
        """Return the tuples of a stratum that belong to this shard."""
        asked = self._asked(order)
        if order.stratum is None or asked == range(0):
            return TupleTable.concat([])
        return TupleTable.concat(
            [self._are_home(each) for each in self._found(order.stratum, asked)]
        )

    def _asked(self, order: Order) -> range | None:
        """Return the range of asked instances, in the processor's numbers; some are elsewhere."""
        if order.asked is None:
            return None
        own = self._processor.numbered(np.array(order.asked, np.int64))
        return range(int(own[0]), int(own[-1]) + 1) if len(own) else range(0)

    def _are_home(self, tuples: TupleTable) -> TupleTable:
        are_home = self._homes.are_home(tuples.classes, tuples.left, tuples.right)
        return tuples.take(np.flatnonzero(are_home)).compact()

    def _found(self, stratum: int, asked: range | None) -> Iterator[TupleTable]:
        """Yield the tuples that the processor finds, with the driver's numbers of classes."""
        names = np.zeros(1 + max((own for own, _ in self._classes.values()), default=0), np.int64)
        for number, (own, _) in self._classes.items():
            names[own] = number
        for columns in self._processor.probe_columns(stratum, asked):
            if len(columns):
                table = columns.table()
                yield replace(table, classes=names[table.classes])

    def _instances(self, tuples: TupleTable, order: Order) -> pa.Table:
        """Return the instances that the driver has not, with the driver's numbers."""
        wanted = np.array(order.wanted, np.int64)
        numbers = np.concatenate([tuples.instances(), wanted])
        found = [
            self._in_driver(some, rows)
            for some, rows in self._rows(numbers[numbers < order.first_new].tolist())
        ]
        return pa.Table.from_batches(found, INSTANCE_SCHEMA)

    def _in_driver(self, numbers: list[int], rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of instances with the driver's numbers of them, and of their shapes."""
        own = rows.column("shape").to_pylist()
        named = {"instance": numbers, "shape": [self._named_shapes[each] for each in own]}
        columns = [
            pa.array(named[field.name], field.type) if field.name in named else rows[field.name]
            for field in INSTANCE_SCHEMA
        ]
        return pa.RecordBatch.from_arrays(columns, schema=INSTANCE_SCHEMA)

    def _merge(self, order: Order) -> Piece:
        """Make one piece of several neighbours, without useless instances, under a new name."""
        rows = pa.concat_tables(
            self._of_use(self._store.get(piece.name), order.horizon_us) for piece in order.merged
        )
        piece = Piece(
            name=f"{self._number}-{order.merged[0].first}-{uuid.uuid4().hex}",
            first=order.merged[0].first,
            last=order.merged[-1].last,
            rows=rows.num_rows,
        )
        self._store.put(piece.name, rows)
        return piece

    def _of_use(self, rows: pa.Table, horizon_us: int) -> pa.Table:
        """Return the instances that some class can still use here."""
        shapes, which = np.unique(rows.column("shape").to_numpy(), return_inverse=True)
        retention = self._processor.classes.retention
        own = map(self._own_shape, shapes.tolist())
        oldest_us = np.array([retention.needed_from(each, horizon_us) for each in own], np.int64)
        return rows.filter(pa.array(rows.column("end_us").to_numpy() >= oldest_us[which]))


def _forget(named: dict[int, int], gone: Set[int]) -> None:
    """Forget the names of shapes."""
    for shape in gone:
        named.pop(shape, None)


def _without(tuples: TupleTable, left_out: Iterable[LeftOut]) -> TupleTable:
    """Return the tuples that are not of pairs left out."""
    newest = np.maximum(tuples.left, tuples.right)
    wanted = np.ones(len(newest), np.bool_)
    for number, instance, left, right in left_out:
        rows = np.flatnonzero((newest == instance) & (tuples.classes == number))
        # One side is the instance, so the other one and which it is tell the pair.
        others = tuples.left[rows] - tuples.right[rows]
        wanted[rows] = ~np.isin(others, left - right)
    return tuples if wanted.all() else tuples.take(np.flatnonzero(wanted))
