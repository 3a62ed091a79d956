"""What a query will cost, and how often it will match, from a sample of recent documents.

For each operator every value join's pairs are counted in the sample; the one with the fewest is
the **anchor**.  Where a query has two blocks, some of the anchor's pairs are held against all else
that the operator asks, which gives the share that matches.  For an operator over other operators
the pairs are those of its blocks' documents, an upper bound that is told as what it is: no matches.

A query is a **bomb** where a document meets so many partners that most work is in vain, as in a
join on a language.  Its warning names the values that do it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from broker.budget import DEFAULT_BUDGET, Budget
from broker.document import Document
from broker.explain.model import ClauseView, QueryView, SideView, Survey
from broker.explain.spelling import ParameterText
from broker.explain.survey import survey_with_plan
from broker.statistics import DAY_US, Occurrences, Sample, Timing, take_sample
from broker.whynot import why_not
from xscl.durations import render_duration
from xscl.query import INFINITE_US, Operator, Query

__all__ = [
    "JoinEstimate",
    "OperatorEstimate",
    "QueryEstimate",
    "estimate",
    "render_estimate",
]

PARTNERS_MAX = 100
"""Partners of a document by the anchor beyond which a query is a bomb.

Of 70,110 real items joined within a day, one has 0.18 partners by title, 2.1 by author, 2,100 by
language.
"""

MATCHES_PER_DAY_MAX = 100_000
"""Matches a day beyond which nobody reads them: more than one a second."""

EXAMPLES_MAX = 300
"""Pairs of the anchor that are held against the rest of the operator; a pair takes 1 ms."""

INFINITE_AS_US = 30 * DAY_US
"""An INF window is estimated as it is after this time; it grows on."""

PARAMETER_AS_US = DAY_US
"""A window that subscriptions give is estimated as this long."""

SAMPLE_MIN_US = DAY_US // 24
"""A shorter sample says little of a day, and that is told."""

_OVERHEAD_BYTES = 150

_UNITS_US = (DAY_US, 3_600_000_000, 60_000_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class JoinEstimate:
    """One value join: its pairs of equal values, and the value that makes the most of them."""

    text: str
    pairs_per_day: float
    partners: float
    commonest: str | None
    commonest_share: float


@dataclass(frozen=True, slots=True)
class OperatorEstimate:
    """One operator under one alternative.

    `partners` is how many candidates a document meets, by the anchor; `matches_per_day` is None
    where it was not estimated.  `remembered` documents take about `bytes`.
    """

    alternative: int
    operator: int
    text: str
    joins: tuple[JoinEstimate, ...]
    anchor: str | None
    pairs_per_day: float
    partners: float
    matches_per_day: float | None
    remembered: int
    bytes: int
    is_unbounded: bool


@dataclass(frozen=True, slots=True)
class QueryEstimate:
    """All of a query: its operators, what it matches a day, and warnings."""

    query: str
    documents: int
    days: float
    operators: tuple[OperatorEstimate, ...]
    matches_per_day: float | None
    warnings: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the estimate as plain values."""
        return {
            "query": self.query,
            "sample": {"documents": self.documents, "days": round(self.days, 3)},
            "matches_per_day": self.matches_per_day,
            "warnings": list(self.warnings),
            "operators": [
                {name: getattr(one, name) for name in one.__dataclass_fields__ if name != "joins"}
                | {
                    "joins": [
                        {name: getattr(join, name) for name in join.__dataclass_fields__}
                        for join in one.joins
                    ]
                }
                for one in self.operators
            ],
        }


def estimate(
    queries: Sequence[Query],
    documents: Sequence[Document],
    *,
    lateness_us: int = DAY_US,
    budget: Budget = DEFAULT_BUDGET,
) -> list[QueryEstimate]:
    """Return an estimate for each query, from documents in the order of their arrival."""
    found, plan = survey_with_plan(queries, lateness_us=lateness_us)
    sample = take_sample(plan, documents)
    return [
        _Estimator(found, sample, budget, query, view).estimate()
        for query, view in zip(queries, found.queries, strict=True)
    ]


@dataclass
class _Estimator:
    survey: Survey
    sample: Sample
    budget: Budget
    query: Query
    view: QueryView

    def estimate(self) -> QueryEstimate:
        operators = [
            self._operator(number, clause)
            for number, alternative in enumerate(self.view.alternatives, 1)
            for clause in alternative
            if clause.is_join
        ]
        roots = [o.matches_per_day for o in operators if o.operator == self._root()]
        known = [matches for matches in roots if matches is not None]
        total = sum(known) if len(known) == len(roots) and roots else None
        if not operators:
            total = self._documents_per_day(self.view.alternatives[0][0])
        return QueryEstimate(
            self.query.id,
            len(self.sample.documents),
            self.sample.days,
            tuple(operators),
            total,
            tuple(self._warnings(operators, total)),
        )

    def _root(self) -> int:
        return len(list(self.query.operators())) - 1

    def _documents_per_day(self, clause: ClauseView) -> float:
        places = self._documents(clause.sides[0])
        return len(places) / self.sample.days if self.sample.days else 0.0

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
        joins = list(self._joins(clause, timing, places))
        rates = [len(p) / self.sample.days if p and self.sample.days else 0.0 for p in places]
        anchor = min(joins, key=lambda join: join[0].pairs_per_day, default=None)
        if anchor is not None:
            pairs = anchor[0].pairs_per_day
        else:
            pairs = rates[0] * rates[1] * window_us / DAY_US * (2 if timing.is_symmetric else 1)
        kept_us = min(clause.reach_us, INFINITE_AS_US) + self.survey.lateness_us
        read = set[int]().union(*(p for p in places if p))
        remembered = round(len(read) / max(self.sample.days, 1e-9) * kept_us / DAY_US)
        return OperatorEstimate(
            alternative=number,
            operator=clause.operator,
            text=f"{clause.kind} within {clause.window}" + (", as if 1 day" if is_given else ""),
            joins=tuple(join for join, *_ in joins),
            anchor=anchor[0].text if anchor else None,
            pairs_per_day=pairs,
            partners=pairs / max(rates) if max(rates) else 0.0,
            matches_per_day=self._matches(number, clause, anchor, timing, pairs),
            remembered=remembered,
            bytes=remembered * (_OVERHEAD_BYTES + self._characters(clause)),
            is_unbounded=clause.is_unbounded,
        )

    def _joins(
        self, clause: ClauseView, timing: Timing, places: Sequence[set[int] | None]
    ) -> Iterator[tuple[JoinEstimate, Occurrences, Occurrences]]:
        for comparison in clause.comparisons:
            if not comparison.is_value_join:
                continue
            sides: list[Occurrences] = []
            for side, node in comparison.ends:
                occurrences = self._of(clause, side, node)
                within = places[side]
                sides.append(occurrences if within is None else occurrences.restricted(within))
            left, right = sides
            per_day = self.sample.per_day(self.sample.pairs(left, right, timing), timing.window_us)
            rate = max(len(left.bound), len(right.bound)) / max(self.sample.days, 1e-9)
            commonest, share = _commonest(left)
            partners = per_day / rate if rate else 0.0
            yield JoinEstimate(comparison.text, per_day, partners, commonest, share), left, right

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
        anchor: tuple[JoinEstimate, Occurrences, Occurrences] | None,
        timing: Timing,
        pairs: float,
    ) -> float | None:
        if len(self.query.blocks) != 2 or self.query.parameters:
            return None
        if anchor is None:
            return pairs if not clause.comparisons else None
        if len(clause.comparisons) == 1:
            return pairs
        examples = self.sample.examples(anchor[1], anchor[2], timing, EXAMPLES_MAX)
        if not examples:
            return 0.0
        alone = self._alone(number)
        found = sum(why_not(alone, pair, lateness_us=INFINITE_US).holds for pair in examples)
        return pairs * found / len(examples)

    def _alone(self, number: int) -> Query:
        """Return the query with the one disjunct of an alternative."""
        root = self.query.root
        assert isinstance(root, Operator)
        choices = list(product(*(operator.disjuncts for operator in self.query.operators())))
        return replace(self.query, root=replace(root, disjuncts=choices[number - 1]))

    def _warnings(
        self, operators: Sequence[OperatorEstimate], matches: float | None
    ) -> Iterator[str]:
        if 0 < self.sample.span_us < SAMPLE_MIN_US:
            minutes = self.sample.span_us / 60_000_000
            yield f"the documents are of {minutes:.0f} minutes: what is said of a day is a guess"
        yield from self._over_budget(operators, matches)
        for one in operators:
            if one.partners > PARTNERS_MAX:
                yield _bomb(one)
            if one.is_unbounded:
                yield (
                    f"{one.text}: nothing is forgotten; after {INFINITE_AS_US // DAY_US} days about"
                    f" {one.remembered:,} documents are remembered, and it goes on"
                )
        if matches is not None and matches > MATCHES_PER_DAY_MAX:
            yield f"about {_number(matches)} matches a day: nobody reads them"

    def _over_budget(
        self, operators: Sequence[OperatorEstimate], matches: float | None
    ) -> Iterator[str]:
        """Warn where so many pairs or matches would pause the query, and say what would do."""
        for one in operators:
            most = self.budget.pairs_per_document
            if most and one.partners > most:
                yield (
                    f"it would be paused: each document makes about {_number(one.partners)} pairs,"
                    f" and budget.pairs_per_document is {most:,}"
                    f"{self._narrower(most / one.partners)}"
                )
        rate = len(self.sample.documents) / self.sample.days if self.sample.days else 0.0
        each = matches / rate if matches is not None and rate else 0.0
        for name, documents in (("matches_per_document", 1), ("matches_per_1000_documents", 1_000)):
            most = getattr(self.budget, name)
            if most and each * documents > most:
                found = each * documents
                yield (
                    f"it would be paused: about {_number(found)} matches in {documents:,}"
                    f" document{'s' if documents > 1 else ''}, and budget.{name} is {most:,}"
                    f"{self._narrower(most / found)}"
                )

    def _narrower(self, share: float) -> str:
        """Return a hint at a window of some share of the query's own, where it has one window."""
        operators = [c for clauses in self.view.alternatives for c in clauses if c.is_join]
        if len(operators) != 1 or operators[0].window.startswith("$"):
            return ""
        length_us = int(min(operators[0].window_us, INFINITE_AS_US) * share)
        unit_us = next((unit for unit in _UNITS_US if unit <= length_us), None)
        if unit_us is None:
            return ""
        return f"; a window of {render_duration(length_us // unit_us * unit_us)} would do"


def _commonest(occurrences: Occurrences) -> tuple[str | None, float]:
    if not occurrences.documents:
        return None, 0.0
    value, places = max(occurrences.documents.items(), key=lambda item: (len(item[1]), item[0]))
    return value, len(places) / max(1, len(occurrences.bound))


def _bomb(one: OperatorEstimate) -> str:
    text = f"{one.text}: each document meets about {_number(one.partners)} others"
    anchor = next((join for join in one.joins if join.text == one.anchor), None)
    if anchor is None:
        return f"{text}, because there is no value join: add an equality, or shorten the window"
    return (
        f"{text} by `{anchor.text}`, its most selective value join: '{anchor.commonest}' is on"
        f" {anchor.commonest_share:.0%} of them; join on something rarer as well"
    )


def render_estimate(found: QueryEstimate) -> str:
    """Return an estimate as text."""
    matches = "matches not estimated"
    if found.matches_per_day is not None:
        matches = f"about {_number(found.matches_per_day)} matches a day"
    lines = [
        f"{found.query}: {matches} (from {found.documents:,} documents, {found.days:.1f} days)"
    ]
    several = len({one.alternative for one in found.operators}) > 1
    for one in found.operators:
        which = f"alternative {one.alternative}, " if several else ""
        lines.append(f"  {which}{one.text}: remembers {one.remembered:,} documents, {_size(one)}")
        for join in one.joins:
            role = "anchor" if join.text == one.anchor else "join  "
            lines.append(
                f"    {role}  {join.text}: {_number(join.pairs_per_day)} pairs a day,"
                f" {_number(join.partners)} for each document"
            )
        if not one.joins:
            lines.append(f"    no value join: {_number(one.pairs_per_day)} pairs a day")
    lines += [f"  warning: {text}" for text in found.warnings]
    return "\n".join(lines) + "\n"


def _size(one: OperatorEstimate) -> str:
    return f"{one.bytes / 1e6:,.1f} MB" if one.bytes >= 100_000 else f"{one.bytes / 1e3:,.1f} kB"


def _number(value: float) -> str:
    """Return a number with two digits that count.

    >>> _number(1234.5), _number(0.0312), _number(0)
    ('1,200', '0.031', '0')
    """
    if not value:
        return "0"
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"
