"""Take what is ready under a lease, and write what came of it.

See `broker.delivery.lanes` for the whole and for what must never happen.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence

from broker.delivery.alerts.escalation import escalated, escalations, is_escalation
from broker.delivery.alerts.messages import Messages
from broker.delivery.attempt import ESCALATION, RESPONSE_KEPT_MAX, Outcome
from broker.delivery.lanes import forget, settle, settle_unleased
from broker.delivery.schedule import EndpointHealth, Fate
from broker.delivery.store import DeliveryState, Finished, Taken, delivery_id
from broker.delivery.taking import Lane, Message, Taking, message_max
from broker.pipeline.outbox import Outbox
from broker.registry.queries import Registry
from broker.registry.subscription import DestinationKind, Subscription
from broker.settings.database import transaction

__all__ = ["BACKLOG_MAX", "Leases"]

BACKLOG_MAX = 20
"""Matches that are mailed one by one; where more are waiting, they go in one mail."""

_STATES = {
    Fate.DELIVERED: DeliveryState.DELIVERED,
    Fate.RETRY: DeliveryState.DUE,
    Fate.DEAD: DeliveryState.DEAD,
}


class Leases:
    """One owner's leases.  One object serves one thread at a time; processes may share the file."""

    def __init__(
        self, db: sqlite3.Connection, outbox: Outbox, registry: Registry, owner: str
    ) -> None:
        self._db = db
        self._outbox = outbox
        self._registry = registry
        self._owner = owner
        self._messages = Messages(db)

    def take(self, room: int, now_us: int, lease_us: int) -> list[Taken]:
        """Lease at most `room` lanes that are ready, and return what to do for each."""
        with transaction(self._db):
            lanes = self._ready(room, now_us)
            known = self._known(lanes)
            taking = Taking(
                self._outbox, now_us, self._next_row(), [lane.subscription for lane in lanes]
            )
            found = [(lane, self._choose(lane, known, taking)) for lane in lanes]
            self._write(taking)
            self._escalate(taking, known)
            for lane, work in found:
                if lane.subscription not in known:
                    # The registry is older than this file: it was restored from a copy.
                    forget(self._db, lane.subscription)
                elif work is None:
                    held_us = _held_until_us(lane, known[lane.subscription], now_us)
                    settle(self._db, lane.subscription, now_us, held_us)
            self._db.executemany(
                "UPDATE lane SET owner = ?, ready_us = ? WHERE subscription = ?",
                [
                    (self._owner, now_us + lease_us, lane.subscription)
                    for lane, work in found
                    if work is not None
                ],
            )
        return [work for _, work in found if work is not None]

    def finish(self, finished: Iterable[Finished], now_us: int) -> None:
        """Write what came of leased work, and make its lanes ready for what is next."""
        with transaction(self._db):
            for one in finished:
                held = self._write_health(one)
                if one.outcome is not None:
                    self._write_attempt(one, one.outcome)
                    # Who lost the lease may be behind another worker; a success is true anyway.
                    if held or one.decision.fate is Fate.DELIVERED:
                        self._write_fate(one, now_us)
                if held:
                    parked_us = one.decision.next_us if one.outcome is None else 0
                    settle(self._db, one.taken.subscription.id, now_us, parked_us)

    def renew(self, subscription_ids: Iterable[str], until_us: int) -> None:
        """Extend those leases that are still held."""
        with transaction(self._db):
            self._db.executemany(
                "UPDATE lane SET ready_us = ? WHERE subscription = ? AND owner = ?",
                [(until_us, name, self._owner) for name in subscription_ids],
            )

    def release_dead(self, is_dead: Callable[[str], bool], now_us: int) -> None:
        """End the leases of owners that are known to be dead, before they run out."""
        owners = self._db.execute("SELECT DISTINCT owner FROM lane WHERE owner <> ''").fetchall()
        dead = [owner for (owner,) in owners if is_dead(owner)]
        with transaction(self._db):
            self._db.executemany(
                "UPDATE lane SET ready_us = ?, owner = '' WHERE owner = ? AND owner <> ''",
                [(now_us, owner) for owner in dead],
            )

    def _ready(self, room: int, now_us: int) -> list[Lane]:
        rows = self._db.execute(
            "SELECT subscription, lane.seq, fresh_us, coalesce(head, 0),"
            " (SELECT min(next_us) FROM delivery"
            "  WHERE delivery.subscription = lane.subscription AND next_us IS NOT NULL),"
            " snoozed_until_us, failures, failing_since_us, paused_until_us"
            " FROM lane LEFT JOIN topic ON topic.number = lane.topic"
            " WHERE ready_us <= ? ORDER BY ready_us LIMIT ?",
            (now_us, room),
        )
        return [
            Lane(name, seq, fresh_us, head, due_us, snoozed_until_us, EndpointHealth(*health))
            for name, seq, fresh_us, head, due_us, snoozed_until_us, *health in rows.fetchall()
        ]

    def _known(self, lanes: Sequence[Lane]) -> dict[str, Subscription]:
        """Return the subscriptions that there are, by their lanes."""
        named = {lane.subscription: lane.subscription.removesuffix(ESCALATION) for lane in lanes}
        known = self._registry.subscriptions.by_id(list(named.values()))
        return {
            lane: escalated(known[name]) if is_escalation(lane) else known[name]
            for lane, name in named.items()
            if name in known
        }

    def _next_row(self) -> int:
        row = self._db.execute("SELECT coalesce(max(number), 0) + 1 FROM delivery").fetchone()
        return int(row[0])

    def _choose(
        self, lane: Lane, known: Mapping[str, Subscription], taking: Taking
    ) -> Taken | None:
        """Return the retry that is due longest, else the next match, else None."""
        subscription = known.get(lane.subscription)
        if subscription is None or _held_until_us(lane, subscription, taking.now_us):
            return None
        if subscription.options.is_keyed:
            return self._messages.choose(lane, subscription, taking)
        if lane.due_us is not None and lane.due_us <= taking.now_us:
            return self._retry(lane, subscription, taking)
        if lane.fresh_us is not None and lane.fresh_us <= taking.now_us:
            return self._begin(lane, subscription, taking)
        return None

    def _retry(self, lane: Lane, subscription: Subscription, taking: Taking) -> Taken:
        row, id_, attempts, first, last, seqs, withheld = self._db.execute(
            "SELECT number, id, attempts, first_seq, seq, seqs, withheld FROM delivery"
            " WHERE subscription = ? AND next_us = ? ORDER BY number LIMIT 1",
            (lane.subscription, lane.due_us),
        ).fetchone()
        matches = (
            taking.numbered(json.loads(seqs))
            if seqs
            else taking.matches(subscription, first - 1, last)
        )
        return Taken(row, id_, attempts + 1, subscription, matches, lane.health, withheld)

    def _begin(self, lane: Lane, subscription: Subscription, taking: Taking) -> Taken | None:
        limit = message_max(subscription)
        matches = taking.matches(subscription, lane.seq, limit=limit)
        if not matches:
            taking.moved.append((max(lane.seq, lane.head), None, lane.subscription))
            return None
        if _is_mailed_at_once(subscription) and len(matches) <= BACKLOG_MAX:
            matches = matches[:1]
        message = Message(
            row=taking.number(),
            id=delivery_id(subscription.id, matches[0].id),
            subscription=subscription.id,
            seqs=[matches[0].seq, matches[-1].seq],
            due_us=taking.now_us,
            begun_us=taking.now_us,
        )
        taking.made.append(message)
        is_full = limit > 1 and len(matches) == limit
        rest_us = taking.now_us if is_full and subscription.options.gathers else None
        taking.moved.append((message.seqs[-1], rest_us, lane.subscription))
        return Taken(message.row, message.id, 1, subscription, matches, lane.health)

    def _write(self, taking: Taking) -> None:
        self._db.executemany(
            "INSERT INTO delivery (number, id, subscription, first_seq, seq, state, attempts,"
            " next_us, created_us, changed_us, key, seqs, begun_us, reason, withheld)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?8, ?9, ?10, ?11, ?12, ?13)",
            [
                (
                    each.row,
                    each.id,
                    each.subscription,
                    each.seqs[0],
                    each.seqs[-1],
                    each.state,
                    each.next_us,
                    taking.now_us,
                    each.key,
                    each.numbers(),
                    each.begun_us,
                    each.reason,
                    each.withheld,
                )
                for each in taking.made
            ],
        )
        self._db.executemany(
            "UPDATE delivery SET seq = ?, state = ?, next_us = ?, changed_us = ?, seqs = ?,"
            " begun_us = ?, reason = ?, withheld = ? WHERE number = ?",
            [
                (
                    each.seqs[-1],
                    each.state,
                    each.next_us,
                    taking.now_us,
                    each.numbers(),
                    each.begun_us,
                    each.reason,
                    each.withheld,
                    each.row,
                )
                for each in taking.changed
            ],
        )
        self._db.executemany(
            "UPDATE lane SET seq = ?, fresh_us = ? WHERE subscription = ?", taking.moved
        )

    def _escalate(self, taking: Taking, known: Mapping[str, Subscription]) -> None:
        made = escalations((*taking.made, *taking.changed), known, taking.now_us)
        self._db.executemany(
            "INSERT INTO delivery (id, subscription, first_seq, seq, state, attempts, next_us,"
            " created_us, changed_us, key, seqs, begun_us, origin, withheld)"
            " VALUES (?1, ?2, ?3, ?4, 'due', 0, ?5, ?6, ?6, ?7, ?8, ?5, ?9, ?10)"
            # What a power cut has taken back may be begun anew.
            " ON CONFLICT (id) DO NOTHING",
            [
                (
                    each.id,
                    each.subscription,
                    each.seqs[0],
                    each.seqs[-1],
                    each.due_us,
                    taking.now_us,
                    each.key,
                    each.numbers(),
                    message.id,
                    message.withheld,
                )
                for message, each in made
            ],
        )
        for _, each in made:
            settle_unleased(self._db, each.subscription, taking.now_us)

    def _write_health(self, one: Finished) -> bool:
        """Keep the record of the endpoint; return whether the lease is still held."""
        health = one.decision.health
        updated = self._db.execute(
            "UPDATE lane SET failures = ?, failing_since_us = ?, paused_until_us = ?"
            " WHERE subscription = ? AND owner = ?",
            (
                health.failures,
                health.failing_since_us,
                health.paused_until_us,
                one.taken.subscription.id,
                self._owner,
            ),
        )
        return updated.rowcount > 0

    def _write_attempt(self, one: Finished, outcome: Outcome) -> None:
        self._db.execute(
            # A replay may have taken the delivery away, and its row may be another's by now.
            "INSERT OR REPLACE INTO attempt SELECT number, ?, ?, ?, ?, ?, ? FROM delivery"
            " WHERE number = ? AND id = ?",
            (
                one.taken.number,
                one.at_us,
                outcome.kind,
                outcome.status,
                outcome.detail[:RESPONSE_KEPT_MAX],
                outcome.elapsed_us,
                one.taken.row,
                one.taken.delivery_id,
            ),
        )

    def _write_fate(self, one: Finished, now_us: int) -> None:
        fate = one.decision.fate
        self._db.execute(
            "UPDATE delivery SET state = ?, attempts = ?, next_us = ?, changed_us = ?"
            " WHERE number = ? AND id = ? AND state <> 'cancelled'",
            (
                _STATES[fate],
                one.taken.number,
                one.decision.next_us if fate is Fate.RETRY else None,
                now_us,
                one.taken.row,
                one.taken.delivery_id,
            ),
        )


def _held_until_us(lane: Lane, subscription: Subscription, now_us: int) -> int:
    """Return until when nothing of a lane is sent, whatever is due; 0 where that is no reason."""
    options = subscription.options
    loud_us = options.cadence.loud_us(now_us) if options.quiet else now_us
    until_us = max(loud_us, lane.snoozed_until_us)
    return until_us if until_us > now_us else 0


def _is_mailed_at_once(subscription: Subscription) -> bool:
    is_mail = subscription.destination.kind is DestinationKind.EMAIL
    return is_mail and subscription.options.cadence.is_immediate
