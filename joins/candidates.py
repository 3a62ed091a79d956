"""Candidate pairs: a new instance, and another one that has an anchored value in common with it.

Every class is anchored in one of its value joins: the one whose look-ups have met the fewest
partners so far.  The classes of a stratum have few different anchors, however many they are, so
the new values of a batch are looked up under all of them at once.  All joined values are in the
index, not only anchored ones, so a class may be anchored anew at any time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from joins.classes import ClassRegistry
from joins.remembered import EMPTY, Hashes, Remembered
from joins.slots import Ints, Layouts, ranges
from joins.times import Flags, span_and_order
from joins.valueindex import ValueIndex, entry_keys

__all__ = ["PAIRS_MAX", "Candidates"]

PAIRS_MAX = 20_000
"""Pairs that are worked on at once: what describes them then stays in a core's cache.  On recorded
news, 57 pairs a document, 10,000 to 30,000 are a fifth faster than 1,000,000."""

ANCHOR_CHANGE = 4
"""A class changes its anchor for one that is met this many times less often, not for less."""


@dataclass(frozen=True, slots=True)
class _Anchors:
    """The anchors of a stratum in columns."""

    left: Ints
    right: Ints
    window: Ints
    is_symmetric: Flags


class Candidates:
    """Finds candidate pairs; holds the index and what is new in the batch in hand."""

    def __init__(self, remembered: Remembered, layouts: Layouts, lateness_us: int) -> None:
        self._remembered = remembered
        self._layouts = layouts
        self._lateness_us = lateness_us
        self._index = ValueIndex()
        self._anchors: dict[int, _Anchors] = {}
        self._anchor_of: dict[int, tuple[int, int]] = {}
        self._met: Counter[tuple[int, int]] = Counter()
        self._new: list[tuple[Ints, Ints, Hashes]] = []
        self.first = 1

    def begin_batch(self) -> None:
        """Make what is absorbed from now on new."""
        self.first = self._remembered.next_instance
        self._new = []

    def choose_anchors(self, classes: ClassRegistry) -> None:
        """Anchor every class in the value join that was met least often."""
        chosen: dict[tuple[int, int, int], list[tuple[int, bool]]] = {}
        anchor_of: dict[int, tuple[int, int]] = {}
        for number, query_class in classes.by_number.items():
            pairs = list(query_class.value_pairs())
            if not pairs:
                continue
            anchor = min(pairs, key=lambda pair: (self._met[pair], pair))
            before = self._anchor_of.get(number)
            if before is not None and self._met[before] < ANCHOR_CHANGE * (self._met[anchor] + 1):
                anchor = before
            anchor_of[number] = anchor
            use = (classes.window_us(number), query_class.is_symmetric)
            chosen.setdefault((query_class.stratum, *anchor), []).append(use)
        self._anchor_of = anchor_of
        self._anchors = {
            stratum: _columns(stratum, chosen) for stratum in {key[0] for key in chosen}
        }

    def absorb(self, first: int, layouts: Ints) -> None:
        """Index the values of instances that have just been remembered."""
        arrays = self._layouts.arrays
        counts = arrays.binding_counts[layouts]
        bindings = ranges(arrays.binding_starts[layouts], counts)
        owners = np.repeat(np.arange(first, first + len(layouts)), counts)
        hashes, _ = self._remembered.hashes
        values = hashes[self._remembered.slots(owners) + arrays.binding_slots[bindings]]
        variables = arrays.binding_variables[bindings]
        filled = values != EMPTY
        owners, variables, values = owners[filled], variables[filled], values[filled]
        self._new.append((owners, variables, values))
        self._index.add(entry_keys(values, variables), owners, self._remembered.base)

    def pairs(self, stratum: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield the (left, right) instances on which an anchor of a stratum holds, each once."""
        anchors = self._anchors.get(stratum)
        if anchors is None or not self._new:
            return
        codes = list(self._codes(anchors))
        if not codes:
            return
        distinct = np.unique(np.concatenate(codes))
        base = self._remembered.base
        for start in range(0, len(distinct), PAIRS_MAX):
            part = distinct[start : start + PAIRS_MAX]
            yield (part >> 31) + base, (part & 0x7FFFFFFF) + base

    def _codes(self, anchors: _Anchors) -> Iterator[Ints]:
        """Yield codes of pairs, possibly with repetitions, look-up by look-up."""
        owners, variables, values = (
            np.concatenate(parts) for parts in zip(*self._new, strict=True)
        )
        order = np.argsort(variables, kind="stable")
        sorted_ = variables[order]
        for mine, others, is_right in (
            (anchors.right, anchors.left, True),
            (anchors.left, anchors.right, False),
        ):
            starts = np.searchsorted(sorted_, mine, "left")
            counts = np.searchsorted(sorted_, mine, "right") - starts
            new = order[ranges(starts, counts)]
            which = np.repeat(np.arange(len(mine)), counts)
            keys = entry_keys(values[new], others[which])
            for found, partners in self._index.look_up(keys, PAIRS_MAX):
                by_anchor = np.bincount(which[found], minlength=len(mine))
                for i in np.flatnonzero(by_anchor).tolist():
                    pair = (int(anchors.left[i]), int(anchors.right[i]))
                    self._met[pair] += int(by_anchor[i])
                owner = owners[new[found]]
                left, right = (partners, owner) if is_right else (owner, partners)
                yield self._within(left, right, anchors, which[found], is_right=is_right)

    def _within(
        self, left: Ints, right: Ints, anchors: _Anchors, which: Ints, *, is_right: bool
    ) -> Ints:
        """Return the pairs that an anchor's classes could hold in time, as codes."""
        base = self._remembered.base
        alive = (left >= base) & (right >= base) & (left != right)
        if not is_right:
            # The other half of a pair of two new instances was found from its right side.
            alive &= right < self.first
        left, right, which = left[alive], right[alive], which[alive]
        span, follows = span_and_order(self._remembered, left, right, self._lateness_us)
        held = (span <= anchors.window[which]) & (anchors.is_symmetric[which] | follows)
        return ((left[held] - base) << 31) | (right[held] - base)

    def all_pairs(self) -> Iterator[tuple[Ints, Ints]]:
        """Yield every pair with a new instance: a class without a value join costs the product."""
        base, end = self._remembered.base, self._remembered.next_instance
        for new in range(self.first, end):
            others = np.arange(base, end)
            yield others[others != new], np.full(len(others) - 1, new)
            older = np.arange(base, self.first)
            yield np.full(len(older), new), older


def _columns(stratum: int, chosen: dict[tuple[int, int, int], list[tuple[int, bool]]]) -> _Anchors:
    rows = [(key, uses) for key, uses in sorted(chosen.items()) if key[0] == stratum]
    return _Anchors(
        np.array([left for (_, left, _), _ in rows], np.int64),
        np.array([right for (_, _, right), _ in rows], np.int64),
        np.array([max(window for window, _ in uses) for _, uses in rows], np.int64),
        np.array([any(symmetric for _, symmetric in uses) for _, uses in rows], np.bool_),
    )
