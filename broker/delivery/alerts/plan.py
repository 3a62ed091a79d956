"""Which message a match goes into, and what becomes of a message whose turn has come.

Two functions of values, without a file or a clock:

    gather   each match joins the message of its key that waits and has room, or begins one, which
             is due when the cadence says for the time at which the match was found
    judge    a message that is due is begun, unless its lane collects, or its key is snoozed, or
             as many of its key as the throttle allows have been begun in the time before

So a match that is found while its key's message waits never has a message of its own: a group
that is overdue, because the broker was down or the subscription paused, goes out as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from broker.delivery.store import DeliveryState
from broker.delivery.taking import Message
from broker.documents.document import render_time
from broker.registry.subscription import Options
from xscl.durations import render_duration

__all__ = ["WaitingMatch", "gather", "judge"]


@dataclass(frozen=True, slots=True)
class WaitingMatch:
    """A match: its number, its id, its key, and when it was found."""

    seq: int
    id: str
    key: str
    found_us: int


def gather(
    waiting: Callable[[str], Message | None],
    found: Iterable[WaitingMatch],
    begin: Callable[[WaitingMatch], Message],
    most: int,
) -> list[Message]:
    """Put each match into a message of at most `most`; return messages that have got any, in order.

    `waiting` returns the message of a key that is not begun, if there is one; `begin` makes one.
    """
    open_messages: dict[str, Message | None] = {}
    touched: dict[int, Message] = {}
    for each in found:
        if each.key not in open_messages:
            open_messages[each.key] = waiting(each.key)
        message = open_messages[each.key]
        if message is None or len(message.seqs) >= most:
            message = open_messages[each.key] = begin(each)
        else:
            message.seqs.append(each.seq)
        touched[message.row] = message
    return list(touched.values())


def judge(
    options: Options, snoozed_until_us: int, begun_us: Sequence[int], now_us: int
) -> tuple[DeliveryState, str]:
    """Return what becomes of a message that is due and was not begun, and why.

    `begun_us` is when the last messages of its key were begun, the newest first: as many of them
    as the throttle allows, or all.
    """
    if options.collect:
        return DeliveryState.COLLECTED, ""
    if snoozed_until_us > now_us:
        reason = f"snoozed: its key is, until {render_time(snoozed_until_us)}"
        return DeliveryState.SUPPRESSED, reason
    throttle = options.throttled
    if throttle is None or len(begun_us) < throttle.count:
        return DeliveryState.DUE, ""
    if begun_us[throttle.count - 1] <= now_us - throttle.within_us:
        return DeliveryState.DUE, ""
    within = render_duration(throttle.within_us)
    reason = f"throttled: {throttle.count} of its key had been sent within {within}"
    return DeliveryState.SUPPRESSED, reason
