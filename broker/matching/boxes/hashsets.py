"""Sets of values, as hashes, by the row that has them: whether a value is among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from broker.matching.boxes.columns import Flags, Hashes, Ints
from joins import hashes_in

__all__ = ["HashSets"]

_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class HashSets:
    """Members of sets, in the order of `keys`: the first hash of each, mixed with its row.

    Of rows that are `spared` the set has the only values that are not refused.
    """

    keys: Hashes
    others: Hashes
    spared: Flags

    @classmethod
    def of(
        cls,
        rows: Ints,
        texts: Sequence[str | None],
        members: tuple[Ints, Hashes, Hashes],
        spared: Flags,
    ) -> HashSets:
        """Return the sets of some rows as they are spelled; the others have empty ones.

        Those of other rows have `members`, given with the row of each.
        """
        of_members, first_of_members, other_of_members = members
        keys, others = [first_of_members + _salts(of_members)], [other_of_members]
        for salt, text in zip(_salts(rows), texts, strict=True):
            if text:
                first, other = hashes_in(text)
                keys.append(first + salt)
                others.append(other)
        every = np.concatenate(keys)
        order = np.argsort(every, kind="stable")
        return cls(every[order], np.concatenate(others)[order], spared)

    def refuse(self, rows: Ints, first: Hashes, other: Hashes) -> Flags:
        """Return where a row refuses a value: its set has it, or has not what alone is spared."""
        if not len(self.keys):
            return np.zeros(len(rows), np.bool_)
        keys = first + _salts(rows)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        found: Flags = (self.keys[at] == keys) & (self.others[at] == other)
        return found ^ self.spared[rows]


def _salts(rows: Ints) -> Hashes:
    """Return what tells the hashes of each row from those of the others."""
    return rows.astype(np.uint64) * _ODD
