"""What is read of elements of a chain: with what each is found by those next to it.

An element is read as a tuple, or with others of its step as rows of the join, by columns: where
what it must have in common with its neighbours, and the number that it is compared by, are values
of terms, of which it has one each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from math import nan
from typing import cast

import numpy as np

from joins.sequences.absentunits import Key
from joins.sequences.chained.chainsteps import StepEvaluation
from joins.sequences.chained.neighbours import Neighbours
from joins.sequences.counting.chaingraph import AtPlace, ChainNode, Place
from joins.sequences.counting.inorder import ElementsInOrder
from joins.sequences.counting.rowelements import RowElements
from joins.sequences.runparts import Part
from templates.chaindecision import ChainDecision
from templates.nearconditions import NOTHING_ASKED
from templates.neighbours import ComparedSides, InexactError
from templates.rundecision import RunAtHand, RunReading, compile_disjuncts

__all__ = ["NodeReading"]


class NodeReading:
    """Reads the elements of one chain as nodes."""

    def __init__(self, decision: ChainDecision, lateness_us: int) -> None:
        self._links = decision.links
        self._lateness_us = lateness_us
        self._last = len(decision.links) - 1
        numbers = range(len(decision.links))
        self.neighbours = [Neighbours(decision, number) for number in numbers]
        assert all(each.is_all for each in self.neighbours), "more is asked than of neighbours"
        self._steps = [StepEvaluation(decision, number, lateness_us) for number in numbers]
        self._compared = [
            [each.compared(is_further=is_further) for is_further in (False, True)]
            for each in self.neighbours
        ]
        self._begins = compile_disjuncts(decision.links[0].each)

    # -- places --------------------------------------------------------------------------------

    def _asking(self, step: int) -> Iterator[tuple[int, bool]]:
        """Yield where elements of a step look for what stands before them."""
        if self._links[step].is_repeated:
            yield step, True
        if step:
            yield step, False

    def _giving(self, step: int) -> Iterator[tuple[int, bool]]:
        """Yield where elements of a step are found by what comes behind them."""
        if self._links[step].is_repeated:
            yield step, True
        if step < self._last:
            yield step + 1, False

    def compared_at(self, step: int, *, is_further: bool) -> ComparedSides | None:
        """Return the comparison of numbers that is asked at a place, as long as it is one."""
        return self._compared[step][is_further]

    def is_summed(self, place: Place) -> bool:
        """Return whether no more is asked at a place than a key, and one comparison."""
        step, is_further, _ = place
        return self.compared_at(step, is_further=is_further) is not None or self.neighbours[
            step
        ].is_looked_up(is_further=is_further)

    @property
    def is_of_one_key(self) -> bool:
        """Whether what elements must have in common is all that is asked, of all or of none.

        Elements of a repetition have nothing in common that SAME does not say.
        """
        first = [each.is_looked_up(is_further=False) for each in self.neighbours[1:]]
        are_repeated = [link.is_repeated for link in self._links]
        further = [
            each.is_looked_up(is_further=True)
            for each, is_repeated in zip(self.neighbours, are_repeated, strict=True)
            if is_repeated
        ]
        have_keys = [each.has_keys for each in self.neighbours[1:]]
        is_one = not any(have_keys) or (all(have_keys) and not any(are_repeated))
        return is_one and all(first) and all(further)

    def takes_any(self, step: int) -> bool:
        """Return whether elements of a repetition may all stand behind each other.

        What comes before them, too: nothing is asked but SAME, and of each element alone.
        """
        own, link = self.neighbours[step], self._links[step]
        are_free = all(own.is_looked_up(is_further=each) for each in (False, True))
        return are_free and own.asks_alike and not own.has_keys and link.gap_us >= link.window_us

    @property
    def has_one_term_each(self) -> bool:
        """Whether what an element has in common with both sides is the same of it."""
        pairs = [each.key_terms for each in self.neighbours[1:]]
        return all(
            {own for _, own in before} == {own for own, _ in behind}
            for before, behind in pairwise(pairs)
        )

    # -- one element ---------------------------------------------------------------------------

    def node(self, number: int, part: Part) -> ChainNode | None:
        """Return a tuple at a step, None where it lacks a key of SAME."""
        step = self._steps[number]
        same = step.same(part)
        if same is None:
            return None
        begins = not number and step.begun(part, same) is not None
        is_in_time = part.end_us >= part.watermark_us - self._lateness_us
        asks = [
            ((at, is_further, (*same, *key)), self._number(at, part, is_further, is_given=False))
            for at, is_further in self._asking(number)
            if self.neighbours[at].takes(part, is_further=is_further)
            for key in self.neighbours[at].keys_of_other(part, is_further=is_further)
        ]
        gives = [
            ((at, is_further, (*same, *key)), self._number(at, part, is_further, is_given=True))
            for at, is_further in self._giving(number)
            for key in self.neighbours[at].keys_of_one(part, is_further=is_further)
        ]
        return ChainNode(part, part.end_us, number, same, begins, is_in_time, asks, gives)

    def _number(self, step: int, part: Part, is_further: bool, *, is_given: bool) -> float:
        """Return what is compared of a tuple at a place, NaN where nothing is.

        From the first one on of which no one number stands for it, nodes are compared one by one.
        """
        compared = self._compared[step][is_further]
        if compared is None:
            return nan
        reading = self.neighbours[step].alone(part)
        try:
            return compared.given(reading) if is_given else compared.asked(reading)
        except InexactError:
            self._compared[step][is_further] = None
            return nan

    # -- columns -------------------------------------------------------------------------------

    @property
    def takes_columns(self) -> bool:
        """Whether all that is asked of two elements are values of terms."""
        asked = (each for step in range(len(self._links)) for each in self._asking(step))
        are_single = all(len(link.elements) == 1 for link in self._links)
        return are_single and all(self._are_terms(*each) for each in asked)

    def _are_terms(self, step: int, is_further: bool) -> bool:
        if not self.is_summed((step, is_further, ())):
            return False
        compared = self._compared[step][is_further]
        read = [] if compared is None else [*compared.read]
        keys = [] if is_further else self.neighbours[step].key_terms
        return None not in (*read, *(term for pair in keys for term in pair))

    def keyed(self, number: int, elements: ElementsInOrder) -> ElementsInOrder:
        """Return the elements of a step that have all keys of SAME."""
        terms = self._links[number].elements[0].keys
        texts = [elements.columns.texts(term) for term in terms]
        if all(map(all, texts)):
            return elements
        has_all = [all(same) for same in zip(*texts, strict=True)]
        return elements.take(np.flatnonzero(np.array(has_all, np.bool_)))

    def nodes(self, number: int, rows: RowElements) -> list[ChainNode] | None:
        """Return the rows of a step that have all keys of SAME, and came in time, as nodes.

        It is None where one has several values of a term, or is not bound.
        """
        terms = self._links[number].elements[0].keys
        same_texts = cast("list[Sequence[str]]", [rows.texts(term) for term in terms])
        asks = self._at_places(number, rows, same_texts, is_given=False)
        gives = self._at_places(number, rows, same_texts, is_given=True)
        if asks is None or gives is None:
            return None
        begins: Iterable[bool] = repeat(not number)
        if not number and self._links[0].each != NOTHING_ASKED:
            begins = map(self._begins, _readings(rows))
        count = len(rows)
        made = map(
            ChainNode,
            zip(repeat(rows), range(count), strict=False),
            rows.ends_us.tolist(),
            repeat(number),
            _together(same_texts, count),
            begins,
            repeat(True),
            asks,
            gives,
        )
        return [*made]

    def _at_places(
        self, number: int, rows: RowElements, same_texts: Sequence[Sequence[str]], *, is_given: bool
    ) -> list[tuple[AtPlace, ...]] | None:
        """Return the places of each row, with what is compared there; None where it has several."""
        found: list[tuple[AtPlace, ...]] = [()] * len(rows)
        for step, is_further in self._giving(number) if is_given else self._asking(number):
            texts = [*same_texts]
            for pair in [] if is_further else self.neighbours[step].key_terms:
                term = pair[0 if is_given else 1]
                own = None if term is None else term.single(rows.texts(term.name))
                if own is None:
                    return None
                texts.append(own)
            numbers: Iterable[float] = repeat(nan)
            compared = self._compared[step][is_further]
            if compared is not None:
                term = compared.read[1 if is_given else 0]
                known = None if term is None else term.numbers(rows.texts(term.name))
                if known is None:
                    return None
                numbers = known
            at_place = [
                (((step, is_further, key), compared_by),) if all(key) else ()
                for key, compared_by in zip(_together(texts, len(rows)), numbers, strict=False)
            ]
            tests = self.neighbours[step].own_tests(is_further=is_further)
            if tests and not is_given:
                at_place = [
                    own if all(test(reading) for test in tests) else ()
                    for own, reading in zip(at_place, _readings(rows), strict=True)
                ]
            found = [a + b for a, b in zip(found, at_place, strict=True)]
        return found


def _together(texts: Sequence[Sequence[str]], count: int) -> Iterable[Key]:
    """Return the texts of each row."""
    return zip(*texts, strict=True) if texts else repeat((), count)


def _readings(rows: RowElements) -> Iterator[RunReading]:
    """Yield rows as conditions read them that speak of an element alone."""
    for each in rows.elements():
        yield RunReading({}, each.start_us, each.end_us, RunAtHand((), each, {}))
