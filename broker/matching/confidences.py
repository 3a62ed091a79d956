"""How sure matches are: the factors of what was lost and of what was not seen (`docs/loss.md`).

Where CONFIDENCE is asked, published documents that are not certain are factors too (`uncertain`).

A confidence depends on the documents of a match alone, so all of its tuples have the same, and a
tuple that many statements share has one for all that lose alike.  It is worked out once, and looked
up among the thresholds of these statements: what each of them asks is a bound on the gap, as a
window is.  What is below is left out before anything else is asked of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.hits import Hits
from broker.matching.uses import Topic
from joins import ranges
from templates.factor import Factor
from xscl.delays import exact
from xscl.path import Parameter

__all__ = ["are_sure", "confidences", "known_of", "least_of", "times_of"]


def are_sure(hits: Hits) -> Flags:
    """Return which hits have the confidence that their topics ask for, and more than none.

    A hit whose delays are learned has it as far as is known without them.
    """
    sure = np.ones(len(hits), np.bool_)
    own, found, which = _below_one(hits)
    if not len(own):
        return sure
    # Of inner operators nothing is asked.
    least = [
        Fraction(0) if each.clause.stream else least_of(use.topic)
        for use, each in zip(hits.uses, hits.terms, strict=True)
    ]
    thresholds = sorted(set(least))
    rank_of = {each: rank for rank, each in enumerate(thresholds)}
    asked = np.array([rank_of[each] for each in least])[hits.which[own]]
    reached = np.array([bisect_right(thresholds, each) if each else 0 for each in found])[which]
    sure[own] = asked < reached
    return sure


def confidences(hits: Hits) -> dict[int, Fraction]:
    """Return the confidence of hits by their places; of those left out it is 1."""
    own, found, which = _below_one(hits)
    return {hit: found[i] for hit, i in zip(own.tolist(), which.tolist(), strict=True)}


def least_of(topic: Topic) -> Fraction:
    """Return the confidence that a topic asks for."""
    asked = topic.query.confidence
    if isinstance(asked, Parameter):
        asked = float(topic.parameters[asked.name])
    return Fraction(0) if asked is None else exact(asked)


def known_of(hits: Hits) -> dict[int, Fraction]:
    """Return how sure the documents of hits are, by their places, where that counts."""
    own: Ints = np.flatnonzero(_are_uncertain(hits))
    uncertain = hits.points.uncertain
    leaves, _ = hits.take(own).leaves
    return dict(zip(own.tolist(), map(uncertain.product, leaves.tolist()), strict=True))


def _are_uncertain(hits: Hits) -> Flags:
    """Return which hits have documents that are not certain, where CONFIDENCE is asked of them."""
    uncertain = hits.points.uncertain
    if not len(uncertain):
        return np.zeros(len(hits), np.bool_)
    asks = [
        not terms.clause.stream and use.topic.query.confidence is not None
        for use, terms in zip(hits.uses, hits.terms, strict=True)
    ]
    are_uncertain: Flags = np.array(asks, np.bool_)[hits.which]
    if are_uncertain.any():
        leaves, _ = hits.take(are_uncertain).leaves
        are_uncertain[are_uncertain] = np.isin(leaves, uncertain.numbers).any(axis=1)
    return are_uncertain


def _below_one(hits: Hits) -> tuple[Ints, list[Fraction], Ints]:
    """Return the hits that have factors, the different products, and which each has."""
    are_uncertain = _are_uncertain(hits)
    own: Ints = (hits.have_factors | are_uncertain).nonzero()[0]
    if not len(own):
        return own, [], own
    numbers: dict[tuple[Factor, ...], int] = {}
    alike = hits.by_clause(numbers.setdefault(each.factors, len(numbers)) for each in hits.clauses)
    keys = np.stack([hits.rows[own], alike[own], are_uncertain[own]])
    _, first, which = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    some = hits.take(own[first])
    known = known_of(some)
    found = [known.get(hit, Fraction(1)) for hit in range(len(some))]
    for hit, times in times_of(some):
        for factor in some.terms[some.which[hit]].factors:
            found[hit] *= factor.at(factor.gap_us(times))
    return own, found, which.ravel()


def times_of(hits: Hits) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield the hits whose clauses have factors, each with the times that these ask for."""
    own: Ints = np.flatnonzero(hits.by_clause(bool(each.factors) for each in hits.clauses))
    if not len(own):
        return
    counts = hits.by_clause(len(each.timed) for each in hits.clauses)[own]
    first = np.cumsum([0, *(len(each.timed) for each in hits.clauses)])[:-1]
    flat = np.array([term for each in hits.clauses for term in each.timed], np.int64)
    terms = flat[ranges(hits.by_clause(first)[own], counts)]
    texts = hits.texts(np.repeat(own, counts), terms)
    ends = np.cumsum(counts).tolist()
    start = 0
    for hit, end in zip(own.tolist(), ends, strict=True):
        asked = hits.terms[hits.which[hit]]
        numbers = (int(text) for text in texts[start:end] if text is not None)
        yield hit, dict(zip((asked.names[term] for term in asked.timed), numbers, strict=True))
        start = end
