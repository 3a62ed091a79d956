"""From one alternative of a plain statement to its clauses and query classes.

Each operator of each alternative becomes a clause (`clause`).  An operator below another one hands
on its tuples as instances of a stream of its own, whose witness shape is flat: a root, and one node
for each variable that is carried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Protocol

from templates.clause import Alternative, Clause, ClauseSource, Edge, Published
from templates.joingraph import GraphNode, JoinGraph, NodeRef, ResidualEdge, reduce
from templates.ordered import PlainNode, blocks_of
from templates.queryclass import QueryClass
from templates.template import template_of
from xscl.evaluation import compile_condition
from xscl.path import Axis, Literal, NodeTest, Parameter
from xscl.pattern import DOCUMENT, Constant, PatternNode, TreePattern, term_variable, tree_pattern
from xscl.query import (
    INFINITE_US,
    Call,
    Derived,
    Disjunct,
    From,
    Operand,
    Operator,
    OperatorKind,
    PathFrom,
    Query,
    Residual,
    VariableValue,
    Window,
    operand_terms,
    operand_variables,
    term,
)
from xscl.signatures import DERIVING_FUNCTIONS

__all__ = ["Catalog", "Compiler", "Side", "as_derived"]


class Catalog(Protocol):
    """Where the patterns of all queries are, and what is wanted of their variables."""

    def add(self, pattern: TreePattern) -> tuple[int, ...]:
        """Return the variable of each node of a pattern, in the pattern's order."""

    def want(self, edges: Iterable[Edge], valued: Iterable[int]) -> None:
        """Ask for pairs of variables and for the values of variables."""


def _added(window_us: int | Parameter, sides: list[Side]) -> int:
    """Return a window and the retention below it; a parameter's is added for each assignment."""
    own = 0 if isinstance(window_us, Parameter) else window_us
    return min(INFINITE_US, own + max(side.source.retention_us for side in sides))


def _blocks(source: ClauseSource) -> tuple[int, ...]:
    if source.below is not None:
        return source.below.blocks
    assert source.block is not None
    return (source.block,)


def _stream(clause: Clause, point: int) -> str:
    """Name the stream of a clause's tuples by all that decides which these are.

    The stratum does not: they stay where a stream gets a publisher, or loses it.
    """
    content = (
        point,
        clause.query_class.in_no_stratum(),
        clause.window_us,
        [(s.block, s.below and s.below.stream) for s in clause.sources],
        sorted(clause.places.items()),
        clause.constants,
        clause.excluded,
        clause.residuals,
        clause.tests,
        sorted(clause.compared),
        clause.carried,
    )
    return f"#{blake2b(repr(content).encode(), digest_size=16).hexdigest()}"


def as_derived(operand: Operand) -> Derived | None:
    """Return the operand when it is a value derived from one variable, else None."""
    match operand:
        case VariableValue():
            return operand
        case Call() if len(operand_variables(operand)) == 1 and _is_of_strings(operand):
            return operand
    return None


def _is_of_strings(operand: Operand) -> bool:
    match operand:
        case Call(function, arguments):
            return function in DERIVING_FUNCTIONS and all(map(_is_of_strings, arguments))
    return isinstance(operand, (VariableValue, Literal, Parameter))


@dataclass
class Side:
    """One operand as a graph: its nodes, and where the terms are."""

    source: ClauseSource
    nodes: list[GraphNode]
    node_of: dict[str, int]
    constants: list[tuple[int, Constant]]


@dataclass
class Compiler:
    """Compiles the clauses of one alternative, inner ones first."""

    query: Query
    point: int
    catalog: Catalog
    published: Mapping[str, Published]
    choice: Mapping[int, Disjunct]
    patterns: list[TreePattern] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    valued: list[int] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.block_of = {variable.name: variable.block for variable in self.query.variables}
        # A parameter whose type is left open may be a number in some assignments (`QuerySet`).
        self.texts = {n for n, kind in self.query.parameters if kind not in ("number", "duration")}
        self.look_at(o for disjunct in self.choice.values() for o in disjunct.operands())

    def look_at(self, asked: Iterable[Operand]) -> None:
        """Compile for predicates with these operands, and for what is shown."""
        operands = list(asked)
        terms = {each for operand in operands for each in operand_terms(operand)}
        self.compared = {each.variable for each in terms if isinstance(each, VariableValue)}
        self.derived: dict[str, Call | PathFrom] = {
            term(d): d for o in operands if isinstance(d := as_derived(o), Call)
        }
        self.derived |= {term(each): each for each in terms if isinstance(each, PathFrom)}
        self.instants = {term(each): each for each in terms if isinstance(each, Call)}
        self.needed = self.compared | set(self.visible())
        self.dropped = {
            v.name for v in self.query.variables if v.is_path and v.name not in self.needed
        }

    def compile(self) -> Alternative:
        """Return the alternative; its patterns are in the catalog."""
        self.clause(self.query.root, frozenset(self.visible()))
        self.catalog.want(self.edges, self.valued)
        return Alternative(
            tuple(self.clauses), tuple(self.patterns), tuple(self.edges), tuple(self.valued)
        )

    def visible(self) -> tuple[str, ...]:
        """Return the visible variables of the alternative."""
        return self.query.visible()

    def clause(self, node: PlainNode, needed_above: frozenset[str]) -> Clause:
        """Compile an operator after those below it; `needed_above` are terms to be handed on."""
        if isinstance(node, int):
            sides = [self.block_side(node, needed_above)]
            clause = self.build(sides, Disjunct(), INFINITE_US, False, needed_above)
        elif isinstance(node, From):
            assert isinstance(node.node, int)  # no other is left in a plain statement
            disjunct = self.choice[id(node)]
            sides = [self.block_side(node.node, needed_above | self.terms(disjunct))]
            clause = self.build(sides, disjunct, INFINITE_US, False, needed_above)
        else:
            assert isinstance(node, Operator)
            disjunct = self.choice[id(node)]
            own = self.terms(disjunct)
            needed = needed_above | own
            sides = [self._side(node.left, needed), self._side(node.right, needed)]
            window = node.window.length_us if isinstance(node.window, Window) else node.window
            is_symmetric = node.kind is OperatorKind.JOIN
            clause = self.build(sides, disjunct, window, is_symmetric, needed_above)
        self.clauses.append(clause)
        return clause

    def terms(self, disjunct: Disjunct) -> frozenset[str]:
        """Return the terms that a conjunction reads."""
        operands = list(disjunct.operands())
        derived = {term(d) for o in operands if (d := as_derived(o)) is not None}
        return frozenset(derived | {term(each) for o in operands for each in operand_terms(o)})

    def tuples(self, node: PlainNode, needed: frozenset[str]) -> Clause:
        """Compile a node whose tuples are handed on with the terms that are needed of it."""
        blocks = set(blocks_of(node))
        needed_here = frozenset(t for t in needed if self.block(t) in blocks)
        below = self.clauses[-1] = self.with_tuples(self.clause(node, needed_here))
        return below

    def _side(self, node: PlainNode, needed: frozenset[str]) -> Side:
        if isinstance(node, int):
            return self.block_side(node, needed)
        below = self.tuples(node, needed)
        variables = below.tuple_variables
        nodes = [GraphNode(v, -1 if i == 0 else 0) for i, v in enumerate(variables)]
        node_of = {t: i for i, t in enumerate(below.carried, 1)}
        source = ClauseSource(None, below, below.query_class.stratum + 1, below.retention_us)
        return Side(source, nodes, node_of, [])

    def block(self, name: str) -> int:
        """Return the block that a term is of."""
        derived = self.derived.get(name) or self.instants.get(name)
        return self.block_of[name if derived is None else term_variable(derived)]

    def block_side(self, block: int, needed: frozenset[str]) -> Side:
        """Return a block's pattern as a graph that keeps the terms needed and the constants."""
        derived = {t: d for t, d in self.derived.items() if self.block(t) == block}
        variables = {v for v in self.needed if self.block_of[v] == block}
        return self.side_of(block, needed, variables, derived, self.dropped)

    def side_of(
        self,
        block: int,
        needed: frozenset[str],
        variables: set[str],
        derived: Mapping[str, Call | PathFrom],
        dropped: set[str],
    ) -> Side:
        """Return a block's pattern that binds some variables and derived terms as a graph."""
        pattern = tree_pattern(
            self.query.blocks[block], variables, list(derived.items()), dropped, self.texts
        )
        self.patterns.append(pattern)
        ids = self.catalog.add(pattern)
        kept = {t for t in needed if self.block(t) == block}
        nodes = [
            GraphNode(i, node.parent, bool(node.constants) or not kept.isdisjoint(node.terms))
            for i, node in zip(ids, pattern.nodes, strict=True)
        ]
        node_of = {t: i for i, node in enumerate(pattern.nodes) for t in node.terms}
        constants = [(i, c) for i, node in enumerate(pattern.nodes) for c in node.constants]
        compared = {i for t, i in node_of.items() if t in self.compared or t in self.derived}
        self.valued.extend(ids[i] for i in sorted(compared | {i for i, _ in constants}))
        read = self.published.get(self.query.blocks[block].stream, Published(0, 0))
        instants = tuple(self.instants[t] for t in sorted(kept & self.instants.keys()))
        source = ClauseSource(block, None, read.stratum, read.retention_us, instants)
        return Side(source, nodes, node_of, constants)

    def build(
        self,
        sides: list[Side],
        disjunct: Disjunct,
        window_us: int | Parameter,
        is_symmetric: bool,
        needed_above: frozenset[str],
    ) -> Clause:
        """Return the clause of an operator, or of a block alone, under one conjunction."""
        where = {t: (s, i) for s, side in enumerate(sides) for t, i in side.node_of.items()}
        constants = [((s, i), c) for s, side in enumerate(sides) for i, c in side.constants]
        excluded: list[tuple[NodeRef, Constant]] = []
        edges, others = self._split_residuals(disjunct, where, constants, excluded)
        for (s, i), _ in (*constants, *excluded):
            sides[s].nodes[i] = replace(sides[s].nodes[i], is_kept=True)
        joins = tuple(
            (where[term(j.left)][1], where[term(j.right)][1]) for j in disjunct.value_joins
        )
        graph = JoinGraph(tuple(tuple(side.nodes) for side in sides), joins, tuple(edges))
        minor, moved = reduce(graph)
        template, row, place = template_of(minor)
        stratum = max(side.source.stratum for side in sides)
        query_class = QueryClass(template, row, is_symmetric, stratum)
        self._want(query_class, sides)

        def meta(ref: NodeRef) -> int:
            return place[ref[0], moved[ref[0]][ref[1]]]

        read = {each for operand in disjunct.operands() for each in operand_terms(operand)}
        compared = frozenset(v.variable for v in read if isinstance(v, VariableValue)).union(
            *(side.source.below.compared for side in sides if side.source.below is not None)
        )
        return Clause(
            query_class=query_class,
            blocks=tuple(block for side in sides for block in _blocks(side.source)),
            window_us=window_us,
            sources=tuple(side.source for side in sides),
            places={
                t: meta(ref)
                for t, ref in where.items()
                if sides[ref[0]].source.block is not None and ref[1] in moved[ref[0]]
            },
            constants=tuple((meta(ref), c) for ref, c in constants),
            excluded=tuple((meta(ref), c) for ref, c in excluded),
            residuals=tuple(others),
            tests=disjunct.tests,
            condition=compile_condition(others, disjunct.tests),
            compared=compared,
            carried=tuple(sorted(needed_above | compared)),
            retention_us=_added(window_us if len(sides) > 1 else 0, sides),
        )

    def _split_residuals(
        self,
        disjunct: Disjunct,
        where: Mapping[str, NodeRef],
        constants: list[tuple[NodeRef, Constant]],
        excluded: list[tuple[NodeRef, Constant]],
    ) -> tuple[list[ResidualEdge], list[Residual]]:
        """Return what the join can test, and the rest.

        What is held against a string joins the constants, or those that are excluded.
        """
        edges: list[ResidualEdge] = []
        others: list[Residual] = []
        # Nothing is joined there, so no engine looks at values.
        is_alone = isinstance(self.query.root, From)
        for residual in disjunct.residuals:
            left, right = as_derived(residual.left), as_derived(residual.right)
            operands = (residual.left, residual.right)
            texts = [text for o in operands if (text := self._text(o)) is not None]
            if residual.operator not in ("=", "!="):
                others.append(residual)
            elif left is not None and right is not None and not is_alone:
                edges.append(ResidualEdge(where[term(left)], residual.operator, where[term(right)]))
            elif len(texts) == 1 and (one := left or right) is not None:
                held = constants if residual.operator == "=" else excluded
                held.append((where[term(one)], texts[0]))
            else:
                others.append(residual)
        return edges, others

    def _text(self, operand: Operand) -> Constant | None:
        match operand:
            case Literal(str() as text):
                return text
            case Parameter(name) if name in self.texts:
                return operand
        return None

    def _want(self, query_class: QueryClass, sides: list[Side]) -> None:
        """Ask the catalog for the template's edges on the sides that are blocks."""
        template, variables = query_class.template, query_class.row.variables
        parents = set(template.parents)
        for i, parent in enumerate(template.parents):
            side = 0 if i < template.left_size else 1
            if sides[side].source.block is None:
                continue
            if parent >= 0:
                self.edges.append((variables[parent], variables[i]))
            elif i not in parents:
                self.edges.append((variables[i], variables[i]))

    def with_tuples(self, clause: Clause) -> Clause:
        """Give the clause a stream for its tuples, with a variable for each carried term."""
        stream = _stream(clause, self.point)
        steps = [PatternNode(DOCUMENT, Axis.CHILD, NodeTest("tuple"))]
        steps += [PatternNode(0, Axis.CHILD, NodeTest(t), terms=(t,)) for t in clause.carried]
        pattern = TreePattern(stream, tuple(steps))
        self.patterns.append(pattern)
        return replace(clause, stream=stream, tuple_variables=self.catalog.add(pattern))
