"""What a text would match among the newest documents, and what it just misses, while it is typed.

A process beside the broker, with a low priority, that lives on between questions, so that none of
them waits for a start: `python -m broker.pipeline.hindsight.trial` reads a question, as a line of
JSON, from standard input, and writes lines of JSON: what is known after so many documents, at
last with `is_done`.  Whatever comes in meanwhile ends the question in hand.  A question without a
query has it read the documents, so that the first one with a query finds them taken apart.

The query and its *loosenings* (`xscl.editing.loosening`) go into one engine, so they share the
patterns and much of the join.  What a loosening finds and the query does not is a near-miss: it
fails that one condition.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import xscl
from broker.documents.document import CLOCK, parse_time, render_time
from broker.documents.spool import Spool
from broker.matching.costs.budget import Budget
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.match import FoundMatch
from broker.pipeline.hindsight.keptdocuments import KeptDocuments, aligned_documents
from broker.pipeline.lookback.dryrun import DryRun
from broker.pipeline.thisprocess import set_up_process
from xscl.durations import UNITS, render_duration
from xscl.editing.loosening import Loosening, loosenings

__all__ = ["DOCUMENTS_MAX", "SECONDS_MAX", "TrialProgress", "read_ahead", "try_query"]

DOCUMENTS_MAX = 50_000
SECONDS_MAX = 10.0

_SHOWN_MAX = 10
_NEAR_MAX = 20
_COUNTED_MAX = 20_000
"""Matches, near ones among them, after which it ends: such a text is not finished."""

_NEAR_EACH = 200
"""Near-misses of one condition, after which no more of it are looked for."""

_FIRST_PART, _GROWTH = 32, 8
"""Documents that are joined first, and how much larger the next part is, unless much was found:
where each document is near to all others, the first 250 have 30,000 near-misses."""

_BINS = 24
_PRIORITY = 10


@dataclass(slots=True)
class TrialProgress:
    """What is known so far.  Of a match its documents tell it from others.

    Loosenings that are `left_out` had too many near-misses to be counted.
    """

    loosenings: list[Loosening]
    measured: list[list[float]]
    documents: int = 0
    dead_letters: int = 0
    oldest_us: int | None = None
    matched: set[tuple[int, ...]] = field(default_factory=set)
    newest: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_SHOWN_MAX))
    near: dict[tuple[int, ...], tuple[int, dict[str, Any]]] = field(default_factory=dict)
    near_each: Counter[int] = field(default_factory=Counter)
    left_out: set[int] = field(default_factory=set)
    pauses: list[str] = field(default_factory=list)

    @property
    def found(self) -> int:
        """How many matches there are, near ones among them."""
        return len(self.matched) + len(self.near)


def try_query(
    asked: DryRun,
    source: str,
    tell: Callable[[dict[str, Any]], None],
    is_over: Callable[[], bool] = lambda: False,
    kept: KeptDocuments | None = None,
) -> None:
    """Tell what a text matches and just misses, as documents are looked at, oldest first."""
    started = time.monotonic()
    loosened = list(_loosened(asked, source))
    found = TrialProgress([loosening for loosening, _ in loosened], [[] for _ in loosened])
    spool = _spool(asked.spool)
    wanted = min(sum(each.documents for each in spool.all_segments()), asked.documents_max)
    kept = KeptDocuments() if kept is None else kept
    engine = Engine(
        list(_registered(asked, source, loosened)),
        lateness_us=asked.lateness_us,
        budget=Budget(**asked.budget),
    )
    last = spool.last_docid
    plan = engine.plan  # of what is left out, too, or all were evaluated anew without it
    evaluated = partial(kept.evaluated, plan)
    for batch, witnesses in _parts(spool, last - wanted + 1, last, evaluated, found):
        if is_over():
            return None
        step = engine.process(witnesses, spool.documents)
        _note(found, asked.query[0], batch, step.matches)
        found.dead_letters += len(step.dead_letters)
        found.pauses += [each.reason for each in step.pauses if each.query == asked.query[0]]
        is_late = time.monotonic() - started > asked.seconds_max
        if found.pauses or is_late or found.found > _COUNTED_MAX:
            break
        for at, near in found.near_each.items():
            if near > _NEAR_EACH and at not in found.left_out:
                found.left_out.add(at)
                engine.queries.remove(f"{asked.query[0]} {at}")
        if batch.column("docid")[-1].as_py() < last:
            tell(_told(found, wanted, is_done=False))
    return tell(_told(found, wanted, is_done=True))


def _parts(
    spool: Spool,
    first: int,
    last: int,
    evaluated: Callable[[pa.RecordBatch], pa.Table],
    known: TrialProgress,
) -> Iterator[tuple[pa.RecordBatch, pa.Table]]:
    """Yield documents with their witnesses: few at first, more while little is found in them."""
    most = _FIRST_PART
    for batch in aligned_documents(spool, first, last):
        witnesses = evaluated(batch)
        docids, of_witnesses = (each.column("docid").to_numpy() for each in (batch, witnesses))
        start = 0
        while start < batch.num_rows:
            part, before = batch.slice(start, most), known.found
            stop = start + part.num_rows
            low, high = np.searchsorted(of_witnesses, [docids[start], docids[stop - 1] + 1])
            yield part, witnesses.slice(low, high - low)
            start = stop
            found = known.found - before
            if found <= max(_NEAR_EACH // 10, part.num_rows // 50):
                most *= _GROWTH
            elif found > part.num_rows:
                most = max(_FIRST_PART, most // _GROWTH)


def read_ahead(
    directory: str,
    documents_max: int,
    tell: Callable[[dict[str, Any]], None],
    is_over: Callable[[], bool],
    kept: KeptDocuments,
) -> None:
    """Take the newest documents apart before anybody asks about them."""
    spool = _spool(directory)
    wanted = min(sum(each.documents for each in spool.all_segments()), documents_max)
    documents = 0
    for batch in aligned_documents(spool, spool.last_docid - wanted + 1, spool.last_docid):
        kept.apart(batch)
        documents += batch.num_rows
        if is_over():
            return
        tell({"documents": documents, "of": wanted, "is_done": False})
    tell({"documents": documents, "of": wanted, "is_done": True})


_SPOOLS: dict[str, Spool] = {}


def _spool(directory: str) -> Spool:
    """Return a spool, whose files stay mapped between questions."""
    spool = _SPOOLS.setdefault(directory, Spool(Path(directory)))
    spool.refresh()
    return spool


def _loosened(asked: DryRun, source: str) -> Iterator[tuple[Loosening, xscl.Query]]:
    """Yield the loosenings that are queries, each with its query, whose id has its number."""
    number = 0
    for each in loosenings(source, asked.parameters or {}):
        queries, found = xscl.check(each.edited(source), id=f"{asked.query[0]} {number}")
        if not any(diagnostic.is_error for diagnostic in found):
            yield each, queries[0]
            number += 1


def _registered(
    asked: DryRun, source: str, loosened: Sequence[tuple[Loosening, xscl.Query]]
) -> Iterator[RegisteredQuery]:
    for query_id, text in asked.upstream:
        yield from map(RegisteredQuery, xscl.parse(text, id=query_id))
    values = asked.parameters or {}
    (query,) = xscl.parse(source, id=asked.query[0])
    yield _with_values(query, values)
    for loosening, looser in loosened:
        other = {} if loosening.parameter is None else {loosening.parameter: loosening.value}
        yield _with_values(looser, {**values, **other})


def _with_values(query: xscl.Query, values: Mapping[str, Any]) -> RegisteredQuery:
    # A condition that is left out may have been all that wanted a value.
    own = {name: values[name] for name, _ in query.parameters}
    return RegisteredQuery(query, assignments=(own,) if own else ())


def _note(
    found: TrialProgress, name: str, batch: pa.RecordBatch, matches: Sequence[FoundMatch]
) -> None:
    if not batch.num_rows:
        return
    ticks = pc.sum(pc.equal(batch.column("stream"), CLOCK)).as_py()
    found.documents += batch.num_rows - ticks
    oldest_us = pc.min(batch.column("end_us")).as_py()
    found.oldest_us = oldest_us if found.oldest_us is None else min(found.oldest_us, oldest_us)
    loose = []
    for match in matches:
        if match.query == name:
            line = json.loads(match.line)
            found.matched.add(_documents(line))
            found.newest.append(line)
            for values, loosening in zip(found.measured, found.loosenings, strict=True):
                value = _measured(loosening, line)
                values.extend(() if value is None else (value,))
        elif match.query.startswith(f"{name} "):
            loose.append((int(match.query.rpartition(" ")[2]), match))
    for at, match in loose:
        line = json.loads(match.line)
        key = _documents(line)
        if key not in found.matched and key not in found.near:
            found.near[key] = at, line
            found.near_each[at] += 1


def _documents(line: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(each["docid"] for each in line["documents"])


def _told(found: TrialProgress, wanted: int, *, is_done: bool) -> dict[str, Any]:
    near = [(at, line) for key, (at, line) in found.near.items() if key not in found.matched]
    misses = [_miss(found.loosenings[at], line) for at, line in near]
    misses.sort(key=lambda miss: (miss["by"] is None, miss["by"] or 0.0))
    return {
        "documents": found.documents,
        "of": wanted,
        "is_done": is_done,
        "since": None if found.oldest_us is None else render_time(found.oldest_us),
        "matched": len(found.matched),
        "near": len(near),
        "uncounted": [found.loosenings[at].condition for at in sorted(found.left_out)],
        "loosened": len(found.loosenings),
        "dead_letters": found.dead_letters,
        "paused": found.pauses[0] if found.pauses else None,
        "matches": list(reversed(found.newest)),
        "misses": misses[:_NEAR_MAX],
        "histograms": list(_histograms(found, near)),
    }


def _miss(loosening: Loosening, line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a near-miss: what it failed, by which share of a bound, and what would take it."""
    measured = _measured(loosening, line)
    edit = {**_place(loosening), "text": loosening.text}
    said, by = f"fails {loosening.condition}", None
    if measured is not None and loosening.bound is not None:
        by = abs(measured - loosening.bound) / loosening.bound
        if loosening.kind == "window":
            edit["text"] = _rounded(int(measured))
            said = f"{_about(int(measured - loosening.bound))} too long"
        else:
            edit["text"] = f"{int(measured * 100) / 100:.2f}"
            said = f"{loosening.bound - measured:.2f} too low"
    return {
        "kind": loosening.kind,
        "condition": loosening.condition,
        "said": said,
        "by": by,
        "edit": edit,
        "match": line,
    }


def _place(loosening: Loosening) -> dict[str, Any]:
    """Return where an edit is made: in the text, or the parameter to which a value is given."""
    if loosening.parameter is not None:
        return {"parameter": loosening.parameter}
    return {"start": loosening.span.start, "end": loosening.span.end}


def _measured(loosening: Loosening, line: Mapping[str, Any]) -> float | None:
    """Return what a match has of what is bounded, None where its line does not tell it."""
    if loosening.kind == "window" and (loosening.is_whole or len(line["documents"]) == 2):
        times = [parse_time(each["time"]) for each in line["documents"]]
        return float(max(times) - min(times))
    if loosening.kind == "threshold":
        scores = [
            each["score"] for witness in line["witnesses"] for each in witness.get("similar", ())
        ]
        return max(scores) if scores else None
    return None


def _rounded(length_us: int) -> str:
    """Return a length that is not shorter, in full units of about its size."""
    unit_us = UNITS[_unit(length_us)]
    return render_duration(-(-length_us // unit_us) * unit_us)


def _about(length_us: int) -> str:
    unit = _unit(length_us)
    return f"{length_us / UNITS[unit]:.1f} {unit}"


def _unit(length_us: int) -> str:
    """Return the largest unit that a length has twice, else seconds."""
    units = ("days", "hours", "minutes")
    return next((each for each in units if length_us >= 2 * UNITS[each]), "seconds")


def _histograms(
    found: TrialProgress, near: list[tuple[int, dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """Yield for each bounded condition how many matches, near ones too, have how much of it."""
    for at, loosening in enumerate(found.loosenings):
        if loosening.bound is None:
            continue
        missed = (_measured(loosening, line) for which, line in near if which == at)
        values = found.measured[at] + [value for value in missed if value is not None]
        if not values:
            continue
        most = loosening.bound * 3 if loosening.kind == "window" else 1.0
        counts = [0] * _BINS
        for value in values:
            counts[min(_BINS - 1, int(value / most * _BINS))] += 1
        yield {
            "kind": loosening.kind,
            "condition": loosening.condition,
            "bound": loosening.bound,
            "most": most,
            "counts": counts,
            **_place(loosening),
        }


def _main() -> None:
    os.nice(_PRIORITY)
    set_up_process()
    asked: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            asked.put(line)
        asked.put(None)

    threading.Thread(target=read, daemon=True).start()

    def write(line: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    kept = KeptDocuments()
    while (line := asked.get()) is not None:
        question = json.loads(line)
        if question is not None:
            try:
                _answer(question, write, lambda: not asked.empty(), kept)
            except Exception as error:  # the next question is another text
                write({"error": f"{type(error).__name__}: {error}", "is_done": True})
        write({"is_ready": True})


def _answer(
    question: dict[str, Any],
    tell: Callable[[Mapping[str, Any]], None],
    is_over: Callable[[], bool],
    kept: KeptDocuments,
) -> None:
    if "query" in question:
        source = question.pop("source")
        try_query(DryRun(**question), source, tell, is_over, kept)
    else:
        read_ahead(question["spool"], question["documents_max"], tell, is_over, kept)


if __name__ == "__main__":
    _main()
