"""How often which values occur in recent documents, and how many pairs a value join makes of them.

A sample is made for given queries: their patterns are evaluated on the documents, and for every
variable that some query compares the values are kept with their documents and times.  Pairs are
then counted, not guessed: values of real feeds repeat in bursts, so that products of mean rates
are wrong by orders of magnitude.

Two corrections, both for documents whose event times span D, and a window T.  The documents at the
start of a sample find partners only since then, so that a count with T <= D sees the share
`1 - T / 2D`; for a longer window the count with D is scaled by `2T / D`.

How many documents come a day is a matter of arrivals, and of documents that arrived about when they
were published: a backlog that is read in a minute says nothing of a day.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from broker.documents.document import Document
from broker.documents.segment import documents_as_rows
from xpath_eval.catalog import EvaluationPlan
from xpath_eval.stage import evaluate_batches

__all__ = [
    "DAY_US",
    "DOCUMENTS_MIN",
    "DocumentSample",
    "Meetings",
    "Occurrences",
    "Timing",
    "equal_values",
    "take_sample",
]

DAY_US = 86_400_000_000
_BATCH_DOCUMENTS = 2_000
_MS_US = 1_000
_STRAY = 0.02
"""The share of documents at either end whose times are not trusted to be those of the rest."""

LIVE_US = DAY_US
"""How long after its event time a document may arrive to be taken for one of the day."""

DOCUMENTS_MIN = 30
SAMPLE_MIN_US = DAY_US // 24
"""Of fewer documents, or of ones that arrived within a shorter time, nothing is said of a day."""

Times = npt.NDArray[np.int64]


@dataclass(slots=True)
class Occurrences:
    """Where a variable's values occur: the document (by its place in the sample) of each value."""

    documents: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    bound: set[int] = field(default_factory=set)
    characters: int = 0

    def restricted(self, documents: set[int]) -> Occurrences:
        """Return the occurrences in some documents alone."""
        kept = {
            value: places
            for value, all_places in self.documents.items()
            if (places := [place for place in all_places if place in documents])
        }
        return Occurrences(defaultdict(list, kept), self.bound & documents, self.characters)


Meetings = Sequence[tuple[list[int], list[int]]]
"""Left and right documents, by their places, that have values by which they meet."""


def equal_values(left: Occurrences, right: Occurrences) -> Meetings:
    """Return where equal values are."""
    return [
        (places, right.documents[value])
        for value, places in left.documents.items()
        if value in right.documents
    ]


@dataclass(frozen=True, slots=True)
class Timing:
    """Which pairs of times join: within a window, and in order unless it is symmetric."""

    window_us: int
    is_symmetric: bool


@dataclass(slots=True)
class DocumentSample:
    """Recent documents as given queries see them.

    `span_us` is the event time that they cover, `days` the time in which so many arrive; where that
    is unknown it is None, and `refusal` says why.
    """

    documents: Sequence[Document]
    variables: Mapping[int, Occurrences]
    span_us: int
    days: float | None = None
    refusal: str = ""

    def of(self, variable: int) -> Occurrences:
        """Return the occurrences of a variable; none where no document binds it."""
        return self.variables.get(variable, Occurrences())

    def pairs(self, meetings: Meetings, timing: Timing) -> Counter[int]:
        """Return how many (left, right) pairs of documents meet, by the left document."""
        found: Counter[int] = Counter()
        for places, others in meetings:
            counts = self._pairs_of_value(places, others, timing)
            for place, count in zip(places, counts.tolist(), strict=True):
                found[place] += count
        return found

    def _pairs_of_value(self, left: list[int], right: list[int], timing: Timing) -> Times:
        starts, ends = self._times(left), np.sort(self._times(right))
        window = min(timing.window_us, 1 << 60) // _MS_US
        until = np.searchsorted(ends, starts + window, "right")
        if timing.is_symmetric:
            since = np.searchsorted(ends, starts - window, "left")
            return until - since - np.isin(left, right)
        return until - np.searchsorted(ends, starts, "right")

    def _times(self, places: Iterable[int]) -> Times:
        return np.array([self.documents[i].end_us // _MS_US for i in places], np.int64)

    def unseen(self, window_us: int) -> float:
        """Return how many pairs within a window there are for each that the sample has."""
        if not self.span_us:
            return 1.0
        share = window_us / self.span_us
        return 1 / (1 - share / 2) if share <= 1 else 2 * share

    def per_day(self, count: float) -> float | None:
        """Return the number a day of what the sample has `count` times."""
        return None if self.days is None else count / self.days

    def examples(
        self, meetings: Meetings, timing: Timing, limit: int
    ) -> list[tuple[Document, Document]]:
        """Return up to `limit` pairs, evenly from the whole sample."""
        counts = [self._pairs_of_value(*each, timing) for each in meetings]
        if not counts or not (total := sum(int(each.sum()) for each in counts)):
            return []
        step = max(1, total // limit)
        ends = np.cumsum(np.concatenate(counts))
        lefts = [(number, place) for number, (left, _) in enumerate(meetings) for place in left]
        wanted = np.arange(0, min(total, step * limit), step)
        rows = np.searchsorted(ends, wanted, "right")
        before = wanted - ends[rows] + np.concatenate(counts)[rows]
        times: dict[int, Times] = {}
        found = []
        for row, rank in zip(rows.tolist(), before.tolist(), strict=True):
            number, place = lefts[row]
            right = meetings[number][1]
            if number not in times:
                times = {number: self._times(right)}
            partner = right[self._partners(place, right, times[number], timing)[rank]]
            found.append((self.documents[place], self.documents[partner]))
        return found

    def _partners(self, place: int, right: list[int], ends: Times, timing: Timing) -> Times:
        """Return at which places of `right`, whose ends are given, partners are."""
        start, window = self._times([place])[0], min(timing.window_us, 1 << 60) // _MS_US
        is_partner = ends <= start + window
        if timing.is_symmetric:
            is_partner &= (ends >= start - window) & (np.array(right) != place)
        else:
            is_partner &= ends > start
        return np.flatnonzero(is_partner)


def take_sample(plan: EvaluationPlan, documents: Sequence[Document]) -> DocumentSample:
    """Evaluate a plan on documents, and note where its variables' values occur.

    Documents that cannot be read are there, and bind nothing.
    """
    variables: dict[int, Occurrences] = defaultdict(Occurrences)
    shapes: dict[str, list[tuple[int, int]]] = {}
    place = 0
    for batch in evaluate_batches(plan, _batches(documents)):
        for row in pa.Table.from_batches([batch]).to_pylist():
            _note(row, place, shapes, variables)
            place += 1
    days, refusal = _days(documents)
    return DocumentSample(documents, dict(variables), _span_us(documents), days, refusal)


def _span_us(documents: Sequence[Document]) -> int:
    """Return the event time that documents cover, without the strays at both ends of it."""
    if not documents:
        return 0
    oldest, newest = np.quantile([document.end_us for document in documents], (_STRAY, 1 - _STRAY))
    return int(newest - oldest)


def _days(documents: Sequence[Document]) -> tuple[float | None, str]:
    """Return the days in which so many documents arrive; else None, and the reason."""
    count = len(documents)
    if count < DOCUMENTS_MIN:
        there = f"there {'is' if count == 1 else 'are'} {count}"
        return None, f"it takes {DOCUMENTS_MIN} documents to tell, and {there}"
    live = [one.arrival_us for one in documents if one.arrival_us - one.end_us <= LIVE_US]
    if len(live) < DOCUMENTS_MIN:
        old = count - len(live)
        return None, f"{old:,} of {count:,} documents are a backlog, which says nothing of a day"
    span_us = max(live) - min(live)
    if span_us < SAMPLE_MIN_US:
        minutes = span_us / 60_000_000
        text = f"{len(live):,} documents within {minutes:.0f} minutes say nothing of a day"
        return None, text
    return count / len(live) * span_us / DAY_US, ""


def _batches(documents: Sequence[Document]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(documents), _BATCH_DOCUMENTS):
        yield documents_as_rows(documents[start : start + _BATCH_DOCUMENTS])


def _note(
    row: Mapping[str, object],
    place: int,
    shapes: dict[str, list[tuple[int, int]]],
    variables: dict[int, Occurrences],
) -> None:
    shape, edges, values = row["shape"], row["edges"], row["values"]
    if shape is None:
        return
    assert isinstance(shape, str)
    assert isinstance(values, list)
    if edges is not None:
        assert isinstance(edges, list)
        ends = {(e[f"var{i}"], e[f"node{i}"]) for e in edges for i in (1, 2)}
        shapes[shape] = sorted(ends)
    for variable, node in shapes[shape]:
        occurrences = variables[variable]
        occurrences.bound.add(place)
        value = values[node]
        if value:
            places = occurrences.documents[value]
            occurrences.characters += len(value)
            if not places or places[-1] != place:
                places.append(place)
