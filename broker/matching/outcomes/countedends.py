"""Ends of runs that are only counted, each with the uses that have rows of it.

A row needs the number of these runs, and when they end, and nothing else that a tuple carries.  So
an end becomes no instance of the join, and no box is asked for it: each use of its class has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.uses import Use
from joins import CountedEnds
from templates.chaindecision import DecidedChains
from xscl.comparison import Call
from xscl.query import SelectKind

__all__ = ["ClassEnds", "EndHits", "takes_all_ends"]


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

    def take(self, some: Ints) -> EndHits:
        """Return some of them."""
        return replace(self, which=self.which[some], rows=self.rows[some])


@dataclass(frozen=True)
class ClassEnds:
    """Ends of runs of several classes, one class after the other, each with one of all `uses`.

    `docids` say where each stands, `docids_max` are the newest documents from outside behind each,
    and `nbytes` the bytes of what each says.  `parts` are those of each class, `of_part` says of
    which part each is, and `rows` where it stands there.
    """

    uses: Sequence[Use]
    which: Ints
    docids: Ints
    docids_max: Ints
    nbytes: Ints
    parts: Sequence[EndHits]
    of_part: Ints
    rows: Ints

    @classmethod
    def of(cls, parts: Sequence[EndHits]) -> ClassEnds:
        """Return the ends of some classes."""
        before = [0, *accumulate(len(part.uses) for part in parts)]
        places = np.concatenate([part.ends.places[part.rows, :2] for part in parts])
        counts = [len(part) for part in parts]
        return cls(
            [use for part in parts for use in part.uses],
            np.concatenate([part.which + at for part, at in zip(parts, before, strict=False)]),
            places[:, 0],
            places[:, 1],
            np.concatenate([part.ends.sizes[part.rows] for part in parts]),
            parts,
            np.repeat(np.arange(len(parts)), counts),
            np.concatenate([np.arange(count) for count in counts]),
        )

    def __len__(self) -> int:
        return len(self.which)

    def take(self, some: Ints | Flags) -> ClassEnds:
        """Return some of them."""
        return replace(
            self,
            which=self.which[some],
            docids=self.docids[some],
            docids_max=self.docids_max[some],
            nbytes=self.nbytes[some],
            of_part=self.of_part[some],
            rows=self.rows[some],
        )

    def of_classes(self, some: Ints) -> Iterator[EndHits]:
        """Yield some of them, in ascending order, class by class."""
        stops = np.searchsorted(self.of_part[some], np.arange(len(self.parts)), "right").tolist()
        first = 0
        for part, stop in zip(self.parts, stops, strict=True):
            if first < stop:
                yield part.take(self.rows[some[first:stop]])
            first = stop
