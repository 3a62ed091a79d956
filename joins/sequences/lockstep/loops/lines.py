"""Lines: the elements of a source under one key, by end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from joins.sequences.lockstep.layout import Programs, TableElements
from joins.sequences.lockstep.loops.columns import (
    END,
    L_AT,
    L_FOUND,
    L_LONGEST,
    L_NEW,
    L_ROOM,
    L_SIZE,
    START,
)
from templates.compiling import compiled, inlined

__all__ = ["behind", "enter", "line_of"]

Ints = npt.NDArray[np.int64]


@inlined
def line_of(p: Programs, t: TableElements, key: int, statement: int, step: int) -> int:
    """Return the line of what may be taken in a step; line 0 is empty where not all have one."""
    if p.sources == p.steps:
        return int(key * p.steps + step)
    code = key * p.sources + p.statements[statement, 3 + 2 * p.steps + step]
    low, high = 0, len(t.codes)
    while low < high:
        middle = (low + high) >> 1
        if t.codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    if low < len(t.codes) and t.codes[low] == code:
        return int(t.line_of[low])
    return 0


@inlined
def behind(e: Ints, lines: Ints, arena: Ints, line: int, time_us: int) -> int:
    """Return the place in a line of the first element that ends behind a time.

    It is looked for around the one found last: a run that goes on asks for places that are next to
    each other.
    """
    at, size = lines[line, L_AT], lines[line, L_SIZE]
    step, found = 1, min(lines[line, L_FOUND], size)
    if found and e[arena[at + found - 1], END] > time_us:
        low, high = 0, found - 1
        while step <= high and e[arena[at + high - step], END] > time_us:
            high -= step
            step *= 2
        low = max(low, high - step)
    else:
        low, high = found, size
        while low + step <= size and e[arena[at + low + step - 1], END] <= time_us:
            low += step
            step *= 2
        high = min(high, low + step)
    while low < high:
        middle = (low + high) >> 1
        if e[arena[at + middle], END] <= time_us:
            low = middle + 1
        else:
            high = middle
    lines[line, L_FOUND] = low
    return int(low)


@compiled
def enter(
    e: Ints, lines: Ints, arena: Ints, used: int, entering: Ints, places: Ints
) -> tuple[Ints, int]:
    """Put elements into lines, by end; return the room of all lines, and how much is used."""
    for i in range(len(entering)):
        element, line = entering[i], places[i]
        size = lines[line, L_SIZE]
        if size == lines[line, L_ROOM]:
            room = max(4, 2 * size)
            if used + room > len(arena):
                grown = np.empty(2 * (used + room), np.int64)
                grown[:used] = arena[:used]
                arena = grown
            at = lines[line, L_AT]
            arena[used : used + size] = arena[at : at + size]
            lines[line, L_AT], lines[line, L_ROOM] = used, room
            used += room
        at = lines[line, L_AT]
        place = size
        if size and e[arena[at + size - 1], END] > e[element, END]:
            place = behind(e, lines, arena, line, e[element, END])
            for j in range(size, place, -1):
                arena[at + j] = arena[at + j - 1]
        arena[at + place] = element
        lines[line, L_SIZE] = size + 1
        lines[line, L_NEW] = min(lines[line, L_NEW], place)
        length = e[element, END] - e[element, START]
        lines[line, L_LONGEST] = max(lines[line, L_LONGEST], length)
    return arena, used
