"""What each construct costs with one subscription and with very many, none of which has a match.

    python -m benchmarks constructs [--rows 1 1000 100000 1000000] [--only WORD ...]

The items are those of `benchmarks parameters`, and so is what is counted: the join and what becomes
of its tuples, not the evaluation of documents nor the first batch.  Beside each construct stands in
what its subscriptions differ.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.parameters import LINKED, Workload, print_costs

MINE = "S//i[author = $x]->a"
RUN = MINE + " FOLLOWED BY {a/next = b/link, 1 h} S//i->b+ {b/link = prev(b/next)}"


def _name(i: int) -> dict[str, Any]:
    return {"x": f"nobody {i}"}


def _bound(i: int) -> dict[str, Any]:
    return {"x": 10_000 + i}


WORKLOADS = {
    "FOLLOWED BY: a constant": Workload(f"{MINE} FOLLOWED BY {LINKED} S//i->b", _name),
    "JOIN: a constant": Workload(f"{MINE} JOIN {LINKED} S//i->b", _name),
    "jaccard: its threshold": Workload(
        "S//i->a FOLLOWED BY {jaccard(words(a/author), words(b/link)) >= $x, 1 h} S//i->b",
        lambda i: {"x": 0.5 + i / 4e6},
    ),
    "NEXT: a constant": Workload(f"{MINE} NEXT {LINKED} S//i->b GRACE 0 s", _name),
    "UNLESS: a constant": Workload(
        f"{MINE} FOLLOWED BY {{a/next = b/link}} S//i->b UNLESS {{a/next = c/link}} S//gone->c"
        " WITHIN 1 h GRACE 0 s",
        _name,
    ),
    "NOT FOLLOWED BY: its window": Workload(
        "S//i->a NOT FOLLOWED BY {a/next = b/link, $x} S//i->b GRACE 0 s",
        lambda i: {"x": 2_000_000 + i},
    ),
    "NOT FOLLOWED BY: a constant there": Workload(
        f"{MINE} NOT FOLLOWED BY {{a/next = b/link, 10 s}} S//i[author = $y]->b GRACE 0 s",
        lambda i: {"x": f"nobody {i}", "y": f"author {i % 97}"},
    ),
    "NOT FOLLOWED BY: one on both sides": Workload(
        f"{MINE} NOT FOLLOWED BY {{, 10 min}} S//i[author = $x] GRACE 0 s",
        lambda i: {"x": f"author {i}"},
    ),
    "NOT FOLLOWED BY: a threshold there": Workload(
        "S//i->a NOT FOLLOWED BY {a/next = b/link, 10 s} S//i[price > $x]->b GRACE 0 s",
        lambda i: {"x": i / 1e7},
    ),
    "UNLESS: its window": Workload(
        "S//i->a NEXT {a/author = b/author, 1 h} S//i->b UNLESS {a/next = c/link, $x} S//i->c"
        " GRACE 0 s",
        lambda i: {"x": 97_000_000 + i},
    ),
    "UNLESS: the window of FOLLOWED BY": Workload(
        "S//i->a FOLLOWED BY {a/next = b/link, $x} S//i->b UNLESS {a/next = c/link} S//gone->c"
        " GRACE 0 s",
        lambda i: {"x": i % 900_000},
    ),
    "NEXT: a window below it": Workload(
        "(S//i->a FOLLOWED BY {a/next = b/link, $x} S//i->b) NEXT {b/next = c/link, 1 h} S//i->c"
        " GRACE 0 s",
        lambda i: {"x": i % 900_000},
    ),
    "+, ANY: a constant": Workload(RUN, _name),
    "+, MATCH NEXT: a constant": Workload(f"{RUN} MATCH NEXT GRACE 0 s", _name),
    "+, MATCH PARTITION: a constant": Workload(
        f"{MINE} FOLLOWED BY S//i->b+ WITHIN 1 h SAME (//author) MATCH PARTITION GRACE 0 s", _name
    ),
    "+, MATCH STRICT: a constant": Workload(
        f"{MINE} FOLLOWED BY S//i->b+ WITHIN 1 h MATCH STRICT GRACE 0 s", _name
    ),
    "WINDOW: a bound in HAVING": Workload(
        "S//i->a WINDOW 10 min BY a/author HAVING count() > $x GRACE 0 s", _bound
    ),
    "WINDOW: a constant": Workload(f"{MINE} WINDOW 10 min GRACE 0 s", _name),
    "WINDOW: its length": Workload(
        "S//i->a WINDOW $x BY a/author HAVING count() > 1000 GRACE 0 s",
        lambda i: {"x": 600_000_000 + i},
    ),
    "LIMIT: a constant": Workload(f"{MINE} LIMIT 1 PER 1 h GRACE 0 s", _name),
    "LIMIT: its length": Workload(
        f"S//gone->a FOLLOWED BY {LINKED} S//i->b LIMIT 1 PER $x GRACE 0 s",
        lambda i: {"x": 600_000_000 + i},
    ),
    "a table: a bound on its cell": Workload(
        "CREATE TABLE t (id KEY, n DEFAULT 0); S//i[author->a] WHERE t[a].n > $x GRACE 0 s",
        _bound,
        most=100,
    ),
    "a table: a constant beside it": Workload(
        "CREATE TABLE t (id KEY, n DEFAULT 0);"
        " S//i[author = $x][link->a] WHERE t[a].n > 0 GRACE 0 s",
        _name,
    ),
    "LOSS: a constant": Workload(
        f"{MINE} FOLLOWED BY {{a/next = b/link, 1 h}} S//gone->b LOSS 0.1 DELAY uniform(0 s, 1 min)"
        " FOLLOWED BY {b/next = c/link, 1 h} S//i->c CONFIDENCE 0.01 GRACE 0 s",
        _name,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 1_000, 100_000, 1_000_000])
    parser.add_argument("--only", nargs="+", default=[""])
    given = parser.parse_args()
    some = {n: each for n, each in WORKLOADS.items() if any(word in n for word in given.only)}
    print_costs(some, "a construct: what differs", given.rows)


if __name__ == "__main__":
    main()
