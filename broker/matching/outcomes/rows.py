"""WINDOW: for each value of the keys and each time at which it has a match, one row.

A row stands where the first match of its value that ends at its time is decided, and is of the
matches that are there then.  So matches are taken position by position: all that stand at one are
added to the series of their keys, then the rows that begin there are read off the series.

Assignments that ask for rows of one source share the series (`asking`).

A match that comes later than `T + A` behind its end has no row, and is in those alone that begin
where it is decided: later ones need not remember it (semantics, sections 1.1 and 12.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, product
from typing import Any, NamedTuple

from broker.matching.outcomes.aside import Keys, SetAside
from broker.matching.outcomes.asidehits import AsideMatches, AsidePiece
from broker.matching.outcomes.asking import Asking
from broker.matching.outcomes.countedpieces import CountedPiece
from broker.matching.outcomes.matched import Matched
from broker.matching.outcomes.series import Series
from broker.matching.uses import Topic
from xscl.evaluation import Reading, Values
from xscl.functions import spell
from xscl.query import Rows
from xscl.rowvalues import LazyValues, RowReading
from xscl.runvalues import RunAtHand

__all__ = ["BesideRows", "FoundWindow", "RowSource"]

HELD_MIN = 1_000
"""Of fewer matches none is forgotten: to look through them costs more than they do."""

BesideRows = Callable[[RowReading], Reading]
"""Returns a row as conditions read it beside tables."""


class FoundWindow(NamedTuple):
    """A row: who has it, where it stands, its keys, its matches in order, and its values."""

    topic: Topic
    docid: int
    depth: int
    watermark_us: int
    end_us: int
    newest: int
    keys: Keys
    matches: Sequence[Matched]
    values: Sequence[Values]

    @property
    def reading(self) -> RowReading:
        """The row, as actions read it."""
        values = {str(number): own for number, own in enumerate(self.values)}
        run = RunAtHand((), None, values)
        return RowReading(self.end_us, self.end_us, self.topic.parameters, run)


class RowSource:
    """The matches of one source by their keys."""

    def __init__(self, lateness_us: int) -> None:
        self._lateness_us = lateness_us
        self._series: dict[Keys, Series] = {}
        self._aside: SetAside[AsidePiece] = SetAside()
        self._held = 0
        self._held_max = HELD_MIN

    def take(
        self,
        matches: Sequence[Matched],
        asking: Asking,
        *,
        is_known: bool,
        beside: BesideRows | None = None,
        aside: AsideMatches | None = None,
        ends: Sequence[CountedPiece] = (),
    ) -> Iterator[FoundWindow]:
        """Add decided matches; yield the rows that begin with them, unless these are known.

        Conditions read rows `beside` tables, where some are given.  Of what is `aside` matches are
        made where a key has enough of them.  `ends` are matches too.
        """
        if aside is None and len(self._aside):
            # Matches that are not set aside may be of keys of which some were, in earlier batches.
            aside = AsideMatches()
        if len(ends) == 1 and not matches and aside is None and beside is None:
            [piece] = ends
            if self._is_in_order(piece, asking):
                yield from self._in_order(piece, asking, is_known=is_known)
                return
        matches = [*matches, *(match for piece in ends for match in piece.matches())]
        taken = [(match, _keys(match, asking.rows)) for match in matches]
        if aside is not None:
            taken += [(match, _keys(match, asking.rows)) for match in aside.several()]
            taken += self._woken(aside, taken, asking)
        taken.sort(key=_docid)
        for docid, standing in groupby(taken, key=_docid):
            begun: dict[tuple[int, Keys], list[Matched]] = {}
            for match, own in standing:
                oldest_us = self._oldest_us(match.watermark_us, asking.longest_us)
                for keys in own:
                    series = self._series_of(keys, asking)
                    place = match.end_us, keys
                    is_first = place in begun or not series.has_end(match.end_us)
                    if is_first and match.end_us >= oldest_us:
                        begun.setdefault(place, []).append(match)
                    series.add(match)
                    self._held += 1
            if not is_known:
                for (end_us, keys), first in sorted(begun.items(), key=_place):
                    yield from self._rows(docid, end_us, keys, first, asking, beside)

    def _is_in_order(self, piece: CountedPiece, asking: Asking) -> bool:
        """Return whether ends that are decided at once begin a row each, in order and in time."""
        docids, watermarks_us, ends_us = piece.places[:, 0], piece.places[:, 3], piece.places[:, 5]
        series = self._series.get(())
        last_us = series.ends[-1] if series is not None else None
        are_later = ends_us[1:] > ends_us[:-1]
        if piece.are_matches:
            are_later |= (ends_us[1:] == ends_us[:-1]) & (docids[1:] == docids[:-1])
        return (
            not (asking.rows.keys or asking.longest_us)
            and (last_us is None or int(ends_us[0]) > last_us)
            and bool(are_later.all())
            and bool((docids[1:] >= docids[:-1]).all())
            and bool((watermarks_us - self._lateness_us <= ends_us).all())
        )

    def _in_order(
        self, piece: CountedPiece, asking: Asking, *, is_known: bool
    ) -> Iterator[FoundWindow]:
        """Add ends that are in order; yield the rows that begin with them."""
        series = self._series_of((), asking)
        before = len(series)
        series.extend(piece)
        self._held += len(piece)
        for first, last, who in [] if is_known else asking.candidates_at(series, piece, before):
            docid, _, _, watermark_us, _, end_us = piece.places[first].tolist()
            place, stretch = (docid, end_us, watermark_us), (before + first, before + last)
            found = _row(asking, who, place, (), series, *stretch, None)
            if found is not None:
                yield found

    def _series_of(self, keys: Keys, asking: Asking) -> Series:
        series = self._series.get(keys)
        if series is None:
            series = self._series[keys] = Series(asking.rows.aggregates, len(keys))
        return series

    def _woken(
        self, aside: AsideMatches, taken: Sequence[tuple[Matched, list[Keys]]], asking: Asking
    ) -> list[tuple[Matched, list[Keys]]]:
        """Set matches aside; return the ones with keys that have enough, with those keys.

        What was set aside of such a key before stands in its series then.
        """
        waking = dict.fromkeys(keys for _, own in taken for keys in own)
        found: dict[tuple[AsidePiece, int], list[Keys]] = {}
        pieces = aside.single()
        least, held, series = asking.least_values, self._aside, self._series
        for piece, hits in pieces.items():
            held.begin(piece)
            all_keys, counts = piece.read()
            ends_us = piece.places[:, 5].tolist()
            for hit in hits:
                for keys in all_keys[hit]:
                    if keys in series:
                        found.setdefault((piece, hit), []).append(keys)
                    elif held.add(keys, counts[hit], ends_us[hit], hit) >= least:
                        waking[keys] = None
        for keys in waking:
            for entry in self._aside.pop(keys):
                piece, hit = entry
                if piece in pieces:
                    found.setdefault(entry, []).append(keys)
                else:
                    self._series_of(keys, asking).add(piece.match(hit))
                    self._held += 1
        return [(piece.match(hit), own) for (piece, hit), own in found.items()]

    def undo(self, matches: Iterable[Matched], rows: Rows) -> None:
        """Undo what `take` did with some matches, of which it took them all."""
        for match in matches:
            for keys in _keys(match, rows):
                series = self._series.get(keys)
                if series is not None and series.remove(match):
                    self._held -= 1
                    if not len(series):
                        del self._series[keys]

    def all_matches(self) -> list[Matched]:
        """Return the matches that are held, each once."""
        held = (series.between(0, len(series)) for series in self._series.values())
        found = {id(each): each for matches in held for each in matches}
        return [*found.values()]

    def _oldest_us(self, watermark_us: int, length_us: int) -> int:
        return watermark_us - self._lateness_us - length_us

    def _rows(
        self,
        docid: int,
        end_us: int,
        keys: Keys,
        first: Sequence[Matched],
        asking: Asking,
        beside: BesideRows | None,
    ) -> Iterator[FoundWindow]:
        """Yield the rows of one value at one time, whose first matches are given."""
        series = self._series[keys]
        watermark_us = max(match.watermark_us for match in first)
        last = series.first_behind(end_us)
        if watermark_us - self._lateness_us > end_us:
            yield from self._late(docid, end_us, watermark_us, keys, asking, beside)
            return
        for who, own in asking.candidates(series, end_us, last):
            place = docid, end_us, watermark_us
            found = _row(asking, who, place, keys, series, own, last, beside)
            if found is not None:
                yield found

    def _late(
        self,
        docid: int,
        end_us: int,
        watermark_us: int,
        keys: Keys,
        asking: Asking,
        beside: BesideRows | None,
    ) -> Iterator[FoundWindow]:
        """Yield rows that begin so late that not all their matches must be remembered."""
        series = self._series[keys]
        last = series.first_behind(end_us)
        place = docid, end_us, watermark_us
        before_us = watermark_us - self._lateness_us
        for who, first, is_whole in asking.late_candidates(series, end_us, last, before_us):
            own, stretch = series, (first, last)
            if not is_whole:
                own = Series(asking.rows.aggregates, len(keys))
                oldest_us = self._oldest_us(watermark_us, int(asking.lengths_us[who]))
                for match in series.between(first, last):
                    if match.docid == docid or match.end_us >= oldest_us:
                        own.add(match)
                stretch = 0, len(own)
                if not asking.may_hold(own, who, *stretch):
                    continue
            found = _row(asking, who, place, keys, own, *stretch, beside)
            if found is not None:
                yield found

    def forget(self, watermark_us: int, longest_us: int) -> None:
        """Forget what no row can have any more, once there is twice as much as was left."""
        before_us = self._oldest_us(watermark_us, longest_us)
        self._aside.forget(before_us)
        if self._held < self._held_max:
            return
        for keys, series in list(self._series.items()):
            if series.ends[0] < before_us:
                series.forget(before_us)
                if not len(series):
                    del self._series[keys]
        self._held = sum(map(len, self._series.values()))
        self._held_max = max(HELD_MIN, 2 * self._held)


def _keys(match: Matched, rows: Rows) -> list[Keys]:
    """Return the keys of a match: each choice of a value for each of them."""
    if not rows.keys:
        return [()]
    asked = [match.asked(number) for number in range(len(rows.keys))]
    # A key that another alternative binds has no value here.
    return list(product(*[dict.fromkeys(map(spell, each[0])) if each else () for each in asked]))


def _row(
    asking: Asking,
    who: int,
    place: tuple[int, int, int],
    keys: Keys,
    series: Series,
    first: int,
    last: int,
    beside: BesideRows | None,
) -> FoundWindow | None:
    """Return the row of the matches `[first, last)` if HAVING holds of it."""
    docid, end_us, watermark_us = place
    topic = asking.topics[who]
    count = len(keys) + len(asking.rows.aggregates)
    values = LazyValues(keys, count, lambda number: series.value(number, first, last))
    run = RunAtHand((), None, values)
    reading = RowReading(end_us, end_us, topic.parameters, run)
    if not asking.holds(reading if beside is None else beside(reading)):
        return None
    matches = _in_turn(series.between(first, last))
    return FoundWindow(
        topic,
        docid,
        1 + max(match.depth for match in matches),
        max(watermark_us, *(match.watermark_us for match in matches)),
        end_us,
        max(match.newest for match in matches),
        keys,
        matches,
        [values[name] for name in values],
    )


def _in_turn(matches: list[Matched]) -> list[Matched]:
    """Return matches in their order, those too whose documents are found out for a row."""
    pending = [m for m in matches if m.find_leaves is not None and m.counted is None]
    for match in pending:
        match.find_documents()
    return sorted(matches, key=_order) if pending else matches


def _order(match: Matched) -> tuple[Any, ...]:
    return match.order


def _docid(taken: tuple[Matched, list[Keys]]) -> int:
    return taken[0].docid


def _place(begun: tuple[tuple[int, Keys], list[Matched]]) -> tuple[int, Keys]:
    return begun[0]
