"""What runs a match case with tables: matches, and the rows that are left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import oracle
from oracle.lines import read_lines

from broker.documents.document import Document
from broker.matching.match import Match
from broker.matching.outcomes.kept import Note
from broker.tables.store import RowChange
from broker.tables.transactions import Schedule
from joins.engines import DEFAULT_ENGINE, Processor
from support.kit import Case
from support.runners import engine_of

__all__ = ["Left", "run_oracle", "run_tables"]

Rows = dict[tuple[str, str], dict[str, str | float]]


@dataclass(frozen=True, slots=True)
class Left:
    """What a case leaves: its matches in order, and the rows of all tables."""

    matches: list[Match]
    rows: Rows

    def texts(self) -> dict[tuple[str, str], dict[str, str]]:
        """Return the rows as a case writes them."""
        return {
            place: {
                name: value if isinstance(value, str) else f"{value:g}"
                for name, value in cells.items()
            }
            for place, cells in self.rows.items()
        }


def run_oracle(case: Case) -> Left:
    """Return what serial evaluation leaves."""
    in_force = [
        oracle.InForce(query, parameters, case.registered.get(query.id, 0))
        for query in case.queries
        for parameters in (case.assignments.get(query.id, ()) if query.parameters else [{}])
    ]
    documents = oracle.number_documents(case.lines)
    matches, rows = oracle.matches_and_rows(in_force, documents, lateness_us=case.lateness_us)
    return Left(matches, rows.rows)


def run_tables(
    case: Case,
    *,
    batch_size: int = 1_000,
    restarts: Iterable[int] = (),
    schedule: Schedule | None = None,
    processors: Callable[[], Processor | None] = lambda: None,
) -> Left:
    """Return what an engine leaves.

    Behind each document of `restarts` it is thrown away, and a new one absorbs what was processed,
    with the rows, the notes and the published documents that were kept.
    """
    documents = oracle.number_documents(case.lines)
    xml = {document.docid: document.xml for document in documents}

    def look_up(docids: Iterable[int]) -> Mapping[int, bytes]:
        return {docid: xml[docid] for docid in docids}

    cuts = sorted({0, len(documents), *range(0, len(documents), batch_size), *restarts})
    engine = engine_of(case, DEFAULT_ENGINE, processors(), schedule=schedule)
    matches: list[Match] = []
    published: list[Document] = []
    kept: dict[tuple[str, str], RowChange] = {}
    notes: list[Note] = []
    for start, stop in pairwise(cuts):
        if start in restarts:
            engine = engine_of(case, DEFAULT_ENGINE, processors(), schedule=schedule)
            if start:
                engine.absorb(engine.evaluate(documents[:start]), look_up, published)
            engine.resume([], kept.values(), notes)
        step = engine.process(engine.evaluate(documents[start:stop]), look_up)
        matches += read_lines(step.matches)
        published += step.published
        notes = [n for n in (*notes, *step.notes) if n.until_us >= (step.notes_since_us or 0)]
        for row in step.rows:
            kept[row.table, row.key] = row
            if row.cells is None:
                del kept[row.table, row.key]
    rows = {place: dict(row.cells or {}) for place, row in kept.items()}
    present = {
        (row.table, row.key): dict(row.cells or {})
        for query in case.queries
        if query.table is not None
        for row in engine.tables.rows(query.table.name)
    }
    assert present == rows, "what is committed is what is in memory"
    return Left(matches, rows)
