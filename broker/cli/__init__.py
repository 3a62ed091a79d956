"""The command line, `xscl`: one module for each verb, imported when it is used.

`group` has the table of verbs, `terminal` what they share, `connection` their way to a running
broker.

Invariants: data goes to standard output and messages to standard error; `xscl --help` imports no
verb, so it stays fast.

Begin with `group`.
"""

from __future__ import annotations

import click

from broker.cli.group import VerbGroup

__all__ = ["main"]


@click.group(
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False),
    envvar="XSCL_CONFIG",
    help="The broker's settings; by default xscl.toml in this directory or one above it.",
)
@click.option(
    "--broker",
    metavar="URL",
    envvar="XSCL_BROKER",
    help="A running broker, for the verbs that need one; by default the one of the settings.",
)
@click.option(
    "--context",
    "context",
    metavar="NAME",
    envvar="XSCL_CONTEXT",
    help="A broker that `xscl context add` has named.",
)
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="XSCL_TOKEN",
    help="A token for that broker; other users of this machine can see it, XSCL_TOKEN they cannot.",
)
@click.version_option(package_name="xscl-broker", prog_name="xscl")
def main(config: str | None, broker: str | None, context: str | None, token: str | None) -> None:
    """Standing queries over feeds and XML streams.

    \b
    Exit codes:
      0   done
      1   what was asked could not be done, or a check found errors
      2   the command line is wrong
      3   no broker answers
      4   a replay was done, and a query paused in it
      78  the settings are wrong

    \b
    Example:
      xscl init && xscl run
    """
    # Verbs ask for these where they need them: broker.cli.connection has the order.
