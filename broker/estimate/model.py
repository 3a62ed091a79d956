"""What is estimated of a query, for each of its operators, and of their value joins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broker.estimate.interval import Interval
from broker.estimate.statistics import DAY_US

__all__ = ["INFINITE_AS_US", "JoinEstimate", "OperatorEstimate", "QueryEstimate"]

INFINITE_AS_US = 30 * DAY_US
"""An INF window is estimated as it is after this time; it grows on."""


@dataclass(frozen=True, slots=True)
class JoinEstimate:
    """One value join: its pairs of equal values, and the value that makes the most of them.

    What it has a day is None where the sample says nothing of a day.
    """

    text: str
    pairs_per_day: float | None
    partners: float
    commonest: str | None
    commonest_share: float


@dataclass(frozen=True, slots=True)
class OperatorEstimate:
    """One operator under one alternative.

    `partners` is how many candidates a document meets, by the anchor, and `sampled` how many pairs
    of the sample say so.  `matches` are those of as many documents as the sample has, None where
    they were not estimated.  `remembered` documents take about `bytes`.  Of a decision `grace_us`
    says how long its answers wait.  What depends on a day is None where the sample says nothing of
    one.
    """

    alternative: int
    operator: int
    text: str
    joins: tuple[JoinEstimate, ...]
    anchor: str | None
    pairs_per_day: float | None
    partners: float
    sampled: int
    matches: Interval | None
    matches_per_day: Interval | None
    remembered: int | None
    bytes: int | None
    is_unbounded: bool
    grace_us: int | None = None


@dataclass(frozen=True, slots=True)
class QueryEstimate:
    """All of a query: its operators, what it matches a day, and warnings.

    Where the sample says nothing of a day, `days` is None and `refusal` says why.
    """

    query: str
    documents: int
    days: float | None
    operators: tuple[OperatorEstimate, ...]
    matches_per_day: Interval | None
    refusal: str
    warnings: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the estimate as plain values."""
        return {
            "query": self.query,
            "sample": {
                "documents": self.documents,
                "days": None if self.days is None else round(self.days, 3),
            },
            "matches_per_day": _data(self.matches_per_day),
            "refusal": self.refusal or None,
            "warnings": list(self.warnings),
            "operators": [
                {
                    name: _data(getattr(one, name))
                    for name in one.__dataclass_fields__
                    if name not in ("joins", "matches")
                }
                | {
                    "joins": [
                        {name: getattr(join, name) for name in join.__dataclass_fields__}
                        for join in one.joins
                    ]
                }
                for one in self.operators
            ],
        }


def _data(value: Any) -> Any:
    return value.as_data() if isinstance(value, Interval) else value
