"""From a query to the query classes that answer it.

Each operator of each alternative becomes a clause (`clause`).  An operator below another one hands
on its tuples as instances of a stream of its own, whose witness shape is flat: a root, and one node
for each variable that is carried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Protocol, cast

from templates.box import SPAN, Made, Test, TestedPlace, terms_tested
from templates.clause import Alternative, Clause, ClauseSource, Published, source_of_block
from templates.clausebuilder import ClauseBuilder
from templates.clausesides import Side
from templates.datatests import without_implied
from templates.derived import as_derived
from templates.founddata import ByData, unheld_data
from templates.madejoins import texts_made
from templates.ordered import PlainNode, blocks_of
from templates.queryclass import QueryClass
from templates.readterms import ReadTerms, variables_apart
from templates.saiddata import data_named
from templates.tuplestreams import may_be_common, places_tested, stream_name
from xscl.comparison import INSTANTS, REVISION
from xscl.constants import breadth_of_constants
from xscl.path import Parameter
from xscl.pattern import (
    TreePattern,
    TuplePattern,
    VariablePair,
)
from xscl.prefilters import Admitted, Values
from xscl.query import (
    INFINITE_US,
    Call,
    Disjunct,
    From,
    Operand,
    Operator,
    OperatorKind,
    PathFrom,
    Query,
    ValuesFrom,
    VariableValue,
    Window,
    operand_parameters,
    operand_terms,
    operand_variables,
    term,
)
from xscl.treepattern import tree_pattern

__all__ = ["Catalog", "Compiler", "Side"]


class Catalog(Protocol):
    """Where the patterns of all queries are, and what is wanted of their variables."""

    def add(self, pattern: TreePattern | TuplePattern) -> tuple[int, ...]:
        """Return the variable of each node of a pattern, in the pattern's order."""

    def remove(self, pattern: TreePattern | TuplePattern) -> None:
        """Undo one `add` of an equal pattern."""

    def want(self, edges: Iterable[VariablePair], valued: Iterable[int]) -> None:
        """Ask for pairs of variables and for the values of variables."""

    def unwant(self, edges: Iterable[VariablePair], valued: Iterable[int]) -> None:
        """Undo one `want` of the same."""


_FROM_OUTSIDE = Published(0, 0)


def _operands(node: PlainNode) -> tuple[PlainNode, ...]:
    """Return what a node of a plain source joins, or the block that it is."""
    if isinstance(node, Operator):
        return node.left, node.right
    return (node.node if isinstance(node, From) else node,)


@dataclass
class Compiler:
    """Compiles the clauses of one alternative, inner ones first.

    With `shares` statements that differ in data read common streams, where that is possible, and
    have one class, also where data are numbers and words that are written out.  The alternative
    `is_alone` where no other plain statement of the query may read the same inner operators.
    """

    query: Query
    point: int
    catalog: Catalog
    published: Mapping[str, Published]
    choice: Mapping[int, Disjunct]
    patterns: list[TreePattern | TuplePattern] = field(default_factory=list)
    edges: list[VariablePair] = field(default_factory=list)
    valued: list[int] = field(default_factory=list)
    admitted: list[tuple[int, Admitted]] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)
    shares: bool = False
    is_alone: bool = True
    asked: frozenset[str] = frozenset()
    """The variables whose values other alternatives of the query, or its decisions, ask for."""

    is_open: ClassVar[bool] = True
    """Whether what is handed on too much is refused at the root, and changes nothing else."""

    def __post_init__(self) -> None:
        self.block_of = {variable.name: variable.block for variable in self.query.variables}
        # A parameter whose type is left open may be a number in some assignments (`QuerySet`).
        self.texts = self.query.text_parameters
        self._read: dict[int, ReadTerms] = {}
        self._sharing = self._sharing_block() if self.shares else None
        read = [self.read(disjunct) for disjunct in self.choice.values()]
        self._look_at([v for r in read for v in r.variables], [o for r in read for o in r.others])

    @cached_property
    def has_choices(self) -> bool:
        """Whether operators that hand on their tuples have alternatives."""
        # The root hands nothing on, so of its alternatives nobody counts the tuples.
        inner = (each for each in self.query.operators() if each is not self.query.root)
        return self.is_open and any(len(each.disjuncts) > 1 for each in inner)

    def look_at(self, asked: Iterable[Operand]) -> None:
        """Compile for predicates with these operands, and for what is shown."""
        self._look_at(*variables_apart(asked))

    def _look_at(self, variables: Sequence[str], others: Sequence[Operand]) -> None:
        self.compared = {*variables}
        self.derived: dict[str, Call | PathFrom | ValuesFrom] = {}
        self.instants: dict[str, Call] = {}
        self.block_of_term = self.block_of
        self._reads_variables = not others
        if others:
            self._look_at_terms(others)
        self.shown = frozenset(self.visible())
        self.needed = needed = self.compared | self.shown
        self.dropped: set[str] = set()
        self._needed_of: list[list[str]] = [[] for _ in self.query.blocks]
        for variable in self.query.variables:
            if variable.name in needed:
                self._needed_of[variable.block].append(variable.name)
            elif variable.is_path:
                self.dropped.add(variable.name)

    def _look_at_terms(self, others: Iterable[Operand]) -> None:
        """Note what operands that are no variables read."""
        # In the order of the text, so that patterns are the same in each process.
        terms = dict.fromkeys(each for operand in others for each in operand_terms(operand))
        self.compared.update(each.variable for each in terms if isinstance(each, VariableValue))
        self.derived |= {term(d): d for o in others if isinstance(d := as_derived(o), Call)}
        self.derived |= {
            term(each): each for each in terms if isinstance(each, (PathFrom, ValuesFrom))
        }
        calls = [each for each in terms if isinstance(each, Call)]
        self.derived |= {term(each): each for each in calls if each.function == REVISION}
        self.instants |= {term(each): each for each in calls if each.function in INSTANTS}
        self.block_of_term = self.block_of | {
            name: self.block_of[variable]
            for name, each in {**self.instants, **self.derived}.items()
            for variable in operand_variables(each)
            if variable in self.block_of
        }

    def compile(self) -> Alternative:
        """Return the alternative; its patterns are in the catalog."""
        self.clause(self.query.root, self.shown)
        self.catalog.want(self.edges, self.valued)
        return Alternative(
            tuple(self.clauses),
            tuple(self.patterns),
            tuple(self.edges),
            tuple(self.valued),
            tuple(self.admitted),
        )

    def visible(self) -> tuple[str, ...]:
        """Return the visible variables of the alternative."""
        return self.query.visible()

    def clause(self, node: PlainNode, needed_above: frozenset[str]) -> Clause:
        """Compile an operator after those below it; `needed_above` are terms to be handed on."""
        is_root = node is self.query.root
        if isinstance(node, Operator):
            disjunct = self.choice[id(node)]
            needed = needed_above | self.terms(disjunct)
            sides = [self._side(node, side, needed) for side in (0, 1)]
            window = node.window.length_us if isinstance(node.window, Window) else node.window
            if not is_root:
                disjunct = self.without_implied(node, disjunct)
            is_symmetric = node.kind is OperatorKind.JOIN
        else:
            disjunct = self.choice[id(node)] if isinstance(node, From) else Disjunct()
            [block] = _operands(node)
            assert isinstance(block, int)  # no other is left in a plain statement
            sides = [self.block_side(block, needed_above | self.terms(disjunct))]
            window, is_symmetric = INFINITE_US, False
        clause = self.build(
            sides,
            disjunct,
            window,
            is_symmetric,
            needed_above,
            is_root=is_root,
            has_words=is_root or self.has_words(node),
        )
        self.clauses.append(clause)
        return clause

    def _sharing_block(self) -> int | None:
        """Return the block whose written-out numbers and words are data, if one is.

        It is one that the root joins, else one that an operator below it does.  Of several it is
        the one that asks for more documents: of what differs in two, most pairs would be nobody's.
        """
        breadths = [breadth_of_constants(block.path) for block in self.query.blocks]
        if not any(breadths):  # as mostly
            return None
        level: list[PlainNode] = [self.query.root]
        while level:
            read = [block for node in level for block in self._blocks_with_data(node)]
            best = max(read, key=breadths.__getitem__, default=None)
            if best is not None and breadths[best]:
                return best
            level = [each for node in level for each in _operands(node) if each is not node]
        return None

    def _blocks_with_data(self, node: PlainNode) -> Iterator[int]:
        """Yield the blocks that a node joins whose numbers and words may be data."""
        is_root = node is self.query.root
        # Of an operator with alternatives a query would count the tuples of each by itself.
        has_one_box = isinstance(node, Operator) and len(node.disjuncts) == 1
        if is_root or (self.is_alone and has_one_box):
            yield from (block for block in _operands(node) if isinstance(block, int))

    def without_implied(self, node: Operator, disjunct: Disjunct) -> Disjunct:
        """Return what an operator asks but for what follows from what the root asks."""
        root = self.choice.get(id(self.query.root))
        is_of_blocks = isinstance(node.left, int) and isinstance(node.right, int)
        return without_implied(disjunct, node.window, root) if root and is_of_blocks else disjunct

    def read(self, disjunct: Disjunct) -> ReadTerms:
        """Return what a conjunction of the alternative reads."""
        found = self._read.get(id(disjunct))
        if found is None:
            found = self._read[id(disjunct)] = ReadTerms(disjunct)
        return found

    def terms(self, disjunct: Disjunct) -> frozenset[str]:
        """Return the terms that a conjunction reads."""
        return self.read(disjunct).terms

    def tuples(
        self,
        node: PlainNode,
        needed: frozenset[str],
        by_data: ByData = ByData.NO,
        had: Collection[str] = (),
        data: Collection[Test] = (),
    ) -> Clause:
        """Compile a node whose tuples are handed on with the terms that are needed of it.

        It is handed on `by_data` where what is decided depends on the data that find it, but for
        what is asked beside data that are `had`; and by all other `data`, too.
        """
        below = self.operand(node, needed)
        self.hand_on(node, below, by_data, had, data)
        return below

    def operand(self, node: PlainNode, needed: frozenset[str]) -> Clause:
        """Compile a node that is to be handed on with the terms that are needed of it."""
        blocks, block_of = {*blocks_of(node)}, self.block_of_term
        needed_here = frozenset([t for t in needed if block_of[t] in blocks])
        return self.clause(node, needed_here)

    def has_words(self, node: PlainNode) -> bool:
        """Return whether words of a node that is no root may be data in a box."""
        return isinstance(node, Operator)

    def _side(self, operator: Operator, side: int, needed: frozenset[str]) -> Side:
        """Return an operand of an operator, with the texts that are made of it to be joined by."""
        node = cast(PlainNode, (operator.left, operator.right)[side])
        made: tuple[Made, ...] = ()
        if not self._reads_variables:  # as it mostly does
            made = texts_made([self.choice[id(operator)]], side)
        # Alternatives with the same matches read the same: these are put together by strata.
        has_others = len(operator.disjuncts) > 1
        is_read = not made and not (has_others and texts_made(operator.disjuncts, side))
        if isinstance(node, int) and is_read:
            return self.joined_side(node, needed)
        below = self.operand(node, needed)
        if isinstance(node, int):
            # Nothing is joined: what is handed on is kept for those above alone.
            below = self.clauses[-1] = replace(below, window_us=0)
        names = {each.name for own in made for each in operand_parameters(own.operand)}
        data = data_named(names, self.texts) if names else ()
        self.hand_on(node, below, ByData.NO, (), data, made)
        node_of = {t: i for i, t in enumerate(below.carried, 1)}
        first = 1 + len(below.carried)
        node_of |= {term(each.operand): first + below.tested.index(each) for each in made}
        source = ClauseSource(None, below, below.query_class.stratum + 1, 0)
        return Side(source, below.tuple_variables, [], node_of, [])

    def block(self, name: str) -> int:
        """Return the block that a term is of."""
        return self.block_of_term[name]

    def joined_side(self, block: int, needed: frozenset[str]) -> Side:
        """Return a block that an operator joins."""
        return self.block_side(block, needed)

    def block_side(self, block: int, needed: frozenset[str]) -> Side:
        """Return a block's pattern as a graph that keeps the terms needed and the constants."""
        of_term = self.block_of_term
        derived = self.derived
        if derived:  # as mostly not
            derived = {t: d for t, d in derived.items() if of_term[t] == block}
        variables, shares = self._needed_of[block], block == self._sharing
        return self.side_of(
            block, needed, variables, derived, self.dropped, shares_constants=shares
        )

    def side_of(
        self,
        block: int,
        needed: frozenset[str],
        variables: Collection[str],
        derived: Mapping[str, Call | PathFrom | ValuesFrom],
        dropped: Collection[str],
        *,
        shares_constants: bool = False,
    ) -> Side:
        """Return a block's pattern that binds some variables and derived terms as a graph."""
        pattern = tree_pattern(
            self.query.blocks[block],
            variables,
            derived.items(),
            dropped,
            self.texts,
            shares_constants=shares_constants,
        )
        self.patterns.append(pattern)
        ids = self.catalog.add(pattern)
        of_term, compared = self.block_of_term, self.compared
        nodes: list[tuple[int, bool]] = []
        node_of: dict[str, int] = {}
        side = Side(self._source(block, needed), ids, nodes, node_of, [])
        for i, (variable, node) in enumerate(zip(ids, pattern.nodes, strict=True)):
            is_kept = is_compared = bool(node.tests)
            for name in node.terms:
                node_of[name] = i
                is_kept |= name in needed and of_term[name] == block
                is_compared |= name in compared or name in self.derived or name in self.asked
            nodes.append((node.parent, is_kept))
            if is_compared:
                self.valued.append(variable)
                side.valued += node.terms
            if node.tests:
                side.tests += [(i, test) for test in node.tests]
            if node.admitted:
                self.admitted += [(variable, each) for each in node.admitted]
            if node.derivation is not None and isinstance(node.derivation, Values):
                side.values.append(i)
        return side

    def _source(self, block: int, needed: frozenset[str]) -> ClauseSource:
        """Return a block as an operand of which some terms are read."""
        read = self.published.get(self.query.blocks[block].stream, _FROM_OUTSIDE)
        instants: tuple[Call, ...] = ()
        if self.instants:
            of_term = self.block_of_term
            kept = [t for t in sorted(needed & self.instants.keys()) if of_term[t] == block]
            instants = tuple([self.instants[t] for t in kept])
        return source_of_block(block, read.stratum, read.retention_us, instants)

    def build(
        self,
        sides: list[Side],
        disjunct: Disjunct,
        window_us: int | Parameter,
        is_symmetric: bool,
        needed_above: frozenset[str],
        *,
        is_root: bool,
        has_words: bool,
    ) -> Clause:
        """Return the clause of an operator, or of a block alone, under one conjunction."""
        builder = ClauseBuilder(
            sides,
            disjunct,
            self.texts,
            self.instants,
            is_root=is_root,
            is_open=self.is_open,
            is_joined=not isinstance(self.query.root, From),
            has_words=has_words,
        )
        read = self.read(disjunct).compared
        clause = builder.build(window_us, is_symmetric, needed_above, read)
        self._want(clause.query_class, sides)
        return clause

    def _want(self, query_class: QueryClass, sides: list[Side]) -> None:
        """Ask the catalog for the template's edges on the sides that are blocks."""
        template, variables = query_class.template, query_class.row.variables
        are_blocks = [side.source.block is not None for side in sides]
        self.edges += [
            (variables[above], variables[i])
            for above, i in template.edges
            if are_blocks[i >= template.left_size]
        ]

    def hand_on(
        self,
        node: PlainNode,
        clause: Clause,
        by_data: ByData,
        had: Collection[str],
        data: Collection[Test] = (),
        made: Collection[Made] = (),
    ) -> None:
        """Give the clause a stream for its tuples, with a variable for each carried term.

        Those have texts that are `made` of them, too.
        """
        clause.unheld += unheld_data(clause, data, had, by_data) if data else ()
        tested: tuple[TestedPlace, ...] = ()
        is_common = self.is_common(clause) and not clause.unheld
        if is_common or made or self.query.parameters or self.has_choices:
            tested = tuple(dict.fromkeys([*made, *places_tested(clause, by_data, had), SPAN]))
        owner = self._owner_of_all() if is_common else self._owner(node)
        has_data = not ((self.is_open or is_common) and tested)
        stream = stream_name(clause, tested, owner, has_data=has_data)
        pattern = TuplePattern(stream, (*clause.carried, *terms_tested(tested)))
        self.patterns.append(pattern)
        words = [test for test in clause.box if test.looks_in_texts]
        has_several = bool(words) and (self.has_choices or any(test.is_given for test in words))
        clause.hand_on(
            stream,
            self.catalog.add(pattern),
            tested,
            is_common=is_common,
            has_several_words=has_several,
        )

    def is_common(self, clause: Clause) -> bool:
        """Return whether statements with other data read the tuples of a clause, too."""
        return self.shares and may_be_common(clause)

    def _owner_of_all(self) -> object | None:
        """Return what tells tuples that are common from others."""
        return None

    def _owner(self, node: PlainNode) -> object:
        """Return what tells tuples of the query from others, where they are not common."""
        query = self.query
        if query.parameters:
            return query.id, query.version, self.point
        # Of alternatives the data are those of all of them.
        return (node, self.point) if self.has_choices else self.point
