"""The ways back over a window, as a compiled loop: integers of any size as words of 64 bits.

What is here is imported when it is first of use (`templates.compiling`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from templates.compiling import compiled

__all__ = ["Words", "ways_back"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]


@compiled
def _add(total: Words, more: Words) -> None:
    """Add a number to another, the lowest word first; what is beyond the highest is lost."""
    carry = np.uint64(0)
    for word in range(len(total)):
        old = total[word]
        new = old + more[word]
        with_carry = new + carry
        carry = np.uint64(new < old or with_carry < new)
        total[word] = with_carry


@compiled
def ways_back(
    ends_us: Ints,
    places: Ints,
    bounds: Ints,
    leads: Flags,
    begins: Flags,
    own_place: int,
    slots: int,
    skips: bool,
    words: int,
) -> tuple[Words, float]:
    """Return the ways from all beginnings to an element, in so many words, and as a double.

    Others come by end, all before it.  `places` are those of their numbers in order, among so many
    `slots`, -1 of what is none; behind one may stand what has a place from its bound on.  With
    `skips` it leads to the last only where that may stand behind it at once.  If the double is too
    large for the words, these are not the number.
    """
    size = len(ends_us) + 1
    # Sums by place, from the highest down (Fenwick).
    tree = np.zeros((slots + 1, words), np.uint64)
    rough_tree = np.zeros(slots + 1)
    ways = np.zeros((size, words), np.uint64)
    rough = np.zeros(size)
    total, rough_total = np.zeros(words, np.uint64), 0.0
    ways[size - 1, 0] = 1
    rough[size - 1] = 1.0
    waiting = size
    for at in range(size - 2, -1, -1):
        if at == size - 2 or ends_us[at] < ends_us[at + 1]:
            # Elements that end later may stand behind what comes now.
            while waiting > at + 1:
                waiting -= 1
                place = own_place if waiting == size - 1 else places[waiting]
                if place >= 0 and rough[waiting] > 0:
                    i = slots - place
                    while i <= slots:
                        rough_tree[i] += rough[waiting]
                        _add(tree[i], ways[waiting])
                        i += i & -i
        if not leads[at] or bounds[at] < 0 or (skips and own_place < bounds[at]):
            continue
        i = slots - bounds[at]
        while i > 0:
            rough[at] += rough_tree[i]
            _add(ways[at], tree[i])
            i -= i & -i
        if begins[at]:
            rough_total += rough[at]
            _add(total, ways[at])
    return total, rough_total
