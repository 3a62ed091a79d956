"""The broker's feeds: polled as its settings say, each item a document of the feed's stream."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable

from broker.documents.document import DocumentLine
from broker.documents.ingest import IngestOutcome
from broker.documents.ingest_thread import Busy, Submit
from broker.settings.config import Settings
from feeds import Feed, FeedStore, Poller, networks
from feeds.push import Push

__all__ = ["poller", "push_of"]

_log = logging.getLogger(__name__)


def poller(
    settings: Settings, feeds: Iterable[Feed], store: FeedStore, submit: Submit, push: Push | None
) -> Poller:
    """Return the poller of the feeds in the store, to which those of the settings are added."""
    for feed in feeds:
        store.put(feed)

    async def take(stream: str, key: str, time_us: int | None, xml: bytes) -> None:
        await _take(submit, DocumentLine(stream=stream, xml=xml, time_us=time_us, key=key))

    return Poller(store, take, allowed=networks(settings.allow_networks), push=push)


def push_of(settings: Settings, store: FeedStore) -> Push | None:
    """Return what WebSub hubs reach, where the settings say under which URL they can."""
    public_url = settings.http.public_url
    if not public_url:
        return None
    return Push(store, base_url=public_url, now_us=lambda: time.time_ns() // 1_000)


async def _take(submit: Submit, line: DocumentLine) -> None:
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
