"""Compare the engines with the oracle on many generated cases, and name the seeds that differ.

    python benchmarks/oracle_run.py --cases 5000 [--seed 0] [--engine mmqjp-views] [--keep DIR]
    python benchmarks/oracle_run.py --cases 5000 --dynamic
    python benchmarks/oracle_run.py --cases 5000 --ordered
    python benchmarks/oracle_run.py --cases 1000 --similar --dynamic
    python benchmarks/oracle_run.py --cases 1000 --repeated --dynamic

Each seed is a query set with a document stream (see `tests/generators/strategies.py`).  The engine
gets the documents in batches of one, of three, or all at once, by lot; one case of four restarts in
the middle.  A case that differs is printed as it stands, with expected and found matches.

With `--dynamic` each seed is a history, in which queries and subscriptions come and go between
documents (see `tests/histories/history.py`), and happens to a broker in one of the ways that must
not show: engine, shards, batches, restarts, and bounds so small that everything is done in pieces.

With `--ordered` the queries are of NEXT, UNLESS and NOT (`tests/generators/ordered_cases.py`), with
`--shared` their assignments are decided together (`tests/generators/shared_cases.py`),
with `--repeated` they have runs (`tests/generators/run_cases.py`), with `--chains` chains that are
stepped in columns (`tests/generators/column_cases.py`), with `--runs-behind-next` repetitions
behind NEXT that are (there), with `--rows-of-chains` rows of such chains
(there), with `--outcomes` WINDOW, LIMIT
and DISJOINT (`tests/generators/outcome_cases.py`), with `--counted` they count runs
(`tests/generators/counted_cases.py`), with `--lossy` LOSS
(`tests/generators/loss_cases.py`), with `--rules` tables, whose rows are compared too
(`tests/generators/rule_cases.py`), with `--similar` they join by similarity
(`tests/generators/similar_cases.py`).  One case of five of these three is joined in three shards.
Of the others of similarity one of five is joined by any engine: reference engines try pair by pair.
Compiled loops begin at once, with the fifth set, or never; half of the cases order their words anew
whenever as many sets have come as were there, and half forget documents and their sets at once.

A query that finds so much that it is paused is compared up to that document.  A case in which the
oracle's nested loops would look at millions of pairs is left out, and counted.

At the end comes a table of the clauses of the language: how many cases each stands in, and in how
many it decides which matches there are, with those of sections 12 to 18 where a kind is named; of
tables there is none.  That takes many runs of the oracle, so it looks at every twentieth case
(`--coverage 1` at each, `--coverage 0` at none), and in each process at a clause until it has
decided three.  Behind the table stand those that have decided none.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from generators.choosers import RandomChooser  # noqa: E402
from generators.clause_coverage import ALL_CLAUSES, CLAUSES, Clause, Coverage  # noqa: E402
from generators.column_cases import (  # noqa: E402
    column_case,
    column_run_case,
    counted_chain_case,
)
from generators.counted_cases import counted_any_case, counted_case  # noqa: E402
from generators.loss_cases import loss_case  # noqa: E402
from generators.ordered_cases import absence_case, ordered_case  # noqa: E402
from generators.outcome_cases import outcome_case  # noqa: E402
from generators.rule_cases import rule_case  # noqa: E402
from generators.run_cases import run_case, run_end_case  # noqa: E402
from generators.shared_cases import shared_case  # noqa: E402
from generators.similar_cases import similar_case  # noqa: E402
from generators.strategies import random_case  # noqa: E402
from histories.clauses import HISTORY_CLAUSES, decided  # noqa: E402
from histories.history import history_matches, parse_history  # noqa: E402
from histories.repeated import repeated_history  # noqa: E402
from histories.runs import random_way, run_history  # noqa: E402
from histories.similar import similar_history  # noqa: E402
from histories.strategies import random_history  # noqa: E402
from oracle.lines import render  # noqa: E402
from support import rules  # noqa: E402
from support.bounded import TooLargeError, bounded  # noqa: E402
from support.kit import parse_case  # noqa: E402
from support.runners import (  # noqa: E402
    DEFAULT_ENGINE,
    ENGINES,
    EngineName,
    run_engine,
    run_oracle,
)
from support.tiny_limits import TINY_MEMORY, matching  # noqa: E402

from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits  # noqa: E402
from broker.pipeline.shards import Join  # noqa: E402
from broker.tables.locks import Granularity, Scheduler  # noqa: E402
from broker.tables.transactions import Schedule  # noqa: E402
from joins import UNBOUNDED  # noqa: E402
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits  # noqa: E402
from joins.sequences.lockstep.compilation import compile_loops as compile_steps  # noqa: E402
from joins.shards.limits import ShardLimits  # noqa: E402
from joins.similarity import settable, textsets  # noqa: E402
from joins.similarity.compilation import compile_loops  # noqa: E402
from templates.compiling import can_compile  # noqa: E402

MEMORY = Path("/dev/shm")

CASES: dict[str, Callable[[RandomChooser], str]] = {
    "chains": column_case,
    "runs-behind-next": column_run_case,
    "rows-of-chains": counted_chain_case,
    "counted": counted_case,
    "counted-any": counted_any_case,
    "lossy": loss_case,
    "rules": rule_case,
    "ordered": ordered_case,
    "shared": shared_case,
    "repeated": run_case,
    "outcomes": outcome_case,
    "similar": similar_case,
}
KINDS = {
    "chains": "queries have chains that are stepped in columns",
    "runs-behind-next": "queries have repetitions behind NEXT that are stepped in columns",
    "rows-of-chains": "queries have rows of such chains",
    "counted": "queries count runs, or draw them",
    "counted-any": "queries count the matches of chains under MATCH ANY, or draw them",
    "lossy": "queries have LOSS",
    "rules": "queries read and write tables",
    "ordered": "queries decide",
    "shared": "queries decide for many assignments together",
    "repeated": "queries have runs",
    "outcomes": "queries have rows or limits",
    "similar": "queries join by similarity",
}


PLAIN = {ordered_case: absence_case, run_case: run_end_case}
"""What one case in eight is instead: about what hardly decides among other conditions."""

HISTORIES: dict[object, Callable[[int], str]] = {
    similar_case: similar_history,
    run_case: repeated_history,
}

LEFT_OUT = "left out, too large for the oracle"

ENOUGH = 3
"""A clause that has decided in so many cases of a process is not looked at again."""

DECIDED: Counter[str] = Counter()
"""In how many cases of this process each clause has decided."""


@dataclass(frozen=True)
class Run:
    """What is done with a seed."""

    engines: tuple[EngineName, ...]
    is_dynamic: bool
    of_kind: Callable[[RandomChooser], str] | None
    coverage_every: int

    @property
    def clauses(self) -> Sequence[Clause]:
        """The clauses that its cases are to try."""
        return CLAUSES if self.of_kind is None else ALL_CLAUSES

    def __call__(self, seed: int) -> Outcome:
        try:
            if self.of_kind is rule_case:
                return self._rules(seed)
            return self._history(seed) if self.is_dynamic else self._case(seed)
        except TooLargeError:
            return Outcome(seed, "", Counter({LEFT_OUT: 1}))

    def _case(self, seed: int) -> Outcome:
        text = self._text(seed)
        case = parse_case(text)
        cut = random.Random(seed)
        engine = cut.choice(self.engines)
        batch_size = cut.choice((1, 3, None))
        restart = 0 if cut.randrange(4) else len(case.lines) // 2
        is_spread = self.of_kind in (similar_case, loss_case) and not cut.randrange(5)
        way = _SimilarWay.random(cut) if self.of_kind is similar_case else None
        if is_spread or (way and not way.is_by_reference):
            engine = DEFAULT_ENGINE
        limits = way.limits if way else DEFAULT_MATCHING_LIMITS
        shards = ShardLimits(shard=limits.join)
        join = Join(case.lateness_us, 3 if is_spread else 1, limits=shards)
        how = f"{engine}, batch size {batch_size}, restart {restart}, shards {join.shards}, {way}"
        paused: dict[str, int] = {}
        with way.taken() if way else contextlib.nullcontext():
            with bounded():
                matches = run_oracle(case)
            found = _lines(
                lambda: [
                    render(match)
                    for match in run_engine(
                        case,
                        engine,
                        batch_size=batch_size,
                        restart_after=restart,
                        processors=lambda: join.processor(None),
                        limits=limits,
                        paused=paused,
                    )
                ]
            )
        # The oracle has no limits of how much a statement may find.
        expected = [m for m in matches if m.position < paused.get(m.query, UNBOUNDED)]
        outcome = Outcome.of(seed, how, text, [render(match) for match in expected], found)
        outcome.counts["cases with a pause"] += bool(paused)
        if self.coverage_every and seed % self.coverage_every == 0:
            settled = {name for name, count in DECIDED.items() if count >= ENOUGH}
            outcome.coverage.add(case, matches, self.clauses, settled)
            DECIDED.update(outcome.coverage.decides)
        return outcome

    def _rules(self, seed: int) -> Outcome:
        text = self._text(seed)
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

    def _text(self, seed: int) -> str:
        if self.of_kind is None:
            return random_case(seed)
        is_plain = random.Random(f"plain {seed}").randrange(8) == 0
        kind = PLAIN.get(self.of_kind, self.of_kind) if is_plain else self.of_kind
        return kind(RandomChooser(seed))

    def _history(self, seed: int) -> Outcome:
        text = HISTORIES.get(self.of_kind, random_history)(seed)
        way = random_way(seed, self.engines)
        history = parse_history(text)
        with bounded():
            expected = history_matches(history)
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as directory:
            found = _lines(lambda: run_history(history, Path(directory), way))
        outcome = Outcome.of(seed, str(way), text, expected, found)
        if self.coverage_every and seed % self.coverage_every == 0:
            outcome.decided = decided(history, expected)
        outcome.counts.update(f"histories with {word}" for word in _words(text))
        return outcome


@dataclass(frozen=True)
class _SimilarWay:
    """A way to join by similarity that must not show."""

    is_by_reference: bool
    compiled_sets: int
    first_look: int
    part_words: int
    memory: MemoryLimits

    @classmethod
    def random(cls, cut: random.Random) -> _SimilarWay:
        """Return one of the ways."""
        return cls(
            is_by_reference=not cut.randrange(5),
            compiled_sets=cut.choice((0, 5, 1_000)),
            first_look=cut.choice((1, settable.FIRST_LOOK)),
            part_words=cut.choice((1, settable.PART_WORDS)),
            memory=cut.choice((TINY_MEMORY, DEFAULT_MEMORY_LIMITS)),
        )

    @property
    def limits(self) -> MatchingLimits:
        """The limits of an engine that joins in this way."""
        return matching(self.memory, compiled_sets=self.compiled_sets)

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Order words as early as this way does, and copy as few at once."""
        with (
            patch.object(settable, "FIRST_LOOK", self.first_look),
            patch.object(textsets, "FIRST_SETS", self.first_look),
            patch.object(settable, "PART_WORDS", self.part_words),
        ):
            yield


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


def _lines(run: Callable[[], list[str]]) -> list[str]:
    """Return what is found, or how the search ended."""
    try:
        return run()
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
    for kind, what in KINDS.items():
        parser.add_argument(f"--{kind}", action="store_true", help=what)
    parser.add_argument("--keep", type=Path, help="write cases that differ to this directory")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--coverage", type=int, default=20, help="look at every so many cases")
    options = parser.parse_args()
    engines = ENGINES if options.engine == "all" else (options.engine,)
    wanted = [kind for kind in KINDS if getattr(options, kind.replace("-", "_"))]
    of_kind = CASES[wanted[0]] if wanted else None
    if options.similar and can_compile():
        compile_loops()
    if can_compile():
        compile_steps()
    run = Run(engines, options.dynamic, of_kind, options.coverage)
    seeds = range(options.seed, options.seed + options.cases)
    counts: Counter[str] = Counter()
    coverage, clauses = Coverage(), Counter[str]()
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        outcomes: Iterator[Outcome] = map(run, seeds)
        if options.processes > 1:
            pool = stack.enter_context(get_context("spawn").Pool(options.processes))
            outcomes = pool.imap(run, seeds)
        for outcome in outcomes:
            counts.update(outcome.counts)
            coverage.update(outcome.coverage)
            clauses.update(outcome.decided)
            if outcome.counts["cases"] and counts["cases"] % 500 == 0:
                print(f"{counts['cases']} cases, {counts['different']} different", file=sys.stderr)
            if outcome.difference:
                counts["different"] += 1
                print(f"{outcome.difference}\n", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{outcome.seed}.case").write_text(outcome.text)
    seconds = time.monotonic() - started
    if run.coverage_every and of_kind is not rule_case:
        decides = [f"{each.name:<50} {clauses[each.name]:>8}" for each in HISTORY_CLAUSES]
        table = "\n".join(decides) if options.dynamic else coverage.table(run.clauses)
        idle = [each for each in run.clauses if not coverage.decides[each.name]]
        print(f"Of every {run.coverage_every}th case:\n\n{table}\n")
        if not options.dynamic:
            print(f"{len(idle)} of {len(run.clauses)} clauses have decided nothing:")
            print("".join(f"  {each.name}\n" for each in idle))
    print(", ".join(f"{n} {name}" for name, n in counts.items()) + f", {seconds:.0f} s")
    sys.exit(1 if counts["different"] else 0)


if __name__ == "__main__":
    main()
