"""What `survey` finds out about queries: values that every format prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from templates.queryclass import QueryClass
from templates.template import Template
from xscl.query import INFINITE_US, SimilarityJoin

__all__ = [
    "AbsenceView",
    "BlockView",
    "ClassMember",
    "ClassView",
    "ClauseView",
    "ComparisonView",
    "DecisionView",
    "NodeView",
    "QueryView",
    "SharingNote",
    "SideView",
    "Survey",
    "TemplateView",
    "Tested",
    "VariableView",
]


@dataclass(frozen=True, slots=True)
class VariableView:
    """One definition, under the one name that all queries share.

    `name` is what the first query with it calls it, with `.2`, `.3` behind it where that name
    means something else already.  `uses` are the queries that have it: (query, its own name).
    """

    number: int
    name: str
    definition: str
    uses: tuple[tuple[str, str], ...] = ()

    def queries(self) -> tuple[str, ...]:
        """Return the ids of the queries that have it, each once."""
        return tuple(dict.fromkeys(query for query, _ in self.uses))


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node of a tree pattern.

    `called` is what the query calls it: variables, derived values; empty for a step that only
    leads on.  `constants` are strings that its value must equal, `tests` what else it
    is held against, as it is written.  `survives` says that it is
    left in the minor.
    """

    parent: int
    step: str
    variable: int
    called: tuple[str, ...]
    filters: tuple[str, ...]
    constants: tuple[str, ...]
    tests: tuple[str, ...]
    is_block_root: bool
    survives: bool


@dataclass(frozen=True, slots=True)
class SideView:
    """One operand: a block, or the tuples of another operator, or of a decision.

    Of these `stream` says which one it is; what they carry and this operator needs is a node.
    """

    block: int | None
    operator: int | None
    stream: str
    nodes: tuple[NodeView, ...]


ComparisonKind = Literal["value join", "similarity", "residual"]
Tested = Literal["join", "constant", "tuple"]


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """One comparison of an operator's predicate.

    Pairs of documents are found by a value join, or by a `similarity` if there is none; a
    `residual` filters them.  `ends` are the nodes that it touches, as (side, node).  `tested` says
    where: in the template's `join`, as a `constant` that is looked up, or one `tuple` after the
    other behind the join.  `similar` is what a similarity asks.
    """

    text: str
    kind: ComparisonKind
    operator: str
    ends: tuple[tuple[int, int], ...]
    tested: Tested
    similar: SimilarityJoin | None = None


@dataclass(frozen=True, slots=True)
class ClauseView:
    """One operator, or a query's only block, under one alternative of its predicates.

    `retention_us` is how far the oldest document of a tuple may lie behind the tuple's end; windows
    that are parameters count as 0.  `common` names the stream in which an inner operator hands on
    its tuples beside those of others, "" where it has one of its own.
    """

    operator: int
    kind: str
    window_us: int
    window: str
    sides: tuple[SideView, ...]
    comparisons: tuple[ComparisonView, ...]
    class_number: int
    stratum: int
    retention_us: int
    common: str = ""

    @property
    def is_join(self) -> bool:
        """Whether it has two sides."""
        return len(self.sides) > 1

    @property
    def is_product(self) -> bool:
        """Whether each pair is tried: nothing of one side equals, or is similar to, the other."""
        return self.is_join and all(each.kind == "residual" for each in self.comparisons)

    @property
    def is_unbounded(self) -> bool:
        """Whether what it remembers is never forgotten."""
        return self.is_join and self.retention_us >= INFINITE_US


@dataclass(frozen=True, slots=True)
class AbsenceView:
    """What must be absent: its blocks in words, and which documents of them count."""

    unit: str
    kind: str
    asked: str
    window: str


@dataclass(frozen=True, slots=True)
class RepeatedView:
    """What a run asks of each element of a repetition: `gap` bounds the time between two of them.

    `go_on` is WHILE, and `folds` are the values of FOLD with what they become.
    """

    unit: str
    asked: str
    gap: str = ""
    go_on: str = ""
    folds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DecisionView:
    """What NEXT, UNLESS, NOT, a repetition or MATCH decides, in the query's words.

    `number` is its place among those of the query, from 1.  `asked` is the predicate, empty where
    there is none, `within` the shortest WITHIN around it.  `grace_us` is how far the newest event
    time must be ahead of a tuple's end.  `others` are queries that share it.  Its parts are
    looked up where an equality or a similarity says which may be together.  `repeated` are the
    repetitions that it finds runs of, and `how` says how; one that `is_open` waits for nothing.
    """

    number: int
    kind: str
    operands: tuple[str, ...]
    asked: str
    is_looked_up: bool
    window: str
    within: str
    absences: tuple[AbsenceView, ...]
    grace_us: int
    retention_us: int
    stratum: int
    others: tuple[str, ...] = ()
    repeated: tuple[RepeatedView, ...] = ()
    how: str = ""
    is_open: bool = False

    @property
    def is_unbounded(self) -> bool:
        """Whether what it remembers is never forgotten."""
        return self.retention_us >= INFINITE_US


@dataclass(frozen=True, slots=True)
class SharingNote:
    """Something that is not shared with other queries, and why; `code` is stable."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block: the stream that it reads, and its variables, the root first."""

    stream: str
    root: str
    variables: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class QueryView:
    """One query.  `alternatives` are its conjunctive readings, each the clauses from inside out.

    What is decided stands in `decisions`, inner ones first, and in no alternative.  `says_grace`
    says whether the query has a GRACE.  `given` says what it gives of its matches, where
    that is not all of them.  One with LOSS has `variants`; the rest is that of the first, which
    lacks nothing, and `unasked` says what is asked of confidence and what cannot reach it.
    `tables` says what it has to do with tables.
    """

    id: str
    text: str
    version: str
    select: str
    publish: str | None
    parameters: tuple[tuple[str, str], ...]
    blocks: tuple[BlockView, ...]
    alternatives: tuple[tuple[ClauseView, ...], ...]
    notes: tuple[SharingNote, ...] = ()
    decisions: tuple[DecisionView, ...] = ()
    says_grace: bool = False
    given: tuple[str, ...] = ()
    variants: tuple[VariantView, ...] = ()
    unasked: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    @property
    def readings(self) -> tuple[QueryView, ...]:
        """The statements that it is made of: its variants, or itself."""
        return tuple(each.view for each in self.variants) or (self,)

    def clauses(self) -> Iterator[ClauseView]:
        """Yield the clauses of all alternatives."""
        for alternative in self.alternatives:
            yield from alternative


@dataclass(frozen=True, slots=True)
class VariantView:
    """A variant of a query with LOSS: what it is called, its factors, and what becomes of it."""

    title: str
    lost: tuple[int, ...]
    factors: tuple[str, ...]
    view: QueryView


@dataclass(frozen=True, slots=True)
class ClassMember:
    """One use of a query class: by a query, in an alternative, for an operator."""

    query: str
    alternative: int
    operator: int


@dataclass(frozen=True, slots=True)
class ClassView:
    """A query class: what is evaluated once for all its members."""

    number: int
    template: int
    query_class: QueryClass
    window_us: int
    members: tuple[ClassMember, ...]

    def queries(self) -> tuple[str, ...]:
        """Return the ids of the queries that share it, each once."""
        return tuple(dict.fromkeys(member.query for member in self.members))


@dataclass(frozen=True, slots=True)
class TemplateView:
    """A template with what is generated for it.

    `datalog` is the paper's conjunctive query, `view_datalog` the one over `R_vj`; `sql` are the
    statements for a batch in which the instances from number 1 on are new.
    """

    number: int
    template: Template
    classes: tuple[int, ...]
    datalog: str
    view_datalog: str
    sql: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """All queries of a set, and what they have in common."""

    queries: tuple[QueryView, ...]
    variables: Mapping[int, VariableView]
    classes: tuple[ClassView, ...]
    templates: tuple[TemplateView, ...]
    lateness_us: int

    def query(self, query_id: str) -> QueryView:
        """Return a query by its id; `KeyError` where there is none."""
        for query in self.queries:
            if query.id == query_id:
                return query
        raise KeyError(query_id)

    def class_of(self, clause: ClauseView) -> ClassView:
        """Return the class that answers a clause."""
        return self.classes[clause.class_number - 1]

    def template_of(self, query_class: ClassView) -> TemplateView:
        """Return the template of a class."""
        return self.templates[query_class.template - 1]

    def named(self) -> list[VariableView]:
        """Return the variables that are defined by paths."""
        return [view for view in self.variables.values() if view.definition]

    def name(self, variable: int) -> str:
        """Return the name that all queries share for a variable."""
        return self.variables[variable].name
