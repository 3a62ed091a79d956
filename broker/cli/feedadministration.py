"""Where `xscl feeds` works: at the running broker; else in the data directory of the settings.

A broker that is started then polls the feeds that were left there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import click

from broker.cli.connection import BrokerConnection, asked_or_done, settings_of
from broker.cli.terminal import Failure, message
from broker.settings.directory import keep_private

if TYPE_CHECKING:
    from feeds.administration import FeedAdministration

__all__ = ["AnyFeedAdministration", "ask"]

T = TypeVar("T")


class _BrokersFeeds:
    """The `FeedAdministration` of a running broker, reached through its API."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection

    def feeds(self) -> list[dict[str, Any]]:
        return cast(list[dict[str, Any]], self._connection.get("feeds")["feeds"])

    def feed(self, url: str) -> dict[str, Any]:
        return dict(self._connection.get("feeds", url))

    def add(self, url: str, stream: str, **asked: Any) -> dict[str, Any]:
        return self._post("feeds", body={"url": url, "stream": stream, **asked})

    def check(self, url: str, **asked: Any) -> dict[str, Any]:
        return self._post("feeds", "check", body={"url": url, **asked})

    def steer(self, url: str, action: str) -> dict[str, Any]:
        return self._post("feeds", url, action)

    def remove(self, url: str) -> None:
        self._connection.call("DELETE", "feeds", url)

    def take_list(self, opml: bytes, stream: str) -> dict[str, Any]:
        return self._post(
            "feeds.opml", query={"stream": stream}, body=opml, content_type="text/x-opml"
        )

    def list_as_opml(self) -> bytes:
        return self._connection.read("GET", "feeds.opml")

    def _post(self, *path: str, **asked: Any) -> dict[str, Any]:
        return dict(self._connection.call("POST", *path, **asked))


class _NotedFeeds:
    """The `FeedAdministration` of a data directory, which notes changes in its audit trail."""

    def __init__(self, administration: FeedAdministration, data: Path) -> None:
        self._administration = administration
        self._data = data
        self.feeds = administration.feeds
        self.feed = administration.feed
        self.check = administration.check
        self.list_as_opml = administration.list_as_opml

    def add(self, url: str, stream: str, **asked: Any) -> dict[str, Any]:
        with self._noted("post_feed", url, stream=stream):
            return self._administration.add(url, stream, **asked)

    def steer(self, url: str, action: str) -> dict[str, Any]:
        with self._noted(f"{action}_feed", url):
            return self._administration.steer(url, action)

    def remove(self, url: str) -> None:
        with self._noted("delete_feed", url):
            self._administration.remove(url)

    def take_list(self, opml: bytes, stream: str) -> dict[str, Any]:
        with self._noted("import_feeds", "", stream=stream):
            return self._administration.take_list(opml, stream)

    def _noted(self, action: str, url: str, **detail: str) -> AbstractContextManager[None]:
        from broker.operations.log import without_secrets
        from broker.registry.audit import local_change

        return local_change(self._data, action, without_secrets(url), **detail)


AnyFeedAdministration: TypeAlias = "FeedAdministration | _BrokersFeeds | _NotedFeeds"


def ask(
    context: click.Context, work: Callable[[AnyFeedAdministration], T], *, adds: bool = False
) -> T:
    """Return what `work` makes of the feeds that `context` means; a refusal ends the verb.

    Without `adds` no data directory is made where none is.
    """

    def at_hand(data: Path) -> T:
        message(f"no broker runs; the feeds are those in {data}")
        is_there = adds or (data / "feeds.db").exists()
        with (
            TemporaryDirectory() as nothing,
            _administration_in(context, data if is_there else Path(nothing)) as administration,
        ):
            return work(_NotedFeeds(administration, data) if is_there else administration)

    return asked_or_done(context, lambda connection: work(_BrokersFeeds(connection)), at_hand)[0]


@contextmanager
def _administration_in(context: click.Context, data: Path) -> Iterator[FeedAdministration]:
    from broker.operations.remedies import refusal_of
    from feeds import FeedStore, FeedStoreError, networks
    from feeds.administration import REFUSALS, FeedAdministration

    try:
        keep_private(data)
        store = FeedStore(data / "feeds.db")
    except (FeedStoreError, OSError) as error:
        raise Failure(str(error), hint="`data` in xscl.toml names the directory") from error
    try:
        yield FeedAdministration(store, networks(settings_of(context).allow_networks))
    except REFUSALS as error:
        detail, hint = refusal_of(error)
        raise Failure(detail, hint=hint) from error
    finally:
        store.close()
