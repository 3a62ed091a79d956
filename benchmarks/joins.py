"""The join alone: documents per second against subscriptions, batch size and state.

    python -m benchmarks joins [news] [pairs] [growth] [xml] [latency] [registration]
                               [remembered] [--documents N]

Stage 1 is done before the clock starts; what is timed is: remember a batch, find its tuples (for
each pair of documents the query classes that match, hence the set of subscriptions of each), and
forget what is too old.  Matches are not written out per subscriber.

    news    the recorded items of `../shared/data`, five leaves each (link, feed, title, published,
            author), random queries of one to five equalities as in section 6.6.1 of the paper,
            window 1 day, allowed lateness 1 day: by subscriptions and by batch size
    pairs   the workload on which other engines were measured: types B and G alternate 10 ms apart,
            three fields uniform over 1,000 values, B FOLLOWED BY {1 to 3 equalities, 1 to 10 s} G
    growth  the same with 10 times the state, and with 10 times the matches
    xml     the pairs workload as XML documents and XSCL texts: stage 1 and the join
    remembered
            items of four values (300,000 authors, 300 feeds, links and titles that few share), five
            queries with infinite windows, with 10,000 and 1,000,000 of them remembered, and with
            10,000 that have as many partners: the whole engine, and the join alone, without what
            becomes of its tuples, in turns
    latency news as XML, one document at a time through stage 1 and the join, 100,000 subscriptions
    registration
            queries that come and go while documents flow, beside 1,000 and 25,000 query classes
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

import xscl
from benchmarks._workloads import Side, flat_side, news_lines, random_classes, run, table
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from joins.engines import Processor, make_processor
from templates.joingraph import JoinGraph, reduce
from templates.queryclass import QueryClass
from templates.template import template_of
from xpath_eval.structure import parse_xml

DAY_US = 86_400_000_000
PARTS = ["news", "pairs", "growth", "xml", "remembered", "latency", "registration"]
KEPT_QUERIES = (
    "a/link = b/link",
    "a/title = b/title",
    "a/author = b/author AND a/feed = b/feed",
    "a/title = b/link AND a/feed = b/feed",
    "a/author = b/title",
)
LEAVES = ("link", "feed", "title", "published", "author")


def news(documents: int) -> None:
    lines = news_lines(documents)
    print(f"news: {len(lines):,} items, {len(LEAVES)} leaves, window and lateness 1 day")
    print(
        f"{'subscriptions':>14} {'classes':>8} {'batch':>6} {'documents/s':>12} {'tuples/doc':>11}"
    )
    side = flat_side(len(LEAVES))
    for subscriptions, batch in (
        (1_000, 1_000),
        (10_000, 1_000),
        (1_000_000, 1_000),
        (1_000_000, 100),
        (1_000_000, 300),
        (1_000_000, 3_000),
    ):
        processor = make_processor("signatures", lateness_us=DAY_US)
        classes = set()
        for query_class in random_classes(side, subscriptions, joins_max=5, zipf=0.8):
            classes.add(processor.add(query_class, DAY_US))
        batches = list(news_batches(lines, side, processor, batch))
        seconds, tuples = measure(processor, batches, 2 * DAY_US)
        rate = len(lines) / seconds
        print(
            f"{subscriptions:>14,} {len(classes):>8,} {batch:>6,} {rate:>12,.0f}"
            f" {tuples / len(lines):>11.1f}"
        )


def news_batches(
    lines: Sequence[object], side: Side, processor: Processor, batch: int
) -> Iterator[tuple[pa.Table, int]]:
    processor.add_shapes({"item": side.edges()})
    shape = processor.shape_number("item")
    assert shape is not None
    newest = 0
    for start in range(0, len(lines), batch):
        values, times = [], []
        for line in lines[start : start + batch]:
            root = parse_xml(line.xml).root  # type: ignore[attr-defined]
            values.append([None, *(root.findtext(name) or "" for name in LEAVES)])
            times.append(min(line.time_us, line.arrival_us))  # type: ignore[attr-defined]
            newest = max(newest, times[-1])
        yield table([shape] * len(values), values, times, start + 1), newest


def measure(
    processor: Processor, batches: Sequence[tuple[pa.Table, int]], kept_us: int
) -> tuple[float, int]:
    started, tuples = time.perf_counter(), 0
    for rows, newest in batches:
        tuples += run(processor, rows)
        processor.evict(newest - kept_us)
    return time.perf_counter() - started, tuples


def pairs(events: int) -> None:
    print("pairs: B FOLLOWED BY {1 to 3 equalities, 1 to 10 s} G, 100 events/s of event time")
    print(f"{'queries':>8} {'classes':>8} {'events/s':>10} {'tuples/event':>13}")
    for count in (1, 100, 1_000, 100_000):
        seconds, tuples, classes = pair_run(count, events, values=1_000, spread_us=10_000)
        rate = events / seconds
        print(f"{count:>8,} {classes:>8,} {rate:>10,.0f} {tuples / events:>13.2f}")


def pair_run(count: int, events: int, *, values: int, spread_us: int) -> tuple[float, int, int]:
    random_ = random.Random(3)
    left, right = flat_side(3, 1), flat_side(3, 11)
    processor = make_processor("signatures", lateness_us=0)
    processor.add_shapes({"B": left.edges(), "G": right.edges()})
    shapes = [processor.shape_number("B"), processor.shape_number("G")]
    known, classes = {}, set()
    for _ in range(count):
        joined = tuple(sorted(random_.sample((1, 2, 3), random_.randint(1, 3))))
        window = random_.randint(1, 10) * 1_000_000
        if joined not in known:
            known[joined] = two_sided(left, right, joined)
        classes.add(processor.add(known[joined], window))
    batches = []
    for start in range(0, events, 1_000):
        rows = [[None, *(str(random_.randrange(values)) for _ in range(3))] for _ in range(1_000)]
        times = [(start + i) * spread_us for i in range(1_000)]
        kinds = [shapes[(start + i) % 2] for i in range(1_000)]
        batches.append((table(kinds, rows, times, start + 1), times[-1]))
    seconds, tuples = measure(processor, batches, 20_000_000)
    return seconds, tuples, len(classes)


def two_sided(left: Side, right: Side, joined: Sequence[int]) -> QueryClass:
    at = [(left.place(joined, leaf), right.place(joined, leaf)) for leaf in joined]
    graph = JoinGraph((left.graph(joined), right.graph(joined)), tuple(at))
    template, row, _ = template_of(reduce(graph)[0])
    return QueryClass(template, row, False, 0)


def growth(events: int) -> None:
    print("growth: the pairs workload, 1,000 queries")
    base, tuples, _ = pair_run(1_000, events, values=1_000, spread_us=10_000)
    # Ten times the state under the same number of partners: ten times the values, ten times denser.
    state, state_tuples, _ = pair_run(1_000, events, values=10_000, spread_us=1_000)
    more, more_tuples, _ = pair_run(1_000, events, values=100, spread_us=10_000)
    for name, seconds, found in (
        ("base", base, tuples),
        ("10 x the state", state, state_tuples),
        ("10 x the matches", more, more_tuples),
    ):
        print(
            f"  {name:<18} {seconds / events * 1e6:8.1f} us/event, {found / events:6.2f}"
            f" tuples/event, {seconds / base:.2f} x the cost"
        )


def xml(events: int) -> None:
    print("xml: the pairs workload as XML documents, batches of 1,000, stage 1 included")
    print(f"{'queries':>8} {'classes':>8} {'events/s':>10} {'tuples/event':>13}")
    for count in (1, 100, 1_000, 100_000):
        engine = subscribed(count, pair_query, lateness_us=0)
        random_ = random.Random(4)
        stream = [pair_document(number, random_) for number in range(1, events + 1)]
        # The first batch builds the plan and meets the first signatures.
        tuples = joined(engine, stream[:1_000])
        started = time.perf_counter()
        for start in range(1_000, events, 1_000):
            tuples += joined(engine, stream[start : start + 1_000])
        rate = (events - 1_000) / (time.perf_counter() - started)
        classes = len(engine.processor.classes.by_number)  # type: ignore[attr-defined]
        print(f"{count:>8,} {classes:>8,} {rate:>10,.0f} {tuples / events:>13.2f}")


def pair_query(random_: random.Random) -> str:
    names = sorted(random_.sample("uvw", random_.randint(1, 3)))
    equal = " AND ".join(f"a/{name} = b/{name}" for name in names)
    return f"S//B->a FOLLOWED BY {{{equal}, {random_.randint(1, 10)} s}} S//G->b"


def pair_document(number: int, random_: random.Random) -> Document:
    kind = "BG"[number % 2]
    fields = "".join(f"<{name}>{random_.randrange(1_000)}</{name}>" for name in "uvw")
    return document(number, number * 10_000, f"<{kind}>{fields}</{kind}>".encode())


def document(number: int, time_us: int, body: bytes, before_us: int | None = None) -> Document:
    """Return a document of the stream S; `before_us` is the watermark before it."""
    watermark_us = time_us if before_us is None else before_us
    return Document(number, "S", str(number), time_us, time_us, time_us, watermark_us, body)


def subscribed(count: int, make: Callable[[random.Random], str], *, lateness_us: int) -> Engine:
    """Return an engine with `count` subscriptions; each different text is parsed once."""
    random_ = random.Random(3)
    parsed: dict[str, xscl.Query] = {}
    queries = []
    for number in range(count):
        text = make(random_)
        if text not in parsed:
            (parsed[text],) = xscl.parse(text, id="q")
        queries.append(RegisteredQuery(replace(parsed[text], id=f"q{number}")))
    return Engine(queries, lateness_us=lateness_us)


def joined(engine: Engine, documents: Sequence[Document]) -> int:
    """Evaluate and join documents; return how many tuples, one for all subscriptions of a class."""
    return joined_witnesses(engine, engine.evaluate(documents))


def joined_witnesses(engine: Engine, witnesses: pa.Table) -> int:
    """Join what is found in documents; return how many tuples, of which no match is made."""
    engine.processor.begin_batch()
    engine._absorption.witnesses(witnesses)
    probe = engine.processor.probe_columns  # type: ignore[attr-defined]
    tuples = sum(len(columns) for stratum in engine.processor.strata for columns in probe(stratum))
    engine._evict()
    return tuples


def kept_item(number: int, authors: int = 300_000) -> Document:
    """Return an item whose author one in so many has, and whose feed one in 300."""
    chance = random.Random(number)
    xml = (
        f"<i><author>author {chance.randrange(authors)}</author>"
        f"<feed>feed {chance.randrange(300)}</feed>"
        f"<link>link {number}</link><title>title {number}</title></i>"
    )
    times = (number * 1_000_000,) * 3
    return Document(number, "S", str(number), *times, times[0] - 1, xml.encode())


def remembered() -> None:
    """Print the rate with more and more that is kept for ever, and that of the join alone.

    The second row has as many partners a document as the last one, of 15,000 authors.
    """
    names = ("remembered", "authors", "documents/s", "matches/doc", "the join alone", "tuples/doc")
    print(" ".join(f"{name:>14}" for name in names))
    few, many = Kept(15_000), Kept(300_000)
    many.row(10_000)
    few.row(10_000)
    many.row(1_000_000)


class Kept:
    """An engine that keeps items of so many authors for ever."""

    def __init__(self, authors: int) -> None:
        texts = [f"S//i->a FOLLOWED BY {{{each}, INF}} S//i->b" for each in KEPT_QUERIES]
        queries = [xscl.parse(text, id=f"q{i}")[0] for i, text in enumerate(texts)]
        self._engine = Engine([RegisteredQuery(query) for query in queries], lateness_us=0)
        self._numbers = itertools.count(1)
        self._authors = authors

    def row(self, kept: int) -> None:
        """Print the rates while so many are remembered, and some more."""
        while (first := self._some())[0].docid < kept:
            self._take(first)
        # In turns: the machine is not as fast at one time as at another.
        turns = (self._take, self._join)
        found = [work(self._some()) for _ in range(40) for work in turns]
        figures = [f"{kept:,}", f"{self._authors:,}"]
        for own in (found[::2], found[1::2]):
            seconds, count = (sum(each) for each in zip(*own, strict=True))
            figures += [f"{40_000 / seconds:,.0f}", f"{count / 40_000:.3f}"]
        print(" ".join(f"{figure:>14}" for figure in figures), flush=True)

    def _some(self) -> list[Document]:
        return [kept_item(i, self._authors) for i in itertools.islice(self._numbers, 1_000)]

    def _take(self, documents: Sequence[Document]) -> tuple[float, int]:
        texts = {each.docid: each.xml for each in documents}

        def xml_of(docids: Iterable[int]) -> dict[int, bytes]:
            return {i: texts.get(i) or kept_item(i, self._authors).xml for i in docids}

        witnesses = self._engine.evaluate(documents)
        began = time.process_time()
        step = self._engine.process(witnesses, xml_of)
        return time.process_time() - began, len(step.matches)

    def _join(self, documents: Sequence[Document]) -> tuple[float, int]:
        witnesses = self._engine.evaluate(documents)
        began = time.process_time()
        tuples = joined_witnesses(self._engine, witnesses)
        return time.process_time() - began, tuples


def latency(documents: int, subscriptions: int = 100_000, timed: int = 1_000) -> None:
    print(f"latency: one news item at a time, {subscriptions:,} subscriptions, stage 1 and join")
    engine = subscribed(subscriptions, news_query, lateness_us=DAY_US)
    stream, newest = [], 0
    for number, line in enumerate(news_lines(documents), 1):
        time_us = min(line.time_us, line.arrival_us)
        stream.append(document(number, time_us, line.xml, newest or time_us))
        newest = max(newest, time_us)
    known = len(stream) - timed
    for start in range(0, known, 1_000):
        joined(engine, stream[start : min(known, start + 1_000)])
    times, tuples = [], 0
    for one in stream[known:]:
        started = time.perf_counter()
        tuples += joined(engine, [one])
        times.append((time.perf_counter() - started) * 1e3)
    classes = len(engine.processor.classes.by_number)  # type: ignore[attr-defined]
    print(f"  {classes:,} classes, {len(times):,} documents, {tuples / len(times):.1f} tuples each")
    for name, share in (("median", 50), ("p90", 90), ("p99", 99), ("highest", 100)):
        print(f"  {name:<8} {np.percentile(times, share):8.2f} ms")


def news_query(random_: random.Random) -> str:
    """Return a random query as `random_classes` makes them."""
    joins = random_.choices(range(1, 6), [1 / k**0.8 for k in range(1, 6)])[0]
    sides = random_.sample(LEAVES, joins), random_.sample(LEAVES, joins)
    equal = " AND ".join(sorted(f"a/{a} = b/{b}" for a, b in zip(*sides, strict=True)))
    return f"S//item->a FOLLOWED BY {{{equal}, 1 d}} S//item->b"


FIELDS = tuple(f"f{i}" for i in range(12))


def registration(changes: int = 500) -> None:
    print(
        f"registration: {changes} queries of two to four equalities of {len(FIELDS)} fields; ms of"
        " processor time for each, one document through stage 1 and the join behind it included"
    )
    names = ("a document alone", "+ a query", "- a query", "all queries at once", "to parse one")
    print(f"{'classes':>8}" + "".join(f"{name:>21}" for name in names))
    for count in (1_000, 25_000):
        print(registration_row(count, changes))


def registration_row(count: int, changes: int) -> str:
    engine, random_ = subscribed(count, fields_query, lateness_us=0), random.Random(4)
    stream = (fields_document(number, random_) for number in itertools.count(1))
    joined(engine, list(itertools.islice(stream, 300)))
    classes = len(engine.processor.classes.by_number)  # type: ignore[attr-defined]
    texts = [fields_query(random_) for _ in range(changes)]
    queries: list[xscl.Query] = []

    def parse() -> None:
        queries.extend(xscl.parse(text, id=f"n{i}")[0] for i, text in enumerate(texts))

    def one_by_one(change: Callable[[xscl.Query], None]) -> None:
        for query in queries:
            change(query)
            joined(engine, [next(stream)])

    def add(query: xscl.Query) -> None:
        engine.queries.add(RegisteredQuery(query))

    def at_once() -> None:
        for query in queries:
            add(query)
        joined(engine, [next(stream)])

    parsing = processor_ms(parse)
    figures = (
        processor_ms(lambda: one_by_one(lambda query: None)),
        processor_ms(lambda: one_by_one(add)),
        processor_ms(lambda: one_by_one(lambda query: engine.queries.remove(query.id))),
        processor_ms(at_once),
        parsing,
    )
    return f"{classes:>8,}" + "".join(f"{figure / changes:>21.2f}" for figure in figures)


def processor_ms(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1e3


def fields_query(random_: random.Random) -> str:
    """Return one of millions of queries that join the fields of documents."""
    joins = random_.randint(2, 4)
    sides = random_.sample(FIELDS, joins), random_.sample(FIELDS, joins)
    equal = " AND ".join(f"a/{a} = b/{b}" for a, b in zip(*sides, strict=True))
    return f"S//i->a FOLLOWED BY {{{equal}, 10 m}} S//i->b"


def fields_document(number: int, random_: random.Random) -> Document:
    """Return a document of all fields, a second after the one before it."""
    fields = "".join(f"<{name}>{random_.randrange(100_000)}</{name}>" for name in FIELDS)
    return document(number, number * 1_000_000, f"<i>{fields}</i>".encode())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=PARTS)
    parser.add_argument("--documents", type=int, default=70_110)
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part == "news":
            news(arguments.documents)
        elif part == "pairs":
            pairs(min(arguments.documents, 50_000))
        elif part == "xml":
            xml(min(arguments.documents, 20_000))
        elif part == "latency":
            latency(arguments.documents)
        elif part == "registration":
            registration()
        elif part == "remembered":
            remembered()
        else:
            growth(min(arguments.documents, 50_000))


if __name__ == "__main__":
    main()
