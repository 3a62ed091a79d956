"""A join whose state and work are spread over shards: the driver's side.

It looks like any other processor.  Behind it,

    absorb    new instances get numbers, are sent to the shards of their values (`routing`), and
              are written there as immutable pieces; nothing else of them is kept
    judge     instances that may go over the budget are counted in all shards (`sketch`, `pairs`)
    probe     every shard with something new gets an order that names its pieces, finds the tuples
              that it owns, and answers with them and with the older instances that they consist of;
              of a batch with very many tuples for one sub-batch after the other (`sub_batches`)
    evict     pieces in which nothing is of use are deleted, and thin ones written anew

Who carries out orders is not said here: N shards in this process, or tasks of Spark.

Invariants: tuples do not depend on the number of shards, on which process answers, nor on how often
it is asked; an order is given only when all that it names is in the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa

from joins.budget.entries import EntryReader
from joins.budget.pairs import CLOSED, UNBOUNDED, Bounds, Overrun, PairBudget
from joins.budget.repeats import Repeats
from joins.budget.sketch import FrequencySketch
from joins.budget.sub_batches import SubBatches
from joins.classes import Classified, ClassTuple
from joins.memory.column import Column
from joins.memory.instance import INSTANCE_SCHEMA, Instance, read_instances
from joins.memory.remembered import hash_values
from joins.memory.slots import Ints
from joins.memory.spill import InstanceRows
from joins.shards.anchors import Anchors
from joins.shards.orders import SHAPE_SCHEMA, Answer, Catalog, Limit, Order, Question, Store, Tuples
from joins.shards.pieces import Pieces
from joins.shards.retained import RetainedCount, RetainedCounts, merged
from joins.shards.routing import Router
from joins.signature.engine import SHAPES_MIN, TUPLES_MAX

__all__ = ["Answerer", "ShardedProcessor"]

Edge = tuple[int, int, int, int]

Answerer = Callable[[Sequence[Order]], Iterable[Answer]]
"""Has orders carried out, each by its shard."""

LOOKED_EVERY = 1_000
"""Instances after which it is looked again at what is of use no more: it costs by the shape."""

FIRST_ASKED = 16
"""New instances of which shards are asked at once whether they go over the budget, then four times
as many, and so on: the first of them closes a class that explodes, and most do not."""


class ShardedProcessor(Classified):
    """See the module; the interface is `processor.Processor`."""

    def __init__(
        self, shards: int, store: Store, answer: Answerer, *, pairs_max: int = UNBOUNDED
    ) -> None:
        super().__init__()
        self._shards = shards
        self._store = store
        self._answer = answer
        self._anchors = Anchors(self.classes)
        self._router = Router(shards)
        self._sketch = FrequencySketch(self.classes, pairs_max)
        self._repeats = Repeats()
        self._sub_batches = SubBatches(self.classes, self._sketch, self._repeats)
        self._pair_budget = PairBudget(self.classes, Bounds(0, pairs_max))
        self._reader = EntryReader(hash_values)
        self._shapes: dict[str, int] = {}
        self._next_shape = 0
        self._shapes_max = SHAPES_MIN
        self._edges: dict[int, Sequence[Edge]] = {}
        # What all shards have to know, by kind: under which name it is in the store, if it is yet.
        self._names: dict[str, str] = {}
        self._outdated = {"shapes", "catalog"}
        self._notices = 0
        self._version = (-1, -1)
        self._pieces = Pieces(store, self.classes.retention)
        self._figures: dict[int, Mapping[str, int]] = {}
        self._evicted = 0
        self._horizon_us = -(1 << 62)
        self._retained = RetainedCounts()
        self._looked_at = self._shortened = 0
        self._first_new = 1
        self._new = InstanceRows()
        self._new_docids = Column(np.int64, self._first_new)
        self._read: dict[int, Instance] = {}
        self.next_instance = 1

    @property
    def routed_rows(self) -> int:
        """Rows that shards have been sent, of an instance one for each shard that it goes to."""
        return self._pieces.written_rows

    def add_shapes(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn witness shapes by their edges."""
        for shape, edges in shapes.items():
            if shape not in self._shapes:
                number = self._shapes[shape] = self._next_shape
                self._next_shape += 1
                self._edges[number] = edges
                self.classes.retention.add_shape(number, edges)
                self._router.add_shape(number, edges)
                self._reader.add_shape(number, edges)
                self._sketch.add_shape(number, edges)
                self._outdated.add("shapes")

    def shape_number(self, shape: str) -> int | None:
        """Return the number of a witness shape, or None while it is not known."""
        return self._shapes.get(shape)

    def begin_batch(self) -> None:
        """Start a batch: what is absorbed from now on is new."""
        self._first_new = self.next_instance
        self._new = InstanceRows()
        self._new_docids.drop(self._first_new)
        self._read = {}
        self._sketch.begin_batch()
        self._repeats.begin_batch()
        self._pair_budget.begin_batch()
        version = self.classes.version, self.classes.retention.version
        has_changed = self._version != version
        if has_changed:
            self._version = version
            self._router.follow(self.classes.by_number)
            pairs = self.classes.value_pairs()
            self._reader.want({v for _, left, right, *_ in pairs for v in (left, right)})
            self._outdated.add("catalog")
            self._anchors.sample.look_soon()
        is_time = has_changed or self._anchors.sample.is_due()
        if is_time and self._anchors.choose(self._first_new):
            self._outdated.add("catalog")

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances; they get the next numbers."""
        size, first = instances.num_rows, self.next_instance
        if not size:
            return
        numbers = np.arange(first, first + size)
        rows = instances.add_column(0, INSTANCE_SCHEMA.field("instance"), pa.array(numbers))
        rows = rows.select(INSTANCE_SCHEMA.names).combine_chunks()
        self._new.append(first, rows)
        self._new_docids.append(rows.column("docid").to_numpy())
        self._retained.append(RetainedCount.of(rows))
        self.next_instance += size
        entries = self._reader.read(rows)
        self._anchors.sample.note(size, entries.variables, entries.hashes)
        if self._sketch.is_needed:
            self._sketch.note(rows, entries)
            self._repeats.note(entries)
        shapes = rows.column("shape").to_numpy().astype(np.int64)
        anchored = entries.under(self._anchors.variables())
        for shard, there in enumerate(self._router.route(numbers, shapes, anchored)):
            if len(there):
                self._pieces.append(shard, rows.take(pa.array(there)))
        self._pieces.write_much(self._shards)

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""
        return [found for part in self._probe(stratum) for found in part.rows()]

    def _probe(self, stratum: int) -> Iterator[Tuples]:
        """Yield the tuples of a stratum, sub-batch by sub-batch of the new instances."""
        new = range(self._first_new, self.next_instance)
        if not new:
            return
        self._pieces.write()
        self._judge(stratum)
        for sub_batch in self._sub_batches.of(stratum, new):
            yield self._tuples_of(stratum, None if sub_batch == new else sub_batch)

    def _tuples_of(self, stratum: int, asked: range | None) -> Tuples:
        limits = [Limit(n, *each) for n, own in self._pair_budget.limits().items() for each in own]
        shards = self._pieces.shards()
        busy = [shard for shard in shards if self._pieces.last(shard) >= self._first_new]
        answers = self._ask(
            [
                self._order(shard, stratum=stratum, asked=asked, limits=tuple(limits))
                for shard in busy
            ]
        )
        for answer in answers:
            for pair in answer.skewed:
                self._pair_budget.overrun_by(pair)
        return Tuples.concat([answer.tuples for answer in answers])

    def _judge(self, stratum: int) -> None:
        """Stop uses that new instances take over the budget, before any shard pairs these."""
        suspects = self._sketch.suspects(stratum)
        asked = FIRST_ASKED
        while some := list(islice(suspects, asked)):
            asked *= 4
            questions = [
                Question(suspect.probe_row, number, kinds)
                for suspect in some
                for number in suspect.classes
                if (kinds := tuple(self._pair_budget.kinds(number, suspect.probe_row.docid)))
            ]
            for question, counts in zip(questions, self._count(questions), strict=True):
                self._pair_budget.judge_counted(
                    question.query_class, question.probe_row.docid, question.kinds, counts
                )

    def _count(self, questions: list[Question]) -> Iterator[list[Ints]]:
        """Yield the answers to questions, put together from those of all shards."""
        shards = self._pieces.shards()
        orders = [self._order(shard, questions=tuple(questions)) for shard in shards]
        answers = self._ask(orders) if questions else []
        for counts in zip(*(answer.counts for answer in answers), strict=True):
            yield [np.sum(parts, axis=0) for parts in zip(*counts, strict=True)]

    def tuples(self, stratum: int) -> Iterator[ClassTuple]:
        """Yield the same in the order of their newest instances.

        A class that is closed meanwhile (`limit`) has no further ones from its last document on.
        """
        for found in self._probe(stratum):
            order = np.argsort(np.maximum(found.left, found.right), kind="stable")
            for start in range(0, len(order), TUPLES_MAX):
                yield from self._still_asked(found.take(order[start : start + TUPLES_MAX])).rows()

    def _still_asked(self, tuples: Tuples) -> Tuples:
        newest = np.maximum(tuples.left, tuples.right) - self._new_docids.origin
        docids, asked = self._new_docids.values[newest], np.ones(len(newest), np.bool_)
        for number, closed_from in self._pair_budget.closed().items():
            asked &= (tuples.classes != number) | (docids < closed_from)
        return tuples if asked.all() else tuples.take(np.flatnonzero(asked))

    def limit(self, number: int, docid: int, window_us: int = CLOSED) -> None:
        """Leave out tuples of a class from now on in this batch."""
        self._pair_budget.limit(number, docid, window_us)

    def overruns(self) -> list[Overrun]:
        """Return the uses of classes that went over the budget in this batch."""
        return self._pair_budget.overruns

    def of_use(self, horizon_us: int) -> dict[int, int]:
        """Return how many instances of each shape some class can still use, or some more."""
        of_use = merged(
            retained.of_use(self.classes.retention, horizon_us) for retained in self._retained
        )
        return {shape: count for shape, (count, _) in of_use.by_shape.items()}

    def _order(
        self,
        shard: int,
        *,
        stratum: int | None = None,
        asked: range | None = None,
        limits: tuple[Limit, ...] = (),
        questions: tuple[Question, ...] = (),
        wanted: tuple[int, ...] = (),
    ) -> Order:
        pieces = self._pieces
        return Order(
            shard=shard,
            shapes=self._current("shapes", self._put_shapes),
            catalog=self._current("catalog", self._put_catalog),
            pieces=pieces.of(shard),
            last=pieces.last(shard),
            first_new=self._first_new,
            horizon_us=self._horizon_us,
            stratum=stratum,
            asked=asked,
            limits=limits,
            questions=questions,
            wanted=wanted,
            merged=pieces.to_merge(shard),
        )

    def _current(self, kind: str, put: Callable[[str], None]) -> str:
        """Return the name of what all shards have to know, written if it has changed."""
        if kind in self._outdated:
            self._outdated.remove(kind)
            self._store.remove([self._names[kind]] if kind in self._names else [])
            self._notices += 1
            self._names[kind] = f"{kind}-{self._notices}"
            put(self._names[kind])
        return self._names[kind]

    def _put_shapes(self, name: str) -> None:
        edges = map(list, self._edges.values())
        self._store.put(name, pa.table([[*self._edges], [*edges]], SHAPE_SCHEMA))

    def _put_catalog(self, name: str) -> None:
        classes = self.classes
        uses = {n: (c, classes.window_us(n)) for n, c in classes.by_number.items()}
        retention = {n: classes.retention_us(n) for n in classes.by_number}
        self._store.put_catalog(name, Catalog(uses, self._anchors.epochs, retention))

    def _ask(self, orders: list[Order]) -> list[Answer]:
        """Have orders carried out; take note of what is read and merged."""
        answers = list(self._answer(orders)) if orders else []
        for order, answer in zip(orders, answers, strict=True):
            assert order.shard == answer.shard
            self._read.update({instance.instance: instance for instance in answer.instances})
            self._figures[answer.shard] = answer.figures
            if answer.piece is not None:
                self._pieces.replace(order.shard, order.merged, answer.piece, self._horizon_us)
        return answers

    def evict(self, horizon_us: int) -> int:
        """Delete pieces in which no class can use any instance; return how many of those went."""
        self._horizon_us = horizon_us
        self._sketch.evict(horizon_us - self.classes.retention.widest())
        retention = self.classes.retention
        is_soon = self.next_instance < self._looked_at + LOOKED_EVERY
        if is_soon and self._shortened == retention.shortened:
            return 0
        self._looked_at, self._shortened = self.next_instance, retention.shortened
        if self._pieces.evict(horizon_us):
            self._forget_epochs()
        gone = self._retained.evict(retention, horizon_us)
        self._evicted += gone
        if gone and len(self._shapes) > self._shapes_max:
            self._forget_shapes()
            self._shapes_max = max(SHAPES_MIN, 2 * len(self._shapes))
        return gone

    def _forget_shapes(self) -> None:
        """Forget the shapes that nothing remembered has: an evaluator spells them out again."""
        used = {shape for retained in self._retained for shape in retained.by_shape}
        gone = self._edges.keys() - used - self._pieces.shapes()
        self._shapes = {name: n for name, n in self._shapes.items() if n not in gone}
        for shape in gone:
            del self._edges[shape]
        for each in (self._router, self._reader, self._sketch, self.classes.retention):
            each.forget_shapes(gone)
        self._outdated.add("shapes")

    def _forget_epochs(self) -> None:
        if self._anchors.forget(self._pieces.first(self.next_instance)):
            self._outdated.add("catalog")

    def figures(self) -> dict[str, int]:
        """Return what is remembered, in numbers; see `Processor.figures`.

        Documents and shapes count once; what shards take, as they said last, is added up.
        """
        of_shards = Counter[str]()
        for figures in self._figures.values():
            of_shards.update(figures)
        return {
            **of_shards,
            "documents": len(self._retained),
            "evicted_total": self._evicted,
            "shapes": len(self._shapes),
        }

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        wanted = set(numbers)
        found = {number: self._read[number] for number in wanted & self._read.keys()}
        new = [number for number in wanted if number >= self._first_new]
        for some, rows in self._new.take(new):
            found.update(zip(some, read_instances(rows), strict=True))
        missing = tuple(sorted(wanted - found.keys()))
        if missing:
            self._ask([self._order(shard, wanted=missing) for shard in self._pieces.shards()])
            found.update({number: self._read[number] for number in missing})
        return found
