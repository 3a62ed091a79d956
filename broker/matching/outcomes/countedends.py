"""Ends of runs that are only counted, each with the uses that have rows of it.

A row needs the number of these runs, and when they end, and nothing else that a tuple carries.  So
an end becomes no instance of the join, and no box is asked for it: each use of its class has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.uses import Use
from joins import CountedEnds
from templates.chaindecision import DecidedChains
from xscl.comparison import Call
from xscl.query import SelectKind

__all__ = ["EndHits", "takes_all_ends"]


def takes_all_ends(use: Use) -> bool:
    """Return whether a use has rows of all counted runs of its class, and asks for nothing else."""
    query, clause = use.topic.query, use.clause
    asked = (clause.stream, clause.box, clause.residuals, clause.tests, clause.similar)
    return bool(
        (clause.counts or _counts_chains(use))
        and not any(asked)
        and clause.guard is None
        and not clause.factors
        and query.rows is not None
        and query.kind is not SelectKind.COMPRESSED
        and query.is_judged_together
        and query.confidence is None
        and not (query.tables or query.has_candidates)
    )


def _counts_chains(use: Use) -> bool:
    """Return whether a use asks of runs over chains how many there are, and nothing else."""
    query, clause = use.topic.query, use.clause
    return (
        isinstance(clause.query_class.decided, DecidedChains)
        and not clause.is_one_of_several
        and query.kind is SelectKind.ALL
        and query.rows is not None
        and not query.rows.keys
        and all(each == Call("count", ()) for each in query.rows.aggregates)
    )


@dataclass(frozen=True)
class EndHits:
    """Ends of runs, each with one of the `uses` of their class; `rows` are places among `ends`."""

    ends: CountedEnds
    uses: Sequence[Use]
    which: Ints
    rows: Ints

    @classmethod
    def of(cls, ends: CountedEnds, uses: Iterable[Use]) -> EndHits:
        """Return each end with each use that was there before its documents."""
        own = list(uses)
        which, rows = np.divmod(np.arange(len(own) * len(ends)), len(ends))
        if ends.oldest is not None:
            points = np.array([use.asked.point for use in own], np.int64)
            are_behind = ends.oldest[rows] > points[which]
            which, rows = which[are_behind], rows[are_behind]
        return cls(ends, own, which, rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def docids(self) -> Ints:
        """The docid at which each stands."""
        docids: Ints = self.ends.places[self.rows, 0]
        return docids

    @property
    def docids_max(self) -> Ints:
        """The newest document from outside behind each."""
        newest: Ints = self.ends.places[self.rows, 1]
        return newest

    @property
    def nbytes(self) -> Ints:
        """The bytes of what each says."""
        nbytes: Ints = self.ends.sizes[self.rows]
        return nbytes

    def take(self, some: Ints | Flags) -> EndHits:
        """Return some of them."""
        return replace(self, which=self.which[some], rows=self.rows[some])
