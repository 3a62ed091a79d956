"""Candidate pairs by similarity: a new instance, and an earlier one whose text is similar enough.

A class without a value join is paired by the first of its similarity joins.  What classes look for
alike (the same sets of the same variables, the same measure) is looked for once, at the **lowest
threshold in force**; each subscription compares the score with its own (`broker.matching.boxes`).

    sets       every value under a variable is made a set when its instance comes, and indexed
    look up    the sets of new instances are looked up among those of the other side, by array
               operations (`arraytable`), with the extra `fast` by compiled ones (`compiledtable`)
    in time    of the pairs that may be similar those in the window are candidates

Lowering the threshold is for new documents: a subscription sees documents after its registration
point only, and both of a pair are then indexed by the lower one.  At a threshold of 0 or below
every pair is similar; then all that fit are candidates (`everything`).

The pairs of a similarity join are not counted by the budget of pairs: how many there are depends on
the lowest threshold, which is another query's.  What counts is what they give to a query: tuples
and matches.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from joins.budget.groups import ClassGroup
from joins.budget.pairs import PairBudget
from joins.budget.probe import Partners
from joins.memory.remembered import Hashes, Remembered
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints, ranges
from joins.memory.times import Pairs, pair_codes
from joins.similarity.arraytable import ArrayTable
from joins.similarity.bounds import asked_of_side
from joins.similarity.compilation import LOOPS
from joins.similarity.reading import read_sets
from joins.similarity.sets import Sets
from joins.similarity.settable import Indexed, SetTable
from templates.queryclass import QueryClass, SetKind, Sides, SimilarPair

__all__ = ["Everything", "SimilarityCandidates"]


_log = logging.getLogger(__name__)

AnyTable = SetTable[Any]


class Everything(Protocol):
    """Finds all instances that fit the other side of an instance."""

    def of(self, owner: int, sides: Sides, window_us: int) -> Partners:
        """Return the partners of an instance within a window."""


@dataclass(slots=True)
class _AskedClasses:
    """The classes that look for the same, with what each of them asks at least."""

    sides: Sides
    group: ClassGroup = field(default_factory=ClassGroup)
    thresholds: dict[int, float] = field(default_factory=dict)

    @property
    def threshold(self) -> float:
        """The lowest threshold in force."""
        return min(self.thresholds.values())


class SimilarityCandidates:
    """The sets of remembered instances, and the classes that are paired by them."""

    def __init__(
        self,
        shapes: Shapes,
        remembered: Remembered,
        everything: Everything,
        lateness_us: int,
        *,
        listed: int,
        compiled_sets: int,
    ) -> None:
        self._shapes = shapes
        self._remembered = remembered
        self._everything = everything
        self._lateness_us = lateness_us
        self._listed = listed
        self._compiled_sets = compiled_sets
        self._asked: dict[int, dict[tuple[SimilarPair, Sides], _AskedClasses]] = {}
        self._tables: dict[SetKind, AnyTable] = {}

    @property
    def memory_bytes(self) -> int:
        """The memory that sets and their index take."""
        return sum(table.memory_bytes for table in self._tables.values())

    # -- classes ---------------------------------------------------------------------------------

    def put(
        self, number: int, query_class: QueryClass, window_us: int, least: Sequence[float]
    ) -> None:
        """Pair for a class, or for one that is there in another window or at another threshold."""
        of_stratum = self._asked.setdefault(query_class.stratum, {})
        key = query_class.similar[0], query_class.asked()
        asked = of_stratum.setdefault(key, _AskedClasses(query_class.asked()))
        asked.group.put(number, window_us, is_symmetric=query_class.is_symmetric)
        asked.thresholds[number] = least[0] if least else 0.0
        for kind in _kinds(key[0]):
            if kind not in self._tables:
                self._tables[kind] = ArrayTable()

    def drop(self, number: int, query_class: QueryClass) -> None:
        """Take away a class that is there."""
        of_stratum = self._asked[query_class.stratum]
        key = query_class.similar[0], query_class.asked()
        asked = of_stratum[key]
        asked.group.drop(number)
        del asked.thresholds[number]
        if asked.thresholds:
            return
        del of_stratum[key]
        if not of_stratum:
            del self._asked[query_class.stratum]

    def forget_unused(self) -> None:
        """Forget the sets that no class looks for.

        A class that moves to another stratum goes and comes: its sets are kept for it.
        """
        used = {kind for pair, _ in self._pairs() for kind in _kinds(pair)}
        self._tables = {kind: table for kind, table in self._tables.items() if kind in used}

    def has(self, stratum: int) -> bool:
        """Return whether classes of a stratum are paired here."""
        return stratum in self._asked

    def _pairs(self) -> Iterator[tuple[SimilarPair, float]]:
        """Yield what is looked for, with its threshold."""
        for of_stratum in self._asked.values():
            for (pair, _), asked in of_stratum.items():
                yield pair, asked.threshold

    def _indexed(self, kind: SetKind) -> Indexed:
        """Return what is indexed of a kind of sets, for all that look for them."""
        return Indexed(
            frozenset(
                asked_of_side(pair, threshold, is_right=bool(is_right))
                for pair, threshold in self._pairs()
                for is_right, own in enumerate(_kinds(pair))
                if own == kind
            )
        )

    # -- instances -------------------------------------------------------------------------------

    def absorb(self, rows: pa.Table, first: int) -> None:
        """Make sets of the values of instances that have just been remembered."""
        for kind, table in self._tables.items():
            kernels = not isinstance(table, ArrayTable)
            found = read_sets(kind, rows, self._shapes, kernels=kernels)
            table.add(found.rows + first, found.sizes, found.hashes, self._indexed(kind))
        self._compile()

    def evict(self, *, has_swept: bool) -> None:
        """Drop the sets of instances that have gone, also from between others if `has_swept`."""
        for table in self._tables.values():
            table.drop(self._remembered.base)
            if has_swept:
                table.sweep(self._remembered.are_there)

    def _compile(self) -> None:
        """Have compiled loops search the tables that have become large, once they are there."""
        for kind, table in self._tables.items():
            is_large = len(table.sets) >= self._compiled_sets
            if is_large and isinstance(table, ArrayTable) and LOOPS.are_ready():
                _log.info("compiled loops join by similarity from now on")
                # Imported when it is first of use: numba takes half a second.
                from joins.similarity.compiledtable import CompiledTable

                self._tables[kind] = compiled = CompiledTable()
                compiled.take_on(table)

    def words(self, kind: SetKind, instances: Ints) -> tuple[Ints, Hashes]:
        """Return the words of all sets of a kind, as (index into `instances`, hash of a word).

        Indices ascend.
        """
        sets = self._tables[kind].sets
        first = sets.first_of(instances)
        counts = sets.first_of(instances + 1) - first
        which = ranges(first, counts)
        _, sizes, hashes = sets.take(which)
        return np.repeat(np.repeat(np.arange(len(instances)), counts), sizes), hashes

    # -- pairs -----------------------------------------------------------------------------------

    def codes(
        self, pair_budget: PairBudget, stratum: int, owners: Ints, bases: tuple[int, int]
    ) -> Iterator[Ints]:
        """Yield the codes of pairs, possibly with repetitions, of some new instances."""
        for (pair, _), asked in self._asked.get(stratum, {}).items():
            closed_from = pair_budget.closed_from(asked.group)
            open_owners = owners[self._remembered.take("docid", owners) < closed_from]
            if not len(open_owners):
                continue
            if asked.threshold <= 0:
                found = self._all_pairs(asked, open_owners)
            else:
                found = self._similar_pairs(pair, asked, open_owners)
            for left, right in found:
                yield self._in_time(asked.group, left, right, bases)

    def _in_time(self, group: ClassGroup, left: Ints, right: Ints, bases: tuple[int, int]) -> Ints:
        pairs = Pairs.of(self._remembered, left, right, self._lateness_us)
        held = (pairs.span <= group.window_us) & (pairs.follows | group.is_symmetric)
        return pair_codes(left[held], right[held], bases)

    def _all_pairs(self, asked: _AskedClasses, owners: Ints) -> Iterator[tuple[Ints, Ints]]:
        for owner in owners.tolist():
            found = self._everything.of(owner, asked.sides, asked.group.window_us)
            for partners, is_right in found:
                earlier = partners[partners < owner]
                own = np.full(len(earlier), owner)
                yield (earlier, own) if is_right else (own, earlier)

    def _similar_pairs(
        self, pair: SimilarPair, asked: _AskedClasses, owners: Ints
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield (left, right) instances; the newer one is among the owners."""
        left, right = _kinds(pair)
        is_alike = left == right and pair.measure != "containment"
        window_us = asked.group.window_us
        for newer, older in self._found(pair, asked, owners, window_us, is_right=True):
            yield older, newer
            if is_alike:
                yield newer, older
        if not is_alike:
            # What follows an owner ends after it, though it came before.
            back_us = window_us if asked.group.is_symmetric else 0
            for newer, older in self._found(pair, asked, owners, back_us, is_right=False):
                yield newer, older

    def _found(
        self,
        pair: SimilarPair,
        asked: _AskedClasses,
        owners: Ints,
        back_us: int,
        *,
        is_right: bool,
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield (owner, partner) where the sets of owners stand on one side of a pair.

        A partner ends `back_us` before its owner at the earliest.
        """
        kinds = _kinds(pair)
        own, other = (self._tables[kinds[side]] for side in (is_right, not is_right))
        mine, oldest = self._looking(own.sets, owners, back_us)
        if not len(mine):
            return
        newer = own.sets.owners(mine)
        look = asked_of_side(pair, asked.threshold, is_right=is_right)
        for which, found in other.similar(own.sets, mine, look, oldest, self._listed):
            partners = other.sets.owners(found)
            rows = np.flatnonzero(self._remembered.are_there(partners))
            yield newer[which[rows]], partners[rows]

    def _looking(self, sets: Sets, owners: Ints, back_us: int) -> tuple[Ints, Ints]:
        """Return the sets of some owners, and the oldest instance that each looks for.

        Texts that would find themselves at most look for nothing.
        """
        ends = self._remembered.take("end_us", owners)
        oldest = self._remembered.first_from(ends - back_us)
        looking = oldest < owners
        owners, oldest = owners[looking], oldest[looking]
        first = sets.first_of(owners)
        counts = sets.first_of(owners + 1) - first
        return ranges(first, counts), np.repeat(oldest, counts)


def _kinds(pair: SimilarPair) -> tuple[SetKind, SetKind]:
    return pair.left, pair.right
