"""The join of all query classes, one batch of instances at a time, by SQL.

A batch costs one statement for each template (two where both sides can be new), however many
classes and queries there are:

    absorb   add the new instances to the state
    probe    for each stratum, ask each template's conjunctive query for tuples with a new instance
    evict    forget what no window can reach any more

A **stratum** is a level of operators: those over documents from outside are in stratum 0; an
operator over tuples of another operator, or over a published stream, is one above what it reads.
All that a stratum reads is known when it is probed, so each is probed once a batch.

Three of the engines work this way: `mmqjp` and `mmqjp-views` as the paper has them (Hong 2009,
sections 6.4 and 6.5, Algorithms 1 to 5), and `sequential`, one class at a time, to compare with.
The default, `signatures`, is in a module of its own.

Invariant: tuples do not depend on how documents are grouped into batches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa

from joins.budget.entries import EntryReader
from joins.budget.pairs import CLOSED, UNBOUNDED, Bounds, Overrun, PairBudget, SkewedPair
from joins.budget.probe import Partners, Probe, ProbeRow, ValueJoin
from joins.budget.repeats import Repeats
from joins.budget.sketch import FrequencySketch
from joins.budget.sub_batches import SubBatches
from joins.classes import Classified, ClassTuple, QueryClass, Retaining, UseKind
from joins.memory.instance import Instance
from joins.memory.remembered import Hashes, hash_values
from joins.memory.slots import Ints
from joins.sql import schema
from joins.sql.render import ProbeStep, render_sql, value_join_sql
from joins.sql.rows import TemplateTables
from joins.sql.skewed import SkewedPairs
from joins.sql.state import JoinState
from joins.sql.viewcache import ROWS_MAX, ViewCache
from templates.conjunctive import conjunctive_query, view_query
from templates.template import Template

__all__ = ["SQL_ENGINES", "Processor", "SqlEngineName", "SqlProcessor"]

SqlEngineName = Literal["sequential", "mmqjp", "mmqjp-views"]
SQL_ENGINES: tuple[SqlEngineName, ...] = ("sequential", "mmqjp", "mmqjp-views")

Edge = tuple[int, int, int, int]


class Processor(Protocol):
    """What every engine does, each in its way; they find equal tuples, always."""

    @property
    def next_instance(self) -> int:
        """The number that the next instance will get."""

    @property
    def strata(self) -> list[int]:
        """The strata in use, lowest first."""

    def add(self, query_class: QueryClass, window_us: int, point: int = 0) -> int:
        """Add one use of a class, from a registration point on; return the class's number."""

    def remove(self, number: int, window_us: int, point: int = 0) -> None:
        """Undo one `add`."""

    def retain(self, number: int, retention_us: int) -> None:
        """Keep what can fill a class for longer than its window: its tuples are joined again."""

    def release(self, number: int, retention_us: int) -> None:
        """Undo one `retain`."""

    def template_of(self, number: int) -> Template:
        """Return the template of a class."""

    def add_shapes(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn witness shapes by their edges."""

    def shape_number(self, shape: str) -> int | None:
        """Return the number of a witness shape, or None while it is not known."""

    def begin_batch(self) -> None:
        """Start a batch: what is absorbed from now on is new."""

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances (`INSTANCE_SCHEMA` without numbers); they get the next numbers.

        Those of a part of a join come with the numbers that they have in the whole.
        """

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""

    def tuples(self, stratum: int) -> Iterable[ClassTuple]:
        """Yield the same as they are found, roughly in the order of their documents."""

    def limit(self, number: int, docid: int, window_us: int = CLOSED) -> None:
        """Leave out, where that saves work, what is outside a window of a class's tuples.

        That is from a document on, in this batch.
        """

    def remembered(self, horizon_us: int) -> int:
        """Return how many instances are remembered that some class can still use.

        `horizon_us` is the newest event time less the allowed lateness.
        """

    def retaining(self, horizon_us: int) -> Retaining:
        """Return the classes because of which most of those are remembered."""

    def overruns(self) -> list[Overrun]:
        """Return the uses of classes that went over the budget in this batch.

        Their tuples from the document of the overrun on may be missing.
        """

    def evict(self, horizon_us: int) -> int:
        """Free instances that no class can use any more, lazily; return how many went.

        They end before the horizon by more than the retention of their shapes (`retention`).
        """

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""

    def figures(self) -> dict[str, int]:
        """Return how much is remembered: `documents`, `shapes`, `memory_bytes` and the like.

        Names that end in `_total` count from the start.
        """


class SqlProcessor(Classified):
    """Evaluates every template by its conjunctive query over the state's tables."""

    def __init__(
        self,
        *,
        lateness_us: int,
        engine: SqlEngineName = "mmqjp-views",
        view_rows_max: int = ROWS_MAX,
        bounds: Bounds | None = None,
    ) -> None:
        self.state = JoinState()
        super().__init__()
        bounds = bounds or Bounds(lateness_us)
        self._pair_budget = PairBudget(self.classes, bounds)
        self._sketch = FrequencySketch(
            self.classes, UNBOUNDED if bounds.is_part else bounds.pairs_max
        )
        self._reader = EntryReader(hash_values)
        self._engine = engine
        self._lateness_us = lateness_us
        self._tables = TemplateTables(self.state.db, self.classes)
        self._repeats = Repeats()
        self._skewed = SkewedPairs(
            self.state, self._tables, self.classes, self._repeats, bounds.pairs_max
        )
        self._sub_batches = SubBatches(self.classes, self._sketch, self._repeats)
        self.view_cache = ViewCache(self.state, view_rows_max)

    @property
    def next_instance(self) -> int:
        """The number that the next instance will get."""
        return self.state.next_instance

    def add_shapes(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn witness shapes by their edges."""
        for number, edges in self.state.add_shapes(shapes):
            for each in (self.classes.retention, self._reader, self._sketch):
                each.add_shape(number, edges)

    def shape_number(self, shape: str) -> int | None:
        """Return the number of a witness shape, or None while it is not known."""
        return self.state.shape_number(shape)

    def begin_batch(self) -> None:
        """Start a batch: bring the classes up to date; what is absorbed from now on is new."""
        if self._tables.refresh():
            self._tables.write_value_pairs()
            pairs = self.classes.value_pairs()
            joined = {v for _, left, right, *_ in pairs for v in (left, right)}
            self.state.set_joined_variables(joined)
            self._reader.want(joined)
        self._sketch.begin_batch()
        self._repeats.begin_batch()
        self._pair_budget.begin_batch()
        self.state.begin_batch()
        self.view_cache.trim()

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances; they get the next numbers."""
        rows = self.state.absorb(instances)
        if self._skewed.is_needed:
            entries = self._reader.read(rows)
            self._sketch.note(rows, entries)
            self._repeats.note(entries)

    def probe(self, stratum: int, asked: range | None = None) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them.

        With `asked` those of which the newest instance is one of these new ones.
        """
        return list(self.tuples(stratum, asked))

    def tuples(self, stratum: int, asked: range | None = None) -> Iterator[ClassTuple]:
        """Yield the same as they are found, sub-batch by sub-batch of the new instances."""
        self._judge(stratum)
        probe_step = self._without_skewed(
            ProbeStep(self.state.first_instance, stratum, self._lateness_us)
        )
        new = range(self.state.first_instance, self.state.next_instance) if asked is None else asked
        for sub_batch in self._sub_batches.of(stratum, new):
            part = replace(probe_step, first_instance=sub_batch.start, end_instance=sub_batch.stop)
            yield from self._tuples(self._open(part))

    def _open(self, probe_step: ProbeStep) -> ProbeStep:
        """Leave out the classes that are closed from the first document of a sub-batch on."""
        closed_from = self._pair_budget.closed()
        if not closed_from:
            return probe_step
        first_docid = self.state.first_docid(probe_step.first_instance)
        closed = tuple(sorted(n for n, docid in closed_from.items() if docid <= first_docid))
        asked = {
            value_join
            for number, query_class in self.classes.by_number.items()
            if query_class.stratum == probe_step.stratum and number not in closed
            for value_join in query_class.value_pairs()
        }
        joins = {value_join for n in closed for value_join in self._value_joins(n)}
        return replace(probe_step, closed=closed, unasked=tuple(sorted(joins - asked)))

    def _value_joins(self, number: int) -> Iterable[ValueJoin]:
        query_class = self.classes.by_number.get(number)
        return () if query_class is None else query_class.value_pairs()

    def _tuples(self, probe_step: ProbeStep) -> Iterator[ClassTuple]:
        """Yield the tuples of a probe step's classes, by their templates."""
        members: dict[Template, list[int]] = defaultdict(list)
        for number, query_class in self.classes.by_number.items():
            if query_class.stratum == probe_step.stratum and number not in probe_step.closed:
                members[query_class.template].append(number)
        if members and self._engine == "mmqjp-views":
            self.view_cache.fill()
            self.state.run(f"TRUNCATE {schema.VALUE_JOIN}")
            self.state.run(value_join_sql(probe_step))
        for template, classes in members.items():
            for sql in self._statements(template, classes, probe_step):
                for rows in self.state.stream(sql + self._limited(template, classes)):
                    for row in rows:
                        yield ClassTuple(row[0], row[1], row[2], row[3], row[4:])

    def _without_skewed(self, probe_step: ProbeStep) -> ProbeStep:
        """Stop the uses of classes that see a skewed pair; return what else is to be asked."""
        pairs, left_out = self._skewed.find(probe_step)
        for pair in pairs:
            self._pair_budget.overrun_by(pair)
        return replace(probe_step, left_out=left_out)

    def _judge(self, stratum: int) -> None:
        """Stop the uses of classes that new instances take over the budget."""
        for probe_row, classes in self._sketch.suspects(stratum):
            for number in classes:
                self._pair_budget.judge(
                    number, probe_row.docid, partial(self._count, probe_row, number)
                )

    def _count(
        self,
        probe_row: ProbeRow,
        number: int,
        value_join: ValueJoin | None,
        kinds: Sequence[UseKind],
    ) -> Ints:
        query_class = self.classes.by_number[number]
        found = self.partners(probe_row, query_class, value_join)
        others = [(each[each != probe_row.instance], is_right) for each, is_right in found]
        return self.probe_of(probe_row, others).count(kinds, is_symmetric=query_class.is_symmetric)

    def partners(
        self, probe_row: ProbeRow, query_class: QueryClass, value_join: ValueJoin | None
    ) -> Partners:
        """Return who is paired with a probe row in a class by a value join; None: there is none."""
        asked, found = query_class.asked(), Partners()
        for is_right in (True, False):
            others = asked[not is_right]
            if not probe_row.fits(query_class, is_right=is_right):
                continue
            if value_join is None:
                found.append((self.state.binding(others), is_right))
                continue
            mine, other = value_join[is_right], value_join[not is_right]
            found.append((self.state.having(other, probe_row.values[mine], others), is_right))
        return found

    def probe_of(self, probe_row: ProbeRow, found: Partners) -> Probe:
        """Return the probe of a probe row with partners."""
        wanted = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in found)])
        columns, ids = self.state.times(wanted)
        return Probe.visited(probe_row, found, columns, ids, self._lateness_us)

    def numbers(self, instances: Ints) -> Ints:
        """Return the numbers in the whole join of instances of a part: they are called by these."""
        return instances

    def numbered(self, numbers: Ints) -> Ints:
        """Return the instances of a part that have some numbers in the whole join, in order."""
        return self.state.there(numbers)

    def under(self, variable: int, instances: Ints) -> tuple[Ints, Hashes]:
        """Return all that stands under a variable, as (index into `instances`, hash of a value)."""
        which, values = self.state.values(variable, instances)
        return which, hash_values(values)[0]

    def _limited(self, template: Template, classes: Sequence[int]) -> str:
        """Return conditions that leave out what is asked for no more."""
        newest = "greatest(dl.docid, dr.docid)" if template.has_right else "dl.docid"
        limits = self._pair_budget.limits()
        limited: dict[tuple[int, int], list[str]] = {}
        for number in classes:
            for limit in limits.get(number, ()):
                limited.setdefault(limit, []).append(str(number))
        return "".join(
            f"\n    AND NOT (t.class IN ({', '.join(numbers)}) AND span > {window_us}"
            f" AND {newest} >= {docid})"
            for (docid, window_us), numbers in limited.items()
        )

    def _statements(
        self, template: Template, classes: Iterable[int], probe_step: ProbeStep
    ) -> list[str]:
        is_view = self._engine == "mmqjp-views"
        query = view_query(template) if is_view else conjunctive_query(template)
        number, is_sequential = self._tables.numbers[template], self._engine == "sequential"
        steps = (
            [replace(probe_step, only=each) for each in classes] if is_sequential else [probe_step]
        )
        return [sql for each in steps for sql in render_sql(query, template, number, each)]

    def limit(self, number: int, docid: int, window_us: int = CLOSED) -> None:
        """Leave out tuples of a class in what is still to be probed."""
        self._pair_budget.limit(number, docid, window_us)

    def of_use(self, horizon_us: int) -> Mapping[int, int]:
        """Return how many instances of each shape some class can still use."""
        return self.state.of_use(self._needed_from(horizon_us))

    def _needed_from(self, horizon_us: int) -> dict[int, int]:
        """Return, for each shape, since when instances of it are of use if they end then."""
        retention = self.classes.retention.of_shapes()
        return {shape: horizon_us - retention_us for shape, retention_us in retention.items()}

    def overruns(self) -> list[Overrun]:
        """Return the uses of classes that went over the budget in this batch."""
        return self._pair_budget.overruns

    def skewed_pairs(self) -> set[SkewedPair]:
        """Return the pairs that were found to be skewed in this batch."""
        return self._pair_budget.skewed

    def evict(self, horizon_us: int) -> int:
        """Free instances that no class can use any more, lazily; return how many went."""
        self._sketch.evict(horizon_us - self.classes.retention.widest())
        gone = self.state.evict(self._needed_from(horizon_us))
        if gone:
            self.view_cache.clear()
        return gone

    def figures(self) -> dict[str, int]:
        """Return how much is remembered."""
        return self.state.figures()

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        return self.state.instances(numbers)
