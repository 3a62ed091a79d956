"""`xscl subscribe`: have the matches of a query sent somewhere."""

from __future__ import annotations

import sys
from typing import Any

import click

from broker.cli.connection import BrokerConnection, connect
from broker.cli.deliveries import test_subscription
from broker.cli.terminal import (
    Failure,
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
@click.argument("destination", metavar="URL|ADDRESS|CHAT:...|SINK|pull|-")
@parameter_option()
@click.option(
    "--digest",
    metavar="NAME|CRON",
    help="Gather matches until then: hourly, daily, weekly, or a time as cron has it.",
)
@click.option(
    "--key",
    multiple=True,
    metavar="NAME",
    help="Tell messages apart by a value that is compared, or by output/...; can be repeated.",
)
@click.option("--group", metavar="TIME", help="One message for all of a key within that time.")
@click.option(
    "--throttle", metavar="N per TIME", help="At most so many messages of a key in a time."
)
@click.option(
    "--quiet", metavar="HH:MM-HH:MM", help="Begin no message then; `Sat-Sun` may stand first."
)
@click.option("--timezone", metavar="ZONE", help="Of digests and quiet hours; UTC by default.")
@click.option("--escalate", metavar="URL|ADDRESS", help="Send what nobody acknowledges there, too.")
@click.option("--escalate-after", metavar="TIME", help="How long a message waits for that.")
@click.option(
    "--collect", is_flag=True, help="Make messages and send none before they are retried."
)
@click.option("--batch", "batch_max", type=click.IntRange(1, 1000), help="Matches in one call.")
@click.option("--rate", "rate_per_s", type=float, help="At most so many calls a second.")
@click.option("--owner", metavar="ADDRESS", help="Who is told when it is disabled.")
@click.option("--cloudevents", is_flag=True, help="Post CloudEvents 1.0.")
@click.option(
    "--since", metavar="DOCID|TIME|all", help="Send matches of retained documents from there, too."
)
@click.option(
    "--test/--no-test",
    "send_sample",
    default=None,
    help="Send a sample at once, and end with 1 if it does not arrive; or send none. Otherwise one"
    " is sent, and what came of it is said.",
)
@text_or_json("How to print what was made: its id, and a webhook's key; or all of it.")
@click.pass_context
def subscribe(
    context: click.Context,
    /,
    query_id: str,
    destination: str,
    given: tuple[str, ...],
    send_sample: bool | None,
    since: str | None,
    output: str,
    **options: object,
) -> None:
    """Have the matches of QUERY posted to a URL, mailed to an address, or kept to be pulled.

    CHAT is slack, discord, teams, ntfy, telegram or matrix: what stands behind it is a secret, and
    is not shown again.  SINK is a table, a bus or a log from which other programs read.

    Arguments stay in your shell's history: `-` for a destination, also that of --escalate, has it
    be asked for, or read from a line of standard input.

    It gets a match only if all documents of the match came after the subscription, or after
    --since.  The subscription's id goes to standard output.  Webhooks are signed (Standard
    Webhooks); the key is printed once, on a second line.  A sample shows at once whether matches
    will arrive.

    \b
    Examples:
      xscl subscribe same-story https://example.org/hook
      xscl subscribe same-story ann@example.org --digest daily --since all
      xscl subscribe follow ann@example.org --key topic --group "10 min" --throttle "3 per 1 h"
      xscl subscribe same-story slack:https://hooks.slack.com/services/T0/B0/...
      xscl subscribe same-story ntfy:https://ntfy.sh/TOPIC --group "10 min"
      xscl subscribe same-story - < telegram-destination
      xscl subscribe same-story "postgresql://xscl@db.example/news?table=matches"
      xscl subscribe by-author pull -p who=Ann -p within="6 h"
    """
    connection = connect(context)
    destination = _told("Destination", destination)
    if options["escalate"] is not None:
        options["escalate"] = _told("Escalate to", str(options["escalate"]))
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
    message(f"subscribed {made['destination']} to {made['query']} as {made['id']}")
    _say_point(connection, made, since)
    if made.get("secret"):
        message("its messages are signed with the key below its id, which is not shown again")
    if output == "json":
        echo_json(made)
    else:
        echo("\n".join(filter(None, (made["id"], made.get("secret")))))
    if made["state"] == "unconfirmed":
        message(made["reason"] or "a mail asks whether it is wanted; nothing is sent before that")
        return
    if send_sample is False or (send_sample is None and destination == "pull"):
        return
    if not test_subscription(connection, made["id"]):
        message(f"hint: `xscl deliveries test {made['id']}` sends another sample")
        context.exit(1 if send_sample else 0)


def _told(label: str, given: str) -> str:
    """Return a destination as it was given; `-` is one that nobody else is to see."""
    if given != "-":
        return given
    if sys.stdin.isatty():
        return str(click.prompt(label, hide_input=True, err=True))
    line = sys.stdin.readline().strip()
    if not line:
        raise Failure("standard input has no destination", hint="it is one line, as an argument is")
    return line


def _say_point(connection: BrokerConnection, made: dict[str, Any], since: str | None) -> None:
    """Say which matches it will get, and how to get those of earlier documents too."""
    message(f"it gets a match only if all documents of the match came after {made['point']}")
    sees_after = connection.get("queries", made["query"])["point"]
    if since is None and sees_after < made["point"]:
        message("hint: with `--since all` it would get matches with earlier documents, too")
    elif since is not None and 0 < sees_after == made["point"]:
        message(
            f"hint: the query itself sees documents after {sees_after} only; `xscl register`"
            " with `--since all` has it see all that are kept"
        )


def _options(given: dict[str, object]) -> dict[str, object]:
    chosen = {name: value for name, value in given.items() if value not in (None, False)}
    if not chosen.get("key"):
        chosen.pop("key", None)
    if chosen.pop("cloudevents", False):
        chosen["format"] = "cloudevents"
    return chosen
