"""Says in the log, once a minute at most, that documents came too late to be joined."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from broker.documents.late import LateDocuments, late_data, spell_late

__all__ = ["LateLog", "tell_late"]

_log = logging.getLogger(__name__)

_EVERY_S = 60.0
_STREAMS_MAX = 5


class LateLog:
    """A log of late documents; each line counts those since the line before."""

    def __init__(self) -> None:
        self._told: Counter[str] = Counter()

    def tell(self, late: LateDocuments) -> None:
        """Write one line if documents have come late since the last one."""
        new = Counter(late.by_stream) - self._told
        self._told = Counter(late.by_stream)
        found = late_data(new.total(), late.newest)
        if found is None:
            return
        parts = [f"{count:,} of `{stream}`" for stream, count in new.most_common(_STREAMS_MAX)]
        if len(new) > _STREAMS_MAX:
            parts.append(f"and of {len(new) - _STREAMS_MAX} more streams")
        text = spell_late(found, "new documents" if new.total() > 1 else "new document")
        _log.warning("%s; %s", text, ", ".join(parts), extra={"documents": new.total()})


async def tell_late(late: Callable[[], LateDocuments], *, every_s: float = _EVERY_S) -> None:
    """Write of late documents every `every_s` seconds, until cancelled."""
    log = LateLog()
    while True:
        await asyncio.sleep(every_s)
        log.tell(late())
