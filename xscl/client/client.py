"""`AsyncClient`: the broker's API for asyncio."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import Any, Self

from xscl.client.connection import Connection, OverError
from xscl.client.consumer import Consumer, Message
from xscl.client.errors import BrokerUnreachableError, BusyError, RefusedError
from xscl.client.feeds import AsyncFeedOperations
from xscl.client.operations import AsyncOperations
from xscl.client.values import (
    DocumentToPublish,
    Match,
    QueryInfo,
    Receipt,
    SubscriptionInfo,
    Xml,
    document_line,
    read_match,
    read_query,
    read_receipt,
    read_subscription,
)

__all__ = ["BATCH_BYTES", "AsyncClient"]

_RETRY_FIRST_S = 0.2
_RETRY_MAX_S = 10.0
BATCH_BYTES = 4 << 20
"""Bytes of documents that are sent at a time, well below what brokers take."""

_WAIT_MAX_S = 20
_ANSWER_S = 30.0
_PREPARED_S = 3_600.0


class AsyncClient(AsyncOperations, AsyncFeedOperations):
    """A broker.  Use it in `async with`, in one event loop.

    `token` is for brokers that want one.  What the broker refuses is a `RefusedError`, a text
    that is not a query a `QueryRefusedError`.  Iterators over matches wait for a broker that is
    away.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8420",
        *,
        token: str | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self._connection = Connection(url, token, timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *unused: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give connections back."""
        await self._connection.close()

    async def register(
        self, query_id: str, text: str, *, since: str | int | None = None
    ) -> QueryInfo:
        """Register a query, or a new text of it; the very same text again changes nothing.

        A query that is paused stays so then.
        With `since` it also sees retained documents: all after a docid, all that arrived from
        a time (ISO 8601) on, or `"all"`.  The answer comes when the broker has what it needs of
        them, a minute for a million; that is waited for, as with `resume` and `subscribe`.
        """
        answer = await self._connection.call(
            "PUT",
            "queries",
            query_id,
            query={"since": since},
            body=text.encode(),
            content_type="text/plain",
            timeout_s=None if since is None else _PREPARED_S,
        )
        return read_query(answer)

    async def query(self, query_id: str) -> QueryInfo:
        """Return one query."""
        return read_query(await self._connection.call("GET", "queries", query_id))

    async def queries(self) -> list[QueryInfo]:
        """Return all queries, by id."""
        answer = await self._connection.call("GET", "queries")
        return [read_query(each) for each in answer["queries"]]

    async def pause(self, query_id: str) -> QueryInfo:
        """Stop evaluating a query from the next document on."""
        return read_query(await self._connection.call("POST", "queries", query_id, "pause"))

    async def resume(self, query_id: str) -> QueryInfo:
        """Evaluate a query again from the next document on."""
        return read_query(
            await self._connection.call(
                "POST", "queries", query_id, "resume", timeout_s=_PREPARED_S
            )
        )

    async def remove(self, query_id: str) -> None:
        """Remove a query and its subscriptions."""
        await self._connection.call("DELETE", "queries", query_id)

    async def subscribe(
        self,
        query_id: str,
        destination: str = "pull",
        *,
        parameters: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        since: str | int | None = None,
    ) -> SubscriptionInfo:
        """Have a query's matches sent to a URL or an address, or kept to be read here.

        A webhook's `secret` is in this answer and in no other.  `since` is as in `register`, but
        never before the query's own point.
        """
        body = {
            "query": query_id,
            "destination": destination,
            "parameters": dict(parameters or {}),
            "options": dict(options or {}),
            **({} if since is None else {"since": str(since)}),
        }
        timeout_s = None if since is None else _PREPARED_S
        return read_subscription(
            await self._connection.call("POST", "subscriptions", body=body, timeout_s=timeout_s)
        )

    async def subscriptions(self, query_id: str | None = None) -> list[SubscriptionInfo]:
        """Return all subscriptions, or one query's."""
        found: list[SubscriptionInfo] = []
        while True:
            after = found[-1].id if found else None
            query = {"query": query_id, "after": after}
            answer = await self._connection.call("GET", "subscriptions", query=query)
            if not answer["subscriptions"]:
                return found
            found += [read_subscription(each) for each in answer["subscriptions"]]

    async def unsubscribe(self, subscription_id: str) -> None:
        """Remove a subscription."""
        await self._connection.call("DELETE", "subscriptions", subscription_id)

    async def send_sample(self, subscription_id: str) -> Mapping[str, Any]:
        """Send a signed sample to a subscription's destination; return what came of it."""
        answer = await self._connection.call("POST", "subscriptions", subscription_id, "test")
        return dict(answer)

    async def rotate_secret(self, subscription_id: str, *, overlap_s: int = 86_400) -> str:
        """Return a new signing key; messages carry signatures of the old one too meanwhile."""
        answer = await self._connection.call(
            *("POST", "subscriptions", subscription_id, "rotate-secret"),
            query={"overlap": overlap_s},
        )
        return str(answer["secret"])

    async def publish(
        self,
        stream: str,
        xml: Xml,
        *,
        key: str | None = None,
        time: datetime | str | None = None,
    ) -> Receipt:
        """Give one document to a stream; when this returns, the broker has it on its disk.

        `xml` is text, bytes in the encoding that they declare, or an element.  Raises `ValueError`
        for a time without a zone.
        """
        line = document_line(stream, DocumentToPublish(xml, key, time)).encode()
        (receipt,) = await self._send(stream, [line])
        if receipt.docid is None:
            raise RefusedError(422, receipt.reason or "refused")
        return receipt

    async def publish_many(
        self,
        stream: str,
        documents: Iterable[DocumentToPublish] | AsyncIterable[DocumentToPublish],
        *,
        batch: int = 500,
        batch_bytes: int = BATCH_BYTES,
    ) -> AsyncIterator[Receipt]:
        """Give documents to a stream, in batches, and yield their receipts in order.

        A batch has at most `batch` of them, and at most `batch_bytes` bytes, or one document.
        Takes no more documents than the broker has accepted: where it is busy, this waits.
        """
        waiting: list[bytes] = []
        size = 0
        async for document in _each(documents):
            line = document_line(stream, document).encode()
            if waiting and (len(waiting) == batch or size + len(line) > batch_bytes):
                for receipt in await self._send(stream, waiting):
                    yield receipt
                waiting, size = [], 0
            waiting.append(line)
            size += len(line)
        if waiting:
            for receipt in await self._send(stream, waiting):
                yield receipt

    async def wait_for(self, docid: int, *, timeout_s: float = 60.0) -> None:
        """Return when a document is evaluated: its matches are found, and those before it.

        Raises `TimeoutError` where that takes longer, `RefusedError` where there is none.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            wait_s = min(max(0, int(deadline - loop.time())), _WAIT_MAX_S)
            answer = await self._connection.call(
                *("GET", "documents", str(docid), "evaluation"),
                query={"wait": wait_s},
                timeout_s=wait_s + _ANSWER_S,
            )
            if answer["is_evaluated"]:
                return
            if loop.time() >= deadline - 1:
                raise TimeoutError(f"document {docid} is not evaluated within {timeout_s:g} s")

    async def matches(
        self, subscription_id: str, *, after: int | None = None, follow: bool = True
    ) -> AsyncIterator[Match]:
        """Yield a subscription's matches numbered above `after` (None: matches that come now).

        Without `follow` it ends behind the last one so far (`after` is 0 then by default).
        With it, it goes on from where it was when the broker was away, and ends only behind the
        last match of a query that has been removed.
        """
        if not follow:
            async for match in self._pages(subscription_id, after or 0):
                yield match
            return
        cursor = None if after is None else str(after)
        wait_s = _RETRY_FIRST_S
        while True:
            try:
                stream = self._connection.events(
                    "subscriptions", subscription_id, "stream", last_id=cursor
                )
                async for event in stream:
                    cursor, wait_s = event.id, _RETRY_FIRST_S
                    if event.data:
                        yield read_match(json.loads(event.data), int(event.id))
            except OverError:
                return
            except BrokerUnreachableError:
                pass
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, _RETRY_MAX_S)

    async def consume(
        self,
        subscription_id: str,
        name: str,
        *,
        start: str | int | datetime = "new",
        ack_wait_s: float = 30.0,
        max_deliver: int = 20,
        batch: int = 100,
    ) -> AsyncIterator[Message]:
        """Yield matches to a durable consumer; each comes again until it is acknowledged.

        The consumer is made, at `start` (`new`, `all`, a docid or a time), where there is none
        of that name; else it goes on where it was.
        """
        consumer = Consumer(self._connection, subscription_id, name)
        await consumer.create(start, ack_wait_s, max_deliver)
        wait_s = _RETRY_FIRST_S
        while True:
            try:
                messages = await consumer.fetch(batch)
            except BrokerUnreachableError:
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, _RETRY_MAX_S)
                continue
            wait_s = _RETRY_FIRST_S
            for message in messages:
                yield message

    async def deliveries(
        self, *, subscription_id: str | None = None, state: str | None = None
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield deliveries, newest first, of one subscription or in one state (`dead`, ...)."""
        before: int | None = None
        while True:
            query = {"subscription": subscription_id, "state": state, "before": before}
            page = await self._connection.call("GET", "deliveries", query=query)
            for delivery in page["deliveries"]:
                yield delivery
            before = page["next"]
            if before is None:
                return

    async def retry(self, delivery_id: str) -> None:
        """Try a delivery again now, also a dead letter."""
        await self._connection.call("POST", "deliveries", delivery_id, "retry")

    async def _send(self, stream: str, lines: list[bytes]) -> list[Receipt]:
        while True:
            try:
                answer = await self._connection.call(
                    *("POST", "streams", stream, "documents"),
                    body=b"\n".join(lines),
                    content_type="application/x-ndjson",
                )
            except BusyError as busy:
                # Refused as a whole: nothing of it was taken.
                await asyncio.sleep(busy.retry_after_s)
            except RefusedError as refused:
                if refused.status != 413 or len(lines) == 1:
                    raise
                half = len(lines) // 2
                first = await self._send(stream, lines[:half])
                return first + await self._send(stream, lines[half:])
            else:
                return [read_receipt(each) for each in answer["documents"]]

    async def _pages(self, subscription_id: str, after: int) -> AsyncIterator[Match]:
        while True:
            page = await self._connection.call(
                *("GET", "subscriptions", subscription_id, "matches"), query={"after": after}
            )
            if not page["matches"]:
                return
            for fields in page["matches"]:
                yield read_match(fields, fields["seq"])
            after = page["next"]


async def _each(
    documents: Iterable[DocumentToPublish] | AsyncIterable[DocumentToPublish],
) -> AsyncIterator[DocumentToPublish]:
    if isinstance(documents, AsyncIterable):
        async for document in documents:
            yield document
    else:
        for document in documents:
            yield document
