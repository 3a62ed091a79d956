"""`xscl doctor`: what this machine has of what the broker needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from broker.cli.connection import settings_of
from broker.cli.terminal import EXIT_FAILED, echo, echo_json, message, text_or_json
from broker.settings.config import Settings

if TYPE_CHECKING:
    from broker.operations.checkup.finding import CheckupFinding

__all__ = ["doctor", "examine"]


@click.command()
@click.option("--offline", is_flag=True, help="Do not ask the mail server and the feeds.")
@text_or_json("How to print what was found.")
@click.pass_context
def doctor(context: click.Context, offline: bool, output: str) -> None:
    """Check what the broker needs on this machine, and say what to do about what is missing.

    Looks at the installed packages and their versions, the Java runtime, the data directory and
    its disk, the port of the API, the clock, settings with which Spark cannot work, the mail server
    (it logs in, and sends nothing) and the feeds of the settings.  Ends with 1 if something is not
    well.

    \b
    Examples:
      xscl doctor
      xscl doctor --offline
    """
    found = []
    for finding in examine(settings_of(context), is_offline=offline):
        found.append(finding)
        if output == "text":
            _show(finding)
    bad = sum(finding.remedy is not None for finding in found)
    if output == "json":
        rows = [{**asdict(each), "is_well": each.remedy is None} for each in found]
        echo_json(rows)
    if bad:
        message(f"{bad} of {len(found)} things are not well")
        context.exit(EXIT_FAILED)


def _show(finding: CheckupFinding) -> None:
    is_well = finding.remedy is None
    mark = click.style("ok ", fg="green") if is_well else click.style("BAD", fg="red", bold=True)
    echo(f"{mark}  {finding.subject:<9} {finding.state}")
    if finding.remedy is not None:
        echo(f"     {'':<9} {finding.remedy}")


def examine(settings: Settings, *, is_offline: bool = False) -> Iterator[CheckupFinding]:
    """Yield what was found, in the order in which a start of the broker would meet it."""
    from broker.operations.checkup.cluster import look_at_spark
    from broker.operations.checkup.machine import look_at_machine

    yield from look_at_machine(settings)
    yield from look_at_spark(settings)
    if not is_offline:
        from broker.operations.checkup.network import look_at_network
        from broker.operations.checkup.store import look_at_store

        yield from look_at_network(settings)
        yield from look_at_store(settings)
