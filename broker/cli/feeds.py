"""`xscl feeds ...`: the feeds that the broker polls.

The verbs work on the broker's data directory, whether it runs or not; a running broker notices
within a second.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any, TypeVar

import click

from broker.cli.connection import settings_of, target
from broker.cli.terminal import Failure, emit_rows, format_option, message
from broker.remedies import remedy_of
from feeds import Feed, FeedError, FeedStore, UnknownFeedError, feed_at, networks
from feeds.feed import moved, with_headers
from feeds.fetcher import same_origin
from feeds.health import healths, in_words, render_health
from feeds.opml import parse_opml, render_opml
from feeds.options import render_options
from feeds.poller import open_session
from feeds.preview import Preview, preview
from feeds.state import STEERING

__all__ = ["feeds"]

T = TypeVar("T")
_COLUMNS = ["url", "stream", "status", "items", "per_day", "last", "next", "why", "error"]


@click.group()
def feeds() -> None:
    """See and steer the feeds that are polled.

    A broker that runs notices changes within a second.

    \b
    Examples:
      xscl feeds add https://example.org/ --stream news
      xscl feeds list
    """


@feeds.command()
@click.argument("url")
@click.option("--stream", default="feeds", show_default=True, help="The stream that it fills.")
@click.option("--every", "interval_s", type=click.FloatRange(0.1), help="Seconds between checks.")
@click.option("--raw", is_flag=True, help="Keep entries as published, not as <item> documents.")
@click.option(
    "--on-update",
    type=click.Choice(["ignore", "new document"]),
    default="ignore",
    show_default=True,
    help="What an entry that its publisher edits is.",
)
@click.option(
    "--backlog",
    type=click.Choice(["all", "new"]),
    default="all",
    show_default=True,
    help="Whether entries that are there already become documents.",
)
@click.option(
    "--since", type=click.DateTime(), help="Only backlog entries from this time on (UTC)."
)
@click.option("--title", default="", help="A title of your own.")
@click.option("--header", "headers", multiple=True, metavar="NAME:VALUE", help="Kept secret.")
@click.option("--proxy", help="The URL of an HTTP proxy for this feed.")
@click.option("--robots", is_flag=True, help="Heed the host's robots.txt.")
@click.option("--no-check", is_flag=True, help="Add it without looking at it first.")
@click.pass_context
def add(
    context: click.Context,
    /,
    url: str,
    stream: str,
    headers: tuple[str, ...],
    no_check: bool,
    **options: Any,
) -> None:
    """Subscribe the feed at URL, or the one that the page at URL names.

    A user name and a password in the URL are kept secret.

    \b
    Examples:
      xscl feeds add https://example.org/feed.xml --stream news
      xscl feeds add https://example.org/ --stream blogs --backlog new
    """
    feed = _with_options(_feed(url, stream), headers, options)
    if not no_check:
        found = _run(_preview(context, feed))
        feed = moved(feed, found.url, keeps_secrets=same_origin(feed.url, found.url))
        message(f"{found.url}: {found.feed.format}, {len(found.entries)} entries")
    with _store(context) as store:
        if not store.add(feed):
            raise Failure(f"{feed.url} is subscribed already", hint="`xscl feeds list` shows it")
    message(f"added {feed.url} to stream {stream}")


@feeds.command("list")
@click.option("--stream", help="Only the feeds of this stream.")
@click.option("--failing", is_flag=True, help="Only feeds that are failing or gone.")
@format_option
@click.pass_context
def list_feeds(context: click.Context, stream: str | None, failing: bool, output: str) -> None:
    """List the feeds: how they do, when they are checked next, and why then.

    \b
    Example:
      xscl feeds list --failing
    """
    with _store(context) as store:
        found = _healths(store)
    rows = [
        row
        for row in found
        if (stream is None or row["stream"] == stream)
        and (not failing or row["status"] in ("failing", "gone"))
    ]
    emit_rows(rows, _COLUMNS, output)
    if not rows and output == "table":
        message("no feeds; `xscl feeds add URL` adds one")


@feeds.command()
@click.argument("url")
@click.pass_context
def show(context: click.Context, url: str) -> None:
    """Show everything about one feed, as JSON; secrets stay hidden.

    \b
    Example:
      xscl feeds show https://example.org/feed.xml
    """
    with _store(context) as store, _known(url):
        subscribed = store.get(url)
        (row,) = [each for each in _healths(store) if each["url"] == url]
    row["options"] = render_options(subscribed.feed.options)
    row["has_secrets"] = bool(subscribed.feed.secrets)
    click.echo(json.dumps(row, ensure_ascii=False, indent=2))


@feeds.command()
@click.argument("url")
@click.option("--header", "headers", multiple=True, metavar="NAME:VALUE", help="Sent with it.")
@click.option("--documents", is_flag=True, help="Print the item documents, one a line.")
@click.pass_context
def check(context: click.Context, url: str, headers: tuple[str, ...], documents: bool) -> None:
    """Show what the broker would make of the feed at URL, without subscribing it.

    \b
    Example:
      xscl feeds check https://example.org/
    """
    found = _run(_preview(context, _with_options(_feed(url, "feeds"), headers, {})))
    if documents:
        for document in found.documents():
            click.echo(document.replace(b"\n", b"&#10;"))
        return
    for name, value in _described(found):
        click.echo(f"{name:<12} {value}")


@feeds.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--stream", default="feeds", show_default=True, help="For feeds in no folder.")
@click.pass_context
def import_feeds(context: click.Context, file: Path, stream: str) -> None:
    """Subscribe the feeds of an OPML file; folders become streams.

    \b
    Example:
      xscl feeds import subscriptions.opml
    """
    try:
        found = parse_opml(file.read_bytes(), stream=stream)
    except FeedError as error:
        raise Failure(f"{file}: {error.detail}") from error
    with _store(context) as store:
        added = sum(store.add(feed) for feed in found.feeds)
    for problem in found.problems:
        message(f"left out: {problem}")
    message(f"added {added} feeds; {len(found.feeds) - added} were subscribed already")


@feeds.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.pass_context
def export(context: click.Context, file: Path | None) -> None:
    """Write the feeds as OPML to FILE, or to standard output; secrets stay here.

    \b
    Example:
      xscl feeds export subscriptions.opml
    """
    with _store(context) as store:
        found = store.all()
    titles = {each.feed.url: each.state.title for each in found}
    text = render_opml((each.feed for each in found), titles)
    if file is None:
        sys.stdout.buffer.write(text)
    else:
        file.write_bytes(text)
        message(f"wrote {len(found)} feeds to {file}")


@feeds.command()
@click.argument("urls", nargs=-1, required=True)
@click.pass_context
def refresh(context: click.Context, urls: tuple[str, ...]) -> None:
    """Have feeds checked as soon as their hosts allow; also what is gone.

    \b
    Example:
      xscl feeds refresh https://example.org/feed.xml
    """
    _steer(context, urls, "refresh")


@feeds.command()
@click.argument("urls", nargs=-1, required=True)
@click.pass_context
def pause(context: click.Context, urls: tuple[str, ...]) -> None:
    """Stop checking feeds until they are resumed.

    \b
    Example:
      xscl feeds pause https://example.org/feed.xml
    """
    _steer(context, urls, "pause")


@feeds.command()
@click.argument("urls", nargs=-1, required=True)
@click.pass_context
def resume(context: click.Context, urls: tuple[str, ...]) -> None:
    """Check paused feeds again.

    \b
    Example:
      xscl feeds resume https://example.org/feed.xml
    """
    _steer(context, urls, "resume")


@feeds.command()
@click.argument("urls", nargs=-1, required=True)
@click.pass_context
def remove(context: click.Context, urls: tuple[str, ...]) -> None:
    """Unsubscribe feeds and forget which of their entries were seen.

    A feed of the settings file comes back with the next start of the broker.

    \b
    Example:
      xscl feeds remove https://example.org/feed.xml
    """
    with _store(context) as store:
        for url in urls:
            with _known(url):
                store.remove(url)
            message(f"removed {url}")


def _steer(context: click.Context, urls: tuple[str, ...], action: str) -> None:
    with _store(context) as store:
        for url in urls:
            with _known(url):
                store.change(url, **STEERING[action])
            message(f"changed {url}")


def _data(context: click.Context) -> Path:
    """Return the data directory; end the verb where a broker elsewhere is meant."""
    found = target(context)
    if not found.is_local and context.find_root().params.get("config") is None:
        raise Failure(
            f"feeds are steered where the broker runs, and {found.reason} names {found.url}",
            hint="run this on its machine with --config, or use its page or /v1/feeds",
        )
    return settings_of(context).data


@contextmanager
def _store(context: click.Context) -> Iterator[FeedStore]:
    data = _data(context)
    data.mkdir(parents=True, exist_ok=True)
    store = FeedStore(data / "feeds.db")
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _known(url: str) -> Iterator[None]:
    try:
        yield
    except UnknownFeedError as error:
        raise Failure(str(error), hint="`xscl feeds list` shows the feeds") from error


def _feed(url: str, stream: str) -> Feed:
    try:
        return feed_at(url if "://" in url else f"https://{url}", stream)
    except FeedError as error:
        raise Failure(error.detail, exit_code=2) from error


def _with_options(feed: Feed, headers: tuple[str, ...], options: dict[str, Any]) -> Feed:
    options = dict(options)
    since = options.pop("since", None)
    if since is not None:
        options |= {
            "backlog": "since",
            "since_us": int(since.replace(tzinfo=UTC).timestamp() * 1e6),
        }
    if "raw" in options:
        options["item"] = "raw" if options.pop("raw") else "normalised"
    pairs = [header.partition(":") for header in headers]
    if any(not name.strip() or not colon for name, colon, _ in pairs):
        raise Failure("a header is written NAME:VALUE", exit_code=2)
    feed = replace(feed, options=replace(feed.options, **options))
    return with_headers(feed, tuple((n.strip(), v.strip()) for n, _, v in pairs)) if pairs else feed


def _run(work: Coroutine[Any, Any, Preview | FeedError]) -> Preview:
    found = asyncio.run(work)
    if isinstance(found, FeedError):
        raise Failure(f"{found.url}: {found}", hint=remedy_of(found.fault))
    return found


async def _preview(context: click.Context, feed: Feed) -> Preview | FeedError:
    allowed = networks(settings_of(context).allow_networks)
    async with open_session(allowed) as session:
        return await preview(session, feed, time.time_ns() // 1_000)


def _described(found: Preview) -> Iterator[tuple[str, str]]:
    now_us = time.time_ns() // 1_000
    validators = "with" if found.has_validators else "without"
    yield "feed", found.url
    yield "title", found.feed.title
    yield "format", f"{found.feed.format}, read {found.feed.step}"
    yield "fetched", f"{found.body_bytes} bytes in {found.elapsed_s:.2f} s, {validators} validators"
    yield "items", f"{len(found.entries)}, told apart by {found.identity}"
    yield "next check", f"{in_words(found.next.at_us, now_us)}: {found.next.why}"
    for hub in found.feed.hints.hubs:
        yield "hub", hub
    for warning in found.feed.warnings:
        yield "warning", warning
    for other in found.others:
        yield "also there", f"{other.url} {other.title}"
    if found.entries:
        yield "newest item", found.documents()[-1].decode()


def _healths(store: FeedStore) -> list[dict[str, Any]]:
    now_us = time.time_ns() // 1_000
    return [
        {
            **render_health(found),
            "per_day": found.items_per_day,
            "last": in_words(found.last_check_us, now_us),
            "next": in_words(found.next_check_us, now_us),
        }
        for found in healths(store, now_us)
    ]
