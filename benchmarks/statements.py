"""What statements cost together that were written out one by one: processor time, driver alone.

    python -m benchmarks statements [--only WORD] [--counts 1 100 1000] [--different 1000 10000]
                                    [--apart 1] [--shards 1]

Statements that are equal, or differ in data alone (windows, WITHIN, constants of a block, numbers
and words of a condition), over one pattern of two or three blocks; over runs and chains, or with
NEXT and UNLESS;
and queries that have nothing in common but the documents (`different`): chains of three and four
blocks rooted at three levels, with one to three equalities at each operator, over documents of 37
elements with 20,000 values that come `--apart` seconds after each other: windows are 10 to 100
minutes, so that says how many matches there are.  The join and what becomes of its tuples are in
the figure; the evaluation of documents and the first batch are not.  *One more* is a statement that
is added behind all, with the document behind it: taken in, evaluated and joined; the median of five
that come in turn, of which the first has what the last batch left to do, some 40 ms of 50,000.
Each figure is of a process of its own, set up as the broker's are, that has had one statement
before, so what any process takes once (some 5 MB) is in none of them.  Loops that are compiled have
been compiled before.  With `--shards` the join is spread over so many in this process.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import NamedTuple

import xscl
from broker.documents.document import Document
from broker.matching.costs.budget import DEFAULT_BUDGET
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.queries.registration import SetChange
from broker.pipeline.shards import Join
from broker.pipeline.thisprocess import set_up_process
from joins.memory.compilation import compile_loops as compile_look_ups
from joins.sequences.lockstep.compilation import compile_loops as compile_steps
from joins.signature.compilation import compile_loops as compile_comparison
from templates.compiling import can_compile

SECOND_US = 1_000_000
KEYS = 500
ONE_MORE = 5

THREE = (
    "(S//i%s->a FOLLOWED BY {a/next = b/link, %s} S//i->b) FOLLOWED BY {%s = c/link, 1 h} S//i->c"
)
INNER = (
    "(S//i->a FOLLOWED BY {a/next = b/link AND %s, 1 h} S//i->b)"
    " FOLLOWED BY {b/author = c/link, 1 h} S//i->c"
)
RUNS = "S//i->a FOLLOWED BY {a/next = b/link, 1 min} S//i[contains(author, '%s %d')]->b+"
CHAINS = (
    "S//i[contains(author, '%s %d')]->a FOLLOWED BY S//i->b FOLLOWED BY S//i->c"
    " WITHIN 1 min MATCH STRICT GRACE 0 s"
)
ORDERED = {
    "NEXT": "S//b[k->x] NEXT {x = y, 1 h} S//g[k->y] GRACE 0 s",
    "UNLESS": "S//b[k->x] NEXT {x = y, 1 h} S//g[k->y] UNLESS {x = z} S//c[k->z] GRACE 0 s",
}


def item(number: int) -> Document:
    """Return an item that links to the one before it, 20 s later than that."""
    xml = (
        f"<i><author>author {number % 97}</author><price>{number + 1}</price>"
        f"<link>item {number}</link><next>item {number + 1}</next></i>"
    )
    return _at(number, number * 20 * SECOND_US, xml)


def event(number: int) -> Document:
    """Return an event of one of two kinds with a key."""
    kind, key = "bg"[number % 2], random.Random(number).randrange(KEYS)
    return _at(number, number * 1_000, f"<{kind}><k>{key}</k></{kind}>")


FIELDS = range(32)


def document(number: int) -> Document:
    """Return a document of 37 elements: four sections of eight fields, with random values."""
    chance = random.Random(number)
    sections = "".join(
        f"<s{s}>{''.join(f'<f{f}>{chance.randrange(20_000)}</f{f}>' for f in FIELDS[s::4])}</s{s}>"
        for s in range(4)
    )
    return _at(number, number * SECOND_US, f"<d>{sections}</d>")


def _at(number: int, time_us: int, xml: str) -> Document:
    times = (time_us, time_us, time_us, time_us - 1)
    return Document(number, "S", str(number), *times, xml.encode())


def different(number: int) -> str:
    """Return a chain of three or four blocks."""
    chance = random.Random(number)
    blocks = [_block(chance, name) for name in "abcd"[: chance.choice((3, 4))]]
    text, fields, last = *blocks[0], "a"
    for name, (block, own) in zip("bcd", blocks[1:], strict=False):
        pairs = {
            (chance.choice(fields), chance.choice(own)) for _ in range(chance.choice((1, 2, 3)))
        }
        equal = " AND ".join(f"{last}{left} = {name}{right}" for left, right in sorted(pairs))
        text = f"({text} FOLLOWED BY {{{equal}, {chance.randint(10, 100)} min}} {block})"
        fields, last = own, name
    return text[1:-1]


def _block(chance: random.Random, name: str) -> tuple[str, list[str]]:
    """Return a block with a variable, and the paths from there to fields."""
    level, section = chance.randrange(3), chance.randrange(4)
    fields = FIELDS[section::4]
    if level == 0:
        return f"S//d->{name}", [f"/s{f % 4}/f{f}" for f in FIELDS]
    if level == 1:
        return f"S//s{section}->{name}", [f"/f{f}" for f in fields]
    return f"S//f{chance.choice(fields)}->{name}", [""]


class Workload(NamedTuple):
    """The text of each statement, and the documents that they run over."""

    text: Callable[[int], str]
    document: Callable[[int], Document]
    documents: int = 2_000
    batch: int = 250
    points: Callable[[int], int] = lambda number: 0


WORKLOADS = {
    "equal, three blocks": Workload(lambda i: THREE % ("", "1 h", "b/next"), item),
    "equal, no match": Workload(lambda i: THREE % ("", "1 h", "b/author"), item),
    "equal, other points": Workload(
        lambda i: THREE % ("", "1 h", "b/author"), item, points=lambda i: i % 100
    ),
    "windows of 1 to 1,000 s": Workload(
        lambda i: THREE % ("", f"{1_000 - i % 1_000} s", "b/author"), item
    ),
    "WITHIN of 1 to 1,000 s": Workload(
        lambda i: (
            "S//i->a FOLLOWED BY {a/next = b/link} S//i->b FOLLOWED BY {b/author = c/link} S//i->c"
            f" WITHIN {1_000 - i % 1_000} s"
        ),
        item,
    ),
    "words of a condition": Workload(
        lambda i: (
            "S//i->a FOLLOWED BY {a/next = b/link, 1 h} S//i->b"
            f" WHERE contains(b/author, 'nobody {i}')"
        ),
        item,
    ),
    "bounds of an inner operator": Workload(lambda i: INNER % f"b/price < {9_000 + i}", item),
    "differences of an inner operator": Workload(
        lambda i: INNER % f"b/price - a/price < {i + 2}", item
    ),
    "factors of an inner operator": Workload(
        lambda i: INNER % f"b/price > a/price * {i + 2}", item
    ),
    "formulas of an inner operator": Workload(
        lambda i: INNER % f"b/price - a/price < {i} * 2 + 2", item
    ),
    "strings that an inner operator excludes": Workload(
        lambda i: INNER % f"b/author != 'nobody {i}'", item
    ),
    "numbers that an inner operator excludes": Workload(
        lambda i: INNER % f"b/price != {i} + 0.5", item
    ),
    "alternatives of an inner operator": Workload(
        lambda i: INNER % f"(b/price < {9_000 + i} OR b/price < {i})", item
    ),
    "words of an inner operator": Workload(
        lambda i: INNER % f"contains(b/author, 'author {i % 97}')", item
    ),
    "rare words of an inner operator": Workload(
        lambda i: INNER % f"contains(b/author, 'nobody {i}')", item
    ),
    "bounds of the first block": Workload(
        lambda i: THREE % (f"[price < {9_000 + i}]", "1 h", "b/author"), item
    ),
    "words of the first block": Workload(
        lambda i: THREE % (f"[contains(author, 'author {i % 97}')]", "1 h", "b/author"), item
    ),
    "rare words of the first block": Workload(
        lambda i: THREE % (f"[contains(author, 'nobody {i}')]", "1 h", "b/author"), item
    ),
    "bounds of a block": Workload(
        lambda i: f"S//i[price < {i + 2}]->a FOLLOWED BY {{a/next = b/link, 1 h}} S//i->b", item
    ),
    "numbers of XPath 1.0 of a block": Workload(
        lambda i: f"S//i[price * 2 < {i + 2}]->a FOLLOWED BY {{a/next = b/link, 1 h}} S//i->b", item
    ),
    "numbers within arithmetic of a block": Workload(
        lambda i: (
            f"S//i[price > string-length(link) * {i + 100}]->a"
            " FOLLOWED BY {a/next = b/link, 1 h} S//i->b"
        ),
        item,
    ),
    "words of a nested predicate": Workload(
        lambda i: THREE % (f"[author[../link][contains(., 'nobody {i}')]]", "1 h", "b/author"), item
    ),
    "constants of the first block": Workload(
        lambda i: THREE % (f"[author = 'nobody {i}']", "1 h", "b/author"), item
    ),
    "words of the elements of runs": Workload(lambda i: RUNS % ("author", i % 97), item),
    "rare words of the elements of runs": Workload(lambda i: RUNS % ("nobody", i), item),
    "rare words before runs": Workload(
        lambda i: f"S//i[contains(author, 'nobody {i}')]->a FOLLOWED BY {{, 1 min}} S//i->b+", item
    ),
    "rare words before runs that are counted": Workload(
        lambda i: (
            f"S//i[contains(author, 'nobody {i}')]->a FOLLOWED BY {{, 1 min}} S//i->b+"
            " WINDOW 1 min HAVING count() > 1000"
        ),
        item,
    ),
    "rare words of a unit under ANY": Workload(
        lambda i: (
            f"S//i->a FOLLOWED BY S//i[contains(author, 'nobody {i}')]->b"
            " FOLLOWED BY S//i->c WITHIN 5 s MATCH ANY"
        ),
        item,
    ),
    "words of the first unit of chains": Workload(lambda i: CHAINS % ("author", i % 97), item),
    "rare words of the first unit of chains": Workload(lambda i: CHAINS % ("nobody", i), item),
    "strings of the second operand, NEXT": Workload(
        lambda i: f"S//i->a NEXT {{a/next = b/link, 1 h}} S//i[author = 'nobody {i}']->b", item
    ),
    "equal, NEXT": Workload(lambda i: ORDERED["NEXT"], event),
    "equal, UNLESS": Workload(lambda i: ORDERED["UNLESS"], event),
    "different": Workload(different, document, 3_000, 1_000),
}


class Cost(NamedTuple):
    """Microseconds a document, matches; microseconds and bytes of registration for a statement."""

    document_us: float
    matches: int
    documents: int
    statement_us: float
    statement_bytes: float
    one_more_ms: float


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _apart(document: Document, times: float) -> Document:
    """Return a document so many times later."""
    start_us, end_us = (round(us * times) for us in (document.start_us, document.end_us))
    return replace(
        document, start_us=start_us, end_us=end_us, arrival_us=end_us, watermark_us=end_us - 1
    )


def _one_more(engine: Engine, text: str, xml: Mapping[int, bytes], document: Document) -> float:
    """Return how long it takes until a statement that comes now has seen a document."""
    (query,) = xscl.parse(text, id=f"behind {document.docid - 1}")
    began = time.process_time()
    engine.follow(SetChange([RegisteredQuery(query, document.docid - 1)]))
    engine.process(engine.evaluate([document]), lambda ids: {i: xml[i] for i in ids})
    return time.process_time() - began


def measure(name: str, statements: int, documents: int, apart: float = 1, shards: int = 1) -> Cost:
    """Return what so many statements cost."""
    workload = WORKLOADS[name]
    queries = [xscl.parse(workload.text(i), id=f"q{i}")[0] for i in range(statements)]
    gc.collect()
    before, began = resident(), time.process_time()
    registered = [RegisteredQuery(each, workload.points(i)) for i, each in enumerate(queries)]
    processor = Join(0, shards, DEFAULT_BUDGET.pairs_max).processor(None)
    engine = Engine(registered, lateness_us=0, processor=processor)
    registering = time.process_time() - began
    size = resident() - before
    stream = [
        _apart(workload.document(number), apart) for number in range(1, documents + ONE_MORE + 1)
    ]
    xml = {each.docid: each.xml for each in stream}
    spent, matches, counted = 0.0, 0, 0
    for start in range(0, documents, workload.batch):
        witnesses = engine.evaluate(stream[start : min(start + workload.batch, documents)])
        began = time.process_time()
        step = engine.process(witnesses, lambda ids: {i: xml[i] for i in ids})
        taken = time.process_time() - began
        assert not step.pauses, step.pauses
        if start:
            spent, matches = spent + taken, matches + len(step.matches)
            counted += len(witnesses)
    return Cost(
        spent / counted * 1e6,
        matches,
        counted,
        registering / statements * 1e6,
        size / statements,
        1e3
        * median(
            _one_more(engine, workload.text(statements + i), xml, stream[documents + i])
            for i in range(ONE_MORE)
        ),
    )


def measure_beside_one(
    name: str, statements: int, documents: int, apart: float, shards: int
) -> Cost:
    """Return what so many statements cost in a process that has had one."""
    measure(name, 1, 2 * WORKLOADS[name].batch, apart, shards)
    gc.collect()
    set_up_process()
    return measure(name, statements, documents, apart, shards)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 100, 1_000])
    parser.add_argument("--different", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--documents", type=int, default=0)
    parser.add_argument("--apart", type=float, default=1)
    parser.add_argument("--shards", type=int, default=1)
    given = parser.parse_args(arguments)
    print(f"load {os.getloadavg()[0]:.1f}")
    print(
        f"{'statements':<42}{'number':>8}{'µs/document':>13}{'documents/s':>13}"
        f"{'matches':>10}{'µs each':>9}{'bytes':>8}{'one more, ms':>14}"
    )
    if can_compile():
        compile_look_ups()
        compile_steps()
        compile_comparison()
    context = multiprocessing.get_context("fork")
    for name, workload in WORKLOADS.items():
        if given.only not in name:
            continue
        for count in given.different if name == "different" else given.counts:
            with context.Pool(1) as pool:
                documents = given.documents or workload.documents
                apart = given.apart if name == "different" else 1
                given_all = name, count, documents, apart, given.shards
                cost = pool.apply(measure_beside_one, given_all)
            print(
                f"{name:<42}{count:>8,}{cost.document_us:>13.1f}{1e6 / cost.document_us:>13,.0f}"
                f"{cost.matches:>10,}{cost.statement_us:>9.0f}{cost.statement_bytes:>8,.0f}"
                f"{cost.one_more_ms:>14.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
