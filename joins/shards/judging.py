"""Judges new instances before they are paired: shards count which uses they take over the budget.

Shards count by window and registration point.  Whose instances are (`Holders`) the driver alone can
tell.  No holder makes more pairs than there are, so where these are not too many, nobody's are.
Else shards list them, and the driver counts those of each holder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from joins.budget.pairs import PairBudget
from joins.budget.probe import Probe, ValueJoin
from joins.budget.sketch import Suspect
from joins.classes import ClassRegistry, UseKind
from joins.memory.slots import Ints
from joins.shards.limits import ShardLimits
from joins.shards.orders import Answer, LeftOut, Question

__all__ = ["SuspectJudge"]

AskAll = Callable[[Sequence[Question]], Sequence[Answer]]
"""Has each shard answer some questions."""


class SuspectJudge:
    """Judges suspects, some at a time, for the budget of a batch."""

    def __init__(
        self, classes: ClassRegistry, budget: PairBudget, ask: AskAll, limits: ShardLimits
    ) -> None:
        self._classes = classes
        self._budget = budget
        self._ask = ask
        self._limits = limits

    def judge(self, suspects: Iterator[Suspect]) -> Iterator[LeftOut]:
        """Stop the uses that suspects take over the budget; yield the pairs that nobody wants."""
        asked = self._limits.first_asked
        while some := list(islice(suspects, asked)):
            asked *= 4
            questions = [
                Question(suspect.probe_row, number, kinds)
                for suspect in some
                for number in suspect.classes
                if not self._classes.by_number[number].similar
                and (kinds := self._kinds(number, suspect.probe_row.docid))
            ]
            listed: list[tuple[Question, int]] = []
            for question, counts in zip(questions, self._count(questions), strict=True):
                number, docid = question.query_class, question.probe_row.docid
                if not self._classes.has_holders(number):
                    self._budget.judge_counted(number, docid, question.kinds, counts)
                elif np.min(counts, axis=0).max() > self._budget.pairs_max:
                    pairs = sum(int(each.max()) for each in counts)
                    listed.append((replace(question, is_listed=True), pairs))
            for portion in _portions(listed, self._limits.listed_tuples):
                yield from self._judge_listed(portion)

    def _kinds(self, number: int, docid: int) -> tuple[UseKind, ...]:
        """Return the open uses of a class that see a document, whoever has them."""
        kinds = self._budget.kinds(number, docid)
        return tuple(dict.fromkeys(kind._replace(holder=0) for kind in kinds))

    def _count(self, questions: Sequence[Question]) -> Iterator[list[Ints]]:
        """Yield the answer to each question: the sums of the shards' counts."""
        answers = self._ask(questions) if questions else []
        for counts in zip(*(answer.counts for answer in answers), strict=True):
            yield [np.sum(parts, axis=0) for parts in zip(*counts, strict=True)]

    def _judge_listed(self, questions: Sequence[Question]) -> Iterator[LeftOut]:
        """Judge instances by the pairs of each holder."""
        probes = zip(*(answer.probes for answer in self._ask(questions)), strict=True)
        for question, parts in zip(questions, probes, strict=True):
            number, docid = question.query_class, question.probe_row.docid
            joins: list[ValueJoin | None] = [*self._classes.by_number[number].value_pairs()]
            own = map(Probe.of_parts, zip(*parts, strict=True))
            by_join = dict(zip(joins or [None], own, strict=True))
            self._budget.judge_met(number, docid, by_join.__getitem__)
            # Tuples have equal values by each of the value joins.
            fewest = min((probe.met for probe in by_join.values()), key=len)
            unwanted = self._budget.nobodys(number, docid, fewest)
            if len(unwanted):
                instance = question.probe_row.instance
                yield LeftOut(number, instance, unwanted.left, unwanted.right)


def _portions(questions: Sequence[tuple[Question, int]], most: int) -> Iterator[list[Question]]:
    """Yield questions with so many pairs at a time, or one that has more."""
    portion: list[Question] = []
    sum_ = 0
    for question, pairs in questions:
        if portion and sum_ + pairs > most:
            yield portion
            portion, sum_ = [], 0
        portion.append(question)
        sum_ += pairs
    if portion:
        yield portion
