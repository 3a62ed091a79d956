"""How a feed is doing, as a value that the command line, the API and the metrics show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from feeds.missing import share_lost
from feeds.state import FeedState
from feeds.store import FeedStore, Subscribed
from feeds.websub import Lease, parse_lease

__all__ = [
    "FeedHealth",
    "Status",
    "figures",
    "health",
    "healths",
    "in_words",
    "render_health",
    "render_time",
]

Status = Literal["waiting", "ok", "failing", "gone", "paused", "quiet"]
QUIET_FACTOR = 20
"""A feed whose newest entry is older than this many usual distances may have died in silence."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class FeedHealth:
    """One feed: what it is, how it does, and when it is looked at again.

    `status` is "waiting" (never checked), "ok", "failing" (the last check failed), "gone" (never
    asked again), "paused", or "quiet" (reads well, but nothing new for unusually long).
    `breaks`, `missed` and `loss` say what came and went between two checks (`feeds.missing`).
    """

    url: str
    stream: str
    title: str
    status: Status
    last_check_us: int
    last_success_us: int
    next_check_us: int
    why: str
    error: str
    failures: int
    items: int
    revisions: int
    breaks: int
    missed: int
    loss: float
    items_per_day: float
    newest_us: int
    format: str
    step: str
    identity: str
    warnings: tuple[str, ...]
    moved_to: str
    push: str


def health(subscribed: Subscribed, now_us: int, lease: Lease | None = None) -> FeedHealth:
    """Return the health of a feed; `lease` is what is agreed with its hub, if any."""
    feed, state = subscribed.feed, subscribed.state
    is_asked = not state.paused and not state.gone
    return FeedHealth(
        url=feed.url,
        stream=feed.stream,
        title=feed.options.title or state.title,
        status=_status(state, now_us),
        last_check_us=state.last_check_us,
        last_success_us=state.last_success_us,
        next_check_us=state.next_check_us if is_asked else 0,
        why=state.why if is_asked else "it is not asked",
        error=state.error,
        failures=state.failures,
        items=state.items,
        revisions=state.revisions,
        breaks=state.breaks,
        missed=state.missed,
        loss=share_lost(state),
        items_per_day=_items_per_day(state, now_us),
        newest_us=state.newest_us,
        format=state.format,
        step=state.step,
        identity=state.identity,
        warnings=state.warnings,
        moved_to=state.moved_to,
        push=_push(state, lease, now_us),
    )


def _status(state: FeedState, now_us: int) -> Status:
    if state.paused:
        return "paused"
    if state.gone:
        return "gone"
    if state.failures:
        return "failing"
    if not state.last_success_us:
        return "waiting"
    silence_s = (now_us - state.newest_us) / 1e6
    is_quiet = state.gap_s > 0 and silence_s > max(QUIET_FACTOR * state.gap_s, 7 * 86_400)
    return "quiet" if is_quiet else "ok"


def _items_per_day(state: FeedState, now_us: int) -> float:
    """By the distance of the entries in the feed; by what was taken in where that is unknown."""
    if state.gap_s > 0:
        return round(86_400 / state.gap_s, 2)
    days = (now_us - state.first_item_us) / _DAY_US if state.first_item_us else 0.0
    return round(state.items / days, 2) if days >= 1 else 0.0


def _push(state: FeedState, lease: Lease | None, now_us: int) -> str:
    if lease is None:
        return f"the feed names a hub, {state.hub}" if state.hub else ""
    words = f"{lease.state} at {lease.hub}"
    if lease.last_push_us:
        words += f", last push {in_words(lease.last_push_us, now_us)}"
    if lease.misses:
        words += f", {lease.misses} checks found what it had not pushed"
    return f"{words}: {lease.error}" if lease.error else words


def healths(store: FeedStore, now_us: int) -> list[FeedHealth]:
    """Return the health of every feed in the store, by URL."""
    leases = {url: parse_lease(text) for url, text in store.leases().items()}
    return [health(each, now_us, leases.get(each.feed.url)) for each in store.all()]


def figures(found: Sequence[FeedHealth]) -> dict[str, float]:
    """Return what metrics show of all feeds: how many in each status, and what they brought."""
    counts = Counter(each.status for each in found)
    return {
        **{f"feeds_{status}": float(counts[status]) for status in get_args(Status)},
        "feed_items_total": float(sum(each.items for each in found)),
        "feed_revisions_total": float(sum(each.revisions for each in found)),
    }


def render_health(found: FeedHealth) -> dict[str, Any]:
    """Return the health as JSON values: times in ISO 8601 or None, names without `_us`."""
    return {
        name.removesuffix("_us"): render_time(value) if name.endswith("_us") else value
        for name, value in asdict(found).items()
    }


def render_time(time_us: int) -> str | None:
    """Return a moment in ISO 8601, to the second; None for 0, which means never."""
    if not time_us:
        return None
    moment = _EPOCH + timedelta(seconds=time_us // 1_000_000)
    return moment.isoformat().replace("+00:00", "Z")


def in_words(time_us: int, now_us: int) -> str:
    """Return how far a moment is from now, for people.

    >>> in_words(0, 5), in_words(125_000_000, 5_000_000), in_words(1, 7_200_000_001)
    ('never', 'in 2 min', '2 h ago')
    """
    if not time_us:
        return "never"
    seconds = abs(time_us - now_us) / 1e6
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if seconds >= length:
            amount = f"{int(seconds // length)} {unit}"
            return f"in {amount}" if time_us > now_us else f"{amount} ago"
    return "now"
