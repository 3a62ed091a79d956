"""What conjunctions read: terms, most of which are variables."""

from __future__ import annotations

from collections.abc import Iterable

from templates.derived import as_derived
from xscl.query import Disjunct, Operand, VariableValue, operand_terms, term

__all__ = ["ReadTerms", "variables_apart"]


class ReadTerms:
    """What a conjunction reads: its operands, its terms, and the variables that are compared."""

    __slots__ = ("compared", "disjunct", "operands", "terms")

    def __init__(self, disjunct: Disjunct) -> None:
        self.disjunct = disjunct  # it is known by its identity for as long as this is there
        self.operands = list(disjunct.operands())
        variables, others = variables_apart(self.operands)
        read = [each for operand in others for each in operand_terms(operand)]
        variables += [each.variable for each in read if isinstance(each, VariableValue)]
        self.compared = self.terms = frozenset(variables)
        if others:
            derived = (d for each in others if (d := as_derived(each)) is not None)
            self.terms = self.compared.union(map(term, (*read, *derived)))


def variables_apart(operands: Iterable[Operand]) -> tuple[list[str], list[Operand]]:
    """Return the variables among some operands, which most of them are, and the other ones."""
    variables: list[str] = []
    others: list[Operand] = []
    for each in operands:
        if isinstance(each, VariableValue):
            variables.append(each.variable)
        else:
            others.append(each)
    return variables, others
