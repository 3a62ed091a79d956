"""`xscl replay`: run queries over recorded documents."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import xscl
from broker.cli.connection import settings_of
from broker.cli.terminal import (
    EXIT_FAILED,
    EXIT_PAUSED,
    Failure,
    Time,
    message,
    parameter_option,
    read_parameters,
    wanted_parameters,
)
from broker.documents.document import LAST_US
from broker.documents.recorded import RecordedError, count_lines
from broker.matching.mrules import SWITCHED
from broker.operations.printable import printable
from broker.pipeline.jvm import JvmError
from broker.pipeline.lookback.replay import (
    BATCH_DOCUMENTS,
    ReplayError,
    ReplaySummary,
    read_assignments,
)
from broker.pipeline.lookback.replay import replay as run_replay
from broker.tables.locks import Granularity, Scheduler
from broker.tables.transactions import Schedule
from joins import DEFAULT_ENGINE, ENGINES, EngineName
from xscl.durations import DurationError, read_duration

__all__ = ["replay"]


class _Duration(click.ParamType[int]):
    """A duration as XSCL writes it, in microseconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            return read_duration(str(value))
        except DurationError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.argument("queries", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--documents",
    multiple=True,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of document lines, plain or gzip; more than one are read in the order given.",
)
@click.option(
    "--matches",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the match lines; by default to standard output.",
)
@click.option(
    "--lateness",
    type=_Duration(),
    default="1d",
    show_default=True,
    help="How late a document may come and still find every partner.",
)
@click.option(
    "--until",
    type=Time(),
    help="When the last tick of the clock is, behind all documents; by default later than"
    " everything, so that all is decided.",
)
@parameter_option("A value for the parameter of that name, in each query that has it")
@click.option(
    "--parameters",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='A file with several rows of them: {"query": ..., "parameters": {...}} on each line.',
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=BATCH_DOCUMENTS,
    show_default=True,
    help="Documents in a batch.  It changes the speed, never the matches.",
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=DEFAULT_ENGINE,
    show_default=True,
    help="How the join is evaluated.  It changes the speed, never the matches.  All but the default"
    " are for reference: they are not spread over shards, and pause no query over its budget of"
    " pairs.",
)
@click.option(
    "--shards",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Over how many tasks the join is spread.  It changes the speed, never the matches.",
)
@click.option(
    "--without",
    multiple=True,
    type=click.Choice([rule.plain for rule in SWITCHED]),
    help="Share nothing by this m-rule of RUMOR (`xscl explain --plan`).  It changes the speed,"
    " never the matches.",
)
@click.option(
    "--scheduler",
    type=click.Choice([each.value for each in Scheduler]),
    default=Scheduler.LWM.value,
    show_default=True,
    help="Which transactions over tables wait for each other: all, those with locks that do not go"
    " together, or readers for writers alone.  It changes the waves, never the rows.",
)
@click.option(
    "--locks",
    type=click.Choice([each.value for each in Granularity]),
    default=Granularity.ROW.value,
    show_default=True,
    help="What transactions lock: rows where their keys are known, or whole tables.",
)
@click.option("--spark/--no-spark", default=True, help="Evaluate in Spark, or in this process.")
@click.pass_context
def replay(
    context: click.Context,
    queries: tuple[Path, ...],
    documents: tuple[Path, ...],
    matches: Path | None,
    lateness: int,
    until: int | None,
    given: tuple[str, ...],
    parameters: Path | None,
    batch_size: int,
    engine: EngineName,
    shards: int,
    without: tuple[str, ...],
    scheduler: str,
    locks: str,
    spark: bool,
) -> None:
    """Run QUERIES (files, or directories of them) over recorded documents.

    Match lines are written in the order of (position, query, match id); a summary goes to
    standard error.  Documents without `arrival` arrive at the largest `time` so far.

    A query that goes over the budget of the settings is paused as in a running broker: its matches
    end there, the exit code is 4, and all other matches are there.

    \b
    Example:
      xscl replay examples/queries --documents docs.jsonl.gz --matches matches.jsonl
    """
    if shards > 1 and engine != DEFAULT_ENGINE:
        raise click.UsageError(
            f"--shards: the engine {engine!r} is for reference and is not spread;"
            " leave out one of --shards and --engine"
        )
    # Of dead letters the summary speaks: without a handler they would be printed here, too.
    logging.getLogger("broker.pipeline.steps").addHandler(logging.NullHandler())
    try:
        loaded = xscl.load(queries)
        assignments = read_assignments(parameters, loaded) if parameters else {}
        assignments |= _assigned(loaded, read_parameters(given))
        _say_unassigned(loaded, assignments)
        with ExitStack() as stack:
            out = stack.enter_context(_output(matches))
            bar = stack.enter_context(_Bar(documents))
            summary = run_replay(
                loaded,
                documents,
                out,
                lateness_us=lateness,
                assignments=assignments,
                engine=engine,
                budget=settings_of(context).budget,
                batch_documents=batch_size,
                shards=shards,
                spark=spark,
                until_us=LAST_US if until is None else until,
                without=[rule for rule in SWITCHED if rule.plain in without],
                schedule=Schedule(Scheduler(scheduler), Granularity(locks)),
                progress=bar.update,
            )
    except xscl.XsclError as error:
        message(str(error))
        raise SystemExit(EXIT_FAILED) from error
    except (ReplayError, RecordedError, JvmError, OSError) as error:
        raise Failure(str(error)) from error
    _summarise(summary)
    if not summary.documents and summary.refused + summary.dead_letters:
        raise Failure("no line of the documents could be read")
    if summary.pauses:
        raise SystemExit(EXIT_PAUSED)


def _assigned(
    queries: Sequence[xscl.Query], values: Mapping[str, object]
) -> dict[str, list[dict[str, Any]]]:
    """Return the assignments that single values make, for the queries that have all of theirs."""
    names = [{name for name, _ in query.parameters} for query in queries]
    if unknown := set(values).difference(*names):
        raise Failure(f"no query has a parameter {min(unknown)!r}", exit_code=2)
    return {
        query.id: [dict(xscl.assignment(query, {name: values[name] for name in own}))]
        for query, own in zip(queries, names, strict=True)
        if own and own <= values.keys()
    }


def _say_unassigned(queries: Sequence[xscl.Query], assignments: Mapping[str, object]) -> None:
    """Warn of queries that find nothing for want of parameters; end the verb if all are such."""
    idle = [query for query in queries if query.parameters and query.id not in assignments]
    for query in idle:
        wanted = wanted_parameters(dict(query.parameters))
        text = f"{query.id} has parameters, and finds nothing without them: give {wanted}"
        if len(idle) == len(queries):
            raise Failure(text, exit_code=2)
        message(f"warning: {text}")


class _Screen(io.TextIOWrapper):
    """A terminal that no text of a document steers."""

    def write(self, text: str) -> int:
        return super().write(printable(text))


class _Standard:
    """Standard output as a file that is flushed, not closed, at the end."""

    def __enter__(self) -> TextIO:
        self._screen = None
        if not sys.stdout.isatty():
            return sys.stdout
        self._screen = _Screen(sys.stdout.buffer, encoding=sys.stdout.encoding)
        return self._screen

    def __exit__(self, *exc: object) -> None:
        if self._screen is not None:
            self._screen.detach()
        sys.stdout.flush()


def _output(path: Path | None) -> TextIO | _Standard:
    return path.open("w", encoding="utf-8") if path is not None else _Standard()


class _Bar:
    """A progress bar on standard error, where that is a terminal."""

    def __init__(self, documents: tuple[Path, ...]) -> None:
        self._documents = documents
        self._progress: Progress | None = None

    def __enter__(self) -> _Bar:
        if sys.stderr.isatty():
            self._progress = Progress(
                TextColumn("{task.completed:>9,.0f} documents"),
                BarColumn(),
                TextColumn("{task.fields[matches]:,} matches"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
            )
            self._progress.start()
            self._task = self._progress.add_task("replay", total=None, matches=0)
            if all(path.is_file() for path in self._documents):  # a pipe is read once
                self._progress.update(self._task, total=count_lines(self._documents))
        return self

    def update(self, documents: int, matches: int) -> None:
        """Show how far the replay is."""
        if self._progress is not None:
            self._progress.update(self._task, completed=documents, matches=matches)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()


def _summarise(summary: ReplaySummary) -> None:
    for problem in summary.problems:
        message(f"warning: {problem}")
    unread = summary.refused + summary.dead_letters
    if unread > len(summary.problems):
        message(f"warning: and {unread - len(summary.problems)} more")
    for pause in summary.pauses:
        message(f"warning: {pause.query} was paused at document {pause.docid}: {pause.reason}")
    parts = [
        f"{summary.documents:,} document{'' if summary.documents == 1 else 's'}",
        f"{summary.matches:,} match{'' if summary.matches == 1 else 'es'}",
        f"{summary.seconds:.1f} s",
        f"{summary.documents_per_s:,.0f} documents/s",
    ]
    if summary.start_s:
        parts.append(f"Spark started in {summary.start_s:.1f} s")
    if summary.waves:
        parts.append(f"{summary.waves:,} wave{'' if summary.waves == 1 else 's'} of transactions")
    if summary.undecided:
        parts.append(f"{summary.undecided:,} undecided")
    if summary.duplicates:
        parts.append(f"{summary.duplicates:,} repeated")
    if summary.pauses:
        parts.append(f"{len(summary.pauses)} paused")
    if unread:
        parts.append(f"{unread:,} could not be read")
    message(", ".join(parts))
