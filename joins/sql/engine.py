"""The reference engines: all query classes joined by SQL, one batch of instances at a time.

A batch costs one statement for each template (two where both sides can be new), however many
classes and queries there are:

    absorb   add the new instances to the state
    probe    for each stratum, ask each template's conjunctive query for tuples with a new instance
    evict    forget what no window can reach any more

Three engines work this way: `mmqjp` and `mmqjp-views` as the paper has them (Hong 2009, sections
6.4 and 6.5, Algorithms 1 to 5), and `sequential`, which asks for one class at a time.  They are
there for comparison, in `xscl replay`, tests and benchmarks: they know no budget of pairs and are
not spread over shards.

Invariant: tuples do not depend on how documents are grouped into batches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from joins.classes import Classified
from joins.memory.durations import CLOSED
from joins.memory.instance import Instance
from joins.memory.retention import needed_from
from joins.memory.tupletable import ClassTuple, TupleTable
from joins.sql import schema
from joins.sql.limits import DEFAULT_SQL_LIMITS, SqlLimits
from joins.sql.render import ProbeStep, render_sql, value_join_sql
from joins.sql.rows import TemplateTables
from joins.sql.state import JoinState
from joins.sql.viewcache import ViewCache
from templates.conjunctive import conjunctive_query, view_query
from templates.template import Template

__all__ = ["SQL_ENGINES", "SqlBatch", "SqlEngineName", "SqlProcessor"]

SqlEngineName = Literal["sequential", "mmqjp", "mmqjp-views"]
SQL_ENGINES: tuple[SqlEngineName, ...] = ("sequential", "mmqjp", "mmqjp-views")


@dataclass(frozen=True)
class SqlBatch:
    """A batch in which the instances from `first` on are new."""

    first: int


class SqlProcessor(Classified):
    """Evaluates every template by its conjunctive query over the state's tables."""

    def __init__(
        self,
        *,
        lateness_us: int,
        engine: SqlEngineName = "mmqjp-views",
        limits: SqlLimits = DEFAULT_SQL_LIMITS,
    ) -> None:
        super().__init__()
        self.state = JoinState(self.shapes, limits)
        self._engine = engine
        self._step_tables = limits.step_tables
        self._lateness_us = lateness_us
        self._tables = TemplateTables(self.state.db, self.classes)
        self.view_cache = ViewCache(self.state, limits.slice_rows)
        self.batch = SqlBatch(self.state.next_instance)

    @property
    def next_instance(self) -> int:
        """The number that the next instance will get."""
        return self.state.next_instance

    def begin_batch(self) -> None:
        """Start a batch: instances that are absorbed from now on are new."""
        if self._tables.refresh():
            self._tables.write_value_pairs()
            pairs = self.classes.value_pairs()
            self.state.set_joined_variables({v for _, *joined, _, _ in pairs for v in joined})
        self.view_cache.trim()
        self.batch = SqlBatch(self.state.next_instance)

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances; they get the next numbers."""
        self.state.absorb(instances)

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""
        return [found for table in self.tuples(stratum) for found in table.rows()]

    def tuples(self, stratum: int) -> Iterator[TupleTable]:
        """Yield the tuples of `probe` as they are found, template by template."""
        probe_step = ProbeStep(
            self.batch.first, stratum, self._lateness_us, step_tables=self._step_tables
        )
        members: dict[Template, list[int]] = defaultdict(list)
        for number, query_class in self.classes.by_number.items():
            if query_class.stratum == stratum:
                members[query_class.template].append(number)
        if members and self._engine == "mmqjp-views":
            self.view_cache.fill(self.batch.first)
            self.state.run(f"TRUNCATE {schema.VALUE_JOIN}")
            self.state.run(value_join_sql(probe_step))
        for template, classes in members.items():
            for sql in self._statements(template, classes, probe_step):
                for rows in self.state.stream(sql):
                    yield TupleTable.of_rows(rows)

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
        """Leave out nothing: the reader of the tuples leaves out what it did not ask for."""

    def overruns(self) -> tuple[()]:
        """Return nothing: a reference engine has no budget."""
        return ()

    def of_use(self, horizon_us: int) -> Mapping[int, int]:
        """Return how many instances of each shape some class can still use."""
        return self.state.of_use(self._needed_from(horizon_us))

    def _needed_from(self, horizon_us: int) -> dict[int, int]:
        """Return, for each shape, the end from which on its instances are of use."""
        retention = self.classes.retention.of_shapes()
        return {shape: needed_from(own, horizon_us) for shape, own in retention.items()}

    def evict(self, horizon_us: int) -> int:
        """Free instances that no class can use any more, lazily; return how many went."""
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
