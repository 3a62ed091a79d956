"""What conditions of a chain say of an element and the one before it alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from templates.chaindecision import ChainLink
from templates.rundecision import Disjuncts
from xscl.comparison import Call, operands_below
from xscl.query import Disjunct, Elements, Operand, Residual

__all__ = [
    "NOTHING_ASKED",
    "AskedOfOne",
    "applying_to_first",
    "first_near",
    "further_near",
    "of_one",
]


NOTHING_ASKED: Disjuncts = (Disjunct(),)
"""Conditions that hold of everything."""


def further_near(disjuncts: Disjuncts) -> Disjuncts:
    """Return what is asked of a further element, without what speaks of more than the one before.

    What is returned holds wherever all holds.
    """
    return _near(disjuncts, lambda each: each.run is None and each.function in _OF_TWO)


def first_near(disjuncts: Disjuncts, before: ChainLink | None) -> Disjuncts:
    """Return what is asked of a first element, without what speaks of more than the one before.

    That is the last element of the step before, if there is one.
    """

    def is_near(operand: Elements) -> bool:
        if operand.run is None:
            return operand.function == "candidate"
        if before is None or operand.run != before.run:
            return False
        return operand.function == "last" or (operand.function == "all" and not before.is_repeated)

    return _near(disjuncts, is_near)


def applying_to_first(disjuncts: Disjuncts) -> Disjuncts:
    """Return what is asked of a first element of a step, without what does not apply to it.

    A comparison with `prev(e)` does not: there is none before it.
    """

    def is_unbound(operand: Operand) -> bool:
        return any(
            isinstance(each, Elements)
            and each.run is None
            and each.function == "prev"
            and each.otherwise is None
            for each in operands_below(operand)
        )

    return tuple(
        replace(
            each,
            residuals=tuple(
                r for r in each.residuals if not is_unbound(r.left) and not is_unbound(r.right)
            ),
        )
        for each in disjuncts
    )


class AskedOfOne(NamedTuple):
    """What is asked of an element alone; besides, how many value joins, and which comparisons.

    With `has_more` it is not all that is asked.
    """

    own: Disjuncts
    joins: int
    pairs: tuple[Residual, ...]
    has_more: bool


def of_one(disjuncts: Disjuncts) -> AskedOfOne:
    """Return what conditions ask of an element alone, as far as no OR joins it with more."""
    own = _near(disjuncts, lambda each: each.run is None and each.function == "candidate")
    if own == disjuncts:
        return AskedOfOne(own, 0, (), has_more=False)
    if len(disjuncts) > 1:
        return AskedOfOne(NOTHING_ASKED, 0, (), has_more=True)
    (of_element,), (asked,) = own, disjuncts
    tests = [each for each in asked.tests if each not in of_element.tests]
    joins = sum(each.function == "joins" for each in tests)
    pairs = tuple(each for each in asked.residuals if each not in of_element.residuals)
    return AskedOfOne(own, joins, pairs, has_more=joins < len(tests))


_OF_TWO = ("candidate", "prev")


def _near(disjuncts: Disjuncts, is_near: Callable[[Elements], bool]) -> Disjuncts:
    def are_near(*operands: Operand) -> bool:
        return all(_is(each, is_near) for operand in operands for each in operands_below(operand))

    return tuple(
        Disjunct(
            residuals=tuple(r for r in each.residuals if are_near(r.left, r.right)),
            tests=tuple(t for t in each.tests if are_near(*t.arguments)),
        )
        for each in disjuncts
    )


def _is(operand: Operand, is_near: Callable[[Elements], bool]) -> bool:
    if isinstance(operand, Call):
        return operand.function not in ("start", "end", "dur")
    if not isinstance(operand, Elements):
        return True
    return operand.operand is not None and is_near(operand)
