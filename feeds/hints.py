"""What a feed says about when and how to read it: ttl, sy:*, skip hours and days, hub."""

from __future__ import annotations

import re
from urllib.parse import urljoin

from lxml import etree

from feeds.draft import Draft, text_of, union
from feeds.item import Hints
from feeds.namespaces import ATOM, SYNDICATION

__all__ = ["linked", "read_hints"]

_LINK = re.compile(r"<([^<>]{1,2000})>([^<>]{0,500})")
_RELATION = re.compile(r"rel\s*=\s*\"?([^\";,]+)", re.IGNORECASE)
_DAYS = {
    name: number
    for number, name in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    )
}
_PERIODS_S = {
    "hourly": 3_600.0,
    "daily": 86_400.0,
    "weekly": 604_800.0,
    "monthly": 2_592_000.0,
    "yearly": 31_536_000.0,
}


def read_hints(channel: etree._Element, prefix: str, url: str) -> Hints:
    """Return the hints of an RSS channel or an Atom feed, whose core names start by `prefix`."""
    links = [*channel.findall(f"{{{ATOM}}}link")]
    return Hints(
        ttl_s=_ttl_s(channel, prefix),
        skip_hours=_skip_hours(channel, prefix),
        skip_days=_skip_days(channel, prefix),
        hubs=union(_targets(links, "hub", url)),
        self_url=next(iter(_targets(links, "self", url)), ""),
    )


def linked(header: str, relation: str, url: str) -> str:
    """Return where an HTTP Link header points by `relation`, or "".

    >>> linked('<https://hub.example/>; rel="hub", </feed>; rel=self', "self", "https://a.org/x")
    'https://a.org/feed'
    """
    for target, parameters in _LINK.findall(header):
        found = _RELATION.search(parameters)
        if found and relation in found[1].lower().split():
            return urljoin(url, str(target))
    return ""


def _targets(links: list[etree._Element], relation: str, url: str) -> list[str]:
    return [
        Draft(url).resolved(link.get("href", ""), link)
        for link in links
        if relation in link.get("rel", "").split()
    ]


def _ttl_s(channel: etree._Element, prefix: str) -> float | None:
    """The longer of RSS `ttl` (minutes) and RSS 1.0's update period over its frequency."""
    bounds = []
    ttl = _number(channel.find(f"{prefix}ttl"))
    if ttl:
        bounds.append(ttl * 60.0)
    period = channel.find(f"{{{SYNDICATION}}}updatePeriod")
    if period is not None:
        frequency = _number(channel.find(f"{{{SYNDICATION}}}updateFrequency")) or 1
        bounds.append(_PERIODS_S.get(text_of(period).strip().lower(), 0.0) / frequency)
    return max(bounds, default=None)


def _number(element: etree._Element | None) -> int | None:
    text = "" if element is None else text_of(element).strip()
    return int(text) if text.isdecimal() and len(text) < 7 else None


def _skip_hours(channel: etree._Element, prefix: str) -> frozenset[int]:
    """Hours in GMT, 0 to 23; some feeds count 24 as midnight.  All hours mean none."""
    numbers = [_number(hour) for hour in channel.findall(f"{prefix}skipHours/{prefix}hour")]
    hours = frozenset(number % 24 for number in numbers if number is not None and number <= 24)
    return hours if len(hours) < 24 else frozenset()


def _skip_days(channel: etree._Element, prefix: str) -> frozenset[int]:
    names = [
        text_of(day).strip().lower() for day in channel.findall(f"{prefix}skipDays/{prefix}day")
    ]
    days = frozenset(_DAYS[name] for name in names if name in _DAYS)
    return days if len(days) < 7 else frozenset()
