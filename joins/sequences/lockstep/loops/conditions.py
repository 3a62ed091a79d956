"""Whether a run may take an element: windows, what is remembered, and programs over numbers."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from joins.sequences.lockstep.layout import Programs, TableElements
from joins.sequences.lockstep.loops.columns import (
    END,
    H_ELEMENT,
    H_FIRST,
    H_LEFT,
    H_SIZE,
    H_STATEMENT,
    H_STEP,
    ORDER,
    START,
    UNBOUNDED,
    WATERMARK,
)
from templates.chaincode import Op
from templates.compiling import inlined

__all__ = ["fits", "holds"]

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

(
    FALSE, TRUE, CONSTANT, CANDIDATE, PREVIOUS, PREVIOUS_OR, SLOT, OWN_SUM, OWN_EXTREME,
    OWN_AVERAGE, AVERAGE, FIRST, SIZE, R_START, R_END, DURATION, ADD, SUBTRACT, MULTIPLY, DIVIDE,
    REMAINDER, NEGATE, EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST, VALUE, SLOT_OR, JUMP,
) = map(int, Op)  # fmt: skip


@inlined
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


@inlined
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


@inlined
def holds(
    p: Programs,
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
    code, top, is_unbound = p.code, 0, False
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
            found = p.constants[statement, a]
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


@inlined
def _is_remembered(e: Ints, one: int, other: int, retention_us: int) -> bool:
    if retention_us >= UNBOUNDED or e[one, ORDER] == e[other, ORDER]:
        return True
    if e[one, ORDER] > e[other, ORDER]:
        one, other = other, one
    return bool(e[one, END] >= e[other, WATERMARK] - retention_us)


@inlined
def fits(
    p: Programs,
    t: TableElements,
    h: Ints,
    slots: Doubles,
    head: int,
    step: int,
    element: int,
    stack: Doubles,
) -> bool:
    """Return whether a run may take an element in a step: its own one, or the next."""
    e, statements = t.e, p.statements
    statement, last, first = h[head, H_STATEMENT], h[head, H_ELEMENT], h[head, H_FIRST]
    last_us, first_us, end_us = e[last, END], e[first, START], e[element, END]
    is_further = step == h[head, H_STEP]
    if last_us >= e[element, START] or end_us - first_us > statements[statement, 1]:
        return False
    left_us = h[head, H_LEFT] if is_further else last_us
    if step > 0 and end_us - left_us > statements[statement, 3 + step]:
        return False
    if is_further and end_us - last_us > statements[statement, 3 + p.steps + step]:
        return False
    if not _is_remembered(e, first, element, statements[statement, 2]):
        return False
    program, size = statements[statement, 0], h[head, H_SIZE] if is_further else 0
    for which in range(1 if is_further else 0, 2):
        line = p.predicates[program, step, which]
        if p.code[line, 0] != TRUE and not holds(
            p, t.v, slots, line, statement, head, element, last, size, first_us, end_us, stack
        ):
            return False
    return True
