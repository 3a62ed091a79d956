"""Look-ups: under which variables the values of others are looked for in a sorted run.

A key is the hash of a value, and the latter half of it is changed by the variable.  So an entry of
a value says by what its variable has changed, and a look-up is found by that in a table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from joins.memory.remembered import Hashes
from joins.memory.slots import Ints
from joins.memory.times import Flags

__all__ = ["LATTER_HALF", "LookUps", "entry_keys"]

_KEY_BITS = 64

_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF_BITS = np.uint64(_KEY_BITS // 2)
LATTER_HALF = np.uint64((1 << _KEY_BITS // 2) - 1)

_SLOTS = 8
"""Slots of a table for each code in it."""


def entry_keys(hashes: Hashes, variables: Ints) -> Hashes:
    """Return the keys of values under variables; the keys of one value begin with the same half.

    Variables below 2 ** 29 differ in the other half: their multiples of the golden ratio do.
    """
    return hashes ^ _latter_halves(variables)


def _latter_halves(variables: Ints) -> Hashes:
    """Return what variables change in the latter half of a value's hash."""
    return (variables.astype(np.uint64) * _MIX) >> _HALF_BITS


@dataclass(frozen=True, slots=True, eq=False)
class LookUps:
    """Under which variables values are looked up, by the variable that they are a value of.

    A look-up is a pair of variables, and `codes` are the look-ups in order; `rows` has the place of
    each among those given, and `starts` where those of a variable start.  `asked` are the variables
    that have some, `others` those looked for.
    """

    codes: Hashes
    rows: Ints
    starts: Ints
    asked: Ints
    others: Ints
    table: _CodeTable

    @classmethod
    def of(cls, mine: Ints, other: Ints) -> LookUps:
        """Return look-ups of the values of `mine[i]` under `other[i]`, each there once."""
        codes = _codes(mine, _latter_halves(other))
        rows = np.argsort(codes)
        codes = codes[rows]
        counts = np.bincount(mine, minlength=int(mine.max(initial=-1)) + 2)
        starts = np.cumsum(np.append(0, counts))
        asked = np.flatnonzero(counts)
        return cls(codes, rows, starts, asked, other[rows], _CodeTable.of(codes))

    def of_values(self, variables: Ints) -> tuple[Ints, Ints]:
        """Return where the look-ups of values of some variables start, and how many they are."""
        places = np.minimum(variables, len(self.starts) - 2)
        starts = self.starts[places]
        return starts, self.starts[places + 1] - starts

    def any_of(self, bits: Ints) -> Ints:
        """Return for each variable the bits of those under which its values are looked up.

        `bits[i]` are those of variable `i`; a variable beyond has none.
        """
        own = np.append(bits, 0)[np.minimum(self.others, len(bits))]
        found = np.zeros(len(self.starts), np.int64)
        if len(own):
            found[self.asked] = np.bitwise_or.reduceat(own, self.starts[self.asked])
        return found

    def latter_halves(self, places: Ints) -> Hashes:
        """Return what the variables of some look-ups change in a hash."""
        return self.codes[places] & LATTER_HALF

    def find(self, variables: Ints, latter_halves: Hashes) -> tuple[Ints, Ints]:
        """Return the entries that a value of some variables is looked up under, and its look-ups.

        An entry is given by what its variable has changed in the hash of the value.
        """
        return self.table.find(_codes(variables, latter_halves))


def _codes(variables: Ints, latter_halves: Hashes | np.uint64) -> Hashes:
    codes: Hashes = (variables.astype(np.uint64) << _HALF_BITS) | latter_halves
    return codes


@dataclass(frozen=True, slots=True, eq=False)
class _CodeTable:
    """Finds some codes among others by their mixed bits: one look into memory for most.

    The code `places[s]` has the slot `s`, -1 stands for none.  Where several have one, it is
    `crowded`, and the others are in `more`, in order, at `more_places`.
    """

    codes: Hashes
    shift: np.uint64
    places: npt.NDArray[np.int32]
    crowded: Flags
    more: Hashes
    more_places: Ints

    @classmethod
    def of(cls, codes: Hashes) -> _CodeTable:
        """Return the table of sorted codes."""
        width = max(1, (len(codes) * _SLOTS - 1).bit_length())
        shift = np.uint64(_KEY_BITS - width)
        slots, numbers = (codes * _MIX) >> shift, np.arange(len(codes), dtype=np.int32)
        places = np.full(1 << width, -1, np.int32)
        places[slots] = numbers
        others = np.flatnonzero(places[slots] != numbers)
        crowded = np.zeros(1 << width, np.bool_)
        crowded[slots[others]] = True
        return cls(codes, shift, places, crowded, codes[others], others)

    def find(self, codes: Hashes) -> tuple[Ints, Ints]:
        """Return which of some codes are here, and the place of each."""
        slots = (codes * _MIX) >> self.shift
        places = self.places[slots]
        maybe = np.flatnonzero(places >= 0)
        places, asked = places[maybe].astype(np.int64), codes[maybe]
        are_here = self.codes[places] == asked
        if len(self.more):
            rest = np.flatnonzero(~are_here)
            rest = rest[self.crowded[slots[maybe[rest]]]]
            at = np.minimum(np.searchsorted(self.more, asked[rest]), len(self.more) - 1)
            found = self.more[at] == asked[rest]
            places[rest[found]] = self.more_places[at[found]]
            are_here[rest[found]] = True
        here = np.flatnonzero(are_here)
        return maybe[here], places[here]
