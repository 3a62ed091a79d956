"""All decisions by number: who is a contender for what, and what is asked of whom.

Decisions are evaluated together, so what they differ in are columns: windows, graces, and what is
compared.  A **seat** is a stream in one operand of one decision (`seats`).  A **rule** is a
conjunction of one decision: a fit, a case of an absence, or what a class asks of the tuples that it
hands on.

An absence behind its operand may be decided for many windows.  Then it is one decision, and its
**grades** are that decision for one window each, in the order of the windows: only the tuples
that are decided are of a grade.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from joins.memory.durations import UNBOUNDED
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags
from joins.sequences.columns import Columns
from joins.sequences.planning.ascents import Ascent, TakingKind, ascent_of, bars_of, taking_of
from joins.sequences.planning.asked import AskedRules
from joins.sequences.planning.outputs import ClassOutput
from joins.sequences.planning.readers import SeatReaders
from joins.sequences.planning.seats import Role, Seats
from joins.sequences.planning.terms import Terms
from templates.decision import Decided, Decision, DecisionKind, TupleStream
from templates.rule import Rule, rule_of_case, rule_of_fit

__all__ = ["KINDS", "NO_TERM", "Plan", "Role"]

KINDS = list(DecisionKind)
"""Kinds by their numbers in columns."""

NO_TERM = -1
"""The term of a left row that says the window of what is absent, where none does."""

OUT_OF_USE = -1
"""The stratum of decisions that are not in use any more."""


class Read(NamedTuple):
    """As what values are read, beside their hashes."""

    numbers: bool
    texts: bool


@dataclass(slots=True)
class _Operands:
    """The operands of one decision, and its seats by operand and stream."""

    left: int
    right: int
    seats: dict[tuple[int, TupleStream], int] = field(default_factory=dict)


class Plan:
    """Decisions, seats and rules.  A number is never given twice."""

    def __init__(self) -> None:
        self.terms = Terms()
        times = ("window_us", "within_us", "grace_us", "retention_us")
        self.decisions = Columns(
            {"kind": np.int8, **dict.fromkeys((*times, "span_us"), np.int64)}
            | dict.fromkeys(("whole", "grades", "grade_count"), np.int32)
            | {
                "stratum": np.int32,
                "is_used": np.bool_,
                "is_served": np.bool_,
                "is_sparing": np.bool_,
                "is_whole": np.bool_,
                "ascent": np.int8,
                "bars": np.int8,
                "cases": np.int32,
                "case_count": np.int32,
            }
            | {"has_numbers": np.bool_, "has_texts": np.bool_}
        )
        self.seats = Seats(self.terms)
        self.asked = AskedRules(self.terms)
        self.numbers: dict[Decision, int] = {}
        self._operands: dict[int, _Operands] = {}
        self._operand_count = 0
        self._scored: dict[int, list[tuple[int, Callable[[float], Rule]]]] = defaultdict(list)
        self._least: dict[int, float] = {}
        self.cases = Columns(
            {"rule": np.int32, "window_us": np.int64, "window": np.int64, "taking": np.int8}
            | dict.fromkeys(("left_blocks", "right_blocks", "beside", "beside_count"), np.int32)
        )
        self._beside = Columns({"stream": np.int64})
        self._readers: dict[int, SeatReaders] = {}
        self._strata: list[int] = []

    # -- decisions -----------------------------------------------------------------------------

    def take(self, decision: Decision, stratum: int, windows: Iterable[int] = ()) -> bool:
        """Take a decision, decided in a stratum; return whether it was decided in another one.

        `windows` are those for which it is asked, where its window is a parameter.
        """
        self._readers, self._strata = {}, []
        number = self.numbers.get(decision)
        if number is None:
            self._add(decision, stratum)
            number = self.numbers[decision]
            self._widen(decision, number, windows)
            return False
        self._widen(decision, number, windows)
        has_moved = bool(self.decisions["stratum"][number] != stratum)
        self.decisions["stratum"][number] = stratum
        return has_moved

    def _widen(self, decision: Decision, number: int, windows: Iterable[int]) -> None:
        """Have a decision be made for some windows, where its window is a parameter.

        What is decided for others is given to nobody: instances may be gone that they would reach.
        """
        if decision.is_graded:
            self._grade(number, windows, decision.lookback)
        elif decision.is_nearing:
            for name in ("window_us", "retention_us"):
                self.decisions[name][number] = min(max(windows), UNBOUNDED)
        elif decision.is_reaching:
            known = int(self.decisions["retention_us"][number])
            longest_us = min(max(known, *windows), UNBOUNDED)
            self.decisions["retention_us"][number] = longest_us
            first, count = (int(self.decisions[n][number]) for n in ("cases", "case_count"))
            own = first + np.flatnonzero(
                self.cases["taking"][first : first + count] == TakingKind.REACHING
            )
            self.cases["window_us"][own] = longest_us

    def lower(self, decision: Decision, least: float) -> bool:
        """Look for scores from a threshold on; return whether more are looked for than before."""
        number = self.numbers[decision]
        if least >= self._least.get(number, math.inf):
            return False
        self._least[number] = least
        for rule, rule_at in self._scored[number]:
            self.asked.at(rule, rule_at(least))
        return True

    def _grade(self, number: int, windows: Iterable[int], lookback: int) -> None:
        """Have a decision be made for some windows, each of which has a number of its own.

        A further one comes before anything that it could decide about.
        """
        first, count = (int(self.decisions[name][number]) for name in ("grades", "grade_count"))
        known = self.decisions["window_us"][first : first + count]
        asked = np.minimum(np.array(sorted(windows), np.int64), UNBOUNDED)
        if not len(np.setdiff1d(asked, known)):
            self.decisions["is_used"][first : first + count] = np.isin(known, asked)
            return
        every = np.union1d(asked, known)
        own = {name: self.decisions[name][number] for name in self.decisions.names}
        kept = lookback * np.minimum(every, UNBOUNDED // lookback)
        own |= {"window_us": every, "retention_us": kept, "span_us": every, "grade_count": 0}
        own["is_used"] = np.isin(every, asked)
        self.decisions["grades"][number] = self.decisions.append(len(every), **own)
        self.decisions["grade_count"][number] = len(every)
        self.decisions["window_us"][number] = every[-1]
        self.decisions["retention_us"][number] = kept[-1]

    def _add(self, decision: Decision, stratum: int) -> None:
        number = len(self.decisions)
        self.numbers[decision] = number
        cases = [
            (_bound_us(absent.window_us, UNBOUNDED), taking_of(decision, absent, case), case, sides)
            for absent in decision.absences
            for case in absent.cases
            for sides in _sides_of(decision, case.blocks)
        ]
        ascent = ascent_of(decision)
        self.decisions.append(
            1,
            kind=KINDS.index(decision.kind),
            window_us=_bound_us(decision.window_us),
            within_us=min(decision.within_us, UNBOUNDED),
            grace_us=decision.grace_us,
            retention_us=min(decision.lookback * _bound_us(decision.retention_us), UNBOUNDED),
            span_us=0,
            whole=number,
            grades=0,
            grade_count=0,
            stratum=stratum,
            is_used=True,
            is_served=decision.kind is DecisionKind.NEXT
            and not decision.is_sparing
            and (ascent != Ascent.NONE or any(fit.right.keys for fit in decision.fits)),
            is_sparing=decision.is_sparing,
            is_whole=decision.is_whole,
            ascent=ascent,
            bars=bars_of(decision),
            cases=len(self.cases),
            case_count=len(cases),
            has_numbers=bars_of(decision) in (Ascent.RISING, Ascent.FALLING),
            has_texts=decision.is_sparing or decision.spares,
        )
        own = self._operands[number] = _Operands(self._operand(), self._operand())
        fits: dict[tuple[int, TupleStream], list[int]] = {}
        for stream in decision.lefts:
            fits.setdefault((own.left, stream), [])
        for fit in decision.fits:
            rule = self._rule(number, rule_of_fit(fit, math.inf))
            if fit.score is not None:
                self._scored[number].append((rule, partial(rule_of_fit, fit)))
            fits.setdefault((own.left, fit.left), []).append(rule)
            fits.setdefault((own.right, fit.right), []).append(rule)
        for (operand, stream), rules in fits.items():
            role = Role.LEFT if operand == own.left else Role.RIGHT
            self._sit(number, own, operand, role, stream, rules)
        for window_us, taking, case, (left, right) in cases:
            streams = map(self.seats.stream_of, case.beside)
            beside = np.array([each for each in streams if each is not None], np.int64)
            asked = rule_of_case(case, math.inf)
            rule = self._rule(number, asked)
            self.decisions["has_numbers"][number] |= bool(case.window)
            if case.score is not None:
                self._scored[number].append((rule, partial(rule_of_case, case)))
            self.cases.append(
                1,
                rule=rule,
                window_us=window_us,
                window=self.terms.number(case.window) if case.window else NO_TERM,
                taking=taking,
                left_blocks=self.seats.blocks_of(left),
                right_blocks=self.seats.blocks_of(right),
                beside=self._beside.append(len(beside), stream=beside),
                beside_count=len(beside),
            )
            self._sit(number, own, self._operand(), Role.ABSENT, case.stream, [rule])

    def hand_on(self, query_class: int, decided: Decided) -> ClassOutput:
        """Take what a class hands on of a decision that is there."""
        number = self.numbers[decided.decision]
        own = self._operands[number]
        left, right = self._seat(number, own, own.left, Role.LEFT, decided.left), -1
        if decided.right is not None:
            right = self._seat(number, own, own.right, Role.RIGHT, decided.right)
        return ClassOutput(
            query_class, number, left, right, self._rule(number, Rule(decided.asked))
        )

    def remove(self, decision: Decision) -> None:
        """Leave a decision out from now on."""
        number = self.numbers.pop(decision)
        self.decisions["is_used"][number] = False
        self.decisions["stratum"][number] = OUT_OF_USE
        del self._operands[number]
        self._scored.pop(number, None)
        self._least.pop(number, None)
        self._readers, self._strata = {}, []

    def _operand(self) -> int:
        self._operand_count += 1
        return self._operand_count

    def _rule(self, decision: int, rule: Rule) -> int:
        self.decisions["has_numbers"][decision] |= rule.has_numbers
        is_read = rule.condition is not None or rule.score is not None
        self.decisions["has_texts"][decision] |= is_read
        return self.asked.add(rule)

    def _seat(
        self, decision: int, own: _Operands, operand: int, role: Role, stream: TupleStream
    ) -> int:
        seat = own.seats.get((operand, stream))
        if seat is not None:
            return seat
        return self._sit(decision, own, operand, role, stream, [], is_deciding=False)

    def _sit(
        self,
        decision: int,
        own: _Operands,
        operand: int,
        role: Role,
        stream: TupleStream,
        rules: Sequence[int],
        *,
        is_deciding: bool = True,
    ) -> int:
        seat = own.seats[operand, stream] = self.seats.add(
            decision, operand, role, stream, rules, is_deciding=is_deciding
        )
        self._readers, self._strata = {}, []
        return seat

    # -- what is read --------------------------------------------------------------------------

    def strata_of(self, streams: Ints) -> Iterator[tuple[int, Flags]]:
        """Yield the strata in which some of these streams are read, and which of them are."""
        if not self._strata:
            strata = np.unique(self.decisions["stratum"])
            self._strata = strata[strata != OUT_OF_USE].tolist()
        for stratum in self._strata:
            _, counts = self._reading(stratum).of_streams(streams)
            if counts.any():
                yield stratum, counts > 0

    def seats_of(self, streams: Ints, stratum: int) -> tuple[Ints, Ints, Ints]:
        """Return the seats of a stratum; where a stream's begin among them, and how many it has."""
        readers = self._reading(stratum)
        return readers.seats, *readers.of_streams(streams)

    def _reading(self, stratum: int) -> SeatReaders:
        readers = self._readers.get(stratum)
        if readers is None:
            seats = np.flatnonzero(self.decisions["stratum"][self.seats["decision"]] == stratum)
            readers = self._readers[stratum] = SeatReaders.of(seats, self.seats["stream"][seats])
        return readers

    def strata(self, decisions: Ints) -> Ints:
        """Return the strata of decisions, `OUT_OF_USE` of the ones that are not in use any more."""
        strata: Ints = self.decisions["stratum"][decisions]
        return strata

    def reads(self, seats: Ints) -> Read:
        """Return as what the values of some seats are read, beside their hashes."""
        decisions = self.seats["decision"][seats]
        return Read(
            *(bool(self.decisions[n][decisions].any()) for n in ("has_numbers", "has_texts"))
        )

    def cases_of(self, decisions: Ints, left: Ints, right: Ints) -> tuple[Ints, Ints]:
        """Return the cases that can take tuples of some seats away, a right one of -1 is none.

        They are: which tuple it is, and the number of the case.
        """
        counts = self.decisions["case_count"][decisions]
        cases = ranges(self.decisions["cases"][decisions], counts)
        which = np.repeat(np.arange(len(decisions)), counts)
        blocks = self.seats["blocks"]
        nothing = self.seats.blocks_of(())
        own = self.cases["left_blocks"][cases] == blocks[left[which]]
        behind = np.where(right < 0, nothing, blocks[right])
        own &= self.cases["right_blocks"][cases] == behind[which]
        return which[own], cases[own]

    def are_beside(self, cases: Ints, seats: Ints) -> Flags:
        """Return which cases are asked beside rows of seats; see `AbsentCase`."""
        streams = self.seats["stream"][seats]
        first, counts = (self.cases[name][cases] for name in ("beside", "beside_count"))
        beside = np.zeros(len(cases), np.bool_)
        for k in range(int(counts.max(initial=0))):
            own = np.flatnonzero(counts > k)
            beside[own] |= self._beside["stream"][first[own] + k] == streams[own]
        return beside


def _bound_us(length_us: object, unknown_us: int = 0) -> int:
    """Return a length, as far as it is known."""
    return min(length_us, UNBOUNDED) if isinstance(length_us, int) else unknown_us


def _sides_of(
    decision: Decision, blocks: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return how the blocks of tuples are those of a left and of a right one, if they are."""
    sides = [(fit.left.blocks, fit.right.blocks) for fit in decision.fits]
    sides += [(stream.blocks, ()) for stream in decision.lefts]
    return list(dict.fromkeys(each for each in sides if each[0] + each[1] == blocks))
