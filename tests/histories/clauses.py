"""The clauses of section 7 that stand in histories: who is registered when, and from where on.

A clause decides in a history of which the oracle finds other matches without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from histories.history import (
    Change,
    Event,
    History,
    Register,
    Subscribe,
    Unsubscribe,
    history_matches,
)

__all__ = ["HISTORY_CLAUSES", "HistoryClause", "decided"]


@dataclass(frozen=True, slots=True)
class HistoryClause:
    """A clause, and what takes the place of an event without it: another one, or none."""

    name: str
    without: Callable[[Event], Event | None]


def _never(*verbs: str) -> Callable[[Event], Event | None]:
    return lambda event: None if isinstance(event, Change) and event.verb in verbs else event


def _looks_back(
    kind: type[Register] | type[Subscribe], since: int | None
) -> Callable[[Event], Event]:
    """Return what has events of a kind look back to a point, or not at all."""

    def change(event: Event) -> Event:
        if not isinstance(event, kind) or (event.since is None) == (since is None):
            return event
        return replace(event, since=since)

    return change


HISTORY_CLAUSES = (
    HistoryClause("7 registration point", _looks_back(Register, 0)),
    HistoryClause("7 SINCE at registration", _looks_back(Register, None)),
    HistoryClause("7 a subscription's own point", _looks_back(Subscribe, 0)),
    HistoryClause("7 SINCE of a subscription", _looks_back(Subscribe, None)),
    HistoryClause("7 removing a query", _never("remove")),
    HistoryClause("7 pausing a query", _never("pause", "resume")),
    HistoryClause("7 resuming a query", _never("resume")),
    HistoryClause(
        "7 ending a subscription",
        lambda event: None if isinstance(event, Unsubscribe) else event,
    ),
)


def decided(
    history: History, matches: Sequence[str], clauses: Iterable[HistoryClause] = HISTORY_CLAUSES
) -> Counter[str]:
    """Return which clauses decide in a history in which the oracle finds these matches."""
    found: Counter[str] = Counter()
    for clause in clauses:
        events = [each for each in map(clause.without, history.events) if each is not None]
        if events != history.events:
            without = history_matches(replace(history, events=events))
            found[clause.name] += without != list(matches)
    return found
