"""A reason: one thing that was asked of some documents, whether it holds, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["UNITS_MAX", "Reason", "quote", "spell_length"]

VALUE_CHARACTERS = 60
"""Characters of a value that are shown; titles of real items have a median of 58."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A node of the tree of reasons.

    `kind` is stable: `query`, `parameters`, `documents`, `block`, `registration`, `stream`, `xml`,
    `step`, `condition`, `constant`, `operator`, `order`, `window`, `lateness`, `value join`,
    `similarity`, `residual`, `together`, `decision`, `given`, `tables`, `cell`, `confidence`,
    `factor`, `run`.  `hint` says what would make it hold, where that is known.  `facts` are the
    values that the text speaks of.  `progress`, from 0 to 1, says how far the documents came; 1
    where it holds.
    """

    kind: str
    holds: bool
    text: str
    hint: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Reason, ...] = ()
    progress: float = 0.0

    def __post_init__(self) -> None:
        if self.holds:
            object.__setattr__(self, "progress", 1.0)

    def failures(self) -> Iterator[Reason]:
        """Yield the innermost reasons that do not hold."""
        if self.holds:
            return
        inner = [found for part in self.parts for found in part.failures()]
        yield from inner or [self]

    def as_data(self) -> dict[str, Any]:
        """Return the tree as plain values; empty fields are left out."""
        data: dict[str, Any] = {"kind": self.kind, "holds": self.holds, "text": self.text}
        if self.hint:
            data["hint"] = self.hint
        if self.facts:
            data["facts"] = dict(self.facts)
        if self.parts:
            data["parts"] = [part.as_data() for part in self.parts]
        return data


def quote(value: str) -> str:
    """Return a value in quotes, on one line, cut where it is long."""
    shown = value if len(value) <= VALUE_CHARACTERS else value[: VALUE_CHARACTERS - 1] + "…"
    return "'" + shown.replace("\n", "\\n").replace("\t", "\\t") + "'"


_UNITS = (
    (86_400_000_000, "day"),
    (3_600_000_000, "hour"),
    (60_000_000, "minute"),
    (1_000_000, "second"),
    (1_000, "ms"),
    (1, "us"),
)
UNITS_MAX = len(_UNITS)
"""Units of a length of time that is spelled exactly."""


def spell_length(length_us: int, *, most: int = 2) -> str:
    """Return a length of time in its largest units, at most so many of them.

    >>> spell_length(93_600_000_000), spell_length(0)
    ('1 day 2 hours', '0 seconds')
    """
    parts = []
    for unit_us, name in _UNITS:
        count, length_us = divmod(length_us, unit_us)
        if count:
            plural = "s" if count > 1 and len(name) > 2 else ""
            parts.append(f"{count:,} {name}{plural}")
    return " ".join(parts[:most]) or "0 seconds"
