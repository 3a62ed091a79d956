"""`xscl tail`: print matches as they are found."""

from __future__ import annotations

import click

from broker.cli.connection import Connection, connect
from broker.cli.terminal import echo_json

__all__ = ["tail"]

_WAIT_S = 20


@click.command()
@click.argument("query_id", metavar="[QUERY]", required=False)
@click.option("--after", type=int, help="Begin behind this match number; 0 begins with the first.")
@click.option("--limit", "-n", type=int, help="End after this many matches.")
@click.option("--no-follow", is_flag=True, help="End when all matches so far are printed.")
@click.pass_context
def tail(
    context: click.Context,
    query_id: str | None,
    after: int | None,
    limit: int | None,
    no_follow: bool,
) -> None:
    """Print match lines (JSON) as they are found, of one query or of all, until Ctrl-C.

    \b
    Examples:
      xscl tail same-story
      xscl tail --after 0 --no-follow > matches.jsonl
    """
    connection = connect(context)
    if query_id is not None and not no_follow:
        connection.get("queries", query_id)  # one that is not there would be waited for
    try:
        _print_matches(connection, query_id, after, limit, follow=not no_follow)
    except KeyboardInterrupt:
        return  # it is how one stops looking


def _print_matches(
    connection: Connection,
    query_id: str | None,
    after: int | None,
    limit: int | None,
    *,
    follow: bool,
) -> None:
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
            echo_json(match, indent=None)
        printed += len(page["matches"])
        if not follow and page["next"] == cursor:
            return
        cursor = page["next"]
