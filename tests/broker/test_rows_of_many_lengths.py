"""Rows over windows of many lengths are those of few together, whatever HAVING compares."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from support.examples import size, some

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.outcomes import asking, columns, compared
from xscl.evaluation import Values

SECOND_US = 1_000_000
LATENESS_US = 30 * SECOND_US
FEW = asking.MANY - 1
"""So many assignments are asked one by one."""

HAVING = (
    "count() >= $least AND sum(a/p) > 2",
    "count() = $least",
    "sum(a/p) < $least",
    "sum(a/p) < 0",
    "sum(a/p) != $least",
    "sum(a/p) > $least AND min(a/p) < $other",
    "avg(a/p) >= $least",
    "avg(a/p) = 2 AND count(a/p) > $other",
    "min(a/p) = $least",
    "max(a/p) <= $least AND count(distinct a/p) >= $other",
    "count(distinct a/p) = $least",
    "max(a/p) > min(a/p)",
)
PRICES = ("1", "2", "0", "-3", "2.5", "0.1", "-0.1", "7", "1e16", "1e-9")
STRANGE = (*PRICES, "", "x", "INF", "-INF", "1e308")

Assignment = dict[str, float | int]


def documents(chance: random.Random, count: int, prices: tuple[str, ...]) -> list[Document]:
    """Return documents of two keys: some of one time, some late, some with no price or several."""
    found: list[Document] = []
    at_us = newest_us = 0
    for number in range(1, count + 1):
        at_us += chance.choice([0, 1, 3]) * SECOND_US
        end_us = max(0, at_us - chance.choice([0] * 9 + [5, 25, 60, 90]) * SECOND_US)
        own = chance.choices(prices, k=chance.choice([0, 1, 1, 1, 1, 2]))
        inner = "".join(f"<p>{price}</p>" for price in own)
        xml = f"<i><k>{chance.choice('xxxy')}</k>{inner}</i>".encode()
        document = Document(number, "S", str(number), end_us, end_us, at_us, newest_us, xml)
        found.append(document)
        newest_us = max(newest_us, end_us)
    return found


def assignments(chance: random.Random) -> list[Assignment]:
    """Return windows, most of them different, with what HAVING asks."""
    numbers = [float(number) for number in (1, 2, 2.5, 3, 4, 7, -2, 0)]
    return [
        {"long": long * SECOND_US, "least": chance.choice(numbers), "other": chance.choice(numbers)}
        for long in chance.choices(range(140), k=30)
    ]


def rows(
    text: str, given: list[Assignment], found: list[Document], batch: int
) -> dict[str, list[str]]:
    """Return by its assignment the lines of each row."""
    [query] = xscl.parse(text, id="q")
    names = [name for name, _ in query.parameters]
    own = tuple({name: each[name] for name in names} for each in given)
    engine = Engine([RegisteredQuery(query, 0, own)], lateness_us=LATENESS_US)
    xml = {document.docid: document.xml for document in found}
    lines: dict[str, list[str]] = {}
    for start in range(0, len(found), batch):
        step = engine.process(
            engine.evaluate(found[start : start + batch]), lambda ids: {i: xml[i] for i in ids}
        )
        for row in step.matches:
            lines.setdefault(row.parameters, []).append(row.line)
    return lines


@pytest.mark.parametrize("having", some(HAVING, 4))
def test_rows_of_many_lengths_are_those_of_few(
    having: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        (
            "SELECT <n>{{sum(a/p)}} {{count()}}</n> FROM S//i->a[k->k] WINDOW $long BY k"
            f" HAVING {having} GRACE 0 s"
        )
        .replace("{{", "{")
        .replace("}}", "}")
    )
    compared_rows = 0
    for seed in range(size(1, 40)):
        chance = random.Random(f"{having} {seed}")
        monkeypatch.setattr(compared, "LEAVES_MAX", chance.choice([1, 3, 1 << 16]))
        monkeypatch.setattr(compared, "BLOCK", chance.choice([2, 256]))
        found = documents(chance, 60, chance.choice([STRANGE, PRICES]))
        asked = assignments(chance)
        together = rows(text, asked, found, chance.choice([1, 7, 60]))
        few: dict[str, list[str]] = {}
        for start in range(0, len(asked), FEW):
            few |= rows(text, asked[start : start + FEW], found, 20)
        assert together == few, seed
        compared_rows += sum(map(len, few.values()))
    assert compared_rows


def values(chance: random.Random, prices: tuple[str, ...]) -> Iterator[Values]:
    """Yield the values of one argument in each match."""
    for _ in range(80):
        yield chance.choices(prices, k=chance.choice([0, 1, 1, 1, 3]))


@pytest.mark.parametrize("function", ["count", "count distinct", "sum", "avg", "min", "max"])
def test_bounds_of_all_stretches_hold_what_each_is(function: str) -> None:
    for seed in range(size(10, 300)):
        chance = random.Random(f"{function} {seed}")
        column = columns.column_of(function, 1)
        assert column is not None
        asked: list[tuple[Values, ...]] = []
        known = 0
        for each in values(chance, STRANGE if seed % 2 else PRICES):
            asked.append((each,))
            column.append(asked[-1])
            last = len(asked)
            first = chance.randrange(last)
            bounds = column.bounds(first, last)
            if bounds is None:
                continue
            for at in range(first, last):
                low, high = float(bounds.low[at - first]), float(bounds.high[at - first])
                found = columns.aggregated(function, asked[at:last])
                value = float(found[0]) if found else float("nan")
                known += high - low < float("inf")
                assert (
                    low <= value <= high
                    or (value != value and not low <= high)
                    or ((low, high) == (-float("inf"), float("inf")))
                ), (seed, at)
        assert known


@pytest.mark.parametrize("seed", range(8))
def test_extremes_of_sums_are_those_of_some_stretch(seed: int) -> None:
    chance = random.Random(seed)
    column = columns.column_of("sum", 1)
    assert column is not None
    own = ["1", "-2", "0.5", "-0.125", "3", "1e16", *(["x"] if seed % 4 == 3 else [])]
    for last in range(1, 40):
        column.append((tuple(chance.choices(own, k=chance.randrange(3))),))
        first = chance.randrange(last)
        sums = [column.between(at, last) for at in range(first, last)]
        found = columns.extremes_of(column, first, last)
        if None in sums:
            assert found is None
        else:
            totals = [float(each[0]) for each in sums if each]
            assert found == (min(totals), max(totals))
