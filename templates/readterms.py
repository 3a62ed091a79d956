"""What conjunctions read: terms, most of which are variables."""

from __future__ import annotations

from collections.abc import Iterable

from templates.derived import as_derived
from xscl.query import Disjunct, Operand, VariableValue, operand_terms, term

__all__ = ["ReadTerms", "variables_apart"]


class ReadTerms:
    """What a conjunction reads: its terms, and the variables that are compared.

    Of its operands `variables` are most, and `others` the rest.
    """

    __slots__ = ("compared", "disjunct", "others", "terms", "variables")

    def __init__(self, disjunct: Disjunct) -> None:
        self.disjunct = disjunct  # it is known by its identity for as long as this is there
        self.variables, self.others = variables_apart(disjunct.operands())
        self.compared = self.terms = frozenset(self.variables)
        if self.others:
            read = [each for operand in self.others for each in operand_terms(operand)]
            more = [each.variable for each in read if isinstance(each, VariableValue)]
            self.compared = self.compared.union(more)
            derived = (d for each in self.others if (d := as_derived(each)) is not None)
            self.terms = self.compared.union(map(term, (*read, *derived)))


def variables_apart(operands: Iterable[Operand]) -> tuple[list[str], list[Operand]]:
    """Return the variables among some operands, which most of them are, and the other ones."""
    every = [*operands]
    variables = [each.variable for each in every if isinstance(each, VariableValue)]
    if len(variables) == len(every):  # as mostly
        return variables, []
    return variables, [each for each in every if not isinstance(each, VariableValue)]
