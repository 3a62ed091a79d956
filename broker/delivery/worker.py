"""The loop that serves lanes: lease what is ready, hand it over, write what came of it.

One turn of the loop is one visit to the file of deliveries: what has come back is written, what
is new is looked for, what is ready is taken.  Attempts run between turns, as many at once as
there is room for; while many are under way many come back in one turn, so the cost of a
transaction is shared.  All SQLite work runs in one thread beside the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
import sqlite3
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from broker.delivery.alerts.escalation import is_escalation
from broker.delivery.attempt import Attempt, Channel, Notifier, Outcome, OutcomeKind
from broker.delivery.dispatch import Dispatch
from broker.delivery.endpoints import Claim, EndpointLimits, Endpoints
from broker.delivery.schedule import Consequence, Fate, RetryPolicy, decide
from broker.delivery.store import Finished, Taken
from broker.pipeline.matchlog import CommittedMatch
from broker.pipeline.outbox import Outbox
from broker.registry.queries import Registry
from broker.registry.subscription import DestinationKind, Subscription

__all__ = ["DeliveryEvent", "DeliveryEventKind", "DeliveryWorker"]

log = logging.getLogger(__name__)


class DeliveryEventKind(StrEnum):
    """What there is to tell of a delivery."""

    ATTEMPTED = "attempted"
    DELIVERED = "delivered"
    FAILED = "failed"
    DEAD = "dead"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """Something that happened to a delivery.

    `ATTEMPTED` comes before the attempt, without an outcome.  `next_us` is when a failed one is
    tried again; `reason` says why the subscription was disabled.
    """

    kind: DeliveryEventKind
    delivery_id: str
    number: int
    subscription: Subscription
    matches: tuple[CommittedMatch, ...]
    outcome: Outcome | None = None
    next_us: int | None = None
    reason: str = ""


_FATES = {
    Fate.DELIVERED: DeliveryEventKind.DELIVERED,
    Fate.RETRY: DeliveryEventKind.FAILED,
    Fate.DEAD: DeliveryEventKind.DEAD,
}


LIMITS: Mapping[DestinationKind, EndpointLimits] = {
    DestinationKind.WEBHOOK: EndpointLimits(concurrency=16),
    DestinationKind.EMAIL: EndpointLimits(concurrency=4, rate_per_s=20),
    DestinationKind.DUCKDB: EndpointLimits(concurrency=1),
}
"""What one host, or one mail domain, is asked to take by default."""

_TROUBLE_S = 1.0

RECIPIENT = EndpointLimits(concurrency=1, rate_per_s=0.5, burst_s=40)
"""What one address is sent by default: 20 mails at once, then one in two seconds."""


ROOM = EndpointLimits(concurrency=1, rate_per_s=1, burst_s=5)
"""What one address of a chat is sent: five messages at once, then one in a second."""

TURN = EndpointLimits(concurrency=1)
"""What one address of a sink is sent: it has one connection."""


class DeliveryWorker:
    """Delivers what the outbox holds to whom the registry names, until it is stopped.

    `limits` are for one host or mail domain, `recipient` for one address.  `notifier` tells the
    owner of a subscription that it was disabled.  `now_us` and `random` (numbers in [0, 1)) are
    what decisions are made with; `on_event` is called in the event loop, after what it tells has
    been written.
    """

    def __init__(
        self,
        outbox: Outbox,
        registry: Registry,
        channels: Mapping[DestinationKind, Channel],
        *,
        path: Path | None = None,
        policy: RetryPolicy | None = None,
        limits: Mapping[DestinationKind, EndpointLimits] = LIMITS,
        recipient: EndpointLimits = RECIPIENT,
        notifier: Notifier | None = None,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1_000,
        random: Callable[[], float] = random_module.random,
        on_event: Callable[[DeliveryEvent], None] = lambda event: None,
        concurrency: int = 256,
        lease_s: float = 15.0,
        poll_s: float = 0.1,
    ) -> None:
        self._outbox = outbox
        self._registry = registry
        self._channels = channels
        self._path = path or outbox.path.with_name("deliveries.db")
        self._policy = policy or RetryPolicy()
        self._limits = limits
        self._recipient = recipient
        self._notifier = notifier
        self._now_us = now_us
        self._random = random
        self._on_event = on_event
        self._concurrency = concurrency
        self._lease_us = round(lease_s * 1e6)
        self._poll_s = poll_s
        self._endpoints = Endpoints()
        self._finished: list[Finished] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._awake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def wake(self) -> None:
        """Look for new matches now.  May be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._awake.set)

    def stop(self) -> None:
        """Begin nothing more; `run` returns when what is under way has ended."""
        self._stopping = True
        self.wake()

    async def run(self) -> None:
        """Deliver until `stop` is called or the task is cancelled."""
        self._loop = asyncio.get_running_loop()
        self._outbox.listen(self.wake)
        with ThreadPoolExecutor(1, thread_name_prefix="delivery") as thread:
            dispatch = await self._loop.run_in_executor(thread, self._open)
            try:
                while not self._stopping or self._under_way or self._finished:
                    await self._turn(thread, dispatch)
            finally:
                self._outbox.unlisten(self.wake)
                await self._close(thread, dispatch)

    def _open(self) -> Dispatch:
        return Dispatch(self._path, self._outbox, self._registry, self._lease_us)

    async def _turn(self, thread: ThreadPoolExecutor, dispatch: Dispatch) -> None:
        assert self._loop is not None
        self._awake.clear()
        finished, self._finished = self._finished, []
        room = 0 if self._stopping else self._concurrency - len(self._under_way)
        try:
            report = await self._loop.run_in_executor(
                thread, dispatch.visit, finished, room, self._now_us()
            )
        except sqlite3.OperationalError:
            log.exception("deliveries cannot be written; trying again")
            self._finished = finished + self._finished
            await asyncio.sleep(_TROUBLE_S)
            return
        for one in finished:
            self._tell(one)
        for taken in report.taken:
            self._begin(taken)
        if report.taken or report.is_behind or self._finished:
            return
        await self._rest(report.next_ready_us, is_full=room == 0)

    async def _rest(self, next_ready_us: int | None, *, is_full: bool) -> None:
        wait_s = self._poll_s
        if next_ready_us is not None and not is_full:
            wait_s = min(wait_s, max(0.0, (next_ready_us - self._now_us()) / 1e6))
        try:
            async with asyncio.timeout(wait_s):
                await self._awake.wait()
        except TimeoutError:
            return

    def _begin(self, taken: Taken) -> None:
        claims, now_us = self._claims(taken.subscription), self._now_us()
        turn_us = self._endpoints.admit(claims, now_us)
        if turn_us is not None:
            parked = Consequence(Fate.RETRY, turn_us, taken.health)
            self._finished.append(Finished(taken, now_us, None, parked))
            return
        task = asyncio.create_task(self._attempt(taken, claims))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def _claims(self, subscription: Subscription) -> list[Claim]:
        destination = subscription.destination
        limits = self._limits.get(destination.kind, EndpointLimits())
        if destination.kind is DestinationKind.EMAIL:
            return [(destination.endpoint, limits), (destination.address, self._recipient)]
        rate = subscription.options.rate_per_s
        if rate:
            limits = replace(limits, rate_per_s=min(rate, limits.rate_per_s or rate))
        claims = [(destination.endpoint, limits)]
        if destination.kind.is_sink:
            return [*claims, (destination.address, TURN)]
        return [*claims, (destination.address, ROOM)] if destination.kind.is_chat else claims

    async def _attempt(self, taken: Taken, claims: list[Claim]) -> None:
        at_us = self._now_us()
        self._on_event(_event(DeliveryEventKind.ATTEMPTED, taken))
        outcome = await self._send(taken, at_us)
        now_us = self._now_us()
        self._endpoints.done(claims, now_us - at_us, now_us)
        decision = decide(
            self._policy,
            outcome,
            number=taken.number,
            health=taken.health,
            now_us=now_us,
            random=self._random,
        )
        self._finished.append(Finished(taken, at_us, outcome, decision))
        self._awake.set()

    async def _send(self, taken: Taken, at_us: int) -> Outcome:
        if not taken.matches:
            return Outcome(OutcomeKind.REFUSED, detail="its matches are no longer kept")
        kind = taken.subscription.destination.kind
        channel = self._channels.get(kind)
        if channel is None:
            return Outcome(OutcomeKind.FAILED, detail=f"this broker is not set up for {kind.value}")
        attempt = Attempt(
            taken.delivery_id,
            taken.number,
            taken.subscription,
            taken.matches,
            at_us,
            taken.withheld,
        )
        try:
            return await channel.send(attempt)
        except Exception as error:
            log.exception("delivery %s to %s", taken.delivery_id, taken.subscription.id)
            return Outcome(OutcomeKind.FAILED, detail=f"{type(error).__name__}: {error}")

    def _tell(self, one: Finished) -> None:
        if one.outcome is None:
            return
        decision = one.decision
        next_us = decision.next_us if decision.fate is Fate.RETRY else None
        self._on_event(_event(_FATES[decision.fate], one.taken, one.outcome, next_us))
        # The second address is not the subscriber: it disables nothing.
        if decision.disable and not is_escalation(one.taken.subscription.id):
            self._tell_disabled(one, decision.disable)

    def _tell_disabled(self, one: Finished, reason: str) -> None:
        subscription = one.taken.subscription
        self._on_event(_event(DeliveryEventKind.DISABLED, one.taken, one.outcome, reason=reason))
        owner = subscription.options.owner
        if owner and self._notifier is not None:
            subject, text = _notice(subscription, reason)
            task = asyncio.create_task(self._notify(self._notifier, owner, subject, text))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _notify(self, notifier: Notifier, owner: str, subject: str, text: str) -> None:
        outcome = await notifier.notify(owner, subject, text)
        if outcome.kind is not OutcomeKind.DELIVERED:
            log.warning("%s could not be told: %s", owner, outcome.detail)

    async def _close(self, thread: ThreadPoolExecutor, dispatch: Dispatch) -> None:
        assert self._loop is not None
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._loop.run_in_executor(thread, dispatch.close, self._finished, self._now_us())
        for channel in self._channels.values():
            await channel.close()


def _event(
    kind: DeliveryEventKind,
    taken: Taken,
    outcome: Outcome | None = None,
    next_us: int | None = None,
    reason: str = "",
) -> DeliveryEvent:
    return DeliveryEvent(
        kind,
        taken.delivery_id,
        taken.number,
        taken.subscription,
        tuple(taken.matches),
        outcome,
        next_us,
        reason,
    )


def _notice(subscription: Subscription, reason: str) -> tuple[str, str]:
    subject = f"No more matches of {subscription.query} to {subscription.destination.shown}"
    text = (
        f"The subscription {subscription.id} of the query {subscription.query}\n"
        f"to {subscription.destination.shown} has been disabled: {reason}.\n\n"
        "Nothing is lost: when it is resumed it gets what it missed.\n\n"
        f"    xscl deliveries list --subscription {subscription.id}\n"
        f"    xscl deliveries resume {subscription.id}\n"
    )
    return subject, text
