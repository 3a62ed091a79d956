"""What a subscription costs, wherever its parameter stands: processor time, driver alone.

    python -m benchmarks parameters [--rows 1000 1000000] [--only WORD]

One query, subscribed to with so many assignments, none of which has a match: what is shown is the
price of having them.  Items have an author, a price, a title, and the link of the item before, so
each makes a tuple with the one before it, or with two.  The join and fan-out are in the figure, the
median of batches; the evaluation of documents and the first batch are not.  Each number of
assignments has a process of its own, and these take batches in turns, so that a machine that wavers
is slow for all of them.  A process says what an assignment took of its time and memory, beside what
the query takes with one of them.  Last comes the peak of a batch of 20,000 documents, evaluation
included, above what the process had before: it is said of parameters in blocks, where it once grew
with rows.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.pipeline.thisprocess import set_up_process

BATCH = 250
DOCUMENTS = 4_000
LARGE_BATCH = 20_000
LINKED = "{a/next = b/link, 1 h}"
SHORT = "{a/next = b/link, 1 ms}"
"""Shorter than the time between two items."""
PAIR = "S//i->a FOLLOWED BY {a/next = b/link%s, %s} S//i->b"
THREE = (
    "(S//i%s->a FOLLOWED BY {a/next = b/link, %s} S//i%s->b)"
    " FOLLOWED BY {b/next = c/link%s, %s} S//i%s->c"
)
INNER = (
    "(S//i->a FOLLOWED BY {a/next = b/link AND %s, 1 h} S//i->b)"
    " FOLLOWED BY {b/author = c/link, 1 h} S//i->c"
)
"""No author is a link."""


def three(
    first: str = "",
    inner: str = "1 h",
    *,
    middle: str = "",
    also: str = "",
    window: str = "1 h",
    last: str = "",
) -> str:
    """Return a query of three blocks with parameters where they are given."""
    return THREE % (first, inner, middle, also, window, last)


def _name(i: int) -> dict[str, Any]:
    return {"x": f"nobody {i}"}


def _neither(i: int) -> dict[str, Any]:
    return {"x": f"nobody {i}", "y": f"nothing {i}"}


def _high(i: int) -> dict[str, Any]:
    return {"x": i + 1e6}


def _low(i: int) -> dict[str, Any]:
    return {"x": i / 1e7}


def _short(i: int) -> dict[str, Any]:
    return {"w": i % 900_000}


class Workload(NamedTuple):
    """A query and the assignment of each row; rows may see nothing before a point.

    With more than `most` of them the query is over its budget, or too large to be registered here.
    Where it `is_written_out` each row is a statement of its own, with its value in the text, behind
    one for which all documents are joined.
    """

    text: str
    values: Callable[[int], dict[str, Any]]
    is_late: bool = False
    most: int = 1_000_000
    is_written_out: bool = False

    def queries(self, rows: int) -> list[RegisteredQuery]:
        """Return what is registered for so many rows."""
        if self.is_written_out:
            other, _, own = self.text.partition(";")
            texts = (other, *(own % self.values(i)["x"] for i in range(rows)))
            parsed = (each for i, text in enumerate(texts) for each in xscl.parse(text, id=f"q{i}"))
            return [*map(RegisteredQuery, parsed)]
        *others, query = xscl.parse(self.text, id="q")
        assignments = tuple(self.values(i) for i in range(rows))
        points = tuple(DOCUMENTS + i for i in range(rows)) if self.is_late else ()
        return [*map(RegisteredQuery, others), RegisteredQuery(query, 0, assignments, points)]


WORKLOADS = {
    "[author = $x], one operator": Workload(
        f"S//i[author = $x]->a FOLLOWED BY {LINKED} S//i->b", _name
    ),
    "b/author = $x, one operator": Workload(PAIR % (" AND b/author = $x", "1 h"), _name),
    "$w, one operator": Workload(PAIR % ("", "$w"), _short),
    "b/price < $x": Workload(PAIR % (" AND b/price < $x", "1 h"), _low),
    "b/author != $x, b/price < $y": Workload(
        PAIR % (" AND b/author != $x AND b/price < $y", "1 h"),
        lambda i: {"x": f"nobody {i}", "y": i / 1e7},
    ),
    "b/price = $x": Workload(PAIR % (" AND b/price = $x", "1 h"), lambda i: {"x": i + 0.5}),
    "b/price - a/price > $x": Workload(
        PAIR % (" AND b/price - a/price > $x", "1 h"), lambda i: {"x": i + 2}
    ),
    "b/price > a/price * $x": Workload(
        PAIR % (" AND b/price > a/price * $x", "1 h"), lambda i: {"x": i + 3}
    ),
    "time(b) - time(a) < $w": Workload(PAIR % (" AND time(b) - time(a) < $w", "1 h"), _short),
    "matches(b/title, $x)": Workload(PAIR % (" AND matches(b/title, $x)", "1 h"), _name),
    "[price < $x]": Workload(f"S//i[price < $x]->a FOLLOWED BY {LINKED} S//i->b", _low),
    "[contains(title, $x)]": Workload(
        f"S//i[contains(title, $x)]->a FOLLOWED BY {LINKED} S//i->b", _name
    ),
    "[matches(title, $x)]": Workload(
        f"S//i[matches(title, $x)]->a FOLLOWED BY {LINKED} S//i->b", _name
    ),
    "[count(title) > $x]": Workload(
        f"S//i[count(title) > $x]->a FOLLOWED BY {LINKED} S//i->b", lambda i: {"x": i + 3}
    ),
    "[string(title) = $x]": Workload(
        f"S//i[string(title) = $x]->a FOLLOWED BY {LINKED} S//i->b", _name
    ),
    "[contains(title, concat($x, 's'))]": Workload(
        f"S//i[contains(title, concat($x, 's'))]->a FOLLOWED BY {LINKED} S//i->b", _name
    ),
    "[author = $x or title = $y]": Workload(
        f"S//i[author = $x or title = $y]->a FOLLOWED BY {LINKED} S//i->b",
        _neither,
    ),
    "[price < $x or price > $y]": Workload(
        f"S//i[price < $x or price > $y]->a FOLLOWED BY {LINKED} S//i->b",
        lambda i: {"x": i / 1e7, "y": i + 1e7},
    ),
    "[price > string-length(title) * $x]": Workload(
        f"S//i[price > string-length(title) * $x]->a FOLLOWED BY {LINKED} S//i->b",
        _high,
    ),
    "[author = $x and price < 5 or title = $y]": Workload(
        f"S//i[author = $x and price < 5 or title = $y]->a FOLLOWED BY {LINKED} S//i->b",
        _neither,
    ),
    "[not(author = $x and price)], with a word": Workload(
        f"S//i[not(author = $x and price)][title = $y]->a FOLLOWED BY {LINKED} S//i->b",
        _neither,
    ),
    "[price > string-length(title) * $x], before NEXT": Workload(
        f"S//i[price > string-length(title) * $x]->a NEXT {LINKED} S//i->b",
        _high,
    ),
    "[author = $x and price < 5 or title = $y], before NEXT": Workload(
        f"S//i[author = $x and price < 5 or title = $y]->a NEXT {LINKED} S//i->b",
        _neither,
    ),
    "[contains(title, $x)], right of NEXT": Workload(
        f"S//i->a NEXT {LINKED} S//i[contains(title, $x)]->b", _name
    ),
    "[author = $x][contains(title, $y)], absent": Workload(
        f"S//i[author = $x]->a NOT FOLLOWED BY {LINKED} S//i[author = $x][contains(title, $y)]->b",
        _neither,
    ),
    "[author = $x]+, behind NEXT": Workload(f"S//i->a NEXT {LINKED} S//i[author = $x]->b+", _name),
    "[contains(title, $x)]+": Workload("S//i[contains(title, $x)]->b+ WITHIN 1 m", _name),
    "[not(author = $x)]+, behind NEXT": Workload(
        f"S//i->a NEXT {LINKED} S//i[not(author = $x)][price < 0]->b+", _name
    ),
    "{p > prev(p, 1) * $x}, behind NEXT": Workload(
        "S//i->a NEXT {, 10 s} S//i[price->p]->b+ {p > prev(p, 1) * $x}", _high, most=10_000
    ),
    "[price > $x]+": Workload("S//i[price > $x]->b+ WITHIN 1 m", _high),
    "[author = $x], [author = $x]+, MATCH": Workload(
        "S//i[author = $x]->a FOLLOWED BY {, 1 m} S//i[author = $x]->b+ MATCH NEXT", _name
    ),
    "[author = $x] NEXT [author != $x]+": Workload(
        f"S//i[author = $x]->a NEXT {LINKED} S//i[author != $x]->b+", _name
    ),
    "[author = $x] NEXT [author != $x]": Workload(
        f"S//i[author = $x]->a NEXT {LINKED} S//i[author != $x]->b", _name
    ),
    "[author = $x], absent [not(author = $x)]": Workload(
        f"S//i[author = $x]->a NOT FOLLOWED BY {LINKED} S//i[not(author = $x)]->b", _name
    ),
    "[price > $x][price < $y], right of NEXT": Workload(
        f"S//i->a NEXT {LINKED} S//i[price > $x][price < $y]->b",
        lambda i: {"x": i + 1e6, "y": i + 1e7},
    ),
    "[author = $x], or [title = $y], right of NEXT": Workload(
        f"S//i->a NEXT {LINKED} (S//i[author = $x]->b | S//i[title = $y]->b)", _neither
    ),
    "[author != $x], absent": Workload(
        "S//i->a NOT FOLLOWED BY {, 1 s} S//i[author != $x]->b", _name
    ),
    "[author = $x or title = $y], first of three": Workload(
        three("[author = $x or title = $y]"),
        _neither,
    ),
    "b/price > a/price * $x, inner": Workload(
        INNER % "b/price > a/price * $x", lambda i: {"x": i + 3}
    ),
    "b/author != $x, inner": Workload(INNER % "b/author != $x", _name),
    "time(b) > time(a) + $w, inner": Workload(
        INNER % "time(b) > time(a) + $w", lambda i: {"w": f"{i + 2} s"}
    ),
    "exists(b/title[. = $x])": Workload(PAIR % (" AND exists(b/title[. = $x])", "1 h"), _name),
    "b/title[$x] = 'a'": Workload(PAIR % (" AND b/title[$x] = 'a'", "1 h"), lambda i: {"x": i + 2}),
    "concat(b/title, $x) = 'a'": Workload(  # asked of each tuple and row
        PAIR % (" AND concat(b/title, $x) = 'a'", "1 h"), _name, most=1_000
    ),
    "contains(b/title, $x), inner": Workload(INNER % "contains(b/title, $x)", _name),
    "[author = $x], first of three": Workload(three("[author = $x]"), _name),
    "[author = $x], middle of three": Workload(three(middle="[author = $x]"), _name),
    "[author = $x], last of three": Workload(three(last="[author = $x]"), _name),
    "c/author = $x, last of three": Workload(three(also=" AND c/author = $x"), _name),
    "[price < $x], first of three": Workload(three("[price < $x]"), _low),
    "[price < $x], last of three": Workload(three(last="[price < $x]"), _low),
    "[contains(title, $x)], first of three": Workload(three("[contains(title, $x)]"), _name),
    "[contains(title, $x)], middle of three": Workload(
        three(middle="[contains(title, $x)]"), _name
    ),
    "$w, last of three": Workload(three(window="$w"), _short),
    "$w, first of two operators": Workload(three(inner="$w"), _short),
    "WITHIN $w, three blocks": Workload(
        "S//i->a FOLLOWED BY {a/next = b/link} S//i->b FOLLOWED BY {b/next = c/link} S//i->c"
        " WITHIN $w",
        _short,
    ),
    "WHERE b/price < $x": Workload(f"{PAIR % ('', '1 h')} WHERE b/price < $x", _low),
    "[price < 10], written out": Workload(
        f"S//i[price < 1000000]->a FOLLOWED BY {SHORT} S//i->b;"
        f"S//i[price < %s]->a FOLLOWED BY {LINKED} S//i->b",
        lambda i: {"x": f"{i / 1e7:.7f}"},
        most=100_000,
        is_written_out=True,
    ),
    "[contains(title, 'w')], written out": Workload(
        f"S//i[contains(title, 'matter')]->a FOLLOWED BY {SHORT} S//i->b;"
        f"S//i[contains(title, '%s')]->a FOLLOWED BY {LINKED} S//i->b",
        _name,
        most=100_000,
        is_written_out=True,
    ),
    "[matches(title, 'w')], written out": Workload(
        f"S//i[matches(title, 'matter')]->a FOLLOWED BY {SHORT} S//i->b;"
        f"S//i[matches(title, '%s|nothing')]->a FOLLOWED BY {LINKED} S//i->b",
        _name,
        most=100_000,
        is_written_out=True,
    ),
    "registration point": Workload(PAIR % (" AND b/author != $x", "1 h"), _name, is_late=True),
}


IN_BLOCKS = ("[price < $x]", "[contains(title, $x)]")
"""The workloads whose batches were the largest."""


def document(number: int) -> Document:
    """Return an item that links to the one before it."""
    xml = (
        f"<i><author>author {number % 97}</author><price>{number + 1}</price>"
        f"<title>what is said of matter {number}</title>"
        f"<link>item {number}</link><next>item {number + 1}</next></i>"
    )
    time_us = number * 1_000_000
    times = (time_us, time_us, time_us, time_us - 1_000_000)
    return Document(number, "S", str(number), *times, xml.encode())


class Cost(NamedTuple):
    """Microseconds a document; microseconds and bytes an assignment."""

    document_us: float
    row_us: float
    row_bytes: float


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Subscribed:
    """An engine with so many assignments of the last statement of a text.  Nothing may match."""

    def __init__(self, workload: Workload, rows: int) -> None:
        queries = workload.queries(rows)
        gc.collect()
        before, began = resident(), time.process_time()
        self.engine = Engine(queries, lateness_us=0)
        registering = time.process_time() - began
        self.stream = map(document, itertools.count(1))
        registering += self.batch()  # what waited for it
        gc.collect()  # of what has been registered, or it falls upon some document
        self.row_us = registering / rows * 1e6
        self.row_bytes = max(0, resident() - before) / rows

    def batch(self) -> float:
        """Return the seconds that the next batch takes behind its evaluation."""
        batch = [*itertools.islice(self.stream, BATCH)]
        witnesses = self.engine.evaluate(batch)
        first, began = batch[0].docid, time.process_time()
        step = self.engine.process(witnesses, lambda ids: {i: batch[i - first].xml for i in ids})
        taken = time.process_time() - began
        assert not step.matches, step.matches[:1]
        assert not step.pauses, step.pauses
        return taken


def measure(workload: Workload, rows: Sequence[int]) -> list[Cost]:
    """Return what assignments cost, for each number of them; batches are taken in turns."""
    those = [_apart(workload, count) for count in rows]
    registered = [own.recv() for own, _ in those]
    taken: list[list[float]] = [[] for _ in rows]
    for _ in range(DOCUMENTS // BATCH - 1):
        for (own, _), each in zip(those, taken, strict=True):
            own.send(True)
            each.append(own.recv() / BATCH * 1e6)
    for own, process in those:
        own.send(False)
        process.join()
    return [
        Cost(statistics.median(each), *one) for each, one in zip(taken, registered, strict=True)
    ]


def _apart(workload: Workload, rows: int) -> tuple[Connection, BaseProcess]:
    """Return a process with so many assignments, which takes a batch whenever it is told to."""
    context = multiprocessing.get_context("fork")
    own, other = context.Pipe()

    def run() -> None:
        Subscribed(workload, 1).batch()  # what is imported and grows whatever the assignments
        set_up_process()
        subscribed = Subscribed(workload, rows)
        other.send((subscribed.row_us, subscribed.row_bytes))
        while other.recv():
            other.send(subscribed.batch())

    process = context.Process(target=run)
    process.start()
    other.close()
    return own, process


def peak_of_batch(workload: Workload, rows: int) -> int:
    """Return the bytes that a large batch takes at most, above what the process has before it."""
    (query,) = xscl.parse(workload.text, id="q")
    assignments = tuple(workload.values(i) for i in range(rows))
    engine = Engine([RegisteredQuery(query, 0, assignments)], lateness_us=0)
    stream = [document(number) for number in range(1, BATCH + LARGE_BATCH + 1)]
    xml = {each.docid: each.xml for each in stream}

    def process(some: Sequence[Document]) -> None:
        engine.process(engine.evaluate(some), lambda ids: {i: xml[i] for i in ids})

    process(stream[:BATCH])
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is that from now on
    before = resident()
    process(stream[BATCH:])
    with open("/proc/self/status") as status:
        peak_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return peak_kb * 1024 - before


def print_peaks(workloads: Mapping[str, Workload], rows: Sequence[int]) -> None:
    """Print a line for each workload: MB of a large batch, by assignments."""
    what = f"MB of a batch of {LARGE_BATCH:,}"
    print(f"\n{what:<38}{''.join(f'{count:>11,}' for count in rows)}   ratio")
    for name, workload in workloads.items():
        peaks = [_alone(workload, count) / 1e6 for count in rows]
        shown = "".join(f"{peak:>11.0f}" for peak in peaks)
        print(f"{name:<38}{shown} {peaks[-1] / peaks[0]:>7.2f}", flush=True)


def print_costs(workloads: Mapping[str, Workload], what: str, rows: Sequence[int]) -> None:
    """Print a line for each workload: µs a document by assignments, and what one assignment is.

    The ratio is that of the most to 1,000, or to the fewest.
    """
    print(
        f"load {os.getloadavg()[0]:.1f}; µs a document, by assignments; of the most of them, each"
    )
    heads = "".join(f"{count:>11,}" for count in rows)
    print(f"{what:<38}{heads}   ratio   µs each   bytes")
    for name, workload in workloads.items():
        counts = [count for count in rows if count <= workload.most]
        costs = dict(zip(counts, measure(workload, counts), strict=True))
        last, first = [*costs.values()][-1], costs.get(1_000, next(iter(costs.values())))
        shown = "".join(
            f"{costs[n].document_us:>11.1f}" if n in costs else f"{'-':>11}" for n in rows
        )
        ratio = last.document_us / first.document_us
        print(
            f"{name:<38}{shown} {ratio:>7.2f} {last.row_us:>9.1f} {last.row_bytes:>7,.0f}",
            flush=True,
        )


def _alone(workload: Workload, rows: int) -> int:
    """Return the peak of a batch in a process of its own."""
    context = multiprocessing.get_context("fork")
    own, other = context.Pipe(duplex=False)

    def run() -> None:
        Subscribed(workload, 1).batch()
        set_up_process()
        other.send(peak_of_batch(workload, rows))

    process = context.Process(target=run)
    process.start()
    peak: int = own.recv()
    process.join()
    return peak


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--only", default="")
    given = parser.parse_args(arguments)
    some = {name: each for name, each in WORKLOADS.items() if given.only in name}
    print_costs(some, "a parameter stands", given.rows)
    if in_blocks := {name: each for name, each in some.items() if name in IN_BLOCKS}:
        print_peaks(in_blocks, given.rows)


if __name__ == "__main__":
    main()
