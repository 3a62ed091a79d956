"""What a query would have matched among the documents that the broker retains.

An engine of that query alone, with the queries whose published streams it reads, goes over the
newest documents of the spool.  That is done in a process of its own, with a low priority, so that
neither ingest nor the pipeline waits for it: `python -m broker.pipeline.lookback.dryrun` reads a
`DryRun` as JSON from standard input and writes lines of JSON, how far it is and at last what it
found.

Whoever asks names bounds: documents, seconds.  The budget of queries holds as it does in the
broker, so the run ends where the query, or one that it reads, would be paused.  What was looked at
is part of the answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import xscl
from broker.documents.document import CLOCK, render_time
from broker.documents.late import Newest, late_data, spell_late
from broker.documents.spool import Spool
from broker.matching.costs.budget import Budget, Pause
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.lateness import Lateness
from broker.matching.match import FoundMatch
from broker.matching.queries.registration import SetChange
from broker.matching.rendering.matchlines import match_lines
from broker.matching.stepresult import StepResult
from broker.pipeline.lookback.backfill import retained_documents
from broker.pipeline.lookback.thresholds import THRESHOLDS, at_thresholds
from broker.pipeline.thisprocess import set_up_process
from xpath_eval.stage import evaluate_batches
from xpath_eval.witnesses import WITNESS_SCHEMA

__all__ = ["DOCUMENTS_MAX", "SECONDS_MAX", "DryRun", "dry_run", "render_dry_run"]

DOCUMENTS_MAX = 100_000
"""Newest documents that are looked at where nobody says how many: some weeks of a hundred feeds."""

SECONDS_MAX = 30.0
"""Seconds after which it ends where nobody says how many; what was looked at by then is told."""

MATCHES_MAX = 100_000
"""Matches after which it ends: nobody wants to know how many more there are."""

_SHOWN_MAX = 5
_PRIORITY = 10


@dataclass(frozen=True, slots=True)
class DryRun:
    """What is asked: a query as (id, text), the publishers of its streams, and the bounds.

    `parameters` are the canonical values of one assignment, where the query has parameters;
    `budget` are the bounds of `Budget` that are not the default.
    """

    spool: str
    query: tuple[str, str]
    lateness_us: int
    upstream: tuple[tuple[str, str], ...] = ()
    parameters: Mapping[str, Any] | None = None
    documents_max: int = DOCUMENTS_MAX
    seconds_max: float = SECONDS_MAX
    budget: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Findings:
    """What was looked at, from the oldest event time to the newest, and what was found."""

    documents: int = 0
    ticks: int = 0
    matches: int = 0
    dead_letters: int = 0
    oldest_us: int | None = None
    newest_us: int | None = None
    newest_stream: str | None = None
    late: int = 0
    pause: Pause | None = None
    thresholds: dict[float, int] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    matches_kept: deque[FoundMatch] = field(default_factory=lambda: deque(maxlen=_SHOWN_MAX))


def dry_run(asked: DryRun, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Return what a query would have matched, and among what.

    `progress` is called with the documents that were looked at, and all that will be.
    """
    started = time.monotonic()
    spool = Spool(Path(asked.spool))
    retained, newest = _retained(spool)
    wanted = min(retained, asked.documents_max)
    found = _Findings()
    (query,) = xscl.parse(asked.query[1], id=asked.query[0])
    found.thresholds = {threshold: 0 for threshold, _ in at_thresholds(query)}
    lateness = Lateness(asked.lateness_us)
    lateness.follow(SetChange([*_registered(asked)]))
    similar = {f"{asked.query[0]} at {threshold}": threshold for threshold in THRESHOLDS}
    for batch, step in _steps(asked, spool, newest - wanted + 1, newest):
        found.stopped |= {pause.query for pause in step.pauses if pause.query in similar}
        pauses = (pause for pause in step.pauses if pause.query not in similar)
        found.pause = min(pauses, key=lambda pause: pause.docid, default=None)
        seen = _before(batch, found.pause)
        _note(found, asked.query[0], seen, step)
        found.late += sum(map(lateness.is_too_late, *_times(seen)))
        progress(found.documents + found.ticks, wanted)
        is_over = time.monotonic() - started > asked.seconds_max or found.matches > MATCHES_MAX
        if is_over or found.pause is not None:
            break
    thresholds = {
        str(threshold): None if name in found.stopped else found.thresholds[threshold]
        for name, threshold in similar.items()
        if threshold in found.thresholds
    }
    return {
        "query": asked.query[0],
        "thresholds": thresholds,
        "documents": found.documents,
        "retained": retained - found.ticks,
        "wanted": wanted - found.ticks,
        "is_complete": found.documents + found.ticks == retained,
        "oldest": None if found.oldest_us is None else render_time(found.oldest_us),
        "newest": None if found.newest_us is None else render_time(found.newest_us),
        "seconds": round(time.monotonic() - started, 2),
        "dead_letters": found.dead_letters,
        "late": _late(found),
        "paused": _paused(found, asked.query[0]),
        "matches": found.matches,
        "newest_matches": [json.loads(match.line) for match in reversed(found.matches_kept)],
    }


def _retained(spool: Spool) -> tuple[int, int]:
    """Return how many documents are kept, and the number of the newest."""
    return sum(segment.documents for segment in spool.all_segments()), spool.last_docid


def _steps(
    asked: DryRun, spool: Spool, first: int, last: int
) -> Iterator[tuple[pa.RecordBatch, StepResult]]:
    budget = Budget(**asked.budget)
    engine = Engine([*_registered(asked)], lateness_us=asked.lateness_us, budget=budget)
    for batch in retained_documents(spool, first, last):
        witnesses = pa.Table.from_batches(evaluate_batches(engine.plan, [batch]), WITNESS_SCHEMA)
        yield batch, engine.process(witnesses, spool.documents)


def _registered(asked: DryRun) -> Iterator[RegisteredQuery]:
    for query_id, text in asked.upstream:
        yield from map(RegisteredQuery, xscl.parse(text, id=query_id))
    (query,) = xscl.parse(asked.query[1], id=asked.query[0])
    assignments = () if asked.parameters is None else (dict(asked.parameters),)
    for each in (query, *(variant for _, variant in at_thresholds(query))):
        yield RegisteredQuery(each, assignments=assignments)


def _before(batch: pa.RecordBatch, pause: Pause | None) -> pa.RecordBatch:
    """Return the documents of a batch before the one that a query is paused at."""
    if pause is None:
        return batch
    return batch.filter(pc.less(batch.column("docid"), pause.docid))


def _times(batch: pa.RecordBatch) -> Iterator[list[Any]]:
    """Yield what is asked of documents to say which are too late."""
    for name in ("stream", "end_us", "watermark_us"):
        yield batch.column(name).to_pylist()


def _late(found: _Findings) -> dict[str, Any] | None:
    if found.newest_us is None:
        return None
    return late_data(found.late, Newest(found.newest_us, found.newest_stream))


def _paused(found: _Findings, query: str) -> str | None:
    if found.pause is None:
        return None
    who = "it" if found.pause.query == query else f"{found.pause.query!r}, which it reads,"
    return f"{who} would be paused: {found.pause.reason}"


def _note(found: _Findings, query: str, batch: pa.RecordBatch, step: StepResult) -> None:
    if not batch.num_rows:
        return
    times = pc.min_max(batch.column("end_us")).as_py()
    found.oldest_us = min(
        times["min"], times["min"] if found.oldest_us is None else found.oldest_us
    )
    if found.newest_us is None or times["max"] > found.newest_us:
        found.newest_us = times["max"]
        at = pc.index(batch.column("end_us"), times["max"]).as_py()
        found.newest_stream = batch.column("stream")[at].as_py()
    ticks = pc.sum(pc.equal(batch.column("stream"), CLOCK)).as_py()
    found.ticks += ticks
    found.documents += batch.num_rows - ticks
    found.dead_letters += len(step.dead_letters)
    last = batch.column("docid")[-1].as_py()
    matches = [each for each in step.matches if each.query == query and each.position <= last]
    found.matches += len(matches)
    found.matches_kept.extend(matches)
    for threshold in found.thresholds:
        name = f"{query} at {threshold}"
        own = (each for each in step.matches if each.query == name and each.position <= last)
        found.thresholds[threshold] += sum(1 for _ in own)


def render_dry_run(found: Mapping[str, Any]) -> str:
    """Return what was found as text: how many matches among what, and the newest of them."""
    count, documents = found["matches"], found["documents"]
    among = f"the newest {documents:,} of {found['retained']:,} documents"
    if found["is_complete"]:
        among = f"all {documents:,} documents that are kept"
    elif documents < found["wanted"]:
        among = f"the first {documents:,} of the newest {found['wanted']:,} documents"
    if documents:
        among += f" ({found['oldest'][:16]} to {found['newest'][:16]})"
    head = f"{count:,} match{'' if count == 1 else 'es'}"
    if count > MATCHES_MAX:
        head = f"more than {MATCHES_MAX:,} matches; it ended there"
    lines = [f"{found['query']}: {head} among {among}, in {found['seconds']:.1f} s"]
    if found["paused"]:
        lines.append(f"  {found['paused']}")
    if found["thresholds"]:
        lines.append(f"  by threshold: {_spell_thresholds(found['thresholds'])}")
    if found["late"]:
        lines.append(f"  {spell_late(found['late'], 'of them')}")
    for match in found["newest_matches"]:
        lines += [f"  {each}" for each in match_lines(match)]
    if count > len(found["newest_matches"]):
        lines.append(f"  and {count - len(found['newest_matches']):,} earlier")
    return "\n".join(lines) + "\n"


def _spell_thresholds(thresholds: Mapping[str, int | None]) -> str:
    return ", ".join(
        f"{'too many' if count is None else f'{count:,}'} at {threshold}"
        for threshold, count in thresholds.items()
    )


def _main() -> None:
    os.nice(_PRIORITY)
    set_up_process()
    asked = DryRun(**json.load(sys.stdin))

    def write(line: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    found = dry_run(asked, lambda documents, of: write({"documents": documents, "of": of}))
    write({"found": found, "rendered": render_dry_run(found)})


if __name__ == "__main__":
    _main()
