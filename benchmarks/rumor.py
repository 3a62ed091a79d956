"""The experiments of RUMOR: queries that share, and the same with rules left out.

    python -m benchmarks rumor [--only WORD] [--seconds 10] [--plots DIRECTORY]

Figures 5.8 to 5.10 of Hong's dissertation (section 5.5).  Events of two kinds, s and t, alternate,
with attributes of 1,000 values; windows are 1 to 1,000 s and mostly long.  Queries that differ in
data are one query here, with an assignment for each of them; where rules are compared they are
statements that were written out.  `nothing shared` leaves out all rules that can be
(`broker.matching.mrules`): what is left is that documents are read once, and index over values.
The hybrid workload, whose start conditions no index knows, has the load of 104 processes drawn at
random, and is smoothed by no window: of the broker, windows are over matches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

from benchmarks._experiments import (
    SECOND_US,
    Experiment,
    Way,
    Workload,
    assigned,
    print_experiments,
    statements,
    stream,
)
from broker.documents.document import Document
from broker.matching.mrules import SWITCHED, MRule

EVENTS = 10_000
VALUES = 1_000
PROCESSES = 104
QUERIES = (1_000, 10_000, 100_000)
WRITTEN = (10, 100)

CONSTANTS = "S//s[a0 = $c] NEXT {, $w} S//t[a0 = $d] GRACE 0 s"
JOINED = "S//s->x NEXT {x/a0 = y/a0, $w} S//t->y GRACE 0 s"
REPEATED = (
    "S//s->f NEXT {f/a0 = t/a0, 1000 s} S//t->t+ {f/a0 = t/a0 AND t/a1 > prev(t/a1, f/a1)}"
    " WITHIN %d s GRACE 0 s"
)
CHANNEL = (
    "(S//s[a1 < %d]->x FOLLOWED BY {x/a2 = w/a2, 100 s} S//t->w)"
    " FOLLOWED BY {x/a0 = y/a0, 100 s} S//t->y"
)
HYBRID = (
    "CPU//p->f NEXT {f/id = p/id, 1 h} CPU//p->p+ {f/id = p/id}"
    " WHILE {p/load > prev(p/load, f/load)}"
    " WHERE f/load * f/load < %d AND last(p/load) > 10 GRACE 0 s"
)


@lru_cache(maxsize=2)
def alternating(values: int = VALUES) -> list[Document]:
    """Return events of both kinds, each with three attributes of so many values."""
    chance = random.Random(3)
    texts = []
    for number in range(EVENTS):
        kind = "st"[number % 2]
        inside = "".join(f"<a{i}>{chance.randrange(values)}</a{i}>" for i in range(3))
        texts.append(f"<{kind}>{inside}</{kind}>")
    return stream(texts)


@lru_cache(maxsize=1)
def loads() -> list[Document]:
    """Return loads of processes, in turn."""
    chance = random.Random(4)
    return stream(
        [
            f"<p><id>{number % PROCESSES}</id><load>{chance.randrange(100)}</load></p>"
            for number in range(EVENTS)
        ],
        "CPU",
    )


def drawn(
    count: int,
    names: str,
    *,
    values: int = VALUES,
    zipf: float = 1.5,
    longest: int = VALUES,
) -> list[Mapping[str, Any]]:
    """Return assignments: constants are drawn evenly, of windows the longest are the most."""
    chance = random.Random(5)
    lengths = range(longest, 0, -1)
    windows = chance.choices(lengths, [1 / rank**zipf for rank in range(1, longest + 1)], k=count)
    of_name = {"c": lambda i: str(chance.randrange(values)), "w": lambda i: windows[i] * SECOND_US}
    return [{name: of_name["w" if name == "w" else "c"](i) for name in names} for i in range(count)]


def constants(count: int) -> Workload:
    return assigned(CONSTANTS, drawn(count, "cdw")), alternating()


def of_domain(values: int) -> Workload:
    return assigned(CONSTANTS, drawn(1_000, "cdw", values=values)), alternating(values)


def of_windows(longest: int) -> Workload:
    return assigned(CONSTANTS, drawn(1_000, "cdw", longest=longest)), alternating()


def of_skew(zipf: float) -> Workload:
    return assigned(CONSTANTS, drawn(1_000, "cdw", zipf=zipf)), alternating()


def joined(count: int) -> Workload:
    return assigned(JOINED, drawn(count, "w")), alternating()


def repeated(count: int) -> Workload:
    return statements([REPEATED % (100 + i) for i in range(count)]), alternating()


def of_capacity(without: Collection[MRule] = ()) -> Way:
    """Return the way of 100 statements over so many streams that are alike."""

    def make(streams: int) -> Workload:
        texts = [CHANNEL % (900 + i % streams) for i in range(100)]
        return statements(texts, without), alternating()

    return Way(make, without=without)


def of_starts(without: Collection[MRule] = ()) -> Way:
    """Return the way of ten statements whose start conditions hold of a share of events."""

    def make(share: float) -> Workload:
        texts = [HYBRID % (round((100 * share) ** 2) - 5 + i) for i in range(10)]
        return statements(texts, without), loads()

    return Way(make, without=without)


def written(
    text: str,
    first: int,
    documents: Callable[[], list[Document]],
    without: Collection[MRule] = (),
) -> Way:
    """Return the way of statements that differ in one constant, from the first value on."""

    def make(count: int) -> Workload:
        texts = [text % (first + i) for i in range(count)]
        return statements(texts, without), documents()

    return Way(make, without=without)


EXPERIMENTS = (
    Experiment("5.8a", "constants on both sides", "queries", QUERIES, {"broker": Way(constants)}),
    Experiment(
        "5.8b", "values of an attribute", "values", (100, 1_000, 10_000), {"broker": Way(of_domain)}
    ),
    Experiment(
        "5.8c", "longest window", "seconds", (10, 100, 1_000, 10_000), {"broker": Way(of_windows)}
    ),
    Experiment("5.8d", "skew of windows", "Zipf", (1.2, 1.5, 2.0), {"broker": Way(of_skew)}),
    Experiment("5.9a", "joined by a value", "queries", (1_000, 10_000), {"broker": Way(joined)}),
    Experiment("5.9b", "repeated, rising", "queries", (1, 10, 100), {"broker": Way(repeated)}),
    Experiment(
        "5.9c",
        "streams of tuples that are alike, one channel",
        "queries",
        WRITTEN,
        {
            "channel": written(CHANNEL, 900, alternating),
            "no channel": written(CHANNEL, 900, alternating, [MRule.C_SEQ, MRule.C_JOIN]),
            "nothing shared": written(CHANNEL, 900, alternating, SWITCHED),
        },
    ),
    Experiment(
        "5.9d",
        "streams of one channel, 100 statements",
        "streams",
        (1, 10, 100),
        {"channel": of_capacity(), "no channel": of_capacity([MRule.C_SEQ, MRule.C_JOIN])},
    ),
    Experiment(
        "5.10a",
        "load that rises, start conditions without an index",
        "queries",
        (1, 10),
        {
            "broker": written(HYBRID, 100, loads),
            "nothing shared": written(HYBRID, 100, loads, SWITCHED),
        },
    ),
    Experiment(
        "5.10b",
        "load that rises, selectivity of the start conditions",
        "share",
        (0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
        {"broker": of_starts(), "nothing shared": of_starts(SWITCHED)},
    ),
)

if __name__ == "__main__":
    print_experiments("rumor", __doc__ or "", EXPERIMENTS)
