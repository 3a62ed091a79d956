"""The broker's feeds: polled as its settings say, each item a document of the feed's stream."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from broker.documents.document import DocumentLine
from broker.documents.ingest import IngestOutcome, Receipt
from broker.documents.ingest_thread import Busy, Submit
from broker.settings.config import Settings
from feeds import Feed, FeedStore, Poller, networks
from feeds.push import Push

__all__ = ["poller", "push_of"]

_log = logging.getLogger(__name__)

Taken = Callable[[int, str, int], None]


def poller(
    settings: Settings,
    feeds: Iterable[Feed],
    store: FeedStore,
    submit: Submit,
    push: Push | None,
    *,
    on_taken: Taken,
) -> Poller:
    """Return the poller of the feeds in the store, to which those of the settings are added.

    `on_taken` gets the number of each item that became a document, its stream, and when it was
    read, in microseconds.
    """
    for feed in feeds:
        store.put(feed)

    async def take(stream: str, key: str, time_us: int | None, xml: bytes) -> None:
        began_us = time.time_ns() // 1_000
        line = DocumentLine(stream=stream, xml=xml, time_us=time_us, key=key)
        receipt = await _take(submit, line)
        if receipt.outcome is IngestOutcome.ACCEPTED and receipt.docid is not None:
            on_taken(receipt.docid, stream, began_us)

    return Poller(store, take, allowed=networks(settings.allow_networks), push=push)


def push_of(settings: Settings, store: FeedStore) -> Push | None:
    """Return what WebSub hubs reach, where the settings say under which URL they can."""
    public_url = settings.http.public_url
    if not public_url:
        return None
    return Push(store, base_url=public_url, now_us=lambda: time.time_ns() // 1_000)


async def _take(submit: Submit, line: DocumentLine) -> Receipt:
    """Accept one item of a feed; waits while the broker is busy."""
    while True:
        try:
            (receipt,) = await asyncio.wrap_future(submit([line]))
        except Busy as busy:
            await asyncio.sleep(busy.retry_after_s)
        else:
            break
    if receipt.outcome is IngestOutcome.REFUSED:
        fields = {"stage": "ingest", "stream": line.stream}
        _log.warning("an item of a feed was refused: %s", receipt.reason, extra=fields)
    return receipt
