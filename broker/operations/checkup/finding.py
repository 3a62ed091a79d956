"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CheckupFinding"]


@dataclass(frozen=True, slots=True)
class CheckupFinding:
    """How something is, and what to do about it where it is not well."""

    subject: str
    state: str
    remedy: str | None = None
