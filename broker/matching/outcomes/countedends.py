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
from xscl.query import SelectKind

__all__ = ["EndHits", "takes_all_ends"]


def takes_all_ends(use: Use) -> bool:
    """Return whether a use has rows of all counted runs of its class, and asks for nothing else."""
    query, clause = use.topic.query, use.clause
    asked = (clause.stream, clause.box, clause.residuals, clause.tests, clause.similar)
    return bool(
        clause.counts
        and not any(asked)
        and clause.guard is None
        and not clause.factors
        and query.rows is not None
        and query.kind is not SelectKind.COMPRESSED
        and query.is_judged_together
        and query.confidence is None
        and not (query.tables or query.has_candidates)
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
        """Return each end with each use."""
        own = list(uses)
        which, rows = np.divmod(np.arange(len(own) * len(ends)), len(ends))
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
