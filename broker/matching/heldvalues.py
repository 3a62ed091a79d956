"""What of tuples is held against the uses of groups, in columns: see `usegroups.GroupColumns`.

Where it is, is given for each clause, as `clauseterms` says, and each tuple has a clause's number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from broker.matching.boxes.columns import Doubles, Ints
from broker.matching.boxes.doublekeys import as_keys, next_above
from broker.matching.boxes.exclusions import NO_HASH, known_in_pairs
from broker.matching.boxes.lists import GrowingLists
from broker.matching.boxes.numbers import ends_of, numbers_of
from broker.matching.boxes.points import Points
from broker.matching.clauseterms import NODE, SPANNED
from templates.box import Solution, TestedPlace

__all__ = ["bounds_of", "excluded_of"]


def bounds_of(
    points: Points,
    rows: Ints,
    places: GrowingLists,
    made: Sequence[TestedPlace],
    clauses: Ints,
) -> Ints:
    """Return the spans of tuples, their smallest docids, negated, and the keys of numbers.

    A clause that holds fewer numbers has the smallest ones behind its own.
    """
    own, k, (*read, kinds, negated, strict) = places.taken(clauses)
    found = np.full((len(rows), 3 + int(k.max(initial=-1))), np.iinfo(np.int64).min)
    found[:, 0] = points.spans[rows]
    found[:, 1] = -points.docids_min[rows]
    numbers = np.empty(len(own))
    ends: dict[Solution, tuple[Doubles, Doubles]] = {}
    for kind in np.unique(kinds).tolist():
        some = np.flatnonzero(kinds == kind)
        of_kind, place = rows[own[some]], made[kind] if kind >= 0 else None
        if place is None:
            at = points.values_at(of_kind, *(column[some] for column in read))
            numbers[some] = _values(points, kind, at)
        elif isinstance(place, Solution):
            # A clause that tests one end tests the other one, too, of the same tuples.
            key = place._replace(is_least=True)
            if key not in ends:
                ends[key] = ends_of(points, place, of_kind)
            numbers[some] = ends[key][not place.is_least]
        else:
            numbers[some] = numbers_of(points, place, of_kind)
    keys = as_keys(np.where(negated, -numbers, numbers))
    found[own, 2 + k] = next_above(keys, strict > 0)
    return found


def _values(points: Points, kind: int, at: Ints) -> Doubles:
    """Return the numbers that stand at places of the operands."""
    if kind == NODE:
        return points.operands.doubles(at)
    assert kind == SPANNED
    return np.array(points.operands.texts(at), np.dtype("U")).astype(np.float64)


def excluded_of(points: Points, rows: Ints, places: GrowingLists, clauses: Ints) -> Ints:
    """Return both hashes of what tuples have where groups exclude values."""
    own, k, (*read, kinds) = places.taken(clauses)
    found = np.full((len(rows), 2 * (1 + int(k.max(initial=-1)))), NO_HASH)
    at = points.values_at(rows[own], *read)
    pairs = known_in_pairs(*points.operands.sole_hashes(at, kinds))
    for i in (0, 1):
        found[own, 2 * k + i] = pairs[:, i]
    return found
