"""The experiments of Cayuga: templates of sequences, what sharing saves, a double top, and feeds.

    python -m benchmarks cayuga [--only WORD] [--seconds 10] [--plots DIRECTORY]

Figures 4.13, 4.14, 4.17 and 4.18 of Hong's dissertation (section 4.6).  Events have four attributes
of 100 values and four numbers.  A step of a template asks for an attribute, and the first for a
number above a bound too: subscriptions differ in the constant, which is Zipf-distributed, and in
one of 25 bounds.  They are one query here, with an assignment for each; where sharing is measured
they are statements that were written out, and `nothing shared` leaves out all rules that can be
(`broker.matching.mrules`).

The closes of 24 companies (4.17) are drawn at random, and steps below a share are smoothed away;
STREAM is not there to be compared.  The items of 2006 (4.18) were not published: recorded news
stands in for them, whose popularity is drawn at random; iteration is left out, which is a statement
for each subscription.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from benchmarks._experiments import (
    Experiment,
    Way,
    Workload,
    assigned,
    print_experiments,
    statements,
    stream,
)
from benchmarks._workloads import news_lines
from broker.documents.document import Document
from broker.matching.mrules import SWITCHED, MRule

EVENTS = 6_000
VALUES = 100
BOUNDS = 25
SUBSCRIPTIONS = (1_000, 10_000, 100_000)
WRITTEN = (10, 100, 1_000)
COMPANIES = 24
ITEMS = 10_000

FIRST = "S//e[a1 = $x][c1 > $p]"
TEMPLATES = {
    "LinearStat": (
        f"{FIRST} NEXT {{, 20 s}} S//e[a1 = $x][c2 > 0.3] NEXT {{, 20 s}} S//e[a1 = $x][c3 > 0.3]"
    ),
    "LinearDyn": (
        f"{FIRST}->a NEXT {{b/c2 > a/c1, 20 s}} S//e[a1 = $x]->b"
        " NEXT {c/c3 > b/c2, 20 s} S//e[a1 = $x]->c"
    ),
    "Filter": f"{FIRST} NEXT {{, 20 s}} S//e[a2 = $y]",
}
WRITTEN_FILTER = "S//e[a1 = '{x}'][c1 > {p}] NEXT {{, 20 s}} S//e[a2 = '{y}'] GRACE 0 s"

EXTREMA = (
    "SELECT <x kind='{kind}'><id>{{b/id}}</id><p>{{b/p}}</p></x> FROM S//c->a NEXT {{a/id = b/id}}"
    " S//c->b NEXT {{b/id = c/id}} S//c->c WITHIN 30 d"
    " WHERE b/p {over} a/p AND b/p {over} c/p GRACE 0 s PUBLISH extrema"
)
TOPS = (
    "(extrema//x[@kind = 'low']->e NEXT {e/id = f/id} extrema//x[@kind = 'high']->f"
    " NEXT {f/id = g/id} extrema//x[@kind = 'low']->g NEXT {g/id = h/id}"
    " extrema//x[@kind = 'high']->h) WITHIN 300 d WHERE f/p >= 1.2 * e/p"
    " AND g/p >= 0.9 * e/p AND g/p <= 1.1 * e/p AND h/p >= 0.9 * f/p AND h/p <= 1.1 * f/p GRACE 0 s"
)

FEEDS = {
    "Stateless": "news//item[feed = $w][popularity > $p]",
    "Concatenation": (
        "news//item[feed = $w][popularity > $p] NEXT {, 100 s} news//item[feed = $w]"
        " NEXT {, 100 s} news//item[feed = $w] GRACE 0 s"
    ),
    "Parameterization": (
        "news//item[feed = $w][popularity > $p]->a"
        " NEXT {a/feed = b/feed AND b/popularity > a/popularity, 100 s} news//item->b"
        " NEXT {b/feed = c/feed AND c/popularity > b/popularity, 100 s} news//item->c GRACE 0 s"
    ),
}


@lru_cache(maxsize=1)
def events() -> list[Document]:
    """Return events whose values are drawn evenly."""
    chance = random.Random(1)
    texts = []
    for _ in range(EVENTS):
        values = "".join(f"<a{i}>{chance.randrange(VALUES)}</a{i}>" for i in range(1, 5))
        numbers = "".join(f"<c{i}>{chance.random():.4f}</c{i}>" for i in range(1, 5))
        texts.append(f"<e>{values}{numbers}</e>")
    return stream(texts)


def drawn(count: int, zipf: float = 1.0) -> list[dict[str, Any]]:
    """Return the constants and bounds of subscriptions."""
    chance = random.Random(2)
    weights = [1 / rank**zipf for rank in range(1, VALUES + 1)]
    xs, ys = (chance.choices(range(VALUES), weights, k=count) for _ in "xy")
    return [
        {"x": str(x), "y": str(y), "p": chance.randrange(BOUNDS) / BOUNDS}
        for x, y in zip(xs, ys, strict=True)
    ]


def of_template(text: str, count: int, zipf: float = 1.0) -> Workload:
    values = [{k: v for k, v in own.items() if f"${k}" in text} for own in drawn(count, zipf)]
    return assigned(f"{text} GRACE 0 s", values), events()


def of_selectivity(share: float) -> Workload:
    """Return LinearStat, of which each later step asks for a number above a bound."""
    text = TEMPLATES["LinearStat"].replace("> 0.3", f"> {1 - share:.1f}")
    return of_template(text, 10_000)


def written(without: Collection[MRule] = ()) -> Way:
    """Return the way of statements of the template Filter."""

    def make(count: int) -> Workload:
        texts = [WRITTEN_FILTER.format(**own) for own in drawn(count)]
        return statements(texts, without), events()

    return Way(make, without=without)


@lru_cache(maxsize=4)
def closes(percent: int) -> list[Document]:
    """Return daily closes of companies, without steps of less than some percent."""
    chance = random.Random(6)
    prices, shown = [100.0] * COMPANIES, [100.0] * COMPANIES
    texts = []
    for day in range(EVENTS):
        company = day % COMPANIES
        prices[company] *= 1 + chance.gauss(0, 0.03)
        if abs(prices[company] / shown[company] - 1) * 100 >= percent:
            shown[company] = prices[company]
            texts.append(f"<c><id>{company}</id><p>{prices[company]:.2f}</p></c>")
    return stream(texts)


def double_top(percent: int) -> Workload:
    """Return the statements that publish highs and lows, and the one that reads them."""
    extrema = [EXTREMA.format(kind=kind, over=over) for kind, over in (("high", ">"), ("low", "<"))]
    return statements([*extrema, TOPS]), closes(percent)


@lru_cache(maxsize=1)
def items() -> tuple[list[Document], list[str]]:
    """Return recorded items with a popularity, a second apart, and their feeds."""
    chance = random.Random(7)
    texts, feeds = [], []
    for line in news_lines(ITEMS):
        text = line.xml.decode()
        at = text.rindex("</")
        texts.append(f"{text[:at]}<popularity>{chance.randrange(100)}</popularity>{text[at:]}")
        feeds.append(text.partition("<feed>")[2].partition("<")[0])
    return stream(texts, "news"), sorted(set(feeds))


def of_feeds(text: str, count: int) -> Workload:
    documents, feeds = items()
    chance = random.Random(8)
    values = [{"w": chance.choice(feeds), "p": float(chance.randrange(100))} for _ in range(count)]
    return assigned(text, values), documents


EXPERIMENTS = (
    Experiment(
        "4.13a",
        "templates",
        "subscriptions",
        SUBSCRIPTIONS,
        {
            name: Way(lambda count, text=text: of_template(text, count))
            for name, text in TEMPLATES.items()
        },
        alike=False,
    ),
    Experiment(
        "4.13b",
        "skew of constants, LinearStat, 10,000 subscriptions",
        "Zipf",
        (0.8, 1.0, 1.4),
        {"broker": Way(lambda zipf: of_template(TEMPLATES["LinearStat"], 10_000, zipf))},
    ),
    Experiment(
        "4.13c",
        "selectivity of inequalities, LinearStat, 10,000 subscriptions",
        "share of events",
        (0.1, 0.3, 0.5, 0.7, 0.9),
        {"broker": Way(of_selectivity)},
    ),
    Experiment(
        "4.14",
        "what sharing saves, Filter",
        "statements",
        WRITTEN,
        {"all rules": written(), "nothing shared": written(SWITCHED)},
    ),
    Experiment(
        "4.17",
        "a double top, from highs and lows that are published",
        "percent of a step",
        (0, 2, 5),
        {"broker": Way(double_top)},
    ),
    Experiment(
        "4.18",
        "feeds",
        "subscriptions",
        (1_000, 10_000, 40_000),
        {name: Way(lambda count, text=text: of_feeds(text, count)) for name, text in FEEDS.items()},
        alike=False,
    ),
)

if __name__ == "__main__":
    print_experiments("cayuga", __doc__ or "", EXPERIMENTS)
