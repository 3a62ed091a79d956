"""`xscl lsp`: the language server that editors start, and the broker that it asks.

An editor starts it in the folder that it has open, whoever wrote that.  So of the settings there a
broker is taken on this machine only: others are named by who starts it.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import click

from broker.cli.connection import Target, target
from broker.cli.terminal import Failure, message

__all__ = ["lsp"]

_ANSWER_S = 1.0
"""Who types waits for no broker that is busier than that."""

_PAUSE_S = 10.0
_HERE = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::")


@click.command()
@click.pass_context
def lsp(context: click.Context) -> None:
    """Serve editors in the Language Server Protocol, on standard input and output.

    Diagnostics, completion, what a word means, renaming of variables, going to where a stream is
    published, formatting. docs/editors.md says how editors start it. A broker that answers is asked
    how many of its recent documents have a name, and proposes these.

    \b
    Examples, what an editor starts for files *.xscl:
      xscl lsp
      xscl --context home lsp
    """
    if find_spec("pygls") is None:
        raise Failure("the language server needs pygls: pip install 'xscl-broker[lsp]'")
    from xscl.editing.server import server

    try:
        found = target(context)
    except Failure as failure:
        message(f"no broker is asked: {failure}")
        server(version("xscl-broker")).start_io()
    else:
        server(version("xscl-broker"), _Asked(found)).start_io()


class _Asked:
    """A broker, asked while it answers: after a failure not for some seconds.

    Its threads may ask at the same time.
    """

    def __init__(self, found: Target) -> None:
        is_elsewhere = urlsplit(found.url).hostname not in _HERE
        self._target = found
        self._asked_from = float("inf") if found.is_local and is_elsewhere else 0.0

    def __call__(self, what: str, text: str, place: int) -> Mapping[str, Any] | None:
        """Return the answer of `/v1/language/WHAT`, None where there is none in time."""
        if time.monotonic() < self._asked_from:
            return None
        url = f"{self._target.url}/v1/language/{what}?offset={place}"
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        request = Request(url, text.encode(), headers)
        if self._target.token is not None:
            request.add_unredirected_header("Authorization", f"Bearer {self._target.token}")
        try:
            with urlopen(request, timeout=_ANSWER_S) as answer:
                told: Mapping[str, Any] = json.load(answer)
                return told
        except (OSError, http.client.HTTPException, ValueError) as error:
            if not self._target.is_local:  # else there may be none, and need be none
                message(f"{self._target.url} is not asked for a while: {error}")
            self._asked_from = time.monotonic() + _PAUSE_S
            return None
