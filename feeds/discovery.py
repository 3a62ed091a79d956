"""Find the feed of a web page: what the page names, then the usual places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urljoin

import aiohttp
from lxml import etree
from lxml import html as lxml_html

from feeds.errors import FeedError
from feeds.feed import Secrets
from feeds.fetcher import Limits, Request, Response, fetch, same_origin
from feeds.item import ParsedFeed
from feeds.parser import parse

__all__ = ["FoundFeed", "NamedFeed", "discover", "links_in_page"]

FEED_TYPES = (
    "application/atom+xml",
    "application/rss+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/json",
    "text/xml",
    "application/xml",
)
USUAL_PLACES = ("/feed", "/feed/", "/rss", "/atom.xml", "/rss.xml", "/feed.xml", "/index.xml")
"""Tried one after the other on the page's host where the page names no feed."""
_CANDIDATES_MAX = 20


@dataclass(frozen=True, slots=True)
class NamedFeed:
    """A feed that a page names."""

    url: str
    title: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class FoundFeed:
    """A feed that was found and read: where, and what it holds.

    `others` are further feeds that the page names.
    """

    url: str
    answer: Response
    feed: ParsedFeed
    others: tuple[NamedFeed, ...] = ()


async def discover(
    session: aiohttp.ClientSession, request: Request, limits: Limits | None = None
) -> FoundFeed | FeedError:
    """Return the feed at the request's URL, or the first readable one that its page leads to."""
    answer = await fetch(session, request, limits)
    if isinstance(answer, FeedError):
        return answer
    found = _parsed(answer)
    if isinstance(found, ParsedFeed):
        return FoundFeed(request.url, answer, found)
    named = links_in_page(answer.body, answer.url)
    usual = [NamedFeed(urljoin(answer.url, place)) for place in USUAL_PLACES] if not named else []
    for number, candidate in enumerate((*named, *usual)):
        attempt = await fetch(session, _elsewhere(request, candidate.url), limits)
        feed = attempt if isinstance(attempt, FeedError) else _parsed(attempt)
        if isinstance(attempt, Response) and isinstance(feed, ParsedFeed):
            return FoundFeed(candidate.url, attempt, feed, named[number + 1 :])
    return FeedError(found.fault, request.url, f"{found.detail}, and it names no feed")


def _elsewhere(request: Request, url: str) -> Request:
    """The same request at a place that the page named: secrets only for the page's own server."""
    secrets = request.secrets if same_origin(request.url, url) else Secrets()
    return replace(request, url=url, secrets=secrets)


def _parsed(answer: Response) -> ParsedFeed | FeedError:
    content_type = answer.headers.get("content-type", "")
    return parse(answer.body, url=answer.url, content_type=content_type)


def links_in_page(body: bytes, url: str) -> tuple[NamedFeed, ...]:
    """Return the feeds that an HTML page names, in its order; comment feeds go last."""
    try:
        root = lxml_html.document_fromstring(body)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return ()
    base = next((each.get("href", "") for each in root.iter("base")), "")
    start = urljoin(url, base)
    found = [
        NamedFeed(urljoin(start, link.get("href", "")), link.get("title", ""), kind)
        for link in root.iter("link")
        if (kind := link.get("type", "").lower().partition(";")[0].strip()) in FEED_TYPES
        and "alternate" in link.get("rel", "").lower().split()
        and link.get("href")
    ]
    unique: dict[str, NamedFeed] = {}
    for candidate in found:
        unique.setdefault(candidate.url, candidate)
    return tuple(sorted(unique.values(), key=_is_of_comments)[:_CANDIDATES_MAX])


def _is_of_comments(candidate: NamedFeed) -> bool:
    return "comment" in f"{candidate.url} {candidate.title}".lower()
