"""A join of many tables is written in steps of few, and finds the same."""

from __future__ import annotations

import pytest
from oracle.lines import read_lines, render
from support.examples import some
from support.runners import SOME_ENGINES, EngineName, case_with_joins, run_engine
from support.tiny_limits import matching

import xscl
from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.engine import Engine, RegisteredQuery
from joins.sql.engine import SQL_ENGINES, SqlProcessor
from joins.sql.limits import STEP_TABLES, SqlLimits
from joins.sql.render import ProbeStep, render_sql
from templates.conjunctive import conjunctive_query, view_query


@pytest.mark.parametrize(("number", "tables"), some([(0, 2), (1, 3), (0, 3), (1, 2)], 1))
def test_steps_of_any_size_find_the_same(number: int, tables: int) -> None:
    case = case_with_joins(number)
    expected = [render(match) for match in run_engine(case)]
    limits = SqlLimits(step_tables=tables)
    for engine in SQL_ENGINES:
        found = run_engine(
            case,
            processors=lambda: SqlProcessor(
                lateness_us=case.lateness_us,
                engine=engine,  # noqa: B023 - called at once
                limits=limits,
            ),
        )
        assert [render(match) for match in found] == expected != []
    found = run_engine(case, limits=matching(step_tables=tables))
    assert [render(match) for match in found] == expected


def engine_of(conjuncts: int, engine: EngineName) -> Engine:
    joined = " AND ".join(f"a/c{i} = b/c{i}" for i in range(conjuncts))
    [query] = xscl.parse(f"S//i->a FOLLOWED BY {{{joined}, 1 h}} S//i->b", id="wide")
    return Engine([RegisteredQuery(query)], lateness_us=0, engine=engine)


@pytest.mark.parametrize("engine", SOME_ENGINES)
def test_forty_different_value_joins_are_a_query_like_others(engine: EngineName) -> None:
    running = engine_of(40, engine)
    same = [f"<c{i}>x{i}</c{i}>" for i in range(40)]
    bodies = ["".join(same), "".join(same[:-1]), "".join(same[:-1]) + "<c39>y</c39>", "".join(same)]
    documents, watermark_us = [], FIRST_WATERMARK_US
    for docid, body in enumerate(bodies, 1):
        times = (docid, docid, docid, watermark_us)
        documents.append(Document(docid, "S", str(docid), *times, f"<i>{body}</i>".encode()))
        watermark_us = docid
    witnesses = running.evaluate(documents)
    step = running.process(witnesses, lambda ids: {i: documents[i - 1].xml for i in ids})
    [match] = read_lines(step.matches)
    assert [document.docid for document in match.documents] == [1, 4]


def test_no_step_joins_more_tables_than_can_be_planned_soon() -> None:
    processor = engine_of(100, "mmqjp").processor
    template = processor.template_of(1)
    for query in (conjunctive_query(template), view_query(template)):
        for sql in render_sql(query, template, 1, ProbeStep(1, 0, 0)):
            steps = [step.split("\nWHERE")[0] for step in sql.split("\nFROM ")[1:]]
            tables = [step.count(" AS ") for step in steps]
            assert sum(tables) > 300
            assert max(tables) <= STEP_TABLES + 2, "and both documents in the last one"
