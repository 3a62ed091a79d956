"""What predicates of operators and clauses are made of: operands, comparisons, disjuncts.

A predicate is a disjunction of conjunctions.  A `Disjunct` splits its conjuncts by how they can be
found: value joins and similarity joins are looked up, residuals and tests filter what these give.

An operand's path is one of two things.  Where a conjunct needs it (`a/author = b/author`), it is a
variable of its own, bound in the block.  Where it need not be there (below `exists`, `if`, `prev`
or an aggregate, in FOLD, SET, HAVING), it is a `PathFrom` a variable, and may have no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from xscl.path import (
    ComparisonOperator,
    Exists,
    Literal,
    Parameter,
    Path,
    condition_parameters,
)

if TYPE_CHECKING:
    from xscl.prefilters import Values

__all__ = [
    "FIRST_TIME",
    "INSTANTS",
    "LAST_TIME",
    "OF_EXCERPT",
    "REVISION",
    "TIME_BETWEEN",
    "UNBOUND",
    "XPATH_FRAME",
    "XPATH_NUMBER",
    "Call",
    "Cell",
    "Conditional",
    "Derived",
    "Disjunct",
    "Elements",
    "Operand",
    "PathFrom",
    "Residual",
    "Row",
    "SimilarityJoin",
    "Term",
    "ValueJoin",
    "ValuesFrom",
    "VariableValue",
    "has_several",
    "is_datum",
    "is_of_one",
    "operand_parameters",
    "operand_terms",
    "operand_variables",
    "operands_below",
    "operands_in",
    "tables_of",
    "term",
]


@dataclass(frozen=True, slots=True)
class VariableValue:
    """The string value of the node that a variable is bound to; of each of a repetition's."""

    variable: str


@dataclass(frozen=True, slots=True)
class PathFrom:
    """The string values of what a path selects from the node of a variable: none, one or more."""

    variable: str
    path: Path


@dataclass(frozen=True, slots=True)
class ValuesFrom:
    """One value for all that operands come to at the node of a variable.

    It stands for what a condition of a block compares, where that is asked of the tuple.
    """

    variable: str
    values: Values


@dataclass(frozen=True, slots=True)
class Call:
    """A function over operands, by its name.

    `lower-case`, `tokenize`, `host` ... of section 5; `+ - * div mod`, where `-` may have one
    argument; `jaccard`, `words` ... of similarity; `time`, `dur`, `prev`, `sum` ... of tuples and
    runs, where `count` and `collect` of different values are `count distinct`, `collect distinct`.
    """

    function: str
    arguments: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, by its key."""

    table: str
    key: Operand


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a row of a table."""

    row: Row
    column: str


@dataclass(frozen=True, slots=True)
class Conditional:
    """`if (condition) then a else b`."""

    condition: tuple[Disjunct, ...]
    then: Operand
    otherwise: Operand


@dataclass(frozen=True, slots=True)
class Elements:
    """What an operand is of the elements of a repetition.

    `run` names the value that a tuple carries for a complete repetition; it is None in conditions
    of a repetition that goes on, whose elements are those before the candidate.  `function` is
    `prev`, `first`, `last`, `count`, `sum`, `avg`, `min` or `max`; `candidate`; `all`, of all; or
    `fold`, of the value that the literal `operand` names.  `otherwise` is the second argument of
    `prev`.
    """

    run: str | None
    function: str
    operand: Operand | None = None
    otherwise: Operand | None = None


Operand = (
    VariableValue
    | PathFrom
    | ValuesFrom
    | Call
    | Literal
    | Parameter
    | Row
    | Cell
    | Conditional
    | Elements
)
"""One side of a comparison.  A duration is a `Literal` number, of microseconds."""

Derived = VariableValue | Call
"""An operand of exactly one variable: its own string value, or functions of it and literals."""

Term = VariableValue | PathFrom | ValuesFrom | Call
"""What is read of a tuple: a variable's value, the values of an optional path, or, as a call of one
of `INSTANTS` or of `REVISION`, what is known of the document that binds a variable."""

UNBOUND = Call("unbound", ())
"""What stands for an operand that rests on a variable which a tuple does not bind."""

INSTANTS = frozenset({"time", "start"})
"""Functions of a variable that tell when its document was: the end of its interval, the start.

`start` of a variable is no word of the language, which has `start()` of a tuple.  It says of a
block with a condition of its own what `start()` says there.
"""

REVISION = "revision"
"""A function of a variable: how many documents its document revises, a whole number as text.  It is
made where the values of documents are found, and stands for a value of the variable's node."""

FIRST_TIME, LAST_TIME = "first time", "last time"
"""Functions of calls of `INSTANTS`: the start and the end of the interval of some documents."""

TIME_BETWEEN = "time between"
"""A function of a first and a last time: how long the interval is, exactly."""

XPATH_NUMBER = "number of XPath 1.0"
"""A function of a parameter: the number that XPath 1.0 reads in what it is given."""

XPATH_FRAME = "truth of XPath 1.0"
"""A function of an expression, a literal, and of its arguments (`XPathFrame`): 1 where it holds."""

OF_EXCERPT = "truth of an excerpt"
"""A function of a condition, a literal, of an excerpt, and of its parameters: 1 where it holds."""


def operands_in(operand: Operand) -> tuple[Operand, ...]:
    """Return what an operand is made of at once, in the order of the text."""
    match operand:
        case Call(arguments=arguments):
            return arguments
        case Row(key=key):
            return (key,)
        case Cell(row=row):
            return (row,)
        case Conditional(condition, then, otherwise):
            asked = (each for disjunct in condition for each in disjunct.operands())
            return (*asked, then, otherwise)
        case Elements(operand=of, otherwise=otherwise):
            return tuple(each for each in (of, otherwise) if each is not None)
    return ()


def operands_below(operand: Operand) -> Iterator[Operand]:
    """Yield an operand and all that it is made of, in the order of the text."""
    yield operand
    for each in operands_in(operand):
        yield from operands_below(each)


def tables_of(operands: Iterable[Operand]) -> Iterator[str]:
    """Yield the table of each row that operands mention."""
    for operand in operands:
        yield from (each.table for each in operands_below(operand) if isinstance(each, Row))


def operand_variables(operand: Operand) -> tuple[str, ...]:
    """Return the variables that an operand mentions, each once, in the order of the text."""
    if isinstance(operand, VariableValue):
        return (operand.variable,)
    below = operands_below(operand)
    named = (VariableValue, PathFrom, ValuesFrom)
    mentioned = (o.variable for o in below if isinstance(o, named))
    return tuple(dict.fromkeys(mentioned))


def is_of_one(operand: Operand) -> TypeGuard[Derived]:
    """Return whether an operand is a variable or a function of one, a number perhaps."""
    return isinstance(operand, (VariableValue, Call)) and len(operand_variables(operand)) == 1


def has_several(operand: Operand) -> bool:
    """Return whether an operand may stand for several values of one node."""
    called = (each for each in operands_below(operand) if isinstance(each, Call))
    return any(call.function == "tokenize" for call in called)


def is_datum(operand: Operand) -> TypeGuard[Literal | Parameter | Call]:
    """Return whether an operand is the same for all tuples: written, given, or made of such."""
    match operand:
        case Call(_, (_, *_) as arguments):
            return all(map(is_datum, arguments))
    return isinstance(operand, (Literal, Parameter))


def operand_parameters(operand: Operand) -> tuple[Parameter, ...]:
    """Return the parameters of an operand, in the order of the text."""
    found: list[Parameter] = []
    for each in operands_below(operand):
        if isinstance(each, Parameter):
            found.append(each)
        elif isinstance(each, PathFrom):
            found += condition_parameters(Exists(each.path))
    return tuple(found)


def operand_terms(operand: Operand) -> tuple[Term, ...]:
    """Return what an operand reads of a tuple, each once: values, optional paths, times, revisions.

    A variable whose document is asked for its time, or that only has to be bound, is not read.
    Nor are variables of elements: a tuple carries a run as one value.
    """
    match operand:
        case VariableValue() | PathFrom() | ValuesFrom():
            return (operand,)
        case Call(function) if function in INSTANTS and operand.arguments:
            return (operand,)
        case Call("revision"):
            return (operand,)
        case Call("exists" | "empty", (VariableValue(),)):
            return ()
        case Elements(run=run, otherwise=otherwise):
            own = () if run is None else (VariableValue(run),)
            return own if otherwise is None else (*own, *operand_terms(otherwise))
        case Call(arguments=arguments):
            inner: tuple[Operand, ...] = arguments
        case Row(key=key):
            inner = (key,)
        case Cell(row=row):
            inner = (row,)
        case Conditional(condition, then, otherwise):
            asked = (each for disjunct in condition for each in disjunct.operands())
            inner = (*asked, then, otherwise)
        case _:
            return ()
    return tuple(dict.fromkeys(term for each in inner for term in operand_terms(each)))


def term(operand: Operand) -> str:
    """Return the name of what is read of a tuple: a variable's own, or a text of the function."""
    if isinstance(operand, VariableValue):
        return operand.variable  # as mostly
    match operand:
        case PathFrom(variable, path):
            return f"{variable}/{path}"
        case ValuesFrom(variable, values):
            return f"{variable}/{values}"
        case Call(function, arguments):
            return f"{function}({', '.join(map(term, arguments))})"
        case Literal(value):
            return repr(value)
        case Parameter(name):
            return f"${name}"
    return repr(operand)


@dataclass(frozen=True, slots=True)
class ValueJoin:
    """Equality of a value of the left operand and a value of the right one."""

    left: Derived
    right: Derived


@dataclass(frozen=True, slots=True)
class SimilarityJoin:
    """A measure of a set of the left operand and one of the right one, with its least value.

    `measure` is `jaccard`, `containment` or `overlap`; `left` and `right` are calls of `words`,
    `shingles` or `tokenize`.  `is_turned` says that the right set stands first in the measure,
    which matters to `containment`.
    """

    measure: str
    left: Call
    right: Call
    operator: ComparisonOperator
    threshold: Literal | Parameter
    is_turned: bool = False

    @property
    def measured(self) -> Call:
        """The measure, its sets in the order of the text."""
        sets = (self.right, self.left) if self.is_turned else (self.left, self.right)
        return Call(self.measure, sets)

    @property
    def residual(self) -> Residual:
        """The comparison, as what filters tuples."""
        return Residual(self.measured, self.operator, self.threshold)


@dataclass(frozen=True, slots=True)
class Residual:
    """Any other comparison.  It filters the tuples that value joins produce."""

    left: Operand
    operator: ComparisonOperator
    right: Operand


@dataclass(frozen=True, slots=True)
class Disjunct:
    """A conjunction; one alternative of a predicate.

    `tests` are conjuncts that are no comparisons: calls of `exists`, `empty`, `contains`,
    `starts-with`, `ends-with` and `matches`, and of `joins`, a value join that nothing looks up.
    """

    value_joins: tuple[ValueJoin, ...] = ()
    residuals: tuple[Residual, ...] = ()
    similarity_joins: tuple[SimilarityJoin, ...] = ()
    tests: tuple[Call, ...] = ()

    def operands(self) -> list[Operand]:
        """Return both sides of each comparison, and each test."""
        found: list[Operand] = []
        for join in self.value_joins:
            found += (join.left, join.right)
        for each in (*self.residuals, *[join.residual for join in self.similarity_joins]):
            found += (each.left, each.right)
        found += self.tests
        return found
