"""From the tuples of query classes to the queries that share the classes.

The join finds tuples of classes.  A tuple is one of a query's if it is in the query's box (its
data, window and registration point: `boxes`), and if the remaining residuals hold, which is tested
where it is counted (`collector`).  Boxes are looked up for all tuples of a table at once.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from itertools import product, starmap
from typing import Protocol

import numpy as np

from broker.matching.blockrows import BlocksByData, PlainClasses
from broker.matching.boxes.columns import GrowingColumn, Ints
from broker.matching.boxes.forms import Forms
from broker.matching.boxes.index import Box, BoxIndex
from broker.matching.boxes.points import Points
from broker.matching.clauseterms import TermTable
from broker.matching.hits import Hits
from broker.matching.limits import MatchingLimits
from broker.matching.outcomes.countedends import takes_all_ends
from broker.matching.usegroups import SEVERAL, FoundUses, UseGroup, group_key, keys_without
from broker.matching.uses import UNNUMBERED, Use
from templates.clause import Clause
from templates.handedontexts import reads_handed_on_text

__all__ = ["FanOut", "UseListener"]

FOLLOWS, GROUPED = -1, -2
"""The numbers of a use whose hits are those of another, and of one that is looked up by a group."""

UNKNOWN = -1
"""Stands for the number of the terms of a use that has had no tuple."""


class UseListener(Protocol):
    """Who is told of uses, which are whole then."""

    def came(self, uses: Sequence[Use]) -> None:
        """Hear of uses that have come."""

    def went(self, uses: Sequence[Use]) -> None:
        """Hear of uses that are to go."""


class _NumberedUses:
    """The uses of a class that have numbers; where statements differ there is one."""

    __slots__ = ("_count", "_uses")

    def __init__(self) -> None:
        self._uses: list[Use] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Use]:
        return (use for use in self._uses if use.number != UNNUMBERED)

    def add(self, uses: Sequence[Use], numbers: Sequence[int]) -> None:
        """Give uses their numbers, or uses that are there others."""
        for use, number in zip(uses, numbers, strict=True):
            if use.number == UNNUMBERED:
                self._uses.append(use)
                self._count += 1
            use.number = number

    def pop(self, use: Use) -> int:
        """Take a use away for good; return its number."""
        number, use.number = use.number, UNNUMBERED
        self._count -= 1
        if len(self._uses) > 2 * self._count:
            self._uses = [*self]
        return number


class FanOut:
    """All uses of classes, by their boxes, of which so many are listed, or wait, at a time.

    `changes` grows with each use that comes or goes; `plain` are classes that need no look, and
    `by_data` such as may have many rows.
    Who listens is told of each.
    """

    def __init__(self, limits: MatchingLimits) -> None:
        self._boxes_max = limits.boxes
        self._waiting_max = limits.waiting_boxes
        self._index = BoxIndex(limits.boxes, limits.waiting_boxes)
        self._forms = Forms()
        self._uses: list[Use | UseGroup | None] = []
        self._by_class: dict[int, _NumberedUses] = {}
        # Of a million strings each has its group: one use alone is no group before it is hit.
        self._groups: dict[str, dict[Hashable, Use | UseGroup]] = {}
        self._changed: dict[UseGroup, None] = {}
        self._clauses: dict[Clause, int] = defaultdict(int)
        # Of how many of them conditions are asked of texts of documents behind tuples.
        self._texts_read = 0
        self.plain = PlainClasses()
        self.by_data = BlocksByData()
        self.changes = 0
        self._listener: Callable[[], UseListener | None] = lambda: None
        self._of_ends: tuple[int, dict[int, list[Use]]] = 0, {}
        self._alike: dict[tuple[Clause, str, Box], list[Use]] = {}
        # Of the clauses that have had a tuple.
        self._terms = TermTable()
        self._terms_of = _no_terms()
        # The number of the query that alone has the hits of a use, as is known behind its first.
        self._owners = GrowingColumn(np.int64, SEVERAL)

    def tell(self, listener: UseListener) -> None:
        """Have somebody told of uses from now on, for as long as others hold it."""
        self._listener = weakref.ref(listener)

    def add(self, uses: Sequence[Use]) -> None:
        """Add uses of one clause; of those of one source only the first is asked."""
        if (listener := self._listener()) is not None:
            listener.came(uses)
        self.by_data.add(uses)
        clause = uses[0].clause
        if not clause.stream and not uses[0].topic.source:  # the others have none, either
            self._add_alone(uses)
            return
        alone: list[Use] = []
        for use in uses:
            if clause.stream and (key := group_key(use)) is not None:
                groups = self._groups.setdefault(clause.stream, {})
                if clause.is_common and key not in groups:
                    groups[key] = use
                else:
                    # It may be that of a use which is not looked up yet.
                    self._add_alone(alone)
                    alone = []
                    self.plain.add(use, self._add_to_group(use, key, groups))
                    self._note([use], [GROUPED])
                    continue
            elif use.topic.source:
                alike = self._alike.setdefault(self._source(use), [])
                alike.append(use)
                if len(alike) > 1:
                    self.plain.add(use, None)
                    self._note([use], [FOLLOWS])
                    continue
            alone.append(use)
        self._add_alone(alone)

    def _add_alone(self, uses: Sequence[Use]) -> None:
        """Add uses of one clause that are each looked up."""
        for start in range(0, len(uses), self._waiting_max):
            some = uses[start : start + self._waiting_max]
            self.plain.add(some[0], None, len(some))
            self._note(some, self._look_up(some))

    def _source(self, use: Use) -> tuple[Clause, str, Box]:
        return use.clause, use.topic.source, use.asked

    def _note(self, uses: Sequence[Use], numbers: Sequence[int]) -> None:
        """Take uses of one clause under their numbers."""
        query_class, clause = uses[0].query_class, uses[0].clause
        of_class = self._by_class.get(query_class)
        if of_class is None:
            of_class = self._by_class[query_class] = _NumberedUses()
        of_class.add(uses, numbers)
        if not self._clauses[clause]:
            self._texts_read += reads_handed_on_text(clause)
        self._clauses[clause] += len(uses)
        self.changes += 1

    def _look_up(self, uses: Sequence[Use]) -> Sequence[int]:
        """Have uses of one clause looked up by their boxes; return their numbers."""
        return self._enter(uses[0], [use.asked for use in uses], uses)

    def _enter(
        self, use: Use, boxes: Sequence[Box], found: Sequence[Use | UseGroup]
    ) -> Sequence[int]:
        """Have some found by boxes of a use's clause, each by one; return their numbers."""
        form, are_spared = self._forms.add(use.query_class, use.clause, boxes)
        numbers = self._index.add(form, boxes, are_spared=are_spared)
        known = self._uses
        for number, each in zip(numbers, found, strict=True):
            if number < len(known):
                known[number] = each
            else:  # numbers that have not been given before are the next ones
                known.append(each)
        return numbers

    def _leave(self, numbers: Sequence[int], uses: Sequence[Use]) -> None:
        """Undo one `_look_up` for each of some uses of one clause."""
        for number in numbers:
            self._uses[number] = None
        self._terms_of.write(np.array(numbers), UNKNOWN)
        self._index.remove(numbers)
        query_class, clause = uses[0].query_class, uses[0].clause
        self._forms.remove(query_class, clause, len(uses), lambda: [each.asked for each in uses])

    def _add_to_group(
        self, use: Use, key: Hashable, groups: dict[Hashable, Use | UseGroup]
    ) -> UseGroup:
        found = groups.get(key)
        if found is None:
            group = groups[key] = UseGroup(use.clause, key)
        else:
            group = found if isinstance(found, UseGroup) else self._grouped(found)
        group.add(use)
        self._changed[group] = None
        if len(self._changed) >= self._waiting_max:
            self._settle()
        return group

    def _grouped(self, use: Use) -> UseGroup:
        """Have a use that stands alone be a group, which is looked up as the use was."""
        key = group_key(use)
        group = self._groups[use.clause.stream][key] = UseGroup(use.clause, key)
        group.add(use)
        of_class = self._by_class[use.query_class]
        group.number, group.entered = use.number, use
        of_class.add([use], [GROUPED])
        self._uses[group.number] = group
        return group

    def _remove_from_group(self, use: Use) -> None:
        group = self._groups[use.clause.stream][group_key(use)]
        assert isinstance(group, UseGroup)
        self.plain.remove(use, group)
        group.remove(use)
        self._changed[group] = None
        if not len(group):
            self._forget_group(group.stream, group.key)

    def _forget_group(self, stream: str, key: Hashable) -> None:
        groups = self._groups[stream]
        del groups[key]
        if not groups:
            del self._groups[stream]

    def _settle(self) -> None:
        """Have the groups that have changed looked up by the uses that they have now."""
        changed, self._changed = self._changed, {}
        for group in changed:
            number, before = group.number, group.entered
            if len(group):
                group.entered = first = group.first
                [group.number] = self._enter(first, [group.box], [group])
            if before is not None:
                self._leave([number], [before])

    def groups_of(
        self, stream: str, strings: Sequence[str | None], texts: Sequence[str | None]
    ) -> Iterator[UseGroup]:
        """Yield the groups of a common stream that ask for some strings, and for words in texts.

        Behind the texts in which words are sought stand those that must have none of some.
        """
        self._settle()
        groups = self._groups.get(stream, {})
        if not groups:
            return
        first = next(iter(groups.values()))
        use = first.first if isinstance(first, UseGroup) else first
        sought = self._forms.sought(use.query_class, use.clause) if texts else ()
        words = [
            each.found(text) if text is not None else ()
            for each, text in zip(sought, texts, strict=True)
        ]
        wanted = self._forms.wanted(use.query_class, use.clause)
        asked = {(*strings, *found) for found in product(*words[:wanted])}
        unwanted = words[wanted:]
        for key in keys_without(groups, asked, unwanted) if unwanted else asked:
            group = groups.get(key)
            if group is not None:
                yield group if isinstance(group, UseGroup) else self._grouped(group)

    def remove(self, uses: Sequence[Use]) -> None:
        """Undo one `add` for each of some uses."""
        alone: dict[tuple[int, Clause], list[Use]] = {}
        if (listener := self._listener()) is not None:
            listener.went(uses)
        self.by_data.remove(uses)
        for use in uses:
            if use.topic.source or use.number == GROUPED:
                self._remove(use)
                continue
            if use.clause.is_common:
                self._forget_group(use.clause.stream, group_key(use))
            alone.setdefault((use.query_class, use.clause), []).append(use)
        for (query_class, clause), own in alone.items():
            self._leave(self._forget(query_class, own), own)
            self._uncount(clause, len(own))

    def _forget(self, query_class: int, uses: Sequence[Use]) -> list[int]:
        """Forget uses of a class, one or some that were looked up alone; return their numbers."""
        of_class = self._by_class[query_class]
        numbers = [*map(of_class.pop, uses)]
        for use, number in zip(uses[:1], numbers, strict=False):
            if number != GROUPED:
                self.plain.remove(use, None, len(uses))
        if not of_class:
            del self._by_class[query_class]
        return numbers

    def _uncount(self, clause: Clause, count: int) -> None:
        self.changes += 1
        self._clauses[clause] -= count
        if not self._clauses[clause]:
            del self._clauses[clause]
            self._texts_read -= reads_handed_on_text(clause)
            self._terms.forget(clause)
            if self._terms.is_worn:
                self._terms, self._terms_of = TermTable(), _no_terms()

    def _remove(self, use: Use) -> None:
        """Remove a use of a group, or of a source."""
        [number] = self._forget(use.query_class, [use])
        if number == GROUPED:
            self._remove_from_group(use)
        elif number != FOLLOWS:
            self._leave([number], [use])
        alike = self._alike.get(self._source(use), []) if use.topic.source else []
        if use in alike:
            alike.remove(use)
            if alike and number != FOLLOWS:
                # The next one is asked from now on.
                self._clauses[use.clause] -= 2
                self._note(alike[:1], self._look_up(alike[:1]))
                return
            if not alike:
                del self._alike[self._source(use)]
        self._uncount(use.clause, 1)

    def classes(self) -> Set[int]:
        """Return the numbers of the classes in use."""
        return self._by_class.keys()

    @property
    def clauses(self) -> int:
        """How many different clauses the uses have."""
        return len(self._clauses)

    def reads_texts(self) -> bool:
        """Return whether somebody asks of texts that stay with the documents behind tuples."""
        return self._texts_read > 0

    def __len__(self) -> int:
        return sum(map(len, self._by_class.values()))

    def uses(self) -> Iterator[Use]:
        """Yield all uses."""
        for uses in self._by_class.values():
            yield from uses

    def uses_of(self, query_class: int) -> Iterator[Use]:
        """Yield the uses of one class."""
        yield from self._by_class.get(query_class, ())

    def uses_of_ends(self, query_class: int) -> Sequence[Use]:
        """Return who is asked for the counted runs of a class; none where they ask for more."""
        changes, of_class = self._of_ends
        if changes != self.changes:
            self._of_ends = self.changes, of_class = self.changes, {}
        found = of_class.get(query_class)
        if found is None:
            uses = [*self.uses_of(query_class)]
            found = [use for use in uses if use.number != FOLLOWS]
            if not all(map(takes_all_ends, uses)):
                found = []
            of_class[query_class] = found
        return found

    def settle(self) -> None:
        """Have what waits looked up by now; else the first tuple waits for it."""
        self._settle()
        self._index.settle()

    def expand(self, points: Points) -> Iterator[Hits]:
        """Yield each tuple with every use whose box has it, as far as hashes tell.

        The uses of a group are one.  Residuals are not tested.
        """
        self._settle()
        asks = self._forms.asks(points)
        found: list[tuple[Ints, Ints]] = []
        size = 0
        for which, numbers in self._index.find(asks):
            found.append((asks.rows[which], numbers))
            size += len(which)
            if size >= self._boxes_max:
                yield self._hits(points, found)
                found, size = [], 0
        if found:
            yield self._hits(points, found)

    def counts(self, points: Points) -> Ints:
        """Return how many boxes have each tuple, as far as hashes tell."""
        self._settle()
        asks = self._forms.asks(points)
        counts = np.zeros(len(points), np.int64)
        for which, _ in self._index.find(asks):
            counts += np.bincount(asks.rows[which], minlength=len(points))
        return counts

    def _hits(self, points: Points, found: list[tuple[Ints, Ints]]) -> Hits:
        rows, numbers = (np.concatenate(each) for each in zip(*found, strict=True))
        distinct, which = np.unique(numbers, return_inverse=True)
        new = distinct[self._terms_of[distinct] == UNKNOWN]
        if len(new):
            self._write(new)
        uses = FoundUses(self._uses, distinct)
        terms, owners = (of[distinct].astype(np.int64) for of in (self._terms_of, self._owners))
        return Hits(points, rows, uses, owners, self._terms, terms, which).with_texts()

    def _write(self, numbers: Ints) -> None:
        """Write the columns of uses that have their first tuple."""
        owners = np.full(len(numbers), SEVERAL)
        for i, number in enumerate(numbers.tolist()):
            use = self._uses[number]
            if isinstance(use, Use) and use.clause.is_common:
                use = self._grouped(use)
            if isinstance(use, UseGroup) and (only := use.only) is not None:
                owners[i] = only.holder
        self._owners.write(numbers, owners)
        read = ((use.topic.query, use.clause) for use in FoundUses(self._uses, numbers))
        self._terms_of.write(numbers, list(starmap(self._terms.number, read)))


def _no_terms() -> GrowingColumn:
    return GrowingColumn(np.int32, UNKNOWN)
