"""The clauses of the language that stand in documents and registrations, not in queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from oracle import number_documents
from oracle.tree import is_well_formed
from support.kit import Case
from support.runners import run_oracle

from broker.documents.document import Document, DocumentLine
from broker.matching.match import Match
from xscl.query import INFINITE_US

__all__ = ["CASE_CLAUSES", "CaseClause"]


@dataclass(frozen=True, slots=True)
class CaseClause:
    """A clause of documents and registration: the case without it, the very same if it has none.

    Where it cannot be taken out, `shows` tells from the matches whether it decides.
    """

    name: str
    without: Callable[[Case], Case] | None = None
    shows: Callable[[Case, Sequence[Match]], bool] = lambda case, matches: False


def _with_lines(case: Case, change: Callable[[DocumentLine], DocumentLine]) -> Case:
    return replace(case, lines=[change(line) for line in case.lines])


def _earlier_without_time(line: DocumentLine) -> DocumentLine:
    if line.time_us is not None or line.arrival_us is None:
        return line
    return replace(line, time_us=line.arrival_us - 1_800_000_000)


def _arriving_with_the_first(case: Case) -> Case:
    """Return a case in which what has no time at all has the first one that stands on a line."""
    times = (line.time_us or line.arrival_us for line in case.lines)
    first_us = next((time_us for time_us in times if time_us is not None), None)
    return _with_lines(
        case,
        lambda line: (
            replace(line, arrival_us=first_us)
            if line.time_us is None and line.arrival_us is None
            else line
        ),
    )


def _forgotten(condition: Callable[[Match], bool]) -> Callable[[Case, Sequence[Match]], bool]:
    """Return what tells whether a match is lacking only because a document came too late."""

    def shows(case: Case, matches: Sequence[Match]) -> bool:
        found = {match.id for match in matches}
        remembering = run_oracle(replace(case, lateness_us=INFINITE_US // 4))
        return any(condition(match) for match in remembering if match.id not in found)

    return shows


def _any(condition: Callable[[Match], bool]) -> Callable[[Case, Sequence[Match]], bool]:
    return lambda case, matches: any(map(condition, matches))


def _docids(match: Match) -> list[int]:
    return [document.docid for document in match.documents]


def _joins_of_one_docid(match: Match) -> bool:
    return len(match.documents) > len(set(_docids(match)))


def _reads_published(match: Match) -> bool:
    return len(match.documents) > 1 and any(d.stream.startswith("P") for d in match.documents)


def _on_both_sides(case: Case, matches: Sequence[Match]) -> bool:
    """Return whether a document stands on the left in one match of a query, right in another."""
    sides = {
        (match.query, document.docid, index)
        for match in matches
        if len(match.documents) == 2
        for index, document in enumerate(match.documents)
    }
    return any((query, docid, 1 - index) in sides for query, docid, index in sides)


def _found_late(case: Case, matches: Sequence[Match]) -> bool:
    """Return whether a document that comes later than the allowed lateness finds a partner."""
    late = {
        document.docid
        for document in number_documents(case.lines)
        if document.end_us < document.watermark_us - case.lateness_us
    }
    return any(len(match.documents) > 1 and max(_docids(match)) in late for match in matches)


def _under_two_assignments(case: Case, matches: Sequence[Match]) -> bool:
    found = [(match.query, _docids(match), match.roots) for match in matches if match.parameters]
    ids = {match.id for match in matches if match.parameters}
    return len(ids) > len({str(each) for each in found})


def _in_match(condition: Callable[[Document], bool]) -> Callable[[Case, Sequence[Match]], bool]:
    """Return what tells whether a document that meets a condition is part of a match."""

    def shows(case: Case, matches: Sequence[Match]) -> bool:
        wanted = {each.docid for each in number_documents(case.lines) if condition(each)}
        return any(each.docid in wanted for match in matches for each in match.documents)

    return shows


def _beside_rubbish(case: Case, matches: Sequence[Match]) -> bool:
    return bool(matches) and not all(is_well_formed(line.xml) for line in case.lines)


def _against_arrival(case: Case, matches: Sequence[Match]) -> bool:
    return any(
        earlier.docid > later.docid
        for match in matches
        for earlier, later in pairwise(sorted(match.documents, key=lambda each: each.time_us))
    )


CASE_CLAUSES = (
    CaseClause(
        "1 the same document again",
        shows=lambda case, found: (
            len(number_documents(case.lines)) < len(case.lines) and bool(found)
        ),
    ),
    CaseClause("1 revision of a document", shows=_in_match(lambda d: "#" in d.key)),
    CaseClause("1 document that is not XML", shows=_beside_rubbish),
    CaseClause("1.1 found against the order of arrival", shows=_against_arrival),
    CaseClause("1.1 no usable time", lambda case: _with_lines(case, _earlier_without_time)),
    CaseClause("1.1 neither time nor arrival", _arriving_with_the_first),
    CaseClause(
        "1.1 forgotten: the left", shows=_forgotten(lambda m: _docids(m) == sorted(_docids(m)))
    ),
    CaseClause(
        "1.1 forgotten: the right", shows=_forgotten(lambda m: _docids(m) != sorted(_docids(m)))
    ),
    CaseClause("1.1 forgotten: an inner match", shows=_forgotten(lambda m: len(m.documents) > 2)),
    CaseClause("1.1 forgotten: what was published", shows=_forgotten(_reads_published)),
    CaseClause("1.1 found by what is later than A", shows=_found_late),
    CaseClause("1.1 documents of one docid join", shows=_any(_joins_of_one_docid)),
    CaseClause(
        "4 JOIN of equal times",
        shows=_any(lambda m: len(m.documents) > 1 and m.start_us == m.end_us),
    ),
    CaseClause("4 one document on either side", shows=_on_both_sides),
    CaseClause(
        "4 OR: witnesses of several alternatives",
        shows=_any(lambda m: len({frozenset(witness) for witness in m.witnesses}) > 1),
    ),
    CaseClause("6 several witness tuples", shows=_any(lambda m: len(m.witnesses) > 1)),
    CaseClause(
        "6 the one empty tuple",
        shows=_any(lambda m: len(m.documents) > 1 and m.witnesses == ({},)),
    ),
    CaseClause("6 more than 1,000 witness tuples", shows=_any(lambda m: m.witnesses_omitted > 0)),
    CaseClause("6 matches of two assignments", shows=_under_two_assignments),
    CaseClause("6 constructor that fails", shows=_any(lambda m: m.output_error is not None)),
    CaseClause("7 registration point", lambda case: replace(case, registered={})),
)
