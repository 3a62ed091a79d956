"""Why documents do not match: `why_not` says it as a value, a tree of reasons."""

from __future__ import annotations

from broker.whynot.reason import Reason
from broker.whynot.why import why_not

__all__ = ["Reason", "why_not"]
