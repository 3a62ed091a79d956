"""A feed as its subscriber configures it: where it is, which stream it fills, and how."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from feeds.errors import Fault, FeedError

__all__ = ["Backlog", "Feed", "FeedOptions", "ItemForm", "OnUpdate", "Secrets", "feed_at"]

ItemForm = Literal["normalised", "raw"]
OnUpdate = Literal["ignore", "new document"]
Backlog = Literal["all", "new", "since"]


@dataclass(frozen=True, slots=True)
class Secrets:
    """What only the feed's own server may see.  Its representation shows no value."""

    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return bool(self.username or self.password or self.headers)


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """How one feed is read.

    `interval_s` replaces the adaptive interval (the publisher's own lower bounds still hold).
    `backlog` says what of a first fetch becomes documents: "all" entries, only those "new"
    since the feed was added (none of the first fetch), or those dated "since" `since_us`.
    """

    interval_s: float | None = None
    item: ItemForm = "normalised"
    on_update: OnUpdate = "ignore"
    backlog: Backlog = "all"
    since_us: int | None = None
    proxy: str | None = None
    robots: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class Feed:
    """A place on the web that yields items for a stream.

    `url` is the feed's identity for as long as it is subscribed: it stays when a permanent
    redirect moves the fetches elsewhere, so that item keys do not change with it.
    """

    url: str
    stream: str
    options: FeedOptions = FeedOptions()
    secrets: Secrets = Secrets()


def feed_at(url: str, stream: str, options: FeedOptions | None = None, **secret: str) -> Feed:
    """Return the feed at `url`; a user name and password in the URL become secrets.

    Raises `FeedError` where the URL is not an http or https one.

    >>> feed_at("https://ann:pw@example.org/feed", "S").url
    'https://example.org/feed'
    """
    clean, username, password = _split_credentials(url.strip())
    secrets = Secrets(secret.get("username", username), secret.get("password", password))
    return Feed(clean, stream, options or FeedOptions(), secrets)


def with_headers(feed: Feed, headers: tuple[tuple[str, str], ...]) -> Feed:
    """Return `feed` with extra request headers, which are kept as secrets."""
    return replace(feed, secrets=replace(feed.secrets, headers=headers))


def moved(feed: Feed, url: str, *, keeps_secrets: bool) -> Feed:
    """Return `feed` at another address, without its secrets where that is another's server."""
    return replace(feed, url=url, secrets=feed.secrets if keeps_secrets else Secrets())


def _split_credentials(url: str) -> tuple[str, str, str]:
    # What buttons of feeds link to: feed://host/path, or feed:https://host/path.
    if url.startswith("feed://"):
        url = "http" + url.removeprefix("feed")
    url = url.removeprefix("feed:")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise FeedError(Fault.URL, url, f"{url!r} is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise FeedError(Fault.URL, url, f"{url!r} is not an http:// or https:// address")
    place = parts.netloc.rpartition("@")[2]
    clean = urlunsplit((parts.scheme, place, parts.path or "/", parts.query, ""))
    return clean, parts.username or "", parts.password or ""
