"""The driver of a join whose state and work are spread over shards.

It has the interface of every processor.  Behind that,

    absorb    new instances get numbers and go, as immutable pieces, to the shards of their values
              (`routing`); the driver keeps nothing else of them
    judge     instances that may go over the budget are counted in all shards (`sketch`, `judging`)
    probe     every shard with something new gets an order that names its pieces.  It finds the
              tuples whose home it is, and answers with them and with their older instances.  A
              batch with very many tuples is probed in sub-batches (`sub_batches`)
    evict     pieces without a useful instance are deleted, and thin ones written anew

An `Answerer` has orders carried out: by N shards in this process, or by tasks of Spark.

Invariants: tuples do not depend on the number of shards, on which process answers, nor on how often
it is asked; an order is given only when all that it names is in the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from joins.budget.entries import EntryReader
from joins.budget.pairs import Bounds, Overrun
from joins.budget.repeats import Repeats
from joins.budget.sketch import FrequencySketch
from joins.budget.sub_batches import SubBatches
from joins.classes import Classified
from joins.memory.durations import CLOSED, UNBOUNDED
from joins.memory.instance import INSTANCE_SCHEMA, Instance, read_instances
from joins.memory.remembered import hash_values
from joins.memory.retention import needed_from
from joins.memory.tupletable import ClassTuple, TupleTable
from joins.shards.anchors import Anchors
from joins.shards.batch import RoutedBatch
from joins.shards.judging import SuspectJudge
from joins.shards.limits import DEFAULT_SHARD_LIMITS, ShardLimits
from joins.shards.orders import (
    SHAPE_SCHEMA,
    Answer,
    Asked,
    ClassCatalog,
    ClassLimit,
    LeftOut,
    Order,
    Question,
    Store,
)
from joins.shards.pieces import Pieces
from joins.shards.retained import RetainedCount, RetainedCounts, merged
from joins.shards.routing import Router

__all__ = ["Answerer", "ShardedProcessor"]

_TRIES = 4
"""How often what is remembered may be taken on, each time by a process that has none of it."""

Answerer = Callable[[Sequence[Order]], Iterable[Answer]]
"""Has orders carried out, each by its shard."""


class ShardedProcessor(Classified):
    """A join over shards; the module says how it works, `engines.Processor` what its methods do."""

    def __init__(
        self,
        shards: int,
        store: Store,
        answer: Answerer,
        *,
        pairs_max: int = UNBOUNDED,
        limits: ShardLimits = DEFAULT_SHARD_LIMITS,
        can_finish: bool = False,
    ) -> None:
        super().__init__(limits.shard.memory)
        self.can_finish = can_finish
        self.asked: Asked | None = None
        self._readers: object = None
        self._limits = limits
        self._shards = shards
        self._store = store
        self._answer = answer
        self._anchors = Anchors(self.classes, limits.shard)
        self._router = Router(shards, self.shapes)
        self._sketch = FrequencySketch(self.shapes, self.classes, pairs_max)
        self._repeats = Repeats()
        self._sub_batches = SubBatches(
            self.classes,
            self._sketch,
            self._repeats,
            pair_tuples=limits.pair_tuples,
            listed_tuples=limits.listed_tuples,
        )
        self._bounds = Bounds(0, pairs_max)
        self._reader = EntryReader(self.shapes, hash_values)
        # What all shards have to know, by kind: under which name it is in the store, if it is yet.
        self._names: dict[str, str] = {}
        self._outdated = {"catalog"}
        self._shapes_version = -1
        self._notices = 0
        self._version = (-1, -1)
        self._pieces = Pieces(store, self.classes.retention, limits)
        self._figures: dict[int, Mapping[str, int]] = {}
        self._evicted = 0
        self._horizon_us = -UNBOUNDED
        self._retained = RetainedCounts(limits.counted_instances)
        self._looked_at = self._shortened = self._unasked = 0
        self.next_instance = 1
        self._batch = self._begin()

    def _begin(self) -> RoutedBatch:
        own = self.classes, self._bounds, self.shapes, self._limits.shard.memory
        return RoutedBatch(self.next_instance, *own)

    @property
    def routed_rows(self) -> int:
        """Rows that shards have been sent, of an instance one for each shard that it goes to."""
        return self._pieces.written_rows

    def finish(self, asked: Asked) -> None:
        """Have shards finish tuples in this batch."""
        assert self.can_finish
        self.asked = asked
        if asked.readers is not self._readers:
            self._readers = asked.readers
            self._outdated.add("readers")

    def keep(self, value: object) -> str:
        """Keep a value for all shards; return its name."""
        self._notices += 1
        name = f"kept-{self._notices}"
        self._store.put_value(name, value)
        return name

    def forget(self, names: Sequence[str]) -> None:
        """Forget values that no order of this batch names."""
        self._store.remove(names)

    def begin_batch(self) -> None:
        """Start a batch: instances that are absorbed from now on are new."""
        self.asked = None
        self._batch = self._begin()
        version = self.classes.version, self.classes.retention.version
        has_changed = self._version != version
        if has_changed:
            self._version = version
            self._router.follow(self.classes.by_number, self.classes.thresholds)
            pairs = self.classes.value_pairs()
            self._reader.want({v for _, left, right, *_ in pairs for v in (left, right)})
            self._outdated.add("catalog")
            self._anchors.sample.look_soon()
        is_time = has_changed or self._anchors.sample.is_due()
        if is_time and self._anchors.choose(self._batch.first):
            self._outdated.add("catalog")

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances; they get the next numbers."""
        size, first = instances.num_rows, self.next_instance
        if not size:
            return
        numbers = np.arange(first, first + size)
        rows = instances.add_column(0, INSTANCE_SCHEMA.field("instance"), pa.array(numbers))
        rows = rows.select(INSTANCE_SCHEMA.names).combine_chunks()
        self._batch.add(first, rows)
        self._retained.append(RetainedCount.of(rows))
        self.next_instance += size
        entries = self._reader.read(rows)
        self._anchors.sample.note(size, entries.variables, entries.hashes)
        if self._sketch.is_needed:
            self._batch.counted.append(self._sketch.note(rows, entries))
            self._repeats.note(entries, self._batch.most)
        anchored = entries.under(self._anchors.variables())
        places = self._router.route(rows, anchored)
        if len(places) > 1 or len(places[0]) < size:
            rows = rows.take(pa.array(np.concatenate(places)))
        self._pieces.append(rows, list(map(len, places)))
        self._unasked += rows.num_rows
        self._pieces.write_much(self._shards)

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""
        return [found for part in self._probe(stratum) for found in part.rows()]

    def _probe(self, stratum: int) -> Iterator[TupleTable]:
        """Yield the tuples of a stratum, sub-batch by sub-batch of the new instances."""
        batch = self._batch
        new = range(batch.first, self.next_instance)
        if not new:
            return
        self._pieces.write()
        self._judge(stratum)
        for sub_batch in self._sub_batches.of(stratum, new, batch.counted, batch.most):
            left = self._finished(stratum) if sub_batch == new else None
            asked = None if sub_batch == new else sub_batch
            yield self._tuples_of(stratum, asked) if left is None else left

    def _finished(self, stratum: int) -> TupleTable | None:
        """Have shards finish tuples; return the others, None where what they made does not hold."""
        asked, budget = self.asked, self._batch.pair_budget
        if asked is None or stratum > 0 or budget.limits() or budget.overruns:
            return None
        answers = self._answers(stratum, None, self._current("readers", self._put_readers))
        if budget.overruns or not asked.take([answer.finished for answer in answers]):
            return None
        return TupleTable.concat([answer.tuples for answer in answers])

    def _tuples_of(self, stratum: int, asked: range | None) -> TupleTable:
        return TupleTable.concat([answer.tuples for answer in self._answers(stratum, asked)])

    def _answers(self, stratum: int, asked: range | None, readers: str = "") -> list[Answer]:
        limited = self._batch.pair_budget.limits()
        limits = tuple(ClassLimit(number, *each) for number, own in limited.items() for each in own)
        shards = self._pieces.shards()
        busy = [shard for shard in shards if self._pieces.last(shard) >= self._batch.first]
        answers = self._ask(
            [
                self._order(
                    shard,
                    stratum=stratum,
                    asked=asked,
                    limits=limits,
                    left_out=tuple(self._batch.left_out),
                    readers=readers,
                )
                for shard in busy
            ]
        )
        self._unasked = 0
        for answer in answers:
            for pair in answer.skewed:
                self._batch.pair_budget.overrun_by(pair)
        return answers

    def _judge(self, stratum: int) -> None:
        """Stop uses that new instances take over the budget, before any shard pairs these."""
        batch = self._batch
        judge = SuspectJudge(self.classes, batch.pair_budget, self._ask_all, self._limits)
        batch.left_out = [*judge.judge(self._sketch.suspects(stratum, batch.counted))]

    def _ask_all(self, questions: Sequence[Question]) -> list[Answer]:
        shards = self._pieces.shards()
        return self._ask([self._order(shard, questions=tuple(questions)) for shard in shards])

    def tuples(self, stratum: int) -> Iterator[TupleTable]:
        """Yield the tuples of `probe` in the order of their newest instances.

        A class that is closed meanwhile (`limit`) has no further tuples from its last document on.
        """
        for found in self._probe(stratum):
            order = np.argsort(np.maximum(found.left, found.right), kind="stable")
            for start in range(0, len(order), self._limits.shard.tuples):
                some = found.take(order[start : start + self._limits.shard.tuples])
                yield self._still_asked(some)

    def _still_asked(self, tuples: TupleTable) -> TupleTable:
        docids = self._batch.docids(np.maximum(tuples.left, tuples.right))
        asked = np.ones(len(docids), np.bool_)
        for number, closed_from in self._batch.pair_budget.closed().items():
            asked &= (tuples.classes != number) | (docids < closed_from)
        return tuples if asked.all() else tuples.take(np.flatnonzero(asked))

    def limit(self, number: int, docid: int, window_us: int = CLOSED) -> None:
        """Leave out tuples of a class from now on in this batch."""
        self._batch.pair_budget.limit(number, docid, window_us)

    def overruns(self) -> list[Overrun]:
        """Return the uses of classes that went over the budget in this batch."""
        return self._batch.pair_budget.overruns

    def of_use(self, horizon_us: int) -> dict[int, int]:
        """Return how many instances of each shape some class can still use, or somewhat more."""
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
        limits: tuple[ClassLimit, ...] = (),
        left_out: tuple[LeftOut, ...] = (),
        questions: tuple[Question, ...] = (),
        wanted: tuple[int, ...] = (),
        readers: str = "",
        rows_max: int | None = None,
    ) -> Order:
        pieces = self._pieces
        if self._shapes_version != self.shapes.version:
            self._shapes_version = self.shapes.version
            self._outdated.add("shapes")
        return Order(
            shard=shard,
            shapes=self._current("shapes", self._put_shapes),
            catalog=self._current("catalog", self._put_catalog),
            pieces=pieces.of(shard),
            last=pieces.last(shard),
            first_new=self._batch.first,
            horizon_us=self._horizon_us,
            stratum=stratum,
            asked=asked,
            limits=limits,
            left_out=left_out,
            questions=questions,
            wanted=wanted,
            merged=pieces.to_merge(shard),
            readers=readers,
            rows_max=rows_max,
        )

    def _current(self, kind: str, put: Callable[[str], None]) -> str:
        """Return the name of the current shapes, catalog or readers; write what has changed."""
        if kind in self._outdated:
            self._outdated.remove(kind)
            self._store.remove([self._names[kind]] if kind in self._names else [])
            self._notices += 1
            self._names[kind] = f"{kind}-{self._notices}"
            put(self._names[kind])
        return self._names[kind]

    def _put_shapes(self, name: str) -> None:
        edges = [[*map(list, self.shapes[number].edges)] for number in self.shapes]
        self._store.put(name, pa.table([[*self.shapes], edges], SHAPE_SCHEMA))

    def _put_readers(self, name: str) -> None:
        self._store.put_value(name, self._readers)

    def _put_catalog(self, name: str) -> None:
        classes = self.classes
        uses = {n: (c, classes.window_us(n)) for n, c in classes.by_number.items()}
        retention = {n: us for n in classes.by_number if (us := classes.retained_us(n)) is not None}
        thresholds = {n: t for n in classes.by_number if (t := classes.thresholds(n))}
        held = frozenset(filter(classes.has_holders, classes.by_number))
        epochs = dict(self._anchors.epochs)
        self._store.put_value(name, ClassCatalog(uses, epochs, retention, thresholds, held))

    def _ask(self, orders: list[Order]) -> list[Answer]:
        """Have orders carried out; note the instances that were read and the merged pieces."""
        answers = list(self._answer(orders)) if orders else []
        self._batch.read.add(answer.instances for answer in answers)
        for order, answer in zip(orders, answers, strict=True):
            assert order.shard == answer.shard
            self._figures[answer.shard] = answer.figures
            if answer.piece is not None:
                self._pieces.replace(order.shard, order.merged, answer.piece, self._horizon_us)
        return answers

    def evict(self, horizon_us: int) -> int:
        """Delete pieces without a useful instance; return how many instances went."""
        self._horizon_us = horizon_us
        self.asked = None  # which knows who holds this join
        if self._unasked > self._limits.unasked_rows * self._shards:
            self._have_taken_on()
        retention = self.classes.retention
        self._sketch.evict(needed_from(retention.widest(), horizon_us))
        is_soon = self.next_instance < self._looked_at + self._limits.looked_every
        if is_soon and self._shortened == retention.shortened:
            return 0
        self._looked_at, self._shortened = self.next_instance, retention.shortened
        if self._pieces.evict(horizon_us):
            self._forget_epochs()
        gone = self._retained.evict(retention, horizon_us)
        self._evicted += gone
        if gone and self.shapes.are_many:
            used = {shape for retained in self._retained for shape in retained.by_shape}
            # An evaluator spells a shape out again that comes again.
            self.shapes.keep(used | self._pieces.shapes())
        return gone

    def warm_up(self) -> None:
        """Have every process that may be asked next take on all that is remembered."""
        self._have_taken_on(self._limits.warm_rounds)

    def _have_taken_on(self, rounds: int = 1) -> None:
        """Have shards take on what they have not been asked about, some instances at a time.

        Whichever process is asked may lack what others have.  So that is done when nothing was
        lacking in so many rounds, one behind the other, or processes are lost again and again.
        """
        self._unasked = 0
        self._pieces.write()
        shards, rows_max = self._pieces.shards(), self._limits.taken_on_rows
        tries = rounds + _TRIES * (1 + self._pieces.written_rows // rows_max)
        complete = 0
        while complete < rounds and tries > 0:
            answers = self._ask([self._order(shard, rows_max=rows_max) for shard in shards])
            complete = 0 if any(answer.is_behind for answer in answers) else complete + 1
            shards.reverse()  # so that others are asked for them
            tries -= 1

    def _forget_epochs(self) -> None:
        if self._anchors.forget(self._pieces.first(self.next_instance)):
            self._outdated.add("catalog")

    def figures(self) -> dict[str, int]:
        """Return figures of the memory; see `Processor.figures`.

        Documents and shapes count once; the latest figures of all shards are added up.
        """
        of_shards = Counter[str]()
        for figures in self._figures.values():
            of_shards.update(figures)
        return {
            **of_shards,
            "documents": len(self._retained),
            "evicted_total": self._evicted,
            "shapes": len(self.shapes),
        }

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        found: dict[int, Instance] = {}
        for some, rows in self.rows(numbers):
            found.update(zip(some, read_instances(rows, some), strict=True))
        return found

    def rows(self, numbers: Iterable[int]) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield the numbers of remembered instances, ascending, with their rows."""
        wanted = np.unique(np.fromiter(numbers, np.int64))
        if len(missing := self._batch.read.missing(wanted[wanted < self._batch.first])):
            # What the batch before handed on last may not have been written for anyone yet.
            self._pieces.write()
            asked = tuple(missing.tolist())
            self._ask([self._order(shard, wanted=asked) for shard in self._pieces.shards()])
        yield from self._batch.rows.of(wanted)
