"""`xscl tokens ...`: who may use the broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from broker.cli.connection import BrokerConnection, asked_or_done, settings_of
from broker.cli.terminal import Failure, echo, emit_rows, format_option, message
from broker.settings.directory import keep_private

if TYPE_CHECKING:
    from broker.registry.tokens import Tokens

__all__ = ["tokens"]

T = TypeVar("T")
_LENGTH_MAX_US = 36_525 * 86_400_000_000
_COLUMNS = ["name", "scopes", "subscriptions", "expires", "used", "created"]


@click.group()
def tokens() -> None:
    """Make tokens for users of the broker, and revoke them.

    Every request needs one.  Verbs take theirs from --token, XSCL_TOKEN, the file that
    `http.token_file` names, or else admin-token in the data directory.

    These verbs ask the running broker, which wants a token with the scope admin.  Where none
    runs, or with --local, they work on the data directory of the settings.

    \b
    Examples:
      xscl tokens create ops --scope admin
      xscl tokens list
    """


def _local_option(command: Callable[..., Any]) -> Callable[..., Any]:
    help_text = "Work on the data directory, even if a broker runs."
    return click.option("--local", "is_local", is_flag=True, help=help_text)(command)


def _checked_scopes(
    context: click.Context, parameter: click.Parameter, scopes: tuple[str, ...]
) -> tuple[str, ...]:
    from broker.registry.tokens import TokenError, check_scopes

    try:
        check_scopes(scopes)
    except TokenError as error:
        raise click.BadParameter(str(error)) from error
    return scopes


@tokens.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    metavar="SCOPE",
    callback=_checked_scopes,
    help="admin, publish, publish:STREAM, subscribe, subscribe:QUERY or metrics; may be repeated.",
)
@click.option(
    "--subscription",
    "subscriptions",
    multiple=True,
    metavar="ID",
    help="What the scope subscribe may read; may be repeated.",
)
@click.option("--expires", metavar="DURATION", help='How long it is good for, as "90 days".')
@_local_option
@click.pass_context
def create(
    context: click.Context,
    name: str,
    scopes: tuple[str, ...],
    subscriptions: tuple[str, ...],
    expires: str | None,
    is_local: bool,
) -> None:
    """Make a token called NAME and print its secret, which is not shown again.

    The first token must have the scope admin.  A token with the scope publish can give documents
    to streams, with publish:STREAM to these only.  One with subscribe can read the matches of the
    subscriptions it names; one with subscribe:QUERY can subscribe to this query by itself, and see
    and end what it has subscribed.  One with metrics reads what Prometheus asks for, and no more.

    \b
    Examples:
      xscl tokens create ops --scope admin > admin-token
      xscl tokens create crawler --scope publish --expires "90 days"
      xscl tokens create crawler --scope publish:news --scope publish:blogs
      xscl tokens create prometheus --scope metrics > /etc/prometheus/xscl-token
      xscl tokens create bob --scope subscribe:same-story
      xscl tokens create ann --scope subscribe --subscription sub_4f1c0e0a9d2b7c6e8f10
    """
    expires_us = _moment(expires)

    def ask(connection: BrokerConnection) -> str:
        from broker.documents.document import render_time

        asked = {
            "name": name,
            "scopes": scopes,
            "subscriptions": subscriptions,
            "expires": None if expires_us is None else render_time(expires_us),
        }
        return str(connection.call("POST", "tokens", body=asked)["token"])

    def work(data: Path) -> str:
        _check_subscriptions(data, subscriptions)
        with _opened(data) as kept, _noted(data, "post_token", name, scopes=scopes):
            made = kept.create(name, scopes, subscriptions=subscriptions, expires_us=expires_us)
        return made[1]

    secret, place = _done(context, is_local, ask, work)
    message(f"made the token {name!r} of {place}; this is it, and it is not shown again:")
    echo(secret)


@tokens.command("list")
@format_option
@_local_option
@click.pass_context
def list_tokens(context: click.Context, output: str, is_local: bool) -> None:
    """List the tokens: what each is good for, until when, and when it was last used.

    \b
    Examples:
      xscl tokens list
      xscl tokens list --format json
    """

    def ask(connection: BrokerConnection) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = connection.get("tokens")["tokens"]
        return found

    def work(data: Path) -> list[dict[str, Any]]:
        from broker.api.tokens import rendered

        with _opened(data) as kept:
            return [rendered(each) for each in kept.tokens()]

    rows, _ = _done(context, is_local, ask, work)
    if output != "json":
        lists = ("scopes", "subscriptions")
        rows = [{**row, **{name: " ".join(row[name]) for name in lists}} for row in rows]
    emit_rows(rows, _COLUMNS, output)


@tokens.command()
@click.argument("name")
@_local_option
@click.pass_context
def revoke(context: click.Context, name: str, is_local: bool) -> None:
    """Make the token NAME worthless from the next request on.

    Revoking the last token does not open the broker again.

    \b
    Example:
      xscl tokens revoke crawler
    """

    def work(data: Path) -> None:
        with _opened(data) as kept, _noted(data, "delete_token", name):
            kept.revoke(name)

    _, place = _done(
        context, is_local, lambda connection: connection.call("DELETE", "tokens", name), work
    )
    message(f"revoked the token {name!r} of {place}")


def _done(
    context: click.Context,
    is_local: bool,
    ask: Callable[[BrokerConnection], T],
    work: Callable[[Path], T],
) -> tuple[T, str]:
    if not is_local:
        return asked_or_done(context, ask, work)
    data = settings_of(context).data
    return work(data), str(data)


@contextmanager
def _opened(data: Path) -> Iterator[Tokens]:
    from broker.registry.tokens import TokenError, Tokens
    from broker.settings.database import DatabaseError

    try:
        keep_private(data)
        kept = Tokens(data / "tokens.db")
    except (DatabaseError, OSError) as error:
        raise Failure(str(error)) from error
    try:
        yield kept
    except TokenError as error:
        raise Failure(str(error)) from error
    finally:
        kept.close()


def _noted(data: Path, action: str, name: str, **detail: Any) -> AbstractContextManager[None]:
    from broker.registry.audit import local_change

    return local_change(data, action, name, **detail)


def _check_subscriptions(data: Path, subscriptions: tuple[str, ...]) -> None:
    from broker.registry.file import RegistryError
    from broker.registry.queries import Registry

    if not subscriptions:
        return
    registry = Registry(data / "registry.db")
    try:
        for each in subscriptions:
            registry.subscriptions.get(each)
    except RegistryError as error:
        raise Failure(str(error)) from error
    finally:
        registry.close()


def _moment(duration: str | None) -> int | None:
    from xscl.durations import DurationError, read_duration

    if duration is None:
        return None
    try:
        length_us = read_duration(duration)
    except DurationError as error:
        raise click.BadParameter(str(error), param_hint="--expires") from error
    if length_us > _LENGTH_MAX_US:
        text = "longer than 100 years; leave it out for a token without an end"
        raise click.BadParameter(text, param_hint="--expires")
    return time.time_ns() // 1_000 + length_us
