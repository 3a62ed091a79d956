"""Talk to a broker from Python: register queries, publish documents, follow matches.

    from xscl.client import Client

    with Client("http://127.0.0.1:8420") as broker:
        broker.register("by-ann", "S//item[author = 'Ann']")
        mine = broker.subscribe("by-ann")
        broker.publish("S", "<item><author>Ann</author></item>")
        for match in broker.matches(mine.id):
            print(match)

`AsyncClient` has the same methods for `asyncio`.  A subscriber who gets webhooks checks them
with `verify_webhook`.

Invariant: what a consumer has not acknowledged is handed out again, also after a restart of either
side; a stream of matches that breaks goes on behind the last one that was handed out.

Begin with `client`.
"""

from __future__ import annotations

from xscl.client.blocking import BlockingMessage, Client
from xscl.client.client import AsyncClient
from xscl.client.consumer import Message
from xscl.client.errors import (
    BrokerUnreachableError,
    BusyError,
    ClientError,
    ClosedError,
    Finding,
    QueryRefusedError,
    RefusedError,
    WebhookError,
)
from xscl.client.tables import matches_frame, matches_table
from xscl.client.values import (
    DocumentToPublish,
    Explanation,
    FeedInfo,
    Match,
    MatchDocument,
    QueryInfo,
    Receipt,
    SubscriptionInfo,
)
from xscl.client.webhook import verify_webhook

__all__ = [
    "AsyncClient",
    "BlockingMessage",
    "BrokerUnreachableError",
    "BusyError",
    "Client",
    "ClientError",
    "ClosedError",
    "DocumentToPublish",
    "Explanation",
    "FeedInfo",
    "Finding",
    "Match",
    "MatchDocument",
    "Message",
    "QueryInfo",
    "QueryRefusedError",
    "Receipt",
    "RefusedError",
    "SubscriptionInfo",
    "WebhookError",
    "matches_frame",
    "matches_table",
    "verify_webhook",
]
