"""The body of a webhook: the match line in an envelope, built once for all subscribers.

Nothing in a body depends on the subscription or the attempt, only on the matches and the format,
so a repeated attempt repeats it byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from urllib.parse import quote

from broker.delivery.attempt import Attempt
from broker.documents.document import render_time
from broker.pipeline.matchlog import CommittedMatch
from broker.registry.subscription import PayloadFormat

__all__ = ["MATCHES_TYPE", "MATCH_TYPE", "SAMPLE_TYPE", "notes", "render_payload"]

MATCH_TYPE = "xscl.match"
MATCHES_TYPE = "xscl.matches"
SAMPLE_TYPE = "xscl.sample"
"""A trial of the way to the subscriber: nothing has been found."""


def render_payload(
    matches: Sequence[CommittedMatch], payload_format: PayloadFormat, *, is_batch: bool
) -> tuple[str, bytes]:
    """Return the content type and the body.  A batch of one match is a batch all the same."""
    if not is_batch and len(matches) == 1:
        return _single(matches[0], payload_format)
    render, content_type = _BATCHES[payload_format]
    return content_type, render(matches).encode()


def notes(attempt: Attempt, alert_url: Callable[[str], str]) -> dict[str, str]:
    """Return what there is to say beside the matches, which are the same for all, as headers."""
    named = {"xscl-escalation": "true"} if attempt.is_escalation else {}
    if attempt.withheld:
        named["xscl-withheld"] = str(attempt.withheld)
    if not (attempt.is_escalation or attempt.subscription.options.escalate):
        return named
    url = "" if attempt.is_sample else alert_url(attempt.delivery_id)
    return {**named, "xscl-alert": url} if url else named


@lru_cache(maxsize=256)
def _single(match: CommittedMatch, payload_format: PayloadFormat) -> tuple[str, bytes]:
    render, content_type = _SINGLES[payload_format]
    return content_type, render(match).encode()


def _type(match: CommittedMatch) -> str:
    # Matches in the outbox are numbered from 1.
    return MATCH_TYPE if match.seq else SAMPLE_TYPE


def _standard(match: CommittedMatch) -> str:
    time = render_time(match.committed_us)
    # The line is JSON already; reading it only to write it again would be most of the cost.
    return f'{{"type":"{_type(match)}","timestamp":"{time}","data":{match.line}}}'


def _standard_batch(matches: Sequence[CommittedMatch]) -> str:
    time = render_time(matches[-1].committed_us)
    lines = ",".join(match.line for match in matches)
    kind = MATCHES_TYPE if matches[0].seq else SAMPLE_TYPE
    return f'{{"type":"{kind}","timestamp":"{time}","data":{{"matches":[{lines}]}}}}'


def _cloud_event(match: CommittedMatch) -> str:
    source = json.dumps("/v1/queries/" + quote(match.query, safe=""))
    return (
        f'{{"specversion":"1.0","id":"{match.id}","source":{source},"type":"{_type(match)}",'
        f'"time":"{render_time(match.committed_us)}","datacontenttype":"application/json",'
        f'"data":{match.line}}}'
    )


def _cloud_event_batch(matches: Sequence[CommittedMatch]) -> str:
    return "[" + ",".join(map(_cloud_event, matches)) + "]"


_Single = tuple[Callable[[CommittedMatch], str], str]
_Batch = tuple[Callable[[Sequence[CommittedMatch]], str], str]

_SINGLES: dict[PayloadFormat, _Single] = {
    PayloadFormat.STANDARD: (_standard, "application/json"),
    PayloadFormat.CLOUDEVENTS: (_cloud_event, "application/cloudevents+json"),
}
_BATCHES: dict[PayloadFormat, _Batch] = {
    PayloadFormat.STANDARD: (_standard_batch, "application/json"),
    PayloadFormat.CLOUDEVENTS: (_cloud_event_batch, "application/cloudevents-batch+json"),
}
