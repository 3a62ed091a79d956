"""`xscl list|subscriptions|show|pause|resume|remove`: the queries of a running broker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from broker.cli.connection import BrokerConnection, connect
from broker.cli.terminal import echo, echo_json, emit_rows, format_option, message, text_or_json

__all__ = ["list_queries", "pause", "remove", "resume", "show", "subscriptions"]

_SHOWN_MAX = 100
_TEXT = "text/plain; charset=utf-8"


@click.command("list")
@format_option
@click.pass_context
def list_queries(context: click.Context, output: str) -> None:
    """List the registered queries with the number of their matches.

    \b
    Example:
      xscl list --format json
    """
    rows = connect(context).get("queries")["queries"]
    if output != "json":
        rows = [{**row, "tags": ", ".join(row["tags"])} for row in rows]
    columns = ["id", "state", "matches", "subscriptions", "point", "version", "owner", "tags"]
    emit_rows(rows, columns, output)
    if output == "table":
        for row in (row for row in rows if row["reason"]):
            message(f"{row['id']} {_since(row)}: {row['reason']}")
    if not rows and output == "table":
        message("no queries yet; `xscl register FILE` adds one")


@click.command()
@click.argument("query_id", metavar="[QUERY]", required=False)
@click.option("--to", "destination", metavar="TEXT", help="Only where the destination has it.")
@click.option(
    "--state",
    type=click.Choice(["active", "paused", "disabled"]),
    help="Only those in one state.",
)
@format_option
@click.pass_context
def subscriptions(
    context: click.Context,
    query_id: str | None,
    destination: str | None,
    state: str | None,
    output: str,
) -> None:
    """List the subscriptions, of QUERY or of all, with their parameters.

    \b
    Examples:
      xscl subscriptions same-story
      xscl subscriptions --to ann@example.org
    """
    connection = connect(context)
    rows = [
        row
        for row in _subscriptions(connection, query_id)
        if (destination or "").lower() in row["destination"].lower()
        and state in (None, row["state"])
    ]
    if output == "table":
        for row in rows:
            row["reason"] = _why_nothing_comes(row)
    emit_rows(rows, ["id", "query", "destination", "state", "parameters", "reason"], output)
    if not rows and output == "table":
        if query_id is not None:
            connection.call("GET", "queries", query_id)  # says so where there is no such query
        message("no subscriptions")


def _why_nothing_comes(subscription: dict[str, Any]) -> str:
    """Return why nothing is sent to a subscription now; nothing, where its matches are."""
    if subscription["reason"] or not subscription["quiet_until"]:
        return str(subscription["reason"])
    return f"quiet or snoozed until {subscription['quiet_until'][:16]}Z"


def _subscriptions(connection: BrokerConnection, query_id: str | None) -> Iterator[dict[str, Any]]:
    return connection.rows("subscriptions", turned_by="after", query=query_id)


@click.command()
@click.argument("query_id", metavar="QUERY")
@text_or_json()
@click.pass_context
def show(context: click.Context, query_id: str, output: str) -> None:
    """Show one query: its text, its state, and who gets its matches.

    \b
    Example:
      xscl show same-story
    """
    connection = connect(context)
    query = connection.get("queries", query_id)
    most = _SHOWN_MAX if output == "text" else None
    count, found = query["subscriptions"], list(islice(_subscriptions(connection, query_id), most))
    query["subscriptions"] = found
    if output == "json":
        echo_json(query)
    else:
        _show_text(query)
        if count > len(found):
            message(f"and {count - len(found):,} more: `xscl subscriptions {query_id}`")


def _show_text(query: dict[str, Any]) -> None:
    echo(f"{query['id']}  {query['state']}, {query['matches']} matches")
    if query["reason"]:
        echo(f"it {_since(query)}: {query['reason']}")
    echo(f"version {query['version']}, sees documents after {query['point']}\n")
    echo(query["source"].rstrip())
    if query["subscriptions"]:
        echo()
        for each in query["subscriptions"]:
            if each["until"] is not None:
                each["state"] += f", until document {each['until']}"
            each["reason"] = _why_nothing_comes(each)
        columns = ["id", "destination", "state", "parameters", "reason"]
        emit_rows(query["subscriptions"], columns, "table")


_ANSWER = text_or_json("How to print it: nothing more than the message, or the query.")


@click.command()
@click.argument("query_id", metavar="QUERY")
@_ANSWER
@click.pass_context
def pause(context: click.Context, query_id: str, output: str) -> None:
    """Stop matching a query, from the next document on, until it is resumed.

    \b
    Example:
      xscl pause same-story
    """
    _change(connect(context), query_id, "pause", output)


@click.command()
@click.argument("query_id", metavar="QUERY")
@_ANSWER
@click.pass_context
def resume(context: click.Context, query_id: str, output: str) -> None:
    """Match a paused query again, from the next document on.

    One that went over its budget may do so again: what it will cost is estimated first.

    \b
    Example:
      xscl resume same-story
    """
    from xscl import parse

    connection = connect(context)
    text = connection.get("queries", query_id)["text"]
    if not any(query.is_ordered for query in parse(text)):
        estimate = connection.call(
            "POST", "queries", query_id, "estimate", body=text.encode(), content_type=_TEXT
        )
        for warning in estimate["warnings"]:
            message(f"warning: {warning}")
    _change(connection, query_id, "resume", output)


def _change(connection: BrokerConnection, query_id: str, action: str, output: str) -> None:
    query = connection.call("POST", "queries", query_id, action)
    message(f"{query['id']} {_since(query)}")
    if output == "json":
        echo_json(query)


def _since(query: dict[str, Any]) -> str:
    return f"is {query['state']} from document {query['effective'] + 1} on"


@click.command()
@click.argument("name", metavar="QUERY|SUBSCRIPTION")
@click.pass_context
def remove(context: click.Context, name: str) -> None:
    """Remove a query from the next document on, or one subscription (sub_...).

    The query's subscriptions end with it: they get what documents accepted before still match.  A
    subscription that is removed itself is sent nothing more.

    \b
    Examples:
      xscl remove same-story
      xscl remove sub_5f0c9d27a1b34e88
    """
    kind = "subscriptions" if name.startswith("sub_") else "queries"
    connect(context).call("DELETE", kind, name)
    message(f"removed {name}")
