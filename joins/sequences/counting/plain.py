"""A lane whose runs are counted without a step between two elements.

Where neighbours are asked for nothing, or for one inequality of numbers, what may stand before an
element is known by its end and its number (`spread`).  Elements stand by end, and

    in order  the ways to an element that ends last: added up while time slides on, or where runs
              are bounded as a whole and compared, from each beginning in the window anew
    late      the ways through an element, to each time at which runs end that have it: the ways to
              it, times the ways on from it

Of which documents those runs are is found out when it is asked.

Elements are of one document each, begin when they end, and no two ways of one element stand apart.
What breaks any of these, or is remembered in parts only, raises `NotPlainError`: then steps are
drawn (`lanes`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from operator import attrgetter
from typing import NamedTuple

from joins.memory.durations import UNBOUNDED
from joins.sequences.counting.rowelements import RowElements
from joins.sequences.counting.spread import (
    LaneProduct,
    LaneSums,
    PlainElement,
    PlainShape,
    spread,
)
from joins.sequences.counting.window import LaneWindow
from joins.sequences.runparts import Part
from templates.runtotals import RunTotals

__all__ = ["FoundWays", "NotPlainError", "PlainLane"]

FEW = 4
"""The ways to so many elements are counted at once, as soon as bounds of them."""

_END = attrgetter("end_us")
_SERIAL = attrgetter("serial")
_DOCID = attrgetter("docid")


class NotPlainError(Exception):
    """Runs of a lane are more than its sums can tell."""


class FoundWays(NamedTuple):
    """Runs through an element that came, which end at one time: how many.

    `parts` are those of their elements that say where they stand; `documents` gives the documents
    of all, by end.
    """

    total: int
    end_us: int
    parts: tuple[Part, ...]
    documents: Callable[[], list[int]]


class PlainLane:
    """Elements that one run may have, by end, then in the order in which they came."""

    def __init__(self, shape: PlainShape) -> None:
        self._shape = shape
        self._elements: list[PlainElement] = []
        self._serial = 0
        self._newest: tuple[int, int, int, str] | None = None
        self._watermark_us = -UNBOUNDED
        self._depth = 0
        # By docid, but for those that came in order last: mostly nobody asks.
        self._by_docid: list[PlainElement] = []
        self._came: list[PlainElement] = []
        self._are_outside = True
        self._sums = self._new_sums()

    def __len__(self) -> int:
        return len(self._elements)

    @property
    def parts(self) -> list[Part]:
        """The elements, in the order in which they came."""
        return [each.part for each in sorted(self._elements, key=_SERIAL)]

    def _new_sums(self, more: int = 0) -> LaneSums | LaneProduct | LaneWindow | None:
        """Return what adds up the ways to what comes in order; None where they are spread anew.

        So many `more` elements are coming.
        """
        shape, elements = self._shape, self._elements
        if not shape.is_bounded:
            return LaneSums(shape)
        if shape.compares is None and shape.may_all_begin and shape.gap_us >= shape.within_us:
            return LaneProduct(shape)
        is_window = LaneWindow.suits(shape, len(elements) + more)
        return LaneWindow(shape, elements) if is_window else None

    # -- what enters ---------------------------------------------------------------------------

    def enter(self, own: PlainElement) -> list[FoundWays]:
        """Add an element; return the runs through it, by their ends."""
        if own.part.start_us != own.end_us or len(own.part.leaves) != 1:
            raise NotPlainError
        if self._shape.are_same and own.asked != own.given:
            # Of several values the greatest is asked, and the least given.
            self._shape = replace(self._shape, are_same=False)
        self._serial += 1
        own.serial = self._serial
        is_newest = self._note(own.part)
        self._came.append(own)
        self._are_outside &= not (own.part.match_id or own.part.depth)
        if self._last_us > own.end_us:
            return self._enter_late(own, is_newest=is_newest)
        own.ways = total = self._ways_in_order(own)
        self._elements.append(own)
        return [self._found(total, own, [own], is_newest=is_newest)] if total else []

    def takes_in_order(self, columns: RowElements) -> bool:
        """Return whether elements end behind what is there and in order, and no more has a say.

        Each is the newest then, by anything, and all of a run was remembered with it.
        """
        docid_max, docid, _, match_id = self._newest or (-1, -1, 0, "")
        first = (docid_max, docid, self._depth, self._watermark_us, self._last_us)
        own = columns.docids_max, columns.docids, columns.depths, columns.watermarks_us
        ascend = [
            not len(each) or (each[0] >= before and (each[1:] >= each[:-1]).all())
            for before, each in zip(first, (*own, columns.ends_us), strict=True)
        ]
        shape = self._shape
        back_us = columns.watermarks_us - shape.remembered_us
        return (
            all(ascend)
            and not match_id
            and bool((columns.starts_us == columns.ends_us).all())
            and (
                shape.remembered_us >= UNBOUNDED
                or bool((columns.ends_us - shape.within_us >= back_us).all())
            )
        )

    def enter_in_order(
        self, columns: RowElements, elements: Sequence[PlainElement], bits: int
    ) -> RunTotals:
        """Add elements that `takes_in_order`; return the ways to each.

        The last to be added is the first that has numbers of more bits.
        """
        if self._shape.are_same and any(each.asked != each.given for each in elements):
            self._shape = replace(self._shape, are_same=False)
        for each in elements:
            self._serial += 1
            each.serial = self._serial
        if self._sums is None:
            self._sums = self._new_sums(len(elements))
        if elements and isinstance(self._sums, LaneWindow):
            totals = self._in_window(self._sums, elements, bits)
        else:
            totals = RunTotals.of(self._added_up(elements, bits))
        own = elements[: len(totals)]
        self._came += own
        self._are_outside &= not columns.depths.any()
        if own:
            last = len(own) - 1
            newest = (columns.docids_max, columns.docids, columns.depths, columns.watermarks_us)
            docid_max, docid, self._depth, self._watermark_us = [int(each[last]) for each in newest]
            self._newest = docid_max, docid, self._depth, ""
        return totals

    def _added_up(self, elements: Sequence[PlainElement], bits: int) -> list[int]:
        totals: list[int] = []
        for own in elements:
            own.ways = total = self._ways_in_order(own)
            self._elements.append(own)
            totals.append(total)
            if total.bit_length() > bits:
                break
        return totals

    def _in_window(
        self, window: LaneWindow, elements: Sequence[PlainElement], bits: int
    ) -> RunTotals:
        """Add elements to a window; of most their numbers of ways will not be asked for."""
        window.extend(elements)
        changes, count, before = window.changes, len(elements), len(self._elements)
        self._elements += elements

        def ways_to(some: list[int]) -> list[int]:
            # As they came: elements may have come or gone since.
            is_same = self._sums is window and window.changes == changes
            ready = window.counted(count, some) if is_same else [None] * len(some)
            return [
                self._spread_ways(elements[at]) if ways is None else ways
                for at, ways in zip(some, ready, strict=True)
            ]

        # Of so many elements there are no more runs than sets of them.
        if count > FEW and len(window) < bits:
            return RunTotals.between(window.bounds(count), ways_to)
        totals = ways_to([*range(count)])
        for at, total in enumerate(totals):
            if total.bit_length() > bits:
                del self._elements[before + at + 1 :]
                return RunTotals.of(totals[: at + 1])
        return RunTotals.of(totals)

    def documents_to(self, own: PlainElement) -> list[int]:
        """Return the documents of the runs that end with an element, as it came."""
        return self._documents(own, [own], own.serial)

    @property
    def _last_us(self) -> int:
        return self._elements[-1].end_us if self._elements else -UNBOUNDED

    def _ways_in_order(self, own: PlainElement) -> int:
        """Return the ways to an element that ends last, and add it up."""
        if self._sums is None:
            self._sums = self._new_sums()
        if self._sums is not None:
            self._sums.add(own)
            total = self._sums.ways_to(own)
            if total is not None:
                return total
        return self._spread_ways(own)

    def _spread_ways(self, own: PlainElement) -> int:
        """Return the ways to an element that ended last when it came, of what was there then."""
        known = [each for each in self._before(own, own.end_us) if each.serial < own.serial]
        before = spread(self._shape, own, known, on=False)
        return own.begins + sum([ways for each, ways in before if each.begins])

    def _enter_late(self, own: PlainElement, *, is_newest: bool) -> list[FoundWays]:
        """Add an element with others behind it; return the runs through it, by their ends."""
        shape, elements = self._shape, self._elements
        ways_from = self._ways_to(own)
        first = bisect_right(elements, own.end_us, key=_END)
        last = bisect_right(elements, own.end_us + shape.within_us, key=_END)
        behind = spread(shape, own, elements[first:last], on=True)
        elements.insert(first, own)
        found: list[FoundWays] = []
        for end_us, group in groupby([(own, 1), *behind], key=lambda each: each[0].end_us):
            ending = list(group)
            total = ways_from(end_us) * sum([ways for _, ways in ending])
            if total:
                those = [each for each, _ in ending]
                found.append(self._found(total, own, those, is_newest=is_newest))
        for each, ways in behind:
            each.ways += ways * own.ways
        self._renew()
        return found

    def _ways_to(self, own: PlainElement) -> Callable[[int], int]:
        """Return what gives the ways to a late element, of runs that end at a time."""
        shape = self._shape
        if not shape.is_bounded:
            near = self._from(own.end_us - shape.gap_us, own.end_us)
            own.ways = own.begins + sum([each.ways for each in near if shape.fits(own, each)])
            return lambda _: own.ways
        before = spread(shape, own, self._before(own, own.end_us), on=False)
        begun = [(each.end_us, ways) for each, ways in [(own, 1), *before] if each.begins]
        # From the latest beginning on back.
        ends_us = [-end_us for end_us, _ in begun]
        sums = [0, *accumulate(ways for _, ways in begun)]
        return lambda end_us: sums[bisect_right(ends_us, shape.within_us - end_us)]

    def _renew(self) -> None:
        """Add up the ways to what comes in order anew, of elements that know theirs."""
        self._sums = self._new_sums()
        if self._sums is None or isinstance(self._sums, LaneWindow):
            return
        reach_us = min(self._shape.gap_us, self._shape.within_us)
        for each in self._from(self._elements[-1].end_us - reach_us, UNBOUNDED):
            self._sums.add(each)

    def _from(self, from_us: int, before_us: int) -> list[PlainElement]:
        """Return the elements that end from a time on, before another."""
        first, last = (bisect_left(self._elements, at, key=_END) for at in (from_us, before_us))
        return self._elements[first:last]

    def _before(self, own: PlainElement, end_us: int) -> list[PlainElement]:
        """Return the elements before one with which runs may begin that end at a time, backward."""
        return self._from(end_us - self._shape.within_us, own.end_us)[::-1]

    # -- what is found -------------------------------------------------------------------------

    def _note(self, part: Part) -> bool:
        """Note by what an element is the newest; return whether none is newer, by anything."""
        newest = part.docid_max, part.docid, part.depth, part.match_id
        watermark_us, depth = part.watermark_us, part.depth
        known = self._newest or newest
        if newest >= known and watermark_us >= self._watermark_us and depth >= self._depth:
            self._newest, self._watermark_us, self._depth = newest, watermark_us, depth
            return True
        self._newest = max(known, newest)
        self._watermark_us = max(self._watermark_us, watermark_us)
        self._depth = max(self._depth, depth)
        return False

    def _found(
        self, total: int, own: PlainElement, ending: Sequence[PlainElement], *, is_newest: bool
    ) -> FoundWays:
        """Return so many runs through an element, which end with one of some."""
        serial, last = self._serial, ending[-1]
        parts: tuple[Part, ...] = (own.part,) if own is last else (own.part, last.part)
        is_known = self._is_remembered(last.end_us)
        if is_known and not is_newest:
            newest = self._newest_before(own) if own is last else None
            is_known = newest is not None
            if newest is not None and newest is not own:
                parts = (newest.part, own.part)
        if not is_known:
            parts = tuple([each.part for each in self._on_paths(own, ending, serial)])
            if not self._is_whole(parts[0].end_us, max([part.watermark_us for part in parts])):
                raise NotPlainError

        return FoundWays(total, last.end_us, parts, lambda: self._documents(own, ending, serial))

    def _newest_before(self, own: PlainElement) -> PlainElement | None:
        """Return the newest element of the runs that end with one; None where it takes a look.

        Of documents from outside a later one is newer by anything.
        """
        shape = self._shape
        if not (self._are_outside and shape.may_all_begin and shape.are_same):
            return None
        for each in self._came:
            insort(self._by_docid, each, key=_DOCID)
        self._came = []
        newer = self._by_docid[bisect_right(self._by_docid, own.docid, key=_DOCID) :]
        for each in reversed(newer):
            # What may not stand before it at once does not lead to it through others.
            if own.end_us - shape.within_us <= each.end_us < own.end_us and shape.fits(own, each):
                return each if own.end_us - each.end_us <= shape.gap_us else None
        return own

    def _documents(
        self, own: PlainElement, ending: Sequence[PlainElement], serial: int
    ) -> list[int]:
        on_paths = self._on_paths(own, ending, serial)
        return list(dict.fromkeys([each.leaf for each in on_paths]))

    def _is_remembered(self, end_us: int) -> bool:
        """Return whether all that runs may have that end at a time was remembered together."""
        if self._shape.remembered_us >= UNBOUNDED:
            return True
        before = bisect_left(self._elements, end_us - self._shape.within_us, key=_END)
        return self._is_whole(self._elements[before].end_us, self._watermark_us)

    def _is_whole(self, oldest_us: int, watermark_us: int) -> bool:
        """Return whether all from a time on was remembered together (section 1.1)."""
        remembered_us = self._shape.remembered_us
        return remembered_us >= UNBOUNDED or oldest_us >= watermark_us - remembered_us

    def _on_paths(
        self, own: PlainElement, ending: Sequence[PlainElement], serial: int
    ) -> list[PlainElement]:
        """Return the elements of the runs through one that end with some, by end.

        They are of what had come by then.
        """
        shape, end_us = self._shape, ending[-1].end_us
        known = [each for each in self._before(own, end_us) if each.serial <= serial]
        leading = [each for each, _ in spread(shape, own, known, on=False)][::-1]
        if not shape.may_all_begin:
            leading = [each for each, _ in spread(shape, None, leading, on=True)]
        if own is ending[-1]:
            return [*leading, own]
        between = [each for each in self._from(own.end_us + 1, end_us) if each.serial <= serial]
        behind = {each for each, _ in spread(shape, own, between, on=True)}
        on_paths = {
            each
            for last in ending
            for each, _ in spread(shape, last, between[::-1], on=False)
            if each in behind
        }
        return [*leading, own, *(each for each in between if each in on_paths), *ending]

    # -- what is kept --------------------------------------------------------------------------

    def forget(self, before_us: int) -> bool:
        """Forget what ends before a time; return whether something is left."""
        self._by_docid = [each for each in self._by_docid if each.end_us >= before_us]
        self._came = [each for each in self._came if each.end_us >= before_us]
        del self._elements[: bisect_left(self._elements, before_us, key=_END)]
        return bool(self._elements)
