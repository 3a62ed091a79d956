"""What evaluations of a chain have in common: which rows they read, and elements that wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from joins.budget.limits import RunLimits
from joins.memory.instance import Instance
from joins.sequences.runparts import Parts, Roles
from joins.sequences.waiting import SettlingParts
from templates.chaindecision import ChainDecision
from templates.decision import TupleStream
from templates.rundecision import ElementStream

__all__ = ["ChainElements"]


class ChainElements:
    """The elements of one chain as they come, by step; those that must be settled wait.

    `limit` is the document from which on its matches are too many.  `needs` are of each step the
    streams of which each match has a row, if rows may wait until all of these are there.
    """

    needs: Sequence[frozenset[str]] = ()

    def __init__(self, decision: ChainDecision, limits: RunLimits) -> None:
        self.decision = decision
        self.limit: int | None = None
        self._limits = limits
        self._swept = limits.swept_parts
        self._settling = SettlingParts(decision.grace_us)
        self._roles = Roles()
        self._parts = [self._parts_of(link.elements) for link in decision.links]

    def _parts_of(self, elements: Iterable[ElementStream]) -> Parts:
        """Return the operand that streams of elements are."""
        parts = Parts(of_elements=True)
        self._take(parts, elements)
        return parts

    def _take(self, parts: Parts, elements: Iterable[ElementStream]) -> None:
        for each in elements:
            self._roles.give(each.stream, parts)
            parts.takes_elements_of(each.stream)

    @property
    def waiting(self) -> int:
        """How many elements wait until they are settled."""
        return len(self._settling)

    @property
    def is_over(self) -> bool:
        """Whether a document makes too many runs."""
        return self.limit is not None

    @property
    def due_us(self) -> int | None:
        """The first time that must be settled before something that waits goes on."""
        return min(self._settling.due_us, default=None)

    @property
    def streams(self) -> set[str]:
        """The names of the streams that are read."""
        return self._roles.streams

    def _of_each_step(self) -> list[frozenset[str]]:
        """Return the streams of the elements of each step."""
        links = self.decision.links
        return [frozenset([each.stream.name for each in link.elements]) for link in links]

    def read(self, step: int, stream: TupleStream) -> None:
        """Have rows of a stream be rows of the elements of a step."""
        self._roles.give(stream, self._parts[step])

    def add(self, stream: str, row: Instance) -> None:
        """Take a row of a stream."""
        self._roles.add(stream, row)
