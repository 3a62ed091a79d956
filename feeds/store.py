"""Feeds, their schedule, their validators and the entries seen, in one SQLite file.

One check of a feed ends in one transaction: its state (validators included) together with the
keys of the entries that it brought.  It is committed only after the sink has accepted every new
item, so a crash in between refetches and loses nothing.

Invariant: the stored validators never describe a feed document with an entry that neither the
sink nor the `seen` table knows.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from feeds.feed import Feed, FeedOptions, Secrets
from feeds.state import FeedState, parse_state, render_state

__all__ = ["FeedStore", "Memory", "Seen", "Subscribed", "UnknownFeedError"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS feed (
    id INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    stream TEXT NOT NULL,
    options TEXT NOT NULL,
    secrets TEXT NOT NULL,
    state TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS seen (
    feed INTEGER NOT NULL REFERENCES feed (id) ON DELETE CASCADE,
    key BLOB NOT NULL,
    content BLOB NOT NULL,
    revision INTEGER NOT NULL,
    last_day INTEGER NOT NULL,
    PRIMARY KEY (feed, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pause (
    domain TEXT PRIMARY KEY,
    until_us INTEGER NOT NULL,
    why TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS push (
    feed INTEGER PRIMARY KEY REFERENCES feed (id) ON DELETE CASCADE,
    token TEXT NOT NULL UNIQUE,
    lease TEXT NOT NULL
);
"""
_DAY_US = 86_400_000_000
_VALUES_MAX = 150
T = TypeVar("T")
SEEN_DAYS = 400
"""How long the key of an entry that has left its feed is remembered: guids do come back."""


_FORMAT = 1
"""The format of the file, in its `PRAGMA user_version`; files from before it was written have 0."""


class FeedStoreError(RuntimeError):
    """The file cannot be used as it is.  Its operator can act on it."""


class UnknownFeedError(KeyError):
    """No feed of this URL is subscribed."""

    def __str__(self) -> str:
        return f"no feed {self.args[0]} is subscribed"


@dataclass(frozen=True, slots=True)
class Seen:
    """An entry that was accepted before: what it held, and how often it was edited since."""

    content: bytes
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A feed with what is remembered of it."""

    feed: Feed
    state: FeedState


@dataclass(frozen=True, slots=True)
class Memory:
    """What one check leaves behind: the feed's state, and the entries of its document."""

    url: str
    state: FeedState
    entries: Mapping[str, Seen]


class FeedStore:
    """The `feeds.db` of one broker.  Safe to use from several threads and processes."""

    def __init__(self, path: Path | str) -> None:
        self._lock = threading.Lock()
        self._edits = 0
        self._others = 0
        # Credentials are in it: nobody else's business from the first byte on.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._db = _connected(path)
        try:
            _check_format(self._db, path)
        except FeedStoreError:
            self._db.close()
            raise
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.executescript(_SCHEMA)
        self._db.execute(f"PRAGMA user_version = {_FORMAT}")
        # Reading has a connection of its own: it must not wait for another thread's fsync.
        self._reader = _connected(path)
        self._read_lock = threading.Lock()

    def close(self) -> None:
        """Close the file; what was committed stays."""
        with self._lock, self._read_lock:
            self._db.close()
            self._reader.close()

    def version(self) -> tuple[int, int]:
        """Return a value that changes when feeds may have been added, changed or removed.

        Never waits: while somebody commits it is the value of last time.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._others = int(self._db.execute("PRAGMA data_version").fetchone()[0])
            finally:
                self._lock.release()
        return self._others, self._edits

    def add(self, feed: Feed, state: FeedState | None = None) -> bool:
        """Subscribe `feed`; return False, and change nothing, where its URL already is."""
        row = (
            feed.url,
            feed.stream,
            json.dumps(asdict(feed.options)),
            json.dumps(asdict(feed.secrets)),
            json.dumps(render_state(state or FeedState())),
        )
        statement = "INSERT INTO feed (url, stream, options, secrets, state) VALUES (?,?,?,?,?)"
        with self._transaction() as db:
            self._edits += 1
            return db.execute(f"{statement} ON CONFLICT (url) DO NOTHING", row).rowcount == 1

    def put(self, feed: Feed) -> None:
        """Subscribe `feed`, or change its stream, options and secrets where they differ."""
        if not self.add(feed) and self.get(feed.url).feed != feed:
            self.update(feed)

    def update(self, feed: Feed) -> None:
        """Change the stream, options and secrets of a subscribed feed; its memory stays."""
        row = (
            feed.stream,
            json.dumps(asdict(feed.options)),
            json.dumps(asdict(feed.secrets)),
            feed.url,
        )
        with self._transaction() as db:
            self._edits += 1
            statement = "UPDATE feed SET stream = ?, options = ?, secrets = ? WHERE url = ?"
            if db.execute(statement, row).rowcount == 0:
                raise UnknownFeedError(feed.url)

    def remove(self, url: str) -> None:
        """Unsubscribe the feed and forget its entries."""
        with self._transaction() as db:
            self._edits += 1
            if db.execute("DELETE FROM feed WHERE url = ?", (url,)).rowcount == 0:
                raise UnknownFeedError(url)

    def get(self, url: str) -> Subscribed:
        """Return one feed; raise `UnknownFeedError`."""
        for found in self._select("WHERE url = ?", (url,)):
            return found
        raise UnknownFeedError(url)

    def all(self) -> list[Subscribed]:
        """Return all feeds, by URL."""
        return list(self._select("ORDER BY url", ()))

    def change(self, url: str, **changes: object) -> FeedState:
        """Set fields of a feed's state, in one transaction with reading it."""
        with self._transaction() as db:
            self._edits += 1
            row = db.execute("SELECT state FROM feed WHERE url = ?", (url,)).fetchone()
            if row is None:
                raise UnknownFeedError(url)
            state = parse_state({**json.loads(row[0]), **changes})
            db.execute("UPDATE feed SET state = ? WHERE url = ?", (_json(state), url))
        return state

    def seen(self, url: str, keys: Iterable[str]) -> dict[str, Seen]:
        """Return what was accepted before under each of `keys`; unseen ones are left out."""
        by_digest = {_key(key): key for key in keys}
        found = {}
        with self._read_lock:
            for digests in _chunks(list(by_digest)):
                statement = (
                    "SELECT key, content, revision FROM seen JOIN feed ON feed = id "
                    f"WHERE url = ? AND key IN ({', '.join('?' * len(digests))})"
                )
                for digest, *seen in self._reader.execute(statement, (url, *digests)):
                    found[by_digest[digest]] = Seen(*seen)
        return found

    def known_content(self, url: str, contents: Iterable[bytes]) -> frozenset[bytes]:
        """Return those of `contents` that were accepted before, under whatever key."""
        statement = "SELECT content FROM seen JOIN feed ON feed = id WHERE url = ?"
        with self._read_lock:
            known = {bytes(row[0]) for row in self._reader.execute(statement, (url,))}
        return frozenset(known.intersection(contents))

    def commit(self, memories: Iterable[Memory]) -> None:
        """Store what checks have found out, all or nothing.

        A feed that was removed meanwhile is left out; a pause asked for meanwhile stays.
        """
        with self._transaction() as db:
            for memory in memories:
                _put_memory(db, memory)

    def forget_old_entries(self, now_us: int) -> int:
        """Drop keys that their feeds have not shown for `SEEN_DAYS`; return how many."""
        oldest = now_us // _DAY_US - SEEN_DAYS
        with self._transaction() as db:
            return db.execute("DELETE FROM seen WHERE last_day < ?", (oldest,)).rowcount

    def pauses(self) -> dict[str, tuple[int, str]]:
        """Return the registrable domains that asked for silence: until when, and why."""
        with self._read_lock:
            rows = self._reader.execute("SELECT domain, until_us, why FROM pause").fetchall()
        return {domain: (until_us, why) for domain, until_us, why in rows}

    def set_pause(self, domain: str, until_us: int, why: str) -> None:
        """Remember that `domain` wants silence until then, over restarts."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO pause VALUES (?, ?, ?)", (domain, until_us, why))

    def leases(self) -> dict[str, str]:
        """Return what is stored of each push subscription, by feed URL."""
        with self._read_lock:
            rows = self._reader.execute(
                "SELECT url, lease FROM push JOIN feed ON feed = id"
            ).fetchall()
        return dict(rows)

    def url_of_token(self, token: str) -> str | None:
        """Return the feed whose callback carries `token`, or None."""
        statement = "SELECT url FROM push JOIN feed ON feed = id WHERE token = ?"
        with self._read_lock:
            row = self._reader.execute(statement, (token,)).fetchone()
        return None if row is None else str(row[0])

    def set_lease(self, url: str, token: str, lease: str) -> None:
        """Store the push subscription of a feed; a feed removed meanwhile is left out."""
        with self._transaction() as db:
            db.execute(
                "INSERT INTO push SELECT id, ?, ? FROM feed WHERE url = ? "
                "ON CONFLICT (feed) DO UPDATE SET token = excluded.token, lease = excluded.lease",
                (token, lease, url),
            )

    def _select(self, clause: str, parameters: Sequence[object]) -> Iterator[Subscribed]:
        statement = f"SELECT url, stream, options, secrets, state FROM feed {clause}"
        with self._read_lock:
            rows = self._reader.execute(statement, parameters).fetchall()
        for url, stream, options, secrets, state in rows:
            feed = Feed(url, stream, FeedOptions(**json.loads(options)), _secrets(secrets))
            yield Subscribed(feed, parse_state(json.loads(state)))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")


def _connected(path: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)


def _put_memory(db: sqlite3.Connection, memory: Memory) -> None:
    row = db.execute("SELECT id, state FROM feed WHERE url = ?", (memory.url,)).fetchone()
    if row is None:
        return
    paused = bool(json.loads(row[1]).get("paused", False))
    values = {**render_state(memory.state), "paused": paused}
    db.execute("UPDATE feed SET state = ? WHERE id = ?", (json.dumps(values), row[0]))
    _put_entries(db, row[0], memory.entries, memory.state.last_check_us // _DAY_US)


def _put_entries(db: sqlite3.Connection, feed: int, entries: Mapping[str, Seen], day: int) -> None:
    rows = [(feed, _key(key), e.content, e.revision, day) for key, e in entries.items()]
    for chunk in _chunks(rows):
        # Most entries are unchanged since the last check: a row is written once a day at most.
        db.execute(
            f"INSERT INTO seen VALUES {', '.join(['(?, ?, ?, ?, ?)'] * len(chunk))} "
            "ON CONFLICT (feed, key) DO UPDATE SET content = excluded.content, "
            "revision = excluded.revision, last_day = excluded.last_day "
            "WHERE content <> excluded.content OR last_day <> excluded.last_day",
            [value for row in chunk for value in row],
        )


def _chunks(values: list[T]) -> Iterator[list[T]]:
    """Pieces for statements of many values.

    Each statement costs two turns of the interpreter lock, for which the event loop waits too.
    """
    for start in range(0, len(values), _VALUES_MAX):
        yield values[start : start + _VALUES_MAX]


def _key(key: str) -> bytes:
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _json(state: FeedState) -> str:
    return json.dumps(render_state(state))


def _secrets(text: str) -> Secrets:
    values = json.loads(text)
    headers = tuple((name, value) for name, value in values["headers"])
    return Secrets(values["username"], values["password"], headers)


def _check_format(db: sqlite3.Connection, path: Path | str) -> None:
    try:
        present = int(db.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.Error as error:
        raise FeedStoreError(f"{path} cannot be used: {error}") from error
    if present > _FORMAT:
        raise FeedStoreError(f"{path} has format {present}; this version reads up to {_FORMAT}")
