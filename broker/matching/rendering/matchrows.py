"""Tuples of roots as matches, in columns: grouped, counted, and put in order.

A match is one assignment of visible nodes over one tuple of documents, for one topic; its
witness tuples are the different assignments of the compared variables that go with it (semantics,
section 6).  What is equal is found exactly: a match by its reader, leaves and visible nodes, which
are numbers, a witness tuple by its nodes.  They are gathered piece by piece, and put in order when
all are there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from json.encoder import encode_basestring
from typing import Any, NamedTuple

import numpy as np

from broker.matching.boxes.columns import Flags, Ints, are_as_before, distinct
from broker.matching.confidences import confidences
from broker.matching.fewuses import distinct_rows
from broker.matching.hits import Hits
from broker.matching.rendering.form import MatchForm
from broker.matching.rendering.matchnodes import with_runs
from broker.matching.rendering.witnesstexts import UNASSIGNED, FoundWitnesses, WitnessTuples, padded
from broker.matching.spelling import spell
from broker.matching.uses import Topic
from joins import ranges
from xscl.runvalues import shown_value

__all__ = ["FoundColumns", "FoundRow", "MatchRows", "Reader", "places_of"]

CHUNK = 4_000
"""Matches whose columns become rows at once."""

_NO_FOLDS: Mapping[str, Any] = {}

_SURE = Fraction(1)


class Reader(NamedTuple):
    """Who reads tuples of roots, and in which form."""

    topic: Topic
    form: MatchForm


class FoundRow(NamedTuple):
    """Matches before they are spelled: their readers, where they stand and count, leaves, nodes.

    Readers in an equal form (`MatchForm.spelling`) that find the same are of one row.  `depth` and
    `watermark_us` are those of a position that was decided.  `witnesses` are the first of their
    witness tuples as a line lists them; `omitted` more are left out.  `folds` are their values of
    FOLD, `confidence` is 1 where nothing is lost or unseen.
    """

    readers: Sequence[int]
    docid: int
    newest: int
    depth: int
    watermark_us: int
    start_us: int
    end_us: int
    leaves: tuple[int, ...]
    visible: tuple[int, ...]
    witnesses: str
    omitted: int
    folds: Mapping[str, Any]
    confidence: Fraction


class FoundColumns(NamedTuple):
    """Rows in columns, those of one document beside each other.

    The readers of row `i` are `readers[starts[i]:starts[i + 1]]`.  `places` has docids, newest
    documents, depths, watermarks, starts and ends, each a row; `leaves` and `visible` have
    `UNASSIGNED` behind the last of each.  `are_whole` are rows whose visible nodes are the roots of
    their documents, without values of FOLD.
    """

    readers: Ints
    starts: Ints
    places: Ints
    leaves: Ints
    visible: Ints
    witnesses: Sequence[str]
    omitted: Sequence[int]
    folds: Sequence[Mapping[str, Any]]
    confidences: Sequence[Fraction]
    are_whole: Flags

    @property
    def docids(self) -> Ints:
        """Where each row stands."""
        docids: Ints = self.places[0]
        return docids

    def rows(self, some: range) -> Iterator[FoundRow]:
        """Yield some of them, each as one."""
        part = slice(some.start, some.stop)
        starts = self.starts[some.start : some.stop + 1].tolist()
        readers = self.readers[starts[0] : starts[-1]].tolist()
        own = [readers[i - starts[0] : j - starts[0]] for i, j in pairwise(starts)]
        nodes = _tuples(self.leaves[part]), _tuples(self.visible[part])
        columns = self.witnesses, self.omitted, self.folds, self.confidences
        behind = (column[part] for column in columns)
        yield from map(FoundRow, own, *self.places[:, part].tolist(), *nodes, *behind)


class MatchRows:
    """The matches of a stratum; equal values of `long` characters or more are held once."""

    def __init__(self, long: int) -> None:
        self._long_min = long
        self.readers: list[Reader] = []
        self._spelled: list[str] = []
        self._reader_of: dict[Hashable, int] = {}
        self._spellings: dict[Hashable, int] = {}
        self._spelling_of: dict[MatchForm, int] = {}
        self._labels: list[Sequence[str]] = []
        self._folds: dict[int, Mapping[str, Any]] = {}
        self._folds_of: dict[int, Mapping[str, Any]] = {}
        self._confidences: dict[int, Fraction] = {}
        self._numbers: dict[bytes, int] = {}
        self._columns: list[Ints] = []
        self._leaves: list[Ints] = []
        self._visible: list[Ints] = []
        self._witnesses: list[FoundWitnesses] = []
        self._long: dict[str, str] = {}

    def add(self, hits: Hits, sure: Mapping[int, Fraction] | None = None) -> Ints:
        """Add hits of roots; return those of them that begin a match.

        `sure` are their confidences where these do not depend on the hits alone.
        """
        readers, visible, sizes = self._read(hits)
        numbers = np.empty(len(hits), np.int64)
        began: list[Ints] = []
        leaves, lengths = hits.leaves
        # Matches of one reader have as many leaves and visible nodes.
        (each_length, each_size), of_hit = distinct_rows([lengths, sizes])
        layouts = zip(each_length.tolist(), each_size.tolist(), strict=True)
        for layout, (length, size) in enumerate(layouts):
            own = (of_hit == layout).nonzero()[0]
            parts = (readers[own, None], leaves[own, :length], visible[own, :size])
            numbers[own], first = self._number(np.concatenate(parts, axis=1))
            some = own[first]
            began.append(some)
            self._leaves.append(leaves[some, :length])
            self._visible.append(visible[some, :size])
            self._columns.append(np.concatenate([[readers[some]], places_of(hits, some)]))
        self._witnesses.append(FoundWitnesses(numbers, *self._compared(hits), self._similar(hits)))
        for hit, folds in self._folds_of.items():
            known = self._folds.setdefault(int(numbers[hit]), folds)
            if known != folds:
                # Elements may be bound in several ways, in no order.
                self._folds[int(numbers[hit])] = min(known, folds, key=spell)
        for hit, confidence in (sure or confidences(hits)).items():
            self._confidences[int(numbers[hit])] = confidence
        return np.concatenate([np.zeros(0, np.int64), *began])

    def _read(self, hits: Hits) -> tuple[Ints, Ints, Ints]:
        """Return the reader of each hit, its visible nodes, and how many these are."""
        of_use = [
            self._reader(use.topic, terms.form) if terms.form is not None else 0
            for use, terms in zip(hits.uses, hits.terms, strict=True)
        ]
        readers = np.array(of_use, np.int64)[hits.which]
        visible = hits.numbers([terms.visible for terms in hits.clauses])
        sizes = hits.by_clause(len(terms.visible) for terms in hits.clauses)
        self._folds_of = {}
        has_runs = np.flatnonzero(hits.by_clause(bool(terms.runs) for terms in hits.clauses))
        if len(has_runs):
            found = self._read_runs(hits, has_runs)
            readers[has_runs] = [reader for reader, _ in found]
            sizes[has_runs] = [len(nodes) for _, nodes in found]
            wide = np.full((len(hits), int(sizes.max())), UNASSIGNED)
            wide[:, : visible.shape[1]] = visible
            for hit, (_, nodes) in zip(has_runs.tolist(), found, strict=True):
                wide[hit, : len(nodes)] = nodes
            visible = wide
        return readers, visible, sizes

    def _read_runs(self, hits: Hits, has_runs: Ints) -> list[tuple[int, list[int]]]:
        """Return the reader of each tuple with runs, and its visible nodes."""
        found: list[tuple[int, list[int]]] = []
        read = zip(has_runs.tolist(), with_runs(hits, has_runs), strict=True)
        for hit, (form, numbers, runs) in read:
            folds = {name: shown_value(v) for run in runs for name, v in run.folds.items()}
            if folds:
                self._folds_of[hit] = folds
            found.append((self._reader(hits.uses[hits.which[hit]].topic, form), numbers))
        return found

    def _reader(self, topic: Topic, form: MatchForm) -> int:
        asked = topic, form.branches, form.units
        number = self._reader_of.setdefault(asked, len(self.readers))
        if number == len(self.readers):
            self.readers.append(Reader(topic, form))
        return number

    def _number(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the match of each key, and the keys that begin one, in the order of matches."""
        before, known = len(self._numbers), self._numbers
        rows = np.ascontiguousarray(keys).view(f"V{8 * keys.shape[1]}").ravel().tolist()
        found = [known.setdefault(row, len(known)) for row in rows]
        numbers = np.array(found, np.int64)
        each, first, _ = distinct(numbers)
        return numbers, first[each >= before]

    def _compared(self, hits: Hits) -> tuple[Ints, Ints]:
        """Return the nodes of the witness tuples of hits, and where their values are spelled."""
        compared = [terms.compared for terms in hits.clauses]
        width = max((1 + rank for each in compared for rank, _ in each), default=0)
        nodes = np.full((len(hits), width), UNASSIGNED)
        spelled = np.zeros((len(hits), width), np.int64)
        counts = hits.by_clause(map(len, compared))
        own = np.repeat(np.arange(len(hits)), counts)
        first = np.cumsum([0, *map(len, compared)])[:-1]
        which = ranges(hits.by_clause(first), counts)
        flat = np.array([pair for each in compared for pair in each], np.int64).reshape(-1, 2)
        ranks, terms = flat[which].T
        nodes[own, ranks] = hits.nodes[own, terms]
        places, _, inverse = distinct(hits.at[own, terms])
        spelled[own, ranks] = len(self._spelled) + inverse
        self._spelled += self._spell_all(hits.points.operands.texts(places))
        return nodes, spelled

    def _similar(self, hits: Hits) -> Ints:
        """Return where what is similar in each hit is spelled, -1 where nothing is asked for."""
        found = np.full(len(hits), UNASSIGNED)
        if any(terms.clause.similar for terms in hits.clauses):
            likenesses = hits.likenesses()
            has = [hit for hit, text in enumerate(likenesses) if text]
            found[has] = len(self._spelled) + np.arange(len(has))
            self._spelled += [likenesses[hit] for hit in has]
        return found

    def _spell_all(self, values: Sequence[str | None]) -> list[str]:
        spelled = ["null" if value is None else encode_basestring(value) for value in values]
        long_min, known = self._long_min, self._long
        for i, text in enumerate(spelled):
            if len(text) >= long_min:
                spelled[i] = known.setdefault(text, text)
        return spelled

    def leaves(self) -> Ints:
        """Return the documents of all matches, each once."""
        flat = (each.ravel() for each in self._leaves)
        return np.unique(np.concatenate([np.zeros(0, np.int64), *flat]))

    def rows(self, limit_of: Callable[[str], int]) -> Iterator[FoundColumns]:
        """Yield the matches below the limits of their queries, `CHUNK` at once.

        Those of one document stand in a row.  `limit_of` returns the first docid of a query whose
        matches are left out.
        """
        if not self._numbers:
            return
        columns = np.concatenate(self._columns, axis=1)
        limits = np.array([limit_of(each.topic.query.id) for each in self.readers])
        some = np.flatnonzero(columns[1] < limits[columns[0]])
        spellings = np.array([self._spelling(each.form) for each in self.readers], np.int64)
        leaves, visible = padded(self._leaves), padded(self._visible)
        docids, *places = columns[1:]
        keys = (docids, *leaves.T, spellings[columns[0]], *visible.T, *places)
        some = some[np.lexsort((columns[0][some], *(key[some] for key in keys[::-1])))]
        witnesses = WitnessTuples(self._witnesses, self._spelled, len(self._numbers))
        is_new = ~witnesses.are_as_before(some, are_as_before([key[some] for key in keys]))
        are_apart = np.isin(some, [*self._folds.keys() | self._confidences.keys()])
        is_new |= are_apart
        is_new[1:] |= are_apart[:-1]
        for start in range(0, len(some), CHUNK):
            part = some[start : start + CHUNK]
            begins = is_new[start : start + CHUNK]
            begins[0] = True
            firsts = np.flatnonzero(begins)
            of_row = part[firsts]
            folds = [_NO_FOLDS] * len(of_row)
            are_whole: Flags = visible[of_row].max(axis=1, initial=0) <= 0
            if self._folds:
                folds = [self._folds.get(match, _NO_FOLDS) for match in of_row.tolist()]
                are_whole &= np.array([not each for each in folds])
            sure = [_SURE] * len(of_row)
            if self._confidences:
                sure = [self._confidences.get(match, _SURE) for match in of_row.tolist()]
            shown, omitted = witnesses.shown(of_row, spellings[columns[0][of_row]], self._labels)
            yield FoundColumns(
                columns[0][part],
                np.append(firsts, len(part)),
                columns[1:, of_row],
                leaves[of_row],
                visible[of_row],
                shown,
                omitted,
                folds,
                sure,
                are_whole,
            )

    def _spelling(self, form: MatchForm) -> int:
        """Return the number of what lines of a form say alike with those of an equal one."""
        number = self._spelling_of.get(form)
        if number is None:
            number = self._spellings.setdefault(form.spelling, len(self._spellings))
            self._spelling_of[form] = number
            if number == len(self._labels):
                self._labels.append(form.labels)
        return number


def places_of(hits: Hits, some: Ints) -> Ints:
    """Return docid, newest document, depth, watermark, start and end of some hits, each a row."""
    points, rows = hits.points, hits.rows[some]
    depths, watermarks, _ = points.standing(rows)
    return np.stack(
        [points.docids[rows], points.docids_max[rows], depths, watermarks, *points.intervals(rows)]
    )


def _tuples(rows: Ints) -> list[tuple[int, ...]]:
    """Return rows as tuples, without what is behind the last column of each."""
    if (rows >= 0).all():
        return [*map(tuple, rows.tolist())]
    sizes: list[int] = (rows >= 0).sum(axis=1).tolist()
    return [tuple(row[:size]) for row, size in zip(rows.tolist(), sizes, strict=True)]
