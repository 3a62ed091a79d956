"""A sample of what a subscription sends, so that its subscriber can try the way."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace

from broker.delivery.attempt import Attempt
from broker.documents.document import render_time
from broker.pipeline.matchlog import CommittedMatch
from broker.pipeline.outbox import Outbox
from broker.registry.subscription import Subscription

__all__ = ["sample_attempt"]

_OUTPUT = (
    "<match>"
    "<item><title>A sample announcement</title><link>https://example.org/announcement</link>"
    "<author>Ann Example</author><source>The first feed</source></item>"
    "<item><title>A sample article</title><link>https://example.org/article</link>"
    "<author>Ann Example</author><source>The second feed</source></item>"
    "</match>"
)


def sample_attempt(subscription: Subscription, outbox: Outbox, now_us: int) -> Attempt:
    """Return an attempt that sends the subscription's newest match, else an invented one.

    Its match has the number 0 and an id of its own, so that nobody takes it for a match.
    """
    newest = outbox.matches.newest_of_topic(*subscription.topic, limit=1)
    match = newest[0] if newest else _invented(subscription, now_us)
    sample = replace(match, seq=0, id="sample", committed_us=now_us)
    return Attempt("msg_sample_" + secrets.token_hex(12), 1, subscription, [sample], now_us)


def _invented(subscription: Subscription, now_us: int) -> CommittedMatch:
    hour_us = 3_600_000_000
    times = [render_time(now_us - hour_us), render_time(now_us)]
    line = {
        "id": "sample",
        "query": subscription.query,
        "start": times[0],
        "end": times[1],
        "documents": [
            {"docid": n, "stream": "sample", "key": str(n), "time": times[n]} for n in (0, 1)
        ],
        "roots": [0, 0],
        "nodes": {},
        "witnesses": [
            {
                "first/author": {"block": 0, "node": 3, "value": "Ann Example"},
                "second/author": {"block": 1, "node": 3, "value": "Ann Example"},
            }
        ],
        "output": _OUTPUT,
    }
    return CommittedMatch(
        0, "sample", subscription.query, subscription.parameters, 0, 0, json.dumps(line), now_us
    )
