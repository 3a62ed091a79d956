"""The feeds that the settings name, as the poller takes them."""

from __future__ import annotations

from collections.abc import Sequence

from broker.settings.config import FeedSettings
from broker.settings.reader import SettingsError
from feeds import Feed, FeedError, FeedOptions, feed_at
from feeds.feed import with_headers

__all__ = ["configured_feeds"]


def configured_feeds(settings: Sequence[FeedSettings]) -> list[Feed]:
    """Return the feeds, with their secrets; raise `SettingsError` for what is no address.

    Secrets in the environment and in files are read here, once.
    """
    return [_feed(each, number) for number, each in enumerate(settings, 1)]


def _feed(settings: FeedSettings, number: int) -> Feed:
    try:
        feed = feed_at(settings.url, settings.stream, _options(settings))
        headers = tuple((header.name, header.secret()) for header in settings.headers)
    except FeedError as error:
        raise SettingsError(f"feeds[{number}]: {error.detail}") from error
    except SettingsError as error:
        raise SettingsError(f"feeds[{number}].headers: {error}") from error
    return with_headers(feed, headers) if headers else feed


def _options(settings: FeedSettings) -> FeedOptions:
    since = settings.since
    return FeedOptions(
        interval_s=None if settings.every is None else settings.every.total_seconds(),
        item=settings.item,
        on_update=settings.on_update,
        backlog=settings.backlog if since is None else "since",
        since_us=None if since is None else int(since.timestamp() * 1_000_000),
        proxy=settings.proxy,
        robots=settings.robots,
        title=settings.title,
    )
