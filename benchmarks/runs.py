"""Runs: SASE+'s template over its events, chains that never end, and what would explode.

    python -m benchmarks runs [--events 100000]

The template is a run of prices of one symbol that begins where the price is a multiple of 500 and
is followed by a low volume, with nothing more asked (p1), rising prices (p2), or prices above an
aggregate of those before (p3), under MATCH PARTITION and NEXT (Zhang, Diao and Immerman, SIGMOD
2014).  Documents are evaluated before the clock starts; matches are listed, with their output.
Then come prices behind a low volume, by NEXT and WHILE, chains that compare texts, five feeds that
carry a link within six hours, over the recorded news, rows over windows of 1,000 lengths, runs and
chains that are counted, and what statements under MATCH ANY cost that are paused.  Cycles of
objects are looked for as seldom as in each process of the broker.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial

import xscl
from benchmarks._experiments import LATENESS_US, stream
from benchmarks.sequences import news
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import MatchingLimits
from broker.pipeline.thisprocess import set_up_process
from joins.budget.limits import RunLimits
from joins.sequences.counting.compilation import compile_loops as compile_counting
from joins.sequences.lockstep.compilation import compile_loops
from templates.compiling import can_compile

BATCH = 1_000
LARGE_BATCH = 10_000
"""As many documents as a replay takes at once."""
TEMPLATE = (
    "S//stock[price->p]+ {{first(p) mod 500 = 0{asked}}} FOLLOWED BY S//stock[volume < 150]"
    " WITHIN 1000 s SAME (//symbol) MATCH {strategy} GRACE 0 s"
)
ASKED = {
    "p1": "",
    "p2": " AND p > prev(p)",
    "p3 min": " AND p > min(p)",
    "p3 avg": " AND p > avg(p)",
    "p3 max": " AND p > max(p)",
}
STRATEGIES = ("PARTITION", "NEXT")
DOCUMENT = '{"docid": '
"""What begins a document in a match line."""

CHAIN_LENGTHS = (3, 6, 12, 24)


class JavaRandom:
    """The generator of `java.util.Random`, which the authors' events come from."""

    def __init__(self, seed: int) -> None:
        self._seed = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)

    def below(self, bound: int) -> int:
        """Return what `nextInt(bound)` does."""
        while True:
            bits = self._next()
            if bound & (bound - 1) == 0:
                return (bound * bits) >> 31
            value = bits % bound
            if bits - value + bound - 1 < 1 << 31:
                return value

    def _next(self) -> int:
        self._seed = (self._seed * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        return self._seed >> 17


def walk(events: int, seed: int = 10, percent: int = 70) -> Iterator[str]:
    """Yield stocks of two symbols whose prices rise with a probability, and fall or stay else."""
    chance = JavaRandom(seed)
    prices = [chance.below(1000), chance.below(1000)]
    for _ in range(events):
        symbol, step = chance.below(2), chance.below(100) + 1
        if step <= percent:
            prices[symbol] += chance.below(3) + 1
        elif step > (100 + percent) / 2:
            prices[symbol] -= chance.below(3) + 1
        volume = chance.below(1000) + 1
        yield (
            f"<stock><symbol>{symbol + 1}</symbol><price>{prices[symbol]}</price>"
            f"<volume>{volume}</volume></stock>"
        )


def found(
    texts: list[str], documents: list[Document], batch: int = BATCH, *, in_columns: bool = True
) -> tuple[float, int, int]:
    """Return the seconds that statements take, how many matches there are, and their documents."""
    queries = [xscl.parse(text, id=f"q{i}")[0] for i, text in enumerate(texts)]
    registered = [RegisteredQuery(each) for each in queries]
    return processed(registered, documents, batch, in_columns=in_columns)


def processed(
    queries: list[RegisteredQuery],
    documents: list[Document],
    batch: int,
    *,
    in_columns: bool = True,
) -> tuple[float, int, int]:
    """Return what `found` does, of queries that were registered."""
    limits = MatchingLimits(runs=RunLimits(in_columns=in_columns))
    engine = Engine(queries, lateness_us=LATENESS_US, limits=limits)
    xml = {document.docid: document.xml for document in documents}
    parts = [engine.evaluate(documents[i : i + batch]) for i in range(0, len(documents), batch)]
    matches = listed = 0
    started = time.process_time()
    for part in parts:
        step = engine.process(part, lambda docids: {docid: xml[docid] for docid in docids})
        matches += len(step.matches)
        listed += sum(match.line.count(DOCUMENT) for match in step.matches)
    return time.process_time() - started, matches, listed


def template(events: int) -> None:
    """Print what each statement of the template costs alone, and all of them together."""
    documents = stream(walk(events))
    texts = {
        f"{name}, {strategy}": TEMPLATE.format(asked=asked, strategy=strategy)
        for name, asked in ASKED.items()
        for strategy in STRATEGIES
    }
    print(f"SASE+'s template, {events:,} events: events/s, matches, documents of matches/s")
    for name, text in [*texts.items(), ("all ten", "")]:
        seconds, matches, listed = found([text] if text else [*texts.values()], documents)
        print(f"{name:20} {events / seconds:10,.0f} {matches:10,} {listed / seconds:12,.0f}")


def columns(events: int) -> None:
    """Print what runs in columns cost, and one by one: listed, counted, and such as never begin.

    What finds no match, or only counts, is run over all events, the rest over a tenth of them.
    """
    texts = [TEMPLATE.format(asked=a, strategy=s) for a in ASKED.values() for s in STRATEGIES]
    idle = [text.replace("first(p) mod 500 = 0", "first(p) < -9999") for text in texts]
    having = " WINDOW 0 s HAVING count() < 0 GRACE"
    rows = [f"SELECT <n>{{count()}}</n> FROM {t.replace(' GRACE', having)}" for t in texts]
    print("the ten of the template: events, batch, events/s, documents of matches/s")
    for name, own in (("never begin", idle), ("counted", rows), ("listed", texts)):
        ways = [(events // 10, BATCH, False)]
        if own is texts:
            ways.insert(0, (events // 10, BATCH, True))
        else:
            ways = [(events, BATCH, True), (events, LARGE_BATCH, True), *ways]
        for size, batch, in_columns in ways:
            seconds, _, listed = found(own, stream(walk(size)), batch, in_columns=in_columns)
            how = "in columns" if in_columns else "one by one"
            rates = f"{size / seconds:10,.0f} {listed / seconds:12,.0f}"
            print(f"{name:12} {how:12} {size:8,} {batch:7,} {rates}")


def chains(events: int) -> None:
    """Print what chains cost that never end: their last unit does not come."""
    print(f"chains of {', '.join(map(str, CHAIN_LENGTHS))} units, {events:,} events: events/s")
    for strategy in ("ANY", "NEXT", "STRICT"):
        rates = []
        for length in CHAIN_LENGTHS:
            # As in CORE's experiment, each event is of a unit, whatever the length.
            documents = stream(f"<e{n % (length - 1)}/>" for n in range(events))
            units = [f"S//e{n}" for n in range(length - 1)] + ["S//never"]
            grace = "" if strategy == "ANY" else " GRACE 0 s"
            text = " FOLLOWED BY ".join(units) + f" WITHIN 100 s MATCH {strategy}{grace}"
            rates.append(events / found([text], documents)[0])
        print(f"{strategy:20}", *(f"{rate:10,.0f}" for rate in rates))


COMPARING = {
    "changes, NEXT": "S//e[n->x]+ {x != prev(x)} FOLLOWED BY S//f WITHIN 100 s MATCH NEXT",
    "begins so, NEXT": (
        "S//e[n->x]+ {first(x) = 'a' AND x != 'b'} FOLLOWED BY S//f WITHIN 20 s MATCH NEXT"
    ),
    "stays so, STRICT": (
        "S//e[n->x]+ {first(x) = 'a' AND x = prev(x)} FOLLOWED BY S//f WITHIN 100 s MATCH STRICT"
    ),
    "three alike, STRICT": (
        "S//e[n->x] FOLLOWED BY {y = x} S//e[n->y] FOLLOWED BY {z = y} S//e[n->z] WITHIN 100 s"
        " MATCH STRICT"
    ),
}
"""Chains that compare texts."""


def texts(events: int) -> None:
    """Print what chains that compare texts cost in columns, and one by one."""
    chance = JavaRandom(5)
    documents = stream(f"<e><n>{'abcd'[chance.below(4)]}</n></e>" for _ in range(events))
    print(f"chains that compare texts, {events:,} events: events/s in columns, one by one")
    alone = {name: [f"{text} GRACE 0 s"] for name, text in COMPARING.items()}
    asked = COMPARING["stays so, STRICT"]
    differing = [asked.replace("'a'", f"'a{n}'") + " GRACE 0 s" for n in range(200)]
    for name, own in (*alone.items(), ("200 that differ", differing)):
        rates = [events / found(own, documents, in_columns=each)[0] for each in (True, False)]
        print(f"{name:20}", *(f"{rate:10,.0f}" for rate in rates))


PRICES = (
    "S//stock[volume < 50][price->top] NEXT {{, 1000 s}} S//stock[price->p]+ {each}"
    " WHILE {{{goes_on}}} SAME (//symbol){kept} GRACE 0 s"
)
BEHIND_NEXT = {
    "each falls": PRICES.format(each="", goes_on="p < prev(p, top)", kept=""),
    "none falls": PRICES.format(each="", goes_on="p >= prev(p, top)", kept=""),
    "four falls": PRICES.format(each="{p < prev(p, top)}", goes_on="count() < 4", kept=""),
    "falls, none kept": PRICES.format(
        each="{p < prev(p, top)}", goes_on="count() < 200", kept=" WHERE dur() < 0 s"
    ),
}
"""Runs of prices behind a low volume: until WHILE ends them, or of those that are next by `+`."""


def behind_next(events: int) -> None:
    """Print what repetitions behind NEXT with WHILE cost in columns, and one by one."""
    documents = stream(walk(events))
    print(f"behind NEXT, {events:,} events: events/s in columns, one by one, matches")
    for name, text in BEHIND_NEXT.items():
        ways = [found([text], documents, in_columns=each) for each in (True, False)]
        rates = (f"{events / seconds:10,.0f}" for seconds, _, _ in ways)
        print(f"{name:20}", *rates, f"{ways[0][1]:10,}")


def many(events: int, statements: int) -> None:
    """Print what statements that differ in a constant cost beside one that has as many matches."""
    documents = stream(walk(events))
    text = TEMPLATE.format(asked=ASKED["p2"], strategy="PARTITION")
    # Each price at which the one begins is that of one of the others, while they last.
    texts = [text.replace("mod 500 = 0", f"mod 1000000 = {500 * n}") for n in range(statements)]
    print(f"{statements:,} statements that differ in a constant, {events:,} events: events/s")
    for name, own in (("one", [text]), ("all", texts)):
        seconds, matches, _ = found(own, documents)
        print(f"{name:20} {events / seconds:10,.0f} ({matches:,} matches)")


def burst(items: int) -> None:
    """Print what five feeds cost that carry a link within six hours, over recorded items."""
    documents = news(items)
    text = (
        "FROM news//item->i WINDOW 6 hours BY i/link HAVING count(distinct i/feed) >= 5"
        " LIMIT 1 PER 1 day BY i/link GRACE 1 hour"
    )
    seconds, matches, _ = found([f"SELECT <burst>{{i/link}}</burst> {text}"], documents, 10_000)
    print(f"five feeds carry a link within 6 h, {items:,} recorded items: items/s")
    print(f"{items / seconds:,.0f} ({matches:,} matches)")


def windows(events: int, statements: int) -> None:
    """Print what rows over windows of many lengths cost beside those over one."""
    documents = stream(walk(events))
    text = (
        "SELECT <n>{{sum(s/price)}}</n> FROM S//stock->s WINDOW {} s BY s/symbol"
        " HAVING sum(s/price) < 0 GRACE 0 s"
    )
    one = found([text.format(statements)], documents)[0]
    [query] = xscl.parse(text.format(1).replace("WINDOW 1 s", "WINDOW $long"), id="q")
    values = tuple({"long": n * 1_000_000} for n in range(1, statements + 1))
    several = processed([RegisteredQuery(query, assignments=values)], documents, BATCH)[0]
    print(f"WINDOW of {statements:,} lengths, {events:,} events: times the cost of one")
    print(f"{several / one:.2f}")


def counted(elements: int, events: int) -> None:
    """Print what runs cost that are only counted, with so many elements in the window."""
    chance = JavaRandom(1)
    documents = stream(f"<a><v>{chance.below(100_000)}</v></a>" for _ in range(events))
    print(f"counted under ANY, {elements} elements in the window: events/s")
    for name, asked in (
        ("every choice", f" WITHIN {elements} s"),
        ("rising", f" {{v > prev(v)}} WITHIN {elements} s"),
        ("rising, with a gap", f" {{v > prev(v), {elements} s}}"),
    ):
        text = f"FROM S//a[v->v]+{asked} MATCH ANY WINDOW 0 s HAVING count() < 0 GRACE 0 s"
        seconds, _, _ = found([f"SELECT <n>{{count()}}</n> {text}"], documents)
        print(f"{name:20} {events / seconds:10,.0f}")


COUNTED_CHAINS = {
    "equal, windows": (
        "S//a[k->v] FOLLOWED BY {{v = w, {s} s}} S//b[k->w] FOLLOWED BY {{w = x, {s} s}} S//c[k->x]"
    ),
    "rising, windows": (
        "S//a[v->v] FOLLOWED BY {{v < w, {s} s}} S//b[v->w] FOLLOWED BY {{w < u, {s} s}} S//c[v->u]"
    ),
    "equal, WITHIN": (
        "S//a[k->v] FOLLOWED BY {{v = w}} S//b[k->w] FOLLOWED BY {{w = x}} S//c[k->x] WITHIN {s} s"
    ),
    "b+, WITHIN": "S//a FOLLOWED BY S//b+ FOLLOWED BY S//c WITHIN {s} s SAME (//k)",
    "rising, WITHIN": (
        "S//a[v->v] FOLLOWED BY {{v < w}} S//b[v->w] FOLLOWED BY {{w < u}} S//c[v->u] WITHIN {s} s"
    ),
    "two, WITHIN": "S//a[v->v] FOLLOWED BY {{v < w}} S//b[v->w] WITHIN {s} s",
    "b+, windows": "S//a FOLLOWED BY {{, {s} s}} S//b+ FOLLOWED BY {{, {s} s}} S//c SAME (//k)",
    "rising b+, windows": (
        "S//a FOLLOWED BY {{, {s} s}} S//b[v->v]+ {{v > prev(v)}} FOLLOWED BY {{, {s} s}} S//c"
        " SAME (//k)"
    ),
}
"""Chains of two and of three units."""

DRAWN = "rising b+, windows"
"""The one that is drawn to be counted."""


def counted_chains(events: int) -> None:
    """Print what chains cost that are counted, and the same listed, where they are few."""
    chance = JavaRandom(3)
    own = [
        f"<{kind}><k>{chance.below(10)}</k><v>{chance.below(1_000)}</v></{kind}>"
        for kind in ("abc"[chance.below(3)] for _ in range(events))
    ]
    print("chains under ANY: elements in the window, events, events/s counted, listed")
    for name, source in COUNTED_CHAINS.items():
        is_drawn = name == DRAWN
        for elements in (10, 100) if is_drawn else (10, 100, 1_000, 10_000):
            size = events // 20 if is_drawn else events if elements > 1_000 else events // 4
            documents = stream(own[:size])
            text = f"SELECT <n>{{count()}}</n> FROM {source.format(s=elements)}"
            rows = " WINDOW 0 s HAVING count() < 0 GRACE 0 s"
            # Without MATCH ANY they are joined.
            rates = [size / found([f"{text} MATCH ANY{rows}"], documents)[0]]
            if elements <= 100:
                few = documents[: events // 20]
                rates.append(len(few) / found([f"{text}{rows}"], few)[0])
            print(f"{name:16} {elements:7,} {size:8,}", *(f"{rate:10,.0f}" for rate in rates))


EXPLODING = {
    "40 rising values": (
        "S//a[v->v]+ {v > prev(v)} WITHIN 1 h MATCH ANY",
        [f"<a><v>{n}</v></a>" for n in range(40)],
    ),
    "values above the average": (
        "S//a[v->v]+ {v > avg(v)} WITHIN 1 h MATCH ANY",
        [f"<a><v>{n}</v></a>" for n in range(40)],
    ),
    "a chain over three times 50": (
        "S//a FOLLOWED BY S//b FOLLOWED BY S//c FOLLOWED BY S//d WITHIN 1 h MATCH ANY",
        [f"<{kind}/>" for kind in "a" * 50 + "b" * 50 + "c" * 50 + "d"],
    ),
    "a chain over 2,100": (
        "S//a FOLLOWED BY S//b FOLLOWED BY S//c FOLLOWED BY S//d WITHIN 1 h MATCH ANY",
        [f"<{kind}/>" for kind in "abc" * 700 + "d"],
    ),
    "a chain with 60 rising values": (
        "S//a FOLLOWED BY S//b[v->v]+ {v > prev(v)} FOLLOWED BY S//d WITHIN 1 h MATCH ANY",
        ["<a/>", *(f"<b><v>{n}</v></b>" for n in range(60)), "<d/>"],
    ),
}
"""Statements that would explode, each with documents under which it does."""


def _all_of(xml: dict[int, bytes], docids: object) -> dict[int, bytes]:
    return xml


def paused() -> None:
    """Print what the document costs at which a statement is paused that would explode."""
    print("under ANY: the document at which it is paused, and what that takes")
    for name, (text, own) in EXPLODING.items():
        documents = stream(own)
        xml = {each.docid: each.xml for each in documents}
        engine = Engine([RegisteredQuery(xscl.parse(text, id="q")[0])], lateness_us=LATENESS_US)
        for document in documents:
            part = engine.evaluate([document])
            started = time.process_time()
            step = engine.process(part, partial(_all_of, xml))
            if step.pauses:
                milliseconds = 1_000 * (time.process_time() - started)
                print(f"{name:30} {document.docid:6,} {milliseconds:6.0f} ms")
                break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--statements", type=int, default=1_000)
    parser.add_argument("--items", type=int, default=70_110)
    options = parser.parse_args()
    set_up_process()
    if can_compile():
        compile_loops()
        compile_counting()
    paused()
    burst(options.items)
    windows(options.events // 10, options.statements)
    for elements in (200, 10_000):
        counted(elements, options.events // 5)
    counted_chains(options.events // 5)
    template(options.events)
    columns(options.events)
    chains(options.events // 5)
    texts(options.events // 30)
    behind_next(options.events // 5)
    many(options.events, options.statements)


if __name__ == "__main__":
    main()
