"""The matches in the outbox, as subscribers and the page look them up.

They are numbered (`seq`, from 1) in the order in which they were committed.  A *topic* is a query
under one assignment of its parameters.  `topic_match` has the matches of a topic by number, in a
table of its own, so that a batch writes those of one topic beside each other; those of assignments,
not of queries without parameters, are in an index by query as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from joins import UNBOUNDED

__all__ = ["CommittedMatch", "MatchLog"]

_COLUMNS = ("seq", "id", "query", "parameters", "position", "oldest", "line", "committed_us")
_MATCH = ", ".join(_COLUMNS)
_OF_TOPIC = (
    # In the order of the topic's matches, whatever SQLite thinks of how many there are.
    f"SELECT its.seq, {', '.join(f'match.{name}' for name in _COLUMNS[1:])}"
    " FROM topic_match AS its CROSS JOIN match ON match.seq = its.seq WHERE "
)


@dataclass(frozen=True, slots=True)
class CommittedMatch:
    """A match in the outbox: `line` is its match line, `oldest` its smallest docid."""

    seq: int
    id: str
    query: str
    parameters: str
    position: int
    oldest: int
    line: str
    committed_us: int


class MatchLog:
    """The matches of one outbox.  `rows` answers a statement, with values, with its rows."""

    def __init__(self, rows: Callable[..., list[tuple[Any, ...]]]) -> None:
        self._rows = rows

    def last_seq(self) -> int:
        """Return the number of the newest match; 0 before the first."""
        return int(self._row("SELECT coalesce(max(seq), 0) FROM match")[0])

    def find(
        self,
        after: int = 0,
        *,
        query: str | None = None,
        document: int | None = None,
        through: int | None = None,
        limit: int = 1_000,
    ) -> list[CommittedMatch]:
        """Return the matches numbered in (after, through], in order, at most `limit`.

        Of one query, or that one document is part of, where these are given.
        """
        conditions = ["match.seq > ?2 AND match.seq <= ?3"]
        if document is not None:
            # The numbers are in columns before the line: most lines are not read.
            conditions.append(
                "match.position >= ?4 AND match.oldest <= ?4 AND EXISTS (SELECT 1 FROM"
                " json_each(line, '$.documents') WHERE json_extract(value, '$.docid') = ?4)"
            )
        asked = _select(conditions, is_of_query=query is not None)
        through = UNBOUNDED if through is None else through
        return self._read(f"{asked} ORDER BY seq LIMIT ?5", query, after, through, document, limit)

    def of_topic(
        self,
        query: str,
        parameters: str,
        *,
        after: int = 0,
        through: int | None = None,
        point: int = 0,
        until: int | None = None,
        limit: int = 1_000,
    ) -> list[CommittedMatch]:
        """Return one query's matches under one assignment, numbered in (after, through].

        `point` and `until` are a subscription's: every docid of a match is in (point, until].
        """
        return self._read(
            f"{_OF_TOPIC}its.query = ? AND its.parameters = ? AND its.seq > ? AND its.seq <= ?"
            " AND its.oldest > ? AND its.position <= ? ORDER BY its.seq LIMIT ?",
            query,
            parameters,
            after,
            UNBOUNDED if through is None else through,
            point,
            UNBOUNDED if until is None else until,
            limit,
        )

    def numbered(self, seqs: Sequence[int]) -> list[CommittedMatch]:
        """Return the matches of these numbers that there are, in order."""
        return self._matches(
            "WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq", json.dumps(list(seqs))
        )

    def newest_of_topic(
        self, query: str, parameters: str, *, point: int = 0, until: int | None = None, limit: int
    ) -> list[CommittedMatch]:
        """Return one query's newest matches under one assignment, newest first, as `of_topic`."""
        return self._read(
            f"{_OF_TOPIC}its.query = ? AND its.parameters = ? AND its.oldest > ?"
            " AND its.position <= ? ORDER BY its.seq DESC LIMIT ?",
            query,
            parameters,
            point,
            UNBOUNDED if until is None else until,
            limit,
        )

    def newest(self, query: str | None = None, *, limit: int) -> list[CommittedMatch]:
        """Return the newest matches, of one query if it is named, newest first."""
        if query is None:
            return self._matches("ORDER BY seq DESC LIMIT ?", limit)
        asked = _select([], is_of_query=True)
        return self._read(f"{asked} ORDER BY seq DESC LIMIT ?2", query, limit)

    def head(self, query: str, parameters: str) -> int:
        """Return the number of the newest match of a query under an assignment, or 0."""
        row = self._row(
            "SELECT coalesce(max(seq), 0) FROM topic_match WHERE query = ? AND parameters = ?",
            query,
            parameters,
        )
        return int(row[0])

    def counts(self) -> dict[str, int]:
        """Return the number of matches of each query that has any."""
        return dict(self._rows("SELECT query, count(*) FROM topic_match GROUP BY query"))

    def count(self, query: str) -> int:
        """Return the number of matches of one query."""
        return int(self._row("SELECT count(*) FROM topic_match WHERE query = ?", query)[0])

    def topics(
        self, after: int, *, limit: int
    ) -> tuple[dict[tuple[str, str], tuple[int, int]], int]:
        """Return of each (query, parameters) among the next matches the newest one's number.

        With it comes the time at which the first was committed.  Looks at `limit` matches after
        `after` and returns the last number that it looked at too.
        """
        rows = self._rows(
            "SELECT query, parameters, seq, committed_us FROM match WHERE seq > ?"
            " ORDER BY seq LIMIT ?",
            after,
            limit,
        )
        heads: dict[tuple[str, str], tuple[int, int]] = {}
        for query, parameters, seq, committed_us in rows:
            _, first_us = heads.get((query, parameters), (0, committed_us))
            heads[query, parameters] = (seq, first_us)
        return heads, rows[-1][2] if rows else after

    def seq_since(self, committed_us: int) -> int:
        """Return the number behind which the matches committed since then are."""
        low, high = 0, self.last_seq()
        # The time grows with seq, if the clock does, and only seq has an index.
        while low < high:
            middle = (low + high) // 2
            rows = self._rows(
                "SELECT committed_us FROM match WHERE seq > ? ORDER BY seq LIMIT 1", middle
            )
            if rows and rows[0][0] < committed_us:
                low = middle + 1
            else:
                high = middle
        return low

    def topic_start(self, query: str, parameters: str, *, point: int = 0, position: int = 0) -> int:
        """Return the number behind which a topic's matches beyond `point`, at `position` on, are.

        Exact also where a query was registered to look back, and older documents match later.
        """
        # Read first: a match that comes in between must lie behind it.
        newest = self.last_seq()
        first = self._row(
            "SELECT min(seq) FROM topic_match WHERE query = ? AND parameters = ? AND oldest > ?"
            " AND position >= ?",
            query,
            parameters,
            point,
            position,
        )[0]
        return newest if first is None else int(first) - 1

    def _matches(self, condition: str, *values: object) -> list[CommittedMatch]:
        return self._read(f"SELECT {_MATCH} FROM match {condition}", *values)

    def _read(self, sql: str, *values: object) -> list[CommittedMatch]:
        return [CommittedMatch(*row) for row in self._rows(sql, *values)]

    def _row(self, sql: str, *values: object) -> tuple[Any, ...]:
        return self._rows(sql, *values)[0]


def _select(conditions: Sequence[str], *, is_of_query: bool) -> str:
    """Return a statement for the matches that meet conditions, of all queries or of one, `?1`.

    Those of one are taken from two places, each in the order of `seq`: nothing is sorted.
    """
    head = f"SELECT {_MATCH} FROM match WHERE "
    if not is_of_query:
        return head + " AND ".join(conditions)
    own = [each.replace("match.seq", "its.seq") for each in conditions]
    plain = _OF_TOPIC + " AND ".join(["its.query = ?1 AND its.parameters = '{}'", *own])
    assigned = head + " AND ".join(["query = ?1 AND parameters <> '{}'", *conditions])
    return f"{plain} UNION ALL {assigned}"
