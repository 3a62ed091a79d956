"""What is next and what is absent: decisions on ready rows of tuples, and through the whole join.

    python -m benchmarks sequences [--events 200000]

Events alternate between two kinds, b and g, each with a key.  Ready rows are what decisions get
of the join: a table of instances with their values; the first batch of them is not timed.
Statements differ in a constant, so that each event is of one of them.  Through the join they are
documents, evaluated before the clock starts: what is counted begins with witnesses, which become
instances, are joined, fanned out, handed on and decided, and ends with matches as rows, grouped,
counted and in order.  With lines, documents are parsed again, and each match becomes its output and
its final line.
Last comes *the next item of the same feed* over recorded news, in the order of arrival.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

import xscl
from benchmarks._experiments import RowsOnly
from benchmarks._workloads import news_lines
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from joins.memory.slots import Ints
from joins.sequences.batch import DecidingBatch
from joins.sequences.clock import WatermarkSteps
from joins.sequences.contenders import StreamRows
from joins.sequences.evaluation import Evaluation
from joins.sequences.planning.outputs import ClassOutputs
from joins.sequences.planning.plan import Plan
from templates.compiler import compile_query
from templates.decision import AbsentCase, Decided, Decision, TupleStream
from xpath_eval.catalog import PatternCatalog

T = TypeVar("T")

SECOND_US = 1_000_000
APART_US = 3 * SECOND_US
KEYS = 1_000
BATCH = 10_000
READY_STATEMENTS = (1, 100, 1_000, 100_000)
ASSIGNMENTS = (1_000, 1_000_000)
WINDOWS = ("1 s", "1 min", "1 h", "1 d")
LATENESS_US = 86_400 * SECOND_US
TIMES = ("docid", "watermark_us", "end_us")


class Assigned(NamedTuple):
    """A statement, and the values of its parameter: at most the first ones have a match."""

    text: str
    value: Callable[[int], Any]


ASSIGNED = {
    "$key of a left": Assigned("S//b[k->x][k = $key] NEXT {x = y, 1 h} S//g[k->y] GRACE 0 s", str),
    "$key of a right": Assigned("S//b[k->x] NEXT {x = y, 1 h} S//g[k->y][k = $key] GRACE 0 s", str),
    "$p below a right": Assigned(
        "S//b[k->x] NEXT {, 1 min} S//g[k > $p] GRACE 0 s", lambda n: KEYS - 2 + n
    ),
    "$T of NEXT": Assigned(
        "S//b[k->x] NEXT {, $T} S//g[k->y] GRACE 0 s", lambda n: APART_US - 1_000_000 + n
    ),
    "$T of NOT": Assigned(
        "S//b[k->x] NOT FOLLOWED BY {, $T} S//g GRACE 0 s", lambda n: APART_US + n * 1_000
    ),
}

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


def varied(decided: Decided, number: int) -> Decided:
    """Return what a statement with another constant decides: it reads other streams."""

    def other(stream: TupleStream) -> TupleStream:
        return replace(stream, name=f"{stream.name}/{number}")

    def case_of_others(case: AbsentCase) -> AbsentCase:
        beside = tuple(f"{name}/{number}" for name in case.beside)
        return replace(case, stream=other(case.stream), beside=beside)

    decision = decided.decision
    fits = [replace(fit, left=other(fit.left), right=other(fit.right)) for fit in decision.fits]
    absences = [
        replace(absent, cases=tuple(map(case_of_others, absent.cases)))
        for absent in decision.absences
    ]
    lefts = tuple(map(other, decision.lefts))
    decision = replace(decision, lefts=lefts, fits=tuple(fits), absences=tuple(absences))
    right = None if decided.right is None else other(decided.right)
    return replace(decided, decision=decision, left=other(decided.left), right=right)


def rows_of(streams: list[str], keys: list[str], docids: Ints, times: dict[str, Ints]) -> pa.Table:
    """Return rows of tuples of streams, each of one document and with one key."""
    count = len(docids)
    columns = {
        "stream": pa.array(streams),
        **times,
        **dict.fromkeys(("docid", "docid_min", "docid_max"), docids),
        **dict.fromkeys(("key", "match_id"), pa.array([""] * count)),
        **dict.fromkeys(("depth", "shape"), np.zeros(count, np.int32)),
        "leaves": pa.array(docids.reshape(-1, 1).tolist()),
        "nodes": pa.array([[0, 0, 1]] * count, pa.list_(pa.int32())),
        "vals": pa.array([[None, None, key] for key in keys]),
    }
    return pa.table(columns)


def alternating(decided: Decided, events: int, statements: int) -> pa.Table:
    """Return alternating events of statements as rows of tuples."""
    chance = np.random.default_rng(1)
    keys = chance.integers(0, KEYS, events).astype(str).tolist()
    of_statement = chance.integers(0, statements, (events + 1) // 2).repeat(2)[:events].tolist()
    names = streams_of(decided.decision)
    streams = [f"{names[n % 2]}/{number}" for n, number in enumerate(of_statement)]
    at = np.arange(events) * (SECOND_US // 1_000)
    times = dict.fromkeys(("start_us", "end_us", "watermark_us"), at)
    return rows_of(streams, keys, np.arange(events) + 1, times)


def ready(text: str, events: int, statements: int = 1) -> float:
    """Return events a second of decisions on ready rows."""
    decided = decided_of(text)
    rows = alternating(decided, events, statements)
    return decide([varied(decided, number) for number in range(statements)], rows, 1)


def decide(all_decided: list[Decided], rows: pa.Table, rows_each: int) -> float:
    """Return events a second, each of some rows, of decisions on rows."""
    plan = Plan()
    for each in all_decided:
        plan.take(each.decision, 0)
    classes = ClassOutputs.of([plan.hand_on(i, each) for i, each in enumerate(all_decided)])
    evaluation = Evaluation(plan, LATENESS_US)
    clock = WatermarkSteps()
    started = time.process_time()
    for start in range(0, rows.num_rows, BATCH):
        if start == BATCH:
            # What is sought of the plan was put in order when the first rows asked.
            gc.collect()
            started = time.process_time()
        clock = clock.next_batch()
        batch = DecidingBatch(clock, lambda: 0)
        some = rows.slice(start, BATCH)
        clock.advance(*(some.column(name).to_numpy() for name in TIMES))
        evaluation.add(StreamRows(some, some.column("docid").to_numpy()), 0)
        evaluation.rows(evaluation.decide(0, batch), classes, batch.taken)
        evaluation.evict(clock.newest_us - LATENESS_US)
    return (rows.num_rows - BATCH) / rows_each / (time.process_time() - started)


def joined(text: str, events: int, statements: int) -> tuple[float, float, int]:
    """Return what `through_the_join` does of alternating events."""
    return through_the_join(text, alternating_documents(events), statements)


def alternating_documents(events: int, apart_us: int = 1_000) -> list[Document]:
    """Return alternating events as documents."""
    keys = np.random.default_rng(1).integers(0, KEYS, events).tolist()
    return [
        Document(
            n + 1,
            "S",
            str(n + 1),
            at,
            at,
            at,
            at - apart_us,
            f"<{kind}><k>{keys[n]}</k></{kind}>".encode(),
        )
        for n in range(events)
        for at, kind in [(n * apart_us, "b" if n % 2 == 0 else "g")]
    ]


def through_the_join(
    text: str, documents: list[Document], statements: int
) -> tuple[float, float, int]:
    """Return documents a second to the rows of matches, and to lines, and how many there were."""
    queries = [RegisteredQuery(xscl.parse(text, id=f"q{i}")[0]) for i in range(statements)]
    xml = {document.docid: document.xml for document in documents}
    rates: list[float] = []
    matches = 0
    for engine in (
        RowsOnly(queries, lateness_us=LATENESS_US),
        Engine(queries, lateness_us=LATENESS_US),
    ):
        parts: list[pa.Table] = [
            engine.evaluate(documents[i : i + BATCH]) for i in range(0, len(documents), BATCH)
        ]
        matches = 0
        started = time.process_time()
        for part in parts:
            step = engine.process(part, lambda docids: {docid: xml[docid] for docid in docids})
            matches += len(step.matches)
        rates.append(len(documents) / (time.process_time() - started))
        if isinstance(engine, RowsOnly):
            found = engine.found
    assert found == matches
    return rates[0], rates[1], matches


def apart(measure: Callable[..., T], *arguments: object) -> T:
    """Return what a process of its own measures; in this one nothing has been measured yet."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(measure, arguments)


def assigned(name: str, count: int, events: int) -> tuple[float, float, int]:
    """Return events a second to rows, seconds to take assignments in, and how many matches."""
    workload = ASSIGNED[name]
    [query] = xscl.parse(workload.text, id="q")
    [(parameter, _)] = query.parameters
    values = [{parameter: workload.value(n)} for n in range(count)]
    started = time.process_time()
    registered = RegisteredQuery(query, assignments=tuple(values))
    engine = RowsOnly([registered], lateness_us=LATENESS_US)
    taken_in = time.process_time() - started
    documents = alternating_documents(events, APART_US)
    parts = [engine.evaluate(documents[i : i + BATCH]) for i in range(0, events, BATCH)]
    # Boxes are put in order when the first tuples ask.
    assert not engine.process(parts[0], dict[int, bytes]).pauses
    started = time.process_time()
    for part in parts[1:]:
        assert not engine.process(part, dict[int, bytes]).pauses
    rate = (events - BATCH) / (time.process_time() - started)
    return rate, taken_in, engine.found


def news(items: int) -> list[Document]:
    """Return recorded items as documents, in the order of their arrival."""
    lines = sorted(news_lines(items), key=lambda line: line.arrival_us or 0)
    found: list[Document] = []
    newest_us = -(1 << 61)
    for n, line in enumerate(lines, 1):
        assert line.time_us is not None
        assert line.arrival_us is not None
        at = min(line.time_us, line.arrival_us)
        found.append(Document(n, "news", str(n), at, at, line.arrival_us, newest_us, line.xml))
        newest_us = max(newest_us, at)
    return found


def recorded(grace: str, items: int) -> tuple[float, float, float, int]:
    """Return items a second of the next of the same feed: ready, to rows, to lines; its matches."""
    documents = news(items)
    text = f"news//item[feed->x] NEXT {{x = y, 1 d}} news//item[feed->y] GRACE {grace}"
    feeds = [document.xml.partition(b"<feed>")[2].partition(b"<")[0] for document in documents]
    decided = decided_of(text)
    names = streams_of(decided.decision)
    columns = ("start_us", "end_us", "watermark_us", "docid")
    times = {
        name: np.array([getattr(each, name) for each in documents]).repeat(len(names))
        for name in columns
    }
    keys = [feed.decode() for feed in feeds for _ in names]
    rows = rows_of([*names] * len(documents), keys, times.pop("docid"), times)
    return decide([decided], rows, len(names)), *through_the_join(text, documents, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--joined", type=int, default=20_000)
    parser.add_argument("--items", type=int, default=70_110)
    options = parser.parse_args()
    print("events/s to rows by assignments of one statement, and seconds to take them in")
    for name in ASSIGNED:
        for count in ASSIGNMENTS:
            rate, seconds, found = apart(assigned, name, count, options.joined + BATCH)
            print(f"{name:18} {count:10,} {rate:10,.0f} {seconds:8.1f} s ({found:,} matches)")
    print("next recorded item of the same feed, items/s: ready, to rows, to lines")
    for grace in ("0 s", "1 h", "1 d"):
        rate, rows, lines, found = apart(recorded, grace, options.items)
        print(f"GRACE {grace:12} {rate:10,.0f} {rows:10,.0f} {lines:10,.0f} ({found:,} matches)")
    print(f"ready events/s by statements: {', '.join(map(str, READY_STATEMENTS))}")
    for name, text in STATEMENTS.items():
        rates = [ready(text, options.events, count) for count in READY_STATEMENTS]
        print(f"{name:18}", *(f"{rate:10,.0f}" for rate in rates))
    print(f"ready events/s of NEXT by windows: {', '.join(WINDOWS)}")
    rates = [ready(STATEMENTS["NEXT"].replace("1 h", each), options.events) for each in WINDOWS]
    print(f"{'':18}", *(f"{rate:10,.0f}" for rate in rates))
    print("documents/s to rows of matches, to lines: 1 statement, 100 equal but for their ids")
    for name, text in STATEMENTS.items():
        rows, lines, found = joined(text, options.joined, 1)
        many_rows, many_lines, _ = joined(text, options.joined // 20, 100)
        print(
            f"{name:18} {rows:10,.0f} {lines:10,.0f} ({found:,} matches)"
            f" {many_rows:10,.0f} {many_lines:10,.0f}"
        )


if __name__ == "__main__":
    main()
