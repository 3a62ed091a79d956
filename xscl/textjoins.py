"""Equalities of texts that functions make of several values, or of data: by them pairs are found.

`concat(a/first, ' ', a/last) = b/author` is a comparison of two operands like others (section 5 of
the semantics), but one text of a tuple says which partners it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from xscl.comparison import (
    Call,
    Operand,
    Residual,
    SimilarityJoin,
    ValueJoin,
    VariableValue,
    operand_variables,
)
from xscl.path import Literal, Parameter
from xscl.signatures import DERIVING_FUNCTIONS

__all__ = ["is_of_strings", "text_join"]


def is_of_strings(operand: Operand) -> bool:
    """Return whether an operand is made of texts by functions of strings alone."""
    match operand:
        case Call(function, arguments):
            return function in DERIVING_FUNCTIONS and all(map(is_of_strings, arguments))
    return isinstance(operand, (VariableValue, Literal, Parameter))


def text_join(
    comparison: ValueJoin | Residual | SimilarityJoin | Call,
    block_of: Mapping[str, int],
    sides: tuple[Set[int], Set[int]],
) -> tuple[Operand, Operand] | None:
    """Return what of two sides, given as blocks, has a text in common exactly if it holds.

    No text that is had in common is empty.  It is None for any other comparison, and where one text
    is made of both sides.
    """
    match comparison:
        case Residual(left, "=", right):
            if not (_is_never_empty(left) or _is_never_empty(right)):
                left, right = _marked(left), _marked(right)
        case Call("joins", (left, right)):
            pass
        case _:
            return None
    if not (is_of_strings(left) and is_of_strings(right)):
        return None
    for one, other in ((left, right), (right, left)):
        blocks = [{block_of[v] for v in operand_variables(each)} for each in (one, other)]
        if all(own and own <= side for own, side in zip(blocks, sides, strict=True)):
            return one, other
    return None


def _is_never_empty(operand: Operand) -> bool:
    match operand:
        case Call("concat", arguments):
            return any(isinstance(each, Literal) and each.value != "" for each in arguments)
    return False


def _marked(operand: Operand) -> Operand:
    """Return a text that is equal where an operand is, and never empty."""
    return Call("concat", (Literal("="), operand))
