"""What is next and what is absent: decisions on ready rows of tuples, and through the whole join.

    python -m benchmarks sequences [--events 200000]

Events alternate between two kinds, b and g, each with a key.  Ready rows are what a decision gets
of the join: a table of instances with its values.  Through the join they are documents, evaluated
before the clock starts.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from joins.sequences.clock import Clock
from joins.sequences.contenders import StreamRows
from joins.sequences.evaluation import Evaluation
from joins.sequences.plan import Classes, Plan
from templates.compiler import compile_query
from templates.decision import Decided, Decision
from xpath_eval.catalog import PatternCatalog

SECOND_US = 1_000_000
KEYS = 1_000
BATCH = 10_000
TIMES = ("docid", "watermark_us", "end_us")

STATEMENTS = {
    "NEXT": "S//b[k->x] NEXT {x = y, 1 h} S//g[k->y] GRACE 0 s",
    "UNLESS": "S//b[k->x] NEXT {x = y, 1 h} S//g[k->y] UNLESS {x = z} S//c[k->z] GRACE 0 s",
    "NOT FOLLOWED BY": "S//b[k->x] NOT FOLLOWED BY {x = y, 10 s} S//g[k->y] GRACE 0 s",
}


def decided_of(text: str) -> Decided:
    """Return what a statement decides."""
    [query] = xscl.parse(text, id="q")
    [alternative] = compile_query(query, 0, PatternCatalog(), {})
    decided = alternative.root.query_class.decided
    assert decided is not None
    return decided


def streams_of(decision: Decision) -> tuple[str, str]:
    """Return the streams of a decision's b and g."""
    if decision.fits:
        return decision.fits[0].left.name, decision.fits[0].right.name
    return decision.lefts[0].name, decision.absences[0].cases[0].stream.name


def rows_of(events: int, streams: tuple[str, str]) -> pa.Table:
    """Return alternating events as rows of tuples."""
    keys = np.random.default_rng(1).integers(0, KEYS, events).astype(str).tolist()
    numbers = np.arange(events)
    times = numbers * (SECOND_US // 1_000)
    columns = {
        "stream": pa.array([streams[n % 2] for n in range(events)]),
        **dict.fromkeys(("start_us", "end_us", "watermark_us"), times),
        "docid": numbers + 1,
        "docid_min": numbers + 1,
        "depth": np.zeros(events, np.int32),
        **dict.fromkeys(("key", "match_id"), pa.array([""] * events)),
        "leaves": pa.array([[n] for n in range(events)]),
        "nodes": pa.array([[0, 0, 1]] * events, pa.list_(pa.int32())),
        "vals": pa.array([[None, None, key] for key in keys]),
        "shape": np.zeros(events, np.int32),
    }
    return pa.table(columns)


def ready(text: str, events: int) -> float:
    """Return events a second of a decision on ready rows."""
    decided = decided_of(text)
    plan = Plan()
    evaluation = Evaluation(plan, 0)
    plan.take(decided.decision, 0)
    classes = Classes.of([plan.hand_on(1, decided)])
    rows = rows_of(events, streams_of(decided.decision))
    clock = Clock()
    started = time.process_time()
    for start in range(0, events, BATCH):
        clock.begin_batch()
        some = rows.slice(start, BATCH)
        clock.advance(*(some.column(name).to_numpy() for name in TIMES))
        evaluation.add(StreamRows(some, some.column("docid").to_numpy()), 0)
        evaluation.rows(evaluation.decide(0, clock), classes)
        evaluation.evict(clock.newest_us)
    return events / (time.process_time() - started)


def joined(text: str, events: int, statements: int) -> tuple[float, int]:
    """Return events a second through the whole join, and how many matches there were."""
    queries = [xscl.parse(text, id=f"q{i}")[0] for i in range(statements)]
    engine = Engine([RegisteredQuery(each) for each in queries], lateness_us=3_600 * SECOND_US)
    keys = np.random.default_rng(1).integers(0, KEYS, events).tolist()
    documents = [
        Document(
            n + 1, "S", str(n + 1), at, at, at, at, f"<{kind}><k>{keys[n]}</k></{kind}>".encode()
        )
        for n in range(events)
        for at, kind in [(n * 1_000, "b" if n % 2 == 0 else "g")]
    ]
    xml = {document.docid: document.xml for document in documents}
    parts: list[pa.Table] = [
        engine.evaluate(documents[i : i + BATCH]) for i in range(0, events, BATCH)
    ]
    matches = 0
    started = time.process_time()
    for part in parts:
        step = engine.process(part, lambda docids: {docid: xml[docid] for docid in docids})
        matches += len(step.matches)
    return events / (time.process_time() - started), matches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--joined", type=int, default=20_000)
    options = parser.parse_args()
    print(f"{'':18} ready rows/s   through the join/s: 1 statement, 100 equal but for their ids")
    for name, text in STATEMENTS.items():
        one, found = joined(text, options.joined, 1)
        many, _ = joined(text, options.joined // 20, 100)
        rate = ready(text, options.events)
        print(f"{name:18} {rate:12,.0f}   {one:12,.0f} ({found:,} matches) {many:12,.0f}")


if __name__ == "__main__":
    main()
