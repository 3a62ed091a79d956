"""The slices of R_L: kept up to date, bounded, and never seen in what is found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import oracle
import pytest
from support.examples import examples
from support.runners import case_with_joins, engine_of

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from joins.sql.engine import SqlProcessor
from joins.sql.limits import DEFAULT_SQL_LIMITS
from joins.sql.viewcache import ViewCache

HOUR_US = 3_600_000_000
SAME = "S//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b"


def running(text: str = SAME) -> tuple[Engine, ViewCache]:
    (query,) = xscl.parse(text, id="q")
    engine = Engine([RegisteredQuery(query)], lateness_us=0, engine="mmqjp-views")
    assert isinstance(engine.processor, SqlProcessor)
    return engine, engine.processor.view_cache


def found(engine: Engine, batches: Iterator[list[Document]]) -> list[str]:
    """Return the match lines of batches of documents."""
    xml: dict[int, bytes] = {}

    def look_up(docids: Iterable[int]) -> dict[int, bytes]:
        return {docid: xml[docid] for docid in docids}

    lines = []
    for batch in batches:
        xml |= {document.docid: document.xml for document in batch}
        step = engine.process(engine.evaluate(batch), look_up)
        lines += [match.line for match in step.matches]
    return lines


def stream(*titles: str, step_us: int = 1_000_000) -> Iterator[list[Document]]:
    """Yield batches of one document."""
    for n, title in enumerate(titles, 1):
        time_us, before_us = n * step_us, (n - 1) * step_us
        xml = f"<i><t>{title}</t></i>".encode()
        yield [Document(n, "S", str(n), time_us, time_us, time_us, before_us, xml)]


def test_a_value_is_computed_once_and_then_kept_up_to_date() -> None:
    engine, cache = running()
    assert len(found(engine, stream("x", "y", "x", "x"))) == 3
    assert (cache.hits, cache.misses) == (2, 2)


def test_least_recently_used_slices_go_first() -> None:
    engine, cache = running()
    cache.rows_max = 4
    found(engine, stream("a", "b", "a", "c", "d", "c"))
    assert (cache.hits, cache.misses, cache.evictions) == (2, 4, 2)


def test_slices_go_when_the_state_is_written_anew() -> None:
    engine, cache = running(SAME.replace("1 h", "1 s"))
    titles = ["x"] * 20
    assert len(found(engine, stream(*titles))) == 19
    assert cache.misses > 1


@cache
def found_without(number: int) -> list[str]:
    documents = oracle.number_documents(case_with_joins(number).lines)
    return found(engine_of(case_with_joins(number), "mmqjp"), iter([[d] for d in documents]))


@pytest.mark.parametrize("rows_max", [0, 3, DEFAULT_SQL_LIMITS.slice_rows])
@pytest.mark.parametrize("number", range(examples(1)))
def test_the_size_of_the_view_cache_does_not_show(number: int, rows_max: int) -> None:
    case = case_with_joins(number)
    engine = engine_of(case, "mmqjp-views")
    assert isinstance(engine.processor, SqlProcessor)
    engine.processor.view_cache.rows_max = rows_max
    documents = oracle.number_documents(case.lines)
    assert found(engine, iter([[d] for d in documents])) == found_without(number) != []
