"""Look-ups: under which variables the values of others are looked for in a sorted run.

A key is the hash of a value, and the latter half of it is changed by the variable.  So an entry of
a value says by what its variable has changed, and a look-up is found by that in a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from joins.memory.remembered import Hashes
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags

__all__ = ["CODE_MIX", "LATTER_HALF", "CodeColumns", "LookUps", "entry_keys"]

_KEY_BITS = 64

CODE_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF_BITS = np.uint64(_KEY_BITS // 2)
LATTER_HALF = np.uint64((1 << _KEY_BITS // 2) - 1)

_NO_CODE = np.uint64((1 << _KEY_BITS) - 1)
"""Stands for the code of a number that has none; no look-up has it."""

_ONE = np.uint64(1)

_FEW = 16
"""Where there are so many look-ups for each variable that is asked for, it is searched for."""

_SLOTS = 8
"""Slots of a table for each code in it."""


def entry_keys(hashes: Hashes, variables: Ints) -> Hashes:
    """Return the keys of values under variables; the keys of one value begin with the same half.

    Variables below 2 ** 29 differ in the other half: their multiples of the golden ratio do.
    """
    return hashes ^ _latter_halves(variables)


def _latter_halves(variables: Ints) -> Hashes:
    """Return what variables change in the latter half of a value's hash."""
    return (variables.astype(np.uint64) * CODE_MIX) >> _HALF_BITS


class CodeColumns(NamedTuple):
    """The table of look-ups as arrays (`_CodeTable`), for compiled loops."""

    shift: np.uint64
    of_rows: Hashes
    places: npt.NDArray[np.int32]
    crowded: Flags
    more: Hashes
    more_rows: Ints


@dataclass(slots=True, eq=False)
class LookUps:
    """Under which variables values are looked up, by the variable that they are a value of.

    A look-up is a pair of variables, and `codes` are the look-ups in order; `rows` has the number
    of each, and `others` the variable looked for.  Where those of each variable start is only
    listed for who asks for many.
    """

    codes: Hashes
    rows: Ints
    others: Ints
    table: _CodeTable
    _starts: Ints | None = None

    @classmethod
    def of(cls, mine: Ints, other: Ints, rows: Ints | None = None) -> LookUps:
        """Return look-ups of the values of `mine[i]` under `other[i]`, each there once.

        It has the number `rows[i]`, or `i`.
        """
        codes = _codes(mine, _latter_halves(other))
        order = codes.argsort()
        codes, rows = codes[order], order if rows is None else rows[order]
        return cls(codes, rows, other[order], _CodeTable.of(codes, rows))

    def __len__(self) -> int:
        return len(self.codes)

    def with_changes(self, changed: Ints, mine: Ints, other: Ints, rows: Ints) -> LookUps:
        """Return all look-ups but the ones numbered `changed`, which are replaced by others.

        The new ones are of `mine[i]` under `other[i]`, with the number `rows[i]`.  What is returned
        has this object's table, changed: this object must not be used any more.
        """
        is_changed = np.zeros(max(self.table.rows, int(changed.max(initial=-1)) + 1), np.bool_)
        is_changed[changed] = True
        kept: list[Any] = [self.codes, self.rows, self.others]
        gone = np.flatnonzero(is_changed[self.rows])
        if len(gone):  # none is where look-ups have only come
            kept = [np.delete(column, gone) for column in kept]
        codes = _codes(mine, _latter_halves(other))
        order = codes.argsort()
        codes, rows, other = codes[order], rows[order], other[order]
        table = self.table.with_changes(is_changed, codes, rows)
        at = np.searchsorted(kept[0], codes)
        codes, rows, other = map(np.insert, kept, 3 * (at,), (codes, rows, other))
        return LookUps(codes, rows, other, table or _CodeTable.of(codes, rows))

    def variables_of(self, rows: Ints) -> Ints:
        """Return the variables whose values are looked up by some numbers, if by any."""
        codes = self.table.of_rows[rows[rows < self.table.rows]]
        variables: Ints = (codes[codes != _NO_CODE] >> _HALF_BITS).view(np.int64)
        return variables

    def of_values(self, variables: Ints) -> tuple[Ints, Ints]:
        """Return where the look-ups of values of some variables start, and how many they are."""
        if self._starts is None:
            if len(variables) * _FEW < len(self.codes):
                mine = variables.astype(np.uint64)
                first = np.searchsorted(self.codes, mine << _HALF_BITS)
                return first, np.searchsorted(self.codes, (mine + _ONE) << _HALF_BITS) - first
            own = (self.codes >> _HALF_BITS).view(np.int64)
            counts = np.bincount(own, minlength=self._variables)
            self._starts = np.cumsum(np.append(0, counts))
        places = np.minimum(variables, self._variables - 1)
        starts = self._starts[places]
        return starts, self._starts[places + 1] - starts

    @property
    def _variables(self) -> int:
        """The values of no variable from the last below this on are looked up."""
        return int(self.codes[-1] >> _HALF_BITS) + 2 if len(self.codes) else 1

    def any_of(self, bits: Ints, variables: Ints) -> Ints:
        """Return for some variables the bits of all under which values of each are looked up.

        `bits[i]` are those of variable `i`; a variable beyond has none.
        """
        places = np.minimum(variables, self._variables - 1)
        if not len(bits):
            return np.zeros(len(places), np.int64)
        if len(places) * _FEW < self._variables:
            asked, which = np.unique(places, return_inverse=True)
            few: Ints = self._any_of(bits, asked)[which]
            return few
        are_asked = np.zeros(self._variables, np.bool_)
        are_asked[places] = True
        asked = np.flatnonzero(are_asked)
        found = np.zeros(self._variables, np.int64)
        found[asked] = self._any_of(bits, asked)
        return found[places]

    def _any_of(self, bits: Ints, asked: Ints) -> Ints:
        """Return what `any_of` does, for different variables."""
        found = np.zeros(len(asked), np.int64)
        starts, counts = self.of_values(asked)
        some = np.flatnonzero(counts)
        if len(some):
            starts, counts = starts[some], counts[some]
            others = self.others[ranges(starts, counts)]
            own = bits[np.minimum(others, len(bits) - 1)]
            own[others >= len(bits)] = 0
            found[some] = np.bitwise_or.reduceat(own, np.cumsum(counts) - counts)
        return found

    def latter_halves(self, places: Ints) -> Hashes:
        """Return what the variables of some look-ups change in a hash."""
        return self.codes[places] & LATTER_HALF

    def find(self, variables: Ints, latter_halves: Hashes) -> tuple[Ints, Ints]:
        """Return the entries that a value of some variables is looked up under, and by which.

        An entry is given by what its variable has changed in the hash of the value, and look-ups
        are given by their numbers.
        """
        return self.table.find(_codes(variables, latter_halves))


def _codes(variables: Ints, latter_halves: Hashes | np.uint64) -> Hashes:
    codes: Hashes = (variables.astype(np.uint64) << _HALF_BITS) | latter_halves
    return codes


@dataclass(slots=True, eq=False)
class _CodeTable:
    """Finds some codes among others by their mixed bits: one look into memory for most.

    The code of the number `places[s]` has the slot `s`, or had it; -1 stands for none, and
    `of_rows` has the codes by number.  Where several have one slot, it is `crowded`, and the others
    are in `more`, in order, with their numbers.
    """

    shift: np.uint64
    of_rows: Hashes
    places: npt.NDArray[np.int32]
    crowded: Flags
    more: Hashes
    more_rows: Ints
    rows_max: int

    @classmethod
    def of(cls, codes: Hashes, rows: Ints) -> _CodeTable:
        """Return the table of codes by number."""
        width = max(1, (len(codes) * _SLOTS - 1).bit_length())
        nothing = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        places, crowded = np.full(1 << width, -1, np.int32), np.zeros(1 << width, np.bool_)
        of_rows = np.full(int(rows.max(initial=-1)) + 1, _NO_CODE)
        table = cls(
            np.uint64(_KEY_BITS - width), of_rows, places, crowded, *nothing, 2 * len(of_rows)
        )
        table._put(codes, rows)
        return table

    @property
    def columns(self) -> CodeColumns:
        """The table as arrays."""
        return CodeColumns(
            self.shift, self.of_rows, self.places, self.crowded, self.more, self.more_rows
        )

    @property
    def rows(self) -> int:
        """All numbers are below this."""
        return len(self.of_rows)

    def with_changes(self, is_changed: Flags, codes: Hashes, rows: Ints) -> _CodeTable | None:
        """Remove the codes of some numbers and add others; return None where it gets too full."""
        if len(is_changed) > self.rows_max:
            return None
        if len(is_changed) > len(self.of_rows):
            more = np.full(len(is_changed) - len(self.of_rows), _NO_CODE)
            self.of_rows = np.append(self.of_rows, more)
        self.of_rows[is_changed[: len(self.of_rows)]] = _NO_CODE
        kept = ~is_changed[self.more_rows]
        self.more, self.more_rows = self.more[kept], self.more_rows[kept]
        self._put(codes, rows)
        return self

    def _put(self, codes: Hashes, rows: Ints) -> None:
        """Add codes whose numbers have none."""
        slots = self._slots(codes)
        there = self.of_rows[self.places[slots]] if len(self.of_rows) else codes
        is_free = (self.places[slots] < 0) | (self._slots(there) != slots)
        self.of_rows[rows] = codes
        self.places[slots[is_free]] = rows[is_free]
        others = (self.places[slots] != rows).nonzero()[0]
        self.crowded[slots[others]] = True
        more = np.append(self.more, codes[others])
        order = more.argsort()
        self.more, self.more_rows = more[order], np.append(self.more_rows, rows[others])[order]

    def _slots(self, codes: Hashes) -> Hashes:
        return (codes * CODE_MIX) >> self.shift

    def find(self, codes: Hashes) -> tuple[Ints, Ints]:
        """Return which of some codes are here, and the number of each."""
        slots = self._slots(codes)
        places = self.places[slots]
        maybe = np.flatnonzero(places >= 0)
        rows: Ints = places[maybe].astype(np.int64)
        asked = codes[maybe]
        are_here = self.of_rows[rows] == asked
        if len(self.more):
            rest = np.flatnonzero(~are_here)
            rest = rest[self.crowded[slots[maybe[rest]]]]
            at = np.minimum(np.searchsorted(self.more, asked[rest]), len(self.more) - 1)
            found = self.more[at] == asked[rest]
            rows[rest[found]] = self.more_rows[at[found]]
            are_here[rest[found]] = True
        here = np.flatnonzero(are_here)
        return maybe[here], rows[here]
