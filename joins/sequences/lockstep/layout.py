"""How elements, heads and conditions stand in arrays: what `kernels` and `runtable` agree on."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "DEEPEST",
    "NEVER_US",
    "NO_LIMIT",
    "Beginnings",
    "ElementColumn",
    "HeadColumn",
    "LineColumn",
    "Programs",
    "Runs",
    "Scratch",
    "TableElements",
]

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

NEVER_US = -(1 << 62)
"""Until when a run waits that waits no more."""

NO_LIMIT = (1 << 63) - 1
"""The document with too many runs where there is none."""


DEEPEST = 32
"""The most values that a program has on its stack."""


class ElementColumn(IntEnum):
    """What an element has: `SOURCE` says whose rows it is of, negative of a document.

    `ORDER` is its place among all instances, `DOCUMENT` the instance, `NUMBER` that of its docid in
    the order in which they came.  `NEXT` is the next element of its document, `BATCH` the one in
    which it entered.  `CHARGE` is how many bytes a run has of it as a text, -1 where a run with it
    has to be listed (`charges`).  `DATA` is the number of what a run says that begins with it.
    """

    START = 0
    END = 1
    DOCID = 2
    ENTERED = 3
    SETTLED = 4
    WATERMARK = 5
    ORDER = 6
    KEY = 7
    SOURCE = 8
    DOCUMENT = 9
    NUMBER = 10
    BATCH = 11
    NEXT = 12
    CAME = 13
    ROW = 14
    CHARGE = 15
    DATA = 16


class HeadColumn(IntEnum):
    """What a run has, as far as it has come: see `chainparts.ChainHead`.

    `NEAR` is the newest entry of the list of elements that may be nearer, `UNTIL` until when an
    element may begin that concerns it.  `NUMBER` and `OLDEST` are those of its newest and its
    oldest docid, `CHARGE` what those of its elements come to, -1 with one of them.
    """

    STATEMENT = 0
    STEP = 1
    ELEMENT = 2
    BEFORE = 3
    FIRST = 4
    SIZE = 5
    LEFT = 6
    NUMBER = 7
    GONE_ON = 8
    NEAR = 9
    UNTIL = 10
    OLDEST = 11
    CHARGE = 12


class LineColumn(IntEnum):
    """A line: elements of a source under one key, by end, somewhere in the room of all lines.

    `NEW` is the first place that was filled in this batch, `LONGEST` the length of the longest,
    `FOUND` the place that was looked for last.
    """

    AT = 0
    SIZE = 1
    ROOM = 2
    NEW = 3
    LONGEST = 4
    FOUND = 5


class Programs(NamedTuple):
    """The programs of a table, as the loops read them.

    `have_folds` says of each program whether runs keep values of FOLD.  `statements` have the
    number of their program, WITHIN, for how long the first element is remembered, and for each step
    the window before it, the gap within it, and the source of its elements, of which the table has
    so many.
    """

    steps: int
    sources: int
    is_contiguous: bool
    is_partitioned: bool
    repeated: npt.NDArray[np.bool_]
    code: Ints
    predicates: Ints
    slots_at: Ints
    slots: Ints
    have_folds: npt.NDArray[np.bool_]
    constants: Doubles
    statements: Ints


class Beginnings(NamedTuple):
    """Groups of statements of one program, whose runs begin with elements of one source.

    They stand by the constant that these are compared with, and the groups of a source where
    `groups_at` says.
    """

    groups_at: Ints
    programs: Ints
    sorted_op: Ints
    sorted_line: Ints
    sorted_at: Ints
    by_constant: Ints
    sorted_constants: Doubles


class TableElements(NamedTuple):
    """Elements and documents, in lines: what runs of a batch look at, and what is too many.

    Where not every key and source has a line, `codes` are theirs in order, and `line_of` the lines.
    `numbers` are the docids by their numbers, `of_document` has the first element of each document.
    So many runs and heads with one newest document, and elements of a run, are not too many; of
    each statement `limits` has the document from which on there are.  Those of one statement that
    say other data are counted by themselves: they are of another group, of `kinds` in a statement.
    """

    e: Ints
    v: Doubles
    lines: Ints
    codes: Ints
    line_of: Ints
    arena: Ints
    numbers: Ints
    of_document: Ints
    limits: Ints
    runs_most: int
    heads_most: int
    elements_most: int
    batch: int
    kinds: int

    def grouped(self, statements: Ints, firsts: Ints, rows: Ints) -> Ints:
        """Return rows of runs of statements that begin with elements, behind their groups."""
        groups = statements * self.kinds + self.e[firsts, ElementColumn.DATA]
        order = np.argsort(groups, kind="stable")
        return np.stack([groups[order], rows[order]], axis=1)


class Runs(NamedTuple):
    """Runs as far as they have come, what they keep, how many; what is near some, how much."""

    h: Ints
    slots: Doubles
    size: int
    near: Ints
    nears: int


class Scratch(NamedTuple):
    """How many runs and heads have each newest document; what a head takes, documents, a stack.

    What is taken is a step and an element.  `state` is how far the runs have come.
    """

    runs: Ints
    heads: Ints
    found: Ints
    best: Ints
    stack: Doubles
    state: Ints

    @classmethod
    def of(cls, elements: int, numbers: int) -> Scratch:
        """Return room for so many elements, and so many docids."""
        return cls(
            np.zeros(numbers, np.int64),
            np.zeros(numbers, np.int64),
            np.empty((2 * elements + 1, 2), np.int64),
            np.empty(elements + 1, np.int64),
            np.empty(DEEPEST),
            np.zeros(16, np.int64),
        )
