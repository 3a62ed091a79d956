"""Paths: the fragment of XPath in which query blocks are written.

These are values only: the parser makes them, `xpath_eval` evaluates them, `render` prints them.
A `Path` is a sequence of steps; a step selects nodes from a context node and keeps nodes that
pass its predicates, one after the other, as XPath does.  What a step means, and which functions
there are, is in `docs/xscl.md`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import dropwhile
from typing import NamedTuple

__all__ = [
    "ANY",
    "UPWARDS",
    "And",
    "Axis",
    "Comparison",
    "ComparisonOperator",
    "Condition",
    "Excerpt",
    "Exists",
    "FunctionValue",
    "Literal",
    "NodeTest",
    "Not",
    "Opaque",
    "Or",
    "Parameter",
    "Path",
    "PathValue",
    "Position",
    "Span",
    "Step",
    "StringTest",
    "Value",
    "XPathFrame",
    "XPathValue",
    "binding_paths",
    "condition_parameters",
    "conjuncts",
    "counts_positions",
    "matches_name",
    "node_test",
    "value_parameters",
    "value_paths",
]

ANY = "*"
"""In a `NodeTest`, a name or a namespace that matches every one."""


class Span(NamedTuple):
    """A half-open range of characters `[start, end)` in the text of a file, counted from 0."""

    start: int
    end: int


class Axis(enum.Enum):
    """Where a step looks, seen from its context node.

    What leads upwards stands in an `Excerpt` alone: parents, ancestors with the node itself, and
    the document node, whatever the context.
    """

    CHILD = "child"
    ATTRIBUTE = "attribute"
    SELF = "self"
    PARENT = "parent"
    ANCESTOR = "ancestor-or-self"
    DOCUMENT = "/"

    # Members are equal to themselves alone, and are looked up for each node of each pattern.
    __hash__ = object.__hash__


UPWARDS = frozenset((Axis.PARENT, Axis.ANCESTOR, Axis.DOCUMENT))
"""Axes that lead to what is not below their context node."""


@dataclass(frozen=True, slots=True)
class NodeTest:
    """Which nodes on its axis a step selects, by expanded name.

    `namespace` is a URI, `None` for no namespace, or `ANY`; `name` is a local name or `ANY`.
    A text test, `text()`, has `is_text` set and no names.  The test of a self step is `ANY`.
    """

    name: str
    namespace: str | None = None
    is_text: bool = False

    def __hash__(self) -> int:
        # It is looked up for each node of each pattern, and few differ in anything else.
        return hash(self.name)


node_test = lru_cache(maxsize=4_096)(NodeTest)
"""Returns a node test; equal ones are one object, in many paths."""

DECLARATIONS = node_test("xmlns")
"""What an excerpt has for the nodes of the axis of namespaces: no attribute is called so."""


def matches_name(test: NodeTest, name: str) -> bool:
    """Return whether an expanded name (`{uri}local` or `local`) passes a node test."""
    namespace, _, local = name.rpartition("}")
    if test.name not in (ANY, local):
        return False
    return test.namespace == ANY or (test.namespace or "") == namespace[1:]


ComparisonOperator = str
"""One of `=`, `!=`, `<`, `<=`, `>`, `>=`."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A string (`str`) or a number (`float`) written in a query."""

    value: str | float


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name`: a place for a value that each subscription gives."""

    name: str


@dataclass(frozen=True, slots=True)
class Path:
    """A location path relative to a context node; without steps it is the context node itself."""

    steps: tuple[Step, ...]

    @property
    def has_predicates(self) -> bool:
        """Whether more than an axis and a name is asked of some node."""
        for step in self.steps:  # noqa: SIM110 - `any` takes twice as long
            if step.predicates:
                return True
        return False


@dataclass(frozen=True, slots=True)
class PathValue:
    """The string values of the nodes that a path selects, one by one."""

    path: Path


@dataclass(frozen=True, slots=True)
class FunctionValue:
    """A function of values, by its XPath 2.0 name without prefix; `host` is ours.

    Mapped over sequences: `lower-case(author)` has one value for each author.
    """

    function: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class XPathValue:
    """The number, or the text, that an expression of XPath 1.0 is at each node of a path."""

    path: Path
    expression: str
    namespaces: tuple[tuple[str, str], ...] = ()
    is_text: bool = False

    def as_number(self) -> XPathValue:
        """Return the number that XPath 1.0 reads in the text, if it is one."""
        if not self.is_text:
            return self
        read = "." if self.expression == "string(.)" else self.expression
        return XPathValue(self.path, f"number({read})", self.namespaces)


@dataclass(frozen=True, slots=True)
class XPathFrame:
    """What an expression of XPath 1.0 makes of arguments, which it has as `$v1`, `$v2` and so on.

    A `PathValue` stands for nodes.  Of parameters alone it is data: a text that is made of them.
    """

    expression: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The parts of a document that a condition reads, as a text of XML (`xscl.excerpttexts`).

    It has all nodes on the `paths`, which ask for names alone; of those that the paths to `texts`
    select also all within.
    """

    paths: tuple[Path, ...]
    texts: tuple[Path, ...]

    @property
    def leads_upwards(self) -> bool:
        """Whether it has more than what is below its node."""
        return any(map(_from_above, (*self.paths, *self.texts)))

    @property
    def leads_down_again(self) -> bool:
        """Whether it has what is below a node to which it leads upwards."""
        return any(
            step.axis is Axis.CHILD or step.is_deep
            for path in (*self.paths, *self.texts)
            for step in _from_above(path)
        )


def _from_above(path: Path) -> tuple[Step, ...]:
    """Return the steps of a path from the first on that leads upwards."""
    return tuple(dropwhile(lambda step: step.axis not in UPWARDS, path.steps))


Value = PathValue | FunctionValue | XPathValue | XPathFrame | Excerpt | Literal | Parameter
"""What a predicate of a step compares."""


@dataclass(frozen=True, slots=True)
class Exists:
    """A relative path as a predicate: it selects at least one node.  Its steps may bind."""

    path: Path


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`, true when some value of `left` satisfies it.

    In a step, `left` is a path or a function of a path (whose steps may bind when this is in
    a positive place) and `right` is a literal or a parameter; the parser turns the sides
    around where they are written the other way.
    """

    left: Value
    operator: ComparisonOperator
    right: Value


@dataclass(frozen=True, slots=True)
class StringTest:
    """`contains`, `starts-with`, `ends-with` or `matches` of a value, true for some value.

    `flags` are those of `matches`, XPath's `s`, `m`, `i`, `x`.
    """

    function: str
    value: Value
    argument: Literal | Parameter | XPathFrame
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Position:
    """A condition on `position()` or `last()` among the nodes that are left at this predicate.

    `[3]` is `Position("=", 3)`, `[last()]` is `Position("=", 0, of_last=True)`,
    `[position() < last() - 1]` is `Position("<", 1, of_last=True)`: position compared with
    `number`, or with `last() - number`.  With `is_size`, `last()` itself is compared with `number`.
    """

    operator: ComparisonOperator
    number: float | Parameter
    of_last: bool = False
    is_size: bool = False


@dataclass(frozen=True, slots=True)
class And:
    """All of the conditions."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of the conditions."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of the condition."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Opaque:
    """A condition of XPath 1.0 outside the fragment: its text, and the prefixes that it uses.

    It is evaluated as XPath 1.0 of its context node: not shared, not bound.  The text is never a
    number: `[count(a)]` is `position() = count(a)`.  With `is_positional`, `position()` or
    `last()` of the context node itself stands in it.  `parameters` are those in the text.  Where it
    holds a number or a text against data, `compared` says so; where parameters, or a number that
    may be data, stand within arithmetic, `calculated` has both sides, made of `XPathValue` and
    `FunctionValue`; where parameters stand otherwise outside of paths, there is a `frame`.
    `reads` is what it reads of the document, if it reads nothing else.
    """

    expression: str
    namespaces: tuple[tuple[str, str], ...] = ()
    is_positional: bool = False
    parameters: tuple[Parameter, ...] = ()
    compared: Comparison | StringTest | None = field(default=None, compare=False, repr=False)
    calculated: tuple[Value, ComparisonOperator, Value] | None = field(
        default=None, compare=False, repr=False
    )
    frame: XPathFrame | None = field(default=None, compare=False, repr=False)
    reads: Excerpt | None = field(default=None, compare=False, repr=False)


Condition = Exists | Comparison | StringTest | Position | And | Or | Not | Opaque
"""What stands between the brackets of a predicate."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path.

    `is_deep` says that `//` stands before it: then it starts from every descendant-or-self of
    the context node.  `variable` is the name bound to the nodes that pass all predicates.
    Equality ignores the span.
    """

    axis: Axis
    test: NodeTest
    is_deep: bool = False
    variable: str | None = None
    predicates: tuple[Condition, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    def named(self, variable: str) -> Step:
        """Return the step with a variable that it binds."""
        return Step(self.axis, self.test, self.is_deep, variable, self.predicates, self.span)

    def variables(self) -> Iterator[str]:
        """Yield the variables that this step and its predicates bind, in the order of the text."""
        if self.variable is not None:
            yield self.variable
        for predicate in self.predicates:
            for path in binding_paths(predicate):
                for step in path.steps:
                    yield from step.variables()


def counts_positions(condition: Condition) -> bool:
    """Whether the truth of a condition depends on its context position or size."""
    match condition:
        case Exists():  # as mostly
            return False
        case Position():
            return True
        case Opaque(is_positional=is_positional):
            return is_positional
        case And(conditions) | Or(conditions):
            return any(map(counts_positions, conditions))
        case Not(inner):
            return counts_positions(inner)
    return False


def conjuncts(predicates: Iterable[Condition]) -> Iterator[Condition]:
    """Yield the predicates of a step one by one, those that `and` joins too."""
    for predicate in predicates:
        if isinstance(predicate, And) and not counts_positions(predicate):
            yield from conjuncts(predicate.conditions)
        else:
            yield predicate


def binding_paths(condition: Condition) -> Iterator[Path]:
    """Yield the paths of a condition whose steps may bind variables, in the order of the text."""
    match condition:
        case Exists(path):
            yield path
        case And(conditions):
            for each in conditions:
                yield from binding_paths(each)
        case Comparison(left=value) | StringTest(value=value):
            yield from value_paths(value)


def value_paths(value: Value) -> Iterator[Path]:
    """Yield the paths that a value is made of."""
    match value:
        case PathValue(path) | XPathValue(path):
            yield path
        case FunctionValue(arguments=arguments):
            for each in arguments:
                yield from value_paths(each)


def condition_parameters(condition: Condition) -> Iterator[Parameter]:
    """Yield the parameters of a condition, in the order of the text."""
    match condition:
        case Exists(path):
            yield from value_parameters(PathValue(path))
        case Comparison(left=left, right=right):
            yield from value_parameters(left)
            yield from value_parameters(right)
        case StringTest(value=value, argument=argument):
            yield from value_parameters(value)
            yield from value_parameters(argument)
        case Position(number=Parameter() as number):
            yield number
        case And(conditions) | Or(conditions):
            for each in conditions:
                yield from condition_parameters(each)
        case Not(inner):
            yield from condition_parameters(inner)
        case Opaque(parameters=parameters):
            yield from parameters


def value_parameters(value: Value) -> Iterator[Parameter]:
    """Yield the parameters of a value, those within its paths too."""
    match value:
        case Parameter():
            yield value
        case PathValue(path) | XPathValue(path):
            for predicate in (each for step in path.steps for each in step.predicates):
                yield from condition_parameters(predicate)
        case FunctionValue(arguments=arguments) | XPathFrame(arguments=arguments):
            for each in arguments:
                yield from value_parameters(each)
