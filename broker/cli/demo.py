"""`xscl demo`: the whole broker at work."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from pathlib import Path

import click

from broker.cli.terminal import Failure

__all__ = ["demo"]


@click.command()
@click.option("--keep", is_flag=True, help="Leave the broker running at the end, until Ctrl-C.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to keep everything; the same directory again goes on from there.",
)
def demo(keep: bool, data: Path | None) -> None:
    """Show the whole broker at work on example feeds, and check what comes of it.

    Starts a feed server, a webhook receiver and a mail server on loopback, and a broker with
    Spark; registers the queries of examples/queries; shows each document, each match and where
    it was delivered.  Ends with 0 when every expected match has been delivered, else with 1 and
    what is missing.

    \b
    Examples:
      xscl demo
      xscl demo --keep --data /tmp/xscl-demo
    """
    if data is not None:
        asyncio.run(_show(data.absolute(), keep=keep))
        return
    with tempfile.TemporaryDirectory(prefix="xscl-demo-", ignore_cleanup_errors=True) as directory:
        asyncio.run(_show(Path(directory), keep=keep))


async def _show(directory: Path, *, keep: bool) -> None:
    from rich.console import Console

    from broker.demo.play import Play, PlayError
    from broker.demo.world import World, WorldError

    end = asyncio.Event()
    if keep:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, end.set)
    try:
        await Play(World(directory), Console()).show(keep=end if keep else None)
    except (PlayError, WorldError, TimeoutError) as error:
        raise Failure(str(error) or "the broker did not start in time") from error
