"""The view from pair signatures to the tuples of query classes.

An **entry** stands for one signature: two layouts and the pairs of slots with equal values.  Its
tuples come from the templates' conjunctive queries over its own equal pairs: class by class where
few can hold (`assignments`), else by one statement a template for all such entries of a batch that
are not known yet.  Windows, residuals, constants and
registration points are no part of an entry: they differ from pair to pair.

An entry names the last class that it is complete for.  When it is met again after classes were
added, only these are asked.  Removed classes stay in it; its reader skips them.

The tuples of a signature are bounded before they are found: an entry names the classes in which its
pairs are skewed (`skew`), and has no tuples of these.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from joins.budget.skew import Skew, skew_of
from joins.classes import ClassRegistry
from joins.memory.durations import UNBOUNDED
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints
from joins.signature.assignments import ShapesNodes, assignments
from joins.signature.compared import Equal, Grouped
from joins.signature.equalnodes import EqualNodes, Signature
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits
from joins.signature.needs import SlotNeeds
from joins.sql import schema
from joins.sql.render import signature_sql
from joins.sql.rows import Database, TemplateTables, connect, insert_numbers, run
from templates.conjunctive import view_query
from templates.template import Template

__all__ = ["SignatureView", "ViewEntry"]

_UNOPENED = 32
"""How many times as many classes are looked at while no database is open: to open it, and to write
the classes into it, takes as long as to look at some thousands."""


_NO_CLASSES = np.zeros(0, np.int64)


@dataclass(slots=True, eq=False)
class ViewEntry:
    """The tuples of a signature: class `classes[i]` holds with the nodes `nodes[i]`.

    In the classes `skewed` its pairs are skewed; it has no tuples of these.
    """

    signature: Signature
    complete_for: int = 0
    classes: Ints = field(default_factory=lambda: _NO_CLASSES)
    nodes: list[tuple[int, ...]] = field(default_factory=list)
    skewed: Ints = field(default_factory=lambda: _NO_CLASSES)

    def add(self, classes: Sequence[int], nodes: Sequence[tuple[int, ...]]) -> None:
        """Add tuples of further classes."""
        new = np.array(classes, np.int64)
        self.classes = np.concatenate([self.classes, new]) if len(self.classes) else new
        self.nodes += nodes

    @property
    def size(self) -> int:
        """The tuples and equal pairs that are kept."""
        return len(self.nodes) + _size(self.signature[2])

    @property
    def is_pair(self) -> bool:
        """Whether there are two instances."""
        return self.signature[1] is not None


def _size(equal: Equal) -> int:
    """Return how many numbers stand for equal pairs."""
    if isinstance(equal, Grouped):
        return sum(len(side) for group in equal.groups for side in group)
    return len(equal)


class SignatureView:
    """Evaluates signatures; its database holds nothing but shapes, template rows, signatures.

    It has no tuples of a class in which a pair has more than `tuples_max`.
    """

    def __init__(
        self,
        shapes: Shapes,
        registry: ClassRegistry,
        tuples_max: int = UNBOUNDED,
        limits: SignatureLimits = DEFAULT_LIMITS,
    ) -> None:
        self._limits = limits
        self._shapes = shapes
        self._unwritten = 0
        shapes.watch(self._forget_shapes)
        self._registry = registry
        self._tuples_max = tuples_max
        self._needs = SlotNeeds(registry)
        self._nodes = ShapesNodes(shapes)
        self._entries: dict[Signature, ViewEntry] = {}
        self.hits = 0
        self.misses = 0
        self.rows = 0

    def __len__(self) -> int:
        return len(self._entries)

    @cached_property
    def db(self) -> Database:
        """The database, opened when a signature is first evaluated: it takes 30 ms."""
        # Its statements are small: a second thread costs more than it brings.
        return connect(threads=1)

    @cached_property
    def _tables(self) -> TemplateTables:
        return TemplateTables(self.db, self._registry)

    def look_up(self, signatures: Sequence[Signature]) -> list[ViewEntry]:
        """Return the entries of signatures, complete for all classes."""
        count = len(self._entries) + len(signatures)
        if count > self._limits.entries or self.rows > self._limits.entry_rows:
            self._entries.clear()
            self.rows = 0
        entries = [self._entry(signature) for signature in signatures]
        self._complete(entries)
        return entries

    def _entry(self, signature: Signature) -> ViewEntry:
        entry = self._entries.get(signature)
        if entry is None:
            entry = self._entries[signature] = ViewEntry(signature)
            self.rows += _size(signature[2])
        return entry

    def _forget_shapes(self, shapes: Set[int]) -> None:
        self._entries = {
            signature: entry
            for signature, entry in self._entries.items()
            if not any(side is not None and side.shape in shapes for side in signature[:2])
        }
        self.rows = sum(entry.size for entry in self._entries.values())
        if not self._unwritten:
            return
        gone = pa.table({"shape": pa.array(sorted(shapes), pa.int64())})
        self.db.register("gone", gone)
        # Rows that DELETE removes would stay in memory.
        kept = f"SELECT * FROM {schema.SHAPE_EDGE} WHERE shape NOT IN (SELECT shape FROM gone)"
        run(self.db, f"CREATE TABLE kept AS {kept}")
        run(self.db, f"DROP TABLE {schema.SHAPE_EDGE}")
        run(self.db, f"ALTER TABLE kept RENAME TO {schema.SHAPE_EDGE}")
        self.db.unregister("gone")

    def _write_shapes(self) -> None:
        """Write the shapes learnt since the last time: each statement costs a millisecond."""
        shapes = {number: self._shapes[number] for number in self._shapes.since(self._unwritten)}
        edges = [(number, *edge) for number, shape in shapes.items() for edge in shape.edges]
        self._insert(schema.SHAPE_EDGE, edges)
        self._unwritten = self._shapes.next_number

    def _insert(self, table: str, rows: Sequence[tuple[int, ...]]) -> None:
        if rows:
            insert_numbers(self.db, table, rows)

    def _complete(self, entries: Sequence[ViewEntry]) -> None:
        """Bring entries up to date with the classes: new entries first, then older ones."""
        self._needs.follow()
        last = self._registry.last_number
        stale = [entry for entry in entries if entry.complete_for < last]
        self.hits += len(entries) - len(stale)
        self.misses += len(stale)
        new = [entry for entry in stale if entry.complete_for == 0]
        older = [entry for entry in stale if entry.complete_for]
        for some in (new, older):
            if some:
                self._evaluate(some)
            for entry in some:
                entry.complete_for = last

    def _evaluate(self, entries: list[ViewEntry]) -> None:
        """Find the tuples of entries in classes that they do not know, without skewed pairs."""
        since = min(entry.complete_for for entry in entries)
        joins = self._needs.joins_after(since)
        even: list[tuple[ViewEntry, EqualNodes]] = []
        for entry in entries:
            equal = EqualNodes(entry.signature, self._nodes, joins, self._tuples_max)
            if skewed := self._skewed(entry, equal):
                entry.skewed = np.concatenate([entry.skewed, np.array(skewed, np.int64)])
                self._ask([(entry, equal)], since, skewed)
            else:
                even.append((entry, equal))
        if asked := [each for each in even if not self._assign(*each)]:
            self._ask(asked, since)

    def _assign(self, entry: ViewEntry, equal: EqualNodes) -> bool:
        """Find the tuples of an entry class by class, if there are few; return whether so."""
        most, since = self._limits.assigned, entry.complete_for
        if equal.size > most:
            return False
        classes_max = most if "db" in vars(self) else most * _UNOPENED
        holding = self._needs.holding(since, equal.pairs.keys(), classes_max)
        if holding is None:
            return False
        classes: list[int] = []
        nodes: list[tuple[int, ...]] = []
        is_pair = entry.is_pair
        for number, query_class in holding:
            if query_class.template.has_right == is_pair:
                found = assignments(query_class, equal, equal.sides, most * most)
                if found is None:
                    return False
                if found:
                    classes += [number] * len(found)
                    nodes += found
        if classes:
            entry.add(classes, nodes)
            self.rows += len(nodes)
        return True

    def _skewed(self, entry: ViewEntry, equal: EqualNodes) -> list[int]:
        """Return the classes that are new to a signature and in which its pairs are skewed."""
        if equal.most**self._needs.joins_max <= self._tuples_max:
            return []
        skewed: list[int] = []
        uncertain: list[int] = []
        for number, counts in self._needs.held(entry.complete_for, equal.counts()):
            skew = skew_of(counts, self._tuples_max)
            if skew is not Skew.EVEN:
                (skewed if skew is Skew.SKEWED else uncertain).append(number)
        if uncertain:
            self._write([entry], [equal])
        return sorted([*skewed, *filter(self._has_too_many, uncertain)])

    def _has_too_many(self, number: int) -> bool:
        """Return whether a class has too many tuples on the one signature that is written."""
        template = self._registry.by_number[number].template
        asked = f"t.class = {number}"
        sql = self._sql(template, asked)
        ((count,),) = run(
            self.db, f"SELECT count(*) FROM (FROM ({sql}) LIMIT {self._tuples_max + 1})"
        )
        return int(count) > self._tuples_max

    def _ask(
        self, some: Sequence[tuple[ViewEntry, EqualNodes]], since: int, without: Sequence[int] = ()
    ) -> None:
        """Ask the templates' queries for all entries at once, of classes after `since`.

        Classes `without` are not asked; tuples that an entry knows already are left out.
        """
        entries = [entry for entry, _ in some]
        equal = {frozenset(each.pairs) for _, each in some}
        templates = self._needs.templates
        asked = [each for each in templates if self._needs.may_hold(each, since, equal)]
        if not asked:
            return
        self._write(entries, [each for _, each in some])
        # All classes of a template may have been removed before there were tables.
        asked = [each for each in asked if each in self._tables.numbers]
        wanted = f"t.class > {since}"
        if without:
            wanted += f" AND t.class NOT IN ({', '.join(map(str, without))})"
        for template in asked:
            sql = self._sql(template, wanted)
            found: dict[int, tuple[list[int], list[tuple[int, ...]]]] = {}
            for query_class, i, *nodes in run(self.db, sql):
                is_new = query_class > entries[i].complete_for
                if is_new and entries[i].is_pair == template.has_right:
                    classes, tuples = found.setdefault(i, ([], []))
                    classes.append(query_class)
                    tuples.append(tuple(nodes))
            for i, rows in found.items():
                entries[i].add(*rows)
                self.rows += len(rows[0])

    def _sql(self, template: Template, asked: str) -> str:
        number, step_tables = self._tables.numbers[template], self._limits.step_tables
        return signature_sql(view_query(template), template, number, asked, step_tables)

    def _write(self, entries: Sequence[ViewEntry], equal: Sequence[EqualNodes]) -> None:
        """Write the tables that the statements for some signatures read."""
        self._tables.refresh()
        self._write_shapes()
        left: list[tuple[int, ...]] = []
        right: list[tuple[int, ...]] = []
        for i, entry in enumerate(entries):
            left.append((i, entry.signature[0].shape))
            if entry.signature[1] is not None:
                right.append((i, entry.signature[1].shape))
        tables: dict[str, list[tuple[int, ...]]] = {
            schema.SIGNATURE_LEFT: left,
            schema.SIGNATURE_RIGHT: right,
            schema.VALUE_JOIN: [
                (i, i, *row) for i, each in enumerate(equal) for row in each.rows()
            ],
        }
        for table, rows in tables.items():
            run(self.db, f"TRUNCATE {table}")
            self._insert(table, rows)
