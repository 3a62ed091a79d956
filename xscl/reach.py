"""Losses that leave too little confidence: what `xscl check` refuses, and warns of.

The most that a factor can be follows from the windows around a lossy unit (`docs/loss.md`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from xscl.comparison import (
    Disjunct,
    Operand,
    VariableValue,
    has_several,
    is_datum,
    is_of_one,
    operand_variables,
)
from xscl.delays import exact, lost, unseen
from xscl.path import Parameter, Span
from xscl.query import Loss, Query
from xscl.report import Report
from xscl.sequence import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    From,
    Node,
    Operator,
    Window,
    blocks_below,
)

__all__ = ["check_reach"]


def check_reach(query: Query, span: Span, report: Report) -> None:
    """Report lossy units with which no match can have the confidence that is asked for."""
    if not query.is_lossy:
        return
    _Reach(query, span, report).check()


@dataclass(frozen=True, slots=True)
class _Link:
    """An operator of the chain, and the block that it adds where that is one lossy unit."""

    operator: Operator
    block: int | None


class _Reach:
    def __init__(self, query: Query, span: Span, report: Report) -> None:
        self.query = query
        self.span = span
        self.report = report
        asked = query.confidence
        self.least = exact(asked) if isinstance(asked, float) else Fraction(0)

    def check(self) -> None:
        """Report what cannot be reached, by unit."""
        root = self.query.root
        outer = root if isinstance(root, From) else From(root)
        within_us = _length_us(outer.within)
        links = list(self._links(outer.node))
        is_keyed = bool(outer.keys)
        for place, link in enumerate(links[:-1]):
            if link.block is not None:
                self._check_lost(link.block, links[place], links[place + 1], within_us)
                if not is_keyed:
                    self._check_joined(link.block, links[place], links[place + 1])
        for place in range(len(links) - 2):
            self._check_three([each.block for each in links[place : place + 3]])
        for absence, limit_us in _absences(root, INFINITE_US):
            self._check_unseen(absence, limit_us)

    def _links(self, node: Node) -> Iterator[_Link]:
        if isinstance(node, Absence):
            yield from self._links(node.operand)
        elif isinstance(node, Operator):
            yield from self._links(node.left)
            block = node.right if isinstance(node.right, int) and self._loss(node.right) else None
            yield _Link(node, block)

    def _loss(self, block: int) -> Loss | None:
        return self.query.blocks[block].loss

    def _check_lost(self, block: int, before: _Link, behind: _Link, within_us: int) -> None:
        loss = self._loss(block)
        assert loss is not None
        if loss.probability == 0:
            return
        windows = (before.operator.window, behind.operator.window)
        longest_us = min(sum(map(_length_us, windows)), within_us, INFINITE_US)
        # A delay that is not known yet may be so short that all come in time.
        most = exact(loss.probability) if _is_open(loss) else lost((loss,), longest_us)
        if most and most >= self.least:
            return
        shown = f"{float(most):.6g}"
        self.report.error(
            "XS914",
            loss.span or self.span,
            f"nothing is inferred: without this unit a match has a confidence of {shown} at most",
            f"write `CONFIDENCE {shown}` or less, or leave LOSS out"
            if most
            else "the windows are shorter than the least delay",
        )

    def _check_three(self, blocks: Sequence[int | None]) -> None:
        losses = [self._loss(block) for block in blocks if block is not None]
        known = [loss for loss in losses if loss is not None]
        if len(known) < 3:
            return
        most = Fraction(1)
        for loss in known:
            most *= exact(loss.probability)
        if most and most >= self.least:
            self.report.error(
                "XS915",
                known[2].span or self.span,
                "three units side by side may all be lost",
                f"ask for more than that leaves: a CONFIDENCE above {float(most):.6g}",
            )

    def _check_unseen(self, absence: Absence, within_us: int) -> None:
        for block in blocks_below(absence.absent):
            loss = self._loss(block)
            if loss is None or _is_open(loss):
                continue
            is_sure = absence.kind is not AbsenceKind.BETWEEN and within_us >= INFINITE_US
            if is_sure and isinstance(absence.window, Parameter):
                continue
            most = unseen(loss, _length_us(absence.window) if is_sure else 0)
            if most and most >= self.least:
                continue
            shown = f"{float(most):.6g}"
            self.report.error(
                "XS914",
                loss.span or self.span,
                f"nothing can match: what was not seen leaves a confidence of {shown} at most",
                "a shorter window leaves more, or a CONFIDENCE below that",
            )

    def _check_joined(self, block: int, before: _Link, behind: _Link) -> None:
        """Warn where nothing of what stands before a unit equals something behind it."""
        loss = self._loss(block)
        assert loss is not None
        if loss.probability == 0:
            return
        own = {v.name for v in self.query.variables if v.block == block}
        sides = [
            {term for disjunct in link.operator.disjuncts for term in _joined(disjunct, own)}
            for link in (before, behind)
        ]
        later = {
            variable
            for disjunct in behind.operator.disjuncts
            for join in disjunct.value_joins
            for variable in operand_variables(join.left)
        }
        if sides[0].isdisjoint(sides[1]) and later <= own:
            self.report.warning(
                "XS509",
                loss.span or self.span,
                "without this unit nothing of one side must equal something of the other: each pair"
                " of documents within both windows is tried",
                "bind what is equal, and compare the variable with both: `//item[link->y]`",
            )


def _joined(disjunct: Disjunct, own: set[str]) -> Iterator[Operand]:
    """Yield the terms of a unit that a conjunction equates with others, if of one value."""
    for join in disjunct.value_joins:
        for side in (join.left, join.right):
            if own.issuperset(operand_variables(side)) and not has_several(side):
                yield side
    for residual in disjunct.residuals:
        for one, other in (
            (residual.left, residual.right),
            (residual.right, residual.left),
        ):
            variables = operand_variables(one)
            is_own = bool(variables) and own.issuperset(variables)
            is_known = is_datum(other) or (isinstance(one, VariableValue) and is_of_one(other))
            if residual.operator == "=" and is_own and is_known:
                yield one


def _absences(node: Node, within_us: int) -> Iterator[tuple[Absence, int]]:
    """Yield the absences of a source, each with the shortest WITHIN around it."""
    match node:
        case From(node=inner, within=within):
            yield from _absences(inner, min(within_us, _bound_us(within)))
        case Operator(left=left, right=right):
            yield from _absences(left, within_us)
            yield from _absences(right, within_us)
        case Absence(operand=operand):
            yield from _absences(operand, within_us)
            yield node, within_us


def _bound_us(window: Window | Parameter | None) -> int:
    """Return a bound; a parameter is some bound."""
    return 0 if isinstance(window, Parameter) else _length_us(window)


def _length_us(window: Window | Parameter | None) -> int:
    """Return a length; that of a parameter may be any."""
    return window.length_us if isinstance(window, Window) else INFINITE_US


def _is_open(loss: Loss) -> bool:
    """Whether it is not known yet how the delay is distributed."""
    lengths = loss.delay.lengths
    return loss.delay.kind == "learned" or any(isinstance(each, Parameter) for each in lengths)
