"""What can go wrong with a feed, in words that its publisher or its subscriber can act on."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Fault", "FeedError"]


class Fault(StrEnum):
    """Why a check of a feed failed.  The schedule treats each kind by its own rule."""

    GONE = "gone"
    NOT_FOUND = "not found"
    REFUSED = "refused"
    RATE_LIMITED = "rate limited"
    SERVER = "server error"
    STATUS = "unexpected status"
    TIMEOUT = "timeout"
    NAME = "unknown host"
    CONNECTION = "connection failed"
    TLS = "certificate"
    BLOCKED = "private address"
    REDIRECT = "redirect"
    TOO_LARGE = "too large"
    ENCODING = "broken encoding"
    ROBOTS = "robots.txt"
    NOT_A_FEED = "not a feed"
    MALFORMED = "malformed"
    URL = "unusable address"


class FeedError(Exception):
    """A feed could not be read.  Returned as a value by `fetch` and `parse`, seldom raised.

    `retry_after_s` is the publisher's own wish (Retry-After, X-RateLimit-Reset), else None.
    """

    def __init__(
        self,
        fault: Fault,
        url: str,
        detail: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(fault, url, detail)
        self.fault = fault
        self.url = url
        self.detail = detail
        self.status = status
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"{self.fault}: {self.detail}"
