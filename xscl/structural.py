"""Reads a statement that is one path of names, with paths of names in brackets: `S//a[b/*]/c`.

Such a text is its own canonical text, and nothing in it can be wrong or wants a warning.  So it
needs neither tokens nor syntax, and is read in a quarter of the time that `xscl.parser` and
`xscl.normalise` take to make the same query of it.
"""

from __future__ import annotations

import re

from xscl.lines import WIDTH
from xscl.normalise import query_version
from xscl.path import ANY, Axis, Condition, Exists, Path, Span, Step, node_test
from xscl.query import Block, Query, Variable
from xscl.rules import CLOCK
from xscl.units import is_after_block

__all__ = ["structural_query"]

_NAME = r"[^\W\d](?:[\w.-]*\w)?"
"""A name that is read in one way only: a dash at its end might begin an arrow."""

_TEST = rf"(?:{_NAME}|\*)"
_FILTER = rf"\[{_TEST}(?://?{_TEST})*\]"
_STATEMENT = re.compile(rf"({_NAME})((?://?{_TEST}(?:{_FILTER})*)+)")
_STEP = re.compile(rf"(//?)({_TEST})((?:{_FILTER})*)")
_INNER_STEP = re.compile(rf"(/{{0,2}})({_TEST})")

_ROOT = "#0"
_ROOTS = (_ROOT,)
_VARIABLES = (Variable(_ROOT, 0, _ROOT),)
_ANY_ELEMENT = node_test(ANY, ANY)


def structural_query(text: str, query_id: str) -> Query | None:
    """Return the query of a text that is such a statement; `None` where it is not."""
    found = _STATEMENT.fullmatch(text) if len(text) <= WIDTH else None
    if found is None:
        return None
    stream = found[1]
    if is_after_block(stream) or stream == CLOCK:
        return None  # No name, or one that the parser has something to say about.
    path = _path(text, len(stream))
    block = Block(stream, path, _ROOT, _ROOTS, Span(0, len(text)))
    return Query(query_id, text, query_version(text), (block,), 0, _VARIABLES)


def _path(text: str, at: int) -> Path:
    """Return the path that begins at an offset; its last step binds the root."""
    steps: list[Step] = []
    for slashes, name, brackets in _STEP.findall(text, at):
        start = at + len(slashes)
        behind = start + len(name)
        at = behind + len(brackets)
        filters = _filters(brackets, behind) if brackets else ()
        steps.append(_step(slashes, name, filters, Span(start, at)))
    steps[-1] = steps[-1].named(_ROOT)
    return Path(tuple(steps))


def _filters(brackets: str, at: int) -> tuple[Condition, ...]:
    """Return the conditions that paths in brackets are, which begin at an offset."""
    conditions: list[Condition] = []
    for inside in brackets[1:-1].split("]["):
        at += 1
        steps: list[Step] = []
        for slashes, name in _INNER_STEP.findall(inside):
            start = at + len(slashes)
            at = start + len(name)
            steps.append(_step(slashes, name, (), Span(start, at)))
        conditions.append(Exists(Path(tuple(steps))))
        at += 1
    return tuple(conditions)


def _step(slashes: str, name: str, filters: tuple[Condition, ...], span: Span) -> Step:
    test = _ANY_ELEMENT if name == ANY else node_test(name, None)
    return Step(Axis.CHILD, test, slashes == "//", None, filters, span)
