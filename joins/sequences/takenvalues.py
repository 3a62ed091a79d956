"""The values for which decided tuples are taken away: sets of hashes, by number.

A set is spelled as its hashes in ascending order, 32 digits each: so it is handed on as a value of
its tuple, and equal sets are equal strings.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from joins.memory.instancetable import Hashes
from joins.memory.ordering import order_by
from joins.memory.slots import Ints

__all__ = ["TakenValues", "hashes_in"]

Texts = npt.NDArray[np.object_]

_DTYPE = np.dtype(">u8")


class TakenValues:
    """Sets by number; 0 is the empty one."""

    def __init__(self) -> None:
        self._sets = [""]

    def add(self, which: Ints, first: Hashes, other: Hashes) -> tuple[Ints, Ints]:
        """Take the set of values of each of some things; return which things, and its number."""
        if not len(which):
            return which, which
        order = order_by(which, first, other)
        which, first, other = which[order], first[order], other[order]
        is_new = np.ones(len(order), np.bool_)
        is_new[1:] = (which[1:] != which[:-1]) | (first[1:] != first[:-1])
        is_new[1:] |= other[1:] != other[:-1]
        which, first, other = which[is_new], first[is_new], other[is_new]
        things, starts = np.unique(which, return_index=True)
        digits = np.stack([first, other], axis=1).astype(_DTYPE).tobytes().hex()
        ends = np.append(starts[1:], len(which))
        begin = len(self._sets)
        self._sets += [
            digits[32 * start : 32 * end]
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        return things, begin + np.arange(len(things))

    def texts(self, numbers: Ints) -> Texts | None:
        """Return the spelling of sets; None where all are empty."""
        if not numbers.any():
            return None
        return np.array([self._sets[number] for number in numbers.tolist()], np.object_)


def hashes_in(text: str) -> tuple[Hashes, Hashes]:
    """Return both hashes of the values of a set that is spelled."""
    first, other = np.frombuffer(bytes.fromhex(text), _DTYPE).reshape(-1, 2).T.astype(np.uint64)
    return first, other
