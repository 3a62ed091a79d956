"""`xscl backup` and `xscl restore`: copy the data of a broker, and put a copy in its place."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import click

from broker.cli.connection import settings_of
from broker.cli.terminal import Failure, message
from broker.settings.directory import InUseError

if TYPE_CHECKING:
    from broker.operations.copies import Manifest

__all__ = ["backup", "restore"]


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.pass_context
def backup(context: click.Context, directory: Path) -> None:
    """Copy the broker's data to DIRECTORY, which must be new or empty, and check the copy.

    The broker may run meanwhile; the copy is its data at one instant.  `xscl restore` puts it in
    place.

    \b
    Example:
      xscl backup /srv/backup/2026-01-01
    """
    from broker.operations.backup import back_up
    from broker.operations.copies import CopyError

    try:
        manifest = back_up(settings_of(context).data, directory)
    except (CopyError, OSError, sqlite3.Error) as error:
        raise Failure(str(error)) from error
    message(f"copied to {directory} and read again: {_contents(manifest)}")


@click.command()
@click.argument(
    "directory", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--take-over", "takes_over", is_flag=True, help="The original has ended: deliver in its place."
)
@click.pass_context
def restore(context: click.Context, directory: Path | None, takes_over: bool) -> None:
    """Check the copy in DIRECTORY, and make it the broker's data.

    The data directory of the settings must hold no broker's data; DIRECTORY stays as it is.  A
    broker on the copy takes documents, polls feeds and finds matches, and sends nothing, since
    the original may do so: --take-over, now or later without DIRECTORY, lets it deliver.

    \b
    Examples:
      xscl restore /srv/backup/2026-01-01 --take-over
      xscl restore /srv/backup/2026-01-01 && xscl run &
      xscl restore --take-over
    """
    from broker.operations.copies import CopyError
    from broker.operations.restore import restore as put_in_place
    from broker.operations.restore import take_over

    data = settings_of(context).data
    if directory is None and not takes_over:
        raise click.UsageError("name the DIRECTORY of a copy, or --take-over")
    try:
        if directory is None:
            take_over(data)
        else:
            manifest = put_in_place(directory, data, takes_over=takes_over)
            message(f"restored to {data} from {manifest.made}: {_contents(manifest)}")
    except CopyError as error:
        raise Failure(str(error), hint=_HINT) from error
    except (InUseError, OSError, sqlite3.Error) as error:
        raise Failure(str(error)) from error
    if takes_over:
        message(f"a broker on {data} delivers; see that the original does not run any more")
    else:
        message("a broker on it delivers nothing until `xscl restore --take-over`")


_HINT = "`data` in xscl.toml names the broker's data; `xscl backup DIRECTORY` makes a copy"


def _contents(manifest: Manifest) -> str:
    return (
        f"{manifest.documents:,} document{'' if manifest.documents == 1 else 's'}"
        f" in {manifest.segments:,} segment{'' if manifest.segments == 1 else 's'},"
        f" {manifest.matches:,} match{'' if manifest.matches == 1 else 'es'}"
    )
