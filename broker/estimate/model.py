"""What is estimated of a query, for each of its operators, and of their value joins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broker.estimate.statistics import DAY_US

__all__ = ["INFINITE_AS_US", "JoinEstimate", "OperatorEstimate", "QueryEstimate"]

INFINITE_AS_US = 30 * DAY_US
"""An INF window is estimated as it is after this time; it grows on."""


@dataclass(frozen=True, slots=True)
class JoinEstimate:
    """One value join: its pairs of equal values, and the value that makes the most of them."""

    text: str
    pairs_per_day: float
    partners: float
    commonest: str | None
    commonest_share: float


@dataclass(frozen=True, slots=True)
class OperatorEstimate:
    """One operator under one alternative.

    `partners` is how many candidates a document meets, by the anchor; `matches_per_day` is None
    where it was not estimated.  `remembered` documents take about `bytes`.
    """

    alternative: int
    operator: int
    text: str
    joins: tuple[JoinEstimate, ...]
    anchor: str | None
    pairs_per_day: float
    partners: float
    matches_per_day: float | None
    remembered: int
    bytes: int
    is_unbounded: bool


@dataclass(frozen=True, slots=True)
class QueryEstimate:
    """All of a query: its operators, what it matches a day, and warnings."""

    query: str
    documents: int
    days: float
    operators: tuple[OperatorEstimate, ...]
    matches_per_day: float | None
    warnings: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the estimate as plain values."""
        return {
            "query": self.query,
            "sample": {"documents": self.documents, "days": round(self.days, 3)},
            "matches_per_day": self.matches_per_day,
            "warnings": list(self.warnings),
            "operators": [
                {name: getattr(one, name) for name in one.__dataclass_fields__ if name != "joins"}
                | {
                    "joins": [
                        {name: getattr(join, name) for name in join.__dataclass_fields__}
                        for join in one.joins
                    ]
                }
                for one in self.operators
            ],
        }
