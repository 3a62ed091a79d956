"""The join of all query classes, one batch of instances at a time.

A **query class** is what queries have in common that differ only in window, constants, SELECT and
subscriber: a template with its variables.  A batch costs one statement for each template (two
where both sides can be new), however many classes and queries there are:

    absorb   add the new instances to the state
    probe    for each stratum, ask each template's conjunctive query for tuples with a new instance
    evict    forget what no window can reach any more

A **stratum** is a level of operators: those over documents from outside are in stratum 0; an
operator over tuples of another operator, or over a published stream, is one above what it reads.
All that a stratum reads is known when it is probed, so each is probed once a batch.

Invariant: tuples do not depend on how documents are grouped into batches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from joins import schema
from joins.sql import Moment, render_sql, value_join_sql
from joins.state import Instance, JoinState
from templates.conjunctive import conjunctive_query, view_query
from templates.template import Template, TemplateRow

__all__ = ["ENGINES", "ClassTuple", "EngineName", "JoinProcessor", "QueryClass"]

EngineName = Literal["sequential", "mmqjp", "mmqjp-views"]
ENGINES: tuple[EngineName, ...] = ("sequential", "mmqjp", "mmqjp-views")


@dataclass(frozen=True, slots=True)
class QueryClass:
    """What is evaluated once: a template, its row, the operator's kind, and its stratum.

    `is_symmetric` is true for JOIN.
    """

    template: Template
    row: TemplateRow
    is_symmetric: bool
    stratum: int

    def value_pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of variables whose values are joined."""
        for left, right in self.template.value_joins:
            yield self.row.variables[left], self.row.variables[right]


@dataclass(frozen=True, slots=True)
class ClassTuple:
    """One row of a class's R_outT: its instances, the smallest window that holds them, its nodes.

    `right` is None for a class of one block.  `nodes` are positions in the witness shapes of the
    instances, one for each meta-variable.
    """

    query_class: int
    left: int
    right: int | None
    span_us: int
    nodes: tuple[int, ...]


class JoinProcessor:
    """Holds the classes and the state; `engine` chooses how classes are evaluated."""

    def __init__(self, *, lateness_us: int, engine: EngineName = "mmqjp-views") -> None:
        self.state = JoinState()
        self._engine = engine
        self._lateness_us = lateness_us
        self._numbers: dict[QueryClass, int] = {}
        self._windows: dict[int, list[int]] = defaultdict(list)
        self._templates: dict[Template, int] = {}
        self._next_class = 1
        self._is_stale = False

    def add(self, query_class: QueryClass, window_us: int) -> int:
        """Add one use of a class with a window; return the class's number."""
        number = self._numbers.get(query_class)
        if number is None:
            number = self._numbers[query_class] = self._next_class
            self._next_class += 1
            self._create_template(query_class.template)
        self._windows[number].append(window_us)
        self._is_stale = True
        return number

    def remove(self, query_class: QueryClass, window_us: int) -> None:
        """Undo one `add` of the same."""
        number = self._numbers[query_class]
        self._windows[number].remove(window_us)
        if not self._windows[number]:
            del self._windows[number], self._numbers[query_class]
        self._is_stale = True

    @property
    def strata(self) -> list[int]:
        """The strata in use, lowest first."""
        return sorted({query_class.stratum for query_class in self._numbers})

    @property
    def window_us(self) -> int:
        """The widest window of all classes; 0 without any."""
        return max((max(windows) for windows in self._windows.values()), default=0)

    def template_of(self, number: int) -> Template:
        """Return the template of a class."""
        return next(c.template for c, n in self._numbers.items() if n == number)

    def _create_template(self, template: Template) -> None:
        if template not in self._templates:
            number = self._templates[template] = len(self._templates) + 1
            name = schema.template_row(number)
            self.state.run(f"CREATE TABLE {name} ({schema.template_row_columns(template)})")

    def _refresh(self) -> None:
        """Bring the template tables up to date with the classes."""
        if not self._is_stale:
            return
        self._is_stale = False
        rows: dict[Template, list[tuple[object, ...]]] = {t: [] for t in self._templates}
        pairs: dict[tuple[int, int, int], list[tuple[int, bool]]] = defaultdict(list)
        joined: set[int] = set()
        for query_class, number in self._numbers.items():
            window = max(self._windows[number])
            rows[query_class.template].append(_template_row(query_class, number, window))
            for left, right in query_class.value_pairs():
                pairs[query_class.stratum, left, right].append((window, query_class.is_symmetric))
                joined |= {left, right}
        for template, number in self._templates.items():
            self._replace(schema.template_row(number), rows[template])
        merged: list[tuple[object, ...]] = [
            (*key, max(w for w, _ in uses), any(s for _, s in uses)) for key, uses in pairs.items()
        ]
        self._replace(schema.VALUE_PAIR, merged)
        self.state.set_joined_variables(joined)

    def _replace(self, table: str, rows: list[tuple[object, ...]]) -> None:
        self.state.run(f"TRUNCATE {table}")
        if rows:
            names = [row[0] for row in self.state.run(f"DESCRIBE {table}")]
            columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
            self.state.insert(table, pa.table(columns))

    def begin_batch(self) -> None:
        """Start a batch: bring the classes up to date; what is absorbed from now on is new."""
        self._refresh()
        self.state.begin_batch()

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""
        moment = Moment(self.state.first_instance, stratum, self._lateness_us)
        templates = {t: [] for c in self._numbers if c.stratum == stratum for t in (c.template,)}  # type: dict[Template, list[int]]
        for query_class, number in self._numbers.items():
            if query_class.stratum == stratum:
                templates[query_class.template].append(number)
        if self._engine == "mmqjp-views":
            self.state.run(f"TRUNCATE {schema.VALUE_JOIN}")
            self.state.run(value_join_sql(moment))
        return [
            found
            for template, classes in templates.items()
            for sql in self._statements(template, classes, moment)
            for found in self._run(sql, template)
        ]

    def _statements(self, template: Template, classes: Iterable[int], moment: Moment) -> list[str]:
        is_view = self._engine == "mmqjp-views"
        query = view_query(template) if is_view else conjunctive_query(template)
        statements = render_sql(query, template, self._templates[template], moment)
        if self._engine != "sequential":
            return statements
        return [f"{sql}\n    AND t.class = {number}" for number in classes for sql in statements]

    def _run(self, sql: str, template: Template) -> Iterator[ClassTuple]:
        for row in self.state.run(sql):
            yield ClassTuple(row[0], row[1], row[2], row[3], row[4:])

    def evict(self, before_us: int) -> int:
        """Free what ends before a time; return how many instances went."""
        return self.state.evict(before_us)

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        return self.state.instances(numbers)


def _template_row(query_class: QueryClass, number: int, window_us: int) -> tuple[object, ...]:
    return (
        number,
        *query_class.row.variables,
        *query_class.row.constants,
        window_us,
        query_class.is_symmetric,
        query_class.stratum,
    )
