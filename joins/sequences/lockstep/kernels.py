"""The loops that step runs over their elements, compiled (`templates.compiling`).

Each does for many runs what `chained.chains` does for one by one, which is the judge.

    enter     elements that count from a document of the batch on come into lines, by end
    begin     which elements begin a run of which statement
    step_on   runs go on as far as they go, under NEXT, or from document to document

All of them stand here: compiled code is kept until this file changes.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from joins.sequences.lockstep.layout import (
    NEVER_US,
    Beginnings,
    ElementColumn,
    HeadColumn,
    LineColumn,
    Programs,
    Runs,
    Scratch,
    TableElements,
)
from templates.chainprograms import Op as _Op
from templates.chainprograms import SlotKind
from templates.compiling import compiled

__all__ = ["begin", "enter", "step_on"]

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

UNBOUNDED = 1 << 62
NEVER = int(NEVER_US)
_DEEPEST = 32

(
    START, END, DOCID, ENTERED, SETTLED, WATERMARK, ORDER, KEY, STEP, DOCUMENT, NUMBER, BATCH,
    NEXT, CAME, ROW, CHARGE,
) = map(int, ElementColumn)  # fmt: skip
(
    H_STATEMENT, H_STEP, H_ELEMENT, H_BEFORE, H_FIRST, H_SIZE, H_LEFT, H_NUMBER, H_GONE_ON, H_NEAR,
    H_UNTIL, H_OLDEST, H_CHARGE,
) = map(int, HeadColumn)  # fmt: skip
L_AT, L_SIZE, L_ROOM, L_NEW, L_LONGEST = map(int, LineColumn)
(
    FALSE, TRUE, CONSTANT, CANDIDATE, PREVIOUS, PREVIOUS_OR, SLOT, OWN_SUM, OWN_EXTREME,
    OWN_AVERAGE, AVERAGE, FIRST, SIZE, R_START, R_END, DURATION, ADD, SUBTRACT, MULTIPLY, DIVIDE,
    REMAINDER, NEGATE, EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST, VALUE,
) = map(int, _Op)  # fmt: skip
S_SUM, S_LEAST, S_GREATEST, S_FIRST, S_LAST, S_COUNT = map(int, SlotKind)


@compiled
def _calculated(op: int, left: float, right: float) -> float:
    """Return what arithmetic gives, as `xscl.evaluation` says."""
    if op == ADD:
        return left + right
    if op == SUBTRACT:
        return left - right
    if op == MULTIPLY:
        return left * right
    if op == DIVIDE:
        if right != 0.0:
            return left / right
        if left == 0.0 or left != left or right != right:
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    if math.isinf(left) or right == 0.0 or right != right:
        return math.nan
    return float(np.fmod(left, right))


@compiled
def _compares(op: int, left: float, right: float) -> bool:
    if left != left or right != right:
        return False
    if op == EQUAL:
        return left == right
    if op == UNEQUAL:
        return left != right
    if op == LESS:
        return left < right
    if op == AT_MOST:
        return left <= right
    if op == GREATER:
        return left > right
    return left >= right


@compiled
def _run(
    code: Ints,
    constants: Doubles,
    e: Ints,
    v: Doubles,
    h: Ints,
    slots: Doubles,
    line: int,
    statement: int,
    head: int,
    candidate: int,
    size: int,
    stack: Doubles,
) -> bool:
    """Run a program from a line on; of one that ends with VALUE the value is on the stack.

    `size` is how many elements of its step the run has, and `head` is -1 where it has none at all.
    """
    top, is_unbound = 0, False
    first_us = e[candidate, START] if head < 0 else e[h[head, H_FIRST], START]
    while True:
        op, a, b = code[line, 0], code[line, 1], code[line, 2]
        line += 1
        if op >= EQUAL and op <= AT_LEAST:
            top = 0
            if not is_unbound and not _compares(op, stack[0], stack[1]):
                line = a
            is_unbound = False
            continue
        if op == FALSE:
            return False
        if op == TRUE:
            return True
        if op == VALUE:
            return not is_unbound
        if op == NEGATE:
            stack[top - 1] = -stack[top - 1]
            continue
        if op >= ADD and op <= REMAINDER:
            top -= 1
            stack[top - 1] = _calculated(op, stack[top - 1], stack[top])
            continue
        found = math.nan
        if op == CONSTANT:
            found = constants[statement, a]
        elif op == CANDIDATE:
            found = v[candidate, a]
        elif op == PREVIOUS:
            if size == 0:
                is_unbound = True
            else:
                found = v[h[head, H_ELEMENT], a]
        elif op == PREVIOUS_OR:
            if size == 0:
                continue
            found = v[h[head, H_ELEMENT], a]
            line = b
        elif op == SLOT:
            found = slots[head, a]
        elif op == OWN_SUM:
            found = 0.0 if size == 0 else slots[head, a]
        elif op == OWN_EXTREME:
            if size == 0:
                is_unbound = True
            else:
                found = slots[head, a]
        elif op == OWN_AVERAGE:
            if size == 0:
                is_unbound = True
            else:
                found = slots[head, a] / size
        elif op == AVERAGE:
            found = slots[head, a] / slots[head, b]
        elif op == FIRST:
            found = v[candidate, b] if size == 0 else slots[head, a]
        elif op == SIZE:
            found = float(size)
        elif op == R_START:
            found = float(first_us)
        elif op == R_END:
            found = float(e[candidate, END])
        elif op == DURATION:
            found = float(e[candidate, END] - first_us)
        stack[top] = found
        top += 1


@compiled
def _holds(
    p: Programs,
    t: TableElements,
    r: Runs,
    line: int,
    statement: int,
    head: int,
    candidate: int,
    size: int,
    stack: Doubles,
) -> bool:
    """Run a program; it is handed the arrays that it reads, each of which costs."""
    return _run(
        p.code,
        p.constants,
        t.e,
        t.v,
        r.h,
        r.slots,
        line,
        statement,
        head,
        candidate,
        size,
        stack,
    )


@compiled
def _is_remembered(e: Ints, one: int, other: int, retention_us: int) -> bool:
    if retention_us >= UNBOUNDED or e[one, ORDER] == e[other, ORDER]:
        return True
    if e[one, ORDER] > e[other, ORDER]:
        one, other = other, one
    return bool(e[one, END] >= e[other, WATERMARK] - retention_us)


# -- lines ---------------------------------------------------------------------------------------


@compiled
def _behind(e: Ints, lines: Ints, arena: Ints, line: int, time_us: int) -> int:
    """Return the place in a line of the first element that ends behind a time."""
    at = lines[line, L_AT]
    low, high = 0, lines[line, L_SIZE]
    while low < high:
        middle = (low + high) >> 1
        if e[arena[at + middle], END] <= time_us:
            low = middle + 1
        else:
            high = middle
    return low


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
            place = _behind(e, lines, arena, line, e[element, END])
            for j in range(size, place, -1):
                arena[at + j] = arena[at + j - 1]
        arena[at + place] = element
        lines[line, L_SIZE] = size + 1
        lines[line, L_NEW] = min(lines[line, L_NEW], place)
        length = e[element, END] - e[element, START]
        lines[line, L_LONGEST] = max(lines[line, L_LONGEST], length)
    return arena, used


# -- how a run begins ----------------------------------------------------------------------------


@compiled
def begin(p: Programs, by: Beginnings, t: TableElements, r: Runs, entering: Ints) -> Ints:
    """Return pairs of a statement and an element with which a run of it begins.

    Most elements begin none, so what is asked of each is asked of arrays at hand.
    """
    found, count = np.empty((64, 2), np.int64), 0
    stack = np.empty(_DEEPEST)
    code, constants, e, v, h, slots = p.code, p.constants, t.e, t.v, r.h, r.slots
    statements, by_constant, sorted_constants = p.statements, by.by_constant, by.sorted_constants
    for program in range(len(by.sorted_op)):
        first, last = by.sorted_at[program], by.sorted_at[program + 1]
        op, sorted_line = by.sorted_op[program], by.sorted_line[program]
        line = p.predicates[program, 0, 1]
        for i in range(len(entering)):
            element, low, high = entering[i], first, last
            if op != FALSE and _run(
                code, constants, e, v, h, slots, sorted_line, by_constant[first], -1, element, 0,
                stack,
            ):  # fmt: skip
                low, high = _asked_to_begin(op, stack[0], sorted_constants, first, last)
            for at in range(low, high):
                statement = by_constant[at]
                if e[element, END] - e[element, START] > statements[statement, 1]:
                    continue
                if _run(
                    code, constants, e, v, h, slots, line, statement, -1, element, 0, stack
                ):  # fmt: skip
                    if count == len(found):
                        grown = np.empty((2 * count, 2), np.int64)
                        grown[:count] = found
                        found = grown
                    found[count, 0], found[count, 1] = statement, element
                    count += 1
    return found[:count].copy()


@compiled
def _asked_to_begin(
    op: int, value: float, constants: Doubles, first: int, last: int
) -> tuple[int, int]:
    """Return the places of the statements that may begin with an element that has a value.

    One comparison is of the value and a constant, and statements stand by their constants.
    """
    if value != value:
        return first, first
    least = _place(constants, first, last, value, False)
    above = _place(constants, least, last, value, True)
    if op == EQUAL:
        return least, above
    if op == LESS:
        return above, last
    if op == AT_MOST:
        return least, last
    return first, least if op == GREATER else above


@compiled
def _place(constants: Doubles, low: int, high: int, value: float, is_behind: bool) -> int:
    """Return the place of a value in sorted constants: before those that equal it, or behind."""
    while low < high:
        middle = (low + high) >> 1
        if constants[middle] < value or (is_behind and constants[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


# -- how a run goes on ---------------------------------------------------------------------------


@compiled
def _fits(
    p: Programs, t: TableElements, r: Runs, head: int, step: int, element: int, stack: Doubles
) -> bool:
    """Return whether a run may take an element in a step: its own one, or the next."""
    e, h = t.e, r.h
    statement, last, first = h[head, H_STATEMENT], h[head, H_ELEMENT], h[head, H_FIRST]
    is_further = step == h[head, H_STEP]
    end_us = e[element, END]
    if e[last, END] >= e[element, START]:
        return False
    if end_us - e[first, START] > p.statements[statement, 1]:
        return False
    left_us = h[head, H_LEFT] if is_further else e[last, END]
    if step > 0 and end_us - left_us > p.statements[statement, 3 + step]:
        return False
    if is_further and end_us - e[last, END] > p.statements[statement, 3 + p.steps + step]:
        return False
    if not _is_remembered(e, first, element, p.statements[statement, 2]):
        return False
    program = p.statements[statement, 0]
    size = h[head, H_SIZE] if is_further else 0
    if not is_further:
        line = p.predicates[program, step, 0]
        if not _holds(p, t, r, line, statement, head, element, size, stack):
            return False
    line = p.predicates[program, step, 1]
    return _holds(p, t, r, line, statement, head, element, size, stack)


@compiled
def _with_head(
    p: Programs,
    t: TableElements,
    r: Runs,
    before: int,
    statement: int,
    step: int,
    element: int,
    scratch: Scratch,
) -> Runs:
    """Return the runs with one more, which has one element more than `before`, or begins (-1)."""
    h, slots, count = r.h, r.slots, r.size
    if count == len(h):
        h, slots = (
            np.empty((2 * count, h.shape[1]), np.int64),
            np.empty((2 * count, slots.shape[1])),
        )
        h[:count], slots[:count] = r.h, r.slots
    e = t.e
    is_further = before >= 0 and h[before, H_STEP] == step
    h[count, H_STATEMENT], h[count, H_STEP] = statement, step
    h[count, H_ELEMENT], h[count, H_BEFORE] = element, before
    h[count, H_GONE_ON], h[count, H_NEAR], h[count, H_UNTIL] = 0, -1, NEVER
    if before < 0:
        h[count, H_FIRST], h[count, H_SIZE] = element, 1
        h[count, H_LEFT], h[count, H_NUMBER] = e[element, START], e[element, NUMBER]
        h[count, H_OLDEST], h[count, H_CHARGE] = e[element, NUMBER], e[element, CHARGE]
    else:
        h[count, H_FIRST] = h[before, H_FIRST]
        h[count, H_SIZE] = h[before, H_SIZE] + 1 if is_further else 1
        h[count, H_LEFT] = h[before, H_LEFT] if is_further else e[h[before, H_ELEMENT], END]
        h[count, H_NUMBER] = max(h[before, H_NUMBER], e[element, NUMBER])
        h[count, H_OLDEST] = min(h[before, H_OLDEST], e[element, NUMBER])
        charge, more = h[before, H_CHARGE], e[element, CHARGE]
        h[count, H_CHARGE] = -1 if charge < 0 or more < 0 else charge + more
    _keep(p, t.v, slots, count, before, p.statements[statement, 0], step, element, is_further)
    count += _is_taken(p, t, h, count, scratch)
    return Runs(h, slots, count, r.near, r.nears)


@compiled
def _keep(
    p: Programs,
    v: Doubles,
    slots: Doubles,
    head: int,
    before: int,
    program: int,
    step: int,
    element: int,
    is_further: bool,
) -> None:
    """Write what a run keeps of its elements, with one element more than the run before it."""
    for slot in range(p.slots_at[program], p.slots_at[program + 1]):
        own, kind, column = p.slots[slot, 0], p.slots[slot, 1], p.slots[slot, 2]
        at = slot - p.slots_at[program]
        known = slots[before, at] if before >= 0 else 0.0
        if own == step:
            value = v[element, column] if kind != S_COUNT else 1.0
            if not is_further:
                known = 0.0 + value if kind == S_SUM else value
            elif kind in (S_SUM, S_COUNT):
                known = known + value
            elif kind == S_LEAST:
                if value != value or value < known:
                    known = value
            elif kind == S_GREATEST:
                if value != value or value > known:
                    known = value
            elif kind == S_LAST:
                known = value
        slots[head, at] = known


@compiled
def _is_taken(p: Programs, t: TableElements, h: Ints, head: int, scratch: Scratch) -> int:
    """Return 1 where a run goes on, 0 where its newest document makes too many."""
    statement, number = h[head, H_STATEMENT], h[head, H_NUMBER]
    docid = t.numbers[number]
    if docid >= t.limits[statement]:
        return 0
    runs, heads = scratch.runs, scratch.heads
    heads[number] += 1
    runs[number] += h[head, H_STEP] == p.steps - 1
    if (
        runs[number] <= t.runs_most
        and heads[number] <= t.heads_most
        and h[head, H_SIZE] <= t.elements_most
    ):
        return 1
    t.limits[statement] = docid
    runs[number] = heads[number] = 0
    return 0


# -- STRICT, PARTITION ---------------------------------------------------------------------------


@compiled
def _next_documents(
    p: Programs, t: TableElements, r: Runs, head: int, best: Ints
) -> tuple[Ints, int]:
    """Return the next documents behind a head, and how many they are."""
    e, lines = t.e, t.lines
    last = r.h[head, H_ELEMENT]
    line = e[last, KEY] if p.is_partitioned else 0
    at = lines[line, L_AT]
    count, best_at, best_us = 0, 0, 0
    for i in range(_behind(e, lines, t.arena, line, e[last, END]), lines[line, L_SIZE]):
        element = t.arena[at + i]
        if count and e[element, SETTLED] > best_at:
            break
        if e[element, START] <= e[last, END]:
            continue
        counts, end_us = max(e[element, ENTERED], e[last, DOCID]), e[element, END]
        if count and (counts > best_at or (counts == best_at and end_us > best_us)):
            continue
        if not count or counts < best_at or end_us < best_us:
            count, best_at, best_us = 0, counts, end_us
        best = _with_one(best, count, e[element, DOCUMENT])
        count += 1
    return best, count


@compiled
def _with_one(values: Ints, count: int, value: int) -> Ints:
    """Return values with one more at a place, perhaps in more room."""
    if count == len(values):
        more = np.empty(2 * count, np.int64)
        more[:count] = values
        values = more
    values[count] = value
    return values


@compiled
def _to_next_documents(p: Programs, t: TableElements, r: Runs, head: int, scratch: Scratch) -> Runs:
    """Return the runs with those that a head becomes in the next documents: then it is over."""
    statement, step = r.h[head, H_STATEMENT], r.h[head, H_STEP]
    best, count = _next_documents(p, t, r, head, np.empty(4, np.int64))
    r.h[head, H_UNTIL] = NEVER if count else UNBOUNDED
    for i in range(count):
        element = t.of_document[best[i]]
        while element >= 0:
            own = t.e[element, STEP]
            may = own == step + 1 or (own == step and p.repeated[step])
            is_same = t.e[element, KEY] == t.e[r.h[head, H_ELEMENT], KEY]
            if may and is_same and _fits(p, t, r, head, own, element, scratch.stack):
                r = _with_head(p, t, r, head, statement, own, element, scratch)
            element = t.e[element, NEXT]
    return r


# -- NEXT ----------------------------------------------------------------------------------------


@compiled
def _until_us(p: Programs, e: Ints, h: Ints, head: int, step: int) -> int:
    """Return when the last element that a run may take in a step may end."""
    statement, last = h[head, H_STATEMENT], h[head, H_ELEMENT]
    is_further = step == h[head, H_STEP]
    until_us = min(e[h[head, H_FIRST], START] + p.statements[statement, 1], UNBOUNDED)
    if step > 0:
        left_us = h[head, H_LEFT] if is_further else e[last, END]
        until_us = min(until_us, left_us + p.statements[statement, 3 + step])
    if is_further:
        until_us = min(until_us, e[last, END] + p.statements[statement, 3 + p.steps + step])
    return int(until_us)


@compiled
def _nearest(
    p: Programs, t: TableElements, r: Runs, head: int, step: int, is_new: bool, scratch: Scratch
) -> tuple[Runs, Ints, int, int]:
    """Return the nearest elements that a head may take in a step, and how many they are.

    Of a head that `is_new` everything in the line is looked at, of others what has come in this
    batch.  What fits in a repetition is noted: that is near.  The time behind which nothing can be
    free of it comes last.
    """
    e, h, near, nears = t.e, r.h, r.near, r.nears
    last = h[head, H_ELEMENT]
    line = e[last, KEY] * p.steps + step
    at = t.lines[line, L_AT]
    place = _behind(e, t.lines, t.arena, line, e[last, END])
    if not is_new:
        place = max(place, t.lines[line, L_NEW])
    until_us = _until_us(p, e, h, head, step)
    keeps_near = p.repeated[h[head, H_STEP]]
    best, count = np.empty(4, np.int64), 0
    best_at, best_us, past_us = 0, 0, UNBOUNDED
    for i in range(place, t.lines[line, L_SIZE]):
        element = t.arena[at + i]
        if not is_new and e[element, BATCH] != t.batch:
            continue
        end_us = e[element, END]
        if end_us > until_us or (count and e[element, SETTLED] > best_at):
            break
        counts = max(e[element, ENTERED], e[last, DOCID])
        is_later = count and (counts > best_at or (counts == best_at and end_us > best_us))
        if is_later and not keeps_near:
            continue
        if not _fits(p, t, r, head, step, element, scratch.stack):
            continue
        if keeps_near:
            if nears == len(near):
                grown = np.empty((2 * nears, 2), np.int64)
                grown[:nears] = near
                near = grown
            near[nears, 0], near[nears, 1] = element, h[head, H_NEAR]
            h[head, H_NEAR] = nears
            nears += 1
            if e[element, SETTLED] or e[element, NUMBER] <= h[head, H_NUMBER]:
                past_us = min(past_us, end_us)
        if is_later:
            continue
        if not count or counts < best_at or end_us < best_us:
            count, best_at, best_us = 0, counts, end_us
        best = _with_one(best, count, element)
        count += 1
    return Runs(h, r.slots, r.size, near, nears), best, count, past_us


@compiled
def _stands_between(t: TableElements, r: Runs, head: int, element: int) -> bool:
    """Return whether something that the repetition would take stands before an element."""
    docid = max(t.e[element, SETTLED], t.e[element, DOCID])
    docid = max(docid, t.numbers[r.h[head, H_NUMBER]])
    each = r.h[head, H_NEAR]
    while each >= 0:
        one = r.near[each, 0]
        if t.e[one, END] < t.e[element, START] and t.e[one, DOCID] <= docid:
            return True
        each = r.near[each, 1]
    return False


@compiled
def _out_of_repetition(
    p: Programs, t: TableElements, r: Runs, head: int, is_new: bool, past_us: int, scratch: Scratch
) -> Runs:
    """Return the runs with those that go on from a repetition to the next step."""
    e, statement, step = t.e, r.h[head, H_STATEMENT], r.h[head, H_STEP] + 1
    last = r.h[head, H_ELEMENT]
    line = e[last, KEY] * p.steps + step
    place = _behind(e, t.lines, t.arena, line, e[last, END])
    if not is_new:
        place = max(place, t.lines[line, L_NEW])
    until_us = _until_us(p, e, r.h, head, step)
    for i in range(place, t.lines[line, L_SIZE]):
        element = t.arena[t.lines[line, L_AT] + i]
        if not is_new and e[element, BATCH] != t.batch:
            continue
        if e[element, END] > until_us:
            break
        if is_new and e[element, END] - t.lines[line, L_LONGEST] > past_us:
            break
        if _stands_between(t, r, head, element):
            continue
        if _fits(p, t, r, head, step, element, scratch.stack):
            r = _with_head(p, t, r, head, statement, step, element, scratch)
    return r


@compiled
def _waits_until(p: Programs, e: Ints, r: Runs, head: int) -> int:
    """Return until when an element may begin that concerns a head."""
    step = r.h[head, H_STEP]
    is_last, is_repeated = step == p.steps - 1, p.repeated[step]
    if r.h[head, H_GONE_ON] and (is_last or not is_repeated):
        return NEVER
    past_us = UNBOUNDED
    each = r.h[head, H_NEAR]
    while each >= 0:
        past_us = min(past_us, e[r.near[each, 0], END])
        each = r.near[each, 1]
    until_us = NEVER
    if is_repeated:
        until_us = max(until_us, min(_until_us(p, e, r.h, head, step), past_us))
    if not is_last:
        until_us = max(until_us, min(_until_us(p, e, r.h, head, step + 1), past_us))
    return until_us


@compiled
def _to_nearest(
    p: Programs, t: TableElements, r: Runs, head: int, is_new: bool, scratch: Scratch
) -> Runs:
    """Return the runs with those that a head becomes under NEXT; it waits for what concerns it."""
    statement, step = r.h[head, H_STATEMENT], r.h[head, H_STEP]
    past_us = UNBOUNDED
    if p.repeated[step]:
        r, best, count, past_us = _nearest(p, t, r, head, step, is_new, scratch)
        if not r.h[head, H_GONE_ON]:
            r.h[head, H_GONE_ON] = count > 0
            for i in range(count):
                r = _with_head(p, t, r, head, statement, step, best[i], scratch)
        if step < p.steps - 1:
            r = _out_of_repetition(p, t, r, head, is_new, past_us, scratch)
    elif step < p.steps - 1:
        r, best, count, _ = _nearest(p, t, r, head, step + 1, is_new, scratch)
        if count:
            r.h[head, H_GONE_ON] = 1
        for i in range(count):
            r = _with_head(p, t, r, head, statement, step + 1, best[i], scratch)
    r.h[head, H_UNTIL] = _waits_until(p, t.e, r, head)
    return r


# -- all statements ------------------------------------------------------------------------------


@compiled
def step_on(p: Programs, t: TableElements, r: Runs, asked: Ints, begun: Ints) -> Runs:
    """Have runs go on; return them with those that they become.

    `asked` are heads that waited, and `begun` pairs of a statement and an element, both in the
    order of statements.
    """
    size = len(t.numbers)
    scratch = Scratch(np.zeros(size, np.int64), np.zeros(size, np.int64), np.empty(_DEEPEST))
    at_asked, at_begun = 0, 0
    while at_asked < len(asked) or at_begun < len(begun):
        statement = UNBOUNDED
        if at_asked < len(asked):
            statement = r.h[asked[at_asked], H_STATEMENT]
        if at_begun < len(begun):
            statement = min(statement, begun[at_begun, 0])
        first = head = r.size
        # What waited comes first, then what begins, then what these become.
        while at_asked < len(asked) and r.h[asked[at_asked], H_STATEMENT] == statement:
            r = _gone_on(p, t, r, asked[at_asked], False, scratch)
            at_asked += 1
        while at_begun < len(begun) and begun[at_begun, 0] == statement:
            r = _with_head(p, t, r, -1, statement, 0, begun[at_begun, 1], scratch)
            at_begun += 1
        while head < r.size:
            r = _gone_on(p, t, r, head, True, scratch)
            head += 1
        for each in range(first, r.size):
            number = r.h[each, H_NUMBER]
            scratch.runs[number] = scratch.heads[number] = 0
    return r


@compiled
def _gone_on(
    p: Programs, t: TableElements, r: Runs, head: int, is_new: bool, scratch: Scratch
) -> Runs:
    if p.is_contiguous:
        return _to_next_documents(p, t, r, head, scratch)
    return _to_nearest(p, t, r, head, is_new, scratch)
