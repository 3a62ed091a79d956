"""What statements have from batch to batch of their decided matches.

They have what was given and learned, the matches that a row may still take, and graphs that grow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from broker.matching.outcomes.asking import Asking
from broker.matching.outcomes.gathered import MatchSource
from broker.matching.outcomes.graphs import GraphSource
from broker.matching.outcomes.held import HeldMatches
from broker.matching.outcomes.kept import Note, Notes
from broker.matching.outcomes.learned import Learned, Learning
from broker.matching.outcomes.rows import RowSource
from broker.matching.queries.member import SourceTopics
from broker.matching.queries.queryset import QuerySet
from broker.matching.uses import Topic

__all__ = ["Outcomes"]


class _KnownAsking(NamedTuple):
    """Who asks for the rows of a source, as of so many changes."""

    asked: SourceTopics
    changes: int
    asking: Asking


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
        self._asking: dict[MatchSource, _KnownAsking] = {}
        self._graphs: dict[MatchSource, GraphSource] = {}

    def rows_of(self, source: MatchSource) -> RowSource:
        """Return the matches of a source that rows are made of."""
        return self._sources.setdefault(source, RowSource(self.lateness_us))

    def graphs_of(self, source: MatchSource, topic: Topic) -> GraphSource:
        """Return the graphs of a source, which has the matches of a topic."""
        own = self._graphs.get(source)
        if own is None:
            own = self._graphs[source] = GraphSource(topic, self.lateness_us)
        return own

    def asking_of(self, source: MatchSource) -> Asking | None:
        """Return who asks for the rows of a source, None where nobody does."""
        own = self.queries.askers(source.query, source.name)
        if own is None:
            return None
        known = self._asking.get(source)
        if known is None or known.asked is not own or known.changes != own.changes:
            known = _KnownAsking(own, own.changes, Asking([*own.topics.values()]))
            self._asking[source] = known
        return known.asking

    def topic_of(self, source: MatchSource) -> Topic | None:
        """Return the topic that asks for the graphs of a source, None where it is gone."""
        own = self.queries.askers(source.query, source.name)
        return None if own is None else next(iter(own.topics.values()))

    def restore(self, notes: Iterable[Note]) -> None:
        """Take notes as they were committed, in their order."""
        known = list(notes)
        self.notes.restore(known)
        self.learned.restore(known)
        self.held = HeldMatches()
        self.held.restore(known)
        for source, own in list(self._sources.items()):
            query = self.queries.get(source.query)
            asking = self.asking_of(source)
            if query is not None and asking is not None and query.guards_of_matches:
                kept = self.held.holding(own.all_matches(), self.queries.stated_at(query.id))
                self._sources[source] = RowSource(self.lateness_us)
                deque(self._sources[source].take(kept, asking, is_known=True), 0)

    def forget(self, watermark_us: int) -> None:
        """Forget what nothing can be in one row with any more, and what is not asked for."""
        since_us = watermark_us - self.lateness_us
        self.notes.forget(since_us, self.queries.is_stated)
        self.learned.forget(self.queries.is_stated)
        if self.held is not None:
            self.held.forget(since_us, self.queries.is_stated)
        for source, own in list(self._sources.items()):
            asking = self.asking_of(source)
            if asking is None:
                del self._sources[source]
                self._asking.pop(source, None)
            else:
                own.forget(watermark_us, asking.longest_us)
        for source, given in list(self._graphs.items()):
            if self.topic_of(source) is None:
                del self._graphs[source]
            else:
                given.forget(since_us)
