"""Reasons as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from broker.whynot.reason import Reason

__all__ = ["render_reason"]


def render_reason(reason: Reason) -> str:
    """Return the tree of reasons, what holds marked `ok`, what does not marked `NO`."""
    lines = [reason.text]
    if reason.hint:
        lines.append(f"  {reason.hint}")
    for part in reason.parts:
        lines += [f"  {line}" for line in _lines(part)]
    return "\n".join(lines) + "\n"


def _lines(reason: Reason) -> Iterator[str]:
    yield f"{'ok' if reason.holds else 'NO'}  {_headed(reason)}"
    if reason.hint:
        yield f"      {reason.hint}"
    for part in reason.parts:
        for line in _lines(part):
            yield f"    {line}"


def _headed(reason: Reason) -> str:
    if reason.kind in ("order", "window", "lateness", "stream", "registration"):
        return f"{reason.kind}: {reason.text}"
    return reason.text
