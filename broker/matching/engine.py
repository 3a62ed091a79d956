"""The core of the broker: witnesses in, matches out.  No clock, no disk, no network.

One step takes the witnesses of a batch of documents from outside, in docid order:

    absorb    the documents become instances of the join
    probe     stratum by stratum: each class's tuples fan out to the clauses that share the class
    hand on   tuples of inner operators, and documents that queries publish, become instances that
              the next stratum reads
    gather    tuples of a query's root become matches: one for each assignment of visible nodes
    act       what asks or writes tables is run in transactions (`acting`)

A query that costs more than its budget is paused (`accounts`): its matches from one document on are
dropped, the step's result names that document, and the query is out of the set after the batch.

Invariants: matches do not depend on how documents are grouped into batches, nor on other queries;
`absorb` leaves the same state as `process`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.document import Document
from broker.documents.segment import documents_as_rows
from broker.documents.sub_batches import in_sub_batches
from broker.matching.absorption import Absorption
from broker.matching.batch import Documents, MatchingBatch
from broker.matching.collector import Collector
from broker.matching.costs.accounts import Accounts
from broker.matching.costs.askedrows import AskedRows
from broker.matching.costs.balances import Balances
from broker.matching.costs.budget import DEFAULT_BUDGET, Budget, Spent
from broker.matching.costs.holders import StreamHolders
from broker.matching.finishing.byshards import Finishing
from broker.matching.instances import WATERMARK_MIN_US
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.matching.match import FoundMatch
from broker.matching.mrules import MRule
from broker.matching.outcomes.countedends import ClassEnds, EndHits
from broker.matching.outcomes.gathered import Gathered
from broker.matching.outcomes.giving import Giving
from broker.matching.outcomes.kept import Note
from broker.matching.outcomes.learned import DEFAULT_LEARNING, Learning
from broker.matching.outcomes.standing import Outcomes
from broker.matching.publications import Publications
from broker.matching.queries.collecting import without_collecting
from broker.matching.queries.queryset import QuerySet
from broker.matching.queries.registration import RegisteredQuery, SetChange, publishers_first
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.matches import BuiltMatches, MatchBuilder
from broker.matching.rendering.matchrows import MatchRows
from broker.matching.rendering.trees import Trees
from broker.matching.rules.acting import Acting, Trace
from broker.matching.rules.candidates import RuleCandidates
from broker.matching.rules.judged import Judging
from broker.matching.stepresult import StepResult
from broker.matching.uses import Topic
from broker.tables.store import RowChange, Tables
from broker.tables.transactions import Schedule
from joins import (
    DEFAULT_ENGINE,
    DecidingProcessor,
    EngineName,
    Processor,
    in_tables,
    make_processor,
)
from templates.clause import Clause
from xpath_eval.catalog import EvaluationPlan, Numbering
from xpath_eval.prefilters import Missing
from xpath_eval.stage import evaluate_batches
from xpath_eval.witnesses import WITNESS_SCHEMA
from xscl.query import INFINITE_US

__all__ = ["Engine", "RegisteredQuery"]


class Engine:
    """Evaluates queries on documents; queries come and go between batches.

    A query that is added sees documents above its registration point.  The engine may have
    forgotten documents that it absorbed before, so the point must not lie before the last one of
    them.  A query that is removed has no part in the next batch.

    The join is `processor`, without state and classes, where one is given
    (`broker.pipeline.shards`).  `learning` is other than the language says in tests alone.
    """

    def __init__(
        self,
        queries: Sequence[RegisteredQuery],
        *,
        lateness_us: int,
        engine: EngineName = DEFAULT_ENGINE,
        numbering: Numbering | None = None,
        budget: Budget = DEFAULT_BUDGET,
        spill_directory: Path | None = None,
        processor: Processor | None = None,
        limits: MatchingLimits = DEFAULT_MATCHING_LIMITS,
        schedule: Schedule | None = None,
        trace: Trace | None = None,
        learning: Learning = DEFAULT_LEARNING,
        without: Collection[MRule] = (),
    ) -> None:
        self._lateness_us = lateness_us
        self._limits = limits
        join = processor or make_processor(
            engine,
            lateness_us=lateness_us,
            pairs_max=budget.pairs_max,
            spill_directory=spill_directory,
            limits=limits.join,
        )
        self._processor = DecidingProcessor(join, lateness_us, limits.join.memory, limits.runs)
        self._queries = QuerySet(
            self._processor,
            numbering,
            lateness_us=lateness_us,
            limits=limits,
            without=without,
        )
        self._processor.ask(StreamHolders(self._queries.fan_out, self._processor.rows))
        self._finishing = Finishing.by(join, self._queries.fan_out, limits, budget)
        self._balances = Balances(budget, self._queries, self._processor)
        fan_out = self._queries.fan_out
        self._absorption = Absorption(self._processor, limits, fan_out.reads_texts)
        self._asked_rows = AskedRows(fan_out.by_data, fan_out.counts, lateness_us, limits)
        self._publications = Publications(limits.published)
        self._tables = Tables()
        self._schedule = schedule
        self._trace = trace
        self._outcomes = Outcomes(self._queries, lateness_us, learning)
        with without_collecting():
            for registered in publishers_first(queries):
                self._queries.add(registered)
        self._queries.fan_out.settle()
        self._has_news = True

    def follow(self, change: SetChange) -> bool:
        """Change the queries between two batches; return False if state is missing for that.

        Then nothing has changed, and a new engine must be made from the spool.
        """
        if self.lacks(change):
            return False
        # Of what is stated again the revision may be another one.
        if change.gone or any(each.query.id in self._queries for each in change.queries):
            self._balances.begun.forget_look_ups()
        self._queries.follow(change)
        self._has_news = True
        return True

    def lacks(self, change: SetChange) -> bool:
        """Return whether state is missing for a change.

        It is where a new query or assignment is to see documents that have been absorbed already.
        """
        if any(query_id not in self._queries for query_id, _, _ in change.assigned):
            return False  # its query is registered, and not followed yet: it will see all
        point = self._queries.first_new_point(change)
        return point is not None and point < self._absorption.last_docid

    @property
    def queries(self) -> QuerySet:
        """The queries in force, to be changed between batches."""
        return self._queries

    @property
    def plan(self) -> EvaluationPlan:
        """The patterns, edges and values that evaluation has to find now."""
        return self._queries.plan

    @property
    def processor(self) -> Processor:
        """The join, to be read only."""
        return self._processor.inner

    def classes(self) -> Iterator[tuple[int, Clause, Topic]]:
        """Yield every clause of every query, with the number of its class."""
        for use in self._queries.fan_out.uses():
            yield use.query_class, use.clause, use.topic

    def horizon_us(self, watermark_us: int) -> int:
        """Return the oldest event time that is still needed when `W` is `watermark_us`."""
        retention_us = self._queries.retention_us
        if retention_us >= INFINITE_US:
            return WATERMARK_MIN_US
        return watermark_us - retention_us - self._lateness_us

    def needed_from(self, watermark_us: int, docid: int) -> dict[str, int]:
        """Return by stream the oldest event time of documents up to a docid that is still needed.

        The time of `*` holds for all streams from outside.  Documents of a stream without a time
        are not needed.
        """
        late_us = watermark_us - self._lateness_us
        return {
            stream: WATERMARK_MIN_US if retention_us >= INFINITE_US else late_us - retention_us
            for stream, retention_us in self._queries.retentions_us(docid).items()
        }

    def figures(self) -> dict[str, int]:
        """Return how much the join remembers: see `Processor.figures`."""
        return self._processor.figures()

    def first_point(self, missing: Missing) -> int | None:
        """Return the lowest registration point of the queries that need any of what is missing."""
        return self._queries.first_point(missing)

    def evaluate(self, documents: Iterable[Document]) -> pa.Table:
        """Return the witnesses of documents: stage 1, in this process."""
        parts = in_sub_batches(
            documents, lambda document: len(document.xml), self._limits.characters
        )
        batches = evaluate_batches(self.plan, map(documents_as_rows, parts), self._limits.evaluator)
        return pa.Table.from_batches(batches, WITNESS_SCHEMA)

    def process(
        self, witnesses: pa.Table, documents: Documents, published: Iterable[Document] = ()
    ) -> StepResult:
        """Join a batch with everything remembered, and remember it.

        `published` are the documents that have been published before, at positions in the batch.
        """
        parts = self._in_parts(witnesses, published)
        return StepResult.of_parts([self._process(part, documents, own) for part, own in parts])

    def _process(
        self, witnesses: pa.Table, documents: Documents, published: Sequence[Document]
    ) -> StepResult:
        self._catch_up(witnesses)
        # Pauses that absorbed documents brought about hold from the next document on.
        first = self._absorption.last_docid + 1
        self._balances.postpone(max(first, pc.min(witnesses.column("docid")).as_py() or 0))
        batch = self._begin(documents)
        dead, spent = self._run(witnesses, batch, published)
        # What a query that is paused has noted is forgotten with it.
        notes = batch.giving.notes()
        self._evict()
        return StepResult(
            sorted(batch.matches),
            batch.published,
            dead,
            self._balances.pauses(),
            spent,
            batch.versions.keep(),
            notes,
            self._horizon_us(),
            batch.acting.waves,
        )

    def absorb(
        self, witnesses: pa.Table, documents: Documents, published: Iterable[Document] = ()
    ) -> None:
        """Remember a batch whose matches are known already, and the documents that they published.

        `published` may leave out documents that the present queries publish again.  A query that
        goes over its budget here is paused with the next batch that is processed.
        """
        for part, own in self._in_parts(witnesses, published):
            self._run(part, self._begin(documents, is_known=True), own)
            self._evict()

    def _in_parts(
        self, witnesses: pa.Table, published: Iterable[Document]
    ) -> Iterator[tuple[pa.Table, Sequence[Document]]]:
        """Yield a batch in parts that make as many rows as are made at a time; mostly it is one."""
        *parts, last = self._asked_rows.parts(witnesses)
        remaining = [*published]
        for part in parts:
            through = part.column("docid")[-1].as_py()
            yield part, [each for each in remaining if each.docid <= through]
            remaining = [each for each in remaining if each.docid > through]
        yield last, remaining

    def warm_up(self) -> None:
        """Have what was absorbed where the next batch needs it."""
        self._processor.warm_up()

    def _catch_up(self, witnesses: pa.Table) -> None:
        """Decide what was settled by documents that were left out when the rest was absorbed."""
        if not witnesses.num_rows:
            return
        docid, watermark_us = (witnesses.column(n)[0].as_py() for n in ("docid", "watermark_us"))
        if self._processor.is_behind(watermark_us):
            batch = self._begin(lambda docids: {}, is_known=True)
            self._processor.advance(*np.array([[docid - 1], [watermark_us], [watermark_us]]))
            self._leave_out_unread()
            for stratum in self._processor.strata:
                self._probe(stratum, batch)
            batch.accounts.settle(self._absorption.last_docid, self._horizon_us())

    def resume(
        self,
        spent: Iterable[Spent],
        rows: Iterable[RowChange] = (),
        notes: Iterable[Note] = (),
    ) -> None:
        """Take over what queries have spent in the last block of documents, rows of tables, notes.

        To be called between two batches.
        """
        self._outcomes.restore(notes)
        self._balances.resume(spent)
        self._tables.restore(rows)

    @property
    def tables(self) -> Tables:
        """The tables, to be read between two batches."""
        return self._tables

    def _begin(self, documents: Documents, *, is_known: bool = False) -> MatchingBatch:
        self._processor.begin_batch()
        long = self._limits.shared_characters
        accounts = Accounts(self._balances, is_known=is_known)
        gathered = Gathered(long, self._processor.documents_of)
        trees = Trees(partial(self._texts, documents), self._limits.trees)
        giving = Giving(self._outcomes, accounts, gathered, self._absorption.rows_of, trees.tree)
        judging = Judging(giving)
        candidates = RuleCandidates(long, gathered, judging)
        for query in self._queries.creating():
            assert query.table is not None
            self._tables.define(query.table)
        versions = self._tables.begin_batch()
        acting = Acting(
            versions,
            self._queries,
            accounts,
            candidates,
            judging,
            self._absorption.leaves,
            self._schedule,
            self._trace,
        )
        return MatchingBatch(
            documents, trees, accounts, candidates, gathered, versions, acting, giving
        )

    def _run(
        self, witnesses: pa.Table, batch: MatchingBatch, published: Sequence[Document]
    ) -> tuple[list[tuple[int, str]], Sequence[Spent]]:
        """Run a batch; return the documents that could not be read, and what queries have spent."""
        dead = self._absorption.witnesses(witnesses)
        self._absorb_published([d for d in published if self._queries.is_read(d.stream)])
        if batch.is_known:
            self._leave_out_unread()
        elif self._finishing is not None and not self._absorption.is_much:
            self._finishing.begin(self._queries.fan_out, batch.take, batch.documents)
        if not batch.is_known or self._queries.must_probe:
            # What is made for queries that have come stays as long as they do.
            with without_collecting() if self._has_news else nullcontext():
                for stratum in self._processor.strata:
                    self._probe(stratum, batch)
            self._has_news = False
        return dead, batch.accounts.settle(self._absorption.last_docid, self._horizon_us())

    def _leave_out_unread(self) -> None:
        """Limit the classes whose tuples no other operator reads to no document at all."""
        for number in self._queries.unread_classes():
            self._processor.limit(number, 0)

    def _probe(self, stratum: int, batch: MatchingBatch) -> None:
        accounts, absorption = batch.accounts, self._absorption
        collector = Collector(
            accounts,
            self._processor.tuple_shapes,
            batch.candidates,
            batch.gathered,
            long=self._limits.shared_characters,
            held_pairs=self._limits.held_pairs,
            plain_tuples=self._limits.plain_tuples,
        )
        accounts.begin_tuples(stratum)
        fan_out, most = self._queries.fan_out, self._limits.tuples
        found = self._processor.ends(stratum, fan_out.uses_of_ends)
        of_classes = (EndHits.of(ends, fan_out.uses_of_ends(number)) for number, ends in found)
        for parts in in_sub_batches(of_classes, len, most):
            accounts.stop_overrun()
            collector.take_ends(ClassEnds.of(parts))
            accounts.close()
        tuples = self._processor.tuples(stratum)
        for number, part in enumerate(in_tables(tuples, most, self._limits.read_bytes)):
            accounts.stop_overrun()
            for some in absorption.in_sub_batches(part):
                points = absorption.points(some)
                if number == 0 and len(some) == len(part) < most:
                    points = collector.take_blocks(points, fan_out)
                for hits in fan_out.expand(points) if len(points) else ():
                    collector.take(hits)
            accounts.close()
        accounts.stop_overrun()
        accounts.close()
        absorption.rows(collector.inner(self._limits.characters))
        accounts.begin_matches(stratum)
        build = partial(self._build, batch)
        self._keep(build(collector.matches, collector.leaves), batch)
        for made in batch.acting.run(stratum, build):
            self._keep(made, batch)
        for made in batch.giving.give(stratum, build):
            self._keep(made, batch)

    def _build(
        self, batch: MatchingBatch, found: MatchRows, leaves: dict[int, Leaf]
    ) -> BuiltMatches:
        """Make matches of the tuples of roots, and documents of the matches that are published.

        `leaves` are the documents that have been read for tuples.
        """
        leaves |= self._absorption.leaves(set(found.leaves().tolist()) - leaves.keys())
        is_wanted = partial(self._is_wanted, batch)
        builder = MatchBuilder(leaves, batch.trees, is_wanted, self._limits.made_bytes)
        rows = found.rows(batch.accounts.limit_of)
        return builder.build(rows, found.readers, batch.accounts)

    def _keep(self, made: BuiltMatches, batch: MatchingBatch) -> None:
        """Keep matches and remember the documents that they publish, as far as budgets go."""
        limits = {name: batch.accounts.limit_of(name) for name in {row.query for row in made.rows}}
        # What a match costs is known when it is made: then its document may be one too many.
        batch.matches += [row for row in made.rows if row.position < limits[row.query]]
        news = [
            document
            for row, document in made.published
            if row.position < limits[row.query] and self._is_news(row, document.stream)
        ]
        batch.published += news
        self._absorb_published(news)

    def _is_wanted(self, batch: MatchingBatch, stream: str, match_id: str) -> bool:
        """Return whether a match has to be made: not where it and its document are known."""
        return not (batch.is_known and self._publications.has(stream, match_id))

    def _is_news(self, match: FoundMatch, stream: str) -> bool:
        """Return whether a match publishes a document that is not there yet.

        A query publishes nothing while it is paused.  The documents that it published in an earlier
        life are known.
        """
        is_known = self._publications.has(stream, match.id)
        return not is_known and match.position > self._queries.paused_through(match.query)

    def _absorb_published(self, documents: Sequence[Document]) -> None:
        if documents:
            self._publications.add(documents)
            self._absorption.witnesses(self.evaluate(documents), documents)

    def _texts(self, documents: Documents, leaves: Sequence[Leaf]) -> Sequence[bytes]:
        """Return the texts of documents, from outside or published."""
        found = documents([leaf.docid for leaf in leaves if not leaf.match_id])
        return [
            self._publications.xml(leaf.stream, leaf.key) if leaf.match_id else found[leaf.docid]
            for leaf in leaves
        ]

    def _horizon_us(self) -> int:
        """Return the event time from which windows reach back (semantics, section 1.1)."""
        return self._absorption.watermark_us - self._lateness_us

    def _evict(self) -> None:
        horizon_us, watermark_us = self._horizon_us(), self._absorption.watermark_us
        self._processor.evict(horizon_us)
        self._outcomes.forget(watermark_us)
        self._absorption.forget(self.horizon_us(watermark_us))
        self._publications.forget(horizon_us, self._queries.kept_us)
