"""The same query at other thresholds: how many matches there would have been."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from xscl.path import Literal, Span
from xscl.query import Query, SimilarityJoin

__all__ = ["THRESHOLDS", "at_thresholds"]

THRESHOLDS = (0.4, 0.5, 0.6, 0.7)
"""Where texts begin to tell the same story, and where they nearly repeat it."""


def at_thresholds(query: Query) -> Iterator[tuple[float, Query]]:
    """Yield a query at each threshold, under an id of its own; nothing without similarity joins.

    All of its joins by `jaccard` and `containment` have the threshold.  It publishes nothing.
    """
    for threshold in THRESHOLDS:
        root = _at(query.root, threshold)
        if root != query.root or _at(root, -1.0) != root:
            yield (
                threshold,
                replace(query, id=f"{query.id} at {threshold}", root=root, publish=None),
            )


def _at(value: Any, threshold: float) -> Any:
    if isinstance(value, SimilarityJoin):
        is_part = value.measure != "overlap"
        return replace(value, threshold=Literal(threshold)) if is_part else value
    if isinstance(value, tuple) and not isinstance(value, Span):
        return tuple(_at(each, threshold) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        changes = {each.name: _at(getattr(value, each.name), threshold) for each in fields(value)}
        return replace(value, **changes)
    return value
