"""`xscl wait`: until the broker is ready."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import urlopen

import click

from broker.cli.connection import settings_of, target
from broker.cli.terminal import EXIT_NO_BROKER, Failure, Seconds, message
from broker.settings.directory import is_in_use

__all__ = ["until_ready", "wait"]

_LOOK_EVERY_S = 0.2
_ANSWER_S = 5.0


@click.command()
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(0, 86_400),
    default="10 min",
    show_default=True,
    help="When to give up, with exit code 3.",
)
@click.pass_context
def wait(context: click.Context, timeout_s: float) -> None:
    """Wait until the broker takes and evaluates documents.

    A start takes some seconds, on a slow or busy machine minutes.  Ends with 1 at once where the
    broker of the settings at hand ends while it is waited for.

    \b
    Example:
      xscl run & xscl wait && xscl register same-story.xscl
    """

    def url() -> str:
        return target(context).url  # a port that is taken anew is known when it is

    def is_running() -> bool:
        return target(context).is_local and is_in_use(settings_of(context).data)

    until_ready(url, is_running, timeout_s)
    message(f"the broker at {url()} is ready")


def until_ready(url: Callable[[], str], is_running: Callable[[], bool], timeout_s: float) -> None:
    """Return when the broker at the URL is ready; end the verb where it ends or is too slow.

    `is_running` says whether its process is known to run.
    """
    deadline = time.monotonic() + timeout_s
    was_running, told = False, ""
    while (reason := _reason_to_wait(url())) is not None:
        runs = is_running()
        if was_running and not runs:
            raise Failure("the broker has ended", hint="its log says why")
        was_running = runs
        if time.monotonic() >= deadline:
            raise Failure(
                f"not ready after {timeout_s:g} s: {reason}",
                hint="look at the broker's log, or start one with `xscl run`",
                exit_code=EXIT_NO_BROKER,
            )
        if reason != told:
            message(f"waiting: {reason}")
        told = reason
        time.sleep(_LOOK_EVERY_S)


def _reason_to_wait(url: str) -> str | None:
    """Return why a broker is not ready, None where it is."""
    try:
        with urlopen(f"{url}/readyz", timeout=_ANSWER_S) as answer:
            return None if json.loads(answer.read()) == {"status": "ready"} else _stranger(url)
    except HTTPError as error:
        try:
            return str(json.loads(error.read())["detail"])
        except (ValueError, KeyError, TypeError, OSError):
            return _stranger(url)
    except ValueError:
        return _stranger(url)
    except (OSError, HTTPException):
        return f"no broker answers at {url} yet"


def _stranger(url: str) -> str:
    return f"what answers at {url} is no XSCL broker"
