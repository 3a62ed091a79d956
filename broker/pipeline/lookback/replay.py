"""Run queries over recorded documents, through the pipeline that a live broker has.

    fill      document lines, plain or gzip -> a temporary spool, in segments of one batch
    step      the pipeline, fed by Spark or in this process
    write     match lines, sorted by (position, query, match id)

A batch's matches all have their positions in the batch, so sorting each batch sorts the whole.

Invariants: the clock is never read; the output does not depend on the batch size, on the number of
shards, nor on whether Spark evaluates.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import xscl
from broker.documents.document import LAST_US, tick
from broker.documents.recorded import ReadLine
from broker.matching.costs.budget import DEFAULT_BUDGET, Budget
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.mrules import MRule, point_of
from broker.pipeline.joinstate import JoinEngine
from broker.pipeline.lookback.filling import Recording, fill
from broker.pipeline.lookback.fillingprocess import FillingProcess
from broker.pipeline.lookback.replayrun import Progress, ReplayRun, ReplaySummary
from broker.pipeline.shards import Join, Tasks
from broker.pipeline.store.objects import StorePlace
from broker.tables.transactions import Schedule
from joins import DEFAULT_ENGINE, EngineName
from xscl.query import Query
from xscl.table import Table

if TYPE_CHECKING:
    from broker.pipeline.spark import Spark

__all__ = [
    "BATCH_DOCUMENTS",
    "LATENESS_US",
    "ReplayError",
    "ReplaySummary",
    "read_assignments",
    "replay",
    "replay_documents",
]

BATCH_DOCUMENTS = 40_000
"""Documents in a batch: a Spark batch costs 0.2 s of processor time however small it is."""

_WAIT_S = 0.05

LATENESS_US = 24 * 3600 * 1_000_000
"""How late a document may come and still find every partner (semantics, section 1.1)."""


class ReplayError(ValueError):
    """A row of parameters is none.  Its author can act on it."""


def replay(
    queries: Sequence[Query],
    documents: Iterable[Path],
    matches: TextIO,
    *,
    lateness_us: int = LATENESS_US,
    assignments: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    engine: EngineName = DEFAULT_ENGINE,
    budget: Budget = DEFAULT_BUDGET,
    batch_documents: int = BATCH_DOCUMENTS,
    shards: int = 1,
    spark: bool = True,
    session: Spark | None = None,
    until_us: int = LAST_US,
    without: Collection[MRule] = (),
    schedule: Schedule | None = None,
    progress: Progress = lambda documents, matches: None,
) -> ReplaySummary:
    """Run queries over files of document lines and write their match lines.

    `assignments` are the canonical parameter values of each parameterised query, by its id.  Only
    the default engine keeps to the budget of pairs and is spread over `shards`.  Where a query is
    ordered, the clock ticks at `until_us` when all has been read: by default later than everything.
    Queries share nothing by the m-rules of `without`; `schedule` is that of transactions.
    """
    assert shards == 1 or engine == DEFAULT_ENGINE
    by_query = assignments or {}
    registered = [
        RegisteredQuery(
            query,
            registration_point=point_of(number, without),
            assignments=tuple(by_query.get(query.id, ())),
        )
        for number, query in enumerate(queries)
    ]
    sessions: list[Spark] = []

    def make_engine(directory: Path) -> Engine:
        join = Join(lateness_us, shards, budget.pairs_max, spool=directory / "spool")
        tasks = Tasks(lambda some: sessions[0].run_tasks(some), StorePlace.of(directory / "shards"))
        processor = join.processor(tasks if spark else None)
        return Engine(
            registered,
            lateness_us=lateness_us,
            engine=engine,
            budget=budget,
            processor=processor,
            without=without,
            schedule=schedule,
        )

    return replay_documents(
        documents,
        make_engine,
        matches,
        closed_streams=[query.publish for query in queries if query.publish is not None],
        tables=[query.table for query in queries if query.table is not None],
        batch_documents=batch_documents,
        spark=spark,
        session=session,
        on_session=sessions.append,
        last=[("", tick(until_us))] if any(query.is_ordered for query in queries) else [],
        progress=progress,
    )


def read_assignments(path: Path, queries: Sequence[Query]) -> dict[str, list[dict[str, Any]]]:
    """Return the canonical assignments of a file of parameter rows, by query id.

    Raises `ReplayError` with the line for a row that is not one, or whose query is not there, and
    `xscl.XsclError` for values that do not fit their query.
    """
    by_id = {query.id: query for query in queries}
    assignments: dict[str, list[dict[str, Any]]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ReplayError(f"{path}:{number}: not a line of JSON: {error}") from error
        match row:
            case {"query": str(name), "parameters": dict(values)} if name in by_id:
                found = xscl.assignment(by_id[name], values)
                assignments.setdefault(name, []).append(found)
            case {"query": str(name), "parameters": dict()}:
                raise ReplayError(f"{path}:{number}: there is no query `{name}` here")
            case _:
                form = '{"query": "Q", "parameters": {"name": value, ...}}'
                raise ReplayError(f"{path}:{number}: a row of parameters is {form}")
    return assignments


def replay_documents(
    documents: Iterable[Path],
    make_engine: Callable[[Path], JoinEngine],
    matches: TextIO,
    *,
    closed_streams: Sequence[str] = (),
    tables: Sequence[Table] = (),
    batch_documents: int = BATCH_DOCUMENTS,
    spark: bool = True,
    session: Spark | None = None,
    on_session: Callable[[Spark], None] = lambda session: None,
    last: Sequence[ReadLine] = (),
    progress: Progress = lambda documents, matches: None,
) -> ReplaySummary:
    """Run an engine over files of document lines, then the `last` ones, and write its match lines.

    `make_engine` gets the replay's directory, which is deleted at the end.  With Spark, a session
    is started for the replay unless one is given; `on_session` hears of it before the first batch.
    """
    with tempfile.TemporaryDirectory(
        prefix="xscl-replay-", ignore_cleanup_errors=True
    ) as directory:
        run = ReplayRun(Path(directory), make_engine, matches, progress)
        recording = Recording(
            run.spool,
            tuple(documents),
            last=tuple(last),
            closed_streams=tuple(closed_streams),
            tables=tuple(tables),
            group_documents=batch_documents,
        )
        if spark:
            _run_in_spark(run, recording, session, on_session)
        else:
            _run_in_process(run, recording)
        run.summary.undecided = run.pipeline.join_figures.get("undecided", 0)
        return run.summary


def _run_in_process(run: ReplayRun, recording: Recording) -> None:
    started = time.perf_counter()
    for filled in fill(recording):
        run.take(filled)
        for _ in run.pipeline.drain(batch_documents_max=recording.group_documents):
            pass
    run.summary.seconds = time.perf_counter() - started


def _run_in_spark(
    run: ReplayRun,
    recording: Recording,
    session: Spark | None,
    on_session: Callable[[Spark], None],
) -> None:
    from broker.pipeline.spark import Spark, StreamSource  # a replay without Spark needs no Java

    with ExitStack() as stack:
        started = time.perf_counter()
        filling = FillingProcess(recording, run.take)
        filling.start()
        stack.callback(filling.stop)
        if session is None:
            session = Spark.start(run.directory / "logs", is_brief=True)
            stack.callback(session.stop)
        on_session(session)
        source = StreamSource(
            spool=run.spool,
            plans=run.plans.directory,
            through=0,
            batch_documents_max=recording.group_documents,
        )
        query = session.stream(source, run.step, checkpoint=run.directory / "checkpoint")
        stack.callback(query.stop)
        while filling.is_reading or run.pipeline.through < run.through:
            query.check()
            run.wait(_WAIT_S)
        ended = time.perf_counter()
        run.summary.start_s = (run.first_step or ended) - started
        run.summary.seconds = ended - (run.first_step or ended)
        filling.finish()
