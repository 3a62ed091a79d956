"""What the tuples of a stratum become: instances that other operators read, and matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from broker.matching.blockrows import BlockRows
from broker.matching.boxes.columns import Flags, Ints, distinct
from broker.matching.boxes.points import Points
from broker.matching.confidences import are_sure
from broker.matching.costs.accounting import Accounting
from broker.matching.costs.budget import Tally
from broker.matching.costs.charges import FoundCharges, HandedOnCharges
from broker.matching.costs.commoncounts import Counted
from broker.matching.fanout import FanOut
from broker.matching.fewuses import HeldPairs, distinct_rows
from broker.matching.hits import Hits
from broker.matching.innertuples import InnerTuples
from broker.matching.instances import TupleShapes
from broker.matching.outcomes.countedends import ClassEnds
from broker.matching.outcomes.gathered import Gathered
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.matchrows import MatchRows
from broker.matching.rules.candidates import RuleCandidates
from broker.matching.usegroups import SEVERAL, CommonUse, GroupColumns
from xscl.query import Query

__all__ = ["Collector"]


class Collector:
    """Gathers the tuples of one stratum in a batch, as far as the budgets of queries go.

    Where the matches of the batch are known, only tuples that other operators read are gathered.
    `shapes_of` gives the shapes of tuples as instances.  What asks tables, or writes them, is
    gathered in `candidates`, and what has rows or limits in `gathered`; without these there are
    no such queries.

    `matches` are those found, `leaves` the documents behind them that
    have been read, by number; `long` is as in `MatchRows`, `held_pairs` as in `HeldPairs`, and
    `plain_tuples` are the `least` of `BlockRows`.
    """

    def __init__(
        self,
        accounts: Accounting,
        shapes_of: TupleShapes,
        candidates: RuleCandidates | None,
        gathered: Gathered | None,
        *,
        long: int,
        held_pairs: int,
        plain_tuples: int,
    ) -> None:
        self._accounts = accounts
        self._candidates = candidates
        self._gathered = gathered
        self._is_known = accounts.is_known
        self._inner = InnerTuples(shapes_of)
        self._blocks = BlockRows(accounts, shapes_of, least=plain_tuples)
        self._held_pairs = held_pairs
        self.matches = MatchRows(long)
        self.leaves: dict[int, Leaf] = {}

    def take_blocks(self, points: Points, fan_out: FanOut) -> Points:
        """Add the tuples of plain blocks, of all of the stratum; return the others."""
        plain = fan_out.plain
        return self._blocks.take(points, plain, fan_out.expand) if len(points) and plain else points

    def take_ends(self, hits: ClassEnds) -> None:
        """Add ends of counted runs to the matches of which their queries have rows."""
        assert self._gathered is not None
        queries, of_use = _queries(hits)
        given = _Counted(hits, self._accounts, queries, of_use[hits.which])
        hits = hits.take(given.are_below(lambda tally, newest: tally.looks_at(newest)))
        counted = _Counted(hits, self._accounts, queries, of_use[hits.which])
        taken = counted.are_below(lambda tally, newest: tally.takes(newest)).nonzero()[0]
        for each in hits.of_classes(taken):
            self._gathered.add_ends(each)
        counted.count(np.arange(len(hits)), taken)

    def take(self, hits: Hits) -> None:
        """Add tuples to the instances of their clauses, or to their queries' matches."""
        are_groups = hits.owners != SEVERAL
        for i in (~are_groups).nonzero()[0].tolist():
            are_groups[i] = isinstance(hits.uses[i], CommonUse)
        if are_groups.all():
            self._take_groups(hits)
            return
        if are_groups.any():
            of_hit = are_groups[hits.which]
            self._take_groups(hits.alone(np.flatnonzero(of_hit)))
            hits = hits.alone(np.flatnonzero(~of_hit))
        queries, of_use = _queries(hits)
        given = _Counted(hits, self._accounts, queries, of_use[hits.which])
        are_looked_at = given.are_below(lambda tally, newest: tally.looks_at(newest))
        hits = hits.take(are_looked_at & self._are_asked(hits))
        hits = hits.take(hits.are_true())
        if not len(hits):
            return
        counted = _Counted(hits, self._accounts, queries, of_use[hits.which])
        taken = counted.are_below(lambda tally, newest: tally.takes(newest)).nonzero()[0]
        taken = taken[hits.take(taken).satisfy()]
        taken = taken[are_sure(hits.take(taken))]
        are_inner = hits.are_inner[taken]
        inner, roots = taken[are_inner], taken[~are_inner]
        handed_on = inner[self._inner.add(hits.alone(inner))] if len(inner) else inner
        begun = roots[self._begun(hits.alone(roots))] if len(roots) else roots
        counted.count(np.arange(len(hits)), begun)
        counted.hand_on(handed_on[~hits.are_blocks[handed_on]])

    def _take_groups(self, hits: Hits) -> None:
        """Add tuples to the instances of streams of groups, each counted for whoever has it."""
        pairs = HeldPairs.of(hits, self._accounts, self._held_pairs)
        nothing = np.zeros((len(hits), 0), np.int64)
        bounds, excluded = (hits.bounds, hits.excluded) if pairs.others else (nothing, nothing)
        held = np.zeros(len(hits), np.bool_)
        held[pairs.hits] = True
        stopped = self._accounts.stopped()
        for rows, group in pairs.others:
            uses = group.columns
            own = _own(bounds[rows], excluded[rows], uses)
            held[rows] = uses.some_have(own)
            held[rows] &= uses.are_open(stopped, own, hits.docids[rows])
        held &= hits.are_true()
        kept = held.nonzero()[0]
        if not len(kept):
            return
        place = held.cumsum() - 1
        if len(kept) < len(hits):
            hits, bounds, excluded = hits.alone(kept), bounds[kept], excluded[kept]
        # What is taken of these hits has where values are, which their bytes ask for.
        nbytes = hits.nbytes
        are_new = hits.satisfy()
        numbers = np.zeros(len(hits), np.int64)
        numbers[are_new], are_new[are_new] = self._inner.add_to_groups(hits.take(are_new))
        are_new &= ~hits.are_blocks
        pairs = pairs.among(held)
        are_first = are_new[pairs.hits]
        own = (are_first & pairs.may_repeat).nonzero()[0]
        queries = [pairs.queries[i] for i in pairs.which[own].tolist()]
        are_first[own] = self._inner.are_first(numbers[pairs.hits[own]], queries)
        pairs.charge(hits, are_first, self._accounts)
        ones = np.ones(len(hits), np.int64)
        weights = np.stack([ones, are_new, nbytes], axis=1)
        for rows, group in pairs.others:
            own, uses = place[rows[held[rows]]], group.columns
            if len(own):
                where = hits.docids[own], hits.docids_max[own], weights[own], self._accounts.step
                against = _own(bounds[own], excluded[own], uses)
                counted = Counted(group.stream, uses, against, *where)
                self._accounts.hand_on(counted)

    def _are_asked(self, hits: Hits) -> Flags:
        """Return which hits are to be gathered."""
        are_asked = [
            not self._is_known
            or bool(use.clause.stream)
            or bool(use.topic.source)
            or _is_published(use.topic.query)
            for use in hits.uses
        ]
        asked: Flags = np.array(are_asked, np.bool_)[hits.which]
        return asked

    def _begun(self, hits: Hits) -> Ints:
        """Gather tuples of roots; return the tuples that begin what counts as a match."""
        queries = [use.topic.query for use in hits.uses]
        are_asking, are_candidates, are_matching, are_gathered = (
            np.array(which, np.bool_)[hits.which].nonzero()[0]
            for which in (
                [bool(query.tables) and not self._is_known for query in queries],
                [query.has_candidates for query in queries],
                [
                    not query.has_candidates
                    and query.table is None
                    and not query.is_judged_together
                    for query in queries
                ],
                [
                    query.is_judged_together and (self._is_known or not query.tables)
                    for query in queries
                ],
            )
        )
        begun = []
        if len(are_asking):
            assert self._candidates is not None
            asking = are_asking[self._candidates.add(hits.alone(are_asking))]
            begun.append(np.intersect1d(asking, are_candidates))
        if len(are_matching):
            begun.append(are_matching[self._match(hits.alone(are_matching))])
        if len(are_gathered):
            assert self._gathered is not None
            begun.append(are_gathered[self._gathered.add(hits.alone(are_gathered))])
        return np.concatenate([np.zeros(0, np.int64), *begun])

    def _match(self, hits: Hits) -> Ints:
        """Gather matches; return the hits that begin one."""
        begun = self.matches.add(hits)
        operands, rows = hits.points.operands, hits.rows[begun]
        both = np.concatenate([hits.points.left[rows], hits.points.right[rows]])
        places, _, _ = distinct(both)
        places = places[operands.are_documents[places]]
        numbers = operands.numbers[places].tolist()
        unread = np.array([number not in self.leaves for number in numbers], np.bool_)
        read = Leaf.columns(operands.rows).take(pa.array(places[unread]))
        numbers = operands.numbers[places[unread]].tolist()
        self.leaves.update(zip(numbers, Leaf.read(numbers, read), strict=True))
        return begun

    def inner(self, characters_max: int) -> Iterator[pa.Table]:
        """Yield the tuples of inner operators as instances without numbers."""
        yield from self._inner.tables(self._accounts.limit_of, characters_max)
        yield from self._blocks.tables(characters_max)


def _queries(hits: Hits | ClassEnds) -> tuple[list[str], Ints]:
    """Return the queries of hits, and which of them each use is of."""
    names = [use.topic.query.id for use in hits.uses]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return list(numbers), np.array([numbers[name] for name in names], np.int64)


def _own(bounds: Ints, excluded: Ints, uses: GroupColumns) -> Ints:
    """Return the columns of what tuples are held against that a group has."""
    width = uses.bounds.shape[1]
    return np.concatenate([bounds[:, :width], excluded[:, : uses.width - width]], axis=1)


def _is_published(query: Query) -> bool:
    """Return whether matches of a query become documents as they are found."""
    return query.publish is not None and not query.has_candidates and not query.is_judged_together


class _Counted:
    """Hits, as far as they count: for which of the queries each does, and in which account."""

    def __init__(
        self,
        hits: Hits | ClassEnds,
        accounts: Accounting,
        queries: Sequence[str],
        of_hit: Ints,
    ) -> None:
        self._hits = hits
        self._accounts = accounts
        self._all = queries
        self._queries = of_hit

    def are_below(self, counts_at_limit: Callable[[Tally, int], bool]) -> Flags:
        """Return which hits are below the limits of their tallies, or count at the limit.

        `counts_at_limit` is asked of the newest document of an account there.
        """
        docids, newest = self._hits.docids, self._hits.docids_max
        limits = np.array([self._accounts.limit_of(query) for query in self._all])[self._queries]
        are_below: Flags = docids < limits
        for hit in (docids == limits).nonzero()[0].tolist():
            tally = self._accounts.of(self._all[self._queries[hit]])
            are_below[hit] = counts_at_limit(tally, int(newest[hit]))
        return are_below

    def count(self, own: Ints, begun: Ints) -> None:
        """Count some hits; the hits of `begun` begin a match."""
        hits = self._hits
        keys, inverse = distinct_rows(
            [column[own] for column in (self._queries, hits.docids, hits.docids_max)]
        )
        # A load costs nobody's budget.
        costs = np.array([use.topic.query.table is None for use in hits.uses], np.int64)
        costs = costs[hits.which[own]]
        begins = np.zeros(len(hits), np.int64)
        begins[begun] = 1
        tuples, nbytes, matches = (
            np.bincount(inverse, weights).astype(np.int64)
            for weights in (costs, costs * hits.nbytes[own], begins[own])
        )
        which, docids, newest = keys
        found = FoundCharges(self._all, which, docids, newest, tuples, nbytes, matches)
        self._accounts.charge(found)

    def hand_on(self, handed_on: Ints) -> None:
        """Count the tuples of inner operators that queries have found, each once."""
        hits = self._hits
        streams = [use.clause.stream for use in hits.uses]
        numbers = {stream: i for i, stream in enumerate(dict.fromkeys(streams))}
        of_use = np.array([numbers[stream] for stream in streams], np.int64)
        columns = (self._queries, hits.docids, hits.docids_max, of_use[hits.which])
        keys, inverse = distinct_rows([column[handed_on] for column in columns])
        which, docids, newest, of_stream = keys
        counts, streams = np.bincount(inverse), list(numbers)
        self._accounts.charge(
            HandedOnCharges(self._all, which, docids, newest, streams, of_stream, counts)
        )
