"""What the broker has been asked for: queries with their history, and who subscribes to them.

A query's row is never changed.  Each change - a new version, a pause, a removal - adds a row
under the next revision, so that the registry can be read as it was at any revision: a segment
of the spool names the revision that its documents are evaluated with.

Subscriptions and suppressed addresses are in the same file, each behind a class of its own; what
is here of them is where they meet queries: an assignment that somebody new subscribes to may have
to look back.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from broker.matching.costs.budget import Pause
from broker.matching.match import parameters_key
from broker.registry.file import RegistryError, RegistryFile
from broker.registry.subscription import (
    Destination,
    Options,
    Subscription,
    SubscriptionState,
)
from broker.registry.subscriptions import Subscriptions
from broker.registry.suppression import SuppressionList
from joins import UNBOUNDED

__all__ = ["Backfill", "QueryState", "RegisteredText", "Registry"]

_log = logging.getLogger(__name__)

_SOURCES = "SELECT query, version, text FROM source"

_QUERY = "id, version, text, state, point, effective, reason, changed_us"


@dataclass(frozen=True, slots=True)
class Backfill:
    """A registration that looks back: documents in (point, through] have yet to be matched.

    `revision` is that of the statement of the query that looks back, whatever has become of it
    since.  `parameters` is the key of one assignment; a query without parameters has the empty
    one's.
    """

    revision: int
    query: str
    parameters: str
    point: int
    through: int


class QueryState(StrEnum):
    """Whether a query is evaluated."""

    ACTIVE = "active"
    PAUSED = "paused"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class RegisteredText:
    """One state of a query.  It sees documents with docids above `point`.

    The state holds from the document after `effective`, the newest accepted when it was made.
    """

    id: str
    version: str
    text: str
    state: QueryState
    point: int
    effective: int
    reason: str
    changed_us: int
    revision: int

    @property
    def states(self) -> tuple[str, str, int]:
        """What it states, active or not."""
        return self.version, self.text, self.point


class Registry:
    """The registry in one SQLite file.  Safe for several threads and several processes."""

    def __init__(self, path: Path | str, *, now_us: Callable[[], int] | None = None) -> None:
        self._file = RegistryFile(path, now_us)
        self.subscriptions = Subscriptions(self._file)
        self.suppressed = SuppressionList(self._file)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def revision(self) -> int:
        """Return the number of the last change; 0 before the first."""
        return self._file.revision()

    def key(self, name: str) -> bytes:
        """Return this broker's secret key of that name, made when it is first asked for."""
        return self._file.key(name)

    # A registration point comes from the caller: only who numbers documents knows the newest.

    def register(
        self, query_id: str, text: str, *, version: str, point: int, since: int | None = None
    ) -> RegisteredText:
        """Add a query, or a new version of one.

        It sees documents above `point`, the newest one, or, looking back, above `since`.  The very
        same version and text changes nothing, unless it looks further back than before; one that is
        paused stays so, until it is resumed.
        """
        since = point if since is None else since
        with self._file.change() as revision:
            present = self._present(query_id)
            if present and (present.version, present.text) == (version, text):
                is_there = present.state is QueryState.ACTIVE and since >= present.point
                if is_there or present.state is QueryState.PAUSED:
                    return present
            if since < point:
                self._look_back(query_id, revision, since, point)
            row = (version, text, QueryState.ACTIVE, since, point, "")
            stated = self._append(query_id, revision, row)
        _say(stated)
        return stated

    def keep_source(self, query_id: str, version: str, source: str) -> None:
        """Keep a query's text as its author wrote it, with comments; not part of its history."""
        with self._file.write() as db:
            db.execute(
                "INSERT INTO source VALUES (?1, ?2, ?3)"
                " ON CONFLICT DO UPDATE SET version = ?2, text = ?3",
                (query_id, version, source),
            )

    def source(self, query: RegisteredText) -> str:
        """Return a query's text as its author wrote it last, its canonical text if none is kept."""
        rows = self._file.rows(
            "SELECT text FROM source WHERE query = ? AND version = ?", query.id, query.version
        )
        return str(rows[0][0]) if rows else query.text

    def sources(self, queries: Iterable[RegisteredText]) -> dict[str, str]:
        """Return the same of each of these queries, by id."""
        kept = {(name, version): text for name, version, text in self._file.rows(_SOURCES)}
        return {each.id: kept.get((each.id, each.version), each.text) for each in queries}

    def _look_back(self, query_id: str, revision: int, since: int, point: int) -> None:
        # Those who subscribe may have given the parameters of another text, and this one has none.
        self._add_backfill(Backfill(revision, query_id, parameters_key({}), since, point))
        for parameters, first in self.subscriptions.assignments(query_id):
            if parameters != parameters_key({}) and first < point:
                begin = max(since, first)
                self._add_backfill(Backfill(revision, query_id, parameters, begin, point))

    def _add_backfill(self, backfill: Backfill) -> None:
        self._file.db.execute(
            "INSERT INTO backfill VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", astuple(backfill)
        )

    def backfills(self) -> list[Backfill]:
        """Return the registrations that look back and wait for it, oldest statement first."""
        rows = self._file.rows("SELECT * FROM backfill ORDER BY revision, query, parameters, point")
        return [Backfill(*row) for row in rows]

    def finish_backfills(self, backfills: Iterable[Backfill]) -> None:
        """Take backfills away."""
        with self._file.write() as db:
            db.executemany(
                "DELETE FROM backfill WHERE (revision, query, parameters, point, through)"
                " = (?, ?, ?, ?, ?)",
                [astuple(each) for each in backfills],
            )

    def set_state(
        self, query_id: str, state: QueryState, *, effective: int, reason: str = ""
    ) -> RegisteredText:
        """Pause, resume or remove a query from the document after `effective` on.

        With a query that is removed its subscriptions end (`Subscriptions`).
        """
        with self._file.change() as revision:
            present = self._present(query_id)
            if present is None or present.state is QueryState.REMOVED:
                raise RegistryError(f"no query {query_id!r}")
            row = (present.version, present.text, state, present.point, effective, reason)
            stated = self._append(query_id, revision, row)
        _say(stated)
        return stated

    def pause(self, pauses: Iterable[Pause]) -> list[RegisteredText]:
        """Pause queries that went over their budget, and return the ones that were not yet.

        One that has been stated anew since, paused or removed, is left as it is.
        """
        paused = []
        for pause in pauses:
            if self._states(pause):
                with self._file.change() as revision:
                    # Another process may have changed it meanwhile.
                    if present := self._states(pause):
                        stated = (present.version, present.text, QueryState.PAUSED, present.point)
                        row = (*stated, pause.docid - 1, pause.reason)
                        paused.append(self._append(pause.query, revision, row))
        for each in paused:
            _say(each)
        return paused

    def _states(self, pause: Pause) -> RegisteredText | None:
        present = self._present(pause.query)
        return present if present and present.revision == pause.revision else None

    def queries(
        self, *, states: Iterable[QueryState] = (QueryState.ACTIVE,), as_of: int | None = None
    ) -> list[RegisteredText]:
        """Return the queries in any of the states, by id, as they were at revision `as_of`."""
        wanted = set(states)
        rows = self._file.rows(
            f"SELECT {_QUERY}, max(revision) FROM query WHERE revision <= ? GROUP BY id",
            UNBOUNDED if as_of is None else as_of,
        )
        return [query for query in map(_registered, rows) if query.state in wanted]

    def state_counts(self) -> dict[QueryState, int]:
        """Return how many queries are in each state that some are in."""
        rows = self._file.rows(
            "SELECT state, count(*) FROM (SELECT state, max(revision) FROM query GROUP BY id)"
            " GROUP BY state"
        )
        return {QueryState(state): count for state, count in rows}

    def changed_queries(
        self, before: int, version: int
    ) -> tuple[list[RegisteredText], frozenset[str]]:
        """Return what leads from the active queries of one revision to those of another.

        That is the queries with a change between the two, as they are at `version`, and the ids of
        what is not active then.
        """
        low, high = sorted((before, version))
        rows = self._file.rows(
            f"SELECT {_QUERY}, max(revision) FROM query WHERE revision <= ?3 AND id IN"
            " (SELECT id FROM query WHERE revision > ?1 AND revision <= ?2) GROUP BY id",
            *(low, high, version),
        )
        changed = self._file.rows(
            "SELECT DISTINCT id FROM query WHERE revision > ? AND revision <= ?", low, high
        )
        active = [q for q in map(_registered, rows) if q.state is QueryState.ACTIVE]
        return active, frozenset(id_ for (id_,) in changed) - {query.id for query in active}

    def query(self, query_id: str, *, as_of: int | None = None) -> RegisteredText:
        """Return a query as it is, or was at a revision; raise `RegistryError` if it never was."""
        present = self._present(query_id, as_of)
        if present is None:
            raise RegistryError(f"no query {query_id!r}")
        return present

    def paused_through(self, text: RegisteredText) -> int:
        """Return the last document of the pause that a state of a query ended; 0 if it ended none.

        Stated anew, a query looks back behind a pause if it is asked to.
        """
        rows = self._file.rows(
            f"SELECT {_QUERY}, revision FROM query WHERE id = ? AND revision < ?"
            " ORDER BY revision DESC LIMIT 1",
            text.id,
            text.revision,
        )
        before = _registered(rows[0]) if rows else None
        is_resumed = before is not None and before.state is QueryState.PAUSED
        return text.effective if is_resumed and text.point < text.effective else 0

    def stated_at(self, text: RegisteredText) -> int:
        """Return the revision at which a query was stated as it is; pauses do not state it anew."""
        stated = text
        for row in self._file.rows(
            f"SELECT {_QUERY}, revision FROM query WHERE id = ? AND revision < ?"
            " ORDER BY revision DESC",
            text.id,
            text.revision,
        ):
            before = _registered(row)
            is_same = before.states == stated.states
            if not is_same or QueryState.PAUSED not in (before.state, stated.state):
                break
            stated = before
        return stated.revision

    def history(self, query_id: str) -> list[RegisteredText]:
        """Return every state that a query has had, oldest first."""
        rows = self._file.rows(
            f"SELECT {_QUERY}, revision FROM query WHERE id = ? ORDER BY revision", query_id
        )
        return [_registered(row) for row in rows]

    def subscribe(
        self,
        query_id: str,
        destination: Destination,
        *,
        point: int,
        since: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        options: Options | None = None,
        state: SubscriptionState = SubscriptionState.ACTIVE,
    ) -> Subscription:
        """Add a subscription and return it, with its signing key if it is a webhook.

        It gets matches of documents above `point`, the newest one, or, looking back, above
        `since`, but not above the query's own point.  Where another one with its parameters sees as
        much already, there is nothing to look for.
        """
        newest = point
        if since is not None:
            query = self.query(query_id)
            point = min(max(since, query.point), newest)
        made = Subscription(
            id="sub_" + secrets.token_hex(10),
            query=query_id,
            parameters=parameters_key(parameters or {}),
            destination=destination,
            point=point,
            state=state,
            options=(options or Options()).checked(destination.kind),
        )
        with self._file.change() as revision:
            if since is not None and self.must_look_back(query_id, parameters or {}, point, newest):
                asked = Backfill(query.revision, query_id, made.parameters, point, newest)
                self._add_backfill(asked)
            self.subscriptions.insert(made, revision)
        return self.subscriptions.get(made.id)

    def must_look_back(
        self, query_id: str, parameters: Mapping[str, Any], point: int, newest: int
    ) -> bool:
        """Return whether nobody sees yet what a subscription is to see of (point, newest]."""
        if not parameters or point >= newest:
            return False
        seen = self.subscriptions.first_point(query_id, parameters_key(parameters))
        return seen is None or seen > point

    def _present(self, query_id: str, as_of: int | None = None) -> RegisteredText | None:
        rows = self._file.rows(
            f"SELECT {_QUERY}, revision FROM query WHERE id = ? AND revision <= ?"
            " ORDER BY revision DESC LIMIT 1",
            query_id,
            UNBOUNDED if as_of is None else as_of,
        )
        return _registered(rows[0]) if rows else None

    def _append(self, query_id: str, revision: int, row: tuple[Any, ...]) -> RegisteredText:
        now_us = self._file.now_us()
        self._file.db.execute(
            f"INSERT INTO query ({_QUERY}, revision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (query_id, *row, now_us, revision),
        )
        return _registered((query_id, *row, now_us, revision))


def _say(stated: RegisteredText) -> None:
    """Log a change of a query; to be said once it is on the disk."""
    _log.info(
        "the query is %s from document %d on",
        stated.state.value,
        stated.effective + 1,
        extra={"stage": "registry", "query": stated.id, "version": stated.version},
    )


def _registered(row: tuple[Any, ...]) -> RegisteredText:
    query_id, version, text, state, *rest = row
    return RegisteredText(query_id, version, text, QueryState(state), *rest)
