"""A join with decisions among its classes.

Rows that the join absorbs and a decision reads are taken by the way.  To the join a class whose
tuples are decided is a class of a stratum that is never probed: it has a number, and keeps the
instances that its tuples are made of.  Nothing else of any engine is touched, so decisions stand
over every one of them, in one process or in shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import pyarrow as pa

from joins.budget.pairs import Overrun
from joins.classes import Retaining
from joins.engines import Processor
from joins.memory.durations import CLOSED
from joins.memory.instance import Instance, read_instances
from joins.memory.shapes import Edge
from joins.memory.tupletable import ClassTuple, Position, TupleTable
from joins.sequences.clock import Clock
from joins.sequences.conditions import RowTest, values_of
from joins.sequences.evaluation import DecidedTuple, Evaluation
from templates.decision import Decided, Decision
from templates.queryclass import QueryClass
from templates.template import Template

__all__ = ["DecidingProcessor"]

NEVER = -1
"""The stratum of classes that no engine probes."""


class DecidingProcessor:
    """A join, `inner`, and the decisions over its tuples; see `engines.Processor`."""

    def __init__(self, inner: Processor, lateness_us: int) -> None:
        self.inner = inner
        self._lateness_us = lateness_us
        self._clock = Clock()
        self._uses: dict[int, int] = {}
        self._classes: dict[int, QueryClass] = {}
        self._evaluations: dict[Decision, Evaluation] = {}
        self._decided: dict[Decision, list[DecidedTuple]] = {}
        self._read_by: dict[str, list[Evaluation]] = {}
        self._tests: dict[int, RowTest] = {}
        self._has_changed = False

    # -- classes -------------------------------------------------------------------------------

    @property
    def strata(self) -> list[int]:
        """The strata in use, lowest first."""
        own = {each.stratum for each in self._classes.values()}
        return sorted(own.union(each for each in self.inner.strata if each != NEVER))

    def add(self, query_class: QueryClass, window_us: int, point: int = 0) -> int:
        """Add one use of a class, from a registration point on; return the class's number."""
        decided = query_class.decided
        if decided is None:
            return self.inner.add(query_class, window_us, point)
        number = self.inner.add(replace(query_class, stratum=NEVER), window_us, point)
        self.inner.retain(number, window_us)
        self._uses[number] = self._uses.get(number, 0) + 1
        self._classes[number] = query_class
        self._tests[number] = RowTest(decided.asked)
        self._has_changed = True
        return number

    def remove(self, number: int, window_us: int, point: int = 0) -> None:
        """Undo one `add`."""
        if number in self._classes:
            self.inner.release(number, window_us)
            self._uses[number] -= 1
            if not self._uses[number]:
                del self._uses[number], self._classes[number], self._tests[number]
                self._has_changed = True
        self.inner.remove(number, window_us, point)

    def retain(self, number: int, retention_us: int) -> None:
        """Keep instances that can fill a class for longer than its window."""
        self.inner.retain(number, retention_us)

    def release(self, number: int, retention_us: int) -> None:
        """Undo one `retain`."""
        self.inner.release(number, retention_us)

    def template_of(self, number: int) -> Template:
        """Return the template of a class."""
        return self.inner.template_of(number)

    def _follow(self) -> None:
        """Make the evaluations of decisions that came into use, and forget the ones out of use."""
        decided = [each.decided for each in self._classes.values() if each.decided is not None]
        known = self._evaluations
        wanted = dict.fromkeys(each.decision for each in decided)
        self._evaluations = {
            decision: known[decision]
            if decision in known
            else Evaluation(decision, self._lateness_us)
            for decision in wanted
        }
        for each in decided:
            evaluation = self._evaluations[each.decision]
            evaluation.read(evaluation.left, each.left)
            if each.right is not None:
                evaluation.read(evaluation.right, each.right)
        self._read_by = {}
        for evaluation in self._evaluations.values():
            for stream in evaluation.streams:
                self._read_by.setdefault(stream, []).append(evaluation)
        self._has_changed = False

    # -- a batch -------------------------------------------------------------------------------

    @property
    def next_instance(self) -> int:
        """The number that the next instance will get."""
        return self.inner.next_instance

    def begin_batch(self) -> None:
        """Start a batch: instances that are absorbed from now on are new."""
        self.inner.begin_batch()
        self._clock.begin_batch()
        self._decided = {}
        if self._has_changed:
            self._follow()

    def advance(self, rows: Iterable[tuple[int, int, int]]) -> None:
        """Let time pass: documents from outside as docid, `W` before it, and its event time."""
        self._clock.advance(rows)

    def is_behind(self, watermark_us: int) -> bool:
        """Return whether time has passed that no document has told of, and something waits."""
        return bool(self._evaluations) and watermark_us > self._clock.newest_us

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances; they get the next numbers."""
        first = self.inner.next_instance
        self.inner.absorb(instances)
        if not self._read_by:
            return
        streams = instances.column("stream").to_pylist()
        read = [i for i, stream in enumerate(streams) if stream in self._read_by]
        if not read:
            return
        rows = instances.take(pa.array(read, pa.int64()))
        for row in read_instances(rows, [first + i for i in read]):
            for evaluation in self._read_by[row.stream]:
                evaluation.add(row.stream, row)

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""
        return [found for table in self.tuples(stratum) for found in table.rows()]

    def tuples(self, stratum: int) -> Iterator[TupleTable]:
        """Yield the tuples of `probe` as they are found; decided tuples come last."""
        if stratum in self.inner.strata:
            yield from self.inner.tuples(stratum)
        for number, query_class in self._classes.items():
            if query_class.stratum == stratum and query_class.decided is not None:
                rows = [
                    row
                    for one in self._decide(query_class.decided.decision)
                    for row in self._rows(number, query_class.decided, one)
                ]
                if rows:
                    yield TupleTable.of_tuples(rows)

    def _decide(self, decision: Decision) -> list[DecidedTuple]:
        decided = self._decided.get(decision)
        if decided is None:
            evaluation = self._evaluations[decision]
            decided = sorted(evaluation.decide(self._clock), key=lambda one: one.docid)
            self._decided[decision] = decided
        return decided

    def _rows(self, number: int, decided: Decided, one: DecidedTuple) -> Iterator[ClassTuple]:
        """Yield the rows of a decided tuple that a class hands on."""
        position = Position(
            one.docid,
            1 + max(part.depth for part in one.parts),
            max(
                one.end_us + decided.decision.grace_us,
                *(part.watermark_us for part in one.parts),
            ),
            one.end_us,
        )
        lefts = one.left.rows.get(decided.left.name, ())
        if one.right is None or decided.right is None:
            for left in lefts:
                yield ClassTuple(number, left.number, None, 0, (0,), position)
            return
        rights = one.right.rows.get(decided.right.name, ())
        interval_us = one.left.start_us, one.end_us
        for left, right in product(lefts, rights):
            values = values_of(decided.left, left), values_of(decided.right, right)
            if self._tests[number].holds(*values, interval_us):
                yield ClassTuple(number, left.number, right.number, 0, (0, 0), position)

    def limit(self, number: int, docid: int, window_us: int = CLOSED) -> None:
        """Leave out tuples of a class, where that saves work."""
        if number not in self._classes:
            self.inner.limit(number, docid, window_us)

    # -- what is remembered --------------------------------------------------------------------

    def add_shapes(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn witness shapes by their edges."""
        self.inner.add_shapes(shapes)

    def shape_number(self, shape: str) -> int | None:
        """Return the number of a witness shape, or None while it is not known."""
        return self.inner.shape_number(shape)

    def remembered(self, horizon_us: int) -> int:
        """Return how many instances are remembered that some class can still use."""
        return self.inner.remembered(horizon_us)

    def retaining(self, horizon_us: int) -> Retaining:
        """Return the classes because of which most of the remembered instances are kept."""
        return self.inner.retaining(horizon_us)

    def overruns(self) -> Sequence[Overrun]:
        """Return the uses of classes that went over the budget in this batch."""
        return self.inner.overruns()

    def evict(self, horizon_us: int) -> int:
        """Free instances that no class can use any more, lazily; return how many went."""
        for evaluation in self._evaluations.values():
            evaluation.evict(horizon_us)
        return self.inner.evict(horizon_us)

    def rows(self, numbers: Iterable[int]) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield the numbers of remembered instances, ascending, with their rows."""
        return self.inner.rows(numbers)

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        return self.inner.instances(numbers)

    def figures(self) -> dict[str, int]:
        """Return how much is remembered, and how much waits to be decided."""
        evaluations = self._evaluations.values()
        waiting = sum(evaluation.waiting for evaluation in evaluations)
        return {**self.inner.figures(), "decisions": len(evaluations), "undecided": waiting}
