"""Runs queries under a budget, on documents of which most have the same language."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import xscl
from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.costs.budget import Budget, Pause, Spent
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.matching.mrules import MRule
from broker.matching.queries.registration import Assignment
from broker.pipeline.shards import Join
from joins.engines import EngineName
from joins.shards.limits import DEFAULT_SHARD_LIMITS, ShardLimits

__all__ = ["Running", "Way", "documents", "run", "stream"]

MINUTE_US = 60_000_000


def documents(count: int = 60, seed: int = 1) -> list[Document]:
    """Return documents of about a minute each, some of them late."""
    random_ = random.Random(seed)
    watermark_us, found = FIRST_WATERMARK_US, []
    for docid in range(1, count + 1):
        lang = "en" if random_.random() < 0.8 else "de"
        time_us = (docid + random_.randint(-3, 3)) * MINUTE_US
        xml = f"<i><lang>{lang}</lang><t>{random_.randrange(count)}</t></i>"
        found.append(
            Document(docid, "S", str(docid), time_us, time_us, time_us, watermark_us, xml.encode())
        )
        watermark_us = max(watermark_us, time_us)
    return found


def stream(bodies: Sequence[str]) -> list[Document]:
    """Return documents of a minute each."""
    found, watermark_us = [], FIRST_WATERMARK_US
    for docid, body in enumerate(bodies, 1):
        time_us, xml = docid * MINUTE_US, f"<i>{body}</i>".encode()
        found.append(Document(docid, "S", str(docid), time_us, time_us, time_us, watermark_us, xml))
        watermark_us = time_us
    return found


@dataclass(frozen=True)
class Way:
    """How documents are joined."""

    engine: EngineName = "signatures"
    shards: int = 1
    limits: MatchingLimits = DEFAULT_MATCHING_LIMITS
    shard_limits: ShardLimits = DEFAULT_SHARD_LIMITS
    without: tuple[MRule, ...] = ()

    def __str__(self) -> str:
        return f"{self.engine}/{self.shards}"


class Running:
    """An engine, and what it has found; queries that are paused stay so when it is restarted."""

    def __init__(
        self,
        texts: Mapping[str, str],
        budget: Budget,
        way: Way = Way(),
        points: Mapping[str, int] | None = None,
        given: Mapping[str, Sequence[Assignment]] | None = None,
    ) -> None:
        self._queries = [
            RegisteredQuery(xscl.parse(text, id=name)[0], (points or {}).get(name, 0))
            for name, text in texts.items()
        ]
        self._queries = [
            replace(each, assignments=tuple((given or {}).get(each.query.id, each.assignments)))
            for each in self._queries
        ]
        self._budget = budget
        self._way = way
        self.lines: list[tuple[str, int, str]] = []
        self.pauses: list[Pause] = []
        self.spent: list[Spent] = []
        self.engine = self._engine()

    def _engine(self) -> Engine:
        paused = {pause.query for pause in self.pauses}
        way = self._way
        join = Join(0, way.shards, self._budget.pairs_max, way.shard_limits)
        return Engine(
            [each for each in self._queries if each.query.id not in paused],
            lateness_us=0,
            engine=way.engine,
            budget=self._budget,
            processor=join.processor(None),
            limits=way.limits,
            without=way.without,
        )

    def feed(self, stream: Sequence[Document], batch: int, after: int = 0) -> Running:
        """Process documents behind some that have been, by batches."""
        xml = {one.docid: one.xml for one in stream}
        for start in range(after, len(stream), batch):
            step = self.engine.process(
                self.engine.evaluate(stream[start : start + batch]),
                lambda docids: {docid: xml[docid] for docid in docids},
            )
            self.lines += [(m.query, m.position, m.line) for m in step.matches]
            self.pauses += step.pauses
            self.spent = step.spent
        return self

    def restart(self, stream: Sequence[Document]) -> Running:
        """Go on with another engine, which absorbs what has been processed."""
        xml = {one.docid: one.xml for one in stream}
        self.engine = self._engine()
        self.engine.absorb(self.engine.evaluate(stream), lambda ids: {i: xml[i] for i in ids})
        self.engine.resume(self.spent)
        return self

    def of(self, query: str, before: int = 1 << 62) -> list[str]:
        """Return the matches of a query before a document."""
        return [line for name, docid, line in self.lines if name == query and docid < before]

    def counts(self, query: str) -> dict[int, int]:
        """Return how many matches of a query each document has."""
        docids = [docid for name, docid, _ in self.lines if name == query]
        return {docid: docids.count(docid) for docid in docids}


def run(
    texts: Mapping[str, str],
    budget: Budget,
    stream: Sequence[Document],
    batch: int = 60,
    way: Way = Way(),
) -> Running:
    """Return what queries find in documents."""
    return Running(texts, budget, way).feed(stream, batch)
