"""What was sent, what was answered, and sending again: deliveries as operators see them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from broker.delivery.attempt import ESCALATION
from broker.delivery.lanes import settle_unleased
from broker.delivery.store import DeliveryState
from broker.settings.database import transaction
from joins import UNBOUNDED

__all__ = ["AttemptMade", "Deliveries", "Delivery", "DeliveryError"]

_COLUMNS = (
    "delivery.number, id, delivery.subscription, first_seq, delivery.seq, state, attempts, next_us,"
    " created_us, changed_us, key, delivery.seqs, begun_us, reason, origin, acknowledged_us"
)


_SEQS = 11
"""The place of `seqs` among the columns."""


class DeliveryError(LookupError):
    """There is no such delivery."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery: the matches numbered `first_seq` to `seq` of a subscription's topic.

    Where `seqs` is not None, it has these of them only.  `key` is None where a subscription tells
    no messages apart, `begun_us` where it was not begun.  `origin` is the delivery that it
    escalates or repeats; an escalation goes to the subscription's second address.  `last_outcome`,
    `last_status` and `last_detail` are those of its newest attempt.
    """

    row: int
    id: str
    subscription: str
    first_seq: int
    seq: int
    state: DeliveryState
    attempts: int
    next_us: int | None
    created_us: int
    changed_us: int
    key: str | None
    seqs: tuple[int, ...] | None
    begun_us: int | None
    reason: str
    origin: str | None
    acknowledged_us: int | None
    last_outcome: str | None
    last_status: int | None
    last_detail: str | None
    is_escalation: bool = False


@dataclass(frozen=True, slots=True)
class AttemptMade:
    """One attempt, and what the endpoint answered (its first 1,024 characters)."""

    number: int
    at_us: int
    outcome: str
    status: int | None
    detail: str
    elapsed_us: int


class Deliveries:
    """The deliveries in their file.  One object serves one thread at a time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def find(
        self,
        *,
        subscription: str | None = None,
        state: DeliveryState | None = None,
        is_tried: bool = False,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Delivery]:
        """Return deliveries, newest first; `before` is the `row` of the last one seen.

        With `is_tried` only those of which an attempt has ended.
        """
        conditions = ["delivery.number < ?"]
        values: list[object] = [UNBOUNDED if before is None else before]
        if state is not None:
            conditions.append("state = ?")
            values.append(state)
        if is_tried:
            conditions.append("attempts > 0")
        ordered = " ORDER BY delivery.number DESC LIMIT ?"
        where = "WHERE " + " AND ".join(conditions)
        if subscription is None:
            return self._select(where + ordered, *values, limit)
        # One after the other: each is read in the order of its index, and no further than that.
        where += " AND delivery.subscription = ?"
        lanes = (subscription, subscription + ESCALATION)
        found = [
            each for lane in lanes for each in self._select(where + ordered, *values, lane, limit)
        ]
        return sorted(found, key=lambda each: -each.row)[:limit]

    def of_match(self, subscriptions: Sequence[str], seq: int, *, limit: int) -> list[Delivery]:
        """Return the deliveries of some subscriptions that had a match, newest first."""
        where = "WHERE delivery.subscription = ? AND first_seq <= ? AND seq >= ?"
        where += " ORDER BY delivery.number DESC LIMIT ?"
        lanes = [lane for name in subscriptions for lane in (name, name + ESCALATION)]
        found = [each for lane in lanes for each in self._select(where, lane, seq, seq, limit)]
        had = (each for each in found if each.seqs is None or seq in each.seqs)
        return sorted(had, key=lambda each: -each.row)[:limit]

    def show(self, delivery_id: str) -> tuple[Delivery, list[AttemptMade]]:
        """Return a delivery and its attempts, oldest first; raise `DeliveryError`."""
        found = self._select("WHERE id = ?", delivery_id)
        if not found:
            raise DeliveryError(f"no delivery {delivery_id!r}")
        rows = self._db.execute(
            "SELECT number, at_us, outcome, status, detail, elapsed_us FROM attempt"
            " WHERE delivery = ? ORDER BY at_us, number",
            (found[0].row,),
        )
        return found[0], [AttemptMade(*row) for row in rows.fetchall()]

    def retry(self, ids: Sequence[str], now_us: int) -> int:
        """Try deliveries now, whatever their state but cancelled; return how many."""
        return sum(self._again("id = ?", id_, now_us) for id_ in ids)

    def retry_all(self, subscription: str, state: DeliveryState, now_us: int) -> int:
        """Try a subscription's deliveries of one state now, as dead letters; return how many."""
        return self._again(f"state = '{state}' AND subscription = ?", subscription, now_us)

    def replay(self, subscription: str, *, after: int, now_us: int) -> None:
        """Send a subscription's matches numbered above `after` again, under their ids.

        What receivers have taken they know by its id.
        """
        with transaction(self._db):
            self._cut(subscription, after)
            self._db.execute(
                "DELETE FROM attempt WHERE delivery IN (SELECT number FROM delivery"
                " WHERE subscription IN (?, ?) AND first_seq > ?)",
                (subscription, subscription + ESCALATION, after),
            )
            self._db.execute(
                "DELETE FROM delivery WHERE subscription IN (?, ?) AND first_seq > ?",
                (subscription, subscription + ESCALATION, after),
            )
            self._db.execute(
                "UPDATE lane SET seq = min(seq, ?), fresh_us = NULL WHERE subscription = ?",
                (after, subscription),
            )
            settle_unleased(self._db, subscription, now_us)

    def _cut(self, subscription: str, after: int) -> None:
        """Take what is sent again out of the messages that were not begun."""
        rows = self._db.execute(
            "SELECT number, seqs FROM delivery WHERE subscription = ? AND first_seq <= ?"
            " AND seq > ? AND begun_us IS NULL AND seqs IS NOT NULL",
            (subscription, after, after),
        ).fetchall()
        for row, seqs in rows:
            kept = [seq for seq in json.loads(seqs) if seq <= after]
            self._db.execute(
                "UPDATE delivery SET seq = ?, seqs = ? WHERE number = ?",
                (kept[-1], json.dumps(kept), row),
            )

    def counts(self) -> dict[str, int]:
        """Return how many deliveries there are in each state."""
        rows = self._db.execute("SELECT state, count(*) FROM delivery GROUP BY state").fetchall()
        return dict(rows)

    def prune(self, *, before_us: int) -> int:
        """Forget deliveries that ended before then, dead letters included; return how many."""
        with transaction(self._db):
            self._db.execute("DELETE FROM snooze WHERE until_us < ?", (before_us,))
            self._db.execute(
                "DELETE FROM attempt WHERE delivery IN (SELECT number FROM delivery"
                " WHERE next_us IS NULL AND changed_us < ?)",
                (before_us,),
            )
            gone = self._db.execute(
                "DELETE FROM delivery WHERE next_us IS NULL AND changed_us < ?", (before_us,)
            )
            return gone.rowcount

    def _again(self, condition: str, value: str, now_us: int) -> int:
        with transaction(self._db):
            changed = self._db.execute(
                # The schedule begins anew; attempts made so far stay listed under their times.
                # Who asks for one gets it, whatever its key has had.
                "UPDATE delivery SET state = 'due', attempts = 0, next_us = ?1, changed_us = ?1,"
                " begun_us = coalesce(begun_us, ?1), reason = ''"
                f" WHERE {condition.replace('?', '?2')} AND state <> 'cancelled'"
                " AND subscription IN (SELECT subscription FROM lane)"
                " RETURNING subscription",
                (now_us, value),
            ).fetchall()
            for subscription in {name for (name,) in changed}:
                self._db.execute(
                    "UPDATE lane SET paused_until_us = 0 WHERE subscription = ?", (subscription,)
                )
                settle_unleased(self._db, subscription, now_us)
        return len(changed)

    def _select(self, condition: str, *values: object) -> list[Delivery]:
        rows: list[Any] = self._db.execute(
            f"SELECT {_COLUMNS}, last.outcome, last.status, last.detail FROM delivery"
            " LEFT JOIN attempt AS last ON last.delivery = delivery.number"
            " AND (last.at_us, last.number) = (SELECT at_us, number FROM attempt"
            "  WHERE delivery = delivery.number ORDER BY at_us DESC, number DESC LIMIT 1)"
            f" {condition}",
            values,
        ).fetchall()
        return [_delivery(row) for row in rows]


def _delivery(row: Sequence[Any]) -> Delivery:
    made = Delivery(*row)
    seqs = tuple(json.loads(row[_SEQS])) if row[_SEQS] else None
    owner = made.subscription.removesuffix(ESCALATION)
    return replace(
        made,
        subscription=owner,
        state=DeliveryState(made.state),
        seqs=seqs,
        is_escalation=owner != made.subscription,
    )
