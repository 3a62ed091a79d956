"""What a run takes under NEXT."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from joins.sequences.lockstep.layout import Programs, Scratch, TableElements
from joins.sequences.lockstep.loops.columns import (
    BATCH,
    DOCID,
    END,
    ENTERED,
    H_ELEMENT,
    H_FIRST,
    H_GONE_ON,
    H_LEFT,
    H_NEAR,
    H_NUMBER,
    H_STATEMENT,
    H_STEP,
    H_UNTIL,
    KEY,
    L_AT,
    L_LONGEST,
    L_NEW,
    L_SIZE,
    NEVER,
    NUMBER,
    SETTLED,
    START,
    UNBOUNDED,
)
from joins.sequences.lockstep.loops.conditions import fits
from joins.sequences.lockstep.loops.lines import behind, line_of
from templates.compiling import inlined

__all__ = ["line_size", "to_nearest"]

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@inlined
def line_size(p: Programs, t: TableElements, h: Ints, head: int) -> int:
    """Return how much there is that may be near a head."""
    key, step = t.e[h[head, H_ELEMENT], KEY], h[head, H_STEP]
    return int(t.lines[line_of(p, t, key, h[head, H_STATEMENT], step), L_SIZE])


@inlined
def _until_us(p: Programs, e: Ints, h: Ints, head: int, step: int) -> int:
    """Return when the last element that a run may take in a step may end."""
    statements, statement, last_us = p.statements, h[head, H_STATEMENT], e[h[head, H_ELEMENT], END]
    is_further = step == h[head, H_STEP]
    until_us = min(e[h[head, H_FIRST], START] + statements[statement, 1], UNBOUNDED)
    if step > 0:
        left_us = h[head, H_LEFT] if is_further else last_us
        until_us = min(until_us, left_us + statements[statement, 3 + step])
    if is_further:
        until_us = min(until_us, last_us + statements[statement, 3 + p.steps + step])
    return int(until_us)


@inlined
def _nearest(
    p: Programs,
    t: TableElements,
    h: Ints,
    slots: Doubles,
    near: Ints,
    nears: int,
    head: int,
    step: int,
    is_new: bool,
    s: Scratch,
) -> tuple[int, int, int]:
    """Write the nearest elements that a head may take in a step; return how many they are.

    Of a head that `is_new` everything in the line is looked at, of others what has come in this
    batch.  What fits in a repetition is noted: that is near; how much is noted comes next.  The
    time behind which nothing can be free of it comes last.
    """
    e, arena, last = t.e, t.arena, h[head, H_ELEMENT]
    line = line_of(p, t, e[last, KEY], h[head, H_STATEMENT], step)
    at = t.lines[line, L_AT]
    last_at, number = e[last, DOCID], h[head, H_NUMBER]
    place = behind(e, t.lines, arena, line, e[last, END])
    if not is_new:
        place = max(place, t.lines[line, L_NEW])
    until_us = _until_us(p, e, h, head, step)
    keeps_near = p.repeated[h[head, H_STEP]]
    count, best_at, best_us, past_us = 0, 0, 0, UNBOUNDED
    for i in range(place, t.lines[line, L_SIZE]):
        element = arena[at + i]
        if not is_new and e[element, BATCH] != t.batch:
            continue
        end_us, settled = e[element, END], e[element, SETTLED]
        if end_us > until_us or (count and settled > best_at):
            break
        counts = max(e[element, ENTERED], last_at)
        is_later = count and (counts > best_at or (counts == best_at and end_us > best_us))
        if is_later and not keeps_near:
            continue
        if not fits(p, t, h, slots, head, step, element, s.stack):
            continue
        if keeps_near:
            near[nears, 0], near[nears, 1] = element, h[head, H_NEAR]
            h[head, H_NEAR] = nears
            nears += 1
            if settled or e[element, NUMBER] <= number:
                past_us = min(past_us, end_us)
        if is_later:
            continue
        if not count or counts < best_at or end_us < best_us:
            count, best_at, best_us = 0, counts, end_us
        s.found[count, 0], s.found[count, 1] = step, element
        count += 1
    return count, nears, past_us


@inlined
def _stands_between(e: Ints, near: Ints, each: int, element: int, docid: int) -> bool:
    """Return whether something that the repetition would take stands before an element."""
    docid = max(e[element, SETTLED], e[element, DOCID], docid)
    start_us = e[element, START]
    while each >= 0:
        one = near[each, 0]
        if e[one, END] < start_us and e[one, DOCID] <= docid:
            return True
        each = near[each, 1]
    return False


@inlined
def _out_of_repetition(
    p: Programs,
    t: TableElements,
    h: Ints,
    slots: Doubles,
    near: Ints,
    head: int,
    is_new: bool,
    past_us: int,
    found: int,
    s: Scratch,
) -> int:
    """Write what a head takes in the next step behind what it has found; return how much it is."""
    e, step, last = t.e, h[head, H_STEP] + 1, h[head, H_ELEMENT]
    line = line_of(p, t, e[last, KEY], h[head, H_STATEMENT], step)
    at, longest = t.lines[line, L_AT], t.lines[line, L_LONGEST]
    place = behind(e, t.lines, t.arena, line, e[last, END])
    if not is_new:
        place = max(place, t.lines[line, L_NEW])
    until_us = _until_us(p, e, h, head, step)
    docid = t.numbers[h[head, H_NUMBER]]
    for i in range(place, t.lines[line, L_SIZE]):
        element = t.arena[at + i]
        if not is_new and e[element, BATCH] != t.batch:
            continue
        end_us = e[element, END]
        if end_us > until_us or (is_new and end_us - longest > past_us):
            break
        if _stands_between(e, near, h[head, H_NEAR], element, docid):
            continue
        if fits(p, t, h, slots, head, step, element, s.stack):
            s.found[found, 0], s.found[found, 1] = step, element
            found += 1
    return found


@inlined
def _waits_until(p: Programs, e: Ints, h: Ints, near: Ints, head: int) -> int:
    """Return until when an element may begin that concerns a head."""
    step = h[head, H_STEP]
    is_last, is_repeated = step == p.steps - 1, p.repeated[step]
    if h[head, H_GONE_ON] and (is_last or not is_repeated):
        return NEVER
    past_us = UNBOUNDED
    each = h[head, H_NEAR]
    while each >= 0:
        past_us = min(past_us, e[near[each, 0], END])
        each = near[each, 1]
    until_us = NEVER
    if is_repeated:
        until_us = min(_until_us(p, e, h, head, step), past_us)
    if not is_last:
        further_us = _until_us(p, e, h, head, step + 1)
        until_us = max(until_us, min(further_us, past_us))
    return until_us


@inlined
def to_nearest(
    p: Programs,
    t: TableElements,
    h: Ints,
    slots: Doubles,
    near: Ints,
    nears: int,
    head: int,
    is_new: bool,
    s: Scratch,
) -> tuple[int, int]:
    """Write what a head takes under NEXT; it waits for what concerns it.

    Return how much it is, and how much is near some head.
    """
    step, found = h[head, H_STEP], 0
    is_last, is_repeated = step == p.steps - 1, p.repeated[step]
    if is_repeated or not is_last:
        own = step if is_repeated else step + 1
        found, nears, past_us = _nearest(p, t, h, slots, near, nears, head, own, is_new, s)
        has_gone_on = h[head, H_GONE_ON]
        if found:
            h[head, H_GONE_ON] = 1
        if is_repeated and has_gone_on:
            found = 0
        if is_repeated and not is_last:
            found = _out_of_repetition(p, t, h, slots, near, head, is_new, past_us, found, s)
    h[head, H_UNTIL] = _waits_until(p, t.e, h, near, head)
    return found, nears
