"""Uses of classes: added to the join and to the fan-out, and counted by how far they reach back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import Protocol

from broker.matching.boxes.index import Box
from broker.matching.fanout import FanOut
from broker.matching.mrules import MRule, unshared
from broker.matching.queries.member import retention_of
from broker.matching.uses import Strings, Topic, Use, length_under
from joins import Durations
from templates.clause import Clause
from templates.queryclass import QueryClass
from xscl.query import SelectKind

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
        times: int,
    ) -> int:
        """Add so many uses of a class, from a registration point on; return the class's number.

        `least` are the thresholds of its similarity joins, `holder` is as in `UseKind`.
        """

    def remove(
        self,
        number: int,
        window_us: int,
        point: int,
        least: Sequence[float],
        holder: int,
        times: int,
    ) -> None:
        """Undo so many of what `add` did."""

    def give(
        self, number: int, window_us: int, point: int, said: Sequence[str], times: int
    ) -> None:
        """Have what is decided of a class be decided for a vector of data: so many uses ask."""

    def take_back(
        self, number: int, window_us: int, point: int, said: Sequence[str], times: int
    ) -> None:
        """Undo so many of what `give` did."""

    def retain(self, number: int, retention_us: int, times: int) -> None:
        """Keep the instances that can fill a class for longer than its window.

        Its tuples are joined again, and so many ask for that.
        """

    def release(self, number: int, retention_us: int, times: int) -> None:
        """Undo so many of what `retain` did."""


class ClassUses:
    """The uses that a set makes of classes; the m-rules of `without` are left out.

    Uses come by `enter` and wait, so that assignments which come together are counted together;
    behind them stands one `settle`.
    """

    def __init__(self, classes: Classes, fan_out: FanOut, without: Collection[MRule]) -> None:
        self._classes = classes
        self._fan_out = fan_out
        self._without = without
        self._retentions = Durations()
        # By member.  Of a million assignments one would have to be asked after the other.
        self._kept: dict[int, Durations] = {}
        self._lengths: dict[int, Durations] = {}
        self._entering: dict[Clause, list[Use]] = {}

    @property
    def retention_us(self) -> int:
        """The longest time between the newest document of a match and its oldest one."""
        self.settle()
        return self._retentions.longest if self._retentions else 0

    def kept_us(self, member: int) -> int:
        """Return for how long documents are kept that uses of a member join, or hold against."""
        self.settle()
        if member not in self._kept:
            return 0
        lengths = self._lengths.get(member)
        return self._kept[member].longest + (0 if lengths is None else lengths.longest)

    def enter(
        self,
        member: int,
        clause: Clause,
        window_us: int,
        topic: Topic,
        kept_us: int,
        box: Box | Strings | None = None,
    ) -> Use:
        """Return a use of a class by a member of the set, which has a number; it waits."""
        use = Use(-1, clause, window_us, topic, kept_us, box, member)
        entering = self._entering.get(clause)
        if entering is None:
            entering = self._entering[clause] = []
        entering.append(use)
        return use

    def settle(self) -> None:
        """Add the uses that wait to the join and to the fan-out."""
        if not self._entering:
            return
        entering, self._entering = self._entering, {}
        for clause, uses in entering.items():
            several = self._alike(uses)
            for alike in several:
                first, query_class = alike[0], clause.query_class
                if self._without:
                    query_class = unshared(query_class, first, self._without)
                number = self._classes.add(query_class, *_given(first), len(alike))
                if said := first.said:
                    self._classes.give(number, *first.kind[:2], said, len(alike))
                if first.kept_us != first.window_us:
                    self._classes.retain(number, first.kept_us, len(alike))
                for use in alike:
                    use.query_class = number
            for retention_us, times in _retentions(several):
                self._retentions.add(retention_us, times)
            for member, kept_us, times in _kept(several):
                _durations(self._kept, member).add(kept_us, times)
            for member, length_us, times in _lengths(uses):
                _durations(self._lengths, member).add(length_us, times)
            # Only where rules are left out, uses of one clause have several classes.
            for alike in _together(uses, _of_class) if self._without else (uses,):
                self._fan_out.add(alike)

    def leave(self, uses: Sequence[Use]) -> None:
        """Undo one `enter` for each of some uses."""
        self.settle()
        self._fan_out.remove(uses)
        by_clause: dict[Clause, list[Use]] = {}
        for use in uses:
            by_clause.setdefault(use.clause, []).append(use)
        for own in by_clause.values():
            several = self._alike(own)
            for retention_us, times in _retentions(several):
                self._retentions.remove(retention_us, times)
            for asked, given in ((self._kept, _kept(several)), (self._lengths, _lengths(own))):
                for member, time_us, times in given:
                    asked[member].remove(time_us, times)
                    if not asked[member]:
                        del asked[member]
            for alike in several:
                first = alike[0]
                number = first.query_class
                if first.kept_us != first.window_us:
                    self._classes.release(number, first.kept_us, len(alike))
                if said := first.said:
                    self._classes.take_back(number, *first.kind[:2], said, len(alike))
                self._classes.remove(number, *_given(first), len(alike))

    def _alike(self, uses: Sequence[Use]) -> Sequence[Sequence[Use]]:
        """Return uses of one clause in which the join sees no difference, as they stand."""
        if len(uses) > 1 and (self._without or uses[0].least):
            return [[use] for use in uses]
        return _together(uses, _in_the_join)


def _durations(by_member: dict[int, Durations], member: int) -> Durations:
    """Return the durations of a member, which has none at first."""
    found = by_member.get(member)
    if found is None:
        found = by_member[member] = Durations()
    return found


def _together(uses: Sequence[Use], key: Callable[[Use], object]) -> Sequence[Sequence[Use]]:
    """Return uses as they stand, those of one key together; mostly there is but one use."""
    return (uses,) if len(uses) == 1 else [[*alike] for _, alike in groupby(uses, key)]


_of_class = attrgetter("query_class")
_in_the_join = attrgetter("window_us", "kept_us", "topic.registration_point", "holder", "said")


def _given(use: Use) -> tuple[int, int, Sequence[float], int]:
    """Return what a use tells the join: its window and point, its thresholds and its holder."""
    holder = use.holder if use.clause.has_holders else 0
    return use.window_us, use.topic.registration_point, use.least, holder


def _kept(several: Sequence[Sequence[Use]]) -> Sequence[tuple[int, int, int]]:
    """Return members, for how long documents are kept for uses of one clause, and how many ask.

    The uses are those in which the join sees no difference, together.
    """
    if not several[0][0].is_join:
        return ()
    found = [(alike[0].holder, alike[0].kept_us, len(alike)) for alike in several]
    if several[0][0].topic.query.kind is not SelectKind.COMPRESSED:
        return found
    # A graph has matches that end as far behind another as that reaches back.
    return [(holder, 2 * kept_us, times) for holder, kept_us, times in found]


def _lengths(uses: Sequence[Use]) -> Sequence[tuple[int, int, int]]:
    """Return members, the lengths of the windows that rows are over, and how many ask.

    What inner operators hand on is for several assignments, which have values at the root.
    """
    rows = uses[0].topic.query.rows
    if rows is None or uses[0].clause.stream:
        return ()
    length = rows.length
    return [(use.holder, length_under(length, use.topic.parameters), 1) for use in uses]


def _retentions(several: Sequence[Sequence[Use]]) -> Iterable[tuple[int, int]]:
    """Return how far back matches of uses of one clause reach, and how many of them so far.

    The uses are as for `_kept`; what inner operators hand on is no match.
    """
    first = several[0][0]
    if first.box is not None:
        return ()
    if first.clause.reach.always is None or first.topic.has_outcome:
        return Counter(map(retention_of, chain.from_iterable(several))).items()
    return [(retention_of(alike[0]), len(alike)) for alike in several]
