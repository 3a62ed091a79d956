"""Durable consumers: matches that come again until they are answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from xscl.client.connection import Connection
from xscl.client.values import Match, read_match

__all__ = ["Consumer", "Message"]

_WAIT_S = 20.0

_Answer = Callable[[dict[str, Any]], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Message:
    """A match for a durable consumer, for the `attempt`-th time.

    Answers return False where the match no longer waits for one: it was answered, or its time
    was over and it has gone out again.
    """

    match: Match
    attempt: int
    _answer: _Answer = field(repr=False)

    async def ack(self) -> bool:
        """Take it as done."""
        return await self._answer({"ack": [self.match.seq]})

    async def nak(self, *, delay_s: float = 0.0) -> bool:
        """Have it come again after a delay."""
        return await self._answer({"nak": [self.match.seq], "delay_s": delay_s})

    async def extend(self) -> bool:
        """Ask for the whole time again to work on it."""
        return await self._answer({"extend": [self.match.seq]})

    async def term(self, *, reason: str = "the consumer gave it up") -> bool:
        """Give it up: it is a dead letter of the subscription."""
        return await self._answer({"term": [self.match.seq], "reason": reason})

    def _repr_html_(self) -> str:
        return self.match._repr_html_()


class Consumer:
    """One durable consumer of a subscription, over a connection."""

    def __init__(self, connection: Connection, subscription_id: str, name: str) -> None:
        self._connection = connection
        self._path = ("subscriptions", subscription_id, "consumers", name)

    async def create(
        self, start: str | int | datetime, ack_wait_s: float, max_deliver: int
    ) -> None:
        """Make the consumer where there is none."""
        if isinstance(start, datetime):
            start = start.astimezone(UTC).isoformat()
        body = {"start": start, "ack_wait_s": ack_wait_s, "max_deliver": max_deliver}
        await self._connection.call("PUT", *self._path, body=body)

    async def fetch(self, limit: int) -> list[Message]:
        """Return what is due again and what is new; waits a while for the first."""
        answer = await self._connection.call(
            *("POST", *self._path, "fetch"),
            body={"limit": limit, "wait_s": _WAIT_S},
            timeout_s=_WAIT_S + 15,
        )
        return [
            Message(read_match(each["match"], each["seq"]), each["attempt"], self._answer)
            for each in answer["matches"]
        ]

    async def _answer(self, answer: dict[str, Any]) -> bool:
        taken = await self._connection.call("POST", *self._path, "answer", body=answer)
        return any(taken.values())
