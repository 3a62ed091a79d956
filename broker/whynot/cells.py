"""What tables said to documents: each condition on a row, and since when the row was so.

An engine finds the tuples of the documents, with the keys that they ask for and the place of their
transaction.  Where all statements that write the tables are known, and all documents, it runs them
too, and the rows are those of that place.  Else the rows are those of now: where one was changed
behind that place, what it said is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from broker.documents.document import CLOCK, LAST_US, Document
from broker.explain.spelling import spell_comparison, spell_operand
from broker.matching.engine import Engine
from broker.matching.queries.registration import RegisteredQuery
from broker.matching.rules.candidate import FoundTuple, RuleCandidate
from broker.tables.actions import Beside
from broker.tables.store import Order, Place, RowChange, Tables, TableVersions
from broker.whynot.reason import Reason, quote
from templates.clause import Guard
from xscl.comparison import Call, Cell, Disjunct, Operand, Residual, Row, operands_below
from xscl.evaluation import compile_condition, key_reader
from xscl.query import From, Query
from xscl.table import Table

__all__ = ["KnownRows", "Rules", "cell_reason", "without_tables"]

RowNow = Callable[[str, str], RowChange | None]
"""Returns a row of a table by its key, as it is now."""


@dataclass(frozen=True, slots=True)
class KnownRows:
    """The tables of a broker, with their rows as of now."""

    tables: Sequence[Table]
    row_now: RowNow


@dataclass(frozen=True, slots=True)
class Rules:
    """All statements that have to do with the tables, from the first document on."""

    queries: Sequence[Query]


def without_tables(query: Query) -> Query:
    """Return a query that asks no table, and writes none."""
    root, rows = query.root, query.rows
    if isinstance(root, From):
        root = replace(root, where=_without_rows(root.where))
    if rows is not None:
        rows = replace(rows, having=_without_rows(rows.having))
    return replace(query, root=root, rows=rows, actions=(), tables=())


def _without_rows(asked: Sequence[Disjunct] | None) -> tuple[Disjunct, ...] | None:
    """Return a condition that asks no table, None where nothing is left to ask."""
    left = [
        replace(
            disjunct,
            residuals=tuple(r for r in disjunct.residuals if not _has_row(r.left, r.right)),
            tests=tuple(test for test in disjunct.tests if not _has_row(test)),
        )
        for disjunct in asked or ()
    ]
    is_asking = left and all(any(True for _ in disjunct.operands()) for disjunct in left)
    return tuple(left) if is_asking else None


def _has_row(*operands: Operand) -> bool:
    return any(isinstance(each, Row) for o in operands for each in operands_below(o))


def cell_reason(
    query: Query,
    named: Sequence[Document],
    around: Sequence[Document],
    known: KnownRows | Rules,
    *,
    lateness_us: int,
    registration_point: int,
) -> Reason | None:
    """Return what tables said to documents that fit a query, None where they have no transaction.

    `query` has no parameters.
    """
    asked = _AskedRows(query, {document.docid for document in named}, known)
    queries = known.queries if isinstance(known, Rules) else [query]
    outside = [document for document in around if not document.depth]
    last = outside[-1]
    newest_us = max(document.end_us for document in outside)
    last_tick = Document(last.docid + 1, CLOCK, "", LAST_US, LAST_US, LAST_US, newest_us, b"")
    xml = {document.docid: document.xml for document in outside}
    registered = [
        RegisteredQuery(query if each.id == query.id else each, registration_point)
        for each in queries
    ]
    engine = Engine(registered, lateness_us=lateness_us, trace=asked.hear)
    for table in known.tables if isinstance(known, KnownRows) else ():
        engine.tables.define(table)
    engine.process(
        engine.evaluate([*outside, last_tick]),
        lambda docids: {docid: xml[docid] for docid in docids},
    )
    if asked.best is None:
        return None
    parts, decided = asked.best
    if decided > last.docid:
        text = "the clock has not passed what decides: tables have not been asked yet"
        return Reason("decision", False, text)
    at_tick = any(each.docid == decided and each.stream == CLOCK for each in outside)
    tick_is = ", a tick of the clock" if at_tick else ""
    text = f"asked of tables when it was decided, at document {decided}{tick_is}"
    return Reason("tables", all(p.holds for p in parts), text, None, {"decided": decided}, parts)


class _AskedRows:
    """Hears of what is asked of tables, and keeps what comes furthest of some documents."""

    def __init__(self, query: Query, named: set[int], known: KnownRows | Rules) -> None:
        self.best: tuple[tuple[Reason, ...], int] | None = None
        self._query = query
        self._named = named
        self._known = known
        self._labels = {variable.name: variable.label for variable in query.variables}

    def hear(self, candidate: RuleCandidate, docids: Sequence[int], tables: TableVersions) -> None:
        """Take what a candidate has asked."""
        if candidate.topic.query.id != self._query.id or set(docids) != self._named:
            return
        for found in candidate.tuples:
            reasons = self._reasons(found, candidate.order, tables)
            holding = sum(reason.holds for reason in reasons) - len(reasons)
            if self.best is None or holding > sum(r.holds for r in self.best[0]) - len(
                self.best[0]
            ):
                self.best = reasons, candidate.order[0]

    def _reasons(
        self, found: FoundTuple, order: Order, tables: TableVersions
    ) -> tuple[Reason, ...]:
        guard = found.reads.guard
        if guard is None:
            return ()
        rows = _RowsAsked(self._known, tables, (*order, ()))
        beside = Beside(found.reading, rows.tables, (*order, ()))
        # The rows that keys are made of stand behind the rows that they are the keys of.
        for row in reversed(guard.rows):
            for key in key_reader(row)(beside):
                rows.fetch(row, key)
        return tuple(
            self._reason(each, condition, beside, rows) for each, condition in _conjuncts(guard)
        )

    def _reason(
        self,
        asked: Residual | Call,
        holds: Callable[[Beside], bool],
        beside: Beside,
        rows: _RowsAsked,
    ) -> Reason:
        spelled = (
            spell_comparison(asked, self._labels)
            if isinstance(asked, Residual)
            else spell_operand(asked, self._labels)
        )
        operands = (asked.left, asked.right) if isinstance(asked, Residual) else (asked,)
        below = [each for operand in operands for each in operands_below(operand)]
        cells = [each for each in below if isinstance(each, Cell)]
        of_cells = {cell.row for cell in cells}
        said = [rows.said(c.row, c.column, k) for c in cells for k in key_reader(c.row)(beside)]
        said += [
            rows.said(row, None, key)
            for row in below
            if isinstance(row, Row) and row not in of_cells
            for key in key_reader(row)(beside)
        ]
        is_known = not rows.is_unknown
        text = f"`{spelled}`: {'; '.join(dict.fromkeys(said)) or 'the key has no value'}"
        return Reason("cell", is_known and bool(holds(beside)), text, facts=dict(rows.facts))


def _conjuncts(guard: Guard) -> list[tuple[Residual | Call, Callable[[Beside], bool]]]:
    return [
        *((each, compile_condition([each])) for each in guard.residuals),
        *((each, compile_condition([], [each])) for each in guard.tests),
    ]


class _RowsAsked:
    """Rows as a transaction has them, as far as they are known."""

    def __init__(self, known: KnownRows | Rules, tables: TableVersions, place: Place) -> None:
        self.facts: dict[str, object] = {}
        self.is_unknown = False
        self._place = place
        self._changes: dict[tuple[str, str], RowChange | None] = {}
        self._known = known
        self.tables = tables
        self._fetched = Tables()
        if isinstance(known, KnownRows):
            for table in known.tables:
                self._fetched.define(table)
            self.tables = self._fetched.begin_batch()

    def fetch(self, row: Row, key: str) -> None:
        """Have a row known."""
        if isinstance(self._known, Rules):
            change = self.tables.last_change(row.table, key, self._place)
        else:
            change = self._known.row_now(row.table, key)
            if change is not None and change.docid < self._place[0]:
                self._fetched.restore([change])
            self.is_unknown |= change is not None and change.docid >= self._place[0]
        self._changes[row.table, key] = change

    def said(self, row: Row, column: str | None, key: str) -> str:
        """Return what a row, or a column of it, said, and since when."""
        change = self._changes.get((row.table, key))
        name = f"{row.table}[{quote(key)}]"
        if change is not None and change.docid >= self._place[0] and self.is_unknown:
            return (
                f"the row {name} was changed by document {change.docid}, and what it said before"
                " is not kept"
            )
        since = "" if change is None else f" since document {change.docid}"
        if change is not None:
            self.facts["since"] = change.docid
        if column is None:
            there = self.tables.has_row(row.table, key, self._place)
            return f"the row {name} was {'there' if there else 'not there'}{since}"
        cell = self.tables.cell(row.table, key, column, self._place)
        self.facts |= {"row": f"{row.table}[{key}]", "column": column, "value": cell}
        spelled = quote(cell) if isinstance(cell, str) else f"{cell:g}"
        default = ", the default" if change is None or change.cells is None else ""
        return f"the row {name}.{column} was {spelled}{default}{since}"
