"""Runs go on as far as they go, and those are kept that are before others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from joins.sequences.lockstep.layout import Programs, Runs, Scratch, TableElements
from joins.sequences.lockstep.loops.columns import H_BEFORE, H_NUMBER, H_UNTIL, UNBOUNDED
from joins.sequences.lockstep.loops.contiguous import to_next_documents
from joins.sequences.lockstep.loops.heads import write_found
from joins.sequences.lockstep.loops.nearest import line_size, to_nearest
from templates.compiling import borrowed, compiled, inlined

__all__ = ["keep_before", "step_on"]

_lent = borrowed()

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

AT_ASKED, AT_BEGUN, FOLLOWING, HEADS, NEARS, HEAD, FOUND, GROUP, FIRST_HEAD = range(9)
"""The places of a state."""


@compiled
def _grown(rows: npt.NDArray[Any], used: int, more: int) -> npt.NDArray[Any]:
    """Return rows with more room behind those that are used."""
    grown = np.empty((2 * (used + more), rows.shape[1]), rows.dtype)
    grown[:used] = rows[:used]
    return grown


@inlined
def _next_group(asked: Ints, at_asked: int, begun: Ints, at_begun: int) -> int:
    """Return the next group of those that have heads to be asked, or runs that begin."""
    group = UNBOUNDED
    if at_asked < len(asked):
        group = asked[at_asked, 0]
    if at_begun < len(begun):
        group = min(group, begun[at_begun, 0])
    return group


@inlined
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
    """Have runs go on until all have, or there is no more room; return whether all have.

    A run goes on as far as it goes before the next is looked at, so what it looks at is at hand.
    """
    state = s.state
    at_asked, at_begun, following = state[AT_ASKED], state[AT_BEGUN], state[FOLLOWING]
    count, nears, head, found = state[HEADS], state[NEARS], state[HEAD], state[FOUND]
    group, first, is_short = state[GROUP], state[FIRST_HEAD], False
    while True:
        if not found:
            has_asked = at_asked < len(asked) and asked[at_asked, 0] == group
            if following >= 0 or has_asked:
                is_new = following >= 0
                head = following if is_new else asked[at_asked, 1]
                if not p.is_contiguous and nears + line_size(p, t, h, head) > len(near):
                    is_short = True
                    break
                if is_new:
                    following = h[head, H_UNTIL]
                else:
                    at_asked += 1
                if p.is_contiguous:
                    found = to_next_documents(p, t, h, slots, head, s)
                else:
                    found, nears = to_nearest(p, t, h, slots, near, nears, head, is_new, s)
            elif at_begun < len(begun) and begun[at_begun, 0] == group:
                s.found[0, 0], s.found[0, 1] = 0, begun[at_begun, 1]
                head, found = -1, 1
                at_begun += 1
            else:
                for each in range(first, count):
                    number = h[each, H_NUMBER]
                    s.runs[number] = s.heads[number] = 0
                if at_asked == len(asked) and at_begun == len(begun):
                    break
                group = _next_group(asked, at_asked, begun, at_begun)
                first = count
                continue
        if count + found > len(h):
            is_short = True
            break
        count, following = write_found(
            p, t, h, slots, count, head, group // t.kinds, found, following, s
        )
        found = 0
    state[AT_ASKED], state[AT_BEGUN], state[FOLLOWING] = at_asked, at_begun, following
    state[HEADS], state[NEARS], state[HEAD], state[FOUND] = count, nears, head, found
    state[GROUP], state[FIRST_HEAD] = group, first
    return not is_short


@compiled
def step_on(p: Programs, t: TableElements, r: Runs, s: Scratch, asked: Ints, begun: Ints) -> Runs:
    """Have runs go on; return them with those that they become.

    `asked` are heads that waited, and `begun` elements, each behind its group and in the order of
    these.  The caller has all arrays while it waits, so they can be lent.
    """
    own_p = Programs(
        p.steps, p.sources, p.is_contiguous, p.is_partitioned, _lent(p.repeated), _lent(p.code),
        _lent(p.predicates), _lent(p.slots_at), _lent(p.slots), _lent(p.have_folds),
        _lent(p.constants), _lent(p.statements),
    )  # fmt: skip
    own_t = TableElements(
        _lent(t.e), _lent(t.v), _lent(t.lines), _lent(t.codes), _lent(t.line_of), _lent(t.arena),
        _lent(t.numbers), _lent(t.of_document), _lent(t.limits), t.runs_most, t.heads_most,
        t.elements_most, t.batch, t.kinds,
    )  # fmt: skip
    state = s.state
    own_s = Scratch(
        _lent(s.runs), _lent(s.heads), _lent(s.found), _lent(s.best), _lent(s.stack), _lent(state)
    )
    h, slots, near = r.h, r.slots, r.near
    state[HEADS] = state[FIRST_HEAD] = r.size
    state[NEARS], state[GROUP], state[FOLLOWING] = r.nears, -1, -1
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
