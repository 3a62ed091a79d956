"""Which texts of a sample are similar: found by rare words, as a join finds them.

Words that have one hash may add a pair; that changes no estimate.  Of a threshold that finds most
pairs not all are looked at: a part of the texts on the left stands for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from broker.estimate.statistics import Meetings, Occurrences
from joins.similarity.bounds import ScoreBounds
from joins.similarity.textsets import TextSets
from templates.similarterms import SimilarTerms, similar_terms
from xscl.path import Literal
from xscl.query import SimilarityJoin

__all__ = ["THRESHOLD", "similar_values"]

THRESHOLD = {"jaccard": 0.5, "containment": 0.5, "overlap": 3.0}
"""What thresholds that subscriptions give are estimated as."""

_PAIRS_MAX = 4_000_000
"""Pairs of texts with a rare word in common that are looked at: some seconds."""

_LISTED = 1 << 18
"""Pairs that are looked at at once, about."""

Numbers = npt.NDArray[np.int64]


def similar_values(
    join: SimilarityJoin, left: Occurrences, right: Occurrences
) -> tuple[Meetings, float] | None:
    """Return where similar texts are, and how many there are for each of these.

    None if they cannot be found by words.
    """
    if not isinstance(join.threshold, Literal):
        join = replace(join, threshold=Literal(THRESHOLD[join.measure]))
    asked = similar_terms([join])
    if asked is None:
        return None
    sides = [list(each.documents) for each in (left, right)]
    step, pairs = _similar_texts(asked, *sides)
    return [
        (left.documents[sides[0][a]], right.documents[sides[1][b]]) for a, b in pairs.tolist()
    ], float(step)


def _similar_texts(
    asked: SimilarTerms, left: Sequence[str], right: Sequence[str]
) -> tuple[int, Numbers]:
    """Return the pairs of texts that are similar, of each so many texts on the left."""
    texts = [*left, *right]
    sets = TextSets(lambda some: [texts[i] for i in some.tolist()])
    bounds = ScoreBounds.of(asked.measure, asked.threshold, is_turned=asked.is_turned)
    owners: list[Numbers] = []
    numbers: list[Numbers] = []
    for first, count, each in ((0, len(left), asked.left), (len(left), len(right), asked.right)):
        start, counts = sets.of(each.kind, np.arange(first, first + count), is_list=each.is_list)
        owners.append(np.repeat(np.arange(count), counts))
        numbers.append(np.repeat(start - np.cumsum(counts) + counts, counts))
        numbers[-1] += np.arange(len(owners[-1]))
    sets.renew()
    keys, of = [], []
    for half, some in enumerate(numbers):
        rows = bounds.some(np.zeros(len(some), np.int64))
        lengths = rows.prefixes(sets.sizes(some), is_right=bool(half))
        keys.append(sets.first_words(some, lengths))
        of.append(np.repeat(np.arange(len(some)), lengths))
    order = np.argsort(keys[1])
    low, high = (np.searchsorted(keys[1][order], keys[0], side) for side in ("left", "right"))
    counts = (high - low).astype(np.int64)
    step = 1 + int(counts.sum()) // _PAIRS_MAX
    counts[of[0] % step > 0] = 0
    found = [np.zeros((0, 2), np.int64)]
    for which, places in _listed(low, counts):
        pairs = np.unique(np.stack([of[0][which], of[1][order[places]]], axis=1), axis=0)
        one, other = numbers[0][pairs[:, 0]], numbers[1][pairs[:, 1]]
        held = sets.may_hold(one, other, bounds.some(np.zeros(len(pairs), np.int64)))
        found.append(pairs[held])
    pairs = np.concatenate(found)
    texts_of = np.stack([owners[0][pairs[:, 0]], owners[1][pairs[:, 1]]], axis=1)
    return step, np.unique(texts_of, axis=0)


def _listed(low: Numbers, counts: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield (which row, which place) of ranges, some at a time."""
    part = np.cumsum(counts) // _LISTED
    for rows in np.split(np.arange(len(counts)), np.flatnonzero(np.diff(part)) + 1):
        which = np.repeat(rows, counts[rows])
        within = np.arange(len(which)) - np.repeat(
            np.cumsum(counts[rows]) - counts[rows], counts[rows]
        )
        yield which, low[which] + within
