"""For whom shards finish tuples: queries that have all of a match in one tuple's shard.

A query is one of them with all its classes, and a class with all who use it: then nothing that such
a query finds comes back as a tuple, and all that it is charged with in a batch comes at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, Protocol

from broker.matching.finishing.chunks import Chunks
from broker.matching.limits import MatchingLimits
from broker.matching.uses import Topic, Use
from templates.clause import Clause
from xscl.query import Query

__all__ = ["ClauseOf", "ReaderCatalog", "Readers", "SharedStore", "UseRow"]


class ClauseOf(NamedTuple):
    """A clause, and its query."""

    clause: Clause
    query: Query


class UseRow(NamedTuple):
    """A use, with the number of its clause."""

    clause: int
    query_class: int
    window_us: int
    kept_us: int
    point: int
    parameters: Mapping[str, Any]

    def use(self, of: ClauseOf) -> Use:
        """Return the use of a clause."""
        topic = Topic(of.query, self.parameters, self.point)
        return Use(self.query_class, of.clause, self.window_us, topic, self.kept_us)


@dataclass(frozen=True, slots=True, eq=False)
class Readers:
    """Uses of classes, with nothing that is known to the driver alone.

    Tuples of `classes` are finished.  The uses are in chunks that have names: `clauses` has
    `ClauseOf` by number, `uses` has `UseRow`.
    `bytes_max` are the bytes that the matches of one document may read and write.
    """

    classes: frozenset[int]
    clauses: Sequence[str]
    uses: Sequence[str]
    limits: MatchingLimits
    bytes_max: int


class SharedStore(Protocol):
    """Where all shards read."""

    def keep(self, value: object) -> str:
        """Keep a value for all shards; return its name."""

    def forget(self, names: Sequence[str]) -> None:
        """Forget values that no order names any more."""


class ReaderCatalog:
    """The uses of a fan-out, as far as shards are told of them; all together are `uses`."""

    def __init__(self, limits: MatchingLimits, bytes_max: int) -> None:
        self._limits = limits
        self._bytes_max = bytes_max
        self.uses = 0
        # Uses of which shards know nothing, by class, and how many uses of a class a query has.
        self._others: Counter[int] = Counter()
        self._of_query: dict[str, Counter[int]] = {}
        self._clauses: dict[Clause, tuple[int, ClauseOf]] = {}
        self._count: Counter[Clause] = Counter()
        self._numbers = count(1)
        self._clause_chunks = Chunks[Clause](limits.finished_clauses_chunk)
        self._use_chunks = Chunks[Use](limits.finished_uses_chunk)

    @property
    def clauses(self) -> int:
        """How many clauses shards are told of."""
        return len(self._clauses)

    def add(self, use: Use) -> None:
        """Hear of a use."""
        self.uses += 1
        self._of_query.setdefault(use.topic.query.id, Counter())[use.query_class] += 1
        if not _is_alone(use):
            self._others[use.query_class] += 1
            return
        clause = use.clause
        if not self._count[clause]:
            self._clauses[clause] = next(self._numbers), ClauseOf(clause, use.topic.query)
            self._clause_chunks.add(clause)
        self._count[clause] += 1
        self._use_chunks.add(use)

    def remove(self, use: Use) -> None:
        """Undo one `add`."""
        self.uses -= 1
        of_query = self._of_query[use.topic.query.id]
        _uncount(of_query, use.query_class)
        if not of_query:
            del self._of_query[use.topic.query.id]
        if not _is_alone(use):
            _uncount(self._others, use.query_class)
            return
        self._use_chunks.remove(use)
        if _uncount(self._count, use.clause):
            self._clause_chunks.remove(use.clause)
            del self._clauses[use.clause]

    def readers(self, store: SharedStore) -> Readers | None:
        """Return those for whom shards can finish; None where there are none.

        What they name is in the store then.
        """
        classes = self._finished()
        if not classes:
            return None
        numbered, rows = self._clause_chunks, self._use_chunks
        old = [
            *numbered.write(lambda clauses: store.keep(dict(self._clauses[c] for c in clauses))),
            *rows.write(lambda uses: store.keep([*map(self._row, uses)])),
        ]
        store.forget(old)
        return Readers(classes, numbered.names, rows.names, self._limits, self._bytes_max)

    @property
    def names(self) -> Sequence[str]:
        """The names of what has been kept."""
        return [*self._clause_chunks.names, *self._use_chunks.names]

    def _row(self, use: Use) -> UseRow:
        number, _ = self._clauses[use.clause]
        topic = use.topic
        given = use.query_class, use.window_us, use.kept_us
        return UseRow(number, *given, topic.registration_point, topic.parameters)

    def _finished(self) -> frozenset[int]:
        """Return the classes all whose users shards know, with all of their classes."""
        left_out = set(self._others)
        spread = [set(each) for each in self._of_query.values() if len(each) > 1]
        while more := [each for each in spread if each & left_out and not each <= left_out]:
            left_out.update(*more)
        classes = {use_class for of_query in self._of_query.values() for use_class in of_query}
        return frozenset(classes - left_out)


def _uncount(counter: Counter[Any], key: object) -> bool:
    """Count one less; return whether none is left."""
    counter[key] -= 1
    if counter[key]:
        return False
    del counter[key]
    return True


def _is_alone(use: Use) -> bool:
    """Return whether a match of a use is in tuples of its class, whatever else is found."""
    clause = use.clause
    return (
        clause.query_class.stratum == 0
        and not clause.stream
        and not clause.deciding
        and all(source.below is None for source in clause.sources)
        and _is_given_as_found(use.topic)
    )


def _is_given_as_found(topic: Topic) -> bool:
    query = topic.query
    is_plain = query.is_plain and not query.has_confidence and query.publish is None
    return is_plain and topic.alternatives == 1
