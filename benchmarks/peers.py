"""The peers' workload, with every match written to the outbox, beside what Esper reached on it.

    python -m benchmarks peers [--seconds 10] [--batch 2000]

Events of two kinds alternate, 10 ms of event time apart; three fields have values drawn from
1,000.  Each of N queries is `B FOLLOWED BY {1 to 3 equalities, 1 to 10 s} G`, `SELECT *`.  Events
per second of processor time, in one process and without Spark: *evaluated* from the document on,
*joined* from its witnesses to what is committed, *written* where only the outbox is counted: what
the rate would be if nothing else took time.  The first batch is left out.  Esper 9 had flat
events in memory, counted matches in a listener, and used two processors of a machine like ours;
its figures are of its named windows with `on select`, and are read, not measured here.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import NamedTuple

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.stepresult import StepResult
from broker.pipeline.outbox import Outbox
from broker.pipeline.thisprocess import set_up_process

FIELDS = ("author", "title", "cat")
VALUES = 1_000
ESPER = {1: 392_000, 10: 220_000, 100: 34_000, 1_000: 2_561}
STEP_US = 10_000
KEPT = 2_000
"""Events that windows of 10 s reach back to, and more."""


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


class Spent(NamedTuple):
    """Processor time in seconds for some events, by part."""

    events: int = 0
    matches: int = 0
    evaluating: float = 0.0
    joining: float = 0.0
    writing: float = 0.0

    def rate(self, seconds: float) -> float:
        """Return how many events there would be in a second if they took so many."""
        return self.events / seconds if seconds else float("inf")


def measure(count: int, seconds: float, directory: Path, size: int) -> Spent:
    """Return what events cost where there are so many queries, in batches of a size."""
    random_ = random.Random(count)
    queries = [query(random_, number) for number in range(count)]
    engine = Engine([RegisteredQuery(each) for each in queries], lateness_us=0)
    outbox = Outbox(directory / "outbox.db")
    recent: dict[int, bytes] = {}
    spent = Spent()
    number = through = 0
    while sum(spent[2:]) < seconds:
        batch = [event(random_, number + i) for i in range(1, size + 1)]
        number += size
        recent.update((each.docid, each.xml) for each in batch)
        for old in [docid for docid in recent if docid <= number - size - KEPT]:
            del recent[old]
        times = [time.process_time()]
        witnesses = engine.evaluate(batch)
        times.append(time.process_time())
        step: StepResult = engine.process(witnesses, lambda ids: {i: recent[i] for i in ids})
        times.append(time.process_time())
        through += 1
        outbox.commit(after=through - 1, through=through, step=step)
        times.append(time.process_time())
        if through > 1:
            own = (size, len(step.matches), *(after - at for at, after in pairwise(times)))
            spent = Spent(*map(add, spent, own))
    outbox.close()
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--batch", type=int, default=2_000, help="events in a batch")
    arguments = parser.parse_args()
    set_up_process()
    print(f"load {os.getloadavg()[0]:.1f}")
    print(
        "queries  matches an event  µs an event: evaluated  joined  written"
        "  events/s: evaluated   joined  written   Esper  in Esper's rates"
    )
    for count, esper in ESPER.items():
        with tempfile.TemporaryDirectory() as directory:
            spent = measure(count, arguments.seconds, Path(directory), arguments.batch)
        evaluating, joining, writing = (each / spent.events * 1e6 for each in spent[2:])
        rates = [
            spent.rate(each)
            for each in (sum(spent[2:]), spent.joining + spent.writing, spent.writing)
        ]
        print(
            f"{count:7,} {spent.matches / spent.events:17.2f} {evaluating:23.2f}"
            f" {joining:7.2f} {writing:8.2f} {rates[0]:20,.0f} {rates[1]:8,.0f} {rates[2]:8,.0f}"
            f" {esper:7,}  {' '.join(f'{rate / esper:.2f}' for rate in rates)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
