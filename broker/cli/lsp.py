"""`xscl lsp`: the language server that editors start."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec

import click

from broker.cli.terminal import Failure

__all__ = ["lsp"]


@click.command()
def lsp() -> None:
    """Serve editors in the Language Server Protocol, on standard input and output.

    Diagnostics, completion, what a word means, renaming of variables, going to where a stream is
    published, formatting. docs/editors.md says how editors start it.

    \b
    Example, what an editor starts for files *.xscl:
      xscl lsp
    """
    if find_spec("pygls") is None:
        raise Failure("the language server needs pygls: pip install 'xscl-broker[lsp]'")
    from xscl.editing.server import server

    server(version("xscl-broker")).start_io()
