"""Rows of a table as CSV, in which a number is told from a text of digits.

A number stands as it is, and a text in quotes where it would be read as one: `2` is a number, `"2"`
and `02` are texts.  So what is exported says the same when it is loaded.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from xscl.functions import spell, to_double

__all__ = ["Cell", "read_csv", "spell_csv"]

Cell = str | float

_FIELD = re.compile(r'(?:"((?:[^"]|"")*)"|((?!")[^,\r\n]*))(,|\r\n|\r|\n|\Z)')


def spell_csv(rows: Iterable[Sequence[Cell]]) -> str:
    """Return rows as CSV.

    >>> spell_csv([["Ann", 2.0, "2"], ["a, b", 0.5, "02"]])
    'Ann,2,"2"\\n"a, b",0.5,02\\n'
    """
    return "".join(",".join(map(_spelled, row)) + "\n" for row in rows)


def _spelled(cell: Cell) -> str:
    if isinstance(cell, float):
        return spell(cell)
    if isinstance(_read(cell), float):
        return f'"{cell}"'
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([cell])
    return text.getvalue().removesuffix("\n")


def read_csv(text: str) -> Iterator[list[Cell]]:
    """Yield the rows of CSV; lines without anything in them are left out.

    >>> list(read_csv('Ann,2,"2"\\r\\n"a, b",0.5,02'))
    [['Ann', 2.0, '2'], ['a, b', 0.5, '02']]
    """
    row: list[Cell] = []
    at = 0
    while at < len(text) or row:
        found = _FIELD.match(text, at)
        if found is None:
            raise ValueError(f"a quote that does not end, behind {text[at : at + 20]!r}")
        quoted, plain, end = found.groups()
        row.append(_read(plain) if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if end != ",":
            if row != [""]:
                yield row
            row = []


def _read(text: str) -> Cell:
    """Return a field without quotes: a number where it is spelled as numbers are."""
    number = to_double(text)
    return number if number == number and spell(number) == text else text
