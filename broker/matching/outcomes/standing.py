"""What statements have from batch to batch of their decided matches.

They have what was given and learned, the matches that a row may still take, and graphs that grow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from broker.matching.outcomes.gathered import MatchSource, source_of
from broker.matching.outcomes.graphs import GraphSource
from broker.matching.outcomes.held import HeldMatches
from broker.matching.outcomes.kept import Note, Notes
from broker.matching.outcomes.learned import Learned, Learning
from broker.matching.outcomes.rows import Asking, RowSource
from broker.matching.queries.queryset import QuerySet
from broker.matching.uses import Topic
from xscl.query import Query

__all__ = ["Outcomes"]


class _TopicsBySource(NamedTuple):
    """The topics of a query by their source, in a version of them."""

    version: tuple[int, int]
    topics: dict[MatchSource, list[Topic]]


class Outcomes:
    """What the statements of a set have made of their matches, as far as it counts further.

    `held` is None until notes have been taken: of matches that are known all are taken till then.
    """

    def __init__(self, queries: QuerySet, lateness_us: int, learning: Learning) -> None:
        self.queries = queries
        self.lateness_us = lateness_us
        self.notes = Notes()
        self.learned = Learned(learning)
        self.held: HeldMatches | None = None
        self._sources: dict[MatchSource, RowSource] = {}
        self._asking: dict[MatchSource, Asking] = {}
        self._graphs: dict[MatchSource, GraphSource] = {}
        self._by_source: dict[str, _TopicsBySource] = {}

    def rows_of(self, source: MatchSource) -> RowSource:
        """Return the matches of a source that rows are made of."""
        return self._sources.setdefault(source, RowSource(self.lateness_us))

    def graphs_of(self, source: MatchSource, topic: Topic) -> GraphSource:
        """Return the graphs of a source, which has the matches of a topic."""
        own = self._graphs.get(source)
        if own is None:
            own = self._graphs[source] = GraphSource(topic)
        return own

    def by_source(self, query: Query) -> dict[MatchSource, list[Topic]]:
        """Return the topics of a query by their source; forget topics that nobody has."""
        version = self.queries.topics_version(query.id)
        known = self._by_source.get(query.id)
        if known is not None and known.version == version:
            return known.topics
        found: dict[MatchSource, list[Topic]] = {}
        for each in self.queries.topics(query.id):
            found.setdefault(source_of(each), []).append(each)
        for source in [s for s in self._sources if s.query == query.id and s not in found]:
            del self._sources[source], self._asking[source]
        for source in [s for s in self._graphs if s.query == query.id and s not in found]:
            del self._graphs[source]
        self._by_source[query.id] = _TopicsBySource(version, found)
        return found

    def asking_of(self, source: MatchSource, topics: Sequence[Topic]) -> Asking:
        """Return who asks for the rows of a source."""
        asking = self._asking.get(source)
        if asking is None or not _are_same(asking.topics, topics):
            asking = self._asking[source] = Asking(topics)
        return asking

    def restore(self, notes: Iterable[Note]) -> None:
        """Take notes as they were committed, in their order."""
        known = list(notes)
        self.notes.restore(known)
        self.learned.restore(known)
        self.held = HeldMatches()
        self.held.restore(known)
        for source, own in list(self._sources.items()):
            query = self.queries.get(source.query)
            if query is not None and query.guards_of_matches:
                kept = self.held.holding(own.all_matches(), self.queries.revision(query.id))
                self._sources[source] = RowSource(self.lateness_us)
                deque(self._sources[source].take(kept, self._asking[source], is_known=True), 0)

    def forget(self, watermark_us: int) -> None:
        """Forget what nothing can be in one row with any more, and what is not asked for."""
        since_us = watermark_us - self.lateness_us
        self._by_source = {q: each for q, each in self._by_source.items() if self.queries.get(q)}
        self.notes.forget(since_us, self.queries.revision_of)
        self.learned.forget(self.queries.revision_of)
        if self.held is not None:
            self.held.forget(since_us, self.queries.revision_of)
        for source, own in list(self._sources.items()):
            if self.queries.get(source.query) is None:
                del self._sources[source], self._asking[source]
            else:
                own.forget(watermark_us, self._asking[source].longest_us)
        for source, given in list(self._graphs.items()):
            if self.queries.get(source.query) is None:
                del self._graphs[source]
            else:
                given.forget(since_us - self.queries.topic_retention_us(given.topic))


def _are_same(some: Sequence[Topic], others: Sequence[Topic]) -> bool:
    if some is others:
        return True
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))
