"""The worker's SQLite side: a visit writes what came back, looks for news, takes what is ready."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from broker.delivery.attempt import OutcomeKind
from broker.delivery.deliveries import Deliveries
from broker.delivery.lanes import Lanes
from broker.delivery.leases import Leases
from broker.delivery.store import Finished, Taken, open_deliveries
from broker.pipeline.outbox import Outbox
from broker.registry.file import RegistryError
from broker.registry.queries import Registry
from broker.registry.subscription import DestinationKind, SubscriptionState

__all__ = ["DeliveryReport", "Dispatch"]

_DAY_US = 86_400_000_000
_KEPT_DAYS = 30
"""How long a delivery can be looked at, and tried again, after it has ended; and how long a
subscription is there for what it has not got yet, after its query was removed."""

_alive: set[str] = set()
"""The owners in this process."""


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """What a visit found.  `is_behind`: there is more to look for than one visit takes on."""

    taken: list[Taken]
    next_ready_us: int | None
    is_behind: bool


class Dispatch:
    """One worker's use of the file of deliveries, all of it in one thread."""

    def __init__(self, path: Path, outbox: Outbox, registry: Registry, lease_us: int) -> None:
        self._owner = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        _alive.add(self._owner)
        self._db = open_deliveries(path)
        self._registry = registry
        self._lanes = Lanes(self._db, outbox, registry)
        self._leases = Leases(self._db, outbox, registry, self._owner)
        self._lease_us = lease_us
        self._deliveries = Deliveries(self._db)
        # What the worker knows of.  A visit that fails may lease more; those leases run out.
        self._held: set[str] = set()
        self._renewed_us = 0
        self._pruned_us = 0
        self._has_looked = False

    def visit(self, finished: Sequence[Finished], room: int, now_us: int) -> DeliveryReport:
        """Write what came back, look for news, take at most `room`.

        Where it fails (a full disk, a file that stays locked) it can be repeated with the same.
        """
        if not self._has_looked:
            self._leases.release_dead(_is_dead, now_us)
            self._has_looked = True
        if finished:
            self._leases.finish(finished, now_us)
            self._held.difference_update(one.taken.subscription.id for one in finished)
            self._stop_subscriptions(finished)
        if now_us - self._renewed_us > self._lease_us // 3:
            self._leases.renew(self._held, now_us + self._lease_us)
            self._renewed_us = now_us
        if now_us - self._pruned_us > _DAY_US:
            before_us = now_us - _KEPT_DAYS * _DAY_US
            self._deliveries.prune(before_us=before_us)
            self._registry.subscriptions.remove_ended(before_us=before_us)
            self._pruned_us = now_us
        # Both are looked for before anything is taken: who has left gets nothing more.
        behind = [self._lanes.sync(now_us), self._lanes.scan(now_us)]
        ready_us = self._lanes.next_ready_us()
        if room <= 0 or ready_us is None or ready_us > now_us:
            return DeliveryReport([], ready_us, any(behind))
        taken = self._leases.take(room, now_us, self._lease_us)
        self._held.update(work.subscription.id for work in taken)
        return DeliveryReport(taken, self._lanes.next_ready_us(), any(behind))

    def close(self, finished: Sequence[Finished], now_us: int) -> None:
        """Write what came back, give leases up."""
        self._leases.finish(finished, now_us)
        self._leases.release_dead(lambda owner: owner == self._owner, now_us)
        self._db.close()
        _alive.discard(self._owner)

    def _stop_subscriptions(self, finished: Sequence[Finished]) -> None:
        for one in finished:
            if one.decision.disable:
                self._stop(one)

    def _stop(self, one: Finished) -> None:
        subscription, outcome = one.taken.subscription, one.outcome
        is_mail = subscription.destination.kind is DestinationKind.EMAIL
        if is_mail and outcome is not None and outcome.kind is OutcomeKind.GONE:
            # A mail server counts against us how often we write to a mailbox that is not there.
            self._registry.suppressed.add(subscription.destination.address, reason=outcome.detail)
        try:
            self._registry.subscriptions.set_state(
                subscription.id, SubscriptionState.DISABLED, reason=one.decision.disable
            )
        except RegistryError:
            # Its subscriber was quicker; or it is a second lane, which is no subscription.
            return


def _is_dead(owner: str) -> bool:
    """Return whether an owner of leases was a process of this machine that is no more."""
    host, process, _ = owner.split("/")
    if host != socket.gethostname():
        return False
    if int(process) == os.getpid():
        return owner not in _alive
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
