"""The experiments of SASE and SASE+: sequences, negations and repetitions over generated events.

    python -m benchmarks sase [--only WORD] [--seconds 10] [--plots DIRECTORY]

SASE (Wu, Diao and Rizvi, SIGMOD 2006, section 5) joins events of twenty types by attributes; what
it compares itself with, a relational engine that joins the types and looks at the order afterwards,
is here a statement of SQL for each batch (`sequential`).  Its second experiment, on windows, has no
equality: what is pushed down there is the order.  The number of types stands in for the test, as
the paper has it, which simulates its selectivity.  Numbers of the fourth experiment are not
printed in the paper.

SASE+ (Agrawal, Diao, Gyllstrom and Immerman, SIGMOD 2008, section 6) has runs of prices: nothing
more asked (p1), rising (p2), above the least so far (p3), contiguous in the partition or skipping
till the next match.  Windows are those of the partition: of two symbols it has every other event.
The third experiment, against an engine that reads events again, has nothing to compare here; p3*
of the fourth has one event more, whose price lies between those of the run.  What merging of runs
saves (5) is shown by runs that are counted, which meet in their elements, beside the same listed:
it cannot be switched off.  The sixth counts them in larger windows, with nothing constructed.

Fewer events than in the papers are run, and each way at most some seconds of the processor: but for
the first one of SASE+, which has all of its window with `--seconds 1000`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil

from benchmarks._experiments import Experiment, Way, Workload, print_experiments, statements, stream
from benchmarks.runs import JavaRandom, walk
from broker.documents.document import Document

EVENTS = 20_000
WINDOW = 10_000
TYPES = 20
VALUES = (100, 200, 500, 1_000, 5_000, 10_000)
"""Values of the attribute that is joined: V1."""

PREDICATES = {"p1": "", "p2": " AND p > prev(p)", "p3": " AND p > min(p)"}
BETWEEN = " FOLLOWED BY {c > first(p) AND c < last(p)} S//stock[price->c]"
"""What p3* has behind p3."""

PRICES = (
    "{select}S//stock[price->p]+ {{first(p) mod 500 = 0{asked}}} FOLLOWED BY S//stock[volume < 150]"
    "{between} WITHIN {seconds} s SAME (//symbol) MATCH {strategy} GRACE 0 s"
)


@lru_cache(maxsize=2)
def typed(events: int, types: int, values: Sequence[int] = ()) -> list[Document]:
    """Return events of types drawn evenly, with attributes of so many values each."""
    chance = JavaRandom(11)
    chance.below(100)  # The authors draw a number before their events.
    texts = []
    for _ in range(events):
        kind = chance.below(types) + 1
        inside = "".join(f"<a{i}>{chance.below(v) + 1}</a{i}>" for i, v in enumerate(values, 1))
        texts.append(f"<e{kind}>{inside}</e{kind}>")
    return stream(texts)


def sequence(length: int, same: str = "", window: int = WINDOW, last: str = "") -> str:
    """Return a sequence of events of the first types that are the same in some attributes."""
    units = " FOLLOWED BY ".join(f"S//e{n}->e{n}" for n in range(1, length + 1))
    keys = f" SAME ({same})" if same else ""
    return f"{units} WITHIN {window} s{keys}{last}"


def simulated(values: int) -> int:
    """Return how many types there are where the test on an attribute is simulated."""
    return round(TYPES * values ** (2 / 3))


def of_types(values: int) -> Workload:
    return statements([sequence(3)]), typed(EVENTS, simulated(values))


def of_windows(window: int) -> Workload:
    events = typed(window + EVENTS, simulated(10_000))
    return statements([sequence(3, window=window)]), events


def two_tests(values: int, second: int, *, is_joined: bool = True) -> Workload:
    """Return a sequence with two tests, the second among the joins or looked at behind them."""
    events = typed(EVENTS, TYPES, (values, second))
    if is_joined:
        return statements([sequence(3, "//a1, //a2")]), events
    asked = " WHERE e1/a2 - e2/a2 = 0 AND e2/a2 - e3/a2 = 0"
    return statements([sequence(3, "//a1", last=asked)]), events


def predicates(values: int, *, is_simple: bool) -> Workload:
    text = sequence(3, "//a1", last=" WHERE e1/a3 < e3/a3")
    if is_simple:
        text = text.replace("S//e1", "S//e1[a2 = '1']")
    return statements([text]), typed(EVENTS, TYPES, (values, 20, 1_000))


def of_lengths(length: int) -> Workload:
    return statements([sequence(length, "//a1")]), typed(EVENTS, TYPES, (100,))


def one_test(values: int) -> Workload:
    return statements([sequence(3, "//a1")]), typed(EVENTS, TYPES, (values,))


@lru_cache(maxsize=1)
def prices(events: int, percent: int) -> list[Document]:
    """Return prices of two symbols, which rise with some probability."""
    return stream(walk(events, percent=percent))


def runs(
    predicate: str, strategy: str, window: int, select: str = "", percent: int = 70
) -> Workload:
    """Return a run of prices within so many events of its partition."""
    text = PRICES.format(
        select=select,
        asked=PREDICATES[predicate.rstrip("*")],
        between=BETWEEN if predicate.endswith("*") else "",
        seconds=2 * window,
        strategy=strategy,
    )
    return statements([text]), prices(4 * ceil(window / 1_000) * 1_000 + 2_000, percent)


def whole(predicate: str, strategy: str, window: int) -> Workload:
    """Return a run of prices over as many events as the paper has: 200 windows of each symbol."""
    return runs(predicate, strategy, window)[0], prices(400 * window, 70)


COUNTED = "S//stock[price->p]+ {{{asked}}} WITHIN {seconds} s SAME (//symbol){outcome} GRACE 0 s"


def any_runs(predicate: str, window: int, *, is_counted: bool, events: int = 2_000) -> Workload:
    """Return all runs of prices within so many events of their partition, listed or counted."""
    asked = PREDICATES[predicate].removeprefix(" AND ") or "p >= 0"
    outcome = " WINDOW 0 s HAVING count() < 0" if is_counted else ""
    text = COUNTED.format(asked=asked, seconds=2 * window, outcome=outcome)
    return statements([text]), prices(events, 70)


WINDOWS = (500, 1_000, 1_500, 2_000)
STRATEGIES = {"s2": "PARTITION", "s3": "NEXT"}


def _of_runs(
    select: str = "", percent: int = 70, predicates: Sequence[str] = tuple(PREDICATES)
) -> dict[str, Way]:
    return {
        f"{predicate} {short}": Way(
            lambda window, p=predicate, s=strategy: runs(p, s, window, select, percent)
        )
        for predicate in predicates
        for short, strategy in STRATEGIES.items()
    }


EXPERIMENTS = (
    Experiment(
        "1",
        "SASE, stacks against a scan: a test of so many values, simulated by types",
        "values",
        VALUES,
        {"broker": Way(of_types), "SQL": Way(of_types, "sequential")},
    ),
    Experiment(
        "2",
        "SASE, windows of so many events, a test of 10,000 values",
        "window",
        (10_000, 30_000, 100_000),
        {"broker": Way(of_windows), "SQL": Way(of_windows, "sequential")},
    ),
    *(
        Experiment(
            f"3, {second}",
            f"SASE, two tests, the second of {second} values",
            "values of the first",
            (10, 50, 100, 500, 1_000, 10_000),
            {
                "both joined": Way(lambda values, second=second: two_tests(values, second)),
                "second behind the join": Way(
                    lambda values, second=second: two_tests(values, second, is_joined=False)
                ),
            },
        )
        for second in (20, 5)
    ),
    Experiment(
        "4",
        "SASE, a comparison of two events, and a constant beside it",
        "values",
        (100, 1_000, 10_000),
        {
            "comparison": Way(lambda values: predicates(values, is_simple=False)),
            "and constant": Way(lambda values: predicates(values, is_simple=True)),
        },
        alike=False,
    ),
    Experiment(
        "5",
        "SASE, length of the sequence, a test of 100 values",
        "length",
        (2, 3, 4, 5, 6),
        {"broker": Way(of_lengths), "SQL": Way(of_lengths, "sequential")},
    ),
    Experiment(
        "6",
        "SASE, one test and two",
        "values",
        (10, 100, 1_000, 10_000),
        {
            "one, broker": Way(one_test),
            "one, SQL": Way(one_test, "sequential"),
        },
    ),
    Experiment(
        "6, two tests",
        "SASE, a second test of 20 values",
        "values",
        (10, 100, 1_000, 10_000),
        {
            "two, broker": Way(lambda values: two_tests(values, 20)),
            "two, SQL": Way(lambda values: two_tests(values, 20), "sequential"),
        },
    ),
    Experiment(
        "plus 1",
        "SASE+, all events of the paper, prices rise with 0.7",
        "window",
        (500,),
        {
            f"{predicate} {short}": Way(lambda window, p=predicate, s=strategy: whole(p, s, window))
            for predicate in PREDICATES
            for short, strategy in STRATEGIES.items()
        },
        alike=False,
    ),
    Experiment(
        "plus 5",
        "SASE+, any runs of prices that rise: listed, and counted",
        "window",
        (2, 4, 6, 8),
        {
            "listed": Way(lambda window: any_runs("p2", window, is_counted=False)),
            "counted": Way(lambda window: any_runs("p2", window, is_counted=True)),
        },
        alike=False,
    ),
    Experiment(
        "plus 6",
        "SASE+, any runs, counted and not listed",
        "window",
        (50, 100, 200),
        {
            predicate: Way(
                lambda window, p=predicate: any_runs(p, window, is_counted=True, events=3_000)
            )
            for predicate in ("p1", "p2")
        },
        alike=False,
    ),
    Experiment(
        "plus 2",
        "SASE+, all runs, prices rise with 0.7",
        "window",
        WINDOWS,
        _of_runs(),
        alike=False,
    ),
    Experiment(
        "plus 4",
        "SASE+, runs that do not overlap",
        "window",
        WINDOWS,
        _of_runs("SELECT DISJOINT * FROM ", predicates=(*PREDICATES, "p3*")),
        alike=False,
    ),
    Experiment(
        "plus 2, 0.55",
        "SASE+, all runs, prices rise with 0.55",
        "window",
        WINDOWS,
        _of_runs(percent=55),
        alike=False,
    ),
)

if __name__ == "__main__":
    print_experiments("sase", __doc__ or "", EXPERIMENTS)
