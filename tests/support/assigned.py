"""Assignments that come and go between documents: what the oracle and an engine give them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import oracle
from oracle.lines import read_lines, render

from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.outcomes.kept import Note
from broker.matching.queries.registration import SetChange
from broker.pipeline.shards import Join
from broker.tables.store import RowChange
from support.budgets import UNLIMITED
from support.kit import Case

__all__ = ["Stay", "given_by_engine", "given_by_oracle", "stays_of"]

FOREVER = 1 << 62


@dataclass(frozen=True)
class Stay:
    """An assignment of a query, there from behind one document up to another one."""

    query: str
    values: Mapping[str, Any]
    point: int
    through: int


def stays_of(case: Case, seed: int) -> list[Stay]:
    """Return when each assignment of a case comes and goes."""
    chance, last = random.Random(seed), len(case.lines)
    stays = []
    for query, rows in sorted(case.assignments.items()):
        known: list[Mapping[str, Any]] = []
        for values in rows:
            if values in known:
                continue
            known.append(values)
            point = max(chance.choice([0, chance.randint(0, last)]), case.registered.get(query, 0))
            through = chance.choice([FOREVER, FOREVER, chance.randint(point + 1, last + 1)])
            stays.append(Stay(query, values, point, through))
    return stays


def given_by_oracle(case: Case, stays: Sequence[Stay]) -> list[str]:
    """Return the matches of all stays as lines, and the rows that tables have in the end."""
    in_force = [
        oracle.InForce(query, stay.values, stay.point, stay.point, stay.through)
        for query in case.queries
        for stay in stays
        if stay.query == query.id
    ]
    in_force += [
        oracle.InForce(query, {}, case.registered.get(query.id, 0))
        for query in case.queries
        if not query.parameters
    ]
    documents = oracle.number_documents(case.lines)
    matches, rows = oracle.matches_and_rows(in_force, documents, lateness_us=case.lateness_us)
    left = {place: dict(cells) for place, cells in rows.rows.items()}
    return [*sorted(map(render, matches)), *_spelled(left)]


def given_by_engine(
    case: Case, stays: Sequence[Stay], cuts: Sequence[int], restarts: Sequence[int], shards: int
) -> list[str]:
    """Return the same as an engine gives it, whose batches end at `cuts` and where stays change."""
    documents = oracle.number_documents(case.lines)
    xml = {each.docid: each.xml for each in documents}

    def look_up(docids: Iterable[int]) -> Mapping[int, bytes]:
        return {docid: xml[docid] for docid in docids}

    join = Join(case.lateness_us, shards)
    changes = {point for stay in stays for point in (stay.point, stay.through)}
    ends = sorted({0, len(documents), *cuts, *(e for e in changes if e < len(documents))})
    engine = _engine(case, stays, 0, join)
    found, published = [], []
    notes: list[Note] = []
    rows: dict[tuple[str, str], RowChange] = {}
    for start, stop in pairwise(ends):
        assigned = [
            (stay.query, stay.values, stay.point if stay.point == start else None)
            for stay in stays
            if start and start in (stay.point, stay.through)
        ]
        if start in restarts or not engine.follow(SetChange(assigned=assigned)):
            engine = _engine(case, stays, start, join)
            engine.absorb(engine.evaluate(documents[:start]), look_up, published)
            engine.resume([], [row for row in rows.values() if row.cells is not None], notes)
        step = engine.process(engine.evaluate(documents[start:stop]), look_up)
        found += read_lines(step.matches)
        published += step.published
        notes = [n for n in (*notes, *step.notes) if n.until_us >= (step.notes_since_us or 0)]
        rows |= {(row.table, row.key): row for row in step.rows}
    left = {place: dict(row.cells) for place, row in rows.items() if row.cells is not None}
    return [*sorted(map(render, found)), *_spelled(left)]


def _engine(case: Case, stays: Sequence[Stay], start: int, join: Join) -> Engine:
    """Return an engine with the stays that are there behind a document."""
    registered = []
    for query in case.queries:
        own = [s for s in stays if s.query == query.id and s.point <= start < s.through]
        registered.append(
            RegisteredQuery(
                query,
                case.registered.get(query.id, 0),
                tuple(stay.values for stay in own),
                tuple(stay.point for stay in own),
            )
        )
    processor = join.processor(None) if join.shards > 1 else None
    return Engine(registered, lateness_us=case.lateness_us, processor=processor, budget=UNLIMITED)


def _spelled(left: Mapping[tuple[str, str], Mapping[str, str | float]]) -> list[str]:
    return [f"{place} {cells}" for place, cells in sorted(left.items())]
