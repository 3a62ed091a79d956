"""Uses of classes: added to the join and to the fan-out, and counted by how far they reach back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from broker.matching.boxes.index import Box
from broker.matching.fanout import FanOut
from broker.matching.mrules import MRule, unshared
from broker.matching.queries.member import retention_of
from broker.matching.uses import Topic, Use
from joins import Durations
from templates.clause import Clause
from templates.queryclass import QueryClass

__all__ = ["ClassUses", "Classes"]


class Classes(Protocol):
    """Where classes come and go: the join, or an object that only counts them."""

    def add(
        self,
        query_class: QueryClass,
        window_us: int,
        point: int,
        least: Sequence[float],
        holder: int,
    ) -> int:
        """Add one use of a class, from a registration point on; return the class's number.

        `least` are the thresholds of its similarity joins, `holder` is as in `UseKind`.
        """

    def remove(
        self, number: int, window_us: int, point: int, least: Sequence[float], holder: int
    ) -> None:
        """Undo one `add`."""

    def retain(self, number: int, retention_us: int) -> None:
        """Keep the instances that can fill a class for longer than its window.

        Its tuples are joined again.
        """

    def release(self, number: int, retention_us: int) -> None:
        """Undo one `retain`."""


class ClassUses:
    """The uses that a set makes of classes; the m-rules of `without` are left out."""

    def __init__(self, classes: Classes, fan_out: FanOut, without: Collection[MRule]) -> None:
        self._classes = classes
        self._fan_out = fan_out
        self._without = without
        self._retentions = Durations()

    @property
    def retention_us(self) -> int:
        """The longest time between the newest document of a match and its oldest one."""
        return self._retentions.longest if self._retentions else 0

    def enter(
        self,
        member: int,
        clause: Clause,
        window_us: int,
        topic: Topic,
        kept_us: int,
        box: Box | None = None,
    ) -> Use:
        """Add a use of a class by a member of the set, which has a number."""
        use = Use(-1, clause, window_us, topic, kept_us, box, member)
        query_class = clause.query_class
        if self._without:
            query_class = unshared(query_class, use, self._without)
        holder = member if clause.reads_common else 0
        point = topic.registration_point
        number = self._classes.add(query_class, window_us, point, use.least, holder)
        if kept_us != window_us:
            self._classes.retain(number, kept_us)
        use.query_class = number
        self._fan_out.add(use)
        if box is None:
            self._retentions.add(retention_of(use))
        return use

    def leave(self, uses: Sequence[Use]) -> None:
        """Undo one `enter` for each of some uses."""
        self._fan_out.remove(uses)
        for use in uses:
            if use.box is None:
                self._retentions.remove(retention_of(use))
            if use.kept_us != use.window_us:
                self._classes.release(use.query_class, use.kept_us)
        alike: dict[tuple[Clause, int], list[Use]] = {}
        for use in uses:
            alike.setdefault((use.clause, use.holder), []).append(use)
        for own in alike.values():
            # Where a class reads and pairs alike for all, its uses differ in windows and points.
            holder = own[0].kind.holder
            for use in own:
                point = use.topic.registration_point
                self._classes.remove(use.query_class, use.window_us, point, use.least, holder)
