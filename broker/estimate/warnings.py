"""What the author of a query is warned of, once its cost is estimated.

A query is a **bomb** where a document meets so many partners that most work is in vain, as in a
join on a language.  Its warning names the value that does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from broker.documents.late import spell_late
from broker.estimate.interval import Interval
from broker.estimate.model import INFINITE_AS_US, OperatorEstimate
from broker.estimate.statistics import DAY_US, DocumentSample
from broker.estimate.text import spell_number
from broker.explain.model import QueryView
from broker.matching.costs.budget import Budget
from xscl.durations import render_duration

__all__ = ["PARTNERS_MAX", "warnings"]

PARTNERS_MAX = 100
"""Partners of a document by the anchor beyond which a query is a bomb.

Of 70,110 real items joined within a day, one has 0.18 partners by title, 2.1 by author, 2,100 by
language.
"""

MATCHES_PER_DAY_MAX = 100_000
"""Matches a day beyond which nobody reads them: more than one a second."""

PAIRS_MIN = 10
"""Pairs of the sample that warn of what it costs: a few equal values among rare ones are chance,
and would be multiplied by however much longer than the sample the window is."""

LATE_SHARE_MIN = 0.05
"""The share of documents that came too late from which on it is warned of; a few always do."""

_UNITS_US = (DAY_US, 3_600_000_000, 60_000_000, 1_000_000)


def warnings(
    view: QueryView,
    operators: Sequence[OperatorEstimate],
    matches: Interval | None,
    sample: DocumentSample,
    unseen: Sequence[str],
    late: Mapping[str, Any] | None,
    budget: Budget,
) -> Iterator[str]:
    """Yield what is wrong with a query, or with the sample that speaks of it.

    `matches` are those of as many documents as the sample has.  `unseen` are streams of the query
    that it has no documents of; `late` tells of documents that came too late for the query.
    """
    for stream in unseen:
        yield f"none of the documents is of the stream `{stream}`: matches are not estimated"
    if late and late["documents"] >= LATE_SHARE_MIN * len(sample.documents):
        yield spell_late(late, f"of the {len(sample.documents):,} documents")
    has_few = any(one.partners and one.sampled < PAIRS_MIN for one in operators)
    if not has_few:
        yield from _over_budget(view, operators, matches, sample, budget)
    for one in operators:
        if one.partners > PARTNERS_MAX and one.sampled >= PAIRS_MIN:
            yield _bomb(one)
        if one.is_unbounded:
            text = f"{one.text}: nothing is forgotten"
            if one.remembered is not None:
                text += (
                    f"; after {INFINITE_AS_US // DAY_US} days about {one.remembered:,} documents"
                    " are remembered, and it goes on"
                )
            yield text
    per_day = None if matches is None else sample.per_day(matches.expected)
    if per_day is not None and per_day > MATCHES_PER_DAY_MAX and not has_few:
        yield f"about {spell_number(per_day)} matches a day: nobody reads them"


def _over_budget(
    view: QueryView,
    operators: Sequence[OperatorEstimate],
    matches: Interval | None,
    sample: DocumentSample,
    budget: Budget,
) -> Iterator[str]:
    """Warn where so many pairs or matches would pause the query, and say what would do."""
    for one in operators:
        most = budget.pairs_per_document
        if most and one.partners > most:
            yield (
                f"it would be paused: each document makes about {spell_number(one.partners)} pairs,"
                f" and budget.pairs_per_document is {most:,}"
                f"{_narrower(view, most / one.partners)}"
            )
    each = matches.expected / max(1, len(sample.documents)) if matches is not None else 0.0
    for name, documents in (("matches_per_document", 1), ("matches_per_1000_documents", 1_000)):
        most = getattr(budget, name)
        if most and each * documents > most:
            found = each * documents
            yield (
                f"it would be paused: about {spell_number(found)} matches in {documents:,}"
                f" document{'s' if documents > 1 else ''}, and budget.{name} is {most:,}"
                f"{_narrower(view, most / found)}"
            )


def _narrower(view: QueryView, share: float) -> str:
    """Return a hint at a window of some share of the query's own, where it has one window."""
    operators = [clause for clause in view.clauses() if clause.is_join]
    if len(operators) != 1 or operators[0].window.startswith("$"):
        return ""
    length_us = int(min(operators[0].window_us, INFINITE_AS_US) * share)
    unit_us = next((unit for unit in _UNITS_US if unit <= length_us), None)
    if unit_us is None:
        return ""
    return f"; a window of {render_duration(length_us // unit_us * unit_us)} would do"


def _bomb(one: OperatorEstimate) -> str:
    text = f"{one.text}: each document meets about {spell_number(one.partners)} others"
    anchor = next((join for join in one.joins if join.text == one.anchor), None)
    if anchor is None:
        return f"{text}, because there is no value join: add an equality, or shorten the window"
    if anchor.commonest is None:
        return f"{text} by `{anchor.text}`: raise the threshold, or add an equality"
    return (
        f"{text} by `{anchor.text}`, its most selective value join: '{anchor.commonest}' is on"
        f" {anchor.commonest_share:.0%} of them; join on something rarer as well"
    )
