"""What is decided, by its content: equal decisions of different queries are one.

A decision reads streams of tuples (`TupleStream`), one for each alternative of an operand and each
disjunct of its predicate.  Rows of different streams of one operand that agree in documents and in
the nodes of the `chosen` terms are one contender.  `docs/decided.md` has the theory.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from templates.exceptions import HeldFor
from templates.hadtests import HadTest, HadValue
from templates.lengths import Length, longest_of
from xscl.path import Parameter
from xscl.query import INFINITE_US, Disjunct, SimilarityJoin

__all__ = [
    "Absent",
    "AbsentCase",
    "Conjunction",
    "Decided",
    "Decision",
    "DecisionKind",
    "Fit",
    "Threshold",
    "TupleStream",
    "is_of_data",
]


NOTHING = Disjunct()
"""The conjunction that always holds."""


class DecisionKind(enum.Enum):
    """What is decided.

    `PAIRS` are all that follow one another, of which UNLESS takes some away; `NEXT` are the first;
    `BEFORE` is UNLESS behind the first operand, `AFTER` NOT FOLLOWED BY, `AROUND` NOT JOIN.
    `SETTLED` are all tuples of an operand, each when its end is settled: where tables are used.
    """

    PAIRS = "FOLLOWED BY"
    NEXT = "NEXT"
    BEFORE = "UNLESS"
    AFTER = "NOT FOLLOWED BY"
    AROUND = "NOT JOIN"
    SETTLED = ""

    @property
    def has_right(self) -> bool:
        """Whether a tuple has two parts."""
        return self in (DecisionKind.PAIRS, DecisionKind.NEXT)


class Threshold(NamedTuple):
    """A value that is held against data: `term operator data`.

    It is an inequality, or `=` where it is a value of an absent row.  Where rows hold for sets of
    data, `held` says for which.
    """

    term: str
    operator: str
    held: HeldFor | None = None

    @property
    def rises(self) -> bool:
        """Whether a larger value serves all data that a smaller one does."""
        return self.operator[0] == ">"


@dataclass(frozen=True, slots=True)
class TupleStream:
    """A stream of tuples: the terms of its nodes in order, of which `chosen` make a contender.

    The values of `keys` are held against data: contenders have one value of each, and those of the
    right operand of NEXT compete with tuples that have the same.  So is that of `threshold`, of an
    absent unit too.  `equal` are the data that values must equal, each with such a term.
    """

    name: str
    blocks: tuple[int, ...]
    terms: tuple[str, ...]
    chosen: tuple[str, ...]
    keys: tuple[str, ...] = ()
    threshold: Threshold | None = None
    equal: tuple[tuple[str, str], ...] = ()

    @property
    def told_apart(self) -> tuple[object, ...]:
        """What tells its tuples apart from those of another stream, and from each other."""
        return self.name, self.chosen, self.keys

    def place(self, term: str) -> int:
        """Return the place of a term, or of a datum that a value is equal to (`datum_term`)."""
        own = term if term in self.terms else {f"${d}": name for d, name in self.equal}[term]
        return self.terms.index(own)

    def by(self, data: Collection[str]) -> TupleStream:
        """Return the stream with contenders that have one value of each of some data."""
        if self.keys or not data:
            return self
        terms = dict(self.equal)
        return replace(self, keys=tuple([terms[datum] for datum in data]))


def is_of_data(term: str) -> bool:
    """Return whether a term of a tuple is held against data, and no variable."""
    return term.startswith("$")


@dataclass(frozen=True, slots=True)
class Conjunction:
    """What must hold of rows together.

    `joins` are pairs of terms that have one value, which is not empty, the second of them of the
    operand that stands last; `rest` is everything else.  What is asked of a datum that values of an
    operand are equal to stands apart: `same` are pairs of terms as `joins`, which may be empty, and
    `had` are tests.  `given` are values of the operand for the parameters in `rest`.
    """

    joins: tuple[tuple[str, str], ...] = ()
    rest: Disjunct = NOTHING
    same: tuple[tuple[str, str], ...] = ()
    had: tuple[HadTest, ...] = ()
    given: tuple[HadValue, ...] = ()


ALWAYS = Conjunction()
"""What holds of all rows."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One way in which a left and a right tuple fit.

    Where a measure of both is held against data, `score` is the similarity join, at threshold 0.
    """

    left: TupleStream
    right: TupleStream
    asked: Conjunction
    score: SimilarityJoin | None = None


@dataclass(frozen=True, slots=True)
class AbsentCase:
    """One way in which a tuple of an absent unit takes away one of some blocks.

    It is asked beside rows of the streams of its own alternative, whose names are `beside`: rows of
    another one need not have what it reads.  Where a measure of a tuple and the row is held against
    data, `score` is the similarity join, at the threshold 0.  `window` is the term of the left row
    that says the window of the unit, if one does.
    """

    blocks: tuple[int, ...]
    stream: TupleStream
    asked: Conjunction
    beside: tuple[str, ...]
    score: SimilarityJoin | None = None
    window: str = ""


@dataclass(frozen=True, slots=True)
class Absent:
    """An absent unit: a document that fits any of the cases.

    `window_us` is its own window, which is none where cases say it: then it is `said_us`.
    """

    cases: tuple[AbsentCase, ...]
    window_us: int | Parameter = INFINITE_US
    said_us: Parameter | None = None

    @classmethod
    def of(cls, cases: Iterable[AbsentCase], window_us: int | Parameter) -> Absent:
        """Return a unit of its cases, each once."""
        own = tuple(dict.fromkeys(cases))
        if isinstance(window_us, Parameter) and any(case.window for case in own):
            return cls(own, said_us=window_us)
        return cls(own, window_us)

    @property
    def kept_us(self) -> int | Parameter:
        """For how long rows are kept that may take a tuple away which stands alone."""
        return self.said_us or self.window_us


@dataclass(frozen=True, slots=True)
class Decision:
    """One ordered operator.

    `lefts` are the streams of the operand where there is one, else `fits` say which fit.
    `window_us` is the operator's; it is WITHIN's where the operator has none.  A parameter is the
    window of an absence behind its operand: it is decided for each that is asked for (`graded`); or
    that of two operands, and a tuple needs it to be so long.
    `within_us` is the shortest WITHIN around it.  Where it `is_whole` the window is that of WITHIN
    itself, which is a parameter.
    `had` are data that values of the first operand are equal to, and of the second, where something
    else is held against them: whoever has a tuple has its values.  They are keys of that operand.
    """

    kind: DecisionKind
    lefts: tuple[TupleStream, ...]
    fits: tuple[Fit, ...]
    absences: tuple[Absent, ...]
    window_us: int | Parameter
    within_us: int
    grace_us: int
    is_whole: bool = False
    had: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def is_graded(self) -> bool:
        """Whether it is decided for each window that is asked for."""
        return isinstance(self.window_us, Parameter) and not self.kind.has_right

    @property
    def is_nearing(self) -> bool:
        """Whether a tuple of two parts needs a window that is a parameter to be so long."""
        return isinstance(self.window_us, Parameter) and self.kind.has_right

    @property
    def is_reaching(self) -> bool:
        """Whether how far back it looks is not known: UNLESS behind one operand, under `$w`."""
        return self.kind is DecisionKind.BEFORE and not isinstance(self.retention_us, int)

    @property
    def retention_us(self) -> Length:
        """The window of its clause, which is kept `lookback` times."""
        if self.kind is DecisionKind.BEFORE:
            return longest_of(absent.kept_us for absent in self.absences)
        if self.kind is DecisionKind.SETTLED:
            return 1  # of a clause without a window no documents are kept, until they are settled
        return self.window_us

    @property
    def lookback(self) -> int:
        """How many times `retention_us` documents are kept that may decide a tuple.

        NOT JOIN looks as far back from its operand as it waits behind it.
        """
        return 2 if self.kind is DecisionKind.AROUND else 1

    @property
    def is_sparing(self) -> bool:
        """Whether rights of NEXT serve sets of data, and leave others."""
        is_next = self.kind is DecisionKind.NEXT
        return is_next and any(_holds_for_data(fit.right) for fit in self.fits)

    @property
    def spares(self) -> bool:
        """Whether what is absent takes tuples away for sets of data."""
        cases = (case for absent in self.absences for case in absent.cases)
        return any(_holds_for_data(case.stream) for case in cases)

    @property
    def is_scored(self) -> bool:
        """Whether a measure of pairs, or of what is absent, is held against data."""
        cases = [case for absent in self.absences for case in absent.cases]
        scores = [*(fit.score for fit in self.fits), *(case.score for case in cases)]
        return any(each is not None for each in scores)

    def streams(self) -> set[str]:
        """Return the names of all streams that are read."""
        sides = (side for fit in self.fits for side in (fit.left, fit.right))
        cases = (case.stream for absent in self.absences for case in absent.cases)
        return {each.name for each in (*self.lefts, *sides, *cases)}


def _holds_for_data(stream: TupleStream) -> bool:
    return stream.threshold is not None and stream.threshold.held is not None


@dataclass(frozen=True, slots=True)
class Decided:
    """What a query class hands on of a decision: the rows of its parts that fit."""

    decision: Decision
    left: TupleStream
    right: TupleStream | None = None
    asked: Conjunction = ALWAYS
