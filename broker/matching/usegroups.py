"""Whose the tuples of inner operators are: uses that differ in bounds at most, in columns.

A common stream has the tuples of all statements with one operator, whatever their windows, data and
registration points (`Clause.is_common`).  The uses that ask for the same strings and words, and for
texts without the same words, are a **group**: the fan-out knows it by one box, with the loosest of
each bound.  A tuple has one group for each choice of words in it, and is handed on if some use of
the group has it.  How many tuples each use has is counted for all uses at once: where one bound
tells them apart, by a look at sorted tuples.

Of another stream the uses of statements with the same box are a group, which has no bounds: they
have the same tuples.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import contains
from typing import Any

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.boxes.doublekeys import as_doubles, as_keys
from broker.matching.boxes.exclusions import differ, excluded_by, loosest_excluded
from broker.matching.boxes.form import BoundPlace
from broker.matching.boxes.index import Box
from broker.matching.uses import Use
from joins import UNBOUNDED
from templates.box import SPAN, Solution
from templates.clause import Clause
from xscl.pattern import INEQUALITIES
from xscl.texttests import NEGATED

__all__ = [
    "SEVERAL",
    "CommonUse",
    "FoundUses",
    "GroupColumns",
    "TestedPositions",
    "UseGroup",
    "group_key",
    "group_of",
    "keys_without",
]


SEVERAL = -1
"""The owner of a use that stands for no query alone."""

COMPARED = 4_000_000
"""Tuples times uses that are compared at a time where several bounds tell uses apart."""


def group_key(use: Use) -> Hashable | None:
    """Return what a use and others of its stream have in common that are a group; None of no group.

    A query with parameters may have several uses of a stream, and a load costs nobody's budget.
    """
    clause, query = use.clause, use.topic.query
    if clause.is_common:
        return use.told_apart_by
    if not clause.stream or query.parameters or query.table is not None:
        return None
    return use.query_class, use.asked


def keys_without(
    keys: Iterable[Any], asked: Set[tuple[str | None, ...]], words: Sequence[Collection[str]]
) -> list[Hashable]:
    """Return the keys that ask for something, and behind it for none of some words each."""
    count = len(words)
    return [
        key for key in keys if key[:-count] in asked and not any(map(contains, words, key[-count:]))
    ]


@dataclass(frozen=True, slots=True)
class TestedPositions:
    """Where an instance of a common stream has the values that boxes test.

    They are the strings in the order of `Box.equal`, the texts in which words are sought, those in
    which they must not be, its span, what is held against `Box.bounds`, with how (a solution of
    terms that are carried has none), and the values in the order of `Box.excluded`, with their
    kinds.
    """

    strings: tuple[int, ...]
    texts: tuple[int, ...]
    unwanted: tuple[int, ...]
    span: int
    numbers: tuple[int | Solution, ...]
    bounds: tuple[BoundPlace, ...]
    excluded: tuple[tuple[int, int], ...]
    carried: Mapping[str, int]

    @classmethod
    def of(cls, clause: Clause) -> TestedPositions:
        """Return the positions in the instances of a clause's stream."""
        first = 1 + len(clause.carried)
        at = {place: first + i for i, place in enumerate(clause.tested)}
        box = clause.box
        equal = [at[t.place] for t in box if t.operator == "=" and not t.is_of_several]
        texts = [at[test.place] for test in box if test.looks_in_texts]
        bounds = [test for test in box if test.operator in INEQUALITIES]
        places = [test.place for test in bounds]
        numbers = [
            each if isinstance(each, Solution) and not each.is_handed_on else at[each]
            for each in places
        ]
        how = map(BoundPlace.of, bounds)
        unwanted = [at[test.place] for test in box if test.operator.startswith(NEGATED)]
        excluded = [(at[t.place], t.excluded_kind) for t in box if t.excludes]
        carried = {name: i for i, name in enumerate(clause.carried, 1)}
        sought = tuple(equal), tuple(texts), tuple(unwanted), at[SPAN]
        return cls(*sought, tuple(numbers), tuple(how), tuple(excluded), carried)


@dataclass(frozen=True)
class GroupColumns:
    """The uses of a group: the number and the name of each one's query, its bounds and exclusions.

    A tuple is held against bounds by its span, its smallest docid, negated, and the keys of numbers
    (`doublekeys`): a use has it if none of them is above that of the use.  Behind these it has both
    hashes of each string that may be excluded: they are not those of the use.
    """

    holders: Ints
    queries: Sequence[str]
    bounds: Ints
    excluded: Ints

    @property
    def have_bounds(self) -> bool:
        """Whether uses may have different tuples."""
        return bool(self.width)

    @property
    def width(self) -> int:
        """How many columns of a tuple are held against a use."""
        return len(self.bounds.T) + len(self.excluded.T)

    @cached_property
    def of_query(self) -> Mapping[str, Sequence[int]]:
        """The uses of each query."""
        found: dict[str, list[int]] = {}
        for use, query in enumerate(self.queries):
            found.setdefault(query, []).append(use)
        return found

    def queries_of(self, uses: Flags) -> Sequence[str]:
        """Return the queries of some uses; of all of them it is `queries` itself."""
        if uses.all():
            return self.queries
        return [self.queries[i] for i in np.flatnonzero(uses).tolist()]

    def sums(self, tuples: Ints, weights: Ints) -> Ints:
        """Return, for each use, the sums of the weights of the tuples that it has.

        A tuple has a row of weights.
        """
        telling, excluding = self._telling(tuples), self._excluding(tuples)
        if not telling and not excluding:
            return np.broadcast_to(weights.sum(axis=0), (len(self.holders), weights.shape[1]))
        if len(telling) == 1 and not excluding:
            values = tuples[:, telling[0]]
            order = np.argsort(values, kind="stable")
            nothing = np.zeros((1, weights.shape[1]), np.int64)
            sums = np.concatenate([nothing, np.cumsum(weights[order], axis=0)])
            return sums[np.searchsorted(values[order], self.bounds[:, telling[0]], "right")]
        held = self._held(tuples, telling, excluding)
        return np.concatenate([each.astype(np.int64) @ weights for each in held])

    def some_have(self, tuples: Ints) -> Flags:
        """Return which of some tuples some use has."""
        telling, excluding = self._telling(tuples), self._excluding(tuples)
        if len(telling) < 2 and not excluding:
            return _all_within(tuples[:, : self.bounds.shape[1]], self.bounds.max(axis=0))
        found = np.zeros(len(tuples), np.bool_)
        for held in self._held(tuples, telling, excluding):
            found |= held.any(axis=0)
        return found

    def are_open(self, stopped: Mapping[str, int], tuples: Ints, docids: Ints) -> Flags:
        """Return which tuples somebody has who is not `stopped` before they stand."""
        if not stopped:
            return np.ones(len(docids), np.bool_)
        limits = np.array([stopped.get(query, UNBOUNDED) for query in self.queries], np.int64)
        are_open: Flags = docids <= limits.min()
        for limit in np.unique(limits).tolist() if not are_open.all() else ():
            are_open |= (docids <= limit) & self.take(limits == limit).some_have(tuples)
        return are_open

    def has(self, use: int, tuples: Ints) -> Flags:
        """Return which of some tuples a use has."""
        width = self.bounds.shape[1]
        found = _all_within(tuples[:, :width], self.bounds[use])
        return found & differ(tuples[:, width:], self.excluded[use])

    def take(self, some: Flags) -> GroupColumns:
        """Return some of the uses."""
        own = self.holders[some], self.queries_of(some), self.bounds[some]
        return GroupColumns(*own, self.excluded[some])

    def _telling(self, tuples: Ints) -> list[int]:
        """Return the bounds that some use and tuple fail."""
        if not len(tuples):
            return []
        own = tuples[:, : self.bounds.shape[1]]
        are_telling = self.bounds.min(axis=0) < own.max(axis=0)
        return np.flatnonzero(are_telling).tolist()

    def _excluding(self, tuples: Ints) -> list[int]:
        """Return the columns of exclusions, the first of two each, that some use and tuple fail."""
        first, columns = self.bounds.shape[1], range(0, self.excluded.shape[1], 2)
        return [k for k in columns if np.isin(self.excluded[:, k], tuples[:, first + k]).any()]

    def _held(self, tuples: Ints, telling: list[int], excluding: list[int]) -> Iterator[Flags]:
        """Yield, for some uses at a time, which tuple each has."""
        size = max(1, COMPARED // len(tuples))
        for start in range(0, len(self.holders), size):
            bounds = self.bounds[start : start + size]
            held = np.ones((len(bounds), len(tuples)), np.bool_)
            for k in telling:
                held &= tuples[None, :, k] <= bounds[:, None, k]
            hashes, excluded = tuples[:, bounds.shape[1] :], self.excluded[start : start + size]
            for k in excluding:
                first, other = (hashes[None, :, i] == excluded[:, None, i] for i in (k, k + 1))
                held &= ~(first & other)
            yield held


class UseGroup:
    """The uses of a stream that have a `key` in common (`group_key`), one of a query at most.

    `number` is that under which it is looked up, by the class and clause of the use that was then
    the first (`entered`).  Most groups have one use, which stands alone, without a dictionary; what
    stands for all of them is made when it is asked for.
    """

    __slots__ = (
        "_columns",
        "_only",
        "_repeating",
        "_several",
        "_use",
        "entered",
        "key",
        "number",
        "stream",
    )

    def __init__(self, clause: Clause, key: Hashable) -> None:
        self.stream = clause.stream
        self.key = key
        self.number = -1
        self.entered: Use | None = None
        self._use: CommonUse | None = None
        self._only: Use | None = None
        self._several: dict[Use, None] | None = None
        self._columns: GroupColumns | None = None
        self._repeating: Sequence[Use] | None = None

    def __len__(self) -> int:
        return int(self._only is not None) if self._several is None else len(self._several)

    def add(self, use: Use) -> None:
        """Add a use."""
        if self._several is not None:
            self._several[use] = None
        elif self._only is not None:
            self._several, self._only = {self._only: None, use: None}, None
        else:
            self._only = use
        self._columns = self._use = self._repeating = None

    def remove(self, use: Use) -> None:
        """Undo one `add`."""
        if self._several is None:
            self._only = None
        else:
            del self._several[use]
            if len(self._several) == 1:
                [self._only], self._several = self._several, None
        self._columns = self._use = self._repeating = None

    def _uses(self) -> Sequence[Use]:
        if self._several is not None:
            return [*self._several]
        return [] if self._only is None else [self._only]

    @property
    def columns(self) -> GroupColumns:
        """The uses in columns."""
        if self._columns is None:
            self._columns = self._in_columns()
        return self._columns

    def _in_columns(self) -> GroupColumns:
        uses = self._uses()
        boxes = [use.asked for use in uses if use.clause.is_common]
        return GroupColumns(
            np.array([use.holder for use in uses], np.int64),
            [use.topic.query.id for use in uses],
            _bounds(boxes) if boxes else np.zeros((len(uses), 0), np.int64),
            excluded_by(boxes) if boxes else np.zeros((len(uses), 0), np.int64),
        )

    @property
    def may_repeat(self) -> bool:
        """Whether some query may have tuples by another group, too: by other words in a text."""
        if self._repeating is None:
            self._repeating = [use for use in self._uses() if use.clause.has_several_words]
        return bool(self._repeating) and any(len(use.beside) > 1 for use in self._repeating)

    @property
    def only(self) -> Use | None:
        """The use that there is, where there is one."""
        return self._only

    @property
    def first(self) -> Use:
        """The first of them."""
        return next(iter(self._uses() if self._several is None else self._several))

    @property
    def use(self) -> CommonUse:
        """The use that stands for all of them."""
        if self._use is None:
            first, box = self.first, self.box
            topic = first.topic
            if topic.registration_point != box.point:
                topic = replace(topic, registration_point=box.point)
            given = first.query_class, first.clause, box.window_us, topic, first.kept_us, box
            self._use = CommonUse(*given, group=self)
        return self._use

    @property
    def box(self) -> Box:
        """The box that holds those of all its uses."""
        first = self.first
        if len(self) == 1 or not first.clause.is_common:
            # Nothing is made that nobody reads.
            return first.asked
        loosest = self.columns.bounds.max(axis=0)
        span, docid = loosest[:2].tolist()
        bounds = tuple(as_doubles(loosest[2:]).tolist())
        excluded = loosest_excluded(use.asked.excluded for use in self._uses())
        given = {"window_us": span, "point": -docid - 1, "bounds": bounds, "excluded": excluded}
        return first.asked._replace(**given)


@dataclass(slots=True, eq=False)
class CommonUse(Use):
    """A use that stands for all uses of a group."""

    group: UseGroup = field(kw_only=True)


def group_of(use: Use) -> UseGroup:
    """Return the group that a use stands for."""
    assert isinstance(use, CommonUse)
    return use.group


class FoundUses:
    """Some of the uses that are `known` by number; they are gone through only for who asks.

    Where statements differ, nobody reads more of most than their columns.
    """

    def __init__(self, known: Sequence[Use | UseGroup | None], numbers: Ints) -> None:
        self._known = known
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: int) -> Use:
        return _use(self._known[self._numbers[place]])

    def __iter__(self) -> Iterator[Use]:
        return iter(self._all)

    @cached_property
    def _all(self) -> Sequence[Use]:
        return [_use(self._known[number]) for number in self._numbers.tolist()]

    def take(self, some: Ints) -> FoundUses:
        """Return some of the uses."""
        return FoundUses(self._known, self._numbers[some])


def _use(found: Use | UseGroup | None) -> Use:
    assert found is not None
    return found.use if isinstance(found, UseGroup) else found


def _all_within(tuples: Ints, bounds: Ints) -> Flags:
    within: Flags = np.all(tuples <= bounds, axis=1)
    return within


def _bounds(boxes: Sequence[Box]) -> Ints:
    """Return the bounds of boxes, a row for each."""
    times = np.array([(box.window_us, -box.point - 1) for box in boxes], np.int64)
    numbers = np.array([box.bounds for box in boxes], np.float64)
    return np.concatenate([times, as_keys(numbers)], axis=1)
