"""The normal form of an XSCL statement: what the rest of the broker works on.

`xscl.parser` reads text into syntax; `xscl.normalise` checks it and makes a `Query`:

- every block has a root variable, `#0`, `#1`, ... where the author gave none;
- a path from a variable in a predicate (`x1/author`) is a fresh variable of its block, one for
  each occurrence, bound by an `Exists` predicate appended to the step that binds `x1`;
- every predicate is a disjunction of conjunctions (`xscl.comparison`);
- the source is a tree of operators and what they stand on (`xscl.sequence`), with the
  parentheses that matter and no others; an operator over blocks alone is `Operator(kind, 0, 1)`.

All values are frozen and can be pickled, compared and hashed; spans take no part in equality.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from xscl.comparison import (
    Call,
    Cell,
    Conditional,
    Derived,
    Disjunct,
    Elements,
    Operand,
    PathFrom,
    Residual,
    Row,
    SimilarityJoin,
    Term,
    ValueJoin,
    ValuesFrom,
    VariableValue,
    operand_parameters,
    operand_terms,
    operand_variables,
    tables_of,
    term,
)
from xscl.path import Parameter, Path, Span
from xscl.sequence import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    Fold,
    From,
    Key,
    Node,
    Operator,
    OperatorKind,
    Repetition,
    Strategy,
    Unit,
    Window,
    decides,
    is_chain,
    is_of_joins,
    is_open_chain,
    nodes_below,
    operators_below,
    units_of,
)
from xscl.table import Action, Table, TableUse

__all__ = [
    "INFINITE_US",
    "ROW_VALUE",
    "Absence",
    "AbsenceKind",
    "Block",
    "Call",
    "Cell",
    "Conditional",
    "Constructor",
    "Delay",
    "Derived",
    "Disjunct",
    "Elements",
    "Fold",
    "From",
    "Key",
    "Limit",
    "Loss",
    "Node",
    "Operand",
    "Operator",
    "OperatorKind",
    "PathFrom",
    "Query",
    "Repetition",
    "Residual",
    "Row",
    "Rows",
    "Select",
    "SelectAll",
    "SelectKind",
    "SelectNodes",
    "SimilarityJoin",
    "Strategy",
    "Table",
    "Term",
    "Unit",
    "ValueJoin",
    "ValuesFrom",
    "Variable",
    "VariableValue",
    "Window",
    "operand_parameters",
    "operand_terms",
    "operand_variables",
    "term",
]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a query in normal form.

    `name` is unique in its block, and in the query but for alternatives of one unit, which may bind
    the same names.  `label` is what a match line calls it: the name again, or for
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
    `keys` are further paths from the document, each with the variable that it binds: where SAME has
    been taken out (`templates.plain`).
    """

    stream: str
    path: Path
    root: str
    variables: tuple[str, ...]
    span: Span | None = field(default=None, compare=False)
    loss: Loss | None = None
    keys: tuple[tuple[str, Path], ...] = ()


@dataclass(frozen=True, slots=True)
class Delay:
    """How long a document comes after the unit before it.

    `kind` is `uniform` (two lengths), `exp` (its mean), `cdf` (lengths, and the share that has come
    by then of each) or `learned`.
    """

    kind: str
    lengths: tuple[Window | Parameter, ...] = ()
    shares: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Loss:
    """How often a document of a block is lost, and its delay when it is not."""

    probability: float
    delay: Delay
    span: Span | None = field(default=None, compare=False)


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


ROW_VALUE = "xscl.row."
"""What the names of XPath variables for the values of rows begin with; a number follows."""

Select = SelectAll | SelectNodes | Constructor


class SelectKind(enum.Enum):
    """Which matches are given: all, matches that do not overlap, or all as graphs."""

    ALL = ""
    DISJOINT = "DISJOINT"
    COMPRESSED = "COMPRESSED"


@dataclass(frozen=True, slots=True)
class Rows:
    """`WINDOW`: rows over the matches of each value of the keys, instead of matches.

    `aggregates` are all that the statement asks of rows, each once, and `names` the texts of the
    keys and then of the aggregates: what a match line calls them.
    """

    length: Window | Parameter
    keys: tuple[Operand, ...]
    having: tuple[Disjunct, ...] | None
    aggregates: tuple[Call, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """`LIMIT`: so many matches of each value of the keys within a length of time."""

    count: float | Parameter
    length: Window | Parameter
    keys: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """One XSCL statement in normal form.

    `root` is its source, 0 where the query is a single block.  `text` is its
    canonical text (`xscl fmt`, without comments); `version` is a hash of it.  `variables` has
    all variables of all blocks, fresh ones included.  `parameters` maps each parameter's name to
    its type: `string`, `number`, `duration`, or `value` for a string or a number.  `grace` is a
    number of microseconds.  `tables` are the tables that it reads and writes.  `table` is what
    CREATE TABLE creates: then the query is the one that loads it (`xscl.loads`).  `apart` are the
    keys of SAME by which DISJOINT and COMPRESSED tell matches apart, in plain statements
    (`templates.plain`).
    """

    id: str
    text: str
    version: str
    blocks: tuple[Block, ...]
    root: Node
    variables: tuple[Variable, ...]
    select: Select = SelectAll()
    publish: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    kind: SelectKind = SelectKind.ALL
    rows: Rows | None = None
    limit: Limit | None = None
    confidence: float | Parameter | None = None
    grace: int | None = None
    actions: tuple[Action, ...] = ()
    tables: tuple[TableUse, ...] = ()
    table: Table | None = None
    apart: tuple[Operand, ...] = ()

    def operators(self) -> Iterator[Operator]:
        """Yield the operators, inner ones before outer ones, left before right."""
        yield from operators_below(self.root)

    @property
    def text_parameters(self) -> set[str]:
        """The parameters that may have strings."""
        return {name for name, kind in self.parameters if kind not in ("number", "duration")}

    @property
    def has_runs(self) -> bool:
        """Whether something is repeated."""
        return any(isinstance(node, Repetition) for node in nodes_below(self.root))

    @property
    def has_chains(self) -> bool:
        """Whether a whole chain is found at once, under MATCH."""
        return any(map(is_chain, nodes_below(self.root))) or self.is_open_chain

    @property
    def is_open_chain(self) -> bool:
        """Whether it is a chain under MATCH ANY of which nothing is listed before it is complete.

        Subscriptions that differ in data share what is joined, and similar texts are looked up.
        """
        if not is_open_chain(self.root) or self.parameters or self.is_settled or self.is_lossy:
            return False
        asked = (each for node in operators_below(self.root) for each in node.disjuncts)
        return not any(each.similarity_joins for each in asked)

    @property
    def is_lossy(self) -> bool:
        """Whether a document of some block may be lost: then it is what its variants are."""
        for block in self.blocks:  # noqa: SIM110 - `any` takes three times as long
            if block.loss is not None:
                return True
        return False

    @property
    def has_confidence(self) -> bool:
        """Whether its matches say how sure they are: something may be lost, or CONFIDENCE asks."""
        return self.is_lossy or self.confidence is not None

    @property
    def learns(self) -> bool:
        """Whether the delay of some block is learned from the matches that lack nothing."""
        return any(
            block.loss is not None and block.loss.delay.kind == "learned" for block in self.blocks
        )

    @property
    def lossy_units(self) -> int:
        """How many units of a match may be lost."""
        present = (block for unit in units_of(self.root) for block in unit)
        return sum(self.blocks[block].loss is not None for block in present)

    @property
    def is_plain(self) -> bool:
        """Whether it is joins alone: nothing is decided, and nothing repeated."""
        if is_of_joins(self.root):
            return not (self.is_settled or self.is_lossy)
        return not self.is_ordered and not self.has_runs and not self.has_chains

    @property
    def is_ordered(self) -> bool:
        """Whether something is decided, which a further document could have changed."""
        nodes = list(nodes_below(self.root))
        return (
            bool(self.tables)
            or self.is_lossy
            or any(map(decides, nodes))
            or any(map(is_chain, nodes))
            or self.has_outcome
        )

    @property
    def has_outcome(self) -> bool:
        """Whether its matches are not given as they are found: rows, or some of them."""
        return self.rows is not None or self.limit is not None or self.kind is not SelectKind.ALL

    @property
    def is_judged_together(self) -> bool:
        """Whether what has been found before says which of its matches are given."""
        return self.has_outcome or self.learns

    @property
    def is_settled(self) -> bool:
        """Whether each tuple of its source is decided, whatever the source."""
        return bool(self.tables) or self.has_outcome

    @property
    def outcome_operands(self) -> tuple[Operand, ...]:
        """What rows and limits read of matches: keys, then aggregates; or keys, then `apart`."""
        if self.rows is not None:
            return (*self.rows.keys, *self.rows.aggregates)
        return (*(() if self.limit is None else self.limit.keys), *self.apart)

    @property
    def guards(self) -> frozenset[str]:
        """The tables that WHERE and HAVING ask."""
        having = () if self.rows is None else self.rows.having or ()
        asked = (o for disjunct in having for o in disjunct.operands())
        return self.guards_of_matches | frozenset(tables_of(asked))

    @property
    def guards_of_matches(self) -> frozenset[str]:
        """The tables that WHERE asks."""
        root = self.root
        where = root.where or () if isinstance(root, From) else ()
        asked = (o for disjunct in where for o in disjunct.operands())
        return frozenset(tables_of(asked))

    @property
    def has_candidates(self) -> bool:
        """Whether a transaction says which of its tuples become matches, or rows."""
        return bool(self.guards) or (bool(self.tables) and self.is_judged_together)

    @property
    def table_names(self) -> frozenset[str]:
        """The names of the tables that it reads and writes."""
        return frozenset(use.table for use in self.tables)

    def visible(self) -> tuple[str, ...]:
        """Return the visible variables: the block roots, then what a SELECT clause mentions."""
        return self.visible_in([block for unit in units_of(self.root) for block in unit])

    def visible_in(self, blocks: Iterable[int]) -> tuple[str, ...]:
        """Return the visible variables of a tuple of some blocks."""
        roots = tuple([self.blocks[block].root for block in blocks])
        if isinstance(self.select, SelectAll):
            return roots
        bound = {variable.name for variable in self.variables}
        return roots + tuple(v for v in self.select.variables if v in bound and v not in roots)
