"""Which matches the outbox has, by their ids: each is put in once.

Ids are digests, so the rows of an index of them stand in as many places as there are: a match would
be written at three times the processor time once there are a million.  Here an id is one number, 60
bits of it, the key of its row in `match_id`, and a batch puts in its ids in the order of their
numbers.  Where two ids have one number, the later one has the next that is free.

Nearly always all matches of a batch are new.  So their numbers are put in as if they were, and the
database says where one is taken: then each match is looked for.

Invariant: every row of `match` has one in `match_id`; an id whose number is taken stands behind
it, with no gap between.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from itertools import chain

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.match import FoundMatch

__all__ = ["ID_NUMBER", "NOTE_TOPICS", "insert_matches"]

_DIGITS = 15
"""Hexadecimal digits of an id that make its number, so that it has room behind it."""

_NUMBER = " | ".join(
    f"((instr('0123456789abcdef', substr(id, {i + 1}, 1)) - 1) << {4 * (_DIGITS - 1 - i)})"
    for i in range(_DIGITS)
)
ID_NUMBER = f"iif(substr(id, 1, {_DIGITS}) GLOB '*[^0-9a-f]*', -1, {_NUMBER})"
"""The number of the column `id`, for SQLite; that of what is no digest is -1."""

_IS_HEXADECIMAL = re.compile("[0-9a-f]*").fullmatch

NOTE_TOPICS = (
    "INSERT INTO topic_match SELECT query, parameters, seq, oldest, position FROM match"
    " WHERE seq >= ? ORDER BY query, parameters, seq"
)
"""Puts matches from a number on beside others of their topics, neighbours one after the other."""

_FIELDS = len(FoundMatch._fields)

_AT_ONCE = 100
"""Rows of a statement.  SQLite notes the newest number with each statement, which takes a fifth of
the time of a row of its own; its oldest releases take 999 values at most."""

_INTO = f"INSERT INTO match ({', '.join(FoundMatch._fields)}, committed_us) VALUES "
_INSERT = f"{_INTO} ({'?, ' * _FIELDS}{{now_us}})"
_INSERT_MANY = _INTO + ", ".join(
    f"({', '.join(f'?{first + k}' for k in range(_FIELDS))}, ?1)"
    for first in range(2, 2 + _AT_ONCE * _FIELDS, _FIELDS)
)
"""Puts in `_AT_ONCE` matches, behind the time of the commit."""


def insert_matches(db: sqlite3.Connection, matches: Sequence[FoundMatch], now_us: int) -> None:
    """Put in those matches that are not there, which are numbered in their order."""
    if not matches:
        return
    insert, first = _INSERT.format(now_us=now_us), _last_seq(db) + 1
    numbers = _numbers([match.id for match in matches])
    order = np.argsort(numbers)
    rows = list(zip(numbers[order].tolist(), (first + order).tolist(), strict=True))
    try:
        db.executemany("INSERT INTO match_id VALUES (?, ?)", rows)
    except sqlite3.IntegrityError:
        db.executemany("DELETE FROM match_id WHERE number = ? AND seq = ?", rows)
        _insert_unknown(db, insert, matches, numbers)
    else:
        several = len(matches) // _AT_ONCE * _AT_ONCE
        for start in range(0, several, _AT_ONCE):
            some = chain.from_iterable(matches[start : start + _AT_ONCE])
            db.execute(_INSERT_MANY, (now_us, *some))
        db.executemany(insert, matches[several:])
        assert _last_seq(db) == first + len(matches) - 1, "they are numbered one after the other"
    db.execute(NOTE_TOPICS, (first,))


def _insert_unknown(
    db: sqlite3.Connection, insert: str, matches: Sequence[FoundMatch], numbers: Ints
) -> None:
    for match, number in zip(matches, numbers.tolist(), strict=True):
        free = _free_number(db, match.id, number)
        if free is not None:
            seq = db.execute(insert, match).lastrowid
            db.execute("INSERT INTO match_id VALUES (?, ?)", (free, seq))


def _free_number(db: sqlite3.Connection, name: str, number: int) -> int | None:
    """Return the number for an id; None where the match is there."""
    while taken := db.execute(
        "SELECT id FROM match_id LEFT JOIN match USING (seq) WHERE number = ?", (number,)
    ).fetchone():
        if taken[0] == name:
            return None
        number += 1
    return number


def _numbers(ids: Sequence[str]) -> Ints:
    """Return the numbers of ids."""
    digits = "".join(ids)
    if len(digits) != 32 * len(ids) or not _IS_HEXADECIMAL(digits):
        return np.array([_number(name) for name in ids], np.int64)
    halves = np.frombuffer(bytes.fromhex(digits), ">u8")
    return (halves[::2] >> np.uint64(64 - 4 * _DIGITS)).astype(np.int64)


def _number(name: str) -> int:
    digits = name[:_DIGITS].ljust(_DIGITS, "0")
    return int(digits, 16) if _IS_HEXADECIMAL(digits) else -1


def _last_seq(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'match'").fetchone()
    return 0 if row is None else int(row[0])
