"""LIMIT and DISJOINT: what has been given decides what is given further.

Matches and rows are asked in the order in which they are decided, and what is given is noted.  A
note is asked for as long as section 1.1 holds it together with what comes: `T` (LIMIT's, or WITHIN)
and the allowed lateness behind `W`.  Notes are part of the commit of their batch, and are read from
there after a restart: what has been given cannot be found out from the documents still remembered.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from joins import UNBOUNDED
from xscl.query import INFINITE_US

__all__ = ["Given", "GivenAt", "Note", "NoteOwner", "Notes"]


class NoteOwner(NamedTuple):
    """A clause of a statement under one assignment, which is told by its `parameters_key`."""

    query: str
    stated_at: int
    parameters: str
    clause: str


class Note(NamedTuple):
    """A match or row that has been given: of which statement, under which assignment and key.

    `clause` is `LIMIT` or `DISJOINT`, `docid` where it was decided; of `LEARNED` the key has the
    delays of a match (`learned`), and of `HELD` its id with what rows read of it (`held`).  It is
    asked for until `W` less the lateness is behind `until_us`, `UNBOUNDED` where nothing bounds it.
    """

    query: str
    stated_at: int
    parameters: str
    clause: str
    key: str
    docid: int
    start_us: int
    end_us: int
    until_us: int

    @property
    def owner(self) -> NoteOwner:
        """Whose it is."""
        return NoteOwner(self.query, self.stated_at, self.parameters, self.clause)


class GivenAt(NamedTuple):
    """When something that was given begins and ends, and where it was decided."""

    end_us: int
    start_us: int
    docid: int


@dataclass(slots=True)
class Given:
    """What has been given under one key, by its end.

    `retention_us` is for how long it is asked for: LIMIT's length, or WITHIN.  What was given up to
    a registration point was given to others.
    """

    retention_us: int
    point: int = 0
    held: list[GivenAt] = field(default_factory=list)

    def add(self, one: GivenAt) -> None:
        """Note what is given."""
        insort(self.held, one)

    def near(self, one: GivenAt, length_us: int, since_us: int) -> int:
        """Return how many end less than a length before or behind one, and are asked for still."""
        first = bisect_right(self.held, (one.end_us - length_us, UNBOUNDED))
        last = bisect_left(self.held, (one.end_us + length_us,))
        return sum(self._is_asked(each, one, since_us) for each in self.held[first:last])

    def meets(self, one: GivenAt, since_us: int) -> bool:
        """Return whether an interval meets that of one which is asked for still."""
        first = bisect_left(self.held, (one.start_us,))
        return any(
            each.start_us <= one.end_us and self._is_asked(each, one, since_us)
            for each in self.held[first:]
        )

    def _is_asked(self, each: GivenAt, one: GivenAt, since_us: int) -> bool:
        is_asked = each.docid == one.docid or until_of(each, self.retention_us) >= since_us
        return is_asked and each.docid > self.point


def until_of(one: GivenAt, retention_us: int) -> int:
    """Return until when, by `W` less the lateness, something is asked for."""
    return UNBOUNDED if retention_us >= INFINITE_US else one.end_us + retention_us


class Notes:
    """What has been given of all statements with LIMIT or DISJOINT."""

    def __init__(self) -> None:
        self._given: dict[NoteOwner, dict[str, Given]] = {}

    def of(self, owner: NoteOwner, key: str, retention_us: int, point: int) -> Given:
        """Return what has been given under a key behind a registration point."""
        own = self._given.setdefault(owner, {})
        given = own.get(key)
        if given is None:
            given = own[key] = Given(retention_us)
        given.retention_us, given.point = retention_us, point
        return given

    def add(self, owner: NoteOwner, key: str, one: GivenAt) -> Note:
        """Note what is given; return the note."""
        given = self._given[owner][key]
        given.add(one)
        until_us = until_of(one, given.retention_us)
        return Note(*owner, key, one.docid, *one[1::-1], until_us)

    def restore(self, notes: Iterable[Note]) -> None:
        """Take notes as they were committed, between two batches."""
        self._given.clear()
        for note in notes:
            if note.clause not in ("LIMIT", "DISJOINT"):
                continue
            own = self._given.setdefault(note.owner, {})
            retention_us = (
                INFINITE_US if note.until_us >= UNBOUNDED else note.until_us - note.end_us
            )
            given = own.setdefault(note.key, Given(retention_us))
            given.add(GivenAt(note.end_us, note.start_us, note.docid))

    def keep(self, added: Iterable[Note], limit_of: Callable[[str], int]) -> list[Note]:
        """Return what was noted in a batch, as far as budgets went; the rest is forgotten.

        `limit_of` returns the first document of a query that does not count.
        """
        noted: list[Note] = []
        for note in added:
            if note.docid < limit_of(note.query):
                noted.append(note)
            else:
                self.undo(note)
        return noted

    def undo(self, note: Note) -> None:
        """Forget a note that was added in this batch."""
        one = GivenAt(note.end_us, note.start_us, note.docid)
        self._given[note.owner][note.key].held.remove(one)

    def forget(self, since_us: int, is_stated: Callable[[str, int], bool]) -> None:
        """Forget what is not asked for any more, and what statements have that are gone."""
        for owner, own in list(self._given.items()):
            if not is_stated(owner.query, owner.stated_at):
                del self._given[owner]
                continue
            for key, given in list(own.items()):
                held = given.held
                if held and until_of(held[0], given.retention_us) < since_us:
                    given.held = [e for e in held if until_of(e, given.retention_us) >= since_us]
                if not given.held:
                    del own[key]
