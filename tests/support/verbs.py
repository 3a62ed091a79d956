"""Verbs of `xscl`, called as at a shell and run in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from broker.cli import main

__all__ = ["xscl"]


def xscl(*arguments: object, given: str | bytes | None = None, **environment: str) -> Result:
    """Run a verb; `given` is its standard input."""
    words = [str(each) for each in arguments]
    return CliRunner().invoke(main, words, input=given, env={"NO_COLOR": "1", **environment})
