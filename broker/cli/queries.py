"""`xscl register|list|show|pause|resume|remove`: the queries of a running broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from broker.cli.connection import Connection, connect
from broker.cli.terminal import Failure, emit_rows, format_option, message

__all__ = ["list_queries", "pause", "register", "remove", "resume", "show"]


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--id", "query_id", help="The query's id, where the file holds one query.")
@click.option(
    "--dry-run", is_flag=True, help="Show what they would cost and match, and register nothing."
)
@click.option(
    "--since",
    metavar="DOCID|TIME|all",
    help="See retained documents after that one, or that arrived from that time on, too.",
)
@click.pass_context
def register(
    context: click.Context,
    paths: tuple[Path, ...],
    query_id: str | None,
    dry_run: bool,
    since: str | None,
) -> None:
    """Register the queries in files and directories (*.xscl), or new texts of them.

    A query sees the documents that arrive after it was registered, or those that the broker
    retains from --since on.  With --dry-run the broker says from its newest documents what each
    would cost and match, and registers none.

    \b
    Examples:
      xscl register examples/queries/
      xscl register same-story.xscl --id stories
      xscl register same-story.xscl --dry-run
      xscl register same-story.xscl --since all
    """
    from xscl import XsclError, load

    connection = connect(context)
    try:
        queries = load(paths)
    except XsclError as error:
        raise Failure(str(error)) from error
    if query_id is not None and len(queries) != 1:
        raise Failure(
            f"--id names one query, but there are {len(queries)}",
            hint="leave --id out",
            exit_code=2,
        )
    for query in queries:
        body, kind = query.text.encode(), "text/plain; charset=utf-8"
        path = ("queries", query_id or query.id)
        if dry_run:
            answer = connection.call("POST", *path, "estimate", body=body, content_type=kind)
            click.echo(answer["rendered"], nl=False)
            continue
        made = connection.call("PUT", *path, query={"since": since}, body=body, content_type=kind)
        message(
            f"registered {made['id']} (version {made['version']}, sees documents after"
            f" {made['point']})"
        )


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
    emit_rows(rows, ["id", "state", "matches", "subscriptions", "point", "version"], output)
    if not rows and output == "table":
        message("no queries yet; `xscl register FILE` adds one")


@click.command()
@click.argument("query_id", metavar="QUERY")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print it.",
)
@click.pass_context
def show(context: click.Context, query_id: str, output: str) -> None:
    """Show one query: its text, its state, and who gets its matches.

    \b
    Example:
      xscl show same-story
    """
    connection = connect(context)
    query = connection.get("queries", query_id)
    query["subscriptions"] = connection.get("subscriptions", query=query_id)["subscriptions"]
    if output == "json":
        click.echo(json.dumps(query, ensure_ascii=False, indent=2))
    else:
        _show_text(query)


def _show_text(query: dict[str, Any]) -> None:
    reason = f" ({query['reason']})" if query["reason"] else ""
    click.echo(f"{query['id']}  {query['state']}{reason}, {query['matches']} matches")
    click.echo(f"version {query['version']}, sees documents after {query['point']}\n")
    click.echo(query["text"].rstrip())
    if query["subscriptions"]:
        click.echo()
        emit_rows(query["subscriptions"], ["id", "destination", "state", "parameters"], "table")


@click.command()
@click.argument("query_id", metavar="QUERY")
@click.pass_context
def pause(context: click.Context, query_id: str) -> None:
    """Stop matching a query, from the next document on, until it is resumed.

    \b
    Example:
      xscl pause same-story
    """
    _change(connect(context), query_id, "pause")


@click.command()
@click.argument("query_id", metavar="QUERY")
@click.pass_context
def resume(context: click.Context, query_id: str) -> None:
    """Match a paused query again, from the next document on.

    \b
    Example:
      xscl resume same-story
    """
    _change(connect(context), query_id, "resume")


def _change(connection: Connection, query_id: str, action: str) -> None:
    query = connection.call("POST", "queries", query_id, action)
    message(f"{query['id']} is {query['state']}")


@click.command()
@click.argument("name", metavar="QUERY|SUBSCRIPTION")
@click.pass_context
def remove(context: click.Context, name: str) -> None:
    """Remove a query with its subscriptions, or one subscription (sub_...).

    \b
    Examples:
      xscl remove same-story
      xscl remove sub_5f0c9d27a1b34e88
    """
    kind = "subscriptions" if name.startswith("sub_") else "queries"
    connect(context).call("DELETE", kind, name)
    message(f"removed {name}")
