"""What a feed has lost: entries that came and went between two checks.

A feed shows its last entries.  Where no entry that a check finds was there before, the feed
has gone on by more than it shows, and what stood in between was never seen.  How many those were is
told by the time between the newest entry before and the oldest one now, and by how far apart the
feed's entries typically are.
"""

from __future__ import annotations

from feeds.reading import FeedReading
from feeds.state import FeedState

__all__ = ["missing", "share_lost"]


def missing(state: FeedState, reading: FeedReading) -> tuple[bool, int]:
    """Return whether a check has no entry with those before in common, and what it has missed.

    `state` is what the checks before have left.  Where times are not known none are counted.
    """
    found, fresh = reading.found.items, reading.news
    has_before = state.is_backlog_read and state.newest_us > 0
    if not found or not has_before or len(fresh.new) < len(fresh.memory):
        return False, 0
    times = [item.event_time_us for item in found if item.event_time_us is not None]
    if not times or state.gap_s <= 0:
        return True, 0
    between_s = (min(times) - state.newest_us) / 1e6
    return True, max(0, round(between_s / state.gap_s) - 1)


def share_lost(state: FeedState) -> float:
    """Return the share of a feed's entries that were missed: what LOSS says of a query's block."""
    return round(state.missed / (state.items + state.missed), 4) if state.missed else 0.0
