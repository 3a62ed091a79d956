"""`xscl subscribe`: have the matches of a query sent somewhere."""

from __future__ import annotations

import click

from broker.cli.connection import connect
from broker.cli.terminal import Failure, message

__all__ = ["subscribe"]


@click.command()
@click.argument("query_id", metavar="QUERY")
@click.argument("destination", metavar="URL|ADDRESS|pull")
@click.option(
    "--parameter",
    "-p",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of one of the query's parameters; a number where it reads as one.",
)
@click.pass_context
def subscribe(
    context: click.Context, query_id: str, destination: str, parameters: tuple[str, ...]
) -> None:
    """Have the matches of QUERY posted to a URL, mailed to an address, or kept to be pulled.

    Webhooks are signed (Standard Webhooks); the key is printed once, to standard output.

    \b
    Examples:
      xscl subscribe same-story https://example.org/hook
      xscl subscribe same-story ann@example.org
      xscl subscribe by-author pull -p who=Ann -p within="6 h"
    """
    made = connect(context).call(
        "POST",
        "subscriptions",
        body={
            "query": query_id,
            "destination": destination,
            "parameters": dict(_parameter(text) for text in parameters),
        },
    )
    message(f"subscribed {made['destination']} to {made['query']} as {made['id']}")
    if made.get("secret"):
        message("its messages are signed with this key, which is not shown again:")
        click.echo(made["secret"])


def _parameter(text: str) -> tuple[str, str | float]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Failure(f"{text!r} is not NAME=VALUE", exit_code=2)
    try:
        return name.removeprefix("$"), float(value)
    except ValueError:
        return name.removeprefix("$"), value
