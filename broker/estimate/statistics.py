"""How often which values occur in recent documents, and how many pairs a value join makes of them.

A sample is made for given queries: their patterns are evaluated on the documents, and for every
variable that some query compares the values are kept with their documents and times.  Pairs are
then counted, not guessed: values of real feeds repeat in bursts, so that products of mean rates
are wrong by orders of magnitude.

Two corrections, both for a sample of length D and a window T.  The documents at the start of a
sample find partners only since then, so that a count with T <= D sees the share `1 - T / 2D`; for a
longer window the count with D is scaled by `2T / D`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from broker.documents.document import Document
from broker.matching.engine import document_batch
from xpath_eval.catalog import EvaluationPlan
from xpath_eval.stage import evaluate_batches

__all__ = ["DAY_US", "DocumentSample", "Occurrences", "Timing", "take_sample"]

DAY_US = 86_400_000_000
_BATCH_DOCUMENTS = 2_000
_MS_US = 1_000
_STRAY = 0.02
"""The share of documents at either end whose times are not trusted to be those of the rest."""

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


@dataclass(frozen=True, slots=True)
class Timing:
    """Which pairs of times join: within a window, and in order unless it is symmetric."""

    window_us: int
    is_symmetric: bool


@dataclass(slots=True)
class DocumentSample:
    """Recent documents as given queries see them; `span_us` is how long a time they stand for."""

    documents: Sequence[Document]
    variables: Mapping[int, Occurrences]
    span_us: int

    @property
    def days(self) -> float:
        """The length of the sample in days."""
        return self.span_us / DAY_US

    def of(self, variable: int) -> Occurrences:
        """Return the occurrences of a variable; none where no document binds it."""
        return self.variables.get(variable, Occurrences())

    def pairs(self, left: Occurrences, right: Occurrences, timing: Timing) -> int:
        """Return how many (left, right) pairs of equal values the sample has under a window."""
        total = 0
        for value, places in left.documents.items():
            others = right.documents.get(value)
            if others:
                total += self._pairs_of_value(places, others, timing)
        return total

    def _pairs_of_value(self, left: list[int], right: list[int], timing: Timing) -> int:
        starts, ends = self._times(left), np.sort(self._times(right))
        window = min(timing.window_us, 1 << 60) // _MS_US
        until = np.searchsorted(ends, starts + window, "right")
        if timing.is_symmetric:
            since = np.searchsorted(ends, starts - window, "left")
            return int((until - since).sum()) - len(set(left) & set(right))
        return int((until - np.searchsorted(ends, starts, "right")).sum())

    def _times(self, places: Iterable[int]) -> Times:
        return np.array([self.documents[i].end_us // _MS_US for i in places], np.int64)

    def per_day(self, count: float, window_us: int) -> float:
        """Return the pairs a day, from the pairs that were counted with a window."""
        if not self.span_us:
            return 0.0
        share = window_us / self.span_us
        whole = count / (1 - share / 2) if share <= 1 else count * 2 * share
        return whole / self.days

    def examples(
        self, left: Occurrences, right: Occurrences, timing: Timing, limit: int
    ) -> list[tuple[Document, Document]]:
        """Return up to `limit` of the pairs, from all over the sample; the same every time."""
        step = max(1, self.pairs(left, right, timing) // limit)
        pairs = self._each_pair(left, right, timing)
        return [
            (self.documents[a], self.documents[b]) for a, b in islice(pairs, 0, step * limit, step)
        ]

    def _each_pair(
        self, left: Occurrences, right: Occurrences, timing: Timing
    ) -> Iterator[tuple[int, int]]:
        for value, places in left.documents.items():
            for a in places:
                for b in right.documents.get(value, ()):
                    apart = self.documents[b].end_us - self.documents[a].end_us
                    is_in_order = a != b if timing.is_symmetric else apart > 0
                    if is_in_order and abs(apart) <= timing.window_us:
                        yield a, b


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
    return DocumentSample(documents, dict(variables), _span_us(documents))


def _span_us(documents: Sequence[Document]) -> int:
    """Return the time in which documents came, or of which they tell where that is longer.

    A backlog arrives in seconds and tells of days; a few of its documents may tell of years ago.
    """
    if not documents:
        return 0
    arrivals = [document.arrival_us for document in documents]
    oldest, newest = np.quantile([document.end_us for document in documents], (_STRAY, 1 - _STRAY))
    return max(max(arrivals) - min(arrivals), int(newest - oldest))


def _batches(documents: Sequence[Document]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(documents), _BATCH_DOCUMENTS):
        yield document_batch(documents[start : start + _BATCH_DOCUMENTS])


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
