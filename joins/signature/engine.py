"""The default engine: pairs of instances are looked up by what they have in common.

Theory.  The body of a class's conjunctive query `CQ_T` (Hong 2009, section 6.4.4) asks three things
of a pair of instances: which variables bind which nodes on the left, the same on the right, and
which nodes have equal values.  The **pair signature** is just that: the two layouts, which name the
witness shapes, and all pairs of slots with equal values.

    Pairs with one signature have the same tuples of nodes in every class.

For a tuple assigns nodes to meta-variables so that each structural edge is an edge of a shape, and
the ends of each value join have equal values; the signature says both.  So a class is evaluated
once for each signature that ever occurs (`view`), not once for each pair.  The key needs
no more and can have no less: docs/signatures.md has the proof, a counter-example for each part that
might be left out, and the costs.  What differs from pair to pair, times, registration points,
constants and residuals, is no part of the body and is tested afterwards, pair by pair.

One probe:

    candidates   every class is anchored in one of its value joins, the one whose values are rarest;
                 new values are looked up under the anchors' variables, once for both sides; what
                 is outside the anchor's widest window is dropped before it is listed
    signatures   for each candidate pair, all equal pairs of slots, as bits; pairs with equal bits
                 and equal layouts have one signature
    look up      each signature's entry gives tuples of nodes by class
    tuples       windows, order and residuals filter them pair by pair

A pair is a candidate if any class's anchor holds on it, and its entry has every class; so every
tuple is found once, whichever anchor found the pair.

Values are compared by two independent 64-bit hashes.  A collision adds an equal pair, so it can
add tuples but lose none, for the body has no negation; `FanOut` checks the strings of the value
joins of all that is reported.  A residual takes two values that agree in all 128 bits for equal.

Bounds (`limits`): pairs are worked on in slices of `pairs`.  Instances with k equal values on
either side have k * k equal pairs, of which many are named by their value, and a class with too
many tuples on them is stopped before these are found (`skew`).  The view keeps `entries` entries
and `entry_rows` tuples, then finds them again.  A class whose pairs exceed its budget is paired by
a rarer value join or stopped (`pairs`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from joins.budget.pairs import Bounds, Overrun, PairBudget, SkewedPair
from joins.budget.probe import TIME_COLUMNS, Partners, Probe, ProbeRow, ValueJoin
from joins.classes import Classified
from joins.memory.boundnodes import BoundNodes
from joins.memory.durations import CLOSED, UNBOUNDED
from joins.memory.instance import Instance
from joins.memory.ordering import numbered
from joins.memory.remembered import Hashes, HashValues, Remembered, hash_values
from joins.memory.retention import LayoutRetention
from joins.memory.slots import Ints, Layouts
from joins.memory.times import Pairs
from joins.memory.tupletable import ClassTuple, TupleTable
from joins.signature.batch import Batch
from joins.signature.candidates import Candidates
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits
from joins.signature.pair import pair_signatures
from joins.signature.tuples import ClassLimits, TupleColumns, without_failed
from joins.signature.view import SignatureView, ViewEntry
from templates.queryclass import QueryClass, SetKind

__all__ = ["SignatureProcessor"]

_NOT_COMPARED = np.zeros(0, np.uint64)


class SignatureProcessor(Classified):
    """The default engine; the module says how it works, `engines.Processor` what its methods do."""

    def __init__(
        self,
        bounds: Bounds,
        *,
        hashing: HashValues = hash_values,
        spill_directory: Path | None = None,
        limits: SignatureLimits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(limits.memory)
        self._limits = limits
        self.view = SignatureView(self.shapes, self.classes, bounds.pairs_max, limits)
        self._lateness_us = bounds.lateness_us
        self._layouts = Layouts(self.shapes)
        self._retention = LayoutRetention(self.classes.retention, self._layouts)
        self._remembered = Remembered(
            self._layouts,
            self._retention,
            hashing,
            spill_directory,
            limits.memory,
            is_part=bounds.is_part,
        )
        self._candidates = Candidates(
            self.shapes, self._remembered, self._layouts, self.classes, bounds, limits, hashing
        )
        self._bound_nodes = BoundNodes(self.shapes, self._layouts, self._remembered)
        self._hashing = hashing
        self._evicted = 0
        self._index_sweep: Iterator[None] = iter(())
        self._asked: dict[int, ClassLimits] = {}
        self._changes = self.classes.watch()
        self._compared_changes = self.classes.watch_compared()
        self._bounds = bounds
        self._batch = self._begin()

    def _begin(self) -> Batch:
        budget = PairBudget(self.classes, self._bounds, self._bound_nodes.positions)
        return Batch(self._remembered.next_instance, budget)

    @property
    def next_instance(self) -> int:
        """The number that the next instance will get."""
        return self._remembered.next_instance

    def begin_batch(self) -> None:
        """Start a batch: instances that are absorbed from now on are new."""
        self._batch = self._begin()
        if self._compared_changes:
            self._layouts.compare(self.classes.compared(), frozenset(self._compared_changes))
            self._compared_changes.clear()
        self._candidates.follow()

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances; they get the next numbers."""
        if instances.num_rows:
            first, layouts = self._remembered.append(instances)
            self._candidates.absorb(self._batch, instances, first, layouts)

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""
        return [found for table in self.tuples(stratum) for found in table.rows()]

    def probe_columns(self, stratum: int, asked: range | None = None) -> Iterator[TupleColumns]:
        """Yield the tuples of `probe` in columns, some candidate pairs at a time.

        With `asked` the newest instance of each tuple is in that range of new ones.
        """
        new = range(self._batch.first, self.next_instance) if asked is None else asked
        self._follow_classes()
        limits = self._asked.get(stratum)
        if limits is None or not new:
            return
        if limits.has_singles:
            yield self._singles(limits, new)
        for pairs in self._candidates.pairs(self._batch, stratum, new):
            yield from self._pairs(limits, pairs)

    def _follow_classes(self) -> None:
        """Bring the limits of classes in time, by stratum, up to date."""
        for number, query_class in self._changes.take().items():
            limits = self._asked.setdefault(query_class.stratum, ClassLimits())
            limits.make_room(self.classes.last_number)
            if number in self.classes.by_number:
                limits.put(number, query_class, self.classes.window_us(number))
            else:
                limits.drop(number)
        for limits in self._asked.values():
            limits.make_room(self.classes.last_number)

    def _singles(self, limits: ClassLimits, asked: range) -> TupleColumns:
        """Return the tuples of classes of one block."""
        new = np.arange(asked.start, asked.stop)
        distinct, inverse = numbered(self._remembered.take("layout", new))
        layouts = [self._layouts.layouts[number] for number in distinct.tolist()]
        entries = self.view.look_up([(layout, None, ()) for layout in layouts])
        columns = self._still_asked(TupleColumns.of_singles(new, entries, inverse, limits))
        return without_failed(columns, limits, self._remembered)

    def _pairs(self, limits: ClassLimits, pairs: Pairs) -> Iterator[TupleColumns]:
        """Yield the tuples on some pairs, some at a time."""
        shared = self._candidates.shared(self._batch)
        codes, inverse = pair_signatures(
            self._remembered, self._layouts, pairs.left, pairs.right, shared, self._limits
        )
        layouts = self._layouts.layouts
        entries = self.view.look_up([(layouts[a], layouts[b], equal) for a, b, equal in codes])
        self._overrun_skewed(pairs, entries, inverse, limits)
        sizes = np.array([len(entry.classes) for entry in entries], np.int64)[inverse]
        ends = np.cumsum(sizes)
        part = (ends - sizes) // self._limits.tuples
        cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(pairs)]
        for start, stop in pairwise(cuts):
            rows = self._still_open(pairs, np.arange(start, stop), entries, inverse)
            columns = TupleColumns.of_pairs(pairs.keep(rows), entries, inverse[rows], limits)
            columns = self._still_asked(columns)
            yield without_failed(columns, limits, self._remembered)

    def _still_open(
        self, pairs: Pairs, rows: Ints, entries: Sequence[ViewEntry], inverse: Ints
    ) -> Ints:
        """Leave out pairs of which all classes have been closed, before their tuples are listed."""
        closed = self._batch.pair_budget.closed()
        if not closed:
            return rows
        used, which = np.unique(inverse[rows], return_inverse=True)
        classes = [np.unique(entries[i].classes).tolist() for i in used.tolist()]
        ends = [max((closed.get(n, UNBOUNDED) for n in own), default=0) for own in classes]
        sides = (pairs.left[rows], pairs.right[rows])
        docids = np.maximum(*(self._remembered.take("docid", side) for side in sides))
        return rows[docids < np.array(ends, np.int64)[which]]

    def _still_asked(self, columns: TupleColumns) -> TupleColumns:
        """Leave out tuples from the document on from which their class is closed."""
        closed = self._batch.pair_budget.closed()
        if not closed or not len(columns):
            return columns
        numbers = np.sort(np.fromiter(closed, np.int64, len(closed)))
        closed_from = np.array([closed[number] for number in numbers.tolist()], np.int64)
        places = np.minimum(np.searchsorted(numbers, columns.classes), len(numbers) - 1)
        rows = np.flatnonzero(numbers[places] == columns.classes)
        sides = [side for side in (columns.left, columns.right) if side is not None]
        docids = [self._remembered.take("docid", side[columns.pairs[rows]]) for side in sides]
        over = rows[np.max(docids, axis=0) >= closed_from[places[rows]]]
        return columns.keep(np.delete(np.arange(len(columns)), over)) if len(over) else columns

    def _overrun_skewed(
        self, pairs: Pairs, entries: Sequence[ViewEntry], inverse: Ints, limits: ClassLimits
    ) -> None:
        """Stop the uses of classes that see one of some pairs that is skewed."""
        for i in (i for i, entry in enumerate(entries) if len(entry.skewed)):
            for row in np.flatnonzero(inverse == i).tolist():
                both = np.array([pairs.left[row], pairs.right[row]])
                other, docid = sorted(self._remembered.take("docid", both).tolist())
                span_us, classes = int(pairs.span[row]), entries[i].skewed
                held = span_us <= limits.window[classes]
                held &= limits.is_symmetric[classes] | pairs.follows[row]
                for number in classes[held].tolist():
                    has_holders = self.classes.has_holders(number)
                    sides = (int(both[0]), int(both[1])) if has_holders else (0, 0)
                    skewed = SkewedPair(number, docid, other, span_us, sides)
                    self._batch.pair_budget.overrun_by(skewed)

    def tuples(self, stratum: int) -> Iterator[TupleTable]:
        """Yield the tuples of `probe` as they are found, roughly in their documents' order."""
        for columns in self.probe_columns(stratum):
            if len(columns):
                yield columns.table()

    def limit(self, number: int, docid: int, window_us: int = CLOSED) -> None:
        """Leave out, where that saves work, tuples of a class; see `Processor.limit`."""
        self._batch.pair_budget.limit(number, docid, window_us)

    def partners(
        self, probe_row: ProbeRow, query_class: QueryClass, value_join: ValueJoin | None
    ) -> Partners:
        """Return the partners of a probe row in a class by a value join, or by none."""
        asked = query_class.asked()
        if value_join is None:
            return self._candidates.products.partners(probe_row.bound, asked, -UNBOUNDED)
        # Of values that this value join does not compare it is asked whether there are some.
        values = {
            v: self._hashing(pa.array(own))[0] if v in value_join else _NOT_COMPARED
            for v, own in probe_row.values.items()
        }
        return self._candidates.values.partners(values, value_join, asked, -UNBOUNDED)

    def probe_of(self, probe_row: ProbeRow, found: Partners) -> Probe:
        """Return the probe of a probe row with partners."""
        partners = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in found)])
        columns = {name: self._remembered.take(name, partners) for name in TIME_COLUMNS}
        published = np.flatnonzero(columns["depth"] > 0).tolist()
        ids = {i: self._remembered.published_ids[int(partners[i])] for i in published}
        return Probe.visited(probe_row, found, columns, ids, self._lateness_us)

    def numbers(self, instances: Ints) -> Ints:
        """Return the numbers in the whole join of instances of a part."""
        return self._remembered.take("instance", instances)

    def numbered(self, numbers: Ints) -> Ints:
        """Return the instances of a part that have some numbers in the whole join, in order."""
        return self._remembered.numbered(numbers)

    def under(self, variable: int, instances: Ints) -> tuple[Ints, Hashes]:
        """Return all values under a variable, as (index into `instances`, hash of a value)."""
        return self._candidates.values.under(variable, instances)

    def words(self, kind: SetKind, instances: Ints) -> tuple[Ints, Hashes]:
        """Return the words of all sets of a kind, as (index into `instances`, hash of a word)."""
        return self._candidates.similar.words(kind, instances)

    def of_use(self, horizon_us: int) -> Counter[int]:
        """Return how many instances of each shape some class can still use."""
        by_layout = self._remembered.layouts_of_use(horizon_us)
        by_shape: Counter[int] = Counter()
        for layout in by_layout.nonzero()[0].tolist():
            by_shape[self._layouts.layouts[layout].shape] += int(by_layout[layout])
        return by_shape

    def overruns(self) -> list[Overrun]:
        """Return the uses of classes that went over the budget in this batch."""
        return self._batch.pair_budget.overruns

    def skewed_pairs(self) -> set[SkewedPair]:
        """Return the pairs that were found to be skewed in this batch."""
        return self._batch.pair_budget.skewed

    def evict(self, horizon_us: int) -> int:
        """Free instances that no class can use, lazily; return how many went: see `Processor`."""
        sweeps = self._remembered.sweeps
        evicted = self._remembered.evict(horizon_us)
        self._evicted += evicted
        has_swept = self._remembered.sweeps > sweeps
        if evicted or has_swept:
            self._candidates.similar.evict(has_swept=has_swept)
        if has_swept:
            self._index_sweep = self._candidates.values.indexes.sweep(self._remembered.are_there)
        next(self._index_sweep, None)
        if evicted and self.shapes.are_many:
            # An evaluator spells a shape out again that comes again.
            self.shapes.keep(self._layouts.keep(self._remembered.layouts_in_use()))
        return evicted

    def figures(self) -> dict[str, int]:
        """Return figures of the memory and the view; see `Processor.figures`."""
        remembered, indexes = self._remembered, self._candidates.values.indexes
        return {
            "documents": len(remembered),
            "evicted_total": self._evicted,
            "values": len(indexes),
            "shapes": len(self.shapes),
            "layouts": len(self._layouts),
            "signatures": len(self.view),
            "signature_hits_total": self.view.hits,
            "signature_misses_total": self.view.misses,
            "memory_bytes": remembered.memory_bytes + indexes.memory_bytes + self.similar_bytes,
            "spilled_bytes": remembered.spilled_bytes,
        }

    @property
    def similar_bytes(self) -> int:
        """The part of `memory_bytes` that sets of similarity joins and their indexes take."""
        return self._candidates.similar.memory_bytes

    def rows(self, numbers: Iterable[int]) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield the numbers of remembered instances, ascending, with their rows."""
        return self._remembered.rows(numbers)

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        return self._remembered.instances(numbers)
