"""Data that conditions of runs are held against, as values that the runs say.

What stands before a repetition, or each of its elements, is handed on once for each vector of data
that somebody has.  A run is of one vector, so where a condition names a parameter it reads the
datum as it reads any other value (`docs/decided.md`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from templates.box import TAKEN, Test
from templates.rundecision import Disjuncts, FoldValue, datum_term
from xscl.comparison import OF_EXCERPT, XPATH_FRAME, XPATH_NUMBER, operands_below
from xscl.disjunctions import DataForm
from xscl.path import Literal, Parameter
from xscl.query import (
    Call,
    Conditional,
    Disjunct,
    Elements,
    Operand,
    Residual,
    VariableValue,
    operand_parameters,
)

__all__ = ["SaidData", "data_named", "parameters_read", "takes_constants"]

_OF_XPATH = (XPATH_NUMBER, XPATH_FRAME, OF_EXCERPT)
"""Functions that read parameters as they are given."""


def data_named(names: Iterable[str], texts: Collection[str]) -> tuple[Test, ...]:
    """Return parameters as data that are handed on; `texts` are those that stand for strings."""
    form = {name: DataForm.PLAIN if name in texts else DataForm.SPELLED for name in names}
    return tuple([Test(TAKEN, "=", Parameter(each), form=form[each]) for each in sorted(form)])


def parameters_read(operands: Iterable[Operand]) -> tuple[set[str], set[str]]:
    """Return the parameters that stand in operands by themselves, and in what is of elements."""
    alone: set[str] = set()
    of_elements: set[str] = set()
    for operand in operands:
        for name, is_within in _read(operand, is_within=False):
            (of_elements if is_within else alone).add(name)
    return alone, of_elements


def takes_constants(operands: Iterable[Operand], given: Set[str]) -> bool:
    """Return whether operands read no parameters but some that are given, as constants."""
    asked = [*operands]
    read = {each.name for operand in asked for each in operand_parameters(operand)}
    below = (each for operand in asked for each in operands_below(operand))
    of_xpath = (each for each in below if isinstance(each, Call) and each.function in _OF_XPATH)
    return read <= given and not any(any(operand_parameters(each)) for each in of_xpath)


def _read(operand: Operand, *, is_within: bool) -> Iterator[tuple[str, bool]]:
    match operand:
        case Parameter(name):
            yield name, is_within
        case Call(function) if function in _OF_XPATH:
            return
        case Call(arguments=arguments):
            for each in arguments:
                yield from _read(each, is_within=is_within)
        case Conditional(condition, then, otherwise):
            asked = (each for disjunct in condition for each in disjunct.operands())
            for each in (*asked, then, otherwise):
                yield from _read(each, is_within=is_within)
        case Elements(operand=of, otherwise=otherwise):
            if of is not None:
                yield from _read(of, is_within=True)
            if otherwise is not None:
                yield from _read(otherwise, is_within=is_within)


@dataclass(frozen=True, slots=True)
class SaidData:
    """Parameters as what runs say: data that stand before them, and data of elements."""

    of_left: Mapping[str, Operand]
    of_elements: Mapping[str, Operand]

    @classmethod
    def of(cls, of_left: Iterable[Test], of_elements: Iterable[Test]) -> SaidData:
        """Return data that are handed on as what conditions read."""
        return cls(*({_parameter(e): _value(e) for e in own} for own in (of_left, of_elements)))

    def at(self, step: int, run: str) -> SaidData:
        """Return these as a step reads them: of the first one's run, behind that."""
        if not step:
            return self
        first = {name: Elements(run, "first", each) for name, each in self.of_elements.items()}
        return replace(self, of_left={**self.of_left, **first})

    def disjuncts(self, disjuncts: Disjuncts) -> Disjuncts:
        """Return conditions that read what runs say."""
        return tuple(map(self.conjunction, disjuncts))

    def conjunction(self, asked: Disjunct) -> Disjunct:
        """Return a conjunction that reads what runs say."""
        if not (self.of_left or self.of_elements):
            return asked
        return replace(
            asked,
            residuals=tuple(
                Residual(self.operand(each.left), each.operator, self.operand(each.right))
                for each in asked.residuals
            ),
            tests=tuple(replace(e, arguments=self._all(e.arguments)) for e in asked.tests),
        )

    def fold(self, fold: FoldValue) -> FoldValue:
        """Return a value of FOLD that reads what runs say."""
        return FoldValue(fold.name, self.operand(fold.first), self.operand(fold.following))

    def operand(self, operand: Operand) -> Operand:
        """Return an operand that reads what runs say."""
        match operand:
            case Parameter(name) if name in self.of_left:
                return self.of_left[name]
            case Parameter(name) if name in self.of_elements:
                return Elements(None, "candidate", self.of_elements[name])
            case Elements(operand=of, otherwise=otherwise):
                return replace(
                    operand,
                    operand=None if of is None else self._of_element(of),
                    otherwise=None if otherwise is None else self.operand(otherwise),
                )
            case Call(function, arguments) if function not in _OF_XPATH:
                return Call(function, self._all(arguments))
            case Conditional(condition, then, otherwise):
                return Conditional(
                    self.disjuncts(condition), self.operand(then), self.operand(otherwise)
                )
        return operand

    def _all(self, operands: Iterable[Operand]) -> tuple[Operand, ...]:
        return tuple(map(self.operand, operands))

    def _of_element(self, operand: Operand) -> Operand:
        """Return what is of one element, which says the data."""
        match operand:
            case Parameter(name):
                return self.of_elements.get(name, operand)
            case Call(function, arguments) if function not in _OF_XPATH:
                return Call(function, tuple(map(self._of_element, arguments)))
        return operand


def _parameter(test: Test) -> str:
    assert isinstance(test.data, Parameter)
    return test.data.name


def _value(test: Test) -> Operand:
    """Return what reads a datum: a text, or a number by its spelling."""
    assert test.datum is not None
    value = VariableValue(datum_term(test.datum))
    return value if test.form is DataForm.PLAIN else Call("*", (value, Literal(1.0)))
