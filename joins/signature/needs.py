"""The value joins that each class needs: a class holds only on pairs that have all of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import chain, takewhile
from operator import itemgetter

from joins.budget.probe import ValueJoin
from joins.classes import ClassRegistry
from templates.queryclass import QueryClass
from templates.template import Template

__all__ = ["Joins", "SlotNeeds"]

Joins = frozenset[ValueJoin]

_NEAR = 8
"""Classes that are looked at for each that may hold at most: a look takes 0.2 µs."""

_Need = tuple[int, Joins]
"""A class's number, and its value joins."""


class SlotNeeds:
    """The value joins of classes, by template, so that templates which cannot hold are not asked.

    Most signatures have few equal values, and most templates join several: so most statements are
    saved, each of which costs milliseconds.  A class stands under the least of its value joins;
    `joins` are those of all classes, and `joins_max` is how many a class has at most.
    """

    def __init__(self, registry: ClassRegistry) -> None:
        self.joins: set[ValueJoin] = set()
        self.joins_max = 0
        self._registry = registry
        self._under: dict[Template, dict[ValueJoin | None, list[_Need]]] = {}
        self._by_join: dict[ValueJoin | None, list[_Need]] = {}
        self._all: list[_Need] = []
        self._last = 0

    def follow(self) -> None:
        """Learn new classes; forget removed ones once they are half of all."""
        classes = self._registry.by_number
        if len(self._all) > 2 * len(classes):
            self.joins, self._under, self._last, self._all = set(), {}, 0, []
            self._by_join = {}
            self.joins_max = 0
        new = list(takewhile(self._last.__lt__, reversed(classes)))
        for number in reversed(new):
            query_class = classes[number]
            need = number, frozenset(query_class.value_pairs())
            self.joins |= need[1]
            self.joins_max = max(self.joins_max, len(query_class.template.value_joins))
            under = self._under.setdefault(query_class.template, {})
            least = min(need[1], default=None)
            under.setdefault(least, []).append(need)
            self._by_join.setdefault(least, []).append(need)
            self._all.append(need)
        self._last = self._registry.last_number

    @property
    def templates(self) -> Collection[Template]:
        """The templates of the classes."""
        return self._under.keys()

    def joins_after(self, since: int) -> Set[ValueJoin]:
        """Return the value joins of the classes after `since`."""
        if since == 0:
            return self.joins
        return {join for _, joins in _after(self._all, since) for join in joins}

    def may_hold(self, template: Template, since: int, equal: Collection[Joins]) -> bool:
        """Return whether a class after `since` has all value joins among some that are equal."""
        under = self._under.get(template, {})
        if _after(under.get(None, []), since):
            return True
        return any(
            joins <= each
            for each in equal
            for value_join in each & under.keys()
            for _, joins in _after(under[value_join], since)
        )

    def held(self, since: int, counts: Mapping[ValueJoin, int]) -> Iterator[tuple[int, list[int]]]:
        """Yield classes after `since` whose value joins are all equal, with their counts."""
        for number, joins in chain.from_iterable(self._near(since, counts.keys())):
            query_class = self._registry.by_number.get(number)
            if joins and joins <= counts.keys() and query_class is not None:
                yield number, [counts[each] for each in query_class.value_pairs()]

    def holding(
        self, since: int, equal: Set[ValueJoin], most: int
    ) -> list[tuple[int, QueryClass]] | None:
        """Return the classes after `since` that may hold where some value joins are equal.

        None where more than `most` may, or too many would have to be looked at.
        """
        near = self._near(since, equal)
        if sum(map(len, near)) > _NEAR * most:
            return None
        # A set is held against a set in half the time.
        classes, held = self._registry.by_number, set(equal)
        found = [
            (number, classes[number])
            for needs in near
            for number, joins in needs
            if joins <= held and number in classes
        ]
        return found if len(found) <= most else None

    def _near(self, since: int, equal: Set[ValueJoin]) -> list[Sequence[_Need]]:
        """Return the classes after `since` whose least value join is equal, or that have none.

        They stand in a list for each value join.
        """
        under = self._by_join
        return [_after(under[each], since) for each in (None, *equal) if each in under]


def _after(needs: Sequence[_Need], since: int) -> Sequence[_Need]:
    """Return the classes after `since`, of some in the order of their numbers."""
    if not needs or needs[0][0] > since:
        return needs
    return needs[bisect_right(needs, since, key=itemgetter(0)) :]
