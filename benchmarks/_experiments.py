"""Experiments of papers: something is varied, and documents a second of one or more ways printed.

A way is an engine with queries, or the same with less: rules of RUMOR left out, or a statement of
SQL for each query, as those do whom a paper compares itself with.  Ways that got to the end of the
same documents must have found as many matches.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import xscl
from benchmarks._paper_plots import Curves, plot_curves, print_head, print_row
from broker.documents.document import Document
from broker.matching.batch import MatchingBatch
from broker.matching.costs.budget import Budget
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.mrules import MRule, point_of
from broker.matching.rendering.matches import BuiltMatches
from broker.matching.rendering.matchrows import MatchRows
from joins.engines import DEFAULT_ENGINE, EngineName

__all__ = [
    "LATENESS_US",
    "SECOND_US",
    "Experiment",
    "RowsOnly",
    "Way",
    "Workload",
    "assigned",
    "print_experiments",
    "statements",
    "stream",
]

SECOND_US = 1_000_000
LATENESS_US = 60 * SECOND_US
BATCH = 1_000
BOUNDLESS = Budget(0, 0, 0, 0, 0, 0)


Workload = tuple[Sequence[RegisteredQuery], Sequence[Document]]
"""Queries, and the documents that they run over."""


class RowsOnly(Engine):
    """An engine that spells no match: it ends with the rows of matches."""

    found = 0

    def _build(self, batch: MatchingBatch, found: MatchRows, leaves: object) -> BuiltMatches:
        for rows in found.rows(lambda query: batch.accounts.of(query).limit):
            self.found += sum(len(row.readers) for row in rows)
        return BuiltMatches([], [])


class Run(NamedTuple):
    """Documents that were timed, the seconds of the processor that they took, and their matches."""

    documents: int
    seconds: float
    matches: int


@dataclass(frozen=True)
class Way:
    """How queries are run: the engine, and rules that are left out.

    `make` returns the queries and the documents for a value of what is varied.
    """

    make: Callable[[Any], Workload]
    engine: EngineName = DEFAULT_ENGINE
    without: Collection[MRule] = ()

    def run(self, value: Any, seconds: float) -> Run:
        """Return what documents need from witnesses to rows of matches, as many as end in time.

        They are evaluated before the clock starts.  The first batch is not timed: it compiles
        what is compiled once, and fills what is remembered.
        """
        queries, documents = self.make(value)
        made = RowsOnly(
            queries,
            lateness_us=LATENESS_US,
            engine=self.engine,
            without=self.without,
            budget=BOUNDLESS,
        )
        timed, spent, untimed = 0, 0.0, 0
        for first in range(0, len(documents), BATCH):
            some = documents[first : first + BATCH]
            witnesses = made.evaluate(some)
            started = time.process_time()
            made.process(witnesses, dict[int, bytes])
            if first == 0:
                untimed = made.found
                continue
            spent += time.process_time() - started
            timed += len(some)
            if spent > seconds:
                break
        return Run(timed, spent, made.found - untimed)


@dataclass(frozen=True)
class Experiment:
    """A figure of a paper: what is varied, and the ways that are compared.

    They are `alike` if all of them ask for the same.
    """

    number: str
    title: str
    varied: str
    values: Sequence[Any]
    ways: Mapping[str, Way]
    alike: bool = True

    def run(self, seconds: float) -> Curves:
        """Print a row for each value; return documents a second of each way."""
        print(f"\n{self.number}: {self.title}\n")
        print_head(self.varied, *self.ways, "matches a document")
        curves: Curves = {name: [] for name in self.ways}
        for value in self.values:
            runs = {name: way.run(value, seconds) for name, way in self.ways.items()}
            for name, run in runs.items():
                curves[name].append((value, run.documents / run.seconds))
            if self.alike:
                _check(runs)
                runs = {"": max(runs.values())}
            found = " / ".join(f"{run.matches / run.documents:.3g}" for run in runs.values())
            print_row(f"{value:,}", *(f"{own[-1][1]:,.0f}" for own in curves.values()), found)
        return curves


def _check(runs: Mapping[str, Run]) -> None:
    """Raise an error where ways that had the same documents found other matches."""
    found: dict[int, int] = {}
    for name, run in runs.items():
        if found.setdefault(run.documents, run.matches) != run.matches:
            raise AssertionError(f"{name}: {run.matches} matches in {run.documents} documents")


def stream(texts: Iterable[str], name: str = "S") -> list[Document]:
    """Return documents of one stream, a second apart."""
    return [
        Document(n, name, str(n), at, at, at, at - SECOND_US, text.encode())
        for n, text in enumerate(texts, 1)
        for at in [n * SECOND_US]
    ]


def statements(texts: Sequence[str], without: Collection[MRule] = ()) -> list[RegisteredQuery]:
    """Return statements that were written out, each registered before all documents."""
    return [
        RegisteredQuery(query, point_of(number, without))
        for number, text in enumerate(texts)
        for query in xscl.parse(text, id=f"q{number}")
    ]


def assigned(text: str, values: Sequence[Mapping[str, Any]]) -> list[RegisteredQuery]:
    """Return one query, with an assignment for each subscription."""
    [query] = xscl.parse(text, id="q")
    return [RegisteredQuery(query, assignments=tuple(map(dict, values)))]


def print_experiments(paper: str, description: str, experiments: Sequence[Experiment]) -> None:
    """Print the experiments of a paper that the command line asks for."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--only", default="", help="figures whose number or title has this word")
    parser.add_argument("--seconds", type=float, default=10, help="the most that a way is timed")
    parser.add_argument("--plots", type=Path, help="a directory for a plot of each figure")
    options = parser.parse_args()
    for each in experiments:
        if options.only not in f"{each.number} {each.title}":
            continue
        curves = each.run(options.seconds)
        if options.plots is not None:
            number = f"{paper}-{each.number.replace(' ', '-').replace(',', '')}"
            plot_curves(options.plots, number, each.title, each.varied, curves, unit="documents/s")
