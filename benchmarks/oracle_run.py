"""Compare the engines with the oracle on many generated cases, and name the seeds that differ.

    python benchmarks/oracle_run.py --cases 5000 [--seed 0] [--engine mmqjp-views] [--keep DIR]
    python benchmarks/oracle_run.py --cases 5000 --ordered
    python benchmarks/oracle_run.py --cases 5000 --mixed --coverage 1 --every-clause
    python benchmarks/oracle_run.py --cases 5000 --dynamic
    python benchmarks/oracle_run.py --cases 1000 --ordered --dynamic

Each seed is a query set with a document stream, of a kind (`tests/generators/kinds.py`): of joins
by values where none is named, and of each kind in turn with `--mixed`, tables aside.  It is run in
a way that must not show (`tests/support/ways.py`): the engine, batches, shards, a restart in the
middle, and in most cases bounds so small that everything is done in pieces.  One case in four is
longer: documents come again and again, and what came before is forgotten.  How often something was
forgotten, moved, merged or written to a file is counted.  A case that differs is printed as it
stands, with expected and found matches.

With `--dynamic` each seed is a history, in which queries and subscriptions come and go between
documents (see `tests/histories/history.py`), and happens to a broker in such a way.  There are
histories of joins, of what is decided (`--ordered`), of runs (`--repeated`), of limits
(`--outcomes`) and of similarity.

A query that finds so much that it is paused is compared up to that document.  A case in which the
oracle's nested loops would look at millions of pairs, or find 100,000 tuples, is left out, and
counted.

At the end comes a table of the clauses of the language: how many cases each stands in, and in how
many it decides which matches there are, with those of sections 12 to 18 where a kind is named; of
tables there is none.  That takes many runs of the oracle, so it looks at every twentieth case
(`--coverage 1` at each, `--coverage 0` at none), at none that is longer, and in each process at a
clause until it has decided three.  Behind the table stand those that have decided none; with
`--every-clause` they are a fault.  A run that is interrupted tells of the cases that it has tried.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from generators.clause_coverage import ALL_CLAUSES, CLAUSES, Clause, Coverage  # noqa: E402
from generators.kinds import KINDS, MIXED, RULES, SIMILAR, Kind, longer_by_lot  # noqa: E402
from histories.clauses import HISTORY_CLAUSES, decided  # noqa: E402
from histories.decided import ordered_history, repeated_history  # noqa: E402
from histories.history import history_matches, parse_history  # noqa: E402
from histories.limited import limited_history  # noqa: E402
from histories.made import made_history  # noqa: E402
from histories.runs import random_way, run_history  # noqa: E402
from histories.similar import similar_history  # noqa: E402
from histories.strategies import random_history  # noqa: E402
from oracle.lines import render  # noqa: E402
from support import rules  # noqa: E402
from support.bounded import TooLargeError, bounded  # noqa: E402
from support.happenings import noted  # noqa: E402
from support.kit import parse_case  # noqa: E402
from support.runners import ENGINES, EngineName, run_oracle  # noqa: E402
from support.ways import is_longer, random_case_way  # noqa: E402

from broker.pipeline.shards import Join  # noqa: E402
from broker.tables.locks import Granularity, Scheduler  # noqa: E402
from broker.tables.transactions import Schedule  # noqa: E402
from joins import UNBOUNDED  # noqa: E402
from joins.sequences.lockstep.compilation import compile_loops as compile_steps  # noqa: E402
from joins.similarity.compilation import compile_loops  # noqa: E402
from templates.compiling import can_compile  # noqa: E402

MEMORY = Path("/dev/shm")

HISTORIES: dict[str, Callable[[int], str]] = {
    "similar": similar_history,
    "ordered": ordered_history,
    "repeated": repeated_history,
    "outcomes": limited_history,
    "shared": made_history,
}

LEFT_OUT = "left out, too large for the oracle"

ENOUGH = 3
"""A clause that has decided in so many cases of a process is not looked at again."""

DECIDED: Counter[str] = Counter()
"""In how many cases of this process each clause has decided."""


@dataclass(frozen=True)
class Run:
    """What is done with a seed; kinds take turns, by their names."""

    engines: tuple[EngineName, ...]
    is_dynamic: bool
    kinds: Sequence[str]
    coverage_every: int

    @property
    def clauses(self) -> Sequence[Clause]:
        """The clauses that its cases are to try."""
        return CLAUSES if self.kinds == ("plain",) else ALL_CLAUSES

    def __call__(self, seed: int) -> Outcome:
        name = self.kinds[seed % len(self.kinds)]
        try:
            if self.is_dynamic:
                return self._history(seed, name)
            return self._rules(seed) if KINDS[name] is RULES else self._case(seed, KINDS[name])
        except TooLargeError:
            return Outcome(seed, "", Counter({LEFT_OUT: 1}))
        except Exception:
            # What raises in the oracle, too, is a case that differs, and ends no search.
            raised = f"seed {seed} of {name}\n{traceback.format_exc()}"
            return Outcome(seed, "", Counter({"cases": 1}), difference=raised)

    def _case(self, seed: int, kind: Kind) -> Outcome:
        text = kind.case(seed)
        case = parse_case(text)
        # Of similarity engines for reference try pair by pair.
        way = random_case_way(seed, case, self.engines, by_default=4 if kind is SIMILAR else 0)
        paused: dict[str, int] = {}
        with bounded():
            matches = run_oracle(case)
        with noted() as happenings:
            found = _lines(lambda: map(render, way.run(case, paused)))
        # The oracle has no limits of how much a statement may find.
        expected = [m for m in matches if m.position < paused.get(m.query, UNBOUNDED)]
        outcome = Outcome.of(seed, str(way), text, [render(match) for match in expected], found)
        outcome.counts["cases with a pause"] += bool(paused)
        outcome.counts.update(f"cases that {what}" for what, count in happenings.items() if count)
        if self.coverage_every and seed % self.coverage_every == 0 and not is_longer(case):
            settled = {name for name, count in DECIDED.items() if count >= ENOUGH}
            outcome.coverage.add(case, matches, self.clauses, settled)
            DECIDED.update(outcome.coverage.decides)
        return outcome

    def _rules(self, seed: int) -> Outcome:
        text = RULES.case(seed)
        case = parse_case(text)
        cut = random.Random(seed)
        schedule = Schedule(cut.choice(list(Scheduler)), cut.choice(list(Granularity)))
        batch_size = cut.randint(1, 4)
        restarts = [cut.randrange(len(case.lines)) for _ in range(cut.randint(0, 2))]
        shards = 3 if seed % 5 == 0 else 1
        join = Join(case.lateness_us, shards)
        how = f"{schedule}, batch size {batch_size}, restarts {restarts}, shards {shards}"
        with bounded():
            expected = _left(rules.run_oracle(case))
        found = _lines(
            lambda: _left(
                rules.run_tables(
                    case,
                    batch_size=batch_size,
                    restarts=restarts,
                    schedule=schedule,
                    processors=lambda: join.processor(None),
                )
            )
        )
        outcome = Outcome.of(seed, how, text, expected, found)
        outcome.counts["cases with restarts"] += bool(restarts)
        outcome.counts["cases in shards"] += shards > 1
        return outcome

    def _history(self, seed: int, kind: str) -> Outcome:
        text = longer_by_lot(HISTORIES.get(kind, random_history)(seed), seed)
        way = random_way(seed, self.engines)
        history = parse_history(text)
        with bounded():
            expected = history_matches(history)
        with (
            tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as directory,
            noted() as happenings,
        ):
            found = _lines(lambda: run_history(history, Path(directory), way))
        outcome = Outcome.of(seed, str(way), text, expected, found)
        if self.coverage_every and seed % self.coverage_every == 0:
            outcome.decided = decided(history, expected)
        outcome.counts.update(f"histories with {word}" for word in _words(text))
        outcome.counts.update(
            f"histories that {what}" for what, count in happenings.items() if count
        )
        return outcome


@dataclass
class Outcome:
    """What came of a seed: what is to be counted, and how it differs, if it does."""

    seed: int
    text: str
    counts: Counter[str] = field(default_factory=Counter)
    coverage: Coverage = field(default_factory=Coverage)
    decided: Counter[str] = field(default_factory=Counter)
    difference: str = ""

    @classmethod
    def of(cls, seed: int, how: str, text: str, expected: list[str], found: list[str]) -> Outcome:
        """Return the outcome of a comparison."""
        outcome = cls(seed, text)
        outcome.counts.update(
            {"cases": 1, "cases with matches": bool(expected), "matches": len(expected)}
        )
        if found != expected:
            lines = difflib.unified_diff(expected, found, "oracle", "found", lineterm="", n=0)
            outcome.difference = f"seed {seed}: {how}\n{text}" + "\n".join(lines)
        return outcome

    def add(self, other: Outcome) -> None:
        """Count what came of another seed, too."""
        self.counts.update(other.counts)
        self.counts["different"] += bool(other.difference)
        self.coverage.update(other.coverage)
        self.decided.update(other.decided)


def _lines(run: Callable[[], Iterable[str]]) -> list[str]:
    """Return what is found, or how the search ended."""
    try:
        return list(run())
    except Exception:
        return traceback.format_exc(limit=-4).splitlines()


def _left(left: rules.Left) -> list[str]:
    """Return matches and rows as lines."""
    rows = [f"{table}[{key!r}] {row}" for (table, key), row in sorted(left.rows.items())]
    return [*map(render, left.matches), *rows]


def _words(text: str) -> set[str]:
    """Return what kinds of things happen in a history."""
    words = {line.split()[0] for line in text.splitlines() if line[:1].isalpha()}
    return words | {word for word in ("since", "PUBLISH") if f" {word} " in text}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--engine", choices=[*ENGINES, "all"], default="all")
    parser.add_argument("--dynamic", action="store_true", help="queries come and go")
    for name, kind in KINDS.items():
        parser.add_argument(
            f"--{name}",
            action="append_const",
            dest="kinds",
            const=name,
            help=f"queries {kind.what}",
        )
    parser.add_argument(
        "--mixed",
        action="store_const",
        dest="kinds",
        const=MIXED,
        help="kinds in turn, tables aside",
    )
    parser.add_argument("--keep", type=Path, help="write cases that differ to this directory")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--coverage", type=int, default=20, help="look at every so many cases")
    parser.add_argument(
        "--every-clause", action="store_true", help="fail where one decides nothing"
    )
    options = parser.parse_args()
    engines = ENGINES if options.engine == "all" else (options.engine,)
    kinds = tuple(options.kinds or ["plain"])
    if can_compile():
        compile_steps()
        if "similar" in kinds:
            compile_loops()
    run = Run(engines, options.dynamic, kinds, options.coverage)
    seeds = range(options.seed, options.seed + options.cases)
    whole = Outcome(options.seed, "")
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        outcomes: Iterator[Outcome] = map(run, seeds)
        if options.processes > 1:
            pool = get_context("spawn").Pool(options.processes, _ignore_interrupts)
            outcomes = stack.enter_context(pool).imap(run, seeds)
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        for outcome in outcomes:
            whole.add(outcome)
            if outcome.counts["cases"] and whole.counts["cases"] % 500 == 0:
                told = f"{whole.counts['cases']} cases, {whole.counts['different']} different"
                print(told, file=sys.stderr, flush=True)
            if outcome.difference:
                print(f"{outcome.difference}\n", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{outcome.seed}.case").write_text(outcome.text)
    idle = _print_table(run, whole) if run.coverage_every and kinds != ("rules",) else []
    seconds = time.monotonic() - started
    print(", ".join(f"{n} {name}" for name, n in whole.counts.items()) + f", {seconds:.0f} s")
    is_cut = whole.counts["cases"] + whole.counts[LEFT_OUT] < options.cases
    if is_cut:
        print(f"interrupted: not all of {options.cases} cases were tried")
    sys.exit(1 if is_cut or whole.counts["different"] or (options.every_clause and idle) else 0)


def _ignore_interrupts() -> None:
    """Leave an interrupt, which a terminal sends to all processes, to the one that counts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _print_table(run: Run, whole: Outcome) -> list[str]:
    """Print which clauses stand and decide in how many cases; return those that decide in none."""
    if run.is_dynamic:
        names = [each.name for each in HISTORY_CLAUSES]
        decides = whole.decided
        table = "\n".join(f"{name:<50} {decides[name]:>8}" for name in names)
    else:
        names = [each.name for each in run.clauses]
        decides = whole.coverage.decides
        table = whole.coverage.table(run.clauses)
    idle = [name for name in names if not decides[name]]
    print(f"Of every {run.coverage_every}th case:\n\n{table}\n")
    print(f"{len(idle)} of {len(names)} clauses have decided nothing:")
    print("".join(f"  {name}\n" for name in idle))
    return idle


if __name__ == "__main__":
    main()
