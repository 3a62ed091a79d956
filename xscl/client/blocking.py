"""`Client`: the broker's API without asyncio, for scripts and notebooks."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Self, TypeVar

from xscl.client.client import BATCH_BYTES, AsyncClient
from xscl.client.consumer import Message
from xscl.client.errors import ClosedError
from xscl.client.feeds import FeedOperations
from xscl.client.operations import Operations
from xscl.client.values import (
    DocumentToPublish,
    Match,
    QueryInfo,
    Receipt,
    SubscriptionInfo,
    Xml,
)

__all__ = ["BlockingMessage", "Client"]

T = TypeVar("T")


class Client(Operations, FeedOperations):
    """A broker.  Use it in `with`, from any thread; see `AsyncClient` for what methods promise.

    It has an event loop in a thread of its own, so that it works inside a notebook, which has
    one already.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8420",
        *,
        token: str | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self._client: AsyncClient = AsyncClient(url, token=token, timeout_s=timeout_s)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="xscl-client", daemon=True
        )
        self._thread.start()
        # Also for who forgets to close it.
        self._close = weakref.finalize(self, _close, self._loop, self._thread, self._client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def close(self) -> None:
        """Give connections back and end the thread; nothing can be asked any more."""
        self._close()

    def register(self, query_id: str, text: str, *, since: str | int | None = None) -> QueryInfo:
        """Register a query, or a new text of it."""
        return self._run(self._client.register(query_id, text, since=since))

    def query(self, query_id: str) -> QueryInfo:
        """Return one query."""
        return self._run(self._client.query(query_id))

    def queries(self) -> list[QueryInfo]:
        """Return all queries, by id."""
        return self._run(self._client.queries())

    def pause(self, query_id: str) -> QueryInfo:
        """Stop evaluating a query."""
        return self._run(self._client.pause(query_id))

    def resume(self, query_id: str) -> QueryInfo:
        """Evaluate a query again."""
        return self._run(self._client.resume(query_id))

    def remove(self, query_id: str) -> None:
        """Remove a query and its subscriptions."""
        self._run(self._client.remove(query_id))

    def subscribe(
        self,
        query_id: str,
        destination: str = "pull",
        *,
        parameters: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        since: str | int | None = None,
    ) -> SubscriptionInfo:
        """Have a query's matches sent somewhere, or kept to be read here."""
        return self._run(
            self._client.subscribe(
                query_id, destination, parameters=parameters, options=options, since=since
            )
        )

    def subscriptions(self, query_id: str | None = None) -> list[SubscriptionInfo]:
        """Return all subscriptions, or one query's."""
        return self._run(self._client.subscriptions(query_id))

    def unsubscribe(self, subscription_id: str) -> None:
        """Remove a subscription."""
        self._run(self._client.unsubscribe(subscription_id))

    def send_sample(self, subscription_id: str) -> Mapping[str, Any]:
        """Send a signed sample; return what came of it."""
        return self._run(self._client.send_sample(subscription_id))

    def rotate_secret(self, subscription_id: str, *, overlap_s: int = 86_400) -> str:
        """Return a new signing key."""
        return self._run(self._client.rotate_secret(subscription_id, overlap_s=overlap_s))

    def publish(
        self,
        stream: str,
        xml: Xml,
        *,
        key: str | None = None,
        time: datetime | str | None = None,
    ) -> Receipt:
        """Give one document to a stream; see `AsyncClient.publish`."""
        return self._run(self._client.publish(stream, xml, key=key, time=time))

    def wait_for(self, docid: int, *, timeout_s: float = 60.0) -> None:
        """Return when a document is evaluated; see `AsyncClient.wait_for`."""
        self._run(self._client.wait_for(docid, timeout_s=timeout_s))

    def publish_many(
        self,
        stream: str,
        documents: Iterable[DocumentToPublish],
        *,
        batch: int = 500,
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[Receipt]:
        """Give documents to a stream and yield their receipts; waits where the broker is busy."""
        return self._each(
            self._client.publish_many(stream, documents, batch=batch, batch_bytes=batch_bytes)
        )

    def matches(
        self, subscription_id: str, *, after: int | None = None, follow: bool = True
    ) -> Iterator[Match]:
        """Yield a subscription's matches; see `AsyncClient.matches`."""
        return self._each(self._client.matches(subscription_id, after=after, follow=follow))

    def consume(
        self,
        subscription_id: str,
        name: str,
        *,
        start: str | int | datetime = "new",
        ack_wait_s: float = 30.0,
        max_deliver: int = 20,
        batch: int = 100,
    ) -> Iterator[BlockingMessage]:
        """Yield matches to a durable consumer; see `AsyncClient.consume`."""
        messages = self._client.consume(
            subscription_id,
            name,
            start=start,
            ack_wait_s=ack_wait_s,
            max_deliver=max_deliver,
            batch=batch,
        )
        for message in self._each(messages):
            yield BlockingMessage(message, self)

    def deliveries(
        self, *, subscription_id: str | None = None, state: str | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield deliveries, newest first."""
        return self._each(self._client.deliveries(subscription_id=subscription_id, state=state))

    def retry(self, delivery_id: str) -> None:
        """Try a delivery again now."""
        self._run(self._client.retry(delivery_id))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._close.alive:
            work.close()
            raise ClosedError("this client has been closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _each(self, values: AsyncIterator[T]) -> Iterator[T]:
        try:
            while True:
                try:
                    yield self._run(_next(values))
                except StopAsyncIteration:
                    return
        finally:
            if self._close.alive:
                self._run(_end(values))


class BlockingMessage:
    """A match for a durable consumer; see `Message`."""

    def __init__(self, message: Message, client: Client) -> None:
        self._message = message
        self._client = client

    @property
    def match(self) -> Match:
        """The match."""
        return self._message.match

    @property
    def attempt(self) -> int:
        """How often it has come, this time counted."""
        return self._message.attempt

    def ack(self) -> bool:
        """Take it as done."""
        return self._client._run(self._message.ack())

    def nak(self, *, delay_s: float = 0.0) -> bool:
        """Have it come again after a delay."""
        return self._client._run(self._message.nak(delay_s=delay_s))

    def extend(self) -> bool:
        """Ask for the whole time again."""
        return self._client._run(self._message.extend())

    def term(self, *, reason: str = "the consumer gave it up") -> bool:
        """Give it up."""
        return self._client._run(self._message.term(reason=reason))

    def _repr_html_(self) -> str:
        return self._message._repr_html_()


def _close(loop: asyncio.AbstractEventLoop, thread: threading.Thread, client: AsyncClient) -> None:
    if threading.current_thread() is thread:  # garbage is collected anywhere
        loop.call_soon(loop.stop)
        return
    asyncio.run_coroutine_threadsafe(client.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def _next(values: AsyncIterator[T]) -> T:
    # A coroutine cannot raise StopAsyncIteration through a future's result unharmed otherwise.
    return await anext(values)


async def _end(values: AsyncIterator[Any]) -> None:
    close = getattr(values, "aclose", None)
    if close is not None:
        await close()
