"""What people say to a message: I have seen it, not now, not this key, or nothing for a while.

    seen            what follows the message is cancelled: its escalation, and that it comes again
    a message       one that waits is due then; one that was begun comes again then, as another
                    message with the same matches, and is escalated as much later
    a key           its messages are suppressed until then
    a subscription  nothing is sent until then, and then what it has missed

Each answer can come twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broker.delivery.attempt import ESCALATION
from broker.delivery.deliveries import DeliveryError
from broker.delivery.lanes import settle_unleased
from broker.delivery.store import delivery_id
from broker.settings.database import transaction

__all__ = ["Answers", "NotSentError"]

_FOLLOWING = "first_seq, seq, seqs, key"


class NotSentError(Exception):
    """A message that was not sent cannot have been seen."""


@dataclass(frozen=True, slots=True)
class _Message:
    """A delivery as answers need it; `lane` is the subscription's, or its second one."""

    row: int
    lane: str
    key: str | None
    state: str
    begun_us: int | None
    attempts: int
    origin: str | None
    acknowledged_us: int | None


class Answers:
    """The answers in the file of deliveries.  One object serves one thread at a time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def subscription_of(self, name: str) -> str:
        """Return the subscription of a delivery, or raise `DeliveryError`."""
        return self._message(name).lane.removesuffix(ESCALATION)

    def key_of(self, name: str) -> str | None:
        """Return the key of a delivery's matches, or raise `DeliveryError`."""
        return self._message(name).key

    def acknowledge(self, name: str, now_us: int) -> int:
        """Take a message, or what follows it, as seen; return since when it is.

        Raises `DeliveryError`, and `NotSentError`.
        """
        with transaction(self._db):
            message = self._message(name)
            if message.origin is not None and self._has(message.origin):
                name, message = message.origin, self._message(message.origin)
            if message.begun_us is None or message.begun_us > now_us:
                raise NotSentError(f"{name!r} has not been sent")
            self._db.execute(
                "UPDATE delivery SET acknowledged_us = ? WHERE id = ? AND acknowledged_us IS NULL",
                (now_us, name),
            )
            self._db.execute(
                "UPDATE delivery SET state = 'cancelled', next_us = NULL, changed_us = ?,"
                " reason = 'acknowledged' WHERE origin = ? AND next_us IS NOT NULL",
                (now_us, message.origin or name),
            )
            self._settle(message.lane, now_us)
        return message.acknowledged_us or now_us

    def snooze_message(self, name: str, until_us: int, now_us: int) -> str:
        """Have a message come then; return the id under which it does, or raise `DeliveryError`."""
        with transaction(self._db):
            message = self._message(name)
            if not self._has_lane(message.lane):
                raise DeliveryError(f"the subscription of {name!r} has ended")
            if message.begun_us is None and not message.attempts:
                # Who asks for one that was held back gets it, whatever its key has had.
                asked_us = None if message.state == "due" else until_us
                self._db.execute(
                    "UPDATE delivery SET state = 'due', next_us = ?1, begun_us = ?2, reason = '',"
                    " changed_us = ?3 WHERE number = ?4",
                    (until_us, asked_us, now_us, message.row),
                )
            else:
                origin = message.origin or name
                name = self._repeat(message.row, origin, until_us, now_us)
                self._db.execute(
                    # An escalation was made when its origin was begun.
                    "UPDATE delivery SET next_us = ?1 + begun_us - created_us WHERE origin = ?2"
                    f" AND subscription LIKE '%{ESCALATION}' AND next_us > ?3 AND attempts = 0",
                    (until_us, origin, now_us),
                )
            self._settle(message.lane, now_us)
        return name

    def snooze_key(self, subscription_id: str, key: str, until_us: int) -> None:
        """Suppress the messages of a key until then."""
        with transaction(self._db):
            self._check_lane(subscription_id)
            self._db.execute(
                "INSERT OR REPLACE INTO snooze VALUES (?, ?, ?)", (subscription_id, key, until_us)
            )

    def snooze_subscription(self, subscription_id: str, until_us: int) -> None:
        """Send nothing of a subscription until then."""
        with transaction(self._db):
            self._check_lane(subscription_id)
            self._db.execute(
                "UPDATE lane SET snoozed_until_us = ? WHERE subscription IN (?, ?)",
                (until_us, subscription_id, subscription_id + ESCALATION),
            )

    def end_snooze(self, subscription_id: str, key: str | None, now_us: int) -> None:
        """End the snooze of a key, or of the subscription where none is named."""
        with transaction(self._db):
            if key is not None:
                self._db.execute(
                    "DELETE FROM snooze WHERE subscription = ? AND key = ?", (subscription_id, key)
                )
                return
            self._db.execute(
                "UPDATE lane SET snoozed_until_us = 0 WHERE subscription IN (?, ?)",
                (subscription_id, subscription_id + ESCALATION),
            )
            self._settle(subscription_id, now_us)

    def snoozes(
        self, subscription_id: str, now_us: int, *, limit: int = 1_000
    ) -> tuple[int | None, Mapping[str, int]]:
        """Return until when a subscription is snoozed, if it is, and each of its keys that is."""
        lane = self._db.execute(
            "SELECT snoozed_until_us FROM lane WHERE subscription = ?", (subscription_id,)
        ).fetchone()
        keys = self._db.execute(
            "SELECT key, until_us FROM snooze WHERE subscription = ? AND until_us > ?"
            " ORDER BY key LIMIT ?",
            (subscription_id, now_us, limit),
        ).fetchall()
        return lane[0] if lane and lane[0] > now_us else None, dict(keys)

    def snoozed(self, subscription_ids: Sequence[str], now_us: int) -> dict[str, int]:
        """Return until when each of some subscriptions is snoozed, where it is."""
        found = self._db.execute(
            "SELECT subscription, snoozed_until_us FROM lane WHERE snoozed_until_us > ?"
            " AND subscription IN (SELECT value FROM json_each(?))",
            (now_us, json.dumps(list(subscription_ids))),
        )
        return dict(found.fetchall())

    def has_had(self, subscription_id: str, key: str) -> bool:
        """Return whether a message with this key has been made for a subscription."""
        found = self._db.execute(
            "SELECT 1 FROM delivery WHERE subscription = ? AND key = ? LIMIT 1",
            (subscription_id, key),
        )
        return found.fetchone() is not None

    def _message(self, name: str) -> _Message:
        found = self._db.execute(
            "SELECT number, subscription, key, state, begun_us, attempts, origin, acknowledged_us"
            " FROM delivery WHERE id = ?",
            (name,),
        ).fetchone()
        if found is None:
            raise DeliveryError(f"no delivery {name!r}")
        return _Message(*found)

    def _repeat(self, row: int, origin: str, due_us: int, now_us: int) -> str:
        """Make a delivery with the matches of another, and return its id."""
        name = delivery_id(origin, f"{row} again {due_us}")
        self._db.execute(
            f"INSERT INTO delivery (id, subscription, {_FOLLOWING}, state, attempts, next_us,"
            f" created_us, changed_us, begun_us, origin) SELECT ?1, subscription, {_FOLLOWING},"
            " 'due', 0, ?2, ?3, ?3, ?2, ?5 FROM delivery WHERE number = ?4"
            " ON CONFLICT (id) DO NOTHING",
            (name, due_us, now_us, row, origin),
        )
        return name

    def _settle(self, lane: str, now_us: int) -> None:
        subscription_id = lane.removesuffix(ESCALATION)
        for each in (subscription_id, subscription_id + ESCALATION):
            settle_unleased(self._db, each, now_us)

    def _has(self, name: str) -> bool:
        """Return whether a delivery is still kept."""
        found = self._db.execute("SELECT 1 FROM delivery WHERE id = ?", (name,))
        return found.fetchone() is not None

    def _check_lane(self, subscription_id: str) -> None:
        if not self._has_lane(subscription_id):
            raise DeliveryError(f"nothing is sent of {subscription_id!r}")

    def _has_lane(self, subscription_id: str) -> bool:
        found = self._db.execute("SELECT 1 FROM lane WHERE subscription = ?", (subscription_id,))
        return found.fetchone() is not None
