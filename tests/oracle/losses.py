"""Statements with LOSS (section 20): what is asked where units are lost, and how sure it is.

A statement is taken apart once for each choice of lost units and of one disjunct at each operator,
with the values of parameters written out in what these compare.
What follows from equalities is asked of every pair of terms between which a path of equalities
leads.  Distributions are sums of even pieces and of single points, as fractions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product

from broker.documents.document import Document
from oracle.contender import Contender
from oracle.operators import Rules
from xscl.path import Literal, Parameter
from xscl.query import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    Call,
    Delay,
    Disjunct,
    From,
    Loss,
    Node,
    Operand,
    Operator,
    Query,
    Residual,
    ValueJoin,
    VariableValue,
    Window,
    operand_variables,
)
from xscl.sequence import blocks_below, units_of
from xscl.signatures import DERIVING_FUNCTIONS

__all__ = ["Reading", "known", "least_of", "readings", "sureness"]

Comparison = ValueJoin | Residual | Call
_Within = tuple[Window | Parameter, ...]


@dataclass(frozen=True)
class Reading:
    """A statement without some units; `lost` are their blocks."""

    query: Query
    lost: tuple[int, ...]


@dataclass(frozen=True)
class _Step:
    """An operator of a chain with the absences behind it; `unit` is what it adds."""

    operator: Operator
    unit: Node
    absences: tuple[Absence, ...]


def readings(query: Query, rules: Rules) -> list[Reading]:
    """Return a query as it reads for each choice of lost units."""
    outer = query.root if isinstance(query.root, From) else From(query.root)
    first, steps = _taken_apart(outer.node)
    steps = [_written_out(step, rules) for step in steps]
    there = [block for unit in units_of(query.root) for block in unit]
    lossy = [block for block in there if query.blocks[block].loss is not None]
    found: list[Reading] = []
    for count in range(len(lossy) + 1):
        for lost in combinations(lossy, count):
            if any(_loss(query, block).probability == 0 for block in lost):
                continue
            choices = product(*(step.operator.disjuncts for step in steps)) if lost else [None]
            for choice in choices:
                node = outer.node
                if choice is not None:
                    node = _Chain(query, rules, first, steps).without(lost, choice)
                root = node if outer == From(outer.node) else replace(outer, node=node)
                blocks = tuple(replace(block, loss=None) for block in query.blocks)
                found.append(Reading(replace(query, root=root, blocks=blocks), lost))
    return found


def _loss(query: Query, block: int) -> Loss:
    loss = query.blocks[block].loss
    assert loss is not None
    return loss


def _taken_apart(node: Node) -> tuple[Node, list[_Step]]:
    """Return the first operand of a chain, UNLESS and all, and its steps."""
    absences: list[Absence] = []
    below = node
    while isinstance(below, Absence):
        absences.insert(0, below)
        below = below.operand
    if not isinstance(below, Operator):
        return node, []
    first, steps = _taken_apart(below.left)
    return first, [*steps, _Step(below, below.right, tuple(absences))]


def _written_out(step: _Step, rules: Rules) -> _Step:
    def disjuncts(node: Operator | Absence) -> tuple[Disjunct, ...]:
        return tuple(_with_values(each, rules) for each in node.disjuncts)

    operator = replace(step.operator, disjuncts=disjuncts(step.operator))
    absences = tuple(replace(each, disjuncts=disjuncts(each)) for each in step.absences)
    return _Step(operator, step.unit, absences)


def _with_values(disjunct: Disjunct, rules: Rules) -> Disjunct:
    def written(operand: Operand) -> Operand:
        if isinstance(operand, Parameter):
            given = rules.parameters[operand.name]
            return Literal(given if isinstance(given, str) else float(given))
        if isinstance(operand, Call):
            return Call(operand.function, tuple(map(written, operand.arguments)))
        return operand

    residuals = [
        replace(each, left=written(each.left), right=written(each.right))
        for each in disjunct.residuals
    ]
    return replace(disjunct, residuals=tuple(residuals))


class _Chain:
    def __init__(self, query: Query, rules: Rules, first: Node, steps: Sequence[_Step]) -> None:
        self.query = query
        self.rules = rules
        self.first = first
        self.steps = steps
        self.step_of = dict.fromkeys(blocks_below(first), -1)
        for number, step in enumerate(steps):
            self.step_of |= dict.fromkeys(blocks_below(step.unit), number)
        self.block_of = {variable.name: variable.block for variable in query.variables}

    def without(self, lost: Collection[int], choice: Sequence[Disjunct]) -> Node:
        """Return the chain without some units, one disjunct chosen at each operator."""
        node, begin = self.first, 0
        for number, step in enumerate(self.steps):
            if step.unit in lost:
                continue
            gone = [each.unit for each in self.steps[begin:number]]
            asked = self.asked(lost, choice, begin, number)
            window = Window(self.length(begin, number))
            node = replace(step.operator, left=node, disjuncts=(asked,), window=window)
            for block in gone:
                assert isinstance(block, int)
                node = self.taken(block, node, lost, choice, begin, number)
            for inner in range(begin, number + 1):
                for absence in self.steps[inner].absences:
                    node = replace(
                        absence,
                        operand=node,
                        disjuncts=tuple(
                            self.about_others(each, lost, choice) for each in absence.disjuncts
                        ),
                        window=self.further(absence.window, inner + 1, number),
                    )
            begin = number + 1
        return node

    def length(self, begin: int, end: int) -> int:
        """Return the windows of some steps together, the last one included."""
        lengths = [
            self.rules.length_us(step.operator.window) for step in self.steps[begin : end + 1]
        ]
        return min(sum(lengths), INFINITE_US)

    def further(self, window: Window | Parameter | None, begin: int, end: int) -> Window | None:
        if window is None:
            return None
        return Window(min(self.rules.length_us(window) + self.length(begin, end), INFINITE_US))

    def taken(
        self,
        block: int,
        node: Node,
        lost: Collection[int],
        choice: Sequence[Disjunct],
        begin: int,
        end: int,
    ) -> Absence:
        """Return an absence of what a lost unit would have taken between its neighbours."""
        at = self.step_of[block]
        others = [each for each in lost if each != block]
        own = Call("time", (VariableValue(self.query.blocks[block].root),))
        before = self.first if begin == 0 else self.steps[begin - 1].unit
        held = _comparisons(self.asked(lost, choice, begin, end))
        disjuncts = []
        for chosen in product(*(step.operator.disjuncts for step in self.steps[begin : end + 1])):
            whole = [*choice[:begin], *chosen, *choice[end + 1 :]]
            asked: list[Comparison] = []
            for number in range(begin, end + 1):
                if self.steps[number].unit not in others:
                    stop = next(
                        i
                        for i in range(number, -2, -1)
                        if i < begin or (i < number and self.steps[i].unit not in others)
                    )
                    asked += _comparisons(self.asked(others, whole, stop + 1, number, end))
            asked = [
                _behind_unless(each, block, self.block_of) for each in asked if each not in held
            ]
            limit = Literal(float(self.length(begin, at)))
            for unit in units_of(before):
                ends = [
                    Call("time", (VariableValue(self.query.blocks[each].root),)) for each in unit
                ]
                in_time = [Residual(Call("-", (own, each)), "<=", limit) for each in ends]
                disjuncts.append(_conjunction([*asked, *in_time]))
        behind = Window(self.length(at + 1, end))
        return Absence(AbsenceKind.BETWEEN, node, block, tuple(disjuncts), behind)

    def asked(
        self,
        lost: Collection[int],
        choice: Sequence[Disjunct],
        begin: int,
        end: int,
        last: int | None = None,
    ) -> Disjunct:
        """Return what is asked where a unit comes in, of it and of those before it.

        `last` is the last step whose equalities are heard, all where it is None.
        """
        heard = choice if last is None else choice[: last + 1]
        found: list[Comparison] = []
        for disjunct in choice[begin : end + 1]:
            found += [
                each for each in _comparisons(disjunct) if not set(lost) & self.blocks_of(each)
            ]
        terms = self.equal_terms(heard)
        here = [
            term
            for term in terms
            if not _is_datum(term)
            and self.of(term) not in lost
            and self.step_of[self.of(term)] <= end
        ]
        for term in here:
            for other in self.reached(term, lost, heard):
                if _is_datum(other):
                    if self.first_present(self.step_of[self.of(term)], lost) == end:
                        found.append(Residual(term, "=", other))
                    continue
                if other == term or self.step_of[self.of(other)] > end:
                    continue
                steps = [self.step_of[self.of(each)] for each in (term, other)]
                if self.first_present(max(steps), lost) != end:
                    continue
                if steps[0] < steps[1] and _is_of_strings(term) and _is_of_strings(other):
                    found.append(ValueJoin(term, other))  # type: ignore[arg-type]
                elif steps[0] <= steps[1]:
                    found.append(Residual(term, "=", other))
        for term in terms:
            if (
                self.is_lost(term, lost)
                and self.first_present(self.step_of[self.of(term)], lost) == end
            ):
                data = [each for each in self.reached(term, lost, heard) if _is_datum(each)]
                found += [Residual(one, "=", other) for one, other in combinations(data, 2)]
        return _conjunction(found)

    def first_present(self, step: int, lost: Collection[int]) -> int:
        """Return the first step from one on whose unit is there."""
        return next(
            i for i in range(max(step, 0), len(self.steps)) if self.steps[i].unit not in lost
        )

    def equal_terms(self, choice: Sequence[Disjunct]) -> list[Operand]:
        found = [
            each
            for disjunct in choice
            for comparison in _comparisons(disjunct)
            if self.is_equality(comparison)
            for each in (comparison.left, comparison.right)  # type: ignore[union-attr]
        ]
        return list(dict.fromkeys(found))

    def is_equality(self, comparison: Comparison) -> bool:
        if isinstance(comparison, Call):
            return False
        if isinstance(comparison, Residual) and comparison.operator != "=":
            return False
        sides = (comparison.left, comparison.right)
        return all(_is_datum(each) or _is_of_one(each) for each in sides)

    def reached(
        self, term: Operand, lost: Collection[int], choice: Sequence[Disjunct]
    ) -> list[Operand]:
        """Return the terms to which equalities lead from one of which a unit is lost."""
        edges: dict[Operand, list[Operand]] = {}
        for disjunct in choice:
            for comparison in _comparisons(disjunct):
                if self.is_equality(comparison):
                    left, right = comparison.left, comparison.right  # type: ignore[union-attr]
                    if any(self.is_open(each, lost) for each in (left, right)):
                        continue
                    edges.setdefault(left, []).append(right)
                    edges.setdefault(right, []).append(left)
        reached, waiting = {term}, [term]
        while waiting:
            for other in edges.get(waiting.pop(), []):
                if other not in reached:
                    reached.add(other)
                    # Two texts that are equal to one number may differ, or to one of several.
                    waiting += [other] if _is_text(other) else []
        left_over = [each for each in sorted(reached, key=repr) if not self.is_lost(each, lost)]
        return left_over if len(left_over) < len(reached) else []

    def is_open(self, term: Operand, lost: Collection[int]) -> bool:
        return self.is_lost(term, lost) and not _is_text(term)

    def is_lost(self, term: Operand, lost: Collection[int]) -> bool:
        return not _is_datum(term) and self.of(term) in lost

    def about_others(
        self, disjunct: Disjunct, lost: Collection[int], choice: Sequence[Disjunct]
    ) -> Disjunct:
        """Return a conjunction behind UNLESS, about what is left instead of what is lost."""
        found: list[Comparison] = []
        for comparison in _comparisons(disjunct):
            if self.is_equality(comparison) and set(lost) & self.blocks_of(comparison):
                sides = [
                    self.other_than_lost(each, lost, choice)
                    for each in (comparison.left, comparison.right)  # type: ignore[union-attr]
                ]
                is_joined = all(_is_of_strings(e) and not _is_datum(e) for e in sides)
                if is_joined and isinstance(comparison, ValueJoin):
                    comparison = ValueJoin(sides[0], sides[1])  # type: ignore[arg-type]
                else:
                    comparison = Residual(sides[0], "=", sides[1])
            found.append(comparison)
        return _conjunction(found)

    def other_than_lost(
        self, term: Operand, lost: Collection[int], choice: Sequence[Disjunct]
    ) -> Operand:
        if not self.is_lost(term, lost):
            return term
        end = self.first_present(self.step_of[self.of(term)], lost)
        others = [
            each
            for each in self.reached(term, lost, choice)
            if _is_datum(each) or self.step_of[self.of(each)] <= end
        ]
        return min(
            others,
            key=lambda each: (not _is_text(each), _is_datum(each), not _is_of_strings(each)),
            default=term,
        )

    def of(self, term: Operand) -> int:
        return self.block_of[operand_variables(term)[0]]

    def blocks_of(self, comparison: Comparison) -> set[int]:
        sides = (
            comparison.arguments
            if isinstance(comparison, Call)
            else (comparison.left, comparison.right)
        )
        names = {name for side in sides for name in operand_variables(side)}
        return {self.block_of[name] for name in names if name in self.block_of}


def _is_of_one(operand: Operand) -> bool:
    return len(operand_variables(operand)) == 1 and isinstance(operand, (VariableValue, Call))


def _is_datum(operand: Operand) -> bool:
    if isinstance(operand, Call) and operand.arguments:
        return all(map(_is_datum, operand.arguments))
    return isinstance(operand, Literal)


def _is_text(term: Operand) -> bool:
    """Whether a term is one text: a number may be that of several, `tokenize` has several."""
    if isinstance(term, Literal):
        return isinstance(term.value, str)
    return _is_of_strings(term) and "tokenize" not in repr(term)


def _is_of_strings(term: Operand) -> bool:
    if isinstance(term, Call):
        return term.function in DERIVING_FUNCTIONS and all(map(_is_of_strings, term.arguments))
    return isinstance(term, (VariableValue, Literal))


def _comparisons(disjunct: Disjunct) -> list[Comparison]:
    similar = [join.residual for join in disjunct.similarity_joins]
    return [*disjunct.value_joins, *disjunct.residuals, *similar, *disjunct.tests]


def _conjunction(comparisons: Sequence[Comparison]) -> Disjunct:
    kept = list(dict.fromkeys(comparisons))
    return Disjunct(
        tuple(each for each in kept if isinstance(each, ValueJoin)),
        tuple(each for each in kept if isinstance(each, Residual)),
        (),
        tuple(each for each in kept if isinstance(each, Call)),
    )


def _behind_unless(comparison: Comparison, block: int, block_of: Mapping[str, int]) -> Comparison:
    """Return a value join as the comparison of an absent unit: its term stands last."""
    if not isinstance(comparison, ValueJoin):
        return comparison
    if block_of[operand_variables(comparison.left)[0]] == block:
        return ValueJoin(comparison.right, comparison.left)
    return comparison


# -- how sure a tuple is -------------------------------------------------------------------------


def least_of(query: Query, rules: Rules) -> Fraction:
    """Return the confidence that a query asks for."""
    asked = query.confidence
    if isinstance(asked, Parameter):
        asked = float(rules.parameters[asked.name])
    return Fraction(str(asked)) if asked is not None else Fraction(0)


def known(query: Query, documents: Sequence[Document]) -> Fraction:
    """Return how sure the documents of a tuple are, where a query asks."""
    if query.confidence is None:
        return Fraction(1)
    return math.prod((each.confidence for each in documents), start=Fraction(1))


def sureness(
    query: Query,
    lost: Sequence[int],
    one: Contender,
    rules: Rules,
    complete: Sequence[Contender] = (),
) -> Fraction:
    """Return the confidence of a tuple from which some units are lost.

    `complete` are the tuples that lack nothing from which delays are learned.
    """
    ends = {b: d.end_us for b, d in zip(one.blocks, one.documents, strict=True)}
    starts = {b: d.start_us for b, d in zip(one.blocks, one.documents, strict=True)}
    found = known(query, one.documents)
    root = query.root.node if isinstance(query.root, From) else query.root
    first, steps = _taken_apart(root)
    missing: list[int] = []
    before = [block for block in blocks_below(first) if block in ends]
    for step in steps:
        if isinstance(step.unit, int) and step.unit in lost:
            missing.append(step.unit)
            continue
        own = [block for block in blocks_below(step.unit) if block in ends]
        if missing:
            gap_us = max(ends[block] for block in own) - max(ends[block] for block in before)
            losses = [_loss(query, block) for block in missing]
            seen = [[_took(block, each, first, steps) for each in complete] for block in missing]
            found *= _lost(losses, gap_us, rules, seen)
        missing, before = [], own
    for absence, within_us in _absences(query.root, ()):
        for block in blocks_below(absence.absent):
            loss = query.blocks[block].loss
            if loss is None:
                continue
            gap_us = _gap(query, absence, lost, within_us, ends, starts, rules)
            found *= _unseen(loss, gap_us, rules)
    return found


def _absences(
    node: Node, within: tuple[Window | Parameter, ...]
) -> Iterator[tuple[Absence, tuple[Window | Parameter, ...]]]:
    """Yield all absences of a source with the WITHIN around each."""
    match node:
        case From(node=inner, within=own):
            yield from _absences(inner, within if own is None else (*within, own))
        case Operator(left=left, right=right):
            yield from _absences(left, within)
            yield from _absences(right, within)
        case Absence(operand=operand):
            yield from _absences(operand, within)
            yield node, within


def _gap(
    query: Query,
    absence: Absence,
    lost: Sequence[int],
    within: Sequence[Window | Parameter],
    ends: Mapping[int, int],
    starts: Mapping[int, int],
    rules: Rules,
) -> int:
    operand: Node = absence.operand
    if absence.kind is AbsenceKind.BETWEEN:
        while isinstance(operand, Absence):
            operand = operand.operand
        assert isinstance(operand, Operator)
        left, right = operand.left, operand.right
        chain = list(units_of(query.root))
        of_right = [block for unit in units_of(right) for block in unit]
        if not [block for block in of_right if block in ends]:
            behind = [u for u in chain if min(u) > max(of_right) and set(u) & ends.keys()]
            of_right = list(behind[0])
        of_left = [block for unit in units_of(left) for block in unit]
        return max(ends[b] for b in of_right if b in ends) - max(
            ends[b] for b in of_left if b in ends
        )
    blocks = [b for unit in units_of(operand) for b in unit if b in ends]
    end = max(ends[block] for block in blocks)
    start = min(starts[block] for block in blocks)
    untils = [start + rules.length_us(each) for each in within]
    if absence.window is not None:
        untils.append(end + rules.length_us(absence.window))
    return min(untils) - end


def _unseen(loss: Loss, gap_us: int, rules: Rules) -> Fraction:
    came = _came([loss], gap_us, rules, [()])
    eps = Fraction(str(loss.probability))
    return (1 - came) / (1 - came + eps * came) if came < 1 or eps else Fraction(1)


def _took(block: int, one: Contender, first: Node, steps: Sequence[_Step]) -> int:
    """Return how long a unit came after what stands before it."""
    ends = {b: d.end_us for b, d in zip(one.blocks, one.documents, strict=True)}
    units = [first, *(step.unit for step in steps)]
    before = blocks_below(units[units.index(block) - 1])
    return ends[block] - max(ends[each] for each in before if each in ends)


def _lost(
    losses: Sequence[Loss], gap_us: int, rules: Rules, seen: Sequence[Sequence[int]]
) -> Fraction:
    eps = math.prod(Fraction(str(loss.probability)) for loss in losses)
    return eps * _came(losses, gap_us, rules, seen)


def _came(
    losses: Sequence[Loss], gap_us: int, rules: Rules, seen: Sequence[Sequence[int]]
) -> Fraction:
    """Return how probable it is that one document after the other comes within a gap.

    `seen` are the delays that learned ones are learned from.
    """
    if len(losses) == 1 and losses[0].delay.kind == "exp":
        (length,) = losses[0].delay.lengths
        return Fraction(-math.expm1(-gap_us / rules.length_us(length)))
    found = Fraction(0)
    pieces = (_pieces(loss.delay, rules, own) for loss, own in zip(losses, seen, strict=True))
    for parts in product(*pieces):
        mass = math.prod(piece[2] for piece in parts)
        found += mass * _below([piece[:2] for piece in parts], gap_us)
    return found


def _pieces(delay: Delay, rules: Rules, seen: Sequence[int]) -> list[tuple[int, int, Fraction]]:
    """Return a distribution as even pieces: from, to, and how much of it."""
    if delay.kind == "learned":
        return [(each, each, Fraction(1, len(seen))) for each in seen]
    lengths = [rules.length_us(each) for each in delay.lengths]
    shares = [Fraction(0), Fraction(1)]
    if delay.kind == "cdf":
        shares = [Fraction(str(each)) for each in delay.shares]
        if lengths[0] > 0:
            lengths, shares = [0, *lengths], [Fraction(0), *shares]
    found = [(lengths[0], lengths[0], shares[0])]
    for i in range(1, len(lengths)):
        found.append((lengths[i - 1], lengths[i], shares[i] - shares[i - 1]))
    return found


def _below(pieces: Sequence[tuple[int, int]], gap_us: int) -> Fraction:
    """Return how probable it is that the sum of even pieces and points is at most a length.

    It is the sum over the corners of (gap - corner)^n, with signs, by n! and the sizes.
    """
    points = sum(low for low, high in pieces if low == high)
    even = [(low, high) for low, high in pieces if low < high]
    left = gap_us - points
    if not even:
        return Fraction(int(left >= 0))
    total = Fraction(0)
    for corner in product(*even):
        sign = (-1) ** sum(at == high for at, (_, high) in zip(corner, even, strict=True))
        total += sign * Fraction(max(0, left - sum(corner))) ** len(even)
    sizes = math.prod(high - low for low, high in even)
    return total / math.factorial(len(even)) / sizes
