"""`xscl init`: a commented settings file to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from broker.cli.terminal import Failure, message
from broker.config import FILE_NAME

__all__ = ["init"]


@click.command()
@click.argument("directory", default=".", type=click.Path(file_okay=False, path_type=Path))
def init(directory: Path) -> None:
    """Write a commented xscl.toml into DIRECTORY (this one, if none is named).

    \b
    Examples:
      xscl init
      xscl init ~/broker
    """
    path = directory / FILE_NAME
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(files("broker").joinpath("xscl.toml").read_text(encoding="utf-8"))
    except FileExistsError as error:
        raise Failure(
            f"{path} is there already", hint="edit it, or name another directory"
        ) from error
    message(f"wrote {path}; name your feeds in it, then start the broker with `xscl run`")
