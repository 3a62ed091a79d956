"""The join against what a user would otherwise write: SQL per subscription, and dictionaries.

    python -m benchmarks handwritten [--subscriptions 1 10 100 1000] [--documents N] [--seconds S]

Recorded news items in the order of their times, random subscriptions of one to five equalities
(section 6.6.1 of the paper), window 1 day, 1,000 documents at a time; what is asked for is the
pairs of each subscription, counted.

    broker        the default engine
    dictionaries  Python: for each subscription a dictionary from values to recent documents
    SQL stream    DuckDB: for each batch one windowed self-join for each subscription
    SQL once      DuckDB: one self-join for each subscription over all documents at once; no stream,
                  but the least that SQL can cost

All get the same documents and must count the same.  One that has not come to the end after
`--seconds` stops there, and its rate is that of the documents that it has seen.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks._workloads import flat_side, join_class, news_lines, table
from joins.engines import make_processor
from xpath_eval.structure import parse_xml

DAY_US = 86_400_000_000
BATCH = 1_000
LEAVES = ("link", "feed", "title", "published", "author")

Subscription = tuple[tuple[int, int], ...]
"""Pairs of a left and a right leaf with equal values."""

Item = tuple[int, tuple[str, ...]]
"""A document: its time, and the values of its leaves."""


def recorded(count: int) -> list[Item]:
    """Return recorded items in the order of their times."""
    found = []
    for line in news_lines(count):
        root = parse_xml(line.xml).root
        values = tuple(root.findtext(name) or "" for name in LEAVES)
        found.append((min(line.time_us, line.arrival_us), values))
    return sorted(found)


def subscriptions(count: int) -> list[Subscription]:
    random_ = random.Random(7)
    leaves = range(len(LEAVES))
    found = []
    for _ in range(count):
        joins = random_.choices(range(1, 6), [1 / k**0.8 for k in range(1, 6)])[0]
        lefts, rights = random_.sample(leaves, joins), random_.sample(leaves, joins)
        found.append(tuple(zip(lefts, rights, strict=True)))
    return found


class Broker:
    """The default engine; a class counts as often as it is subscribed to."""

    def __init__(self, wanted: Sequence[Subscription]) -> None:
        side = flat_side(len(LEAVES))
        self._processor = make_processor("signatures", lateness_us=0)
        self._processor.add_shapes({"item": side.edges()})
        uses: Counter[int] = Counter()
        for joins in wanted:
            query_class = join_class(side, sorted((a + 1, b + 1) for a, b in joins))
            uses[self._processor.add(query_class, DAY_US)] += 1
        self._uses = np.array([uses[number] for number in range(max(uses) + 1)])
        self._docid = 1

    def rows(self, batch: Sequence[Item]) -> pa.Table:
        """Return a batch as the witnesses that stage 1 makes of it."""
        values = [[None, *values] for _, values in batch]
        rows = table([0] * len(batch), values, [time_us for time_us, _ in batch], self._docid)
        self._docid += len(batch)
        return rows

    def count(self, rows: pa.Table) -> int:
        self._processor.begin_batch()
        self._processor.absorb(rows)
        found = sum(
            int(self._uses[columns.classes].sum()) for columns in self._processor.probe_columns(0)
        )
        self._processor.evict(rows.column("end_us")[-1].as_py() - DAY_US)
        return found


@dataclass
class Dictionary:
    """One subscription, as one would write it in Python."""

    joins: Subscription
    recent: dict[tuple[str, ...], deque[int]] = field(default_factory=dict)

    def pairs(self, batch: Sequence[Item]) -> list[tuple[int, int]]:
        found = []
        for time_us, values in batch:
            right = tuple(values[b] for _, b in self.joins)
            partners = self.recent.get(right)
            if partners:
                while partners and partners[0] < time_us - DAY_US:
                    partners.popleft()
                found += [(partner, time_us) for partner in partners if partner < time_us]
            left = tuple(values[a] for a, _ in self.joins)
            if all(left):
                self.recent.setdefault(left, deque()).append(time_us)
        return found


class Dictionaries:
    """One dictionary for each subscription."""

    def __init__(self, wanted: Sequence[Subscription]) -> None:
        self._queries = [Dictionary(joins) for joins in wanted]

    def rows(self, batch: Sequence[Item]) -> Sequence[Item]:
        return batch

    def count(self, batch: Sequence[Item]) -> int:
        return sum(len(query.pairs(batch)) for query in self._queries)


class Sql:
    """One self-join for each subscription and batch."""

    def __init__(self, wanted: Sequence[Subscription]) -> None:
        self._db = duckdb.connect(":memory:")
        columns = ", ".join(f"{name} VARCHAR" for name in LEAVES)
        self._db.execute(f"CREATE TABLE recent (time_us BIGINT, {columns})")
        self._statements = [statement(joins) for joins in wanted]

    def rows(self, batch: Sequence[Item]) -> pa.Table:
        columns = zip(*((time_us, *values) for time_us, values in batch), strict=True)
        return pa.table(dict(zip(("time_us", *LEAVES), map(list, columns), strict=True)))

    def count(self, batch: pa.Table) -> int:
        oldest = batch.column("time_us")[0].as_py() - DAY_US
        self._db.register("batch", batch)
        self._db.execute(f"DELETE FROM recent WHERE time_us < {oldest}")
        self._db.execute("INSERT INTO recent SELECT * FROM batch")
        return sum(int(self._db.execute(sql).fetchall()[0][0]) for sql in self._statements)


def statement(joins: Subscription) -> str:
    equal = " AND ".join(f"l.{LEAVES[a]} = r.{LEAVES[b]} AND l.{LEAVES[a]} <> ''" for a, b in joins)
    return f"""SELECT count(*) FROM recent AS l, batch AS r
WHERE {equal} AND l.time_us < r.time_us AND r.time_us - l.time_us <= {DAY_US}"""


Contestant = type[Broker] | type[Dictionaries] | type[Sql]


def stream(
    contestant: Contestant, wanted: Sequence[Subscription], items: Sequence[Item], seconds: float
) -> tuple[float, list[int]]:
    """Return documents per second, and how many pairs there were after each batch."""
    running = contestant(wanted)
    spent, found = 0.0, [0]
    for batch in batches(items):
        rows = running.rows(batch)
        started = time.perf_counter()
        found.append(found[-1] + running.count(rows))
        spent += time.perf_counter() - started
        if spent > seconds:
            break
    seen = min(len(items), (len(found) - 1) * BATCH)
    return seen / spent, found


def batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def once(wanted: Sequence[Subscription], items: Sequence[Item]) -> tuple[float, int]:
    """Return documents per second and pairs of SQL over all documents at once."""
    running = Sql(wanted)
    rows = running.rows(items)
    # Nothing is too old for what comes later.
    started = time.perf_counter()
    found = running.count(rows)
    return len(items) / (time.perf_counter() - started), found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--subscriptions", type=int, nargs="+", default=[1, 10, 100, 1_000])
    parser.add_argument("--documents", type=int, default=70_110)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    items = recorded(arguments.documents)
    names = ("broker", "dictionaries", "SQL stream", "SQL once")
    print(f"{len(items):,} news items, window 1 day; documents/s (times as fast as the broker)")
    print(f"{'subscriptions':>13} {'broker':>9}" + "".join(f"{name:>22}" for name in names[1:]))
    for count in arguments.subscriptions:
        wanted = subscriptions(count)
        broker, found = stream(Broker, wanted, items, 1e9)
        print(f"{count:>13,} {broker:>9,.0f}", end="", flush=True)
        for contestant in (Dictionaries, Sql):
            rate, same = stream(contestant, wanted, items, arguments.seconds)
            assert same == found[: len(same)], "they do not find the same"
            print(f"{rate:>13,.0f} ({rate / broker:5.3f})", end="", flush=True)
        some = (len(same) - 1) * BATCH
        rate, pairs = once(wanted, items[:some])
        assert pairs == same[-1], "they do not find the same"
        print(f"{rate:>13,.0f} ({rate / broker:5.3f})", flush=True)


if __name__ == "__main__":
    main()
