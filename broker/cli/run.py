"""`xscl run`: the broker itself."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from broker.cli.connection import settings_of
from broker.cli.terminal import EXIT_SETTINGS, Failure, message
from broker.operations.log import write_log
from broker.settings.config import Settings
from broker.settings.directory import Claim, InUseError, keep_private
from broker.settings.reader import SettingsError

__all__ = ["run"]

_log = logging.getLogger(__name__)


@click.command()
@click.option("--verbose", "-v", is_flag=True, help="Say more about what goes on.")
@click.option("--until-eof", is_flag=True, hidden=True, help="Stop when standard input ends.")
@click.pass_context
def run(context: click.Context, verbose: bool, until_eof: bool) -> None:
    """Run the broker of xscl.toml until SIGINT or SIGTERM.

    It polls the feeds of the settings, takes documents over HTTP, evaluates the registered
    queries and delivers matches.  Everything is kept in the data directory; a broker that was
    killed goes on from there.  SIGINT or SIGTERM finishes the batch in hand; a second one does
    not.

    \b
    Examples:
      xscl run
      xscl --config /etc/xscl/xscl.toml run --verbose
    """
    settings = settings_of(context)
    # First of all: verbs wait for a broker that has the directory and does not listen yet.
    claim = _claimed(settings.data)
    write_log(settings.log, is_verbose=verbose)
    say = _log.info if settings.log.format == "json" else message
    say("starting; Spark takes some seconds")
    try:
        was_ready = asyncio.run(_run(settings, say, until_eof=until_eof))
    except Failure as failure:
        if settings.log.format == "json":
            _log.critical("the broker has ended: %s", failure.message)
            sys.exit(failure.exit_code)
        raise
    finally:
        claim.release()
    say("stopped")
    if not was_ready:
        os._exit(0)  # the start that was called off has threads, and a JVM that ends with us


def _claimed(data: Path) -> Claim:
    """Make the data directory, private and writable, and take it."""
    try:
        keep_private(data)
        claim = Claim(data)
        with tempfile.TemporaryFile(dir=data) as file:
            file.write(b"there is room")
    except InUseError as error:
        hint = "end it, or set another `data` in xscl.toml"
        raise Failure(str(error), hint=hint) from error
    except OSError as error:
        hint = "change its owner, make room, or set `data` in xscl.toml; `xscl doctor` says more"
        raise Failure(f"cannot write to {data}: {error.strerror}", hint=hint) from error
    return claim


async def _run(settings: Settings, say: Callable[[str], None], *, until_eof: bool) -> bool:
    stop = asyncio.Event()
    _stop_on_signals(stop, say)
    from broker.api.admission.connections import raise_file_limit
    from broker.api.http import ListenError
    from broker.documents.head import SegmentError
    from broker.documents.spool import SpoolError
    from broker.pipeline.jvm import JvmError
    from broker.pipeline.spark import SparkError
    from broker.pipeline.steps import PipelineError
    from broker.pipeline.store.objects import StoreError
    from broker.service.lifecycle import Service
    from broker.settings.database import DatabaseError
    from feeds import FeedStoreError

    raise_file_limit()
    watcher = asyncio.create_task(_end_of_input(stop)) if until_eof else None
    try:
        return await Service(settings).run(
            stop, on_listening=lambda url: say(f"listening on {url}")
        )
    except (
        ListenError,
        DatabaseError,
        FeedStoreError,
        SegmentError,
        SpoolError,
        JvmError,
        SparkError,
        PipelineError,
        StoreError,
    ) as error:
        _log.debug("the broker has ended", exc_info=error)
        raise Failure(str(error)) from error
    except SettingsError as error:
        raise Failure(str(error), exit_code=EXIT_SETTINGS) from error
    finally:
        if watcher is not None:
            watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watcher


def _stop_on_signals(stop: asyncio.Event, say: Callable[[str], None]) -> None:
    """Set `stop` at the first SIGINT or SIGTERM, and end the process at the second."""

    def heed(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)  # what was acknowledged is on the disk
        say("stopping; the batch in hand is finished")
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, heed, number)


async def _end_of_input(stop: asyncio.Event) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(4096):
        pass
    stop.set()
