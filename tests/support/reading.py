"""Short ways to read queries in the tests of the language."""

from __future__ import annotations

import xscl
from xscl.path import Axis, Condition, NodeTest, Path, PathValue, Step
from xscl.query import Block, Operator, Query

__all__ = ["OWN", "block", "child", "codes", "operator", "predicate", "query", "value"]

OWN = PathValue(Path(()))
"""The string value of the context node."""


def query(text: str) -> Query:
    """Return the one query of a text without errors."""
    [found] = xscl.parse(text)
    return found


def block(text: str, index: int = 0) -> Block:
    """Return a block of a query."""
    return query(text).blocks[index]


def predicate(text: str) -> Condition:
    """Return the condition `[text]` of a step."""
    [condition] = block(f"S//item[{text}]").path.steps[0].predicates
    return condition


def operator(text: str) -> Operator:
    """Return the outermost operator of a query."""
    root = query(text).root
    assert isinstance(root, Operator)
    return root


def codes(text: str, *, warnings: bool = False) -> list[str]:
    """Return the codes of the errors of a text, of its warnings too where asked."""
    _, diagnostics = xscl.check(text)
    return [each.code for each in diagnostics if each.is_error or warnings]


def child(name: str, variable: str | None = None, *predicates: Condition) -> Step:
    """Return a step to the children of a name."""
    return Step(Axis.CHILD, NodeTest(name), False, variable, predicates)


def value(*names: str) -> PathValue:
    """Return the string value of what a path of names leads to."""
    return PathValue(Path(tuple(child(name) for name in names)))
