"""The ways back over windows, as a compiled loop: integers of any size as words of 64 bits.

What is here is imported when it is first of use (`templates.compiling`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from templates.compiling import compiled, inlined

__all__ = ["Words", "ways_back"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]


@inlined
def _add(to: Words, row: int, more: Words, of: int, size: int) -> None:
    """Add a number of so many words to another, of as many or more, the lowest word first.

    What is given is to be a name: an element of an array would be read again for each word.
    """
    carry = np.uint64(0)
    for word in range(size):
        old = to[row, word]
        new = old + more[of, word]
        with_carry = new + carry
        carry = np.uint64((new < old) | (with_carry < new))
        to[row, word] = with_carry
    word = size
    while carry:
        new = to[row, word] + carry
        carry = np.uint64(new == 0)
        to[row, word] = new
        word += 1


@compiled
def ways_back(
    ends_us: Ints,
    places: Ints,
    bounds: Ints,
    leads: Flags,
    begins: Flags,
    asked_for: Ints,
    within_us: int,
    slots: int,
    skips: bool,
    words: int,
) -> tuple[Words, Flags]:
    """Return the ways to some elements from all beginnings in their windows, in so many words.

    Elements come by end; `asked_for` are rows of theirs, which ascend.  `places` are those of their
    numbers in order, among so many `slots`, -1 of what is none; behind one may stand what has a
    place from its bound on.  With `skips` it leads to the last only where that may stand behind it
    at once.  The flags say for which elements the words are enough; others have no number.
    """
    found = np.zeros((len(asked_for), words), np.uint64)
    enough = np.ones(len(asked_for), np.bool_)
    # Sums by place, from the highest down (Fenwick); what is in the tree in all is in `total`, and
    # has two bits to spare in as many words as are in use.
    tree = np.zeros((slots + 2, words), np.uint64)
    total = np.zeros((1, words), np.uint64)
    ways = np.zeros((len(ends_us), words), np.uint64)
    sizes = np.zeros(len(ends_us), np.int64)
    one, much = np.uint64(1), np.uint64(1) << np.uint64(62)
    first = 0
    for number in range(len(asked_for)):
        own = asked_for[number]
        while ends_us[first] < ends_us[own] - within_us:
            first += 1
        last = own - 1
        while last >= first and ends_us[last] == ends_us[own]:
            last -= 1
        if begins[own]:
            found[number, 0] = one
        own_place = places[own]
        if own_place < 0:
            continue
        # What leads on to the last has no higher place than that.
        top = own_place + 1 if skips else slots
        for i in range(top + 1):
            for word in range(words):
                tree[i, word] = 0
        for word in range(words):
            total[0, word] = 0
        total[0, 0] = one
        used = 1
        i = top - own_place
        while i <= top:
            tree[i, 0] += one
            i += i & -i
        waiting = last + 1
        for at in range(last, first - 1, -1):
            if at < last and ends_us[at] < ends_us[at + 1]:
                # Elements that end later may stand behind what comes now.
                while waiting > at + 1:
                    waiting -= 1
                    size = sizes[waiting]
                    if size and places[waiting] >= 0:
                        i = top - places[waiting]
                        while i <= top:
                            _add(tree, i, ways, waiting, size)
                            i += i & -i
            sizes[at] = 0
            bound = bounds[at]
            if not leads[at] or bound < 0 or (skips and own_place < bound):
                continue
            for word in range(used):
                ways[at, word] = 0
            i = top - bound
            while i > 0:
                carry = np.uint64(0)
                for word in range(used):
                    old = ways[at, word]
                    new = old + tree[i, word]
                    with_carry = new + carry
                    carry = np.uint64((new < old) | (with_carry < new))
                    ways[at, word] = with_carry
                i -= i & -i
            is_some = False
            for word in range(used):
                if ways[at, word]:
                    is_some = True
            if not is_some:
                continue
            # Their sum is no larger than what is in the tree: it has room.
            if begins[at]:
                _add(found, number, ways, at, used)
            sizes[at] = used
            _add(total, 0, ways, at, used)
            if total[0, used - 1] >= much:
                if used == words:
                    enough[number] = False
                    break
                used += 1
    return found, enough
