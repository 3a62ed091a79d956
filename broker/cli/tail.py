"""`xscl tail`: print matches as they are found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from broker.cli.connection import BrokerConnection, connect
from broker.cli.terminal import echo, echo_json
from broker.matching.rendering.matchlines import match_lines

__all__ = ["tail"]

_WAIT_S = 20


@click.command()
@click.argument("query_id", metavar="[QUERY]", required=False)
@click.option("--after", type=int, help="Begin behind this match number; 0 begins with the first.")
@click.option("--limit", "-n", type=int, help="End after this many matches.")
@click.option("--no-follow", is_flag=True, help="End when all matches so far are printed.")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json"]),
    help="How to print them: text, as on a terminal, or match lines, as elsewhere.",
)
@click.pass_context
def tail(
    context: click.Context,
    query_id: str | None,
    after: int | None,
    limit: int | None,
    no_follow: bool,
    output: str | None,
) -> None:
    """Print matches as they are found, of one query or of all, until Ctrl-C.

    On a terminal for people: query, documents, compared values.  Elsewhere, and with --format
    json, match lines, each with its number as `seq`.

    \b
    Examples:
      xscl tail same-story
      xscl tail --after 0 --no-follow > matches.jsonl
    """
    connection = connect(context)
    write = _write_text if (output or _usual()) == "text" else _write_line
    if query_id is not None and not no_follow:
        connection.get("queries", query_id)  # one that is not there would be waited for
    try:
        printed = _print_matches(connection, query_id, after, limit, write, follow=not no_follow)
        if query_id is not None and not printed:
            connection.get("queries", query_id)  # of one that was removed there may be matches
    except KeyboardInterrupt:
        return  # it is how one stops looking


def _print_matches(
    connection: BrokerConnection,
    query_id: str | None,
    after: int | None,
    limit: int | None,
    write: Callable[[dict[str, Any]], None],
    *,
    follow: bool,
) -> int:
    """Print matches and return how many."""
    cursor = 0 if after is None and not follow else after
    printed = 0
    while limit is None or printed < limit:
        page = connection.get(
            "matches",
            query=query_id,
            after=cursor,
            limit=min(500, limit - printed) if limit is not None else None,
            wait=_WAIT_S if follow else None,
        )
        for match in page["matches"]:
            write(match)
        printed += len(page["matches"])
        if not follow and page["next"] == cursor:
            break
        cursor = page["next"]
    return printed


def _usual() -> str:
    return "text" if sys.stdout.isatty() else "json"


def _write_line(match: dict[str, Any]) -> None:
    echo_json(match, indent=None)


def _write_text(match: dict[str, Any]) -> None:
    given = match.get("parameters") or {}
    said = "".join(f" {name}={value}" for name, value in given.items())
    echo(click.style(f"{match['query']}{said}", bold=True))
    for line in match_lines(match):
        echo(f"  {line}")
