"""What a way to begin a repetition asks of what stands before, and of each element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from joins.sequences.absentunits import AbsentTuples
from joins.sequences.runparts import Head, Part, PartRow
from templates.givenconstants import GivenLength, GivenLengths
from templates.rundecision import (
    Begin,
    ElementStream,
    RunAtHand,
    RunDecision,
    RunElement,
    RunReading,
    TermNode,
    Values,
    compile_disjuncts,
    compile_values,
    datum_term,
    look_ups,
)
from templates.saiddata import data_named

__all__ = ["NO_ELEMENT", "DataTests", "Key", "RunConditions"]

Key = tuple[str, ...]
"""Values under which an element is looked up."""

NO_ELEMENT = RunElement(0, 0, 0, {})
"""What is read in place of a first element where there is none yet: it says nothing."""


class DataTests:
    """What elements, or tuples of an absent unit, are asked beside data that a run says."""

    def __init__(self, elements: Sequence[ElementStream]) -> None:
        self._tests = {
            each.stream.name: [test.condition() for test in each.had]
            for each in elements
            if each.had
        }

    def hold(self, part: Part, said: Mapping[str, TermNode]) -> bool:
        """Return whether a row of a tuple passes; `said` has the data as terms."""
        return all(
            any(all(test(_beside(row, said)) for test in self._tests.get(name, ())) for row in rows)
            for name, rows in part.rows.items()
        )

    def __bool__(self) -> bool:
        return bool(self._tests)


def _beside(row: PartRow, said: Mapping[str, TermNode]) -> RunReading:
    return RunReading({**row.terms, **said}, 0, 0, RunAtHand((), None, {}))


class RunConditions:
    """What one way to begin asks, compiled; its rows of what stands before are of one stream."""

    def __init__(self, begin: Begin, decision: RunDecision) -> None:
        self.begin = begin
        self.first = compile_disjuncts((begin.first,))
        self.each = compile_disjuncts(begin.each)
        self.absent = [compile_disjuncts(each) for each in begin.absent]
        self.go_on = None if begin.go_on is None else compile_disjuncts(begin.go_on)
        self.folds = [
            (each.name, compile_values(each.first), compile_values(each.following))
            for each in begin.folds
        ]
        self._begins_folds_with_data = any(each.begins_with_data for each in begin.folds)
        self.keys = {each.block: each.keys for each in decision.elements}
        self._run, self._gap_us = decision.run, decision.gap_us
        self._tests = DataTests(decision.elements)
        self._of_absent = [DataTests(each.elements) for each in decision.absences]
        self._known = decision.known
        self._had, self._data = decision.had, decision.data
        # What another block of the unit does not bind is not asked of its elements.
        equal = look_ups(begin.each) if len(decision.elements) == 1 else []
        self._lefts = [compile_values(left) for left, _ in equal]
        self._rights = [compile_values(right) for _, right in equal]

    def rows(self, left: Part | None) -> list[PartRow]:
        """Return the rows of what stands before."""
        if self.begin.left is None:
            return [PartRow({})]
        assert left is not None
        return left.rows.get(self.begin.left.name, [])

    def same_key(self, head: Head) -> Key | None:
        """Return the values of SAME of a run so far, None where any are right."""
        last = head.last
        if last is None:
            return None
        if head.elements:
            return self.same_of(last)
        row = self.rows(last)[0].terms
        return tuple(row[term].value or "" for term in self.begin.left_keys)

    def same_of(self, part: Part) -> Key:
        """Return the values of SAME of an element."""
        assert part.element is not None
        return tuple([part.element.value(term) for term in self.keys[part.blocks[0]]])

    def known_of(self, left: Part) -> Key:
        """Return what stands before says of the data that elements say."""
        return left.data[: self._known]

    def data_of(self, head: Head) -> Key:
        """Return the data that elements of a run say, before there are any as far as known."""
        return head.elements[0].data if head.elements else head.data

    def said_of(self, head: Head) -> Key:
        """Return the data that what stands before a run says, and those that its elements do."""
        before = () if head.left is None else head.left.data
        return (*before, *self.data_of(head))

    def said_with(self, head: Head, part: Part) -> Key:
        """Return the data that a run says which takes an element: before it, and of elements."""
        before = () if head.left is None else head.left.data
        return (*before, *(head.elements[0] if head.elements else part).data)

    def place_of(self, length: GivenLength) -> int:
        """Return the place of a length among the data that a run says."""
        [datum] = data_named([length.parameter], ())
        return (*self._had, *self._data).index(str(datum.datum))

    def look_up_keys(self, head: Head) -> list[Key]:
        """Return the values, those of SAME among them, under which a run's next element stands."""
        same = self.same_key(head) or ()
        if not all(same):
            return []
        return [(*same, *self.data_of(head), *key) for key in self.keys_of_head(head)]

    def keys_of_head(self, head: Head) -> list[Key]:
        """Return the values under which the next element of a run is looked up."""
        reading = self.step(head, None, self.rows(head.left)[0])
        sides = [[v for v in values(reading) if v] for values in self._lefts]
        return [tuple(map(str, choice)) for choice in product(*sides)]

    def keys_of_element(self, part: Part) -> list[Key]:
        """Return the values under which an element is looked up."""
        run = RunAtHand((), part.element, {})
        reading = RunReading({}, part.start_us, part.end_us, run)
        sides = [[v for v in values(reading) if v] for values in self._rights]
        return [tuple(map(str, choice)) for choice in product(*sides)]

    def first_folds(self, left: Part | None, first: Part | None = None) -> dict[str, Values]:
        """Return what is folded of a run without elements; its `first` one says the data."""
        if not self.folds:
            return {}
        start_us, end_us = (0, 0) if left is None else (left.start_us, left.end_us)
        element = NO_ELEMENT if first is None else first.element
        run = RunAtHand((), element, {})
        reading = RunReading(self.rows(left)[0].terms, start_us, end_us, run)
        return {name: tuple(first(reading)) for name, first, _ in self.folds}

    def passes(self, left: Part | None, part: Part) -> bool:
        """Return whether an element passes what it is asked beside data that are said."""
        return not self._tests or self._tests.hold(part, self._said(left, part))

    def _said(self, left: Part | None, element: Part) -> dict[str, TermNode]:
        """Return what is said of data, by their terms."""
        said = dict(zip(self._data, element.data, strict=True))
        if left is not None:
            said |= zip(self._had, left.data, strict=True)
        return {datum_term(datum): TermNode(0, value) for datum, value in said.items()}

    def step(self, head: Head, candidate: Part | None, row: PartRow) -> RunReading:
        """Return what conditions read of a run and a candidate."""
        last = head.last if candidate is None else candidate
        first = head.first if head.elements or head.left is not None else last
        folds = head.folds
        if self._begins_folds_with_data and candidate is not None and not head.elements:
            folds = self.first_folds(head.left, candidate)
        run = RunAtHand(head.before, None if candidate is None else candidate.element, folds)
        assert first is not None
        assert last is not None
        return RunReading(row.terms, first.start_us, last.end_us, run)

    def are_neighbours(self, row: PartRow, start_us: int, one: Part, other: Part) -> bool:
        """Return whether one element may come behind another, as far as these two say.

        `row` and `start_us` are of what the run begins with.
        """
        if other.end_us - one.end_us > self._gap_us:
            return False
        assert one.element is not None
        run = RunAtHand((one.element,), other.element, {})
        return self.each(RunReading(row.terms, start_us, other.end_us, run))

    def takes_away(
        self, head: Head, units: Sequence[AbsentTuples], docid: int, lengths: GivenLengths
    ) -> bool:
        """Return whether a unit that must be absent stands before a run, as known at a document.

        The run may say `lengths`.
        """
        left = head.left
        if left is None:
            return False
        first, terms = head.elements[0], self.rows(left)[0].terms
        assert first.element is not None
        runs = {self._run: RunAtHand([first.element], None, {})}
        same = self.same_key(head) or ()
        said = self._said(left, first)
        retention_us = lengths.get(("retention_us", -1))
        every = zip(units, self._of_absent, self.absent, strict=True)
        for number, (unit, tests, asked) in enumerate(every):
            window_us = lengths.get(("absent", number))
            own = [said[datum_term(datum)].value or "" for datum in unit.data]
            for near in unit.near(
                ((left,), head.elements), (*same, *own), docid, window_us, retention_us
            ):
                if tests and not tests.hold(near, said):
                    continue
                run = RunAtHand((), near.element, {})
                start_us = min(left.start_us, near.start_us)
                if asked(RunReading(terms, start_us, first.end_us, run, runs)):
                    return True
        return False
