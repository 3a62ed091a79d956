"""What queries will cost, from a sample of recent documents: `estimate` says it as values."""

from __future__ import annotations

from broker.estimate.estimator import estimate
from broker.estimate.model import QueryEstimate
from broker.estimate.text import render_estimate

__all__ = ["QueryEstimate", "estimate", "render_estimate"]
