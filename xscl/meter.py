"""How much the output of a match may still cost.

A cost is a number of bytes: those of the output, and for work that writes none as many as could be
written meanwhile.  It depends on the query and the documents alone, never on a clock.
"""

from __future__ import annotations

import sys

__all__ = ["STEP_BYTES", "ExhaustedError", "Meter", "size"]

STEP_BYTES = 100
"""What each item costs that an expression looks at, and each two that it compares: a microsecond or
two."""


class ExhaustedError(Exception):
    """More would be spent than a meter allows."""


class Meter:
    """Counts what is spent, up to a limit; once it is reached every attempt to spend fails."""

    def __init__(self, limit: int = sys.maxsize) -> None:
        self._limit = limit
        self.spent = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether more was to be spent than there was."""
        return self.spent > self._limit

    def allows(self, nbytes: int) -> bool:
        """Return whether so much can be spent."""
        return self.spent + nbytes <= self._limit

    def spend(self, nbytes: int) -> None:
        """Count a cost; raise `ExhaustedError` where it goes over the limit."""
        self.spent += nbytes
        if self.is_exhausted:
            raise ExhaustedError


def size(text: str) -> int:
    """Return the bytes of a text in UTF-8.

    >>> size("a"), size("ä")
    (1, 2)
    """
    return len(text) if text.isascii() else len(text.encode())
