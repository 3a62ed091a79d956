"""What is asked of a broker about its feeds, in both clients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from xscl.client.connection import Connection
from xscl.client.values import FeedInfo, read_feed

__all__ = ["AsyncFeedOperations", "FeedOperations"]

T = TypeVar("T")

_FEED_CHECK_S = 90.0
"""How long a feed may take to be looked at: the broker gives up after 75 seconds."""


class AsyncFeedOperations:
    """The part of `AsyncClient` that is about feeds."""

    _connection: Connection

    async def feeds(
        self, *, stream: str | None = None, status: str | None = None
    ) -> list[FeedInfo]:
        """Return the feeds that are polled, by URL: all, of one stream, of one status."""
        query = {"stream": stream, "status": status}
        answer = await self._connection.call("GET", "feeds", query=query)
        return [read_feed(each) for each in answer["feeds"]]

    async def feed(self, url: str) -> FeedInfo:
        """Return one feed; its options are in `fields`, its secrets nowhere."""
        return read_feed(await self._connection.call("GET", "feeds", url))

    async def add_feed(
        self,
        url: str,
        stream: str,
        *,
        options: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> FeedInfo:
        """Subscribe the feed at `url`, or the one that the page there names.

        It is looked at first, and refused in words where it cannot be read.  `headers`, and a
        user name and password in the URL, are kept secret.
        """
        body = {"url": url, "stream": stream, "check": check}
        body |= {"options": dict(options or {}), "headers": dict(headers or {})}
        answer = await self._connection.call("POST", "feeds", body=body, timeout_s=_FEED_CHECK_S)
        return read_feed(answer)

    async def check_feed(
        self,
        url: str,
        *,
        options: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        documents: int = 10,
    ) -> Mapping[str, Any]:
        """Return what the broker would make of the feed at `url`, without subscribing it.

        So many of its newest documents are among it, 2,000 at most.
        """
        body = {"url": url, "documents": documents}
        body |= {"options": dict(options or {}), "headers": dict(headers or {})}
        answer = await self._connection.call(
            "POST", "feeds", "check", body=body, timeout_s=_FEED_CHECK_S
        )
        return dict(answer)

    async def pause_feed(self, url: str) -> FeedInfo:
        """Stop checking a feed until it is resumed."""
        return read_feed(await self._connection.call("POST", "feeds", url, "pause"))

    async def resume_feed(self, url: str) -> FeedInfo:
        """Check a paused feed again."""
        return read_feed(await self._connection.call("POST", "feeds", url, "resume"))

    async def refresh_feed(self, url: str) -> FeedInfo:
        """Have a feed checked as soon as its host allows, also one that is gone."""
        return read_feed(await self._connection.call("POST", "feeds", url, "refresh"))

    async def remove_feed(self, url: str) -> None:
        """Unsubscribe a feed and forget which of its entries were seen."""
        await self._connection.call("DELETE", "feeds", url)

    async def import_feeds(self, opml: bytes, *, stream: str = "feeds") -> Mapping[str, Any]:
        """Subscribe the feeds of an OPML document, unseen; those in no folder go to `stream`.

        Returns how many were `added` or `known` already, and in words the `problems` of others.
        """
        answer = await self._connection.call(
            *("POST", "feeds.opml"),
            query={"stream": stream},
            body=opml,
            content_type="text/x-opml",
        )
        return dict(answer)

    async def export_feeds(self) -> bytes:
        """Return the feeds as an OPML document: a folder for each stream, no secret in it."""
        return await self._connection.read("GET", "feeds.opml")


class FeedOperations(ABC):
    """The same of `Client`; see `AsyncFeedOperations` for what methods promise."""

    _client: AsyncFeedOperations

    def feeds(self, *, stream: str | None = None, status: str | None = None) -> list[FeedInfo]:
        """Return the feeds that are polled."""
        return self._run(self._client.feeds(stream=stream, status=status))

    def feed(self, url: str) -> FeedInfo:
        """Return one feed."""
        return self._run(self._client.feed(url))

    def add_feed(
        self,
        url: str,
        stream: str,
        *,
        options: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> FeedInfo:
        """Subscribe a feed; see `AsyncFeedOperations.add_feed`."""
        return self._run(
            self._client.add_feed(url, stream, options=options, headers=headers, check=check)
        )

    def check_feed(
        self,
        url: str,
        *,
        options: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        documents: int = 10,
    ) -> Mapping[str, Any]:
        """Return what the broker would make of a feed."""
        return self._run(
            self._client.check_feed(url, options=options, headers=headers, documents=documents)
        )

    def pause_feed(self, url: str) -> FeedInfo:
        """Stop checking a feed."""
        return self._run(self._client.pause_feed(url))

    def resume_feed(self, url: str) -> FeedInfo:
        """Check a paused feed again."""
        return self._run(self._client.resume_feed(url))

    def refresh_feed(self, url: str) -> FeedInfo:
        """Have a feed checked soon."""
        return self._run(self._client.refresh_feed(url))

    def remove_feed(self, url: str) -> None:
        """Unsubscribe a feed."""
        self._run(self._client.remove_feed(url))

    def import_feeds(self, opml: bytes, *, stream: str = "feeds") -> Mapping[str, Any]:
        """Subscribe the feeds of an OPML document; see `AsyncFeedOperations.import_feeds`."""
        return self._run(self._client.import_feeds(opml, stream=stream))

    def export_feeds(self) -> bytes:
        """Return the feeds as an OPML document."""
        return self._run(self._client.export_feeds())

    @abstractmethod
    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what work in the client's loop returns."""
