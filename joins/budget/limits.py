"""How many runs a document may make before their statement is over its budget.

They say at which document a query is paused, so they are the same wherever its runs are found.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_RUN_LIMITS", "RunLimits"]


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of the repetitions of one engine."""

    runs: int = 10_000
    """Runs with one newest document that say the same data: as many as a query may have matches of
    it by default."""

    elements: int = 10_000
    """Elements of a run."""

    steps: int = 100_000
    """Steps of the graphs of runs that one document decides."""

    bits: int = 100_000
    """Bits of the number of runs that end at one time, where they are counted without a graph."""

    heads: int = 100_000
    """Runs of a chain, or behind NEXT, complete or not, with one newest document."""

    spelled_bytes: int = 16 << 20
    """Bytes of values of runs that become instances at a time: a statement that is over its budget
    is noticed before they fill memory."""

    swept_parts: int = 1_000
    """The fewest elements and incomplete runs among which useless ones are looked for."""

    in_columns: bool = True
    """Whether runs over chains and behind NEXT are stepped by compiled loops that are there."""


DEFAULT_RUN_LIMITS = RunLimits()
