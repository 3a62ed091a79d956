"""`xscl subscribe`: have the matches of a query sent somewhere."""

from __future__ import annotations

import click

from broker.cli.connection import connect
from broker.cli.deliveries import test_subscription
from broker.cli.terminal import (
    echo,
    echo_json,
    message,
    parameter_option,
    read_parameters,
    text_or_json,
)

__all__ = ["subscribe"]


@click.command()
@click.argument("query_id", metavar="QUERY")
@click.argument("destination", metavar="URL|ADDRESS|pull")
@parameter_option()
@click.option(
    "--digest",
    type=click.Choice(["immediate", "hourly", "daily", "weekly"]),
    help="Gather mails; immediate by default.",
)
@click.option("--batch", "batch_max", type=click.IntRange(1, 1000), help="Matches in one call.")
@click.option("--rate", "rate_per_s", type=float, help="At most so many calls a second.")
@click.option("--owner", metavar="ADDRESS", help="Who is told when it is disabled.")
@click.option("--cloudevents", is_flag=True, help="Post CloudEvents 1.0.")
@click.option(
    "--since", metavar="DOCID|TIME|all", help="Send matches of retained documents from there, too."
)
@click.option("--test", "send_sample", is_flag=True, help="Send a signed sample at once.")
@text_or_json("How to print what was made: its id, and a webhook's key; or all of it.")
@click.pass_context
def subscribe(
    context: click.Context,
    /,
    query_id: str,
    destination: str,
    given: tuple[str, ...],
    send_sample: bool,
    since: str | None,
    output: str,
    **options: object,
) -> None:
    """Have the matches of QUERY posted to a URL, mailed to an address, or kept to be pulled.

    The subscription's id goes to standard output.  Webhooks are signed (Standard Webhooks); the key
    is printed once, on a second line.

    \b
    Examples:
      xscl subscribe same-story https://example.org/hook --test
      xscl subscribe same-story ann@example.org --digest daily
      xscl subscribe by-author pull -p who=Ann -p within="6 h"
    """
    connection = connect(context)
    made = connection.call(
        "POST",
        "subscriptions",
        body={
            "query": query_id,
            "destination": destination,
            "parameters": read_parameters(given),
            "options": _options(options),
            **({} if since is None else {"since": since}),
        },
    )
    message(
        f"subscribed {made['destination']} to {made['query']} as {made['id']}, for matches of"
        f" documents after {made['point']}"
    )
    if made.get("secret"):
        message("its messages are signed with the key below its id, which is not shown again")
    if output == "json":
        echo_json(made)
    else:
        echo("\n".join(filter(None, (made["id"], made.get("secret")))))
    if send_sample:
        test_subscription(context, connection, made["id"])


def _options(given: dict[str, object]) -> dict[str, object]:
    chosen = {name: value for name, value in given.items() if value not in (None, False)}
    if chosen.pop("cloudevents", False):
        chosen["format"] = "cloudevents"
    return chosen
