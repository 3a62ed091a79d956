"""The parts that a query in normal form is made of: all of them, and the query with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from xscl.path import Span

__all__ = ["Part", "parts", "rewritten"]

Part = Any
"""One of the values that a query in normal form is made of, or the query."""


def parts(value: Part) -> Iterator[Part]:
    """Yield all that a value is made of, itself first."""
    yield value
    if is_dataclass(value):
        for each in fields(value):
            yield from parts(getattr(value, each.name))
    elif isinstance(value, tuple):
        for each in value:
            yield from parts(each)


def rewritten(value: Part, change: Callable[[Part], Part]) -> Part:
    """Return a value with each of its parts changed, inner ones first."""
    if isinstance(value, tuple) and not isinstance(value, Span):
        return tuple(rewritten(each, change) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    inner = {f.name: rewritten(getattr(value, f.name), change) for f in fields(value)}
    return change(replace(value, **inner))
