"""What a query asks of the join: its clauses, one conjunction after another.

A query in normal form is a union: one **alternative** for each choice of a disjunct in each of its
operators.  In an alternative every operator is one conjunction, a `Clause`: a query class (what
the join evaluates once for all queries that share it) and what is the query's own: its window,
its box, its residuals that compare more than strings, and which node of the class is which
variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from templates.box import FoundBy, Made, Place, Test, TestedPlace, terms_tested
from templates.decision import Decided
from templates.factor import Factor
from templates.lengths import NO_LENGTH, Length, LongestSum
from templates.queryclass import QueryClass
from xscl.disjunctions import Disjunction
from xscl.evaluation import Condition, compile_condition
from xscl.path import Parameter
from xscl.pattern import TreePattern, TuplePattern, VariablePair
from xscl.prefilters import Admitted
from xscl.query import Call, Operand, Residual, Row, SimilarityJoin, term
from xscl.table import Action

__all__ = [
    "Alternative",
    "Clause",
    "ClauseSource",
    "Guard",
    "Published",
    "source_of_block",
]


@dataclass(frozen=True, slots=True)
class Guard:
    """What a match asks of tables: the conjuncts of WHERE that mention rows, and their rows."""

    condition: Condition
    rows: tuple[Row, ...]
    residuals: tuple[Residual, ...] = ()
    tests: tuple[Call, ...] = ()


@dataclass(slots=True)
class ClauseSource:
    """One operand of a clause: a block, or the clause below whose tuples it reads.

    It is immutable by agreement, as a clause is.
    `instants` are the times of a block's documents that are asked for: terms without a node.
    """

    block: int | None
    below: Clause | None
    stratum: int
    retention_us: int
    instants: tuple[Call, ...] = ()

    @property
    def blocks(self) -> tuple[int, ...]:
        """The blocks of its documents, in order."""
        if self.below is not None:
            return self.below.blocks
        assert self.block is not None
        return (self.block,)


@lru_cache(maxsize=4_096)
def source_of_block(
    block: int, stratum: int, retention_us: int, instants: tuple[Call, ...]
) -> ClauseSource:
    """Return a block as an operand; equal ones are one object, in many clauses."""
    return ClauseSource(block, None, stratum, retention_us, instants)


@dataclass(frozen=True, slots=True)
class Published:
    """A published stream: the stratum in which it is read, how far its documents reach back.

    `grace_us` is the largest grace of its publishers.
    """

    stratum: int
    retention_us: int
    grace_us: int = 0


@dataclass(slots=True, eq=False)
class Clause:
    """One operator, or a block alone, under one conjunction.

    No field changes once it is compiled: to say so to Python would cost more than to make one.
    `blocks` are the blocks of its tuples' documents, in order.  `places` gives for each term of
    a block operand its meta-variable; of `valued` ones the query asks for the value, as others may
    of any node.  `box` has what is tested of a tuple against data, here
    and in the clauses below.  `condition` is what `residuals` and `tests` come to, compiled; the
    first `solved` of the residuals are in the box, or in those below, too, and asked only where a
    `Solution` has not decided them.  Of a clause that hands on its tuples such residuals are
    `undecided`, those of the clauses below included: the root asks them; `left_over` are those that
    nothing decides but the root.
    `compared` are the variables whose nodes make up the witness tuples, those of the clauses below
    included.  `carried` are the terms that the clause hands on, in the order of its instances'
    nodes 1, 2, ..., and `tested` the places whose values stand behind them, for the boxes of the
    clauses above; the stream `is_common` if it is that of all statements with such an operator,
    whatever their data.  A query `has_several_words` there where a tuple may have those of more
    than one of its alternatives, or assignments.  `tuple_variables` are the variables of all those
    nodes, that of the root first.  `unheld` are data by which its tuples are handed on though no
    box has them.  `similar` are the similarity joins of the tuples, in the order
    of the text, those of the clauses below included.  Where the tuples are decided, `deciding` are
    the clauses that the decision reads, and `origin` is its place among the decisions of the query.
    `guard` is what is asked of tables, None where nothing is; `actions` are done for each match of
    a root, and `factors` are those of its confidence.
    `outcome` is what rows and limits read of a root's tuples (`Query.outcome_operands`).
    `counts` is the term of runs that are counted, `""` where none are.  A root
    `is_one_of_several` where the query has others, which may have the same matches.
    `reach` is how far the oldest document of a tuple may lie behind the tuple's end: the windows of
    the operator and those below it, added up.  It `reads_common` where an operand is the stream of
    a clause that is common, and it `has_holders` where instances of an operand may be others'
    alone: tuples of such a stream, or documents that fit `constants`, tests of its box against
    values of nodes, where they are `written` out, for somebody else.
    """

    query_class: QueryClass
    blocks: tuple[int, ...]
    window_us: Length
    sources: tuple[ClauseSource, ...]
    places: Mapping[str, int]
    box: tuple[Test, ...]
    residuals: tuple[Residual, ...]
    tests: tuple[Call, ...]
    condition: Condition
    compared: tuple[str, ...]
    carried: tuple[str, ...]
    tested: tuple[TestedPlace, ...] = ()
    unheld: tuple[Test, ...] = ()
    stream: str = ""
    is_common: bool = False
    has_several_words: bool = False
    tuple_variables: tuple[int, ...] = ()
    similar: tuple[SimilarityJoin, ...] = ()
    deciding: tuple[Clause, ...] = ()
    origin: int = -1
    guard: Guard | None = None
    actions: tuple[Action, ...] = ()
    outcome: tuple[Operand, ...] = ()
    factors: tuple[Factor, ...] = ()
    counts: str = ""
    is_one_of_several: bool = False
    solved: int = 0
    undecided: tuple[Residual, ...] = ()
    left_over: tuple[Residual | Call, ...] = ()
    constants: tuple[Test, ...] = ()
    valued: tuple[str, ...] = ()
    reach: LongestSum = field(init=False)
    reads_common: bool = field(init=False)

    @property
    def has_holders(self) -> bool:
        """Whether it says whose an instance is that it joins."""
        if self.deciding:
            return False
        return self.reads_common or bool(self.constants and len(self.sources) > 1 and self.written)

    @property
    def written(self) -> tuple[Test, ...]:
        """The constants that are written out; whoever is given others has all documents."""
        return tuple([test for test in self.constants if not test.is_given])

    @property
    def tested_terms(self) -> tuple[str, ...]:
        """What the values at `tested` are called in tuples."""
        return terms_tested(self.tested)

    @property
    def made(self) -> tuple[Made, ...]:
        """The texts that are made of its tuples."""
        return tuple([place for place in self.tested if isinstance(place, Made)])

    @property
    def handed_on(self) -> tuple[str, ...]:
        """The terms that its tuples hand on, "" for what boxes alone read of them."""
        made = [term(each.operand) if isinstance(each, Made) else "" for each in self.tested]
        return (*self.carried, *made)

    @property
    def is_by_data(self) -> bool:
        """Whether its tuples are handed on once for each of the data that find them."""
        return any(isinstance(place, FoundBy) for place in self.tested)

    @property
    def counts_by_data(self) -> bool:
        """Whether tuples count once for each of the data that find them.

        Where each datum is asked they do not, as they would not if it were compiled for each.
        """
        looked_for = (test.data for test in self.box if test.looks_in_texts)
        is_found = any(not isinstance(e, Disjunction) or e.is_narrow for e in looked_for)
        return self.is_by_data and is_found and not self.unheld

    def first_tested(self, place: Place) -> tuple[Clause, Place]:
        """Return where what is at a place is tested first: the clause, and its place there."""
        below = self.sources[place.side].below if place.side >= 0 else None
        if below is None:
            return self, place
        # What is tested stands behind what is carried; what stands there in what is decided, the
        # decision says.
        k = place.position - 1 - len(below.carried)
        tested = below.tested[k] if 0 <= k < len(below.tested) else None
        return below.first_tested(tested) if isinstance(tested, Place) else (self, place)

    def plus_lookback(self, length: LongestSum) -> LongestSum:
        """Return a length, and added to it how far behind a tuple's end lies what decides it."""
        decided = self.query_class.decided
        if decided is None:  # as mostly
            return length.plus(self.window_us)
        for _ in range(decided.decision.lookback if isinstance(decided, Decided) else 1):
            length = length.plus(self.window_us)
        return length

    def window_under(self, values: Mapping[str, object]) -> int:
        """Return the window under an assignment."""
        window_us = self.window_us
        if isinstance(window_us, LongestSum):
            return window_us.under(values)
        given = values[window_us.name] if isinstance(window_us, Parameter) else window_us
        assert isinstance(given, int)
        return given

    def __post_init__(self) -> None:
        read = [source.below for source in self.sources if source.below is not None]
        retention_us = max([source.retention_us for source in self.sources], default=0)
        reach = LongestSum.of([each.reach for each in (*read, *self.deciding)], retention_us)
        is_block = len(self.sources) == 1 and not self.deciding
        self.reach = reach if is_block else self.plus_lookback(reach)
        self.reads_common = bool(read) and any(each.is_common for each in read)

    def hand_on(
        self,
        stream: str,
        variables: tuple[int, ...],
        tested: tuple[TestedPlace, ...],
        *,
        is_common: bool,
        has_several_words: bool,
    ) -> None:
        """Have a clause that nobody has seen yet hand on its tuples in a stream."""
        self.stream, self.tuple_variables = stream, variables
        self.tested, self.is_common = tested, is_common
        self.has_several_words = has_several_words

    def __reduce__(self) -> tuple[Any, ...]:
        # What is compiled cannot be pickled.
        given = [each.name for each in fields(self) if each.init and each.name != "condition"]
        return _compiled, ({name: getattr(self, name) for name in given},)

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
            handed_on = zip(below.handed_on, below.tuple_variables[1:], strict=True)
            found += [t for t, v in handed_on if v == variable]
        return min(found)


def _compiled(given: Mapping[str, Any]) -> Clause:
    return Clause(condition=compile_condition(given["residuals"], given["tests"]), **given)


@dataclass(slots=True)
class Alternative:
    """One conjunctive reading of a query: its clauses, inner ones first, the root last.

    It is immutable by agreement, as a clause is.
    `patterns`, `edges` and `valued` are what it asks of the pattern catalog, `admitted` the
    constants that it has there by variable.  `above` has each
    clause with the sum of the windows of the clauses that read its tuples.
    """

    clauses: tuple[Clause, ...]
    patterns: tuple[TreePattern | TuplePattern, ...]
    edges: tuple[VariablePair, ...]
    valued: tuple[int, ...]
    admitted: tuple[tuple[int, Admitted], ...] = ()
    above: tuple[tuple[Clause, LongestSum], ...] = field(init=False, compare=False)

    @property
    def root(self) -> Clause:
        """The outermost clause."""
        return self.clauses[-1]

    def with_others(self) -> Alternative:
        """Return it beside others of its query."""
        root = replace(self.root, is_one_of_several=True)
        return replace(self, clauses=(*self.clauses[:-1], root))

    def __post_init__(self) -> None:
        above: dict[str, LongestSum] = {self.root.stream: NO_LENGTH}
        for clause in reversed(self.clauses):
            below = [source.below for source in clause.sources if source.below is not None]
            read = (*below, *clause.deciding)
            if not read:
                continue
            own = clause.plus_lookback(above[clause.stream])
            for each in read:
                others = above.get(each.stream)
                above[each.stream] = own if others is None else LongestSum.of([others, own])
        self.above = tuple([(clause, above[clause.stream]) for clause in self.clauses])
