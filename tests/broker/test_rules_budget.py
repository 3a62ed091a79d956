"""A query that is too dear is stopped within a batch: transactions are run again without it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from support.budget_runs import Running, stream
from support.budgets import UNLIMITED

from broker.matching.costs.budget import Budget

STATEMENTS = {
    "t": "CREATE TABLE t (id KEY, n DEFAULT 0, rows DEFAULT 0, few DEFAULT 0)",
    "loud": """SELECT <l>{i/text}</l> FROM S//i->i[k->k] WHERE t[k].n < 100 GRACE 0 s
        ON MATCH SET t[k].n = t[k].n + 1""",
    "rows": """SELECT <r>{k} {count()}</r> FROM S//i->i[k->k] WHERE t[k].n < 6
        WINDOW 1 h BY k HAVING count() > t[k].rows - 2 GRACE 0 s
        ON MATCH SET t[k].rows = count(), SET t[k].n = t[k].n + 1""",
    "few": """S//i->i[k->k] WHERE t[k].n != 3 LIMIT 2 PER 3 min BY k GRACE 0 s
        ON MATCH SET t[k].few = t[k].few + 1, SET t[k].n = t[k].n - 1""",
    "apart": """SELECT DISJOINT * FROM S//i->i[k->k] FOLLOWED BY {k = l, 3 min} S//i->j[k->l]
        WHERE t[k].n < 9 GRACE 0 s ON MATCH SET t[k].n = t[k].n - 1""",
}
DOCUMENTS = stream(
    [
        f"<k>{'xxy'[number % 3]}</k><text>{'much ' * (8_000 if number == 11 else 1)}</text>"
        for number in range(1, 25)
    ]
)
DEAR = replace(UNLIMITED, bytes_per_document=60_000)


@cache
def left(budget: Budget, batch: int) -> tuple[Running, list[object]]:
    """Return what is found and what is left of rows."""
    running = Running(STATEMENTS, budget).feed(DOCUMENTS, batch)
    return running, sorted(running.engine.tables.rows("t"))


@pytest.mark.parametrize("batch", [2, 5, 24])
def test_what_a_stopped_query_did_from_there_on_is_undone(batch: int) -> None:
    alone, rows = left(DEAR, 1)
    assert [pause.query for pause in alone.pauses] == ["loud"]
    assert 10 < alone.pauses[0].docid < 14
    found, rows_found = left(DEAR, batch)
    assert sorted(found.pauses) == sorted(alone.pauses)
    assert sorted(found.lines) == sorted(alone.lines)
    assert rows_found == rows
    free, rows_free = left(UNLIMITED, 24)
    assert rows_free != rows
    assert {name for name, _, _ in found.lines} == STATEMENTS.keys() - {"t"}
    for name in ("rows", "few"):
        assert found.of(name) != free.of(name)
