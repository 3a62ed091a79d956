"""What a query will cost, and how often it will match, from a sample of recent documents.

For each operator every value join's pairs are counted in the sample; the one with the fewest is
the **anchor**.  Without one it is the similarity join that pairs.  Where a query has two blocks,
some of the anchor's pairs are held against all else that the operator asks, which gives the share
that matches.  For an operator over other operators the pairs are those of its blocks' documents, an
upper bound that is told as what it is: no matches.
What is decided is decided on the sample (`decided`).

Pairs and matches are counted for as many documents as the sample has; how many those are a day is
another question, which a sample that is too small, or a backlog, does not answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from broker.documents.document import Document
from broker.documents.late import Newest, late_data
from broker.estimate.alike import THRESHOLD, similar_values
from broker.estimate.decided import matches_of
from broker.estimate.grace import proposed_grace
from broker.estimate.interval import Interval, heaps, poisson, share, total
from broker.estimate.model import INFINITE_AS_US, JoinEstimate, OperatorEstimate, QueryEstimate
from broker.estimate.statistics import (
    DAY_US,
    DocumentSample,
    Meetings,
    Occurrences,
    Timing,
    equal_values,
    take_sample,
)
from broker.estimate.warnings import warnings
from broker.explain.decisiontext import spell_decision
from broker.explain.model import (
    ClauseView,
    ComparisonKind,
    ComparisonView,
    DecisionView,
    QueryView,
    SideView,
    Survey,
)
from broker.explain.spelling import ParameterText
from broker.explain.survey import stand_ins, survey_with_plan
from broker.matching.costs.budget import DEFAULT_BUDGET, Budget
from broker.matching.lateness import Lateness
from broker.matching.queries.registration import RegisteredQuery, SetChange
from broker.whynot import why_not
from broker.whynot.attempts import Attempts
from broker.whynot.cells import without_tables
from templates.ordered import choices
from templates.plain import plain_statements
from xpath_eval.catalog import EvaluationPlan
from xscl.path import Parameter
from xscl.query import INFINITE_US, Operator, Query
from xscl.sequence import documents_of
from xscl.substitution import with_values

__all__ = ["estimate"]

EXAMPLES_MAX = 300
"""Pairs of the anchor that are held against the rest of the operator; a pair takes 1 ms."""

PARAMETER_AS_US = DAY_US
"""A window that subscriptions give is estimated as this long."""

_OVERHEAD_BYTES = 150


def estimate(
    queries: Sequence[Query],
    documents: Sequence[Document],
    *,
    lateness_us: int = DAY_US,
    budget: Budget = DEFAULT_BUDGET,
) -> list[QueryEstimate]:
    """Return an estimate for each query, from documents in the order of their arrival."""
    # What tables say is of all statements together: at most it lets every match pass.
    open_queries = [without_tables(query) for query in queries]
    found, plan = survey_with_plan(open_queries, lateness_us=lateness_us)
    sample = take_sample(_evaluated(plan, open_queries), documents)
    streams = {document.stream for document in documents}
    return [
        _with_tables(query, _Estimator(found, sample, streams, budget, own, view).estimate())
        for query, own, view in zip(queries, open_queries, found.queries, strict=True)
    ]


def _evaluated(plan: EvaluationPlan, queries: Sequence[Query]) -> EvaluationPlan:
    """Return a plan in whose conditions of XPath 1.0 something stands for each parameter."""
    values = {name: each for query in queries for name, each in stand_ins(query).items()}
    definitions = with_values(plan.definitions, values) if values else plan.definitions
    return replace(plan, definitions=definitions, definitions_digest=None)


def _with_tables(query: Query, found: QueryEstimate) -> QueryEstimate:
    """Return an estimate that says that the rows of tables were not asked."""
    if not query.guards:
        return found
    names = ", ".join(sorted(query.guards))
    text = f"an estimate does not ask the table {names}: there are so many matches at most"
    return replace(found, warnings=(*found.warnings, text))


@dataclass(frozen=True, slots=True)
class _Join:
    """What pairs: what is told of it, its pairs in the sample, and where its values meet."""

    estimate: JoinEstimate
    pairs: Interval
    sampled: int
    meetings: Meetings


@dataclass
class _Estimator:
    survey: Survey
    sample: DocumentSample
    streams: Set[str]
    budget: Budget
    query: Query
    view: QueryView

    def __post_init__(self) -> None:
        self.plain = plain_statements(self.query)

    def estimate(self) -> QueryEstimate:
        operators = [
            self._operator(number, clause)
            for view in self.view.readings
            for number, alternative in enumerate(view.alternatives, 1)
            for clause in alternative
            if clause.is_join
        ]
        roots = [o.matches for o in operators if o.operator == self._root()]
        known = [matches for matches in roots if matches is not None]
        matches = total(known) if len(known) == len(roots) and roots else None
        paused = ""
        if self.query.is_ordered or self.query.has_runs or self.query.has_chains:
            for view in self.view.readings:
                operators += map(self._decision, view.decisions)
            matches, paused = matches_of(
                self.query, self.sample.documents, self.survey.lateness_us, self.budget
            )
        elif not operators:
            matches = self._single_matches()
        unseen = sorted(self._unseen())
        if unseen:
            matches = None
        late = self._late()
        return QueryEstimate(
            self.query.id,
            len(self.sample.documents),
            self.sample.days,
            tuple(operators),
            self._interval_per_day(matches),
            self.sample.refusal,
            # Two operators may say the same.
            tuple(
                dict.fromkeys(
                    [
                        *([f"it would be paused: {paused}"] if paused else []),
                        *filter(None, [self._grace()]),
                        *warnings(
                            self.view, operators, matches, self.sample, unseen, late, self.budget
                        ),
                    ]
                )
            ),
        )

    def _grace(self) -> str | None:
        return proposed_grace(self.query, self.sample.documents, self.survey.lateness_us)

    def _decision(self, decision: DecisionView) -> OperatorEstimate:
        """Return what a decision remembers; its pairs are not told apart from its matches."""
        sides = [side for clause in self.view.clauses() for side in clause.sides]
        read = set[int]().union(
            *(self._documents(side) for side in sides if side.block is not None)
        )
        kept_us = min(decision.retention_us, INFINITE_AS_US) + self.survey.lateness_us
        per_day = self.sample.per_day(len(read))
        remembered = None if per_day is None else round(per_day * kept_us / DAY_US)
        return OperatorEstimate(
            alternative=1,
            operator=decision.number - 1,
            text=f"decision {decision.number}: {spell_decision(decision)}",
            joins=(),
            anchor=None,
            pairs_per_day=None,
            partners=0.0,
            sampled=0,
            matches=None,
            matches_per_day=None,
            remembered=remembered,
            bytes=remembered and remembered * _OVERHEAD_BYTES,
            is_unbounded=decision.is_unbounded,
            grace_us=0 if decision.is_open else decision.grace_us,
        )

    def _single_matches(self) -> Interval | None:
        """Return how many documents of the sample are matches by themselves."""
        clauses = [clause for alternative in self.view.alternatives for clause in alternative]
        found = {place for clause in clauses for place in self._documents(clause.sides[0])}
        if not any(clause.comparisons for clause in clauses):
            return poisson(len(found))
        if self.query.parameters:
            return None
        documents = [self.sample.documents[place] for place in found]
        asked = (why_not(self.query, [each], lateness_us=INFINITE_US) for each in documents)
        return poisson(sum(reason.holds for reason in asked))

    def _late(self) -> dict[str, Any] | None:
        """Return what is told of the documents that came too late for the query."""
        documents = self.sample.documents
        if not documents:
            return None
        lateness = Lateness(self.survey.lateness_us)
        lateness.follow(SetChange([RegisteredQuery(self.query)]))
        count = sum(lateness.is_too_late(d.stream, d.end_us, d.watermark_us) for d in documents)
        newest = max(documents, key=lambda document: document.end_us)
        return late_data(count, Newest(newest.end_us, newest.stream))

    def _interval_per_day(self, matches: Interval | None) -> Interval | None:
        days = self.sample.days
        return None if matches is None or days is None else matches * (1 / days)

    def _unseen(self) -> set[str]:
        """Return the streams of the query that the sample says nothing of."""
        if not self.sample.documents:
            return set()
        return {block.stream for block in self.query.blocks} - self.streams - {"*"}

    def _root(self) -> int:
        return len(list(self.query.operators())) - 1

    def _documents(self, side: SideView) -> set[int]:
        """Return the documents of the sample that fit a block, as far as one can see."""
        places: set[int] | None = None
        for node in side.nodes:
            if not node.survives:
                continue
            occurrences = self.sample.of(node.variable)
            own = set(occurrences.bound)
            for constant in node.constants:
                if isinstance(constant, ParameterText):
                    continue
                own &= set(occurrences.documents.get(constant, ()))
            places = own if places is None else places & own
        return places or set()

    def _operator(self, number: int, clause: ClauseView) -> OperatorEstimate:
        window_us = INFINITE_AS_US if clause.window_us >= INFINITE_US else clause.window_us
        is_given = clause.window.startswith("$")
        window_us = PARAMETER_AS_US if is_given else window_us
        timing = Timing(window_us, clause.kind == "JOIN")
        places = [
            self._documents(side) if side.block is not None else None for side in clause.sides
        ]
        joins = list(self._joins(clause, timing, places, "value join"))
        if not joins:
            joins = list(self._joins(clause, timing, places, "similarity"))[:1]
        anchor = min(joins, key=lambda join: join.pairs.expected, default=None)
        pairs = self._product(places, timing) if anchor is None else anchor.pairs
        kept_us = min(clause.retention_us, INFINITE_AS_US) + self.survey.lateness_us
        read = set[int]().union(*(p for p in places if p))
        per_day = self.sample.per_day(len(read))
        remembered = None if per_day is None else round(per_day * kept_us / DAY_US)
        most = max((len(p) for p in places if p), default=0)
        matches = self._matches(number, clause, anchor, timing, pairs)
        return OperatorEstimate(
            alternative=number,
            operator=clause.operator,
            text=f"{clause.kind} within {clause.window}" + (", as if 1 day" if is_given else ""),
            joins=tuple(join.estimate for join in joins),
            anchor=anchor.estimate.text if anchor else None,
            pairs_per_day=self.sample.per_day(pairs.expected),
            partners=pairs.expected / most if most else 0.0,
            sampled=round(pairs.expected) if anchor is None else anchor.sampled,
            matches=matches,
            matches_per_day=self._interval_per_day(matches),
            remembered=remembered,
            bytes=remembered and remembered * (_OVERHEAD_BYTES + self._characters(clause)),
            is_unbounded=clause.is_unbounded,
        )

    def _product(self, places: Sequence[set[int] | None], timing: Timing) -> Interval:
        """Return the pairs of an operator that nothing pairs: all within the window."""
        sizes = [len(p) if p else 0 for p in places]
        share = timing.window_us / self.sample.span_us if self.sample.span_us else 1.0
        each = max(sizes) * share * (2 if timing.is_symmetric else 1)
        return poisson(min(sizes)) * each

    def _joins(
        self,
        clause: ClauseView,
        timing: Timing,
        places: Sequence[set[int] | None],
        kind: ComparisonKind,
    ) -> Iterator[_Join]:
        for comparison in clause.comparisons:
            if comparison.kind != kind or len(comparison.ends) != len(clause.sides):
                continue
            sides: list[Occurrences] = []
            for side, node in comparison.ends:
                occurrences = self._of(clause, side, node)
                within = places[side]
                sides.append(occurrences if within is None else occurrences.restricted(within))
            found = self._join(comparison, timing, *sides)
            if found is not None:
                yield found

    def _join(
        self, comparison: ComparisonView, timing: Timing, left: Occurrences, right: Occurrences
    ) -> _Join | None:
        """Return what a comparison pairs; None if that cannot be counted."""
        text, times, commonest = comparison.text, 1.0, _commonest(left)
        if comparison.similar is None:
            meetings = equal_values(left, right)
        else:
            similar = similar_values(comparison.similar, left, right)
            if similar is None:
                return None
            meetings, times = similar
            commonest = (None, 0.0)
            if isinstance(comparison.similar.threshold, Parameter):
                text += f", as if {THRESHOLD[comparison.similar.measure]:g}"
        sampled = self.sample.pairs(meetings, timing)
        pairs = heaps(sampled.values()) * times * self.sample.unseen(timing.window_us)
        most = max(len(left.bound), len(right.bound))
        partners = pairs.expected / most if most else 0.0
        found = JoinEstimate(text, self.sample.per_day(pairs.expected), partners, *commonest)
        return _Join(found, pairs, sampled.total(), meetings)

    def _of(self, clause: ClauseView, side: int, node: int) -> Occurrences:
        """Return the occurrences of a node; of what an inner operator hands on, of its source."""
        view = clause.sides[side].nodes[node]
        if clause.sides[side].block is not None:
            return self.sample.of(view.variable)
        for other in self.view.clauses():
            for inner in (s for s in other.sides if s.block is not None):
                for each in inner.nodes:
                    if set(each.called) & set(view.called):
                        return self.sample.of(each.variable)
        return Occurrences()

    def _characters(self, clause: ClauseView) -> int:
        """Return the mean length of the values that are kept of a document."""
        total = 0
        for side in clause.sides:
            for node in (n for n in side.nodes if n.survives):
                occurrences = self.sample.of(node.variable)
                total += occurrences.characters // max(1, len(occurrences.bound))
        return total // len(clause.sides)

    def _matches(
        self,
        number: int,
        clause: ClauseView,
        anchor: _Join | None,
        timing: Timing,
        pairs: Interval,
    ) -> Interval | None:
        is_plain = documents_of(self.query.root) == 2 and not self.query.is_ordered
        if not is_plain or self.query.parameters:
            return None
        if len(clause.comparisons) == (0 if anchor is None else 1):
            return pairs
        meetings = anchor.meetings if anchor is not None else self._all_meet(clause)
        examples = self.sample.examples(meetings, timing, EXAMPLES_MAX)
        if not examples:
            return pairs
        alone = Attempts(self._alone(number), INFINITE_US, 0, lambda end_us: None)
        found = sum(any(each.holds for each in alone.reasons(pair)) for pair in examples)
        return pairs.within(share(found, len(examples)))

    def _all_meet(self, clause: ClauseView) -> Meetings:
        """Return that all documents of one side meet all those of the other."""
        left, right = (sorted(self._documents(side)) for side in clause.sides)
        return [(left, right)]

    def _alone(self, number: int) -> Query:
        """Return the plain statement of an alternative, with its one disjunct."""
        read = [(each, choice) for each in self.plain for choice in choices(each.root)]
        statement, choice = read[number - 1]
        root = statement.root
        assert isinstance(root, Operator)
        return replace(statement, root=replace(root, disjuncts=(choice[id(root)],)))


def _commonest(occurrences: Occurrences) -> tuple[str | None, float]:
    if not occurrences.documents:
        return None, 0.0
    value, places = max(occurrences.documents.items(), key=lambda item: (len(item[1]), item[0]))
    return value, len(places) / max(1, len(occurrences.bound))
