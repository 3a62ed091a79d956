"""Tree patterns: what a block asks of one document, as a tree of nodes.

A `TreePattern` is made from a block and the **terms** that are needed of it: variables, and
derived values such as `lower-case(x2)`.  Only what must be joined, compared or shown stays in
the tree.  All else becomes a *filter* of the node that it constrains, so that two blocks that
differ in needs only still share every node that both have:

    S//book->x1[./author->x2][./title][price = '10']      with x1 and x2 needed

    document -- //book {filter: title exists} -+- author (x2)
                       (x1)                    +- price {constant: '10'}

- A predicate that binds nothing needed is a filter, word for word but without variables.
- A comparison with data, in a place that must hold, is a *test* of the node compared and no
  structure: a million such blocks are one pattern.  Data are strings held for equality, and
  parameters wherever they stand (`DataTest`).  A number or a word that is written out is a filter,
  which spares the join the documents that fail it; or, where that is asked for, it is data of the
  values below the node (`Values`), and the node has a filter of all who share it (`Prefilter`).
- Where a step counts positions, the predicates up to the last one that does are filters, in
  order, because each counts what those before it left.

A node's **definition** is the chain of what leads to it from the document: axis, test and filters
of each step.  Nodes of equal definitions bind the same document nodes; evaluation shares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from xscl.disjunctions import DataForm, Disjunction
from xscl.path import Axis, Condition, NodeTest, Parameter, XPathFrame
from xscl.prefilters import Admitted, Prefilter, Values
from xscl.query import Call as DerivedCall
from xscl.query import Derived, PathFrom, ValuesFrom, VariableValue, operand_variables

__all__ = [
    "DOCUMENT",
    "Constant",
    "DataTest",
    "PatternNode",
    "Prefilter",
    "TreePattern",
    "TuplePattern",
    "Values",
    "VariablePair",
    "derivation",
    "term_variable",
]

VariablePair = tuple[int, int]
"""Two variables of the catalog, asked for as a pair of nodes; one twice, for its own nodes."""

Constant = str | Parameter
"""A string that a node's value must equal, or the parameter that gives it."""

INEQUALITIES = ("<", "<=", ">", ">=")


class DataTest(NamedTuple):
    """What a node's value is held against: `=`, `!=`, an inequality, `contains` or the like.

    A text may stand for several values (`Values`): then the test holds if it does for one of them.
    """

    operator: str
    data: Constant | float | Disjunction | XPathFrame
    is_of_several: bool = False
    form: DataForm = DataForm.PLAIN

    @property
    def is_equality(self) -> bool:
        """Whether the one value must equal its data."""
        return self.operator == "=" and not self.is_of_several


DOCUMENT = -1
"""The parent of a pattern's first node."""


@dataclass(frozen=True, slots=True)
class PatternNode:
    """One node of a tree pattern.

    `parent` is the index of a node before it, or `DOCUMENT`.  `terms` are the needed terms that it
    binds, `tests` what its value is held against.  A node with a `derivation` has no step of its
    own: it stands for the values of that function of its parent's string value; of an optional path
    it has one value for all that the path selects there (`xscl.evaluation.optional_values`), as
    `Values` have.  `prefilters` are a part of what the node is; the constants that the block has
    `admitted` to them are not.
    """

    parent: int
    axis: Axis
    test: NodeTest
    is_deep: bool = False
    filters: tuple[Condition, ...] = ()
    terms: tuple[str, ...] = ()
    tests: tuple[DataTest, ...] = ()
    derivation: Derived | PathFrom | Values | None = None
    prefilters: tuple[Prefilter, ...] = ()
    admitted: tuple[Admitted, ...] = ()

    @property
    def constants(self) -> tuple[Constant, ...]:
        """What its value must equal."""
        return tuple([t.data for t in self.tests if t.is_equality and _is_constant(t.data)])

    @property
    def step_definition(self) -> tuple[object, ...]:
        """What tells this node from its siblings; with its parent's, its definition."""
        own = (self.axis, self.test, self.is_deep, self.filters, self.derivation)
        return (*own, self.prefilters) if self.prefilters else own


def _is_constant(data: Constant | float | Disjunction | XPathFrame) -> TypeGuard[Constant]:
    return isinstance(data, (str, Parameter))


@dataclass(frozen=True, slots=True)
class TreePattern:
    """The tree of a block; parents stand before their children, `nodes[0]` is the first step."""

    stream: str
    nodes: tuple[PatternNode, ...]

    def node_of(self, term: str) -> int:
        """Return the index of the node that binds a needed term."""
        return next(i for i, node in enumerate(self.nodes) if term in node.terms)


@dataclass(frozen=True, slots=True)
class TuplePattern:
    """The tuples of an operator as instances of a stream: a root, and a node below for each term.

    No document has that stream, so nothing is to be found there.
    """

    stream: str
    terms: tuple[str, ...]


def term_variable(operand: Derived | PathFrom | ValuesFrom) -> str:
    """Return the one variable of a derived operand."""
    (variable,) = operand_variables(operand)
    return variable


def derivation(operand: DerivedCall | PathFrom | ValuesFrom) -> DerivedCall | PathFrom | Values:
    """Return the function itself, its variable replaced by `.`, so that equal ones are equal."""

    def strip(argument: object) -> object:
        if isinstance(argument, VariableValue):
            return VariableValue(".")
        if isinstance(argument, DerivedCall):
            return derivation(argument)
        return argument

    if isinstance(operand, ValuesFrom):
        return operand.values
    if isinstance(operand, PathFrom):
        return PathFrom(".", operand.path)
    return DerivedCall(operand.function, tuple(map(strip, operand.arguments)))  # type: ignore[arg-type]
