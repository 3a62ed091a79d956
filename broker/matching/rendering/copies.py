"""Matches that copy whole documents, made of rows in columns.

Most queries select all, and most documents are written as they were read: then a match's output is
the texts of its documents, which are there.  What it costs is known before it is made, so a
document whose matches may all be made needs no meter.

Invariant: lines, ids and charges are those that matches have which are made one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from broker.matching.boxes.columns import Flags, Ints, are_as_before, distinct
from broker.matching.costs.payments import PaymentColumns, Payments, Price
from broker.matching.match import FoundMatch
from broker.matching.rendering.form import MatchForm
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import (
    DOCUMENTS_MAX,
    Behind,
    copying_lines,
    found_texts,
    identities,
)
from broker.matching.rendering.matchreader import MatchReader
from broker.matching.rendering.matchrows import FoundColumns
from broker.matching.rendering.times import render_times
from broker.matching.rendering.trees import Trees
from broker.matching.rendering.witnesstexts import UNASSIGNED
from joins import UNBOUNDED, ranges
from xscl.meter import size

__all__ = ["Copies"]

_EMPTY_BYTES = len("<match></match>")

_NO_PLACE = -1
"""Stands behind the last document of a row."""

_READ_FIRST = 4
"""Documents that are read before anything is known of their size."""

_READ_BYTES = 1 << 20
"""Documents are read so many bytes at a time, as far as their size is foreseen."""

_as_tuple = tuple.__new__
"""Makes a named tuple of its fields without a call of Python."""


T = TypeVar("T")


class _ShownDocuments(NamedTuple):
    """The documents of rows: as lines and ids have them, the oldest of them, and their copies."""

    lines: list[str]
    keys: list[str]
    oldest: list[int]
    copies: list[str]


class Copies:
    """The matches of some rows that copy whole documents; `leaves` are as `MatchBuilder` has them.

    `known` are the readers of rows.  About so many bytes as are `most` are copied at once.
    """

    def __init__(
        self, leaves: Mapping[int, Leaf], trees: Trees, known: Mapping[int, MatchReader], most: int
    ) -> None:
        self._leaves = leaves
        self._most = most
        self._trees = trees
        self._known = known
        self._rows: FoundColumns | None = None
        self._copied: _Copied | None = None
        self._made = _Made.none()

    def begin(self, rows: FoundColumns, some: range, bytes_max: int) -> Flags:
        """Make the matches of the first of some rows that may all be made; return which may not.

        These are of documents with other matches, or with such as cost too much together.  All of
        the rows are asked for first, and from one on next.
        """
        part = slice(some.start, some.stop)
        is_new = np.ones(len(some), np.bool_)
        is_new[1:] = ~are_as_before([rows.docids[part]])
        of_row = np.cumsum(is_new) - 1
        are_left_out = np.bincount(of_row, self._are_others(rows, some)) > 0
        if are_left_out.all():
            return np.ones(len(some), np.bool_)
        if self._rows is not rows or self._copied is None:
            self._rows, self._copied = rows, _Copied(rows.leaves, self._leaves, self._trees)
        copied, count = self._copied, len(are_left_out)
        readers = np.diff(rows.starts)[part]
        # What matches copy of the same documents is made once.
        is_new[1:] |= ~are_as_before([*rows.leaves[part].T])
        has_more = True
        while has_more:
            has_more = copied.read(part, ~are_left_out[of_row])
            are_left_out |= np.bincount(of_row, copied.are_others(part), count) > 0
            spent = np.bincount(of_row, np.where(is_new, copied.most(part), 0), count)
            are_left_out |= spent > bytes_max
            nbytes = np.where(are_left_out[of_row], 0, copied.nbytes(part) * readers)
            size = 1 + int(np.searchsorted(np.cumsum(nbytes), self._most))
            part = slice(part.start, min(part.start + size, part.stop))
            of_row, is_new, readers = of_row[:size], is_new[:size], readers[:size]
        found: Flags = are_left_out[of_row]
        self._made = _Made.of(rows, some.start + np.flatnonzero(~found), copied, self._known)
        return found

    def _are_others(self, rows: FoundColumns, some: range) -> Flags:
        """Return which of some rows have matches that are no copies, or charged one by one."""
        are_others = ~rows.are_whole[some.start : some.stop]
        others = [number for number, reader in self._known.items() if not reader.is_copying]
        if others:
            starts = rows.starts[some.start : some.stop + 1]
            are_read = np.isin(rows.readers[starts[0] : starts[-1]], others)
            are_others |= np.logical_or.reduceat(are_read, starts[:-1] - starts[0])
        return are_others

    def take(self, some: range, payments: Payments) -> list[FoundMatch]:
        """Return the matches of some rows that were not left out, which are paid for then."""
        assert self._rows is not None
        return self._made.take(some, self._rows.docids, payments)

    def forget(self) -> None:
        """Drop the texts of documents."""
        self._rows = self._copied = None
        self._made = _Made.none()


class _Copied:
    """The documents that some rows copy, of which some have been read.

    `places` say where the documents of a row stand among `leaves`.
    """

    def __init__(self, rows: Ints, leaves: Mapping[int, Leaf], trees: Trees) -> None:
        numbers, first, inverse = distinct(1 + rows.ravel())
        has_none = int(numbers[0] == 0)
        self.leaves = [leaves[number - 1] for number in numbers[has_none:].tolist()]
        self.places: Ints = inverse.reshape(rows.shape) - has_none
        self._trees = trees
        self._order = np.argsort(first[has_none:])
        # One more stands for those that are none: it is found at `_NO_PLACE`.
        count = len(self.leaves) + 1
        self._spelled: list[str | None] = [""] * count
        self._nbytes, self._costs = np.zeros((2, count), np.int64)
        self._are_read, self._are_others = np.zeros((2, count), np.bool_)
        self._are_read[_NO_PLACE] = True
        self._joining: tuple[_Joining, _Joining, _Joining] | None = None

    def read(self, part: slice, asked: Flags) -> bool:
        """Read some more documents of those rows of a part that are asked for, the first of them.

        Return whether there were any.  How many are read at a time depends on how long those were
        that have been read: of what costs too much not much more is read.
        """
        are_asked = np.zeros(len(self._spelled), np.bool_)
        are_asked[self.places[part][asked]] = True
        are_asked &= ~self._are_read
        some = self._order[are_asked[self._order]]
        count = np.count_nonzero(self._are_read) - 1
        most = _READ_BYTES * count // (1 + int(self._nbytes.sum())) if count else 0
        some = some[: max(_READ_FIRST, most)]
        if not len(some):
            return False
        read = self._trees.whole_texts([self.leaves[place] for place in some.tolist()])
        for place, text in zip(some.tolist(), read.spelled, strict=True):
            self._spelled[place] = text
        self._nbytes[some], self._costs[some] = read.nbytes, read.costs
        self._are_others[some] = [text is None for text in read.spelled]
        self._are_read[some] = True
        self._joining = None
        return True

    def are_others(self, part: slice | Ints) -> Flags:
        """Return which rows have a document that is not written as it was read."""
        are_others: Flags = np.logical_or.reduce(self._are_others[self._columns(part)])
        return are_others

    def nbytes(self, part: slice | Ints) -> Ints:
        """Return how many bytes a match of each row copies, as far as documents have been read."""
        nbytes: Ints = self._nbytes[self._columns(part)].sum(axis=0)
        return nbytes

    def most(self, part: slice | Ints) -> Ints:
        """Return what such a match costs where nothing has been read before it."""
        most: Ints = (self._nbytes + self._costs)[self._columns(part)].sum(axis=0)
        return most

    def _columns(self, part: slice | Ints) -> Ints:
        """Return the places of some rows in columns: these are added up faster than short rows."""
        return np.ascontiguousarray(self.places[part].T)

    def price(self, row: int, kept: int) -> Price:
        """Return the price of a row's match of which so much is kept."""
        places = self._of(row)
        readings = [(int(self._costs[place]), 0) for place in places]
        numbers = [self.leaves[place].instance for place in places]
        most, nbytes = (int(each(np.array([row]))[0]) for each in (self.most, self.nbytes))
        return Price(most, kept, nbytes, numbers, readings)

    def _of(self, row: int) -> list[int]:
        return [place for place in self.places[row].tolist() if place != _NO_PLACE]

    def shown(self, rows: Ints, readers: Sequence[MatchReader], firsts: Ints) -> _ShownDocuments:
        """Return the documents of rows as matches show them; see `_spelled`."""
        places = self.places[rows]
        sizes = (places != _NO_PLACE).sum(axis=1)
        have_blocks = np.array([each.form.has_blocks for each in readers], np.bool_)
        are_plain = ~have_blocks[firsts] & (sizes <= DOCUMENTS_MAX)
        plain = self._in_columns(places[are_plain, : sizes[are_plain].max(initial=1)])
        if are_plain.all():
            return plain
        rest = zip(*plain, strict=True)
        each_row = zip(are_plain.tolist(), rows.tolist(), firsts.tolist(), strict=True)
        shown = [
            next(rest) if is_plain else self._one(row, readers[first].form)
            for is_plain, row, first in each_row
        ]
        return _ShownDocuments(*map(list, zip(*shown, strict=True)))

    def _in_columns(self, places: Ints) -> _ShownDocuments:
        lines, keys, copies = self._joined()
        listed = [f"[{line}]" for line in lines.joined(places)]
        columns = np.ascontiguousarray(places.T)
        oldest = self._docids[columns].min(axis=0, initial=UNBOUNDED).tolist()
        return _ShownDocuments(listed, [*keys.joined(places)], oldest, [*copies.joined(places)])

    def _joined(self) -> tuple[_Joining, _Joining, _Joining]:
        """Return lines, keys and copies of the documents that have been read so far."""
        if self._joining is None:
            lines = _Joining([leaf.line for leaf in self.leaves], ", ")
            keys = _Joining([leaf.id for leaf in self.leaves], ",")
            copies = _Joining([text or "" for text in self._spelled[:-1]], "")
            self._joining = lines, keys, copies
        return self._joining

    @cached_property
    def _docids(self) -> Ints:
        return np.array([*(leaf.docid for leaf in self.leaves), UNBOUNDED], np.int64)

    def _one(self, row: int, form: MatchForm) -> tuple[str, str, int, str]:
        """Return the documents of a row whose form says more of them, or that has very many."""
        places = self._of(row)
        behind = Behind.of([self.leaves[place] for place in places], form)
        copies = "".join([self._spelled[place] or "" for place in places])
        return behind.line, behind.keys, behind.oldest, copies


class _Joining:
    """Texts that are joined row by row, with something between those of a row."""

    def __init__(self, texts: Sequence[str], between: str) -> None:
        self._first = texts
        self._behind = [*(between + text for text in texts), ""]

    def joined(self, places: Ints) -> Iterator[str]:
        """Return the texts of rows, given by their places, `_NO_PLACE` behind the last of a row."""
        first, *others = places.T.tolist()
        columns = [[self._first[i] for i in first]]
        columns += [[self._behind[i] for i in column] for column in others]
        return map("".join, zip(*columns, strict=True))


class _Made(NamedTuple):
    """Matches that have been made, in the order of their rows, and what each of them costs."""

    matches: Sequence[FoundMatch]
    of_match: Ints
    queries: Ints
    newest: Ints
    kept: Ints
    copied: _Copied | None

    @classmethod
    def none(cls) -> _Made:
        """Return no matches."""
        nothing = np.zeros(0, np.int64)
        return cls([], nothing, nothing, nothing, nothing, None)

    @classmethod
    def of(
        cls, rows: FoundColumns, some: Ints, copied: _Copied, known: Mapping[int, MatchReader]
    ) -> _Made:
        """Return the matches of some rows."""
        if not len(some):
            return cls.none()
        starts, counts = rows.starts[some], np.diff(rows.starts)[some]
        numbers, _, which = distinct(rows.readers[ranges(starts, counts)])
        readers = [known[number] for number in numbers.tolist()]
        places = np.repeat(np.arange(len(some)), counts)
        firsts = which[np.cumsum(counts) - counts]
        limits, queries = np.array([(each.limit, each.number) for each in readers], np.int64).T
        are_open = rows.docids[some][places] < limits[which]
        if not are_open.all():
            which, places = which[are_open], places[are_open]
        shown = copied.shown(some, readers, firsts)
        found, ids = _spelled(rows, some, shown, readers, firsts)
        whose, where = which.tolist(), places.tolist()
        begun = [each.lines.begun.copy for each in readers]
        names: list[str] = []
        for reader, place in zip(whose, where, strict=True):
            digest = begun[reader]()
            digest.update(ids[place])
            names.append(digest.hexdigest())
        lines = copying_lines(
            names,
            _at([each.lines.query for each in readers], whose),
            _at(found, where),
            _at([each.lines.parameters for each in readers], whose),
            _at(shown.copies, where),
        )
        columns = (
            rows.docids[some][places].tolist(),
            _at([each.query_id for each in readers], whose),
            names,
            _at([each.parameters for each in readers], whose),
            _at(shown.oldest, where),
            lines,
        )
        matches = [_as_tuple(FoundMatch, row) for row in zip(*columns, strict=True)]
        of_match = some[places]
        docids, newest = rows.places[:2, of_match]
        kept = _EMPTY_BYTES + copied.nbytes(of_match)
        for i in np.flatnonzero(newest < docids).tolist():
            # A tick may decide so much that the lines themselves are counted.
            kept[i] = size(matches[i].line)
        return cls(matches, of_match, queries[which], newest, kept, copied)

    def take(self, some: range, docids: Ints, payments: Payments) -> list[FoundMatch]:
        """Return the matches of some rows, which are paid for."""
        first, last = np.searchsorted(self.of_match, [some.start, some.stop]).tolist()
        part, copied = slice(first, last), self.copied
        if first == last or copied is None:
            return []
        of_match, kept = self.of_match[part], self.kept[part]

        def price(match: int) -> Price:
            return copied.price(int(of_match[match]), int(kept[match]))

        where = self.queries[part], docids[of_match], self.newest[part]
        payments.add_all(PaymentColumns(*where, copied.most(of_match), kept, price))
        return [*self.matches[part]]


def _at(values: Sequence[T], places: Sequence[int]) -> list[T]:
    return [values[place] for place in places]


def _spelled(
    rows: FoundColumns,
    some: Ints,
    shown: _ShownDocuments,
    readers: Sequence[MatchReader],
    firsts: Ints,
) -> tuple[list[str], list[bytes]]:
    """Return what lines say of where matches of some rows were found, and what their ids digest.

    `shown` are the documents of the rows, and `firsts` say which of `readers` is one of each.
    """
    every = some.tolist()
    sizes = (rows.visible[some] != UNASSIGNED).sum(axis=1)
    asked, _, which = distinct(firsts + len(readers) * sizes)
    known = [
        readers[i % len(readers)].lines.nodes((0,) * (i // len(readers))) for i in asked.tolist()
    ]
    nodes = _at(known, which.tolist())
    before = [""] * len(every)
    have_more = np.array([each.is_ordered or each.has_confidence for each in readers], np.bool_)
    for i in np.flatnonzero(have_more[firsts]).tolist():
        first = readers[firsts[i]]
        before[i] = first.lines.before(
            int(rows.docids[every[i]]) if first.is_ordered else None,
            rows.confidences[every[i]] if first.has_confidence else None,
        )
    starts, ends = (render_times(times) for times in rows.places[4:, some])
    witnesses, omitted = _at(rows.witnesses, every), _at(rows.omitted, every)
    found = found_texts((starts, ends), before, shown.lines, nodes, witnesses, omitted)
    return found, identities(shown.keys, nodes)
