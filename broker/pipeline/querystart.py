"""Start a streaming query until it runs.

Spark gives the Python process that reads a source ten seconds to import what it needs and to say
so, and no setting changes that.  On a cold or busy machine they pass, and the query ends before it
has begun.  Then it is started again: its files are in the machine's cache now, and nothing is lost.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

__all__ = ["StartedQuery", "started"]

_log = logging.getLogger(__name__)

_STARTS_MAX = 20
"""Some minutes: as long as one waits for a start on a machine that is that slow."""

_LOOK_EVERY_S = 0.05
_TOO_SLOW = "failed to connect back"


class StartedQuery(Protocol):
    """What is looked at of a query of Spark."""

    @property
    def isActive(self) -> bool: ...  # noqa: D102, N802

    @property
    def status(self) -> dict[str, Any]: ...  # noqa: D102

    def exception(self) -> Exception | None: ...  # noqa: D102


Q = TypeVar("Q", bound=StartedQuery)


def started(start: Callable[[], Q]) -> Q:
    """Return a query that has initialised its sources, or has failed for another reason."""
    for _ in range(_STARTS_MAX - 1):
        query = start()
        while query.isActive and str(query.status["message"]).startswith("Initializing"):
            time.sleep(_LOOK_EVERY_S)
        if query.isActive or _TOO_SLOW not in str(query.exception()):
            return query
        _log.warning("Spark's Python process was too slow for it; starting it again")
    return start()
