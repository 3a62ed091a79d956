"""The loops that step runs over their elements, compiled (`templates.compiling`).

Each does for many runs what `chained.chains` does for one by one, which is the judge.

    enter        elements that count from a document of the batch on come into lines, by end
    begin        which elements begin a run of which statement
    step_on      runs go on as far as they go, under NEXT, or from document to document
    keep_before  runs are kept that are before others

All of them stand here: compiled code is kept until this file changes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from joins.sequences.lockstep.layout import (
    DEEPEST,
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
from templates.chaincode import Op as _Op
from templates.chaincode import SlotKind
from templates.compiling import borrowed, compiled

__all__ = ["begin", "enter", "keep_before", "step_on"]

_lent = borrowed()

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

UNBOUNDED = 1 << 62
NEVER = int(NEVER_US)

(
    START, END, DOCID, ENTERED, SETTLED, WATERMARK, ORDER, KEY, STEP, DOCUMENT, NUMBER, BATCH,
    NEXT, CAME, ROW, CHARGE,
) = map(int, ElementColumn)  # fmt: skip
(
    H_STATEMENT, H_STEP, H_ELEMENT, H_BEFORE, H_FIRST, H_SIZE, H_LEFT, H_NUMBER, H_GONE_ON, H_NEAR,
    H_UNTIL, H_OLDEST, H_CHARGE,
) = map(int, HeadColumn)  # fmt: skip
L_AT, L_SIZE, L_ROOM, L_NEW, L_LONGEST, L_FOUND = map(int, LineColumn)
(
    FALSE, TRUE, CONSTANT, CANDIDATE, PREVIOUS, PREVIOUS_OR, SLOT, OWN_SUM, OWN_EXTREME,
    OWN_AVERAGE, AVERAGE, FIRST, SIZE, R_START, R_END, DURATION, ADD, SUBTRACT, MULTIPLY, DIVIDE,
    REMAINDER, NEGATE, EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST, VALUE, SLOT_OR, JUMP,
) = map(int, _Op)  # fmt: skip
AT_ASKED, AT_BEGUN, NEXT_HEAD, HEADS, NEARS, HEAD, FOUND, STATEMENT, FIRST_HEAD = range(9)
S_SUM, S_LEAST, S_GREATEST, S_FIRST, S_LAST, S_COUNT, S_FOLD = map(int, SlotKind)


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
    v: Doubles,
    slots: Doubles,
    line: int,
    statement: int,
    head: int,
    candidate: int,
    previous: int,
    size: int,
    first_us: int,
    end_us: int,
    stack: Doubles,
) -> bool:
    """Run a program from a line on; of one that ends with VALUE the value is on the stack.

    `size` is how many elements of its step the run has, `previous` its last one, where there is
    one; it begins at `first_us`, and the candidate ends at `end_us`.
    """
    top, is_unbound = 0, False
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
        if op == JUMP:
            line = a
            continue
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
                found = v[previous, a]
        elif op == PREVIOUS_OR:
            if size == 0:
                continue
            found = v[previous, a]
            line = b
        elif op == SLOT_OR:
            if size == 0:
                continue
            found = slots[head, a]
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
            found = float(end_us)
        elif op == DURATION:
            found = float(end_us - first_us)
        stack[top] = found
        top += 1


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
    """Return the place in a line of the first element that ends behind a time.

    It is looked for around the one found last: runs that go on together ask for places that are
    next to each other.
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
    stack = np.empty(DEEPEST)
    code, constants, e, v, slots = p.code, p.constants, t.e, t.v, r.slots
    statements, by_constant, sorted_constants = p.statements, by.by_constant, by.sorted_constants
    for program in range(len(by.sorted_op)):
        first, last = by.sorted_at[program], by.sorted_at[program + 1]
        op, sorted_line = by.sorted_op[program], by.sorted_line[program]
        line = p.predicates[program, 0, 1]
        for i in range(len(entering)):
            element, low, high = entering[i], first, last
            start_us, end_us = e[element, START], e[element, END]
            if op != FALSE and _run(
                code, constants, v, slots, sorted_line, by_constant[first], -1, element, -1, 0,
                start_us, end_us, stack,
            ):  # fmt: skip
                low, high = _asked_to_begin(op, stack[0], sorted_constants, first, last)
            for at in range(low, high):
                statement = by_constant[at]
                if end_us - start_us > statements[statement, 1]:
                    continue
                if _run(
                    code, constants, v, slots, line, statement, -1, element, -1, 0,
                    start_us, end_us, stack,
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
#
# What is handed from one of these to the next is arrays, and whole numbers come back: an array that
# comes back, or one that is not looked at, would cost as much as a step.


@compiled
def _fits(
    steps: int,
    statements: Ints,
    predicates: Ints,
    code: Ints,
    constants: Doubles,
    e: Ints,
    v: Doubles,
    h: Ints,
    slots: Doubles,
    head: int,
    step: int,
    element: int,
    stack: Doubles,
) -> bool:
    """Return whether a run may take an element in a step: its own one, or the next."""
    statement, last, first = h[head, H_STATEMENT], h[head, H_ELEMENT], h[head, H_FIRST]
    last_us, first_us, end_us = e[last, END], e[first, START], e[element, END]
    is_further = step == h[head, H_STEP]
    if last_us >= e[element, START] or end_us - first_us > statements[statement, 1]:
        return False
    left_us = h[head, H_LEFT] if is_further else last_us
    if step > 0 and end_us - left_us > statements[statement, 3 + step]:
        return False
    if is_further and end_us - last_us > statements[statement, 3 + steps + step]:
        return False
    if not _is_remembered(e, first, element, statements[statement, 2]):
        return False
    program, size = statements[statement, 0], h[head, H_SIZE] if is_further else 0
    for which in range(1 if is_further else 0, 2):
        line = predicates[program, step, which]
        if code[line, 0] != TRUE and not _run(
            code, constants, v, slots, line, statement, head, element, last, size, first_us, end_us,
            stack,
        ):  # fmt: skip
            return False
    return True


@compiled
def _write_head(
    e: Ints, h: Ints, head: int, before: int, statement: int, step: int, element: int
) -> bool:
    """Write a run that has one element more than `before`, or begins (-1).

    Return whether the element is a further one of its step.
    """
    number, charge = e[element, NUMBER], e[element, CHARGE]
    h[head, H_STATEMENT], h[head, H_STEP] = statement, step
    h[head, H_ELEMENT], h[head, H_BEFORE] = element, before
    h[head, H_GONE_ON], h[head, H_NEAR], h[head, H_UNTIL] = 0, -1, NEVER
    if before < 0:
        h[head, H_FIRST], h[head, H_SIZE], h[head, H_LEFT] = element, 1, e[element, START]
        h[head, H_NUMBER], h[head, H_OLDEST], h[head, H_CHARGE] = number, number, charge
        return False
    is_further = h[before, H_STEP] == step
    h[head, H_FIRST] = h[before, H_FIRST]
    h[head, H_SIZE] = h[before, H_SIZE] + 1 if is_further else 1
    h[head, H_LEFT] = h[before, H_LEFT] if is_further else e[h[before, H_ELEMENT], END]
    h[head, H_NUMBER] = max(h[before, H_NUMBER], number)
    h[head, H_OLDEST] = min(h[before, H_OLDEST], number)
    known = h[before, H_CHARGE]
    h[head, H_CHARGE] = -1 if known < 0 or charge < 0 else known + charge
    return bool(is_further)


@compiled
def _keep(
    kinds: Ints,
    first: int,
    last: int,
    v: Doubles,
    slots: Doubles,
    head: int,
    before: int,
    step: int,
    element: int,
    is_further: bool,
) -> None:
    """Write what a run keeps of its elements, with one element more than the run before it."""
    for slot in range(first, last):
        own, kind, column = kinds[slot, 0], kinds[slot, 1], kinds[slot, 2]
        at = slot - first
        known = slots[before, at] if before >= 0 else 0.0
        if own == step and kind != S_FOLD:
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
def _fold(
    p: Programs,
    t: TableElements,
    h: Ints,
    slots: Doubles,
    head: int,
    before: int,
    step: int,
    element: int,
    is_further: bool,
    stack: Doubles,
) -> None:
    """Write the values of FOLD of a run, with one element more than the run before it."""
    statement, e = h[head, H_STATEMENT], t.e
    program = p.statements[statement, 0]
    first = p.slots_at[program]
    last, size = -1, 0
    if before >= 0:
        last, size = h[before, H_ELEMENT], h[before, H_SIZE] if is_further else 0
    first_us, end_us = e[h[head, H_FIRST], START], e[element, END]
    for slot in range(first, p.slots_at[program + 1]):
        if p.slots[slot, 0] == step and p.slots[slot, 1] == S_FOLD:
            is_bound = _run(
                p.code, p.constants, t.v, slots, p.slots[slot, 2], statement, before, element, last,
                size, first_us, end_us, stack,
            )  # fmt: skip
            slots[head, slot - first] = stack[0] if is_bound else math.nan


@compiled
def _is_taken(t: TableElements, h: Ints, head: int, is_last: bool, runs: Ints, heads: Ints) -> int:
    """Return 1 where a run goes on, 0 where its newest document makes too many."""
    statement, number = h[head, H_STATEMENT], h[head, H_NUMBER]
    docid = t.numbers[number]
    if docid >= t.limits[statement]:
        return 0
    heads[number] += 1
    runs[number] += is_last
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
def _next_documents(e: Ints, lines: Ints, arena: Ints, line: int, last: int, best: Ints) -> int:
    """Write the next documents behind an element; return how many they are."""
    at = lines[line, L_AT]
    last_us, last_at = e[last, END], e[last, DOCID]
    count, best_at, best_us = 0, 0, 0
    for i in range(_behind(e, lines, arena, line, last_us), lines[line, L_SIZE]):
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


@compiled
def _to_next_documents(
    p: Programs, t: TableElements, h: Ints, slots: Doubles, head: int, s: Scratch
) -> int:
    """Write what a head takes in the next documents, and return how much: then it is over."""
    e, step, last = t.e, h[head, H_STEP], h[head, H_ELEMENT]
    key = e[last, KEY]
    line = key if p.is_partitioned else 0
    count = _next_documents(e, t.lines, t.arena, line, last, s.best)
    h[head, H_UNTIL] = NEVER if count else UNBOUNDED
    found = 0
    for i in range(count):
        element = t.of_document[s.best[i]]
        while element >= 0:
            own = e[element, STEP]
            may = own == step + 1 or (own == step and p.repeated[step])
            if may and e[element, KEY] == key and _fits(
                p.steps, p.statements, p.predicates, p.code, p.constants, e, t.v, h, slots, head,
                own, element, s.stack,
            ):  # fmt: skip
                s.found[found, 0], s.found[found, 1] = own, element
                found += 1
            element = e[element, NEXT]
    return found


# -- NEXT ----------------------------------------------------------------------------------------


@compiled
def _until_us(steps: int, statements: Ints, e: Ints, h: Ints, head: int, step: int) -> int:
    """Return when the last element that a run may take in a step may end."""
    statement, last_us = h[head, H_STATEMENT], e[h[head, H_ELEMENT], END]
    is_further = step == h[head, H_STEP]
    until_us = min(e[h[head, H_FIRST], START] + statements[statement, 1], UNBOUNDED)
    if step > 0:
        left_us = h[head, H_LEFT] if is_further else last_us
        until_us = min(until_us, left_us + statements[statement, 3 + step])
    if is_further:
        until_us = min(until_us, last_us + statements[statement, 3 + steps + step])
    return int(until_us)


@compiled
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
    line = e[last, KEY] * p.steps + step
    at = t.lines[line, L_AT]
    last_at, number = e[last, DOCID], h[head, H_NUMBER]
    place = _behind(e, t.lines, arena, line, e[last, END])
    if not is_new:
        place = max(place, t.lines[line, L_NEW])
    until_us = _until_us(p.steps, p.statements, e, h, head, step)
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
        if not _fits(
            p.steps, p.statements, p.predicates, p.code, p.constants, e, t.v, h, slots, head, step,
            element, s.stack,
        ):  # fmt: skip
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


@compiled
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


@compiled
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
    line = e[last, KEY] * p.steps + step
    at, longest = t.lines[line, L_AT], t.lines[line, L_LONGEST]
    place = _behind(e, t.lines, t.arena, line, e[last, END])
    if not is_new:
        place = max(place, t.lines[line, L_NEW])
    until_us = _until_us(p.steps, p.statements, e, h, head, step)
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
        if _fits(
            p.steps, p.statements, p.predicates, p.code, p.constants, e, t.v, h, slots, head, step,
            element, s.stack,
        ):  # fmt: skip
            s.found[found, 0], s.found[found, 1] = step, element
            found += 1
    return found


@compiled
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
        until_us = min(_until_us(p.steps, p.statements, e, h, head, step), past_us)
    if not is_last:
        further_us = _until_us(p.steps, p.statements, e, h, head, step + 1)
        until_us = max(until_us, min(further_us, past_us))
    return until_us


@compiled
def _to_nearest(
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


# -- all statements ------------------------------------------------------------------------------


@compiled
def _grown(rows: npt.NDArray[Any], used: int, more: int) -> npt.NDArray[Any]:
    """Return rows with more room behind those that are used."""
    grown = np.empty((2 * (used + more), rows.shape[1]), rows.dtype)
    grown[:used] = rows[:used]
    return grown


@compiled
def _line_size(p: Programs, t: TableElements, h: Ints, head: int) -> int:
    """Return how much there is that may be near a head."""
    key, step = t.e[h[head, H_ELEMENT], KEY], h[head, H_STEP]
    return int(t.lines[key * p.steps + step, L_SIZE])


@compiled
def _next_statement(h: Ints, asked: Ints, at_asked: int, begun: Ints, at_begun: int) -> int:
    """Return the next statement of those that have heads to be asked, or runs that begin."""
    statement = UNBOUNDED
    if at_asked < len(asked):
        statement = h[asked[at_asked], H_STATEMENT]
    if at_begun < len(begun):
        statement = min(statement, begun[at_begun, 0])
    return statement


@compiled
def _write_found(
    p: Programs,
    t: TableElements,
    h: Ints,
    slots: Doubles,
    count: int,
    head: int,
    statement: int,
    found: int,
    s: Scratch,
) -> int:
    """Write the runs that a head becomes with what it has found; return how many there are."""
    program = p.statements[statement, 0]
    first, last = p.slots_at[program], p.slots_at[program + 1]
    for i in range(found):
        step, element = s.found[i, 0], s.found[i, 1]
        is_further = _write_head(t.e, h, count, head, statement, step, element)
        _keep(p.slots, first, last, t.v, slots, count, head, step, element, is_further)
        if p.have_folds[program]:
            _fold(p, t, h, slots, count, head, step, element, is_further, s.stack)
        count += _is_taken(t, h, count, step == p.steps - 1, s.runs, s.heads)
    return count


@compiled
def _step(
    p: Programs,
    t: TableElements,
    h: Ints,
    slots: Doubles,
    near: Ints,
    asked: Ints,
    begun: Ints,
    s: Scratch,
) -> bool:
    """Have runs go on until all have, or there is no more room; return whether all have."""
    state = s.state
    at_asked, at_begun, next_head = state[AT_ASKED], state[AT_BEGUN], state[NEXT_HEAD]
    count, nears, head, found = state[HEADS], state[NEARS], state[HEAD], state[FOUND]
    statement, first, is_new, is_short = state[STATEMENT], state[FIRST_HEAD], True, False
    while True:
        if not found:
            # What waited comes first, then what begins, then what these become.
            head, is_new = -1, True
            if at_asked < len(asked) and h[asked[at_asked], H_STATEMENT] == statement:
                head, is_new = asked[at_asked], False
            elif at_begun < len(begun) and begun[at_begun, 0] == statement:
                s.found[0, 0], s.found[0, 1] = 0, begun[at_begun, 1]
                found = 1
            elif next_head < count:
                head = next_head
            else:
                for each in range(first, count):
                    number = h[each, H_NUMBER]
                    s.runs[number] = s.heads[number] = 0
                if at_asked == len(asked) and at_begun == len(begun):
                    break
                statement = _next_statement(h, asked, at_asked, begun, at_begun)
                first = next_head = count
                continue
            if head >= 0 and p.is_contiguous:
                found = _to_next_documents(p, t, h, slots, head, s)
            elif head >= 0:
                if nears + _line_size(p, t, h, head) > len(near):
                    is_short = True
                    break
                found, nears = _to_nearest(p, t, h, slots, near, nears, head, is_new, s)
            at_asked += not is_new
            at_begun += head < 0
            next_head += head >= 0 and is_new
        if count + found > len(h):
            is_short = True
            break
        count = _write_found(p, t, h, slots, count, head, statement, found, s)
        found = 0
    state[AT_ASKED], state[AT_BEGUN], state[NEXT_HEAD] = at_asked, at_begun, next_head
    state[HEADS], state[NEARS], state[HEAD], state[FOUND] = count, nears, head, found
    state[STATEMENT], state[FIRST_HEAD] = statement, first
    return not is_short


@compiled
def step_on(p: Programs, t: TableElements, r: Runs, s: Scratch, asked: Ints, begun: Ints) -> Runs:
    """Have runs go on; return them with those that they become.

    `asked` are heads that waited, and `begun` pairs of a statement and an element, both in the
    order of statements.  The caller has all arrays while it waits, so they can be lent.
    """
    own_p = Programs(
        p.steps, p.is_contiguous, p.is_partitioned, _lent(p.repeated), _lent(p.code),
        _lent(p.predicates), _lent(p.slots_at), _lent(p.slots), _lent(p.have_folds),
        _lent(p.constants), _lent(p.statements),
    )  # fmt: skip
    own_t = TableElements(
        _lent(t.e), _lent(t.v), _lent(t.lines), _lent(t.arena), _lent(t.numbers),
        _lent(t.of_document), _lent(t.limits), t.runs_most, t.heads_most, t.elements_most, t.batch,
    )  # fmt: skip
    state = s.state
    own_s = Scratch(
        _lent(s.runs), _lent(s.heads), _lent(s.found), _lent(s.best), _lent(s.stack), _lent(state)
    )
    h, slots, near = r.h, r.slots, r.near
    state[NEXT_HEAD] = state[HEADS] = state[FIRST_HEAD] = r.size
    state[NEARS], state[STATEMENT] = r.nears, -1
    while not _step(
        own_p, own_t, _lent(h), _lent(slots), _lent(near), _lent(asked), _lent(begun), own_s
    ):
        if state[FOUND]:
            h = _grown(h, state[HEADS], state[FOUND])
            slots = _grown(slots, state[HEADS], state[FOUND])
        else:
            near = _grown(near, state[NEARS], len(s.best))
    return Runs(h, slots, state[HEADS], near, state[NEARS])


@compiled
def keep_before(h: Ints, are_kept: npt.NDArray[np.bool_]) -> None:
    """Have heads be kept that are before others that are."""
    for head in range(len(h) - 1, -1, -1):
        if are_kept[head] and h[head, H_BEFORE] >= 0:
            are_kept[h[head, H_BEFORE]] = True
