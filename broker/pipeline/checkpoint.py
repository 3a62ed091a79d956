"""What Spark's own checkpoint of the streaming query says; it decides nothing."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["is_ahead"]


def is_ahead(checkpoint: Path, through: int) -> bool:
    """Return whether Spark believes that segments behind `through` are done, or cannot say.

    >>> is_ahead(Path("/nowhere"), 0)
    False
    """
    if not checkpoint.exists():
        return False
    try:
        done = max(int(p.name) for p in (checkpoint / "commits").iterdir() if p.name.isdigit())
        lines = (checkpoint / "offsets" / str(done)).read_text().splitlines()
        return int(json.loads(lines[-1])["segment"]) > through
    except (OSError, ValueError, LookupError, TypeError):  # half of it is written
        return True
