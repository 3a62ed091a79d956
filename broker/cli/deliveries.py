"""`xscl deliveries`: what was sent to subscribers, what they answered, and sending again."""

from __future__ import annotations

from typing import Any

import click

from broker.cli.connection import BrokerConnection, connect
from broker.cli.terminal import (
    EXIT_FAILED,
    echo,
    echo_json,
    emit_rows,
    format_option,
    limit_option,
    message,
    text_or_json,
)

__all__ = ["deliveries", "test_subscription"]

_COLUMNS = [
    *("id", "query", "destination", "subscription", "key"),
    *("state", "attempts", "status", "next", "detail"),
]
_SAMPLE = {
    "delivered": "delivered",
    "failed": "not delivered",
    "throttled": "not delivered",
    "refused": "refused",
    "gone": "not wanted: the destination is gone",
}


@click.group()
def deliveries() -> None:
    """See what was sent to subscribers and what they answered, and send again.

    \b
    Examples:
      xscl deliveries list --state due
      xscl deliveries dead-letters
      xscl deliveries retry msg_0c2e4b...
    """


@deliveries.command("list")
@click.option("--subscription", metavar="ID", help="Of one subscription.")
@click.option(
    "--state",
    type=click.Choice(["due", "delivered", "dead", "cancelled", "suppressed", "collected"]),
    help="In one state; `due` are deliveries that are tried again.",
)
@limit_option
@format_option
@click.pass_context
def list_deliveries(
    context: click.Context, subscription: str | None, state: str | None, limit: int, output: str
) -> None:
    """List deliveries, newest first.

    \b
    Example:
      xscl deliveries list --subscription sub_5f0c9d27a1b34e88 --format json
    """
    _list(connect(context), subscription, state, limit, output)


@deliveries.command("dead-letters")
@click.option("--subscription", metavar="ID", help="Of one subscription.")
@limit_option
@format_option
@click.pass_context
def dead_letters(context: click.Context, subscription: str | None, limit: int, output: str) -> None:
    """List deliveries that were given up, newest first; `retry` sends them again.

    \b
    Example:
      xscl deliveries dead-letters -n 10
    """
    _list(connect(context), subscription, "dead", limit, output)


@deliveries.command()
@click.argument("delivery_id", metavar="DELIVERY")
@text_or_json()
@click.pass_context
def show(context: click.Context, delivery_id: str, output: str) -> None:
    """Show one delivery: its matches, and each attempt with the answer.

    \b
    Example:
      xscl deliveries show msg_0c2e4b...
    """
    delivery = connect(context).get("deliveries", delivery_id)
    if output == "json":
        echo_json(delivery)
        return
    echo(f"{delivery['id']}  {delivery['state']}, {delivery['attempts']} attempts")
    echo(f"subscription {delivery['subscription']}, made {delivery['created']}")
    if delivery["query"]:
        echo(f"matches of {delivery['query']} to {delivery['destination']}")
    echo(f"matches {', '.join(delivery['matches'])}")
    if delivery["next"]:
        echo(f"next attempt {delivery['next']}")
    if delivery["origin"]:
        echo(f"follows {delivery['origin']}")
    if delivery["acknowledged"]:
        echo(f"acknowledged {delivery['acknowledged']}")
    if delivery["alert"]:
        echo(f"to answer it: {delivery['alert']}")
    if delivery["held"]:
        echo(f"no next attempt: {delivery['held']}")
    for attempt in delivery["made"]:
        status = "" if attempt["status"] is None else f" {attempt['status']}"
        said = " ".join((attempt["detail"] or "").split())
        echo(
            f"  {attempt['number']:>3}  {attempt['time']}  {attempt['outcome']}{status}"
            f"  {attempt['seconds']:.2f} s  {said}".rstrip()
        )


@deliveries.command()
@click.argument("names", metavar="DELIVERY|SUBSCRIPTION...", nargs=-1, required=True)
@click.option(
    "--state",
    type=click.Choice(["dead", "suppressed", "collected"]),
    default="dead",
    help="Which deliveries of a subscription; its dead letters by default.",
)
@click.pass_context
def retry(context: click.Context, names: tuple[str, ...], state: str) -> None:
    """Try deliveries now, whatever their state, or all dead letters of a subscription.

    \b
    Examples:
      xscl deliveries retry msg_0c2e4b...
      xscl deliveries retry sub_5f0c9d27a1b34e88
    """
    connection = connect(context)
    retried = 0
    for name in names:
        if name.startswith("sub_"):
            answer = connection.call("POST", "subscriptions", name, "retry", query={"state": state})
        else:
            answer = connection.call("POST", "deliveries", name, "retry")
        retried += answer["retried"]
    message(f"{retried} to be tried again now")


@deliveries.command()
@click.argument("subscription", metavar="SUBSCRIPTION")
@click.option(
    "--since",
    required=True,
    metavar="TIME|DOCID|all",
    help="Send the matches committed since then, or that reach this docid.",
)
@click.pass_context
def replay(context: click.Context, subscription: str, since: str) -> None:
    """Send a subscription's past matches again, each under the id that it had.

    \b
    Example:
      xscl deliveries replay sub_5f0c9d27a1b34e88 --since 2026-01-01T12:00
    """
    answer = connect(context).call(
        "POST", "subscriptions", subscription, "replay", query={"since": since}
    )
    message(f"matches behind number {answer['after']} are sent again")


@deliveries.command()
@click.argument("subscription", metavar="SUBSCRIPTION")
@click.pass_context
def test(context: click.Context, subscription: str) -> None:
    """Send a signed sample to a subscription's destination and say what came of it.

    \b
    Example:
      xscl deliveries test sub_5f0c9d27a1b34e88
    """
    if not test_subscription(connect(context), subscription):
        context.exit(EXIT_FAILED)


def test_subscription(connection: BrokerConnection, subscription: str) -> bool:
    """Send a sample, say what came of it, and return whether it arrived."""
    answer = connection.call("POST", "subscriptions", subscription, "test")
    status = "" if answer["status"] is None else f" ({answer['status']})"
    message(f"the sample was {_SAMPLE[answer['outcome']]}{status}, {answer['seconds']:.2f} s")
    is_delivered: bool = answer["outcome"] == "delivered"
    if not is_delivered:
        message(" ".join((answer["detail"] or "").split()))
    return is_delivered


_ANSWER = text_or_json("How to print it: nothing more than the message, or the subscription.")


@deliveries.command()
@click.argument("subscription", metavar="SUBSCRIPTION")
@_ANSWER
@click.pass_context
def pause(context: click.Context, subscription: str, output: str) -> None:
    """Deliver nothing to a subscription until it is resumed.

    \b
    Example:
      xscl deliveries pause sub_5f0c9d27a1b34e88
    """
    _set_state(connect(context), subscription, "pause", output)


@deliveries.command()
@click.argument("subscription", metavar="SUBSCRIPTION")
@_ANSWER
@click.pass_context
def resume(context: click.Context, subscription: str, output: str) -> None:
    """Deliver to a paused or disabled subscription again, beginning with what it missed.

    \b
    Example:
      xscl deliveries resume sub_5f0c9d27a1b34e88
    """
    _set_state(connect(context), subscription, "resume", output)


@deliveries.command()
@click.argument("names", metavar="DELIVERY...", nargs=-1, required=True)
@click.pass_context
def acknowledge(context: click.Context, names: tuple[str, ...]) -> None:
    """Take messages as seen: they are not escalated, and do not come again.

    \b
    Example:
      xscl deliveries acknowledge msg_0c2e4b...
    """
    connection = connect(context)
    for name in names:
        answer = connection.call("POST", "deliveries", name, "acknowledge")
        message(f"{name} is acknowledged since {answer['acknowledged']}")


@deliveries.command()
@click.argument("name", metavar="DELIVERY|SUBSCRIPTION")
@click.argument("until", metavar="TIME|LENGTH", default="")
@click.option("--key", metavar="KEY", help="Of a subscription, the messages of this key only.")
@click.option("--end", is_flag=True, help="End the snooze of a subscription, or of a key.")
@text_or_json("How to print it: nothing more than the message, or until when what is snoozed.")
@click.pass_context
def snooze(
    context: click.Context, name: str, until: str, key: str | None, end: bool, output: str
) -> None:
    """Have a message come later or again, or send nothing of a subscription or a key until then.

    \b
    Examples:
      xscl deliveries snooze msg_0c2e4b... "8 h"
      xscl deliveries snooze sub_5f0c9d27a1b34e88 2026-01-05T08:00 --key harbour
      xscl deliveries snooze sub_5f0c9d27a1b34e88 --end
    """
    is_message = not name.startswith("sub_")
    if end == bool(until) or (is_message and (end or key is not None)):
        raise click.UsageError("a time is needed, or --end for a subscription; --key is of one too")
    connection = connect(context)
    kind = "deliveries" if is_message else "subscriptions"
    if end:
        was = _snoozed(connection.get(kind, name, "snooze"), key)
        given = {} if key is None else {"key": key}
        answer = connection.call("DELETE", kind, name, "snooze", query=given)
        message("the snooze has ended" if was["until"] else "it was not snoozed")
    else:
        body = {"until": until} if key is None else {"until": until, "key": key}
        answer = connection.call("POST", kind, name, "snooze", body=body)
        now = _snoozed(answer, key)
        message(f"snoozed until {now['until']}")
        if not now.get("has_messages", True):
            message(f"  there has been no message with the key {key!r} so far: is it written so?")
    if output == "json":
        echo_json(answer)


def _snoozed(answer: dict[str, Any], key: str | None) -> dict[str, Any]:
    """Return what an answer says of a key, or of what has none."""
    if key is None:
        return answer
    return next((each for each in answer["keys"] if each["key"] == key), {"until": None})


def _set_state(connection: BrokerConnection, subscription: str, action: str, output: str) -> None:
    answer = connection.call("POST", "subscriptions", subscription, action)
    message(f"{answer['id']} is {answer['state']}")
    if output == "json":
        echo_json(answer)


def _list(
    connection: BrokerConnection,
    subscription: str | None,
    state: str | None,
    limit: int,
    output: str,
) -> None:
    asked = {"subscription": subscription, "state": state}
    rows = list(connection.rows("deliveries", turned_by="before", limit=limit, **asked))
    if output == "table":
        rows = [{**row, "next": row["next"] or row["held"]} for row in rows]
    emit_rows(rows, _COLUMNS, output)
    if not rows and output == "table":
        message("no deliveries")
