"""The sizes at which the reference engines work in pieces; they change cost, never tuples."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_SQL_LIMITS", "STEP_TABLES", "SqlLimits"]

STEP_TABLES = 12
"""Tables that a statement joins in one step: 64 value joins take as long with 8 to 16."""


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """The limits of one join."""

    step_tables: int = STEP_TABLES
    """Tables that a statement joins in one step."""

    slice_rows: int = 1_000_000
    """Rows of slices that the view cache keeps: about 60 bytes each."""

    streamed_rows: int = 10_000
    """Rows of a statement that are taken over at a time."""


DEFAULT_SQL_LIMITS = SqlLimits()
