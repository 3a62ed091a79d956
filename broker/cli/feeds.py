"""`xscl feeds ...`: the feeds that the broker polls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from broker.cli.feedadministration import AnyFeedAdministration, ask
from broker.cli.terminal import (
    Failure,
    Seconds,
    StreamName,
    echo,
    echo_bytes,
    echo_data,
    echo_json,
    emit_rows,
    format_option,
    message,
)

__all__ = ["feeds"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

_DONE = {"pause": "paused", "resume": "resumed", "refresh": "checking soon:"}
_COLUMNS = ["url", "stream", "status", "items", "per_day", "last", "next", "why", "error"]


def _stream_option(help_text: str) -> Callable[[_Command], _Command]:
    return click.option(
        "--stream", type=StreamName(), default="feeds", show_default=True, help=help_text
    )


@click.group()
def feeds() -> None:
    """See and steer the feeds that are polled.

    The running broker is asked, and heeds changes within a second.  Where none runs, the verbs
    work on the data directory of the settings, and the next `xscl run` polls what they leave.

    \b
    Examples:
      xscl feeds add https://example.org/ --stream news
      xscl feeds list
    """


@feeds.command()
@click.argument("url")
@_stream_option("The stream that it fills.")
@click.option(
    "--every",
    "every_s",
    type=Seconds(0.1, 366 * 86_400),
    help="How often it is checked: `30 min`, or seconds.",
)
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
    options["item"] = "raw" if options.pop("raw") else "normalised"
    if options["since"] is not None:
        options["since"] = options["since"].replace(tzinfo=UTC).isoformat()
    asked: dict[str, Any] = {"options": options, "headers": _parsed(headers), "check": not no_check}
    added = ask(context, lambda administration: administration.add(url, stream, **asked), adds=True)
    if "checked" in added:
        message("{url}: {format}, {items} entries".format(url=added["url"], **added["checked"]))
    message(f"added {added['url']} to stream {stream}")


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
    rows = [
        _in_words(row)
        for row in ask(context, lambda administration: administration.feeds())
        if (stream is None or row["stream"] == stream)
        and (not failing or row["status"] in ("failing", "gone"))
    ]
    emit_rows(rows, _COLUMNS, output)
    if not rows and output == "table":
        is_whole = stream is None and not failing
        message("no feeds; `xscl feeds add URL` adds one" if is_whole else "no such feeds")


@feeds.command()
@click.argument("url")
@click.pass_context
def show(context: click.Context, url: str) -> None:
    """Show everything about one feed, as JSON; secrets stay hidden.

    \b
    Example:
      xscl feeds show https://example.org/feed.xml
    """
    row = _in_words(ask(context, lambda administration: administration.feed(url)))
    echo_json(row)


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
    asked: dict[str, Any] = {"options": {}, "headers": _parsed(headers)}
    if documents:
        from feeds.parser import ITEMS_MAX

        asked["documents"] = ITEMS_MAX
    found = ask(context, lambda administration: administration.check(url, **asked))
    if documents:
        for document in found["documents"]:
            echo_data(document.replace("\n", "&#10;"))
        return
    for name, value in _described(found):
        echo(f"{name:<12} {value}")


@feeds.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_stream_option("For feeds in no folder.")
@click.pass_context
def import_feeds(context: click.Context, file: Path, stream: str) -> None:
    """Subscribe the feeds of an OPML file; folders become streams.

    \b
    Example:
      xscl feeds import subscriptions.opml
    """
    opml = file.read_bytes()
    found = ask(context, lambda administration: administration.take_list(opml, stream), adds=True)
    for problem in found["problems"]:
        message(f"left out: {problem}")
    message(f"added {found['added']} feeds; {found['known']} were subscribed already")


@feeds.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.pass_context
def export(context: click.Context, file: Path | None) -> None:
    """Write the feeds as OPML to FILE, or to standard output; secrets stay here.

    \b
    Example:
      xscl feeds export subscriptions.opml
    """
    opml = ask(context, lambda administration: administration.list_as_opml())
    if file is None:
        echo_bytes(opml)
    else:
        file.write_bytes(opml)
        message(f"wrote {opml.count(b'<outline type=')} feeds to {file}")


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

    def work(administration: AnyFeedAdministration) -> None:
        for url in urls:
            administration.remove(url)
            message(f"removed {url}")

    ask(context, work)


def _steer(context: click.Context, urls: tuple[str, ...], action: str) -> None:
    def work(administration: AnyFeedAdministration) -> None:
        for url in urls:
            administration.steer(url, action)
            message(f"{_DONE[action]} {url}")

    ask(context, work)


def _parsed(headers: tuple[str, ...]) -> dict[str, str]:
    pairs = [header.partition(":") for header in headers]
    if any(not name.strip() or not colon for name, colon, _ in pairs):
        raise Failure("a header is written NAME:VALUE", exit_code=2)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _described(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    validators = "with" if found["has_validators"] else "without"
    yield "feed", found["url"]
    yield "title", found["title"]
    yield "format", f"{found['format']}, read {found['step']}"
    size = f"{found['body_bytes']} bytes in {found['elapsed_s']:.2f} s"
    yield "fetched", f"{size}, {validators} validators"
    yield "items", f"{found['items']}, told apart by {found['identity']}"
    yield "next check", f"{_how_far(found['next_check'])}: {found['why']}"
    for hub in found["hubs"]:
        yield "hub", hub
    for warning in found["warnings"]:
        yield "warning", warning
    for other in found["others"]:
        yield "also there", f"{other['url']} {other['title']}"
    if found["documents"]:
        yield "newest item", found["documents"][-1]


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    """Return a feed with the columns that people read."""
    is_asked = row["status"] not in ("paused", "gone")
    return {
        **row,
        "per_day": row["items_per_day"],
        "last": _how_far(row["last_check"]),
        "next": _how_far(row["next_check"]) if row["next_check"] or not is_asked else "now",
    }


def _how_far(moment: str | None) -> str:
    from feeds.health import in_words

    time_us = int(datetime.fromisoformat(moment).timestamp()) * 1_000_000 if moment else 0
    return in_words(time_us, time.time_ns() // 1_000)
