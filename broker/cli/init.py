"""`xscl init`: a commented settings file to start from."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import click

from broker.cli.terminal import Failure, message
from broker.settings.config import FILE_NAME, load_settings

__all__ = ["init", "write_settings"]


@click.command()
@click.argument("directory", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--loopback",
    is_flag=True,
    help="Let feeds and webhooks be on this machine, without https: to try things out.",
)
def init(directory: Path, loopback: bool) -> None:
    """Write a commented xscl.toml into DIRECTORY (this one, if none is named).

    The broker's data directory is made too, with a token that your verbs find there.

    \b
    Examples:
      xscl init
      xscl init ~/broker
      xscl init --loopback
    """
    path = write_settings(directory, for_loopback=loopback)
    message(f"wrote {path}; name your feeds in it, then start the broker with `xscl run`")
    message(f"your verbs find their token in {_owner_token(path)}; the web page asks for it")


def write_settings(directory: Path, *, for_loopback: bool, port: int | None = None) -> Path:
    """Write the commented settings, with a port of their own where one is given."""
    path = directory / FILE_NAME
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Passwords of feeds and keys of deliveries may be written into it.
        with open(path, "x", encoding="utf-8", opener=_privately) as file:
            text = files("broker").joinpath("xscl.toml").read_text(encoding="utf-8")
            if for_loopback:
                text = _replaced(text, _LOOPBACK)
            if port is not None:
                text = _replaced(text, {"# port = 8420": f"port = {port}"})
            file.write(text)
    except FileExistsError as error:
        raise Failure(
            f"{path} is there already", hint="edit it, or name another directory"
        ) from error
    except OSError as error:
        raise Failure(
            f"{path} cannot be written: {error.strerror}",
            hint="name a directory that you may write",
        ) from error
    return path


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _owner_token(path: Path) -> Path:
    from broker.registry.ownertoken import keep_owner_token
    from broker.settings.database import DatabaseError
    from broker.settings.directory import keep_private

    data = load_settings(path).data
    try:
        keep_private(data)
        return keep_owner_token(data)
    except (DatabaseError, OSError) as error:
        raise Failure(str(error), hint="name a directory that you may write") from error


_LOOPBACK = {
    '# allow_networks = ["127.0.0.0/8", "10.1.0.0/16"]': 'allow_networks = ["127.0.0.0/8"]',
    "# allow_http = false": "allow_http = true",
}
"""What a broker needs whose feeds and webhooks are on this machine."""


def _replaced(text: str, changes: dict[str, str]) -> str:
    for default, wanted in changes.items():
        assert default in text
        text = text.replace(default, wanted)
    return text
