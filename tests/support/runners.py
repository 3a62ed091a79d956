"""What runs a match case: the oracle, and every engine in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import oracle
from generators.strategies import random_case
from oracle.lines import read_lines, render

from broker.documents.document import Document
from broker.matching.costs.budget import Budget
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.matching.match import Match
from broker.matching.outcomes.kept import Note
from broker.matching.outcomes.learned import Learning
from broker.matching.stepresult import StepResult
from broker.tables.transactions import Schedule
from joins.engines import DEFAULT_ENGINE, ENGINES, EngineName, Processor
from support.budgets import UNLIMITED
from support.examples import is_searching
from support.kit import Case, parse_case

__all__ = [
    "DEFAULT_ENGINE",
    "ENGINES",
    "SOME_ENGINES",
    "EngineName",
    "case_with_joins",
    "engine_of",
    "lines",
    "run_engine",
    "run_oracle",
    "seed_with_joins",
]

T = TypeVar("T")

SOME_ENGINES: Sequence[EngineName] = (
    tuple(ENGINES) if is_searching() else ("sequential", DEFAULT_ENGINE)
)
"""The engine of a running broker, and one of those for reference; in a search all."""


def lines(matches: Iterable[Match]) -> list[str]:
    """Return matches as match lines."""
    return [render(match) for match in matches]


def run_oracle(case: Case) -> Sequence[Match]:
    """Return the matches that the oracle finds."""
    return oracle.matches(
        case.queries,
        oracle.number_documents(case.lines),
        lateness_us=case.lateness_us,
        assignments=case.assignments,
        registered=case.registered,
        learning=case.learning,
    )


def run_engine(
    case: Case,
    engine: EngineName = DEFAULT_ENGINE,
    *,
    batch_size: int | None = None,
    restart_after: int = 0,
    processors: Callable[[], Processor | None] = lambda: None,
    limits: MatchingLimits = DEFAULT_MATCHING_LIMITS,
    paused: dict[str, int] | None = None,
) -> list[Match]:
    """Return the matches that an engine finds, in the order of match lines.

    Documents go in by batches of `batch_size`, or all at once.  With `restart_after`, the engine
    is thrown away behind that document, and a new one absorbs what the first had processed.
    `processors` makes the join of each engine, where it is not the engine's own.  `paused` gets the
    document from which on a query found too much.
    """
    documents = oracle.number_documents(case.lines)
    batches = list(_batches(documents, batch_size or max(1, len(documents))))
    if restart_after:
        batches = [
            *_batches(documents[:restart_after], batch_size or restart_after),
            *_batches(documents[restart_after:], batch_size or len(documents)),
        ]
    running = engine_of(case, engine, processors(), limits)
    matches: list[Match] = []
    notes: list[Note] = []
    published: list[Document] = []
    read = 0
    for i, batch in enumerate(batches):
        if restart_after and read == restart_after:
            running = engine_of(case, engine, processors(), limits)
            for earlier in batches[:i]:
                docids = range(earlier[0].docid, earlier[-1].docid + 1)
                known = [each for each in published if each.docid in docids]
                running.absorb(running.evaluate(earlier), _look_up(documents), known)
            running.resume((), (), notes)
        step = running.process(running.evaluate(batch), _look_up(documents))
        matches += read_lines(step.matches)
        if paused is not None:
            paused |= {pause.query: pause.docid for pause in step.pauses}
        published += step.published
        notes = [each for each in (*notes, *step.notes) if _is_asked(each, step)]
        read += len(batch)
    return sorted(matches, key=lambda match: (match.position, match.query, match.id))


def _is_asked(note: Note, step: StepResult) -> bool:
    return step.notes_since_us is None or note.until_us >= step.notes_since_us


def _look_up(documents: Sequence[Document]) -> Callable[[Iterable[int]], Mapping[int, bytes]]:
    xml = {document.docid: document.xml for document in documents}
    return lambda docids: {docid: xml[docid] for docid in docids}


def engine_of(
    case: Case,
    engine: EngineName,
    processor: Processor | None = None,
    limits: MatchingLimits = DEFAULT_MATCHING_LIMITS,
    schedule: Schedule | None = None,
    budget: Budget = UNLIMITED,
) -> Engine:
    """Return an engine that runs the queries of a case."""
    registered = [
        RegisteredQuery(
            query,
            registration_point=case.registered.get(query.id, 0),
            assignments=tuple(case.assignments.get(query.id, ())),
        )
        for query in case.queries
    ]
    return Engine(
        registered,
        lateness_us=case.lateness_us,
        engine=engine,
        processor=processor,
        budget=budget,
        limits=limits,
        schedule=schedule,
        learning=Learning(*case.learning),
    )


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


_joining: list[int] = []
"""The first seeds whose cases have a match of two documents or more, as far as they were asked."""


def seed_with_joins(number: int) -> int:
    """Return a seed whose case has a match of two documents or more, by its number from 0.

    The oracle searches for them, so that tests ask when they run, not when they are collected.
    """
    while len(_joining) <= number:
        seed = _joining[-1] + 1 if _joining else 0
        while not _has_joins(seed):
            seed += 1
        _joining.append(seed)
    return _joining[number]


def case_with_joins(number: int) -> Case:
    """Return a case that has a match of two documents or more, by its number from 0."""
    return parse_case(random_case(seed_with_joins(number)))


def _has_joins(seed: int) -> bool:
    matches = run_oracle(parse_case(random_case(seed)))
    return any(len(match.documents) > 1 for match in matches)
