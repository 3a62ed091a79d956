"""What a query asks of the join: its clauses, one conjunction after another.

A query in normal form is a union: one **alternative** for each choice of a disjunct in each of its
operators.  In an alternative every operator is one conjunction, a `Clause`: a query class (what
the join evaluates once for all queries that share it) and what is the query's own: its window,
its box, its residuals that compare more than strings, and which node of the class is which
variable.

A **box** is what subscriptions differ in: tests of values in a tuple against data.  An operator
hands on the values that its box tests, and those of the operators below it, so the box of the root
has the tests of all of them, and one stream of inner tuples serves all assignments (RUMOR's
channel; Hong 2009, chapter 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

from templates.decision import Decided
from templates.elementnumbers import calculate
from templates.factor import Factor
from templates.lengths import NO_LENGTH, LongestSum
from templates.queryclass import QueryClass
from xscl.disjunctions import OTHER_NUMBER, DataForm, Disjunction
from xscl.evaluation import Condition, compile_condition
from xscl.functions import to_double
from xscl.path import Parameter
from xscl.pattern import Constant, TreePattern, TuplePattern, VariablePair
from xscl.prefilters import Admitted
from xscl.query import Call, Operand, Residual, Row, SimilarityJoin, term
from xscl.table import Action
from xscl.texttests import NEGATED, TEXT_TESTS

__all__ = [
    "BAR",
    "DURATION",
    "NONE_OF",
    "OTHER_NUMBER",
    "SPAN",
    "TAKEN",
    "WINDOW",
    "Alternative",
    "ArithmeticStep",
    "Clause",
    "ClauseSource",
    "Computed",
    "Data",
    "Excluded",
    "Formula",
    "Guard",
    "Instant",
    "Measured",
    "Number",
    "Place",
    "Published",
    "Solution",
    "Terms",
    "Test",
    "place_at",
    "source_of_block",
    "terms_tested",
]


class Place(NamedTuple):
    """Where a value of a tuple is: at a meta-variable, or at a position of one side's instance.

    `meta` is -1 in the second case: the side is a tuple of the operator below, and carries it.
    """

    side: int
    meta: int
    position: int = 0


@lru_cache(maxsize=4_096)
def place_at(side: int, meta: int, position: int = 0) -> Place:
    """Return a place; equal ones are one object, for there are few of them, in many clauses."""
    return Place(side, meta, position)


SPAN = Place(-1, -1)
"""The smallest window that holds a tuple, in microseconds."""


WINDOW = Place(-2, -1)
"""The window for which an absence was decided, in microseconds."""


BAR = Place(-3, -1)
"""The bar of a decided tuple: up to where its left was served before, or it is taken away."""


TAKEN = Place(-4, -1)
"""The values for which a decided tuple is taken away (`docs/decided.md`)."""


DURATION = Place(-5, -1)
"""How long the interval of a tuple is, in microseconds."""


class Excluded(IntEnum):
    """How a value is compared with one that is excluded.

    As a text, as one of several that a text stands for, or as a number.
    """

    STRING = 0
    ONE_OF_SEVERAL = 1
    NUMBER = 2


NONE_OF = "none of"
"""The operator of a test that data are none of several values."""


class Measured(NamedTuple):
    """A number of a tuple that is worked out of it: a measure of the sets of two of its values.

    `left_set` and `right_set` are calls of `words` and the like, of the variable `.`.  The number
    is compared by `operator` alone: a double stands for it (`xscl.measures.comparable`).
    """

    measure: str
    left: Place
    left_set: Call
    right: Place
    right_set: Call
    operator: str


class Instant(NamedTuple):
    """A time of one side's document: the end of its interval, or the start."""

    side: int
    is_end: bool


Terms = tuple[tuple[str, Place | Instant], ...]
"""Where the terms of an operand are."""


class Computed(NamedTuple):
    """A number of a tuple that arithmetic makes of values, and of times."""

    operand: Operand
    terms: Terms


class ArithmeticStep(NamedTuple):
    """`x operator operand`, or `operand - x` where it `is_turned`: arithmetic around data `x`."""

    operator: str
    operand: Operand
    is_turned: bool = False


class Solution(NamedTuple):
    """An end of the numbers `x` with which a tuple passes a comparison: the least, or the largest.

    The comparison is `steps(x) operator other`; no step divides by `x`, so its numbers are all
    between two (`broker.matching.boxes.solutions`).
    """

    steps: tuple[ArithmeticStep, ...]
    operator: str
    other: Operand
    terms: Terms
    is_least: bool


class Formula(NamedTuple):
    """Data that are calculated of other data, parameters among them: `$x * 2`."""

    operand: Operand

    def number(self, values: Mapping[str, Any]) -> float:
        """Return what it comes to under an assignment."""
        return float(calculate(self.operand, lambda read: to_double(values[term(read)[1:]])))


Data = Constant | float | Formula | Disjunction
"""What is held against a tuple, whatever the tuple is."""

Number = Measured | Computed | Solution
"""A number that is no value of a node, and made of a tuple where it is asked for."""


class Test(NamedTuple):
    """`place operator data`: see `xscl.pattern.DataTest`."""

    place: Place | Number
    operator: str
    data: Data
    is_of_several: bool = False
    form: DataForm = DataForm.PLAIN

    @property
    def looks_in_texts(self) -> bool:
        """Whether it holds of a text that has its data in it: a word, or one of several numbers."""
        return self.operator in TEXT_TESTS or (self.operator == "=" and self.is_of_several)

    @property
    def is_given(self) -> bool:
        """Whether its data are those of an assignment."""
        return isinstance(self.data, (Parameter, Formula, Disjunction))

    @property
    def excludes(self) -> bool:
        """Whether it holds of all values, or numbers, but one."""
        return self.operator in ("!=", OTHER_NUMBER)

    @property
    def excluded_kind(self) -> Excluded:
        """What it holds of, where it excludes one."""
        if self.operator == OTHER_NUMBER:
            return Excluded.NUMBER
        return Excluded.ONE_OF_SEVERAL if self.is_of_several else Excluded.STRING

    def typed(self) -> Iterator[tuple[str, bool]]:
        """Yield the parameters that must be given a string, and those that must not be."""
        if isinstance(self.data, Disjunction):
            given = self.data.parameters()
            yield from ((each.name, True) for each, test in given if test.is_of_strings)
        elif isinstance(self.data, Parameter) and (self.is_of_strings or self.is_of_numbers):
            yield self.data.name, self.is_of_strings

    @property
    def is_of_strings(self) -> bool:
        """Whether a parameter here must be given a string."""
        if self.form is not DataForm.PLAIN or (self.operator == "=" and self.is_of_several):
            return False
        operator = self.operator.removeprefix(NEGATED)
        return self.place != WINDOW and operator in ("=", "!=", NONE_OF, *TEXT_TESTS)

    @property
    def is_of_numbers(self) -> bool:
        """Whether a parameter here must be given a number, or a length of time."""
        return self.place == BAR or self.form is DataForm.XPATH_NUMBER_ONLY


def terms_tested(tested: Sequence[Place | Number]) -> tuple[str, ...]:
    """Return what the values at tested places are called in tuples; no block has such a name."""
    return tuple([f"${i}" for i in range(len(tested))])


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

    No field changes, as of a clause.
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
    nodes, that of the root first.  `similar` are the similarity joins of the tuples, in the order
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
    window_us: int | Parameter
    sources: tuple[ClauseSource, ...]
    places: Mapping[str, int]
    box: tuple[Test, ...]
    residuals: tuple[Residual, ...]
    tests: tuple[Call, ...]
    condition: Condition
    compared: tuple[str, ...]
    carried: tuple[str, ...]
    tested: tuple[Place | Number, ...] = ()
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
    left_over: tuple[Residual, ...] = ()
    constants: tuple[Test, ...] = ()
    valued: tuple[str, ...] = ()
    reach: LongestSum = field(init=False)
    reads_common: bool = field(init=False)

    @property
    def has_holders(self) -> bool:
        """Whether it says whose an instance is that it joins."""
        if self.deciding:
            return False
        return self.reads_common or (len(self.sources) > 1 and bool(self.written))

    @property
    def written(self) -> tuple[Test, ...]:
        """The constants that are written out; whoever is given others has all documents."""
        return tuple([test for test in self.constants if not test.is_given])

    @property
    def tested_terms(self) -> tuple[str, ...]:
        """What the values at `tested` are called in tuples."""
        return terms_tested(self.tested)

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
        given = values[window_us.name] if isinstance(window_us, Parameter) else window_us
        assert isinstance(given, int)
        return given

    def __post_init__(self) -> None:
        read = [source.below for source in self.sources if source.below is not None]
        retentions_us = [source.retention_us for source in self.sources]
        reach = LongestSum.of([each.reach for each in (*read, *self.deciding)], *retentions_us)
        is_block = len(self.sources) == 1 and not self.deciding
        self.reach = reach if is_block else self.plus_lookback(reach)
        self.reads_common = bool(read) and any(each.is_common for each in read)

    def hand_on(
        self,
        stream: str,
        variables: tuple[int, ...],
        tested: tuple[Place | Number, ...],
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
            handed_on = zip(below.carried, below.tuple_variables[1:], strict=False)
            found += [t for t, v in handed_on if v == variable]
        return min(found)


def _compiled(given: Mapping[str, Any]) -> Clause:
    return Clause(condition=compile_condition(given["residuals"], given["tests"]), **given)


@dataclass(slots=True)
class Alternative:
    """One conjunctive reading of a query: its clauses, inner ones first, the root last.

    No field changes, as of a clause.
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
