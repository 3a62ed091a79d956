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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol

import pyarrow as pa

from joins import schema
from joins.classes import Classified, ClassTuple, QueryClass
from joins.instance import Instance
from joins.ration import Cut
from joins.rows import TemplateTables
from joins.sql import Moment, render_sql, value_join_sql
from joins.state import JoinState
from joins.viewcache import ROWS_MAX, ViewCache
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

    def add(self, query_class: QueryClass, window_us: int) -> int:
        """Add one use of a class with a window; return the class's number."""

    def remove(self, number: int, window_us: int) -> None:
        """Undo one `add`."""

    def template_of(self, number: int) -> Template:
        """Return the template of a class."""

    def add_shapes(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn witness shapes by their edges."""

    def shape_number(self, shape: str) -> int | None:
        """Return the number of a witness shape, or None while it is not known."""

    def begin_batch(self) -> None:
        """Start a batch: what is absorbed from now on is new."""

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances (`INSTANCE_SCHEMA` without numbers); they get the next numbers."""

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""

    def tuples(self, stratum: int) -> Iterable[ClassTuple]:
        """Yield the same as they are found, roughly in the order of their documents."""

    def close(self, number: int, docid: int) -> None:
        """Leave out, where that saves work, a class's tuples from a document on in this batch."""

    def remembered(self, since_us: int) -> int:
        """Return how many instances are remembered that do not end before a time."""

    def cuts(self) -> list[Cut]:
        """Return the uses of classes that went over the budget in this batch.

        Their tuples from the document of the cut on may be missing.
        """

    def evict(self, before_us: int) -> int:
        """Free instances that end before a time, lazily; return how many went."""

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
    ) -> None:
        self.state = JoinState()
        super().__init__()
        self._engine = engine
        self._lateness_us = lateness_us
        self._tables = TemplateTables(self.state.db, self.classes)
        self.view_cache = ViewCache(self.state, view_rows_max)

    @property
    def next_instance(self) -> int:
        """The number that the next instance will get."""
        return self.state.next_instance

    def add_shapes(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn witness shapes by their edges."""
        self.state.add_shapes(shapes)

    def shape_number(self, shape: str) -> int | None:
        """Return the number of a witness shape, or None while it is not known."""
        return self.state.shape_number(shape)

    def begin_batch(self) -> None:
        """Start a batch: bring the classes up to date; what is absorbed from now on is new."""
        if self._tables.refresh():
            pairs = self.classes.value_pairs()
            self.state.set_joined_variables(
                {v for _, left, right, *_ in pairs for v in (left, right)}
            )
        self.state.begin_batch()
        self.view_cache.trim()

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances; they get the next numbers."""
        self.state.absorb(instances)

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""
        moment = Moment(self.state.first_instance, stratum, self._lateness_us)
        members: dict[Template, list[int]] = defaultdict(list)
        for number, query_class in self.classes.by_number.items():
            if query_class.stratum == stratum:
                members[query_class.template].append(number)
        if self._engine == "mmqjp-views":
            self.view_cache.fill()
            self.state.run(f"TRUNCATE {schema.VALUE_JOIN}")
            self.state.run(value_join_sql(moment))
        return [
            ClassTuple(row[0], row[1], row[2], row[3], row[4:])
            for template, classes in members.items()
            for sql in self._statements(template, classes, moment)
            for row in self.state.run(sql)
        ]

    def _statements(self, template: Template, classes: Iterable[int], moment: Moment) -> list[str]:
        is_view = self._engine == "mmqjp-views"
        query = view_query(template) if is_view else conjunctive_query(template)
        number, is_sequential = self._tables.numbers[template], self._engine == "sequential"
        moments = [replace(moment, only=each) for each in classes] if is_sequential else [moment]
        return [sql for each in moments for sql in render_sql(query, template, number, each)]

    def tuples(self, stratum: int) -> Iterable[ClassTuple]:
        """Return what `probe` does: a statement's tuples come all at once."""
        return self.probe(stratum)

    def close(self, number: int, docid: int) -> None:
        """Do nothing: all tuples are there already."""

    def remembered(self, since_us: int) -> int:
        """Return how many instances are remembered that do not end before a time."""
        return self.state.count(since_us)

    def cuts(self) -> list[Cut]:
        """Return nothing: the work of a statement is not predicted."""
        return []

    def evict(self, before_us: int) -> int:
        """Free instances that end before a time, lazily; return how many went."""
        gone = self.state.evict(before_us)
        if gone:
            self.view_cache.clear()
        return gone

    def figures(self) -> dict[str, int]:
        """Return how much is remembered."""
        return self.state.figures()

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        return self.state.instances(numbers)
