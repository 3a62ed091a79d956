"""What a run takes in the next documents: STRICT and PARTITION."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from joins.sequences.lockstep.layout import Programs, Scratch, TableElements
from joins.sequences.lockstep.loops.columns import (
    DOCID,
    DOCUMENT,
    END,
    ENTERED,
    H_ELEMENT,
    H_STATEMENT,
    H_STEP,
    H_UNTIL,
    KEY,
    L_AT,
    L_SIZE,
    NEVER,
    NEXT,
    SETTLED,
    SOURCE,
    START,
    UNBOUNDED,
)
from joins.sequences.lockstep.loops.conditions import fits
from joins.sequences.lockstep.loops.lines import behind
from templates.compiling import inlined

__all__ = ["to_next_documents"]

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@inlined
def _next_documents(t: TableElements, line: int, last: int, best: Ints) -> int:
    """Write the next documents behind an element; return how many they are."""
    e, arena, at = t.e, t.arena, t.lines[line, L_AT]
    last_us, last_at = e[last, END], e[last, DOCID]
    count, best_at, best_us = 0, 0, 0
    for i in range(behind(e, t.lines, arena, line, last_us), t.lines[line, L_SIZE]):
        element = arena[at + i]
        if count and e[element, SETTLED] > best_at:
            break
        if e[element, START] <= last_us:
            continue
        counts, end_us = max(e[element, ENTERED], last_at), e[element, END]
        if count and (counts > best_at or (counts == best_at and end_us > best_us)):
            continue
        if not count or counts < best_at or end_us < best_us:
            count, best_at, best_us = 0, counts, end_us
        best[count] = e[element, DOCUMENT]
        count += 1
    return count


@inlined
def to_next_documents(
    p: Programs, t: TableElements, h: Ints, slots: Doubles, head: int, s: Scratch
) -> int:
    """Write what a head takes in the next documents, and return how much: then it is over."""
    e, step, last = t.e, h[head, H_STEP], h[head, H_ELEMENT]
    key = e[last, KEY]
    line = key if p.is_partitioned else 0
    count = _next_documents(t, line, last, s.best)
    h[head, H_UNTIL] = NEVER if count else UNBOUNDED
    found, first = 0, 3 + 2 * p.steps + step
    own_source = p.statements[h[head, H_STATEMENT], first] if p.repeated[step] else -1
    next_source = -1
    if step + 1 < p.steps:
        next_source = p.statements[h[head, H_STATEMENT], first + 1]
    for i in range(count):
        element = t.of_document[s.best[i]]
        while element >= 0:
            source = e[element, SOURCE]
            own = step if source == own_source else step + 1
            may = source in (own_source, next_source) and e[element, KEY] == key
            if may and fits(p, t, h, slots, head, own, element, s.stack):
                s.found[found, 0], s.found[found, 1] = own, element
                found += 1
            element = e[element, NEXT]
    return found
