"""What is remembered of a feed between two checks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from feeds.fetcher import Validators

__all__ = ["STEERING", "FeedState", "parse_state", "render_state"]

STEERING: dict[str, dict[str, object]] = {
    "pause": {"paused": True},
    "resume": {"paused": False, "gone": False},
    "refresh": {"next_check_us": 0, "why": "asked for by hand", "gone": False},
}
"""What people may ask of a feed, and the fields of its state that this sets."""


@dataclass(frozen=True, slots=True)
class FeedState:
    """All that the schedule, the identity policy and the health of one feed go by.

    Times are microseconds since 1970, 0 means never.  `why` says why `next_check_us` is then.
    """

    etag: str | None = None
    last_modified: str | None = None
    body_hash: str = ""
    moved_to: str = ""
    """Where checks go instead of the feed's URL, after days of agreement; else ""."""
    moving_to: str = ""
    moving_since_us: int = 0
    moving_checks: int = 0

    checks: int = 0
    last_check_us: int = 0
    last_success_us: int = 0
    last_new_us: int = 0
    next_check_us: int = 0
    why: str = "never checked"
    paused: bool = False
    gone: bool = False

    failures: int = 0
    failing_since_us: int = 0
    fault: str = ""
    error: str = ""

    format: str = ""
    title: str = ""
    step: str = ""
    warnings: tuple[str, ...] = ()
    identity: str = ""
    items: int = 0
    revisions: int = 0
    breaks: int = 0
    """Checks in which no entry of the check before was there any more."""
    missed: int = 0
    """How many entries came and went between such checks, as far as one can tell."""
    first_item_us: int = 0
    gap_s: float = 0.0
    """How far apart the feed's entries typically are; 0 is unknown."""
    span_s: float = 0.0
    """How much time the entries of one feed document cover; 0 is unknown."""
    newest_us: int = 0
    ttl_s: float = 0.0
    skip_hours: tuple[int, ...] = ()
    skip_days: tuple[int, ...] = ()
    hub: str = ""
    topic: str = ""

    @property
    def validators(self) -> Validators:
        """What the next conditional GET sends back."""
        return Validators(self.etag, self.last_modified)

    @property
    def is_backlog_read(self) -> bool:
        """Whether the first fetch is over, so that what is unseen now is new."""
        return self.last_success_us > 0


_DEFAULTS = FeedState()


def render_state(state: FeedState) -> dict[str, Any]:
    """Return the fields that differ from a fresh state, as JSON values."""
    values = {field.name: getattr(state, field.name) for field in fields(FeedState)}
    return {name: value for name, value in values.items() if value != getattr(_DEFAULTS, name)}


def parse_state(values: dict[str, Any]) -> FeedState:
    """Return the state that `render_state` gave; fields of other versions are left out."""
    known = {field.name for field in fields(FeedState)}
    fitting: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if name in known
    }
    return FeedState(**fitting)
