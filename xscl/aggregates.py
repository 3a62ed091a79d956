"""Aggregates in the SELECT clause of a statement with WINDOW.

They look like functions of XPath 2.0 but are none: `count()`, `count(distinct x)`, `argmax(x, y)`.
So each is taken out of an expression before that is read as XPath.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xscl.signatures import ROW_AGGREGATES

__all__ = ["AggregateCall", "take_aggregates", "with_keys"]

_PRIMED = r"(?P<primed>[^\W\d][\w.-]*'+(?!\w))"
"""A variable that ends in primes, which are no quotes."""

_CALL = re.compile(
    rf"{_PRIMED}|"
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
    rf"|(?<![\w.$:@/-])(?P<name>{'|'.join(sorted(ROW_AGGREGATES))})\s*\("
)
_PART = re.compile(rf"{_PRIMED}|" r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[()\[\],]")
_DISTINCT = re.compile(r"\s*distinct\s+(?=[\w$(])")


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate at an offset of an expression: its name and text, its arguments with theirs."""

    name: str
    offset: int
    text: str
    arguments: tuple[tuple[str, int], ...]


def take_aggregates(expression: str) -> tuple[str, list[AggregateCall]]:
    """Return an expression with a number in the place of each aggregate, as long, and these.

    >>> take_aggregates("count(distinct x) + 1")[0]
    '0                 + 1'
    """
    calls: list[AggregateCall] = []
    pieces: list[str] = []
    position = 0
    for found in _CALL.finditer(expression):
        if found["name"] is None or found.start() < position:
            continue
        end, arguments = _arguments(expression, found.end())
        calls.append(
            AggregateCall(found["name"], found.start(), expression[found.start() : end], arguments)
        )
        pieces.append(expression[position : found.start()] + "0".ljust(end - found.start()))
        position = end
    return "".join(pieces) + expression[position:], calls


def with_keys(expression: str, keys: Sequence[str], variable: str) -> str:
    """Return an expression with a variable, whose name ends in its number, for each key.

    >>> with_keys("concat('k', k, k/x)", ["k"], "row.")
    "concat('k', $row.0, k/x)"
    """
    texts = "|".join(map(re.escape, sorted(keys, key=len, reverse=True)))
    if not texts:
        return expression
    key = rf"(?<![\w$./@:-])\$?(?P<key>{texts})(?![\w./@:\['(-])"
    string = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""

    def put(found: re.Match[str]) -> str:
        text = found["key"]
        return found.group() if text is None else f"${variable}{keys.index(text)}"

    return re.sub(rf"{key}|{_PRIMED}|{string}", put, expression)


def _arguments(text: str, start: int) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Return where a call ends whose bracket was opened before `start`, and its arguments."""
    depth, first = 0, start
    arguments: list[tuple[str, int]] = []
    for found in _PART.finditer(text, start):
        mark = found.group()
        if mark in "([":
            depth += 1
        elif mark in ")]" and depth:
            depth -= 1
        elif mark == ")" or (mark == "," and not depth):
            arguments.append(_argument(text, first, found.start()))
            first = found.end()
            if mark == ")":
                return found.end(), tuple(each for each in arguments if each[0])
    return len(text), (_argument(text, first, len(text)),)


def _argument(text: str, start: int, end: int) -> tuple[str, int]:
    distinct = _DISTINCT.match(text, start, end)
    start = distinct.end() if distinct else start
    stripped = text[start:end].strip()
    return stripped, start + len(text[start:end]) - len(text[start:end].lstrip())
