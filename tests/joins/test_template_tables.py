"""R_T follows the classes row by row, and holds what it would if it were written at once."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from joins.classes import ClassRegistry
from joins.sql import schema
from joins.sql.rows import TemplateTables, connect, run
from templates.joingraph import GraphNode, JoinGraph
from templates.queryclass import QueryClass
from templates.template import template_of


def query_class(left: tuple[int, ...], right: tuple[int, ...], *, is_symmetric: bool) -> QueryClass:
    """Return the class that joins the leaves of two roots in order."""
    sides = tuple((GraphNode(0, -1), *(GraphNode(v, 0) for v in side)) for side in (left, right))
    joins = tuple((i, i) for i in range(1, len(left) + 1))
    template, row, _ = template_of(JoinGraph(sides, joins))
    return QueryClass(template, row, is_symmetric, 0)


@pytest.mark.parametrize("seed", range(3))
def test_tables_have_a_row_for_each_class_that_is_there(seed: int) -> None:
    random_ = random.Random(seed)
    registry = ClassRegistry()
    db = connect(threads=1)
    tables = TemplateTables(db, registry)
    uses: list[tuple[int, int]] = []
    for _ in range(60):
        for _ in range(random_.randrange(8)):
            joins = random_.randint(1, 2)
            sides = (tuple(random_.sample(range(1, 5), joins)) for _ in range(2))
            window_us = random_.randint(1, 3)
            chosen = query_class(*sides, is_symmetric=random_.random() < 0.5)
            uses.append((registry.add(chosen, window_us), window_us))
        random_.shuffle(uses)
        for _ in range(min(len(uses), random_.randrange(8))):
            registry.remove(*uses.pop())
        tables.refresh()
        assert not tables.refresh(), "nothing has changed since"
        found = Counter(
            row
            for number in tables.numbers.values()
            for row in run(db, f"SELECT * FROM {schema.template_row(number)}")
        )
        windows = Counter[int]()
        for number, window_us in uses:
            windows[number] = max(windows[number], window_us)
        assert found == {
            (number, *each.row.variables, windows[number], each.is_symmetric, each.stratum): 1
            for number, each in registry.by_number.items()
        }
