"""A join whose state and work are spread over shards: the driver's side.

It looks like any other processor.  Behind it,

    absorb    new instances get numbers, are sent to the shards of their values (`routing`), and
              are written there as immutable pieces; nothing else of them is kept
    judge     instances that may go over the budget are counted in all shards (`census`, `ration`)
    probe     every shard with something new gets an order that names its pieces, finds the tuples
              that it owns, and answers with them and with the older instances that they consist of
    evict     pieces in which nothing is of use are deleted, and thin ones written anew

Who carries out orders is not said here: N shards in this process, or tasks of Spark.

Invariants: tuples do not depend on the number of shards, on which process answers, nor on how often
it is asked; an order is given only when all that it names is in the store.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice

import numpy as np
import pyarrow as pa

from joins.anchors import Anchors
from joins.census import Census
from joins.classes import Classified, ClassTuple
from joins.entries import EntryReader
from joins.instance import INSTANCE_SCHEMA, Instance, read_instances
from joins.lumps import Lump, Lumps, merged
from joins.orders import Answer, Catalog, Limit, Order, Piece, Question, Store
from joins.ration import CLOSED, UNBOUNDED, Bounds, Cut, Ration
from joins.remembered import hash_values
from joins.routing import Router
from joins.signatures import SHAPES_MIN
from joins.slots import Ints
from joins.spill import InstanceRows

__all__ = ["Answerer", "ShardedProcessor"]

Edge = tuple[int, int, int, int]

Answerer = Callable[[Sequence[Order]], Iterable[Answer]]
"""Has orders carried out, each by its shard."""

PENDING_ROWS = 20_000
"""Instances that wait to be written while nothing is asked: so many are a piece worth its file."""

PENDING_BYTES = 256 << 20
"""And so many bytes of them wait at most, beside those of one call of `absorb`."""

LOOKED_EVERY = 1_000
"""Instances after which it is looked again at what is of use no more: it costs by the shape."""

THINNED_PIECES = 8
"""Pieces that are written anew at a time, as one, for what is left of them."""

FIRST_ASKED = 16
"""New instances of which shards are asked at once whether they go over the budget, then four times
as many, and so on: the first of them closes a class that explodes, and most do not."""

PIECES_MAX = 24
"""Pieces of a shard; then the small ones among them are merged, so a row is merged a few times."""


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
        self._census = Census(self.classes, pairs_max)
        self._ration = Ration(self.classes, Bounds(0, pairs_max))
        self._reader = EntryReader(hash_values)
        self._shapes: dict[str, int] = {}
        self._next_shape = 0
        self._shapes_max = SHAPES_MIN
        self._edges: dict[int, Sequence[Edge]] = {}
        self._catalog = ""
        self._catalogs = 0
        self._version = (-1, -1)
        self._pieces: dict[int, list[Piece]] = defaultdict(list)
        self._last: dict[int, int] = {}
        self._figures: dict[int, Mapping[str, int]] = {}
        self._pending: dict[int, list[pa.Table]] = defaultdict(list)
        self._pending_rows = 0
        self._pending_bytes = 0
        self._evicted = 0
        self._written = 0
        self._horizon_us = -(1 << 62)
        self._lumps = Lumps()
        self._lump_of: dict[str, Lump] = {}
        self._thin: set[str] = set()
        self._looked_at = 0
        self._first_new = 1
        self._new = InstanceRows()
        self._read: dict[int, Instance] = {}
        self.next_instance = 1
        self.routed_rows = 0

    def add_shapes(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn witness shapes by their edges."""
        for shape, edges in shapes.items():
            if shape not in self._shapes:
                number = self._shapes[shape] = self._next_shape
                self._next_shape += 1
                self._edges[number] = edges
                self.classes.reaches.add_shape(number, edges)
                self._router.add_shape(number, edges)
                self._reader.add_shape(number, edges)
                self._census.add_shape(number, edges)
                self._catalog = ""

    def shape_number(self, shape: str) -> int | None:
        """Return the number of a witness shape, or None while it is not known."""
        return self._shapes.get(shape)

    def begin_batch(self) -> None:
        """Start a batch: what is absorbed from now on is new."""
        self._first_new = self.next_instance
        self._new = InstanceRows()
        self._read = {}
        self._census.begin_batch()
        self._ration.begin_batch()
        version = self.classes.version, self.classes.reaches.version
        has_changed = self._version != version
        if has_changed:
            self._version = version
            self._router.follow(self.classes.by_number)
            pairs = self.classes.value_pairs()
            self._reader.want({v for _, left, right, *_ in pairs for v in (left, right)})
            self._catalog = ""
            self._anchors.sample.look_soon()
        is_time = has_changed or self._anchors.sample.is_due()
        if is_time and self._anchors.choose(self._first_new):
            self._catalog = ""

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances; they get the next numbers."""
        size, first = instances.num_rows, self.next_instance
        if not size:
            return
        numbers = np.arange(first, first + size)
        rows = instances.add_column(0, INSTANCE_SCHEMA.field("instance"), pa.array(numbers))
        rows = rows.select(INSTANCE_SCHEMA.names).combine_chunks()
        self._new.append(first, rows)
        self._lumps.append(Lump.of(rows))
        self.next_instance += size
        entries = self._reader.read(rows)
        self._anchors.sample.note(size, entries.variables, entries.hashes)
        self._census.note(rows, entries)
        shapes = rows.column("shape").to_numpy().astype(np.int64)
        anchored = entries.under(self._anchors.variables())
        for shard, there in enumerate(self._router.route(numbers, shapes, anchored)):
            if len(there):
                self._pending[shard].append(rows.take(pa.array(there)))
                self._pending_rows += len(there)
                self._pending_bytes += self._pending[shard][-1].nbytes
        is_much = self._pending_rows > PENDING_ROWS * self._shards
        if is_much or self._pending_bytes > PENDING_BYTES:
            self._write()

    def _write(self) -> None:
        """Write what has been routed as pieces."""
        for shard, tables in self._pending.items():
            rows = pa.concat_tables(tables)
            numbers = rows.column("instance")
            name = f"{shard}-{numbers[0].as_py()}-{self._written}"
            self._store.put(name, rows)
            self._pieces[shard].append(
                Piece(name, numbers[0].as_py(), numbers[-1].as_py(), len(rows))
            )
            self._last[shard] = numbers[-1].as_py()
            self._lump_of[name] = Lump.of(rows)
        self._written += 1
        self.routed_rows += self._pending_rows
        self._pending.clear()
        self._pending_rows = 0
        self._pending_bytes = 0

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""
        if self._first_new == self.next_instance:
            return []
        self._write()
        self._judge(stratum)
        limits = [Limit(n, *each) for n, own in self._ration.limits().items() for each in own]
        busy = [s for s, p in self._pieces.items() if p and p[-1].last >= self._first_new]
        answers = self._ask(
            [self._order(shard, stratum=stratum, limits=tuple(limits)) for shard in sorted(busy)]
        )
        for answer in answers:
            for pair in answer.heavy:
                self._ration.cut_heavy(pair)
        return [found for answer in answers for found in _rows(answer)]

    def _judge(self, stratum: int) -> None:
        """Cut uses that new instances take over the budget, before any shard pairs these."""
        suspects = self._census.suspects(stratum)
        asked = FIRST_ASKED
        while some := list(islice(suspects, asked)):
            asked *= 4
            questions = [
                Question(suspect.visitor, number, kinds)
                for suspect in some
                for number in suspect.classes
                if (kinds := tuple(self._ration.kinds(number, suspect.visitor.docid)))
            ]
            for question, counts in zip(questions, self._count(questions), strict=True):
                self._ration.judge_counted(
                    question.query_class, question.visitor.docid, question.kinds, counts
                )

    def _count(self, questions: list[Question]) -> Iterator[list[Ints]]:
        """Yield the answers to questions, put together from those of all shards."""
        shards = sorted(shard for shard, pieces in self._pieces.items() if pieces)
        orders = [self._order(shard, questions=tuple(questions)) for shard in shards]
        answers = self._ask(orders) if questions else []
        for counts in zip(*(answer.counts for answer in answers), strict=True):
            yield [np.sum(parts, axis=0) for parts in zip(*counts, strict=True)]

    def tuples(self, stratum: int) -> list[ClassTuple]:
        """Return what `probe` does, in the order of their newest instances."""
        return sorted(self.probe(stratum), key=lambda found: max(found.left, found.right or 0))

    def limit(self, number: int, docid: int, window_us: int = CLOSED) -> None:
        """Leave out tuples of a class in the strata that are still to be probed."""
        self._ration.limit(number, docid, window_us)

    def cuts(self) -> list[Cut]:
        """Return the uses of classes that went over the budget in this batch."""
        return self._ration.cuts

    def of_use(self, horizon_us: int) -> dict[int, int]:
        """Return how many instances of each shape some class can still use, or some more."""
        of_use = merged(lump.of_use(self.classes.reaches, horizon_us) for lump in self._lumps)
        return {shape: count for shape, (count, _) in of_use.by_shape.items()}

    def _order(
        self,
        shard: int,
        *,
        stratum: int | None = None,
        limits: tuple[Limit, ...] = (),
        questions: tuple[Question, ...] = (),
        wanted: tuple[int, ...] = (),
    ) -> Order:
        pieces = self._pieces[shard]
        return Order(
            shard=shard,
            catalog=self._current_catalog(),
            pieces=tuple(pieces),
            last=self._last[shard],
            first_new=self._first_new,
            horizon_us=self._horizon_us,
            stratum=stratum,
            limits=limits,
            questions=questions,
            wanted=wanted,
            merged=tuple(self._to_merge(pieces)),
        )

    def _to_merge(self, pieces: list[Piece]) -> list[Piece]:
        """Return neighbouring pieces of which half is of no use, or the newest of too many."""
        for is_thin, group in groupby(pieces, lambda piece: piece.name in self._thin):
            if is_thin:
                return list(group)[:THINNED_PIECES]
        return _newest(pieces) if len(pieces) > PIECES_MAX else []

    def _current_catalog(self) -> str:
        """Return the name of what shards have to know now, written if it is not yet."""
        if not self._catalog:
            if self._catalogs:
                self._store.remove([f"catalog-{self._catalogs}"])
            self._catalogs += 1
            self._catalog = f"catalog-{self._catalogs}"
            classes = self.classes
            uses = {n: (c, classes.window_us(n)) for n, c in classes.by_number.items()}
            reaches = {n: classes.reach_us(n) for n in classes.by_number}
            catalog = Catalog(self._edges, uses, self._anchors.epochs, reaches)
            self._store.put_catalog(self._catalog, catalog)
        return self._catalog

    def _ask(self, orders: list[Order]) -> list[Answer]:
        """Have orders carried out; take note of what is read and merged."""
        answers = list(self._answer(orders)) if orders else []
        for order, answer in zip(orders, answers, strict=True):
            assert order.shard == answer.shard
            self._read.update({instance.instance: instance for instance in answer.instances})
            self._figures[answer.shard] = answer.figures
            if answer.piece is not None:
                pieces = self._pieces[order.shard]
                start = pieces.index(order.merged[0])
                pieces[start : start + len(order.merged)] = [answer.piece]
                lump = merged(self._lump_of[piece.name] for piece in order.merged)
                self._lump_of[answer.piece.name] = lump.of_use(
                    self.classes.reaches, self._horizon_us
                )
                self._remove(order.merged)
        return answers

    def evict(self, horizon_us: int) -> int:
        """Delete pieces in which no class can use any instance; return how many of those went."""
        self._horizon_us = horizon_us
        self._census.evict(horizon_us - self.classes.reaches.widest())
        reaches, is_any_gone = self.classes.reaches, False
        if self.next_instance < self._looked_at + LOOKED_EVERY:
            return 0
        self._looked_at = self.next_instance
        self._thin.clear()
        for shard, pieces in self._pieces.items():
            of_use = [self._lump_of[p.name].of_use(reaches, horizon_us) for p in pieces]
            dead = [piece for piece, left in zip(pieces, of_use, strict=True) if not left.by_shape]
            self._pieces[shard] = [piece for piece in pieces if piece not in dead]
            self._remove(dead)
            sizes = zip(pieces, map(len, of_use), strict=True)
            self._thin |= {piece.name for piece, left in sizes if 0 < 2 * left <= piece.rows}
            is_any_gone |= bool(dead)
        if is_any_gone:
            self._forget_epochs()
        gone = self._lumps.evict(reaches, horizon_us)
        self._evicted += gone
        if gone and len(self._shapes) > self._shapes_max:
            self._forget_shapes()
            self._shapes_max = max(SHAPES_MIN, 2 * len(self._shapes))
        return gone

    def _forget_shapes(self) -> None:
        """Forget the shapes that nothing remembered has: an evaluator spells them out again."""
        waiting = (Lump.of(table) for tables in self._pending.values() for table in tables)
        lumps = (*self._lumps, *self._lump_of.values(), *waiting)
        used = {shape for lump in lumps for shape in lump.by_shape}
        gone = self._edges.keys() - used
        self._shapes = {name: n for name, n in self._shapes.items() if n not in gone}
        for shape in gone:
            del self._edges[shape]
        for each in (self._router, self._reader, self._census, self.classes.reaches):
            each.forget_shapes(gone)
        self._catalog = ""

    def _remove(self, pieces: Iterable[Piece]) -> None:
        names = [piece.name for piece in pieces]
        self._store.remove(names)
        for name in names:
            del self._lump_of[name]

    def _forget_epochs(self) -> None:
        alive = [pieces[0].first for pieces in self._pieces.values() if pieces]
        alive += [tables[0]["instance"][0].as_py() for tables in self._pending.values()]
        if self._anchors.forget(min(alive, default=self.next_instance)):
            self._catalog = ""

    def figures(self) -> dict[str, int]:
        """Return what is remembered, in numbers; see `Processor.figures`.

        Documents and shapes count once; what shards take, as they said last, is added up.
        """
        of_shards = Counter[str]()
        for figures in self._figures.values():
            of_shards.update(figures)
        return {
            **of_shards,
            "documents": len(self._lumps),
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
            shards = sorted(shard for shard, pieces in self._pieces.items() if pieces)
            self._ask([self._order(shard, wanted=missing) for shard in shards])
            found.update({number: self._read[number] for number in missing})
        return found


def _rows(answer: Answer) -> Iterator[ClassTuple]:
    """Yield an answer's tuples one by one."""
    tuples = answer.tuples
    columns = (tuples.classes, tuples.left, tuples.right, tuples.spans, tuples.which)
    for number, left, right, span, i in zip(*map(np.ndarray.tolist, columns), strict=True):
        yield ClassTuple(number, left, right or None, span, tuples.nodes[i])


def _newest(pieces: list[Piece]) -> list[Piece]:
    """Return the newest pieces, back to one that is larger than all after it twice over."""
    start = len(pieces) - 2
    rows = pieces[-1].rows + pieces[-2].rows
    while start > 0 and pieces[start - 1].rows < 2 * rows:
        start -= 1
        rows += pieces[start].rows
    return pieces[start:]
