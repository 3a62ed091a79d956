"""Repetitions behind NEXT as chains: what stands before is a step of one element.

The runs of `A NEXT B+` are those of `A FOLLOWED BY B+ MATCH NEXT`: a chain whose last step is
repeated has a run for each of its elements.  What they have in common with `A` is a key of both
steps.  `docs/repetition.md` has the theory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from templates.chaincode import ChainProgram
from templates.chaindecision import ChainDecision, ChainLink
from templates.chainprograms import compile_chain
from templates.decision import TupleStream
from templates.rundecision import (
    Begin,
    Disjuncts,
    ElementStream,
    FoldValue,
    RunDecision,
    datum_term,
)
from xscl.comparison import INSTANTS, REVISION, Call, Conditional, Elements, Operand
from xscl.query import INFINITE_US, Disjunct, Residual, Strategy, VariableValue, operand_terms

__all__ = ["chain_of", "in_columns"]

LEFT = "left"
"""The term under which conditions read what stands before: the term of a run begins with `+`."""

_ALWAYS = (Disjunct(),)


class _NoChainError(Exception):
    """What stands before has no one value of something that is asked."""


def in_columns(
    decision: RunDecision | ChainDecision,
) -> tuple[ChainDecision, ChainProgram] | None:
    """Return the chain that is stepped in columns for a decision, and its program, if it is."""
    is_chain = isinstance(decision, ChainDecision)
    chain = decision if isinstance(decision, ChainDecision) else chain_of(decision)
    if chain is not None and chain.is_partitioned and chain.data:
        # There elements have the keys of documents, which say no data.
        return None
    program = None if chain is None else compile_chain(chain, are_looked_up=is_chain)
    return None if chain is None or program is None else (chain, program)


def chain_of(decision: RunDecision) -> ChainDecision | None:
    """Return the chain that has the runs of a repetition; None where it is none of single blocks.

    It is none either where something must be absent, a path of what stands before is asked,
    elements say more data than what stands before them, or a run says lengths.
    """
    begin, *others = decision.begins
    if not decision.is_next or others or begin.left is None or len(begin.left.blocks) != 1:
        return None
    if decision.absences or decision.said or len(decision.elements) != 1:
        return None
    if decision.elements[0].had or decision.known < len(decision.data):
        return None
    try:
        return _AsChain(begin.left).chain(decision, begin)
    except _NoChainError:
        return None


class _AsChain:
    """Reads the conditions of a repetition as those of a chain: of two steps, each of one block."""

    def __init__(self, left: TupleStream) -> None:
        self._left = left
        self._single = {*left.chosen, *(datum_term(datum) for datum, _ in left.equal)}

    def chain(self, decision: RunDecision, begin: Begin) -> ChainDecision:
        """Return the chain."""
        [own] = decision.elements
        each, equal = _without_equal(begin.each, self._left, own.stream)
        left_keys = (*begin.left_keys, *(left for left, _ in equal))
        keys = (*own.keys, *(right for _, right in equal))
        before = ChainLink(
            LEFT,
            False,
            (ElementStream(self._left.blocks[0], self._left, left_keys, data=decision.had),),
            _ALWAYS,
            _ALWAYS,
            (),
            INFINITE_US,
            INFINITE_US,
        )
        repeated = ChainLink(
            decision.run,
            True,
            (replace(own, keys=keys),),
            self._disjuncts((begin.first,)),
            self._disjuncts(each),
            tuple(
                FoldValue(fold.name, self._operand(fold.first), self._operand(fold.following))
                for fold in begin.folds
            ),
            decision.gap_us,
            decision.window_us,
            _ALWAYS if begin.go_on is None else self._disjuncts(begin.go_on),
        )
        return ChainDecision(
            Strategy.NEXT,
            (before, repeated),
            (),
            (),
            decision.within_us,
            decision.retention_us,
            decision.grace_us,
        )

    def _disjuncts(self, disjuncts: Iterable[Disjunct]) -> Disjuncts:
        return tuple(map(self._conjunction, disjuncts))

    def _conjunction(self, asked: Disjunct) -> Disjunct:
        if asked.value_joins or asked.similarity_joins:
            raise _NoChainError
        residuals = [
            Residual(self._operand(each.left), each.operator, self._operand(each.right))
            for each in asked.residuals
        ]
        tests = [replace(test, arguments=self._operands(test.arguments)) for test in asked.tests]
        return Disjunct(residuals=tuple(residuals), tests=tuple(tests))

    def _operands(self, operands: Iterable[Operand]) -> tuple[Operand, ...]:
        return tuple(map(self._operand, operands))

    def _operand(self, operand: Operand) -> Operand:
        """Return an operand that reads what stands before as an element."""
        match operand:
            case VariableValue(variable) if variable in self._single:
                return Elements(LEFT, "all", operand)
            case Call(function, (VariableValue(),)) if function in INSTANTS or function == REVISION:
                return Elements(LEFT, "all", operand)
            case Call(function, arguments):
                return Call(function, self._operands(arguments))
            case Elements(run=None, otherwise=otherwise):
                if otherwise is None:
                    return operand
                return replace(operand, otherwise=self._operand(otherwise))
            case Conditional(condition, then, otherwise):
                return Conditional(
                    self._disjuncts(condition), self._operand(then), self._operand(otherwise)
                )
        if operand_terms(operand):
            raise _NoChainError
        return operand


def _without_equal(
    each: Disjuncts, left: TupleStream, own: TupleStream
) -> tuple[Disjuncts, list[tuple[str, str]]]:
    """Take out what every element has in common with what stands before; return the variables.

    Neither is it empty, as of keys.
    """
    if len(each) != 1:
        return each, []
    equal: list[tuple[str, str]] = []
    others: list[Call] = []
    for test in each[0].tests:
        match test:
            case Call(
                "joins", (VariableValue(a), Elements(None, "candidate", VariableValue(b), None))
            ) | Call(
                "joins", (Elements(None, "candidate", VariableValue(b), None), VariableValue(a))
            ) if a in left.chosen and b in own.chosen:
                equal.append((a, b))
            case _:
                others.append(test)
    return (replace(each[0], tests=tuple(others)),), equal
