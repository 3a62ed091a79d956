"""The rules of time for pairs of instances, in arrays (semantics, sections 1.1 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from joins.memory.slots import Ints

__all__ = [
    "Flags",
    "Pairs",
    "Times",
    "codes_of_groups",
    "distinct",
    "groups",
    "held_ends",
    "pair_codes",
]

Flags = npt.NDArray[np.bool_]

_NUMBER_BITS = 40
"""Bits that hold the number of a remembered instance, counted from the first one.  One instance of
a pair is of the batch in hand, which has less than 2 ** 22."""

_NUMBERS = (1 << _NUMBER_BITS) - 1


class Times(Protocol):
    """The positions and intervals of instances; see `Remembered`."""

    is_ordered: bool

    @property
    def published_ids(self) -> Mapping[int, str]:
        """The match ids of instances of some depth."""

    def take(self, name: str, instances: Ints) -> Ints:
        """Return `docid`, `depth`, `start_us`, `end_us` or `watermark_us` of some instances."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of instances in columns.

    `span` is the smallest window that holds a pair, in microseconds; `follows` says that its left
    instance ends before its right one starts.
    """

    left: Ints
    right: Ints
    span: Ints
    follows: Flags

    @classmethod
    def of(cls, times: Times, left: Ints, right: Ints, lateness_us: int) -> Pairs:
        """Return the pairs (left, right) of instances."""
        span = _span(times, np.maximum(left, right), np.minimum(left, right), lateness_us)
        follows = times.take("end_us", left) < times.take("start_us", right)
        return cls(left, right, span, follows)

    @classmethod
    def of_groups(
        cls, times: Times, newer: Ints, counts: Ints, older: Ints, lateness_us: int
    ) -> Pairs:
        """Return the pairs of older instances on the left and newer ones on the right.

        `newer[i]`, which has the larger number, is the right one of the next `counts[i]` pairs.
        """
        older_end, newer_end = times.take("end_us", older), times.take("end_us", newer)
        until = np.maximum(newer_end, times.take("watermark_us", newer) - lateness_us)
        span = np.repeat(until, counts)
        span -= older_end
        follows = older_end < np.repeat(times.take("start_us", newer), counts)
        rest = np.flatnonzero(~follows)
        if len(rest):
            behind = older_end[rest] - np.repeat(newer_end, counts)[rest]
            span[rest] = np.maximum(span[rest], behind)
        right = np.repeat(newer, counts)
        if not times.is_ordered:
            span = _span(times, right, older, lateness_us)
        return cls(older, right, span, follows)

    @classmethod
    def of_codes(cls, times: Times, codes: Ints, bases: tuple[int, int], lateness_us: int) -> Pairs:
        """Return the pairs that have some codes (`pair_codes`), which ascend."""
        base, first = bases
        older = ((codes >> 1) & _NUMBERS) + base
        newer, counts = groups(codes >> (_NUMBER_BITS + 1))
        pairs = cls.of_groups(times, newer + first, counts, older, lateness_us)
        turned = np.flatnonzero((codes & 1) == 0)
        if len(turned):
            left, right = pairs.right[turned], pairs.left[turned]
            pairs.left[turned], pairs.right[turned] = left, right
            ends, starts = times.take("end_us", left), times.take("start_us", right)
            pairs.follows[turned] = ends < starts
        return pairs

    def __len__(self) -> int:
        return len(self.left)

    def keep(self, which: Ints | slice) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.left[which], self.right[which], self.span[which], self.follows[which])


def pair_codes(left: Ints, right: Ints, bases: tuple[int, int]) -> Ints:
    """Return numbers for pairs of instances, in the order of (newer, older) ones.

    The newer instance is the one with the larger number.  `bases` are the first number that an
    older and that a newer one can have.
    """
    base, first = bases
    newer, older = np.maximum(left, right) - first, np.minimum(left, right) - base
    codes: Ints = (newer << (_NUMBER_BITS + 1)) | (older << 1) | (right > left)
    return codes


def codes_of_groups(newer: Ints, counts: Ints, older: Ints, bases: tuple[int, int]) -> Ints:
    """Return the codes of grouped pairs (`Pairs.of_groups`), the older instance on the left."""
    base, first = bases
    codes = (older - base) << 1
    codes |= np.repeat((newer - first) << (_NUMBER_BITS + 1) | 1, counts)
    return codes


def held_ends(
    times: Times, newer: Ints, window_us: Ints, is_symmetric: Flags, lateness_us: int
) -> tuple[Ints, Ints]:
    """Return the ends between which an older instance on the left is held with each newer one.

    Where positions are not ordered, some instances that end between them are not held.
    """
    end_us = times.take("end_us", newer)
    oldest, newest = end_us, end_us + window_us
    if times.is_ordered:
        oldest = np.maximum(end_us, times.take("watermark_us", newer) - lateness_us)
    before = np.minimum(newest, times.take("start_us", newer) - 1)
    return oldest - window_us, np.where(is_symmetric, newest, before)


def groups(numbers: Ints) -> tuple[Ints, Ints]:
    """Return the numbers that stand next to one another, and how often each does.

    >>> groups(np.array([7, 7, 7, 9]))
    (array([7, 9]), array([3, 1]))
    """
    starts = np.concatenate([[True], numbers[1:] != numbers[:-1]])[: len(numbers)].nonzero()[0]
    return numbers[starts], np.diff(starts, append=len(numbers))


def distinct(codes: Sequence[Ints]) -> Ints:
    """Put numbers together in ascending order, each once.

    They come in few ascending pieces: a stable sort merges these at a fifth of the cost of a hash
    table.
    """
    ordered = np.concatenate([np.zeros(0, np.int64), *codes])
    ordered.sort(kind="stable")
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def _span(times: Times, newer: Ints, older: Ints, lateness_us: int) -> Ints:
    """Return the smallest window that holds two instances, whichever of them is the left one.

    `newer` are the instances with the larger numbers.  With `Y` the instance of the larger position
    and `X` the other: `T >= |R.end - L.end|` and `T >= W(Y) - A - X.end`.
    """
    newer_end, older_end = times.take("end_us", newer), times.take("end_us", older)
    needed = times.take("watermark_us", newer) - older_end
    if not times.is_ordered:
        earlier = ~_is_later(times, newer, older)
        needed[earlier] = (times.take("watermark_us", older) - newer_end)[earlier]
    widest: Ints = np.maximum(np.abs(newer_end - older_end), needed - lateness_us)
    return widest


def _is_later(times: Times, left: Ints, right: Ints) -> Flags:
    """Return where the left position `(docid, depth, match id)` is the larger one."""
    docid1, docid2 = times.take("docid", left), times.take("docid", right)
    later: Flags = docid1 > docid2
    ties = (docid1 == docid2).nonzero()[0]
    if len(ties):
        depth1 = times.take("depth", left[ties])
        depth2 = times.take("depth", right[ties])
        later[ties] = depth1 > depth2
        for i in ties[(depth1 == depth2) & (depth1 > 0)].tolist():
            ids = times.published_ids
            later[i] = ids[int(left[i])] > ids[int(right[i])]
    return later
