"""Tells the registry, the log and the owners of subscriptions of queries that cannot go on.

Those are over their budget, or have a text that another release has accepted and this one has not.

What counts is in the outbox already: the pauses that a batch's commit holds.  From there they are
brought to the registry, at once and whenever a broker starts, so that a crash in between delays
what is seen and changes nothing of what is found.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from broker.delivery.attempt import Notifier, OutcomeKind
from broker.matching.costs.budget import Pause
from broker.matching.stepresult import StepResult
from broker.pipeline.outbox import Outbox
from broker.registry.queries import RegisteredText, Registry
from broker.registry.registered import unreadable

__all__ = ["Pausing"]

_log = logging.getLogger(__name__)

_PAGE = 1_000


class Pausing:
    """Brings pauses from one broker's outbox to its registry, and says so."""

    def __init__(self, outbox: Outbox, registry: Registry) -> None:
        self._outbox = outbox
        self._registry = registry
        self._untold: list[RegisteredText] = []

    def pause_unreadable(self, versions: Iterable[int], docid: int) -> None:
        """Have the queries that this release cannot read paused from a document on.

        `versions` are the registry versions that documents are still to be evaluated with.
        """
        pauses = {
            (text.id, text.revision): Pause(
                text.id, text.revision, docid, f"this release cannot read its text: {reason}"
            )
            for version in versions
            for text, reason in unreadable(self._registry, version)
        }
        self._outbox.add(StepResult(pauses=list(pauses.values())))

    def apply(self) -> bool:
        """Pause in the registry what the outbox says is paused; return whether that was news."""
        paused = self._registry.pause(self._outbox.pauses())
        for query in paused:
            _log.warning(
                "query %s is paused from document %d on: %s",
                query.id,
                query.effective + 1,
                query.reason,
                extra={"query": query.id, "docid": query.effective + 1},
            )
        self._untold += paused
        return bool(paused)

    async def tell(self, notifier: Notifier | None) -> None:
        """Write to the owners of the subscriptions of queries that have just been paused."""
        untold, self._untold = self._untold, []
        if notifier is None:
            return
        for query in untold:
            for owner in sorted(set(self._owners(query.id))):
                outcome = await notifier.notify(owner, f"{query.id} is paused", _notice(query))
                if outcome.kind is not OutcomeKind.DELIVERED:
                    _log.warning("%s could not be told: %s", owner, outcome.detail)

    def _owners(self, query_id: str) -> Iterator[str]:
        after = ""
        while page := self._registry.subscriptions.find(query=query_id, after=after, limit=_PAGE):
            yield from (
                each.options.owner for each in page if each.options.owner and each.until is None
            )
            after = page[-1].id


def _notice(query: RegisteredText) -> str:
    return (
        f"The query {query.id} is paused from document {query.effective + 1} on:\n"
        f"{query.reason}.\n\n"
        "Matches found before that are delivered.  Register it anew with another text, or\n\n"
        f"    xscl resume {query.id}\n"
    )
