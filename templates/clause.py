"""What a query asks of the join: its clauses, one conjunction after another.

A query in normal form is a union: one **alternative** for each choice of a disjunct in each of its
operators.  In an alternative every operator is one conjunction, a `Clause`: a query class (what
the join evaluates once for all queries that share it) and what is the query's own: its window,
its constants, its residuals that compare more than strings, and which node of the class is
which variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from templates.queryclass import QueryClass
from xscl.evaluation import Condition
from xscl.path import Parameter, condition_parameters
from xscl.pattern import Constant, PatternNode, TreePattern
from xscl.query import Call, Residual, operand_parameters

__all__ = ["Alternative", "Clause", "ClauseSource", "Edge", "Published", "is_prepared"]

Edge = tuple[int, int]
"""Two variables of the catalog, asked for as a pair of nodes; one twice, for its own nodes."""


@dataclass(frozen=True, slots=True)
class ClauseSource:
    """One operand of a clause: a block, or the clause below whose tuples it reads.

    `instants` are the times of a block's documents that are asked for: terms without a node.
    """

    block: int | None
    below: Clause | None
    stratum: int
    retention_us: int
    instants: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """A published stream: the stratum in which it is read, how far its documents reach back.

    `grace_us` is the largest grace of its publishers.
    """

    stratum: int
    retention_us: int
    grace_us: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """One operator, or a block alone, under one conjunction.

    `blocks` are the blocks of its tuples' documents, in order.  `places` gives for each term of
    a block operand its meta-variable.  `constants` are strings that meta-variables must have
    for their values, `excluded` strings that they must not.  `condition` is what `residuals`
    and `tests` come to, compiled.  `compared` are the variables whose nodes make up the witness
    tuples, those of the clauses below included.  `carried` are the terms that the clause hands
    on, in the order of its instances' nodes 1, 2, ...  `tuple_variables` are the variables of
    those nodes, that of the root first.  `retention_us` is how far the oldest document of a
    tuple may lie behind the tuple's end: the windows of the operator and of what stands below
    it, added up.  Where the tuples are decided, `deciding` are the clauses that the decision reads.
    """

    query_class: QueryClass
    blocks: tuple[int, ...]
    window_us: int | Parameter
    sources: tuple[ClauseSource, ...]
    places: Mapping[str, int]
    constants: tuple[tuple[int, Constant], ...]
    excluded: tuple[tuple[int, Constant], ...]
    residuals: tuple[Residual, ...]
    tests: tuple[Call, ...]
    condition: Condition
    compared: frozenset[str]
    carried: tuple[str, ...]
    retention_us: int
    stream: str = ""
    tuple_variables: tuple[int, ...] = ()
    deciding: tuple[Clause, ...] = ()

    def terms_of(self, value_join: tuple[int, int]) -> list[str]:
        """Return what the query calls the two variables of a value join of its class."""
        return [self._term(variable, side) for side, variable in enumerate(value_join)]

    def _term(self, variable: int, side: int) -> str:
        size = self.query_class.template.left_size
        own = [t for t, i in self.places.items() if (i >= size) == bool(side)]
        variables = self.query_class.row.variables
        found = [t for t in own if variables[self.places[t]] == variable]
        below = self.sources[side].below
        if below is not None:
            handed_on = zip(below.carried, below.tuple_variables[1:], strict=True)
            found += [t for t, v in handed_on if v == variable]
        return min(found)


@dataclass(frozen=True, slots=True)
class Alternative:
    """One conjunctive reading of a query: its clauses, inner ones first, the root last.

    `patterns`, `edges` and `valued` are what it asks of the pattern catalog.
    """

    clauses: tuple[Clause, ...]
    patterns: tuple[TreePattern, ...]
    edges: tuple[Edge, ...]
    valued: tuple[int, ...]

    @property
    def root(self) -> Clause:
        """The outermost clause."""
        return self.clauses[-1]

    def windows_above(self) -> list[tuple[Clause, int]]:
        """Return each clause with the windows of those that read its tuples, added up."""
        above_us = {self.root.stream: 0}
        for clause in reversed(self.clauses):
            below = [source.below for source in clause.sources if source.below is not None]
            for each in (*below, *clause.deciding):
                # Parameters stand in windows only where no clause is below another.
                assert isinstance(clause.window_us, int)
                reach_us = above_us[clause.stream] + clause.window_us
                above_us[each.stream] = max(above_us.get(each.stream, 0), reach_us)
        return [(clause, above_us[clause.stream]) for clause in self.clauses]


def is_prepared(alternatives: Sequence[Alternative]) -> bool:
    """Return whether all parameters of a compiled query are data, in one clause each.

    Then an assignment needs no compiling: it is a row of constants and windows.
    """
    return all(
        len(alternative.clauses) == 1
        and not any(map(_has_parameter, (n for p in alternative.patterns for n in p.nodes)))
        for alternative in alternatives
    )


def _has_parameter(node: PatternNode) -> bool:
    """Return whether a parameter stands in what defines a node: in a filter, or in a function."""
    in_filters = (parameter for each in node.filters for parameter in condition_parameters(each))
    in_function = operand_parameters(node.derivation) if node.derivation else ()
    return any(chain(in_filters, in_function))
