"""A decision with what was compiled for it: one for all alternatives of a query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from templates.chaindecision import ChainDecision
from templates.clause import Clause
from templates.clausecompiler import Compiler
from templates.decision import Decision
from templates.rundecision import RunDecision
from xscl.pattern import TreePattern, TuplePattern, VariablePair

__all__ = ["Built"]


@dataclass
class Built:
    """A decision with the clauses that it reads; `is_taken` says that an alternative has them."""

    decision: Decision | RunDecision | ChainDecision
    clauses: tuple[Clause, ...]
    deciding: tuple[Clause, ...]
    patterns: list[TreePattern | TuplePattern]
    edges: list[VariablePair]
    valued: list[int]
    compared: frozenset[str]
    is_taken: bool = False

    @classmethod
    def of(
        cls,
        decision: Decision | RunDecision | ChainDecision,
        compilers: Sequence[Compiler],
        deciding: Sequence[Clause],
        compared: Iterable[str],
    ) -> Built:
        """Return a decision with what was compiled for it."""
        return cls(
            decision,
            tuple(clause for compiler in compilers for clause in compiler.clauses),
            tuple(deciding),
            [each for compiler in compilers for each in compiler.patterns],
            [each for compiler in compilers for each in compiler.edges],
            [each for compiler in compilers for each in compiler.valued],
            frozenset(compared),
        )
