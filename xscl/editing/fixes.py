"""Edits that would mend a text: what a diagnostic asks whether it was meant."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xscl.diagnostics import Diagnostic
from xscl.path import Span

__all__ = ["Fix", "fixes"]

_MEANT = re.compile(r"did you mean `([^`]+)`\?")


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit, and how it is offered."""

    title: str
    span: Span
    text: str


def fixes(diagnostic: Diagnostic) -> list[Fix]:
    """Return the edits that a diagnostic proposes.

    >>> import xscl
    >>> [wrong] = xscl.check("S//a->who WHERE whom = 'x'")[1]
    >>> fixes(wrong)
    [Fix(title='Change to `who`', span=Span(start=16, end=20), text='who')]
    """
    found = _MEANT.search(diagnostic.hint or "")
    if found is None:
        return []
    return [Fix(f"Change to `{found[1]}`", diagnostic.span, found[1])]
