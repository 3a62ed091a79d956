"""What a set asks of the join is what its assignments ask for, whichever come or go together."""

from __future__ import annotations

import pytest

import xscl
from broker.matching.queries.queryset import QuerySet
from broker.matching.queries.registration import RegisteredQuery, SetChange
from joins import ClassRegistry

COUNTED = (
    "S//i[a = $x]->a FOLLOWED BY {a/t = b/t, $w} S//i->b",
    "(S//i[a = $x]->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b) FOLLOWED BY {b/t = c/t, $w} S//i->c",
    "S//i[a = $x]->a FOLLOWED BY {similar(a/t, b/t) >= $s, $w} S//i->b",
    "SELECT * FROM S//i[a = $x]->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b LIMIT 1 PER $w GRACE 0 s",
    "SELECT <n>{count()}</n> FROM S//i[a = $x]->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b"
    " FOLLOWED BY {b/t = c/t, 1 h} S//i->c WINDOW $w HAVING count() > 1 GRACE 0 s",
)


@pytest.mark.parametrize("text", COUNTED)
def test_what_the_join_is_asked_does_not_depend_on_what_comes_together(text: str) -> None:
    [query] = xscl.parse(text, id="q")
    rows = [{"x": f"x{i}", "w": 1 + i // 4 % 3, "s": (1 + i % 3) / 4} for i in range(24)]
    rows = [{name: row[name] for name, _ in sorted(query.parameters)} for row in rows]
    points = tuple(i // 6 for i in range(24))
    registries = ClassRegistry(), ClassRegistry()
    together, one_by_one = map(QuerySet, registries)
    together.add(RegisteredQuery(query, 0, tuple(rows), points))
    one_by_one.add(RegisteredQuery(query))
    for row, point in zip(rows, points, strict=True):
        one_by_one.assign("q", row, point)
    for i in [*range(0, 24, 3), *range(1, 24, 3), *range(2, 24, 3)]:
        asked = asked_of(together, registries[0])
        assert asked == asked_of(one_by_one, registries[1]) != []
        one_by_one.unassign("q", rows[i])
        together.follow(SetChange(assigned=[("q", rows[i], None)]))
    assert not registries[0].by_number
    many = QuerySet(registries[0])
    many.add(RegisteredQuery(query, 0, tuple(rows), points))
    many.follow(SetChange(assigned=[("q", row, None) for row in rows[1:]]))
    one_by_one.assign("q", rows[0], points[0])
    assert asked_of(many, registries[0]) == asked_of(one_by_one, registries[1])
    many.follow(SetChange(assigned=[("q", rows[0], None)]))
    assert not registries[0].by_number
    assert many.retention_us == 0
    assert registries[0].retention.widest() is None


def asked_of(queries: QuerySet, registry: ClassRegistry) -> list[object]:
    """Return what each class is asked for, whatever its number."""
    asked = [
        (registry.kinds(n), registry.thresholds(n), registry.retained_us(n), registry.window_us(n))
        for n in sorted(registry.by_number)
    ]
    widest = registry.retention.widest()
    return [(*each, queries.retention_us, widest, kept_us(queries)) for each in asked]


def kept_us(queries: QuerySet) -> int:
    """Return for how long documents are kept, as is counted and as all uses say.

    What inner operators hand on has no values: rows are over windows of their assignments.
    """
    counted = queries.retentions_us(100).get("S", 0)
    uses = [use for use in queries.fan_out.uses() if use.is_join]
    lengths = [use.topic.outcome_us(use.kept_us) for use in uses if not use.clause.stream]
    asked = max((use.kept_us for use in uses), default=0)
    assert counted == asked + max(lengths, default=0)
    return counted
