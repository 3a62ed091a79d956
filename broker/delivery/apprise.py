"""Hand matches over through Apprise: chat rooms and push services, one of a hundred.

Optional (`pip install xscl-broker[apprise]`).  Apprise makes the call; retries, order and the
record of attempts stay ours.  It has no id that a receiver could know a repetition by, and it
dials whatever its URL names: offer it to people who may reach everything that the broker can.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from broker.delivery.attempt import Attempt, Outcome, OutcomeKind
from broker.delivery.letter import Letters
from broker.registry.subscription import Destination

__all__ = ["AppriseChannel"]


class AppriseChannel:
    """Sends the text of a mail, and its subject as the title."""

    def __init__(self, letters: Letters) -> None:
        # Imported here because the package is an extra.
        import apprise

        self._apprise: Any = apprise
        self._letters = letters

    async def send(self, attempt: Attempt) -> Outcome:
        """Notify once; what goes wrong is an outcome, never an exception."""
        target = self._apprise.Apprise()
        # The first address makes Apprise import all its plugins.
        address = attempt.subscription.destination.address
        if not await asyncio.to_thread(target.add, address):
            return Outcome(OutcomeKind.FAILED, detail="Apprise does not know this kind of address")
        title, body = self._letters.text(attempt)
        began = time.perf_counter_ns()
        try:
            taken = await target.async_notify(title=title, body=body)
        except Exception as error:
            # There are a hundred plugins by many authors: any error of one is a failed attempt.
            taken, detail = False, f"{type(error).__name__}: {error}"
        else:
            detail = "" if taken else "the service did not take it; the broker's log may say why"
        kind = OutcomeKind.DELIVERED if taken else OutcomeKind.FAILED
        elapsed_us = (time.perf_counter_ns() - began) // 1_000
        return Outcome(kind, detail=detail, elapsed_us=elapsed_us)

    async def refusal(self, destination: Destination) -> str | None:
        """Return that Apprise cannot read an address, where it cannot."""
        known = await asyncio.to_thread(self._apprise.Apprise().add, destination.address)
        return None if known else "Apprise does not know this kind of address"

    async def close(self) -> None:
        """Nothing is kept."""
