"""A decision with what was compiled for it: one for all alternatives of a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from templates.box import Test
from templates.chaindecision import ChainDecision
from templates.clause import Clause
from templates.clausecompiler import Catalog, Compiler
from templates.decision import Decision
from templates.founddata import ByData
from templates.rundecision import RunDecision
from templates.saiddata import SaidData
from xscl.pattern import TreePattern, TuplePattern, VariablePair
from xscl.prefilters import Admitted

__all__ = ["Built", "once"]


def once(clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    """Return each clause once, by its stream, where it stands first."""
    found: dict[str, Clause] = {}
    for clause in clauses:
        found.setdefault(clause.stream, clause)
    return tuple(found.values())


@dataclass
class Built:
    """A decision with the clauses that it reads; `is_taken` says that an alternative has them.

    It has each of them once, however many alternatives of its operands read them.
    `bars` says for which thresholds of scores its tuples are decided, `by_data` which operands are
    handed on by data, `data` by which all alternatives of each are; `spared` of which data there
    are sets, by competing rows and by absent ones.  `said` are those that runs read as values.
    """

    decision: Decision | RunDecision | ChainDecision
    clauses: tuple[Clause, ...]
    deciding: tuple[Clause, ...]
    patterns: list[TreePattern | TuplePattern]
    edges: list[VariablePair]
    valued: list[int]
    admitted: list[tuple[int, Admitted]]
    compared: frozenset[str]
    bars: tuple[Test, ...] = ()
    by_data: tuple[ByData, ...] = ()
    data: tuple[tuple[Test, ...], ...] = ()
    spared: tuple[str | None, str | None] = (None, None)
    said: SaidData | None = None
    is_taken: bool = False

    @classmethod
    def of(
        cls,
        decision: Decision | RunDecision | ChainDecision,
        catalog: Catalog,
        compilers: Sequence[Compiler],
        deciding: Sequence[Clause],
        compared: Iterable[str],
    ) -> Built:
        """Return a decision; the catalog has each pattern once."""
        added = Counter(each for compiler in compilers for each in compiler.patterns)
        for pattern in (added - Counter(added.keys())).elements():
            catalog.remove(pattern)
        return cls(
            decision,
            once(clause for compiler in compilers for clause in compiler.clauses),
            once(deciding),
            list(added),
            list(dict.fromkeys(each for compiler in compilers for each in compiler.edges)),
            list(dict.fromkeys(each for compiler in compilers for each in compiler.valued)),
            [each for compiler in compilers for each in compiler.admitted],
            frozenset(compared),
        )
