"""The columns of elements, heads and lines, by names that loops have as constants."""

from __future__ import annotations

from joins.sequences.lockstep.layout import NEVER_US, ElementColumn, HeadColumn, LineColumn

__all__ = [
    "BATCH",
    "CHARGE",
    "DOCID",
    "DOCUMENT",
    "END",
    "ENTERED",
    "H_BEFORE",
    "H_CHARGE",
    "H_ELEMENT",
    "H_FIRST",
    "H_GONE_ON",
    "H_LEFT",
    "H_NEAR",
    "H_NUMBER",
    "H_OLDEST",
    "H_SIZE",
    "H_STATEMENT",
    "H_STEP",
    "H_UNTIL",
    "KEY",
    "L_AT",
    "L_FOUND",
    "L_LONGEST",
    "L_NEW",
    "L_ROOM",
    "L_SIZE",
    "NEVER",
    "NEXT",
    "NUMBER",
    "ORDER",
    "SETTLED",
    "SOURCE",
    "START",
    "UNBOUNDED",
    "WATERMARK",
]

UNBOUNDED = 1 << 62
NEVER = int(NEVER_US)

(
    START, END, DOCID, ENTERED, SETTLED, WATERMARK, ORDER, KEY, SOURCE, DOCUMENT, NUMBER, BATCH,
    NEXT, _, _, CHARGE, _,
) = map(int, ElementColumn)  # fmt: skip
(
    H_STATEMENT, H_STEP, H_ELEMENT, H_BEFORE, H_FIRST, H_SIZE, H_LEFT, H_NUMBER, H_GONE_ON, H_NEAR,
    H_UNTIL, H_OLDEST, H_CHARGE,
) = map(int, HeadColumn)  # fmt: skip
L_AT, L_SIZE, L_ROOM, L_NEW, L_LONGEST, L_FOUND = map(int, LineColumn)
