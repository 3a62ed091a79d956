"""What is asked of every sink."""

from __future__ import annotations

import errno
import os
import ssl
from typing import Protocol

from broker.delivery.attempt import Attempt, OutcomeKind

__all__ = ["Sink", "SinkError", "unreachable"]


class SinkError(Exception):
    """Matches could not be written; the text says whose fault it is, and what would help.

    `kind` is what follows.  With `keeps` the connection is as good as before.
    """

    def __init__(
        self, detail: str, kind: OutcomeKind = OutcomeKind.FAILED, *, keeps: bool = False
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.keeps = keeps


def unreachable(host: str, error: OSError) -> SinkError:
    """Return that a host cannot be reached, and why in the system's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        detail = f"the certificate of {host} does not hold: {error.verify_message}"
        return SinkError(detail, OutcomeKind.THROTTLED)
    is_known = not isinstance(error, ssl.SSLError) and error.errno in errno.errorcode
    reason = os.strerror(error.errno or 0) if is_known else error.strerror or error
    return SinkError(f"{host} cannot be reached: {reason}", OutcomeKind.THROTTLED)


class Sink(Protocol):
    """A connection to one destination, used by one attempt at a time."""

    @property
    def is_open(self) -> bool:
        """Whether the connection still stands, as far as is known without a word to the server."""
        ...

    async def write(self, attempt: Attempt) -> None:
        """Write all matches of an attempt, in order; raise `SinkError` where that fails.

        A sample of a table is tried, and taken back.
        """
        ...

    async def close(self) -> None:
        """Give the connection back."""
        ...
