"""The normal form of an XSCL statement: what the rest of the broker works on.

`xscl.parser` reads text into syntax; `xscl.normalise` checks it and makes a `Query`:

- every block has a root variable, `#0`, `#1`, ... where the author gave none;
- a path from a variable in a predicate (`x1/author`) is a fresh variable of its block, one for
  each occurrence, bound by an `Exists` predicate appended to the step that binds `x1`;
- every operator's predicate is a disjunction of conjunctions, each split into value joins and
  residuals.

All values are frozen and can be pickled, compared and hashed; spans take no part in equality.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from xscl.path import ComparisonOperator, Literal, Parameter, Path, Span

__all__ = [
    "INFINITE_US",
    "Block",
    "Call",
    "Constructor",
    "Derived",
    "Disjunct",
    "Operand",
    "Operator",
    "OperatorKind",
    "Query",
    "Residual",
    "Select",
    "SelectAll",
    "SelectNodes",
    "ValueJoin",
    "Variable",
    "VariableValue",
    "Window",
]

INFINITE_US = 1 << 62
"""The length of an `INF` window in microseconds: larger than any difference of two times."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a query in normal form.

    `name` is unique in the query; `label` is what a match line calls it: the name again, or for
    a path from a variable its text (`x1/author`; a second occurrence is `x1/author#2`).
    """

    name: str
    block: int
    label: str

    @property
    def is_path(self) -> bool:
        """Whether this stands for a path in a predicate, and not for a name of the author's.

        Such a variable is existential: it must be bound only where the conjunction that is
        looked at compares it.
        """
        return "/" in self.label


@dataclass(frozen=True, slots=True)
class Block:
    """One tree pattern on one stream; `stream` is a name or `*`.

    `path` starts at the document node, so its first step, child or deep, reaches the root
    element; a block without a path has the one child step `*`.  `root` is the variable that the
    last step of `path` binds.  `variables` are all that the path binds, in the order of the text.
    """

    stream: str
    path: Path
    root: str
    variables: tuple[str, ...]
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class VariableValue:
    """The string value of the node that a variable is bound to."""

    variable: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of section 5 over operands, by its name: `lower-case`, `tokenize`, `host` ..."""

    function: str
    arguments: tuple[Operand, ...]


Operand = VariableValue | Call | Literal | Parameter
"""One side of a comparison in an operator's predicate."""

Derived = VariableValue | Call
"""An operand of exactly one variable: its own string value, or functions of it and literals."""


def operand_variables(operand: Operand) -> tuple[str, ...]:
    """Return the variables that an operand mentions, each once, in the order of the text."""
    match operand:
        case VariableValue(variable):
            return (variable,)
        case Call(arguments=arguments):
            return tuple(dict.fromkeys(v for each in arguments for v in operand_variables(each)))
    return ()


@dataclass(frozen=True, slots=True)
class ValueJoin:
    """Equality of a value of the left operand and a value of the right one."""

    left: Derived
    right: Derived


@dataclass(frozen=True, slots=True)
class Residual:
    """Any other comparison.  It filters the tuples that value joins produce."""

    left: Operand
    operator: ComparisonOperator
    right: Operand


@dataclass(frozen=True, slots=True)
class Disjunct:
    """A conjunction of value joins and residuals; one alternative of an operator's predicate."""

    value_joins: tuple[ValueJoin, ...] = ()
    residuals: tuple[Residual, ...] = ()

    def operands(self) -> Iterator[Operand]:
        """Yield both sides of each comparison."""
        comparisons: tuple[ValueJoin | Residual, ...] = (*self.value_joins, *self.residuals)
        for each in comparisons:
            yield from (each.left, each.right)


class OperatorKind(enum.Enum):
    """The join operators."""

    FOLLOWED_BY = "FOLLOWED BY"
    JOIN = "JOIN"


@dataclass(frozen=True, slots=True)
class Window:
    """How far apart in time two operands may end and still join; the bound is closed.

    `length_us` is in microseconds, `INFINITE_US` for `INF`.
    """

    length_us: int


@dataclass(frozen=True, slots=True)
class Operator:
    """A join of two operands, each a block (its index) or an operator.

    `disjuncts` is never empty; a predicate that was left out is one empty disjunct.
    """

    kind: OperatorKind
    left: Operator | int
    right: Operator | int
    disjuncts: tuple[Disjunct, ...]
    window: Window | Parameter
    span: Span | None = field(default=None, compare=False)

    def blocks(self) -> Iterator[int]:
        """Yield the indexes of the blocks below this operator, in order."""
        for side in (self.left, self.right):
            if isinstance(side, Operator):
                yield from side.blocks()
            else:
                yield side


@dataclass(frozen=True, slots=True)
class SelectAll:
    """`SELECT *`: a copy of each block root."""


@dataclass(frozen=True, slots=True)
class SelectNodes:
    """`SELECT x1, x4`: copies of the nodes of these variables."""

    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constructor:
    """An element constructor: its text as written, and the variables that it mentions, in order.

    `namespaces` are the declared prefixes, as (prefix, URI), the default one under `""`.  With
    `is_list` it stands for a list with a path, `SELECT x1/c`: `<match>` is in no namespace.
    """

    text: str
    variables: tuple[str, ...]
    namespaces: tuple[tuple[str, str], ...] = ()
    is_list: bool = False


Select = SelectAll | SelectNodes | Constructor


@dataclass(frozen=True, slots=True)
class Query:
    """One XSCL statement in normal form.

    `root` is the outermost operator, or 0 where the query is a single block.  `text` is its
    canonical text (`xscl fmt`, without comments); `version` is a hash of it.  `variables` has
    all variables of all blocks, fresh ones included.  `parameters` maps each parameter's name to
    its type: `string`, `number` or `duration`.
    """

    id: str
    text: str
    version: str
    blocks: tuple[Block, ...]
    root: Operator | int
    variables: tuple[Variable, ...]
    select: Select = SelectAll()
    publish: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()

    def operators(self) -> Iterator[Operator]:
        """Yield the operators, inner ones before outer ones, left before right."""
        yield from _operators(self.root)

    def visible(self) -> tuple[str, ...]:
        """Return the visible variables: the block roots, then what a SELECT clause mentions."""
        roots = tuple(block.root for block in self.blocks)
        if isinstance(self.select, SelectAll):
            return roots
        return roots + tuple(v for v in self.select.variables if v not in roots)


def _operators(node: Operator | int) -> Iterator[Operator]:
    if isinstance(node, Operator):
        yield from _operators(node.left)
        yield from _operators(node.right)
        yield node
