"""WINDOW behind WHERE that asks tables: which matches held, and what rows read of them.

After a restart tables say what they say now, and not what a match was asked.  So each match that
held is noted, in the commit of its batch, with all that its rows read of it, for as long as a row
can have it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from broker.matching.match import parameters_key
from broker.matching.outcomes.kept import Note, NoteOwner
from broker.matching.outcomes.matched import Asked, Matched
from joins import UNBOUNDED
from xscl.functions import Atom
from xscl.query import INFINITE_US

__all__ = ["HELD", "HeldMatches"]

HELD = "HELD"
"""The clause of a note that has the id of a match, and what is read of it."""


class HeldMatches:
    """The matches that held, as they were committed: they are asked for after a restart."""

    def __init__(self) -> None:
        self._of: dict[NoteOwner, dict[str, tuple[int, list[Asked]]]] = {}

    def restore(self, notes: Iterable[Note]) -> None:
        """Take notes as they were committed, between two batches."""
        self._of.clear()
        for note in notes:
            if note.clause == HELD:
                name, read = json.loads(note.key)
                asked = [_asked(each) for each in read]
                self._of.setdefault(note.owner, {})[name] = note.until_us, asked

    @staticmethod
    def note(match: Matched, stated_at: int, length_us: int) -> Note:
        """Return the note of a match that held, for rows of some length."""
        read = [match.asked(number) for number in range(len(match.clause.readers))]
        key = json.dumps([match.name, [[[*map(_spelled, v)] for v in each] for each in read]])
        until_us = UNBOUNDED if length_us >= INFINITE_US else match.end_us + length_us
        owner = owner_of(match, stated_at)
        return Note(*owner, key, match.docid, match.start_us, match.end_us, until_us)

    def holding(self, matches: Iterable[Matched], stated_at: int) -> list[Matched]:
        """Return the matches that held, each with what was read of it."""
        found = []
        for match in matches:
            noted = self._of.get(owner_of(match, stated_at), {}).get(match.name)
            if noted is not None:
                match.read_as(noted[1])
                found.append(match)
        return found

    def forget(self, since_us: int, is_stated: Callable[[str, int], bool]) -> None:
        """Forget what no row can have, and what statements have that are gone."""
        for owner, own in list(self._of.items()):
            if not is_stated(owner.query, owner.stated_at):
                del self._of[owner]
            else:
                gone = [name for name, (until_us, _) in own.items() if until_us < since_us]
                for name in gone:
                    del own[name]


def owner_of(match: Matched, stated_at: int) -> NoteOwner:
    """Return whose note is that of a match."""
    topic = match.topic
    return NoteOwner(topic.query.id, stated_at, parameters_key(topic.parameters), HELD)


def _asked(read: Sequence[Sequence[str | float | Sequence[int]]]) -> Asked:
    return tuple([[*map(_atom, values)] for values in read])


def _spelled(value: Atom) -> str | float | Sequence[int]:
    return [value.numerator, value.denominator] if isinstance(value, Fraction) else value


def _atom(value: str | float | Sequence[int]) -> Atom:
    return Fraction(*value) if isinstance(value, list) else value  # type: ignore[return-value]
