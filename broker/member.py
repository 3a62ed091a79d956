"""A registered query as a member of a set: what has been compiled for it, and who uses that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from broker.clauses import Alternative
from broker.fanout import Use
from broker.registration import RegisteredQuery
from xscl.path import Parameter
from xscl.query import INFINITE_US, Query

__all__ = ["Member", "reach_of"]


@dataclass(slots=True)
class Member:
    """A registered query, compiled: once if `prepared`, else once for each assignment.

    `uses` and `compiled` are by the name of an assignment.
    """

    query: Query
    registration_point: int
    revision: int
    paused_through: int
    prepared: list[Alternative] | None = None
    alternatives: list[Alternative] = field(default_factory=list)
    uses: dict[str, list[Use]] = field(default_factory=dict)
    compiled: dict[str, list[Alternative]] = field(default_factory=dict)

    def hands_on(self) -> bool:
        """Return whether an operator of the query reads another one's tuples."""
        return any(len(alternative.clauses) > 1 for alternative in self.alternatives)

    def asking(self) -> Iterator[tuple[int, list[Alternative]]]:
        """Yield what is asked of evaluation, each with the point behind which it is needed."""
        if self.prepared is not None:
            yield self.registration_point, self.prepared
        for name, alternatives in self.compiled.items():
            points = (use.subscriber.registration_point for use in self.uses[name])
            yield min(points, default=self.registration_point), alternatives

    def is_same(self, registered: RegisteredQuery) -> bool:
        """Return whether a query is registered as before, its assignments aside."""
        return (
            self.query.version == registered.query.version
            and self.registration_point == registered.registration_point
        )

    def registered(self) -> RegisteredQuery:
        """Return what the member was made of."""
        subscribers = [uses[0].subscriber for uses in self.uses.values() if uses]
        return RegisteredQuery(
            self.query,
            self.registration_point,
            tuple(subscriber.parameters for subscriber in subscribers),
            tuple(subscriber.registration_point for subscriber in subscribers),
            self.revision,
            self.paused_through,
        )

    def reach_us(self) -> int:
        """Return how far matches reach back, the windows of assignments included."""
        fixed = max((a.root.reach_us for a in self.alternatives), default=0)
        if self.prepared is None:
            return fixed
        given = (
            use.window_us
            for uses in self.uses.values()
            for use in uses
            if isinstance(use.clause.window_us, Parameter)
        )
        return min(INFINITE_US, fixed + max(given, default=0))


def reach_of(use: Use) -> int:
    """Return how far the oldest document of a tuple may lie behind the tuple's end."""
    is_given = isinstance(use.clause.window_us, Parameter)
    return min(INFINITE_US, use.clause.reach_us + (use.window_us if is_given else 0))
