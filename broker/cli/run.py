"""`xscl run`: the broker itself."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys

import click

from broker.cli.connection import settings_of
from broker.cli.terminal import EXIT_SETTINGS, Failure, message
from broker.config import Settings, SettingsError

__all__ = ["run"]


@click.command()
@click.option("--verbose", "-v", is_flag=True, help="Say more about what goes on.")
@click.option("--until-eof", is_flag=True, hidden=True, help="Stop when standard input ends.")
@click.pass_context
def run(context: click.Context, verbose: bool, until_eof: bool) -> None:
    """Run the broker of xscl.toml until SIGINT or SIGTERM.

    It polls the feeds of the settings, takes documents over HTTP, evaluates the registered
    queries and delivers matches.  Everything is kept in the data directory; a broker that was
    killed goes on from there.

    \b
    Examples:
      xscl run
      xscl --config /etc/xscl/xscl.toml run --verbose
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    settings = settings_of(context)
    message("starting; Spark takes some seconds")
    asyncio.run(_run(settings, until_eof=until_eof))
    message("stopped")


async def _run(settings: Settings, *, until_eof: bool) -> None:
    from broker.database import DatabaseError
    from broker.jvm import JvmError
    from broker.pipeline import PipelineError
    from broker.service import Service, ServiceError
    from broker.spark import SparkError
    from broker.spool import SpoolError

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    watcher = asyncio.create_task(_end_of_input(stop)) if until_eof else None
    try:
        await Service(settings).run(stop, on_listening=lambda url: message(f"listening on {url}"))
    except (ServiceError, DatabaseError, SpoolError, JvmError, SparkError, PipelineError) as error:
        logging.getLogger(__name__).info("the broker has ended", exc_info=error)
        raise Failure(str(error)) from error
    except SettingsError as error:
        raise Failure(str(error), exit_code=EXIT_SETTINGS) from error
    finally:
        if watcher is not None:
            watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watcher


async def _end_of_input(stop: asyncio.Event) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(4096):
        pass
    stop.set()
