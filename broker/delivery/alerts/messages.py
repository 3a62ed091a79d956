"""The messages of lanes that tell their matches apart, in the file of deliveries.

See `broker.delivery.alerts` for what must always hold.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from broker.delivery.alerts.key import key_of
from broker.delivery.alerts.plan import WaitingMatch, gather, judge
from broker.delivery.store import DeliveryState, Taken, delivery_id
from broker.delivery.taking import Lane, Message, Taking, message_max
from broker.pipeline.matchlog import CommittedMatch
from broker.registry.cadence import Throttle
from broker.registry.subscription import Subscription

__all__ = ["FOUND_MAX", "WAITING_MAX", "WITHHELD_MAX", "Messages"]

FOUND_MAX = 1_000
"""Matches that are put into messages in one turn of a lane."""

WAITING_MAX = 1_000
"""Messages of one subscription that wait; matches behind them wait in the outbox."""

WITHHELD_MAX = 1_000
"""Suppressed messages that are counted for the one that follows them."""

_JUDGED_MAX = 100
"""Messages that are looked at in one turn of a lane, until one is sent."""

_MESSAGE = (
    "number, id, subscription, first_seq, seqs, next_us, key, begun_us, attempts, state, withheld"
)


def _read(row: Sequence[Any]) -> Message:
    """Return the message of a row with the columns `_MESSAGE`."""
    number, id_, subscription, first, seqs, next_us, key, begun_us, attempts, state, withheld = row
    return Message(
        row=number,
        id=id_,
        subscription=subscription,
        seqs=json.loads(seqs) if seqs else [first],
        due_us=next_us,
        key=key,
        begun_us=begun_us,
        attempts=attempts,
        state=DeliveryState(state),
        withheld=withheld,
    )


class Messages:
    """Gathers and judges, in the transaction of who takes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def choose(self, lane: Lane, subscription: Subscription, taking: Taking) -> Taken | None:
        """Return the message whose turn it is, None where none is to be sent now."""
        touched = {each.row: each for each in self._gather(lane, subscription, taking)}
        # Where a row that is due has grown, it counts as it is now.
        waits = lane.due_us is not None and lane.due_us <= taking.now_us
        due = {**self._due(lane, taking.now_us), **touched} if waits else touched
        chosen = None
        for message in sorted(due.values(), key=_place) if len(due) > 1 else due.values():
            if message.due_us > taking.now_us:
                break
            if message.begun_us is None:
                self._judge(message, subscription, taking)
                touched[message.row] = message
            if message.state is DeliveryState.DUE:
                chosen = message
                break
        for message in touched.values():
            (taking.made if message.is_new else taking.changed).append(message)
        if chosen is None:
            return None
        return Taken(
            chosen.row,
            chosen.id,
            chosen.attempts + 1,
            subscription,
            taking.numbered(chosen.seqs),
            lane.health,
            chosen.withheld,
        )

    def _gather(self, lane: Lane, subscription: Subscription, taking: Taking) -> list[Message]:
        """Pass the cursor over what was found, and return the messages that it went into."""
        if lane.head <= lane.seq:
            taking.moved.append((lane.seq, None, lane.subscription))
            return []
        if self._is_full(lane):
            taking.moved.append((lane.seq, lane.due_us, lane.subscription))
            return []
        matches = taking.matches(subscription, lane.seq, limit=FOUND_MAX)
        if len(matches) == FOUND_MAX:
            taking.moved.append((matches[-1].seq, taking.now_us, lane.subscription))
        else:
            last = max(lane.head, matches[-1].seq) if matches else lane.head
            taking.moved.append((last, None, lane.subscription))

        def begin(first: WaitingMatch) -> Message:
            return _new(first, subscription, taking)

        def waiting(key: str) -> Message | None:
            return None if lane.due_us is None else self._waiting(subscription.id, key)

        found = _found(matches, subscription.options.key, taking)
        return gather(waiting, found, begin, message_max(subscription))

    def _judge(self, message: Message, subscription: Subscription, taking: Taking) -> None:
        """Begin a message, or write why it is not."""
        options, now_us = subscription.options, taking.now_us
        snoozed = self._snoozed(taking).get(message.subscription, {}) if options.key else {}
        begun = self._begun(message, options.throttled, taking)
        message.state, message.reason = judge(
            options, snoozed.get(message.key or "", 0), [at_us for at_us, _ in begun], now_us
        )
        if message.state is DeliveryState.DUE:
            message.begun_us = now_us
            # A key of which none was begun may have had some suppressed only where it was snoozed.
            if begun or snoozed:
                message.withheld = self._withheld(message, now_us)

    def _begun(
        self, message: Message, throttle: Throttle | None, taking: Taking
    ) -> list[tuple[int, int]]:
        """Return when the last messages of a key were begun, and their rows, the newest first."""
        if throttle is None or message.subscription not in self._keyed(taking):
            return []
        # What a clock that went back left in the future is no reason to be silent.
        rows: list[tuple[int, int]] = self._db.execute(
            "SELECT begun_us, number FROM delivery WHERE subscription = ? AND key = ?"
            " AND begun_us <= ? ORDER BY begun_us DESC LIMIT ?",
            (message.subscription, message.key, taking.now_us, throttle.count),
        ).fetchall()
        return rows

    def _keyed(self, taking: Taking) -> frozenset[str]:
        """Return the lanes that have had a message before."""
        if taking.keyed is None:
            rows = self._db.execute(
                "SELECT value FROM json_each(?) WHERE EXISTS"
                " (SELECT 1 FROM delivery WHERE subscription = value AND key IS NOT NULL)",
                (json.dumps(taking.lanes),),
            )
            taking.keyed = frozenset(name for (name,) in rows.fetchall())
        return taking.keyed

    def _withheld(self, message: Message, now_us: int) -> int:
        """Return how many messages of a key were suppressed since one was begun."""
        # Messages of one key are made, and judged, in the order of their rows.
        row = self._db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM delivery WHERE subscription = ?1 AND key = ?2"
            "  AND begun_us IS NULL AND state = 'suppressed' AND number > coalesce((SELECT number"
            "   FROM delivery WHERE subscription = ?1 AND key = ?2 AND begun_us <= ?3"
            "   ORDER BY begun_us DESC LIMIT 1), 0) LIMIT ?4)",
            (message.subscription, message.key, now_us, WITHHELD_MAX),
        )
        return int(row.fetchone()[0])

    def _snoozed(self, taking: Taking) -> Mapping[str, Mapping[str, int]]:
        """Return until when keys are, or were of late, snoozed, by subscription."""
        if taking.snoozed is None:
            taking.snoozed = defaultdict(dict)
            for subscription_id, key, until_us in self._db.execute(
                "SELECT subscription, key, until_us FROM snooze"
                " WHERE subscription IN (SELECT value FROM json_each(?))",
                (json.dumps(taking.lanes),),
            ):
                taking.snoozed[subscription_id][key] = until_us
        return taking.snoozed

    def _is_full(self, lane: Lane) -> bool:
        if lane.due_us is None:
            return False
        row = self._db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM delivery"
            "  WHERE subscription = ? AND next_us IS NOT NULL LIMIT ?)",
            (lane.subscription, WAITING_MAX),
        )
        return int(row.fetchone()[0]) >= WAITING_MAX

    def _waiting(self, subscription_id: str, key: str) -> Message | None:
        """Return the newest message of a key, if it waits and is not begun."""
        row = self._db.execute(
            f"SELECT {_MESSAGE} FROM delivery WHERE subscription = ? AND key = ?"
            " AND begun_us IS NULL ORDER BY number DESC LIMIT 1",
            (subscription_id, key),
        ).fetchone()
        message = row and _read(row)
        return message if message and message.state is DeliveryState.DUE else None

    def _due(self, lane: Lane, now_us: int) -> dict[int, Message]:
        rows = self._db.execute(
            f"SELECT {_MESSAGE} FROM delivery WHERE subscription = ? AND next_us <= ?"
            " ORDER BY next_us, number LIMIT ?",
            (lane.subscription, now_us, _JUDGED_MAX),
        )
        return {row[0]: _read(row) for row in rows.fetchall()}


def _place(message: Message) -> tuple[int, int]:
    """Return where in the order of its lane a message stands."""
    return message.due_us, message.seqs[0]


def _new(first: WaitingMatch, subscription: Subscription, taking: Taking) -> Message:
    """Return the message that a match begins."""
    # Where the clock went back, not from a time that is still to come.
    found_us = min(first.found_us, taking.now_us)
    return Message(
        row=taking.number(),
        id=delivery_id(subscription.id, first.id),
        subscription=subscription.id,
        seqs=[first.seq],
        due_us=subscription.options.cadence.due_us(found_us),
        key=first.key,
        is_new=True,
    )


def _found(
    matches: Sequence[CommittedMatch], terms: tuple[str, ...], taking: Taking
) -> Sequence[WaitingMatch]:
    """Return matches with their keys, which lanes of one topic mostly share."""
    # The page is kept for as long as this is.
    of = (terms, id(matches))
    if of not in taking.found:
        taking.found[of] = [
            WaitingMatch(match.seq, match.id, key_of(match, terms), match.committed_us)
            for match in matches
        ]
    return taking.found[of]
