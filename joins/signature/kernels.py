"""The slots of pairs that have equal values, as a compiled loop: what `pair` does in arrays.

What is here is imported when it is first of use (`templates.compiling`).  Few slots of a pair are
equal: a bit for each of some last bits of hashes says of most that no slot of the newer instance
has their value.
"""

from __future__ import annotations

import numpy as np

from joins.memory.remembered import Hashes
from joins.memory.slots import Ints
from joins.memory.times import Flags
from templates.compiling import compiled

__all__ = ["equal_slots"]

_PLACES = 1_024
_LAST_BITS = np.uint64(_PLACES - 1)


@compiled
def equal_slots(
    first: Hashes,
    other: Hashes,
    newer: Ints,
    newer_counts: Ints,
    ends: Ints,
    older: Ints,
    older_counts: Ints,
    shared: Flags,
    shared_from: int,
) -> tuple[Ints, Ints, Ints]:
    """Return (pair, newer slot, older slot) of all slots with equal values, pair by pair.

    The slots of an instance are `first[start]` and so on, and `other[start]`.  Those of the newer
    instance that pairs up to `ends` have are `newer`; only the `shared` ones are compared.
    """
    pairs, ones = np.empty(len(older) + 64, np.int64), np.empty(len(older) + 64, np.int64)
    others = np.empty_like(ones)
    has = np.zeros(_PLACES, np.bool_)
    found, pair = 0, 0
    for group in range(len(newer)):
        start, slots = newer[group], newer_counts[group]
        for i in range(start, start + slots):
            if shared[i - shared_from]:
                has[np.int64(first[i] & _LAST_BITS)] = True
        for own in range(pair, ends[group]):
            for j in range(older[own], older[own] + older_counts[own]):
                value = first[j]
                if not has[np.int64(value & _LAST_BITS)]:
                    continue
                if found + slots > len(pairs):
                    pairs = np.concatenate((pairs, np.empty(len(pairs) + slots, np.int64)))
                    ones = np.concatenate((ones, np.empty(len(ones) + slots, np.int64)))
                    others = np.concatenate((others, np.empty(len(others) + slots, np.int64)))
                for i in range(start, start + slots):
                    if first[i] == value and other[i] == other[j] and shared[i - shared_from]:
                        pairs[found], ones[found], others[found] = own, i - start, j - older[own]
                        found += 1
        pair = ends[group]
        for i in range(start, start + slots):
            has[np.int64(first[i] & _LAST_BITS)] = False
    return pairs[:found], ones[:found], others[:found]
