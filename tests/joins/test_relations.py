"""The relations of the worked example are those that the paper prints."""

from __future__ import annotations

import pytest
from oracle.lines import read_lines
from support import worked_example as paper
from support.paper_relations import r_bin, r_doc, r_doc_ts, r_out

import xscl
from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.engine import Engine, RegisteredQuery
from joins.sql.engine import SQL_ENGINES

T1, T2, T3 = 1_000_000, 2_000_000, 3_000_000


def document(docid: int, time_us: int, xml: bytes) -> Document:
    watermark_us = time_us - 1_000_000 if docid > 1 else FIRST_WATERMARK_US
    return Document(docid, "S", str(docid), time_us, time_us, time_us, watermark_us, xml)


DOCUMENTS = [document(1, T1, paper.D1), document(2, T2, paper.D2), document(3, T3, paper.D3)]


def running(engine: str = "mmqjp-views") -> Engine:
    queries = [xscl.parse(text, id=name)[0] for name, text in paper.QUERIES.items()]
    return Engine([RegisteredQuery(q) for q in queries], lateness_us=0, engine=engine)


def step(engine: Engine, one: Document) -> list[tuple[str, list[int]]]:
    found = engine.process(
        engine.evaluate([one]), lambda ids: {d.docid: d.xml for d in DOCUMENTS if d.docid in ids}
    )
    return [
        (match.query, [d.docid for d in match.documents]) for match in read_lines(found.matches)
    ]


def named(engine: Engine, rows: list[tuple[int, int, int, int, int]]) -> set[tuple[object, ...]]:
    names = engine.queries.catalog.names
    return {(docid, names[v1], names[v2], n1, n2) for docid, v1, v2, n1, n2 in rows}


def test_tables_b_and_c_are_what_is_remembered_of_the_first_document() -> None:
    engine = running()
    step(engine, DOCUMENTS[0])
    assert set(r_doc(engine.processor)) == paper.R_DOC
    assert named(engine, r_bin(engine.processor)) == paper.R_BIN
    assert r_doc_ts(engine.processor) == [(1, T1)]


def test_tables_d_and_e_are_the_witnesses_of_the_second_document() -> None:
    engine = running()
    step(engine, DOCUMENTS[0])
    step(engine, DOCUMENTS[1])
    assert {(node, value) for _, node, value in r_doc(engine.processor, "new")} == paper.R_DOC_W
    rows = {row[1:] for row in named(engine, r_bin(engine.processor, "new"))}
    assert rows == paper.R_BIN_W
    assert r_doc_ts(engine.processor, "new") == [(2, T2)]


@pytest.mark.parametrize("name", SQL_ENGINES)
def test_table_f_is_what_the_template_finds_with_the_second_document(name: str) -> None:
    engine = running(name)
    step(engine, DOCUMENTS[0])
    step(engine, DOCUMENTS[1])
    queries = {number: subscriber.query.id for number, _, subscriber in engine.classes()}
    rows = {(queries[number], *rest) for number, *rest in r_out(engine.processor)}
    assert rows == {row[:8] for row in paper.R_OUT}


@pytest.mark.parametrize("name", SQL_ENGINES)
def test_the_matches_of_the_worked_example(name: str) -> None:
    engine = running(name)
    assert step(engine, DOCUMENTS[0]) == []
    assert sorted(step(engine, DOCUMENTS[1])) == [("Q1", [1, 2]), ("Q2", [1, 2])]
    third = sorted(step(engine, DOCUMENTS[2]))
    assert third == [("Q1", [1, 3]), ("Q2", [1, 3]), ("Q3", [2, 3])]
