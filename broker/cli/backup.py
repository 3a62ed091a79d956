"""`xscl backup`: copy the data of a broker, running or not."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import click

from broker.cli.connection import settings_of
from broker.cli.terminal import Failure, message

__all__ = ["backup"]


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.pass_context
def backup(context: click.Context, directory: Path) -> None:
    """Copy the broker's data to DIRECTORY, which must be new or empty.

    The broker may run meanwhile.  A broker whose `data` is DIRECTORY goes on from the copy.

    \b
    Example:
      xscl backup /srv/backup/2026-01-01
    """
    from broker.documents.segment import SegmentError
    from broker.documents.spool import SpoolError
    from broker.operations.backup import BackupError, back_up

    try:
        summary = back_up(settings_of(context).data, directory)
    except (BackupError, SpoolError, SegmentError, OSError, sqlite3.Error) as error:
        raise Failure(str(error)) from error
    message(f"{summary.documents:,} documents in {summary.segments:,} segments copied")
