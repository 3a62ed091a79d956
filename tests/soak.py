"""Searches for faults that `make test` has no time for, and says what it tried.

    make soak
    make soak ARGS="--scale 0.1 --seed 7"
    make soak ARGS="--only 'all kinds'"

Each search is a program of its own that takes a number of cases and a first seed, so that a case
that fails can be run again by itself.  `--scale` multiplies the numbers of cases, `--only` runs
those with a word in their names.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Search:
    """A program that searches: `{cases}` and `{seed}` stand in its arguments.

    With `examples` the cases are examples of properties, times those of `make test`.
    """

    name: str
    cases: int
    arguments: str
    examples: bool = False

    def command(self, scale: float, seed: int) -> list[str]:
        """Return the command line for some of the cases."""
        cases = self.scaled(scale)
        return [sys.executable, *shlex.split(self.arguments.format(cases=cases, seed=seed))]

    def scaled(self, scale: float) -> int:
        """Return the number of cases, at least one."""
        return max(1, round(self.cases * scale))


SEARCHES = (
    Search(
        "random cases of all kinds in turn against the oracle: each clause of the language decides",
        5_000,
        "benchmarks/oracle_run.py --mixed --every-clause --coverage 1 --engine signatures"
        " --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random queries and documents against the oracle",
        5_000,
        "benchmarks/oracle_run.py --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random ordered queries and documents against the oracle",
        5_000,
        "benchmarks/oracle_run.py --ordered --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random assignments that are decided together against the oracle",
        5_000,
        "benchmarks/oracle_run.py --shared --cases {cases} --seed {seed} --processes 2",
    ),
    # Of five cases two are repetitions, and three chains: under NEXT, PARTITION, STRICT, ANY.
    Search(
        "random queries with runs and chains and documents against the oracle",
        9_000,
        "benchmarks/oracle_run.py --repeated --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random chains that are stepped in columns, and documents against the oracle",
        5_000,
        "benchmarks/oracle_run.py --chains --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random repetitions behind NEXT that are, and documents against the oracle",
        2_000,
        "benchmarks/oracle_run.py --runs-behind-next --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random rows of such chains, and documents against the oracle",
        2_000,
        "benchmarks/oracle_run.py --rows-of-chains --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random runs that are counted or drawn, and documents against the oracle",
        5_000,
        "benchmarks/oracle_run.py --counted --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random chains under ANY that are counted or drawn, and documents against the oracle",
        5_000,
        "benchmarks/oracle_run.py --counted-any --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random queries with rows and limits and documents against the oracle",
        5_000,
        "benchmarks/oracle_run.py --outcomes --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random joins by similarity and texts of all scripts against the oracle",
        5_000,
        "benchmarks/oracle_run.py --similar --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random histories of thresholds of similarity against the oracle",
        1_000,
        "benchmarks/oracle_run.py --similar --dynamic --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random histories of NEXT and absence against the oracle",
        1_000,
        "benchmarks/oracle_run.py --ordered --dynamic --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random histories of runs, chains and counting against the oracle",
        1_000,
        "benchmarks/oracle_run.py --repeated --dynamic --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random histories of LIMIT and DISJOINT against the oracle",
        1_000,
        "benchmarks/oracle_run.py --outcomes --dynamic --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random histories of texts that are made of several values and of data against the oracle",
        1_000,
        "benchmarks/oracle_run.py --shared --dynamic --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random histories of queries and subscriptions against the oracle",
        5_000,
        "benchmarks/oracle_run.py --dynamic --cases {cases} --seed {seed} --processes 2",
    ),
    Search(
        "random paths and documents against lxml",
        300_000,
        "benchmarks/xpath_is_right.py --pairs {cases} --seed {seed}",
    ),
    Search(
        "crashes in a simulated world, a stand-in for the engine",
        5_000,
        "-m histories.simulation --runs {cases} --seed {seed}",
    ),
    Search(
        "crashes in a simulated world, the real engine",
        500,
        "-m histories.simulation --runs {cases} --seed {seed} --real",
    ),
    Search(
        "a broker that is killed at random moments while all goes on, minutes",
        60,
        "-m kills --minutes {cases} --seed {seed}",
    ),
    Search(
        "a cluster whose executors are killed while documents are joined on it, minutes",
        10,
        "-m kills.executors --minutes {cases} --seed {seed}",
    ),
    Search(
        "small changes of templates, joins, matching, pipeline and delivery that no test notices",
        50,
        "tests/mutants/run.py --sample {cases} --seed {seed}",
    ),
    Search(
        "properties of the language, of paths and of the join, more examples of each",
        80,
        "-m pytest -q -n 2 -o timeout=0 -m hypothesis tests --hypothesis-seed {seed}",
        examples=True,
    ),
    Search(
        "every test, with all of the cases of which make test tries some, and of full size",
        2,
        "-m pytest -q -n 2 --dist loadfile -o timeout=0 tests --hypothesis-seed {seed}",
        examples=True,
    ),
    Search(
        "recorded items in one process, on Spark and over shards: the same rows",
        20_000,
        "benchmarks/lines.py --first {cases}",
    ),
)


def main() -> None:
    """Run all searches, one after the other, and end with what failed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="cases, times so many")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the first seed")
    parser.add_argument("--only", default="", help="words in the names of the searches to run")
    given = parser.parse_args()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    verdicts = []
    for number, search in enumerate(SEARCHES, 1):
        if given.only in search.name:
            command = search.command(given.scale, given.seed)
            print(f"== {number}. {search.name}\n   {shlex.join(command[1:])}", flush=True)
            started = time.monotonic()
            more = {"XSCL_EXAMPLES": str(search.scaled(given.scale))} if search.examples else {}
            ended = subprocess.run(command, cwd=ROOT, env=environment | more, check=False)
            word = "nothing found" if ended.returncode == 0 else "FAULTS FOUND"
            verdicts.append(f"{word:<13}  {time.monotonic() - started:7,.0f} s  {search.name}")
    print("\n".join(["", f"soak, seed {given.seed}, scale {given.scale:g}", *verdicts]))
    sys.exit(any(verdict.startswith("FAULTS") for verdict in verdicts))


if __name__ == "__main__":
    main()
