"""The peers' workload, with every match written to the outbox, beside what Esper reached on it.

    python -m benchmarks peers [--seconds 10]

Events of two kinds alternate, 10 ms of event time apart; three fields have values drawn from
1,000.  Each of N queries is `B FOLLOWED BY {1 to 3 equalities, 1 to 10 s} G`, `SELECT *`.  Events
per second of processor time, in one process and without Spark: *evaluated* from the document on,
*joined* from its witnesses to what is committed.  The first batch is left out.  Esper 9 had flat
events in memory, counted matches in a listener, and used two processors of a machine like ours;
its figures are of its named windows with `on select`, and are read, not measured here.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from pathlib import Path

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.stepresult import StepResult
from broker.pipeline.outbox import Outbox
from broker.pipeline.thisprocess import set_up_process

BATCH = 2_000
FIELDS = ("author", "title", "cat")
VALUES = 1_000
ESPER = {1: 392_000, 10: 220_000, 100: 34_000, 1_000: 2_561}
STEP_US = 10_000


def event(random_: random.Random, number: int) -> Document:
    """Return an event: of kind `b` if its number is odd, else of kind `g`."""
    name = "b" if number % 2 else "g"
    fields = "".join(f"<{each}>{each} {random_.randrange(VALUES)}</{each}>" for each in FIELDS)
    time_us = number * STEP_US
    times = (time_us, time_us, time_us, time_us)
    return Document(number, "S", str(number), *times, f"<{name}>{fields}</{name}>".encode())


def query(random_: random.Random, number: int) -> xscl.Query:
    """Return a query with some equalities and some window."""
    asked = random_.sample(FIELDS, random_.randint(1, len(FIELDS)))
    equal = " AND ".join(f"b/{each} = g/{each}" for each in asked)
    window_s = random_.randint(1, 10)
    text = f"S/b->b FOLLOWED BY {{{equal}, {window_s} s}} S/g->g"
    return xscl.parse(text, id=f"q{number}")[0]


def measure(count: int, seconds: float, directory: Path) -> tuple[float, float, float, float]:
    """Return events a second, evaluated and joined, matches an event, and microseconds a match."""
    random_ = random.Random(count)
    queries = [query(random_, number) for number in range(count)]
    engine = Engine([RegisteredQuery(each) for each in queries], lateness_us=0)
    outbox = Outbox(directory / "outbox.db")
    recent: dict[int, bytes] = {}
    evaluating = joining = 0.0
    events = matches = number = through = 0
    while evaluating + joining < seconds:
        batch = [event(random_, number + i) for i in range(1, BATCH + 1)]
        number += BATCH
        recent.update((each.docid, each.xml) for each in batch)
        for old in [docid for docid in recent if docid <= number - 2 * BATCH]:
            del recent[old]
        began = time.process_time()
        witnesses = engine.evaluate(batch)
        evaluated = time.process_time()
        step: StepResult = engine.process(witnesses, lambda ids: {i: recent[i] for i in ids})
        through += 1
        outbox.commit(after=through - 1, through=through, step=step)
        ended = time.process_time()
        if through > 1:
            evaluating, joining = evaluating + evaluated - began, joining + ended - evaluated
            events, matches = events + BATCH, matches + len(step.matches)
    outbox.close()
    return (
        events / (evaluating + joining),
        events / joining,
        matches / events,
        joining / max(matches, 1) * 1e6,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    set_up_process()
    print(f"load {os.getloadavg()[0]:.1f}")
    print("queries  evaluated/s  joined/s  matches an event  µs a match  Esper/s  joined/Esper")
    for count, esper in ESPER.items():
        with tempfile.TemporaryDirectory() as directory:
            found = measure(count, arguments.seconds, Path(directory))
        evaluated, joined, matches, cost = found
        print(
            f"{count:7,} {evaluated:12,.0f} {joined:9,.0f} {matches:17.2f} {cost:11.1f}"
            f" {esper:8,} {joined / esper:13.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
