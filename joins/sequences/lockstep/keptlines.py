"""The lines of a table: its elements under one key and source, or its documents under one key.

Where all statements read the same there is a line for each key and step, and its number is
computed.  Where they read elements of many sources few of these have a key, so a line is numbered
when the first of its elements comes, and found by its code; line 0 stays empty there.
"""

from __future__ import annotations

import numpy as np

from joins.memory.slots import Ints, ranges
from joins.sequences.lockstep.forgetting import NOTHING_NEW, kept_lines
from joins.sequences.lockstep.layout import LineColumn

__all__ = ["KeptLines"]

_ROOM = 64
_NONE = np.zeros(0, np.int64)


class KeptLines:
    """Lines by number; each key has `of_key` of them, which are `sparse` if most have nothing."""

    def __init__(self, of_key: int, *, are_sparse: bool) -> None:
        self._of_key = of_key
        self._are_sparse = are_sparse
        self.lines = _empty(1)
        self.arena, self._used = np.empty(_ROOM, np.int64), 0
        self.codes, self.line_of = _NONE, _NONE

    def enter(self, e: Ints, elements: Ints, keys: Ints, own: Ints | int, key_count: int) -> Ints:
        """Put elements into the lines of their keys, of which there are so many.

        `own` says which line of its key it is.  Return the lines.
        """
        from joins.sequences.lockstep.loops.lines import enter

        places = keys * self._of_key + own
        if self._are_sparse:
            places = self._numbers(places)
            self._more(1 + len(self.codes))
        else:
            self._more(key_count * self._of_key)
        entered = enter(e, self.lines, self.arena, self._used, elements, places)
        self.arena, self._used = entered
        return places

    def end_batch(self, places: Ints) -> None:
        """Have lines have nothing new."""
        self.lines[places, LineColumn.NEW] = NOTHING_NEW

    def _numbers(self, codes: Ints) -> Ints:
        """Return the lines with some codes, which are numbered if they are new."""
        new = np.setdiff1d(codes, self.codes)
        if len(new):
            numbers = 1 + len(self.codes) + np.arange(len(new))
            at = np.searchsorted(self.codes, new)
            self.codes = np.insert(self.codes, at, new)
            self.line_of = np.insert(self.line_of, at, numbers)
        found: Ints = self.line_of[np.searchsorted(self.codes, codes)]
        return found

    def _more(self, count: int) -> None:
        if count > len(self.lines):
            more = _empty(max(count, 2 * len(self.lines)))
            more[: len(self.lines)] = self.lines
            self.lines = more

    def keep(self, into: Ints, keys: Ints) -> None:
        """Keep what is kept of elements, under new numbers, and of keys, under theirs."""
        used = keys
        if self._are_sparse:
            # Of line 0 on: the empty one stays.
            sizes = self.lines[self.line_of, LineColumn.SIZE]
            own = self.arena[ranges(self.lines[self.line_of, LineColumn.AT], sizes)]
            of_line = np.repeat(np.arange(len(sizes)), sizes)[into[own] >= 0]
            has = np.bincount(of_line, minlength=len(sizes)) > 0
            used = np.full(1 + len(self.codes), -1)
            used[0] = 0
            used[self.line_of[has]] = 1
            numbers = np.cumsum(used >= 0) - 1
            codes, sources = np.divmod(self.codes[has], self._of_key)
            codes, line_of = keys[codes] * self._of_key + sources, numbers[self.line_of[has]]
            order = np.argsort(codes)
            self.codes, self.line_of = codes[order], line_of[order]
        of_key = 1 if self._are_sparse else self._of_key
        self.lines, own = kept_lines(self.lines, self.arena, into, used, of_key)
        self._used = len(own)
        self.arena = np.concatenate([own, np.empty(_ROOM, np.int64)])


def _empty(count: int) -> Ints:
    lines = np.zeros((count, len(LineColumn)), np.int64)
    lines[:, LineColumn.NEW] = NOTHING_NEW
    return lines
