"""What the pages show, as values: bounded, newest or worst first."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from markupsafe import Markup, escape

from broker.api.backend import Backend
from broker.api.feeds import FEED_ADMINISTRATION
from broker.api.pickup import Pickup
from broker.api.queries import said_of
from broker.api.streams import rendered_dead_letters, statistics
from broker.api.tables import described_tables
from broker.delivery.deliveries import Deliveries, Delivery
from broker.delivery.letter import duration, is_web, plain
from broker.delivery.store import DeliveryState
from broker.delivery.summary import SummaryPart, summarise
from broker.documents.document import render_time
from broker.documents.late import spell_late
from broker.matching.rendering.matchlines import (
    compared_in,
    likenesses_of,
    spell_confidence,
    spell_likeness,
)
from broker.pipeline.matchlog import CommittedMatch
from broker.registry.audit import AuditTrail
from broker.registry.file import RegistryError
from broker.registry.queries import QueryState, RegisteredText
from broker.registry.registered import parsed
from broker.registry.subscription import Subscription, SubscriptionState
from broker.tables.store import RowChange
from broker.web.coloured import coloured_query, coloured_xml
from feeds import FeedStore
from feeds.health import FeedHealth, healths, in_words

__all__ = [
    "ago",
    "changes",
    "count",
    "failing_deliveries",
    "feed_store",
    "feeds",
    "has_text",
    "length_of",
    "messages",
    "moment",
    "now_us",
    "offers",
    "one_query",
    "one_subscription",
    "one_table",
    "overview",
    "own_subscriptions",
    "spelled",
    "tables",
    "wanted_feeds",
    "with_subscriptions",
]

_ROWS_MAX = 100
_ROWS_READ = 1_000
"""Rows of a table that are read at once where one with a text is looked for."""
_MATCHES_MAX = 10
_FIRST_MATCHES_MAX = 5
_OWN_MATCHES_MAX = 3
_VALUES_MAX = 8


@dataclass(frozen=True, slots=True)
class Shown:
    """A match as the pages show it; links of `parts` are ones that may be clicked, or empty."""

    id: str
    seq: int
    query: str
    headline: str
    parts: tuple[SummaryPart, ...]
    joined: tuple[tuple[str, str], ...]
    apart: str
    found: str
    output: Markup


def overview(backend: Backend, wanted: str = "") -> dict[str, Any]:
    """Return what an admin sees first; with `wanted`, queries and streams that have this text."""
    at_us = now_us()
    queries = backend.registry.queries(states=(QueryState.ACTIVE, QueryState.PAUSED))
    queries.sort(key=lambda query: (query.state is QueryState.ACTIVE, query.id))
    registry, outbox = backend.registry, backend.outbox
    if wanted:
        texts = registry.sources(queries)
        queries = [each for each in queries if has_text(wanted, each.id, each.text, texts[each.id])]
    shown = queries[:_ROWS_MAX]
    sources = {each.id: registry.source(each) for each in shown}
    letters = outbox.dead_letters(limit=_MATCHES_MAX)
    numbers = statistics(backend)
    return {
        "statistics": numbers,
        "late": numbers["late"] and spell_late(numbers["late"], "documents"),
        "streams": [
            each for each in backend.streams.streams(registry, at_us) if has_text(wanted, each.name)
        ][:_ROWS_MAX],
        "late_of": backend.ingest.late.by_stream,
        "queries": shown,
        "said_of": {each.id: _paragraphs(said_of(sources[each.id])) for each in shown},
        "queries_left": max(0, len(queries) - _ROWS_MAX),
        "matches_of": {each.id: outbox.matches.count(each.id) for each in shown},
        "subscribers_of": {each.id: registry.subscriptions.count(each.id) for each in shown},
        "matches": list(map(_shown, outbox.matches.newest(limit=_FIRST_MATCHES_MAX))),
        "dead_letters": rendered_dead_letters(backend, letters),
    }


def one_query(backend: Backend, query: RegisteredText) -> dict[str, Any]:
    """Return a query and its latest matches."""
    matches = backend.outbox.matches.newest(query.id, limit=_MATCHES_MAX)
    subscriptions = backend.registry.subscriptions.count(query.id)
    return {
        "query": query,
        "text": coloured_query(backend.registry.source(query)),
        "total": backend.outbox.matches.count(query.id),
        "matches": [_shown(match) for match in matches],
        "parameters": parsed(query).parameters,
        "subscriptions": backend.registry.subscriptions.find(query=query.id, limit=_ROWS_MAX),
        "subscriptions_total": subscriptions,
        "subscriptions_left": max(0, subscriptions - _ROWS_MAX),
    }


def one_subscription(backend: Backend, name: str, *, limit: int = _MATCHES_MAX) -> dict[str, Any]:
    """Return a subscription and its latest matches; raise `RegistryError` where there is none."""
    subscription = backend.registry.subscriptions.get(name)
    return {"subscription": subscription, "matches": _matches_of(backend, subscription, limit)}


def changes(trail: AuditTrail, by: str, subject: str, before: int) -> dict[str, Any]:
    """Return the changes below a number, by someone, of something, and the link to older ones."""
    found = trail.entries(before=before, who=by or None, subject=subject or None, limit=_ROWS_MAX)
    asked = {"by": by, "subject": subject, "before": found[-1].number if found else 0}
    older = f"/audit?{urlencode({k: v for k, v in asked.items() if v})}"
    return {"entries": found, "older": older if len(found) == _ROWS_MAX else ""}


def tables(backend: Backend) -> dict[str, Any]:
    """Return the tables that are registered."""
    return {"tables": described_tables(backend)}


def one_table(backend: Backend, name: str, wanted: str, after: str) -> dict[str, Any]:
    """Return a table and some of its rows by key, those with a larger key that have a text.

    Raise `RegistryError` where there is no such table.
    """
    described = next((each for each in described_tables(backend) if each["name"] == name), None)
    if described is None:
        raise RegistryError(f"no table {name!r}")
    rows: list[RowChange] = []
    last: str | None = after
    while last is not None and len(rows) <= _ROWS_MAX:
        some = backend.outbox.rows_of(name, after=last, limit=_ROWS_READ)
        rows += [row for row in some if has_text(wanted, row.key, *_texts(row))]
        last = some[-1].key if len(some) == _ROWS_READ else None
    shown = rows[:_ROWS_MAX]
    asked = {"find": wanted, "after": shown[-1].key if len(rows) > _ROWS_MAX else ""}
    text = backend.registry.source(backend.registry.query(name))
    return {
        "table": described,
        "text": coloured_query(text),
        "rows": shown,
        "wanted": wanted,
        "further": urlencode({k: v for k, v in asked.items() if v}) if asked["after"] else "",
    }


def _texts(row: RowChange) -> list[str]:
    return [cell if isinstance(cell, str) else f"{cell:g}" for cell in (row.cells or {}).values()]


def own_subscriptions(backend: Backend, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return what a subscriber sees: the subscriptions of its token, and their latest matches."""
    found = backend.registry.subscriptions.by_id(sorted(names)[:_ROWS_MAX]).values()
    return [
        {"subscription": each, "matches": _matches_of(backend, each, _OWN_MATCHES_MAX)}
        for each in found
        if each.state is not SubscriptionState.REMOVED
    ]


def offers(backend: Backend, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the queries and tables, among some, that are there: id, comments, parameters."""
    found = []
    for name in sorted(names)[:_ROWS_MAX]:
        with contextlib.suppress(RegistryError):
            query = backend.registry.query(name)
            if query.state is not QueryState.REMOVED:
                said = _paragraphs(said_of(backend.registry.source(query)))
                parameters = parsed(query).parameters
                found.append({"id": name, "said": said, "parameters": parameters})
    return found


def _paragraphs(said: Mapping[str, Any]) -> dict[str, list[str]]:
    r"""Return the text of comments as paragraphs, apart from whom a query belongs to and its tags.

    >>> _paragraphs({"description": "Stories\nof two.\nowner: ann\n\nThey differ."})
    {'text': ['Stories of two.', 'They differ.'], 'labels': ['owner: ann']}
    """
    labels, text = [], [""]
    for line in said["description"].splitlines():
        if line.lower().startswith(("owner:", "tags:")):
            labels.append(line)
        elif line.strip():
            text[-1] = f"{text[-1]} {line.strip()}".strip()
        else:
            text.append("")
    return {"text": list(filter(None, text)), "labels": labels}


def feed_store(application: web.Application) -> FeedStore | None:
    """Return the feeds of an application that polls some."""
    administration = application.get(FEED_ADMINISTRATION)
    return None if administration is None else administration.store


def has_text(wanted: str, *texts: str) -> bool:
    """Whether one of the texts has the wanted one in it, in any case; all have none.

    >>> has_text("NEWS", "other", "my-news"), has_text("x", "other"), has_text("", "other")
    (True, False, True)
    """
    return any(wanted.casefold() in text.casefold() for text in texts)


def feeds(store: FeedStore | None) -> list[FeedHealth]:
    """Return the health of all feeds; gone and failing feeds come first."""
    if store is None:
        return []
    order = ("gone", "failing", "quiet", "waiting", "paused", "ok")
    found = healths(store, now_us())
    return sorted(found, key=lambda each: (order.index(each.status), each.url))


def wanted_feeds(found: Sequence[FeedHealth], wanted: str) -> dict[str, Any]:
    """Return which feeds are shown, those with the wanted text, and what is said of all."""
    shown = [
        each for each in found if has_text(wanted, each.url, each.title, each.stream, each.status)
    ]
    return {
        "feeds": shown[:_ROWS_MAX],
        "feeds_left": max(0, len(shown) - _ROWS_MAX),
        "feeds_failing": sum(each.status in ("failing", "gone") for each in found),
    }


@dataclass(frozen=True, slots=True)
class Failing:
    """A delivery that fails, and its subscription; None where that is gone."""

    delivery: Delivery
    subscription: Subscription | None


def with_subscriptions(backend: Backend, deliveries: Sequence[Delivery]) -> list[Failing]:
    """Return deliveries with their subscriptions, None where one is gone."""
    names = sorted({each.subscription for each in deliveries})
    found = backend.registry.subscriptions.by_id(names)
    return [Failing(each, found.get(each.subscription)) for each in deliveries]


def messages(pickup: Pickup, name: str) -> dict[str, Any]:
    """Return a subscription's latest messages, each with its link, and what of it is snoozed."""
    snoozed_until_us, snoozed_keys = pickup.answers.snoozes(name, pickup.now_us(), limit=_ROWS_MAX)
    found = pickup.deliveries.find(subscription=name, limit=_MATCHES_MAX)
    return {
        "messages": [(each, f"/v1/alerts/{pickup.alert_token(each.id)}") for each in found],
        "snoozed_until_us": snoozed_until_us,
        "snoozed_keys": snoozed_keys,
    }


def failing_deliveries(deliveries: Deliveries) -> list[Delivery]:
    """Return dead letters, and deliveries that are tried again, newest first."""
    dead = deliveries.find(state=DeliveryState.DEAD, limit=_MATCHES_MAX)
    due = deliveries.find(state=DeliveryState.DUE, is_tried=True, limit=_ROWS_MAX)
    return sorted([*dead, *due], key=lambda each: -each.changed_us)[: 2 * _MATCHES_MAX]


def moment(time_us: int) -> str:
    """Return a time to the second, in UTC, as machines and people read it."""
    return render_time(time_us // 1_000_000 * 1_000_000)


def length_of(length_us: int) -> str:
    """Return a length of time as people say it.

    >>> length_of(90_000_000)
    '1 minute 30 seconds'
    """
    return duration(timedelta(microseconds=length_us))


def spelled(parameters: str) -> str:
    """Return the values of parameters, as the registry keeps them, for people.

    >>> spelled('{"low": 3.0, "who": "Ann"}'), spelled("{}")
    ('low = 3, who = Ann', '')
    """
    values = json.loads(parameters)
    return ", ".join(
        f"{name} = {f'{value:g}' if isinstance(value, float) else value}"
        for name, value in values.items()
    )


def ago(time_us: int) -> str:
    """Return how far a time is from now, in words."""
    return in_words(time_us, now_us())


def count(number: float) -> str:
    """Return a number with separators, and two digits behind the point where it is small.

    >>> count(1234567), count(0.1234), count(12.5), count(0.0033), count(3.999)
    ('1,234,567', '0.12', '12.5', '<0.01', '4')
    """
    if 0 < number < 0.01:
        return "<0.01"
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def _matches_of(backend: Backend, subscription: Subscription, limit: int) -> list[Shown]:
    found = backend.outbox.matches.newest_of_topic(
        *subscription.topic, point=subscription.point, until=subscription.until, limit=limit
    )
    return [_shown(match) for match in found]


def _shown(match: CommittedMatch) -> Shown:
    summary = summarise(match)
    return Shown(
        id=match.id,
        seq=match.seq,
        query=match.query,
        headline=summary.headline,
        parts=tuple(map(_safe, summary.parts)),
        joined=_joined(match.line),
        apart=duration(summary.apart) if summary.apart > timedelta(0) else "",
        found=moment(match.committed_us),
        output=coloured_xml(summary.output.encode()),
    )


def _joined(line: str) -> tuple[tuple[str, str], ...]:
    """Return what was compared as (variables, value): those first that are equal in two blocks."""
    variables: dict[str, list[str]] = {}
    alike: set[str] = set()
    match = json.loads(line)
    for witness in match["witnesses"]:
        for name, node in compared_in(witness):
            if node["value"]:
                variables.setdefault(node["value"], []).append(name)
        for score, shared in likenesses_of(witness):
            label, _, words = spell_likeness(score, shared).partition(": ")
            variables.setdefault(words or "0", []).append(label)
            alike.add(words or "0")
    found = [(sorted(set(names), key=names.index), value) for value, names in variables.items()]
    found.sort(key=lambda pair: -len(pair[0]))
    shown = [
        ((", " if value in alike else " = ").join(names), value)
        for names, value in found[:_VALUES_MAX]
    ]
    if "confidence" in match:
        shown.append(("confidence", spell_confidence(match)))
    return tuple((name, plain(str(escape(value)))) for name, value in shown)


def _safe(part: SummaryPart) -> SummaryPart:
    link = part.link if is_web(part.link) else ""
    return replace(part, link=link, html=plain(part.html))


def now_us() -> int:
    """Return the time of this machine."""
    return time.time_ns() // 1_000
