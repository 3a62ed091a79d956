"""The language: XSCL text to queries in value-join normal form, and back.

    >>> import xscl
    >>> [query] = xscl.parse("S//item[author = 'Ann']")
    >>> query.blocks[0].stream
    'S'

A text is read into syntax (`parser`), checked and brought into normal form (`reader`), and written
back (`layout`).

Invariants: a text in canonical form is written as it stands, and means what it meant; an error in a
text is a diagnostic with its place and never an exception of another kind.

Begin with `reader`.

Everything is imported at first use: the reader, the functions that run in Spark workers and
the output builder (which needs lxml and elementpath) do not drag each other in.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xscl.diagnostics import Diagnostic, Severity, XsclError, render_diagnostics
    from xscl.files import load
    from xscl.layout import render
    from xscl.parameters import assignment
    from xscl.query import Query
    from xscl.reader import check, parse

__all__ = [
    "Diagnostic",
    "Query",
    "Severity",
    "XsclError",
    "assignment",
    "check",
    "load",
    "parse",
    "render",
    "render_diagnostics",
]

_HOMES = {
    "Diagnostic": "xscl.diagnostics",
    "Query": "xscl.query",
    "Severity": "xscl.diagnostics",
    "XsclError": "xscl.diagnostics",
    "assignment": "xscl.parameters",
    "check": "xscl.reader",
    "load": "xscl.files",
    "parse": "xscl.reader",
    "render": "xscl.layout",
    "render_diagnostics": "xscl.diagnostics",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value
