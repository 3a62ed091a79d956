"""The budget that no query is paused for."""

from __future__ import annotations

from broker.matching.costs.budget import Budget

__all__ = ["UNLIMITED"]

UNLIMITED = Budget(0, 0, 0, 0, 0, 0)
