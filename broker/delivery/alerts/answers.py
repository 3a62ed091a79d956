"""What people say to a message: not now, or not this key, or nothing at all for a while.

    a message       one that waits is due then; one that was begun comes again then, as another
                    message with the same matches
    a key           its messages are suppressed until then
    a subscription  nothing is sent until then, and then what it has missed

Each answer can come twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from broker.delivery.deliveries import DeliveryError
from broker.delivery.lanes import settle
from broker.delivery.store import delivery_id
from broker.settings.database import transaction

__all__ = ["Answers"]

_FOLLOWING = "first_seq, seq, seqs, key"


class Answers:
    """The answers in the file of deliveries.  One object serves one thread at a time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def subscription_of(self, name: str) -> str:
        """Return the subscription of a delivery, or raise `DeliveryError`."""
        return str(self._row(name)[1])

    def key_of(self, name: str) -> str | None:
        """Return the key of a delivery's matches, or raise `DeliveryError`."""
        key: str | None = self._row(name)[2]
        return key

    def snooze_message(self, name: str, until_us: int, now_us: int) -> str:
        """Have a message come then; return the id under which it does, or raise `DeliveryError`."""
        with transaction(self._db):
            row, subscription, _, state, begun_us, attempts = self._row(name)
            if state == "cancelled" or not self._has_lane(subscription):
                raise DeliveryError(f"the subscription of {name!r} has ended")
            if begun_us is None and not attempts:
                # Who asks for one that was held back gets it, whatever its key has had.
                asked_us = None if state == "due" else until_us
                self._db.execute(
                    "UPDATE delivery SET state = 'due', next_us = ?1, begun_us = ?2, reason = '',"
                    " changed_us = ?3 WHERE number = ?4",
                    (until_us, asked_us, now_us, row),
                )
            else:
                name = self._follow(row, delivery_id(name, f"again {until_us}"), until_us, now_us)
            self._settle(subscription, now_us)
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
                "UPDATE lane SET snoozed_until_us = ? WHERE subscription = ?",
                (until_us, subscription_id),
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
                "UPDATE lane SET snoozed_until_us = 0 WHERE subscription = ?", (subscription_id,)
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

    def _row(self, name: str) -> tuple[int, str, str | None, str, int | None, int]:
        found: tuple[int, str, str | None, str, int | None, int] | None = self._db.execute(
            "SELECT number, subscription, key, state, begun_us, attempts FROM delivery"
            " WHERE id = ?",
            (name,),
        ).fetchone()
        if found is None:
            raise DeliveryError(f"no delivery {name!r}")
        return found

    def _follow(self, row: int, name: str, due_us: int, now_us: int) -> str:
        """Make a delivery with the matches of another."""
        self._db.execute(
            f"INSERT INTO delivery (id, subscription, {_FOLLOWING}, state, attempts, next_us,"
            f" created_us, changed_us, begun_us) SELECT ?1, subscription, {_FOLLOWING}, 'due', 0,"
            " ?2, ?3, ?3, ?2 FROM delivery WHERE number = ?4 ON CONFLICT (id) DO NOTHING",
            (name, due_us, now_us, row),
        )
        return name

    def _check_lane(self, subscription_id: str) -> None:
        if not self._has_lane(subscription_id):
            raise DeliveryError(f"nothing is sent of {subscription_id!r}")

    def _has_lane(self, subscription_id: str) -> bool:
        found = self._db.execute("SELECT 1 FROM lane WHERE subscription = ?", (subscription_id,))
        return found.fetchone() is not None

    def _settle(self, subscription_id: str, now_us: int) -> None:
        # What is under a lease is settled when it is finished.
        leased = "SELECT 1 FROM lane WHERE subscription = ? AND owner <> ''"
        if not self._db.execute(leased, (subscription_id,)).fetchone():
            settle(self._db, subscription_id, now_us)
