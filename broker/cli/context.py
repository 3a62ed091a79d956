"""`xscl context ...`: named brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from broker.cli.connection import target
from broker.cli.contexts import (
    Context,
    check_name,
    contexts_file,
    load_contexts,
    save_contexts,
)
from broker.cli.terminal import Failure, echo, emit_rows, format_option, message

__all__ = ["context"]

_COLUMNS = ["name", "url", "token", "in_use"]


@click.group()
def context() -> None:
    """Keep several brokers under names: where each is, and where its token is kept.

    \b
    A verb that talks to a broker takes the first of these that names one:
      1. --broker, --context or --config on the command line
      2. XSCL_BROKER, XSCL_CONTEXT or XSCL_CONFIG in the environment
      3. the context in use (`xscl context use NAME`)
      4. the nearest xscl.toml

    Its token comes from --token, XSCL_TOKEN, the context, or the settings, in this order.

    \b
    Examples:
      xscl context add production --url https://broker.example.org --token-file ~/prod-token
      xscl context use production
      xscl --context staging list
    """


@context.command()
@click.argument("name")
@click.option("--url", required=True, help="The address of the broker's API.")
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file that the token is read from, each time.",
)
@click.option(
    "--token-env", metavar="VARIABLE", help="The environment variable that holds the token."
)
def add(name: str, url: str, token_file: Path | None, token_env: str | None) -> None:
    """Keep the broker at URL under NAME.  The token itself is not kept.

    \b
    Examples:
      xscl context add production --url https://broker.example.org --token-file ~/prod-token
      xscl context add staging --url http://127.0.0.1:8421 --token-env STAGING_TOKEN
    """
    if token_file is not None and token_env is not None:
        raise Failure("--token-file or --token-env, not both", exit_code=2)
    if not url.startswith(("http://", "https://")):
        raise Failure(f"{url!r} is not an http:// or https:// address", exit_code=2)
    contexts = load_contexts()
    if check_name(name) in contexts.by_name:
        hint = f"`xscl context remove {name}` forgets it"
        raise Failure(f"there is a context {name!r} already", hint=hint)
    file = str(token_file.expanduser().absolute()) if token_file is not None else None
    contexts.by_name[name] = Context(url.rstrip("/"), file, token_env)
    save_contexts(contexts)
    message(f"added {name}; `xscl context use {name}` has all verbs talk to it")
    if token_file is not None and not Path(str(file)).is_file():
        message(f"  there is no {file} yet; put the token there")


@context.command("list")
@format_option
def list_contexts(output: str) -> None:
    """List the contexts, without their tokens.

    \b
    Example:
      xscl context list --format json
    """
    contexts = load_contexts()
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "url": each.url,
            "token": each.token_place(),
            "in_use": name == contexts.current
            if output == "json"
            else _mark(name, contexts.current),
        }
        for name, each in sorted(contexts.by_name.items())
    ]
    emit_rows(rows, _COLUMNS, output)
    if not rows and output == "table":
        message("no contexts yet; `xscl context add NAME --url URL` adds one")


def _mark(name: str, current: str | None) -> str:
    return "*" if name == current else ""


@context.command()
@click.argument("name", required=False)
def use(name: str | None) -> None:
    """Have verbs talk to NAME from now on; without NAME, to the broker of xscl.toml again.

    \b
    Examples:
      xscl context use production
      xscl context use
    """
    contexts = load_contexts()
    if name is not None:
        contexts.find(name)
    contexts.current = name
    save_contexts(contexts)
    message(f"using {name}" if name else "using no context: verbs talk to the broker of xscl.toml")


@context.command()
@click.argument("name", required=False)
@click.pass_context
def show(click_context: click.Context, name: str | None) -> None:
    """Show a context, or without NAME which broker verbs talk to here, and why.

    \b
    Examples:
      xscl context show
      xscl context show production
    """
    if name is None:
        found = target(click_context)
        echo(f"broker  {found.url}")
        echo(f"because {found.reason}")
        echo(f"token   {found.token_place or 'none'}")
        return
    chosen = load_contexts().find(name)
    echo(f"broker  {chosen.url}")
    echo(f"token   {chosen.token_place() or 'none'}")
    echo(f"kept in {contexts_file()}")


@context.command()
@click.argument("name")
def remove(name: str) -> None:
    """Forget the context NAME; its token file stays.

    \b
    Example:
      xscl context remove staging
    """
    contexts = load_contexts()
    contexts.find(name)
    del contexts.by_name[name]
    if contexts.current == name:
        contexts.current = None
        message(f"{name} was in use: verbs talk to the broker of xscl.toml again")
    save_contexts(contexts)
    message(f"removed {name}")
