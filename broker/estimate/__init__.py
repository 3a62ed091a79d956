"""What queries will cost, from a sample of recent documents: `estimate` says it as values.

`statistics` counts values in the sample, `estimator` makes numbers of them, `warnings` says what of
these the author should know.

Invariant: an estimate depends on the queries, the sample and the budget alone.

Begin with `estimator`.
"""

from __future__ import annotations

from broker.estimate.estimator import estimate
from broker.estimate.model import QueryEstimate
from broker.estimate.text import render_estimate

__all__ = ["QueryEstimate", "estimate", "render_estimate"]
