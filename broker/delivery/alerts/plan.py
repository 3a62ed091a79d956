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

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from broker.delivery.store import DeliveryState
from broker.delivery.taking import Message
from broker.documents.document import render_time
from broker.registry.subscription import Options
from xscl.durations import render_duration

__all__ = ["Found", "gather", "judge"]


@dataclass(frozen=True, slots=True)
class Found:
    """A match: its number, its key, and when it was found."""

    seq: int
    key: str
    found_us: int


def gather(
    waiting: Callable[[str], Message | None],
    found: Iterable[Found],
    begin: Callable[[Found], Message],
    most: int,
) -> list[Message]:
    """Put each match into a message of at most `most`; return those that have got any, in order.

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
    message: Message,
    options: Options,
    snoozed_until_us: int,
    begun: Callable[[int], int],
    now_us: int,
) -> Message:
    """Return a message that is due and was not begun as it is from now on.

    `begun` returns how many of its key were begun after a time.
    """
    if options.collect:
        return replace(message, state=DeliveryState.COLLECTED)
    if snoozed_until_us > now_us:
        reason = f"snoozed: its key is, until {render_time(snoozed_until_us)}"
        return replace(message, state=DeliveryState.SUPPRESSED, reason=reason)
    throttle = options.throttled
    if throttle is not None and begun(now_us - throttle.within_us) >= throttle.count:
        within = render_duration(throttle.within_us)
        reason = f"throttled: {throttle.count} of its key had been sent within {within}"
        return replace(message, state=DeliveryState.SUPPRESSED, reason=reason)
    return replace(message, begun_us=now_us)
